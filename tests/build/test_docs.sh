#!/bin/sh
# The documents agree with the tree: tools/check_docs finds nothing wrong with it, and on made-up
# trees each violation fails and is named.
set -eu
check=$SW_SOURCE_DIR/tools/check_docs
work=$SW_BINARY_DIR/test-docs
failed=0

"$check" "$SW_SOURCE_DIR" || failed=1

# A tree with a document of each kind, to which each case adds.
fresh_tree() {
	rm -rf "$work"
	mkdir -p "$work/src/base/deep" "$work/src/cluster" "$work/src/plan" "$work/docs" "$work/cli" "$work/tests/base"
	printf 'base  text\ncluster  text\nplan  text\n' >"$work/src/LAYERS"
	echo 'int sw_base_add(int a);' >"$work/src/base/base.h"
	echo 'int x;' >"$work/src/base/add.c"
	echo 'int y;' >"$work/src/base/deep/sub.c"
	printf '	{.key = "speed",\n' >"$work/src/cluster/figures.c"
	printf '	{SW_PLAN_DP, "dp", "", parse, print},\n	{SW_PLAN_SERIAL, "serial", "", NULL, print},\n' >"$work/src/plan/fixed_strategy.c"
	printf '# base\n\n`base.h` declares, `add.c` adds by `sw_base_add`; `deep/*.c`.\n' >"$work/src/base/README.md"
	echo '`figures.c`' >"$work/src/cluster/README.md"
	echo '`fixed_strategy.c`' >"$work/src/plan/README.md"
	printf '	{"--steps", "N", CLI_COUNT, AT(steps), "how many"},\n	{"-o", "PLAN", CLI_TEXT, AT(o),\n' >"$work/cli/options.c"
	printf '	.name = "plan",\n' >"$work/cli/cmd_plan.c"
	printf '# Commands\n\n| `plan` | plans |\n\n    shardwright plan x --steps 3 -o y\n\n| `dp` | data |\n' >"$work/docs/commands.md"
	echo '| `device.speed` | how fast |' >"$work/docs/cluster-file.md"
	printf '# Read me\n\nSee [commands](docs/commands.md), `src/base/add.c` and `tests/base`.\n' >"$work/README.md"
}

# expect MESSAGE: check_docs fails with exactly this line ("" for: it passes).
expect() {
	status=0
	output=$(CHECK_DOCS_EXEMPT='' "$check" "$work" 2>&1) || status=$?
	wanted=$([ -z "$1" ] && echo 0 || echo 1)
	if [ "$status" != "$wanted" ] || [ "$output" != "$1" ]; then
		printf 'expected status %s: %s\ngot      status %s: %s\n' "$wanted" "$1" "$status" "$output" >&2
		failed=1
	fi
	fresh_tree
}

fresh_tree
expect ""

rm "$work/src/plan/README.md"
expect 'src/plan: no README.md'

echo 'rules  text' >>"$work/src/LAYERS"
expect 'src/rules: in src/LAYERS, and no such folder'

echo 'int z;' >"$work/src/base/other.c"
expect 'src/base/README.md: does not name other.c'

echo 'See `src/base/gone.c`.' >>"$work/README.md"
expect 'README.md:4: src/base/gone.c: no such file'

echo 'See [there](gone.md).' >>"$work/docs/commands.md"
expect 'docs/commands.md:8: gone.md: no such file'

echo '`gone.c` is gone.' >>"$work/src/base/README.md"
expect 'src/base/README.md:4: gone.c: no such file'

echo 'As `tests/*/none.sh` says.' >>"$work/README.md"
expect 'README.md:4: tests/*/none.sh: no such file'

echo 'It calls `sw_base_subtract`.' >>"$work/src/base/README.md"
expect 'src/base/README.md:4: sw_base_subtract: no such name in the source'

echo 'Give `--speed` for more.' >>"$work/README.md"
expect 'README.md:4: --speed: no such option'

printf '	{"--seed", "N", CLI_COUNT, AT(seed), "of numbers"},\n' >>"$work/cli/options.c"
expect 'docs/commands.md: does not name the option --seed'

echo '    shardwright fly x' >>"$work/README.md"
expect 'README.md:4: fly: no such command'

printf '	.name = "run",\n' >"$work/cli/cmd_run.c"
expect 'docs/commands.md: does not name the command run'

printf '	{.key = "cache",\n' >>"$work/src/cluster/figures.c"
expect 'docs/cluster-file.md: does not name the key cache'

printf '	{SW_PLAN_ZERO, "zero", "", parse, print},\n' >>"$work/src/plan/fixed_strategy.c"
expect 'docs/commands.md: does not name the strategy zero'

printf '%0110d\n' 0 >>"$work/README.md"
expect 'README.md:4: 110 columns, at most 100'

printf '| %0110d |\n\n    %0110d\n\n```\n%0110d\n```\n' 0 0 0 >>"$work/README.md"
expect ""

rm -rf "$work"
exit $failed
