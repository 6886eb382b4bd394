#!/bin/sh
# The same with many more limits and allocations: tests/cli/refusals.sh.
SW_REFUSALS=long exec tests/cli/refusals.sh
