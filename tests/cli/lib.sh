# Functions for the tests of the command: . tests/cli/lib.sh
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
sw=$SHARDWRIGHT
tiny=tests/programs/gpt-tiny.hlo.gz
cluster=clusters/local-2x2.yaml

# complain WHAT: report a failed check, with the command's output.
complain() {
	echo "FAILED: $*" >&2
	sed 's/^/    stdout: /' "$scratch/out" >&2
	sed 's/^/    stderr: /' "$scratch/err" >&2
	failed=1
}

# expect CODE WORDS COMMAND...: check the exit code, and that one line of standard error has these
# words (empty: not checked).
expect() {
	code=$1
	words=$2
	shift 2
	got=0
	timeout 300 "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
	[ "$got" = "$code" ] || complain "exit code $got, not $code: $*"
	[ -z "$words" ] || grep -q -e "$words" "$scratch/err" || complain "'$words' is not said: $*"
}

# refuse WORDS COMMAND...: check for exit code 2, exactly one line on standard error, and nothing on
# standard output.
refuse() {
	expect 2 "$@"
	[ "$(wc -l <"$scratch/err")" = 1 ] || complain "not one line: $*"
	[ ! -s "$scratch/out" ] || complain "standard output is not empty: $*"
}

# make_plan NAME PROGRAM STRATEGY: write $scratch/NAME.plan
make_plan() {
	expect 0 "" "$sw" plan "$2" --cluster $cluster -o "$scratch/$1.plan" --strategy "$3" -q
}

# verified PLAN: its devices compute what one does, and send what is predicted
verified() {
	expect 0 "" "$sw" verify "$1"
	grep -q "as predicted" "$scratch/out" || complain "another payload"
}

# near A B [SHARE]: files of numbers, one in a line, that are equal within this share (1e-5)
near() {
	paste "$1" "$2" | awk -v share="${3:-1e-5}" '
		{ d = ($1 - $2) / $1; if (d > share || d < -share || NF != 2) bad = 1 }
		END { exit bad || NR == 0 }'
}

# npy NAME DESCR FORMAT SHAPE VALUES [True]: write a .npy file, with Python and without NumPy; True: the
# values are in Fortran's order
npy() {
	python3 - "$scratch/$1.npy" "$2" "$3" "$4" "$5" "${6:-False}" <<'END' || complain "npy: $1"
import struct, sys
path, descr, code, shape, values, fortran = sys.argv[1:]
n = 1
for d in eval(shape):
    n *= d
header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
header += " " * (-(len(header) + 11) % 64) + "\n"
numbers = [eval(values, {"i": i}) for i in range(n)]
open(path, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() +
                       struct.pack("<%d%s" % (n, code), *numbers))
END
}

# write_tokens FILE: 20000 bytes below 64, of which most follow from the one before
write_tokens() {
	python3 - "$1" <<'END'
import random, sys
random.seed(1)
tokens, x = [], 3
for i in range(20000):
    x = (x * 5 + 7) % 64 if random.random() < 0.9 else random.randrange(64)
    tokens.append(x)
open(sys.argv[1], "wb").write(bytes(tokens))
END
}

# holds EXPRESSION: check it of the JSON j that the command printed
holds() {
	python3 - "$scratch/out" "$1" <<'PY' || complain "not so: $1"
import json, sys
j = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))
PY
}
