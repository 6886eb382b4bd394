#!/bin/sh
# As kill.sh, with 50 kills.
SW_KILLS=50 exec tests/cli/kill.sh
