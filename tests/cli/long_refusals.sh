#!/bin/sh
# The same with every limit and every allocation: tests/cli/refusals.sh.
SW_REFUSALS=long exec tests/cli/refusals.sh
