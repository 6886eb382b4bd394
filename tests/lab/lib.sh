# For the tests of the lab: . tests/lab/lib.sh. Each test has a lab of its own, named after its process.
. tests/cli/lib.sh
export SHARDWRIGHT_LAB=test-$$
trap 'tools/lab down 2>/dev/null; rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
: >"$scratch/out"
: >"$scratch/err"

# skip WHY: this machine can't; what was found before that counts.
skip() {
	[ $failed = 0 ] || exit 1
	echo "skipped: $*"
	exit 77
}

# up FILE: skips the test where this machine can't.
up() {
	code=0
	tools/lab up "$1" >"$scratch/out" 2>"$scratch/err" || code=$?
	[ $code != 77 ] || skip "$(cat "$scratch/err")"
	[ $code = 0 ] || complain "up $1: exit code $code"
}

# The words of all running commands that are this test's mark.
marks() {
	cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -x "60\.$$"
}

# The remains of the lab: namespaces, files, processes.
traces() {
	ip netns list | grep "^lab\.$SHARDWRIGHT_LAB\."
	ls -d "${SHARDWRIGHT_LAB_STATE:-/run/shardwright-lab}/lab.$SHARDWRIGHT_LAB" 2>/dev/null
	marks
}

# nothing_left WHEN
nothing_left() {
	traces >"$scratch/traces"
	[ ! -s "$scratch/traces" ] || complain "$1, and this is left: $(cat "$scratch/traces")"
}

# list FILE KEY: the numbers of a list in a JSON object, one to a line
list() {
	sed -n "/^ *\"$2\": \[/,/\]/p" "$1" | tr -d ' ,' | grep '^[-0-9]'
}
