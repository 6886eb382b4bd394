#!/bin/sh
# The planner's model ranks plans of a layer of GPT as the simulator does: bench/honesty on a part of its candidate
# set.
set -eu
bench=$SW_BINARY_DIR/bench/honesty
[ -x "$bench" ] || exit 77
"$bench" --every 67 --check
