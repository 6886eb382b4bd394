#!/bin/sh
# tools/check_layers on made-up trees: a good one passes, each violation fails and is named.
set -eu
work=$SW_BINARY_DIR/test-check-layers
failed=0

# A tree of three layers, to which each case adds.
fresh_tree() {
	rm -rf "$work"
	mkdir -p "$work/src/base" "$work/src/program" "$work/src/transport" "$work/cli" "$work/tests/base"
	printf 'base       text\nprogram    text\ntransport  text\n' >"$work/src/LAYERS"
	echo '#include <stdio.h>' >"$work/src/base/base.h"
	printf '#include "base/base.h"\n#include "program/own.h"\n#include "own.h"\n' >"$work/src/program/program.c"
	echo '#include <mpi.h>' >"$work/src/transport/mpi.c"
	echo '#include "transport/transport.h"' >"$work/cli/main.c"
}

# expect MESSAGE: check_layers fails with exactly this line ("" for: it passes).
expect() {
	status=0
	output=$("$SW_SOURCE_DIR/tools/check_layers" "$work" 2>&1) || status=$?
	wanted=$([ -z "$1" ] && echo 0 || echo 1)
	if [ "$status" != "$wanted" ] || [ "$output" != "$1" ]; then
		printf 'expected status %s: %s\ngot      status %s: %s\n' "$wanted" "$1" "$status" "$output" >&2
		failed=1
	fi
	fresh_tree
}

fresh_tree
expect ""

printf '\n#include "program/program.h"\n' >"$work/src/base/base.c"
expect 'src/base/base.c:2: "program/program.h": program stands below base in src/LAYERS'

printf '  #  include "transport/transport.h"\n' >"$work/src/program/program.h"
expect 'src/program/program.h:1: "transport/transport.h": transport stands below program in src/LAYERS'

echo '#include "../transport/transport.h"' >"$work/src/program/up.h"
expect 'src/program/up.h:1: "../transport/transport.h" goes through ../; write "FOLDER/FILE"'

echo '#include "cli/cli.h"' >"$work/src/program/cli.c"
expect 'src/program/cli.c:1: "cli/cli.h": src/LAYERS has no folder cli'

echo '#include <mpi.h>' >"$work/src/program/send.c"
expect 'src/program/send.c:1: only src/transport/mpi* may include <mpi.h>'

echo '#include "mpi.h"' >"$work/src/transport/local.c"
expect 'src/transport/local.c:1: only src/transport/mpi* may include <mpi.h>'

echo '#include <mpi.h>' >"$work/tests/base/test_x.c"
expect 'tests/base/test_x.c:1: only src/transport/mpi* may include <mpi.h>'

mkdir "$work/src/extra"
expect 'src/extra: this folder has no line in src/LAYERS'

mkdir "$work/src/program/cpu"
echo '#include "transport/x.h"' >"$work/src/program/cpu/deep.c"
expect 'src/program/cpu/deep.c:1: "transport/x.h": transport stands below program in src/LAYERS'

mkdir "$work/src/program/cpu"
echo '#include "program/cpu/x.h"' >"$work/src/base/base.c"
expect 'src/base/base.c:1: "program/cpu/x.h": program stands below base in src/LAYERS'

mkdir "$work/src/program/cpu"
printf '#include "program/cpu/x.h"\n#include "program/own.h"\n#include "base/base.h"\n' >"$work/src/program/cpu/x.c"
echo '#include "program/cpu/x.h"' >"$work/src/transport/local.c"
expect ''

exit $failed
