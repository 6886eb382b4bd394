#!/bin/sh
# The warnings of sw_warnings reach gcc and clang: a file with one deliberate fault, compiled with
# the flags that a file of src/ gets in a real configuration, is refused, and the fault is named.
set -eu
work=$SW_BINARY_DIR/test-warnings
rm -rf "$work"
mkdir -p "$work"

# add_case NAME WARNING, with the source on standard input. gcc writes a warning's name as
# [-Werror=NAME], clang as [-Werror,-WNAME].
add_case() {
	cat >"$work/$1.c"
	echo "$1 $2" >>"$work/cases"
}

add_case clean none <<'C'
int clean(int a);
int clean(int a) { return a + 1; }
C
add_case shadow shadow <<'C'
int f(int a);
int f(int a) { for (int i = 0; i < a; i++) { int a = i; (void)a; } return a; }
C
add_case conversion conversion <<'C'
int f(long a);
int f(long a) { double d = 1.5 * (double)a; return (int)a + (short)1 + (a > 3 ? d : 0); }
C
add_case unused unused-variable <<'C'
int f(void);
int f(void) { int unused = 1; return 0; }
C
add_case parameter unused-parameter <<'C'
int f(int a);
int f(int a) { return 0; }
C
add_case prototype strict-prototypes <<'C'
int f();
C
add_case undeclared missing-prototypes <<'C'
int f(int a) { return a; }
C
add_case pointer arith <<'C'
void *f(void *p);
void *f(void *p) { return p + 1; }
C

# The flags of src/base/error.c as the build uses them: its line of compile_commands.json, without
# the compiler's launcher and name and without what belongs to the one file.
flags_of() { # BUILD
	grep '"command":.*/src/base/error\.c"' "$1/compile_commands.json" |
		sed -e 's/.*"command": "//' -e 's/",\{0,1\}$//' -e 's/\\"/"/g' -e 's/ -o .*//' |
		tr ' ' '\n' | grep '^-' | tr '\n' ' '
}

failed=0
report() { echo "test_warnings: $*" >&2; failed=1; }

check_compiler() { # COMPILER
	build=$work/$1
	cmake -S "$SW_SOURCE_DIR" -B "$build" -DCMAKE_C_COMPILER="$1" -DSW_WERROR=ON -DSW_TESTS=OFF \
		-DSW_SANITIZE= >"$work/log" 2>&1 || { cat "$work/log" >&2; report "$1: cmake failed"; return; }
	all=$(grep -c '"command":.*/src/' "$build/compile_commands.json")
	strict=$(grep -c '"command":.*-Wshadow.*-Werror.*/src/' "$build/compile_commands.json")
	[ "$all" = "$strict" ] || report "$1: only $strict of $all files of src/ get the warnings"
	flags=$(flags_of "$build")
	while read -r name warning; do
		# shellcheck disable=SC2086
		if "$1" $flags -c "$work/$name.c" -o "$work/$name.o" 2>"$work/$name.log"; then
			[ "$warning" = none ] || report "$1: $name.c was accepted, expected $warning"
		elif [ "$warning" = none ]; then
			cat "$work/$name.log" >&2
			report "$1: $name.c was refused"
		elif ! grep -q -e "\[-Werror.*$warning" "$work/$name.log"; then
			cat "$work/$name.log" >&2
			report "$1: $name.c was refused, but not for $warning"
		fi
	done <"$work/cases"
}

for compiler in gcc clang; do
	if command -v $compiler >/dev/null; then
		check_compiler $compiler
	else
		report "$compiler is missing (tools/setup --tests)"
	fi
done
exit $failed
