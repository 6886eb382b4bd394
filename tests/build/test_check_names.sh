#!/bin/sh
# tools/check_names on made-up trees: a good one passes, each violation fails and is named.
set -eu
work=$SW_BINARY_DIR/test-check-names
failed=0
CHECK_NAMES_EXEMPT="src/old"
export CHECK_NAMES_EXEMPT

# A tree of every form of a type, to which each case adds.
fresh_tree() {
	rm -rf "$work"
	mkdir -p "$work/src/base" "$work/src/program" "$work/src/old" "$work/cli"
	cat >"$work/src/base/base.h" <<'END'
typedef struct sw_map sw_map;
typedef struct sw_list {
	int n;
} sw_list;
typedef struct sw_list sw_other_list;
typedef SW_VEC(int) sw_ints;
typedef void (*sw_pointer)(int n);
typedef int sw_function(int n,
                        int m);
END
	cat >"$work/src/base/map.c" <<'END'
#include "base/base.h"
struct sw_map {
	int n;
};
typedef struct slot {
	int n;
} slot;
typedef enum end { LEFT, RIGHT } end;
typedef enum {
	UP
} side;
static const struct {
	int n;
} rows[1];
END
	echo 'static const struct {' >"$work/src/program/print.c"
	printf '} rows[1];\nstatic struct slot *first;\n' >>"$work/src/program/print.c"
	echo 'typedef struct slot {' >"$work/src/old/map.c"
}

# expect MESSAGE: check_names fails with exactly this line ("" for: it passes).
expect() {
	status=0
	output=$("$SW_SOURCE_DIR/tools/check_names" "$work" 2>&1) || status=$?
	wanted=$([ -z "$1" ] && echo 0 || echo 1)
	if [ "$status" != "$wanted" ] || [ "$output" != "$1" ]; then
		printf 'expected status %s: %s\ngot      status %s: %s\n' "$wanted" "$1" "$status" "$output" >&2
		failed=1
	fi
	fresh_tree
}

fresh_tree
expect ""

printf 'typedef struct slot {\n\tint n;\n} slot;\n' >"$work/src/program/slots.h"
expect 'src/program/slots.h:1: type slot is also in src/base/map.c:5'

printf 'struct sw_map {\n\tint n;\n};\n' >"$work/src/program/slots.h"
expect 'src/program/slots.h:1: type sw_map is also in src/base/map.c:2'

printf 'typedef struct {\n\tint n;\n} end;\n' >"$work/cli/main.c"
expect 'src/base/map.c:8: type end is also in cli/main.c:3'

printf 'typedef enum place { END } side;\n' >"$work/src/program/slots.h"
expect 'src/program/slots.h:1: type side is also in src/base/map.c:11'

printf 'typedef double sw_ints;\n' >"$work/src/program/slots.h"
expect 'src/program/slots.h:1: type sw_ints is also in src/base/base.h:6'

printf 'typedef int (*sw_pointer)(void);\n' >"$work/src/program/slots.h"
expect 'src/program/slots.h:1: type sw_pointer is also in src/base/base.h:7'

printf 'typedef void sw_function(int n);\n' >"$work/src/program/slots.h"
expect 'src/program/slots.h:1: type sw_function is also in src/base/base.h:8'

echo "int n;" >"$work/src/program/map.c"
expect 'src/program/map.c: there is also src/base/map.c'

# The folders that are exempt in this project are there: a folder that was mended leaves the list.
for folder in $(sed -n 's/^EXEMPT=.*-"\(.*\)"}$/\1/p' "$SW_SOURCE_DIR/tools/check_names"); do
	CHECK_NAMES_EXEMPT=$(sed -n 's/^EXEMPT=.*-"\(.*\)"}$/\1/p' "$SW_SOURCE_DIR/tools/check_names" | sed "s#$folder##")
	if "$SW_SOURCE_DIR/tools/check_names" "$SW_SOURCE_DIR" 2>/dev/null; then
		echo "$folder has no name twice any more: take it off EXEMPT in tools/check_names" >&2
		failed=1
	fi
done

exit $failed
