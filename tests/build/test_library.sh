#!/bin/sh
# libshardwright as it is installed: the example is compiled with what pkg-config says and plans as the
# command does; the library shows its header's functions alone, and nothing in it ends the process.
[ -f "$SW_BINARY_DIR/libshardwright.so" ] || { echo "a build with sanitizers has no library"; exit 77; }
. tests/build/lib.sh
install_all
pc=$(find "$root/usr" -name shardwright.pc)
libdir=$(dirname "$(find "$root/usr" -name libshardwright.so)")
[ "$(find "$root/usr/include" -type f | wc -l)" = 1 ] || complain "not one header: $(find "$root/usr/include" -type f)"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH LD_LIBRARY_PATH="$libdir"
flags=$(pkg-config --cflags --libs shardwright) || complain "pkg-config: $flags"
[ "$(pkg-config --modversion shardwright)" = "$("$build/shardwright" --version | sed 's/shardwright //')" ] ||
	complain "another version"
strict="-std=c11 -pedantic -Wall -Wextra -Werror"
example=$(find "$root/usr" -name plan.c)

# The example, from the installed tree.
# shellcheck disable=SC2086
cc $strict "$example" $flags -o "$root/plan" || complain "the example does not compile"
program=tests/programs/gpt-tiny.hlo.gz
"$root/plan" $program local-2x2 "$root/own.plan" strategy=zero3 >"$root/out" 2>"$root/err" || complain "no plan: $(cat "$root/err")"
[ ! -s "$root/err" ] || complain "it prints: $(cat "$root/err")"
"$build/shardwright" plan $program --cluster local-2x2 --strategy zero3 -o "$root/command.plan" -q || complain "no plan of the command"
cmp "$root/own.plan" "$root/command.plan" || complain "another plan than the command's"
"$build/shardwright" explain "$root/own.plan" >"$root/explained" || complain "no explanation"
while read -r line; do
	grep -qF -- "$line" "$root/out" || complain "not in the text: $line"
done <"$root/explained"
grep -q "^4 devices, [0-9.e-]* s a step, no plan takes less than [0-9.e-]* s; [0-9]* bytes" "$root/out" || complain "$(tail -1 "$root/out")"

# refuse CODE WORDS ARGUMENT...: one line, and the exit code of the status
refuse() {
	code=$1
	words=$2
	shift 2
	"$root/plan" "$@" >"$root/out" 2>"$root/err"
	[ $? = "$code" ] || complain "another code than $code: $*"
	grep -q "$words" "$root/err" || complain "'$words' is not said: $(cat "$root/err")"
	[ "$(wc -l <"$root/err")" = 1 ] || complain "not one line: $(cat "$root/err")"
}
refuse 2 "no/such.hlo: cannot read" no/such.hlo local-2x2 "$root/x"
refuse 2 "neither such a cluster file nor an installed one" $program no-cluster "$root/x"
refuse 2 "planning has no option 'stratgy' (nearest: 'strategy')" $program local-2x2 "$root/x" stratgy=dp
refuse 2 "memory 3 apples: expected a size" $program local-2x2 "$root/x" "memory=3 apples"
refuse 2 "option 'dp': expected NAME=VALUE" $program local-2x2 "$root/x" dp
refuse 1 "no plan fits in" $program local-2x2 "$root/x" memory=10kB
refuse 2 "no/such/folder/x: cannot write" $program local-2x2 no/such/folder/x

# Plans with stages are the command's, and are read again.
staged="stages=2 microbatches=4 schedule=1f1b strategy=dp"
# shellcheck disable=SC2086
{
	"$root/plan" $program local-2x2 "$root/staged" $staged >"$root/out" 2>"$root/err" || complain "no stages: $(cat "$root/err")"
	cc $strict tests/build/library/read_plan.c $flags -o "$root/read" || complain "read_plan.c"
}
mkdir -p "$root/command"
"$build/shardwright" plan $program --cluster local-2x2 --stages 2 --microbatches 4 --schedule 1f1b --strategy dp \
	-o "$root/command/staged" -q >/dev/null || complain "no stages of the command"
cmp "$root/staged" "$root/command/staged" || complain "other stages than the command's: $(diff "$root/staged" "$root/command/staged")"
"$root/read" "$root/staged" "$root/again" >"$root/out" 2>&1 || complain "stages are not read: $(cat "$root/out")"
"$build/shardwright" explain "$root/staged" | grep -v '^$' | sed "s|$root/||g" >"$root/explained"
grep -v '^$' "$root/out" | grep -vx '4 devices, .*' | sed "s|$root/||g" | cmp - "$root/explained" || complain "another text: $(cat "$root/out")"
grep -q "^4 devices, 0\.[0-9]* s, bound 0, [1-9][0-9]* bytes, payload -1; again.*: a plan with stages that was read is not written" \
	"$root/out" || complain "$(tail -1 "$root/out")"
refuse 2 "stages and pp= in strategy both say how many" $program local-2x2 "$root/x" stages=2 strategy=dp:pp=2
refuse 2 "schedule and chunks are of plans with stages" $program local-2x2 "$root/x" schedule=1f1b
refuse 2 "stages some: expected auto, or a number" $program local-2x2 "$root/x" stages=some

# Plans run in process as the command runs them: the second example, and what the header promises.
# Beside stages and owners, a plan whose batch is padded for its devices.
example=$(find "$root/usr" -name train.c)
sed 's/f32: [^,]*,/f32: 20 MFLOP\/s,/' clusters/local-2x2.yaml >"$root/slow.yaml"
# shellcheck disable=SC2086
{
	cc $strict "$example" $flags -o "$root/train" || complain "the second example does not compile"
	cc $strict -pthread tests/build/library/run_plan.c $flags -o "$root/run" || complain "run_plan.c"
	cc $strict -D_GNU_SOURCE tests/build/library/refused_run.c $flags -o "$root/refused_run" || complain "refused_run.c"
}
python3 -c 'print("".join(chr(i * i % 61) for i in range(5000)), end="")' >"$root/corpus"
# run_as_command NAME PROGRAM CLUSTER TOKENS STATE OPTION...: the same losses, step by step
run_as_command() {
	name=$1
	planned=$2
	machines=$3
	data=$4
	state=$5
	shift 5
	"$root/plan" "$planned" "$machines" "$root/$name" "$@" >"$root/out" 2>"$root/err" || complain "no plan: $(cat "$root/err")"
	mkdir "$root/$name.kept" "$root/$name.trained" || complain mkdir
	"$root/run" "$root/$name" "$root/$name.kept" "$data" "$state" "$planned" "$machines" "$@" >"$root/own" 2>&1 ||
		complain "$name: $(cat "$root/own")"
	"$build/shardwright" run "$root/$name" --ranks 4 --steps 4 --json -q |
		python3 -c 'import json, sys; print(*("%.9g" % x for x in json.load(sys.stdin)["losses"]), sep="\n")' >"$root/losses"
	cmp "$root/own" "$root/losses" || complain "$name: other losses than the command's: $(paste "$root/own" "$root/losses")"
	"$root/train" "$root/$name" 3 "$root/$name.trained" "$root/corpus" >"$root/out" 2>&1 || complain "$name: $(cat "$root/out")"
	[ "$(grep -c "^step [123]  loss [1-9]" "$root/out")" = 3 ] || complain "$name: $(cat "$root/out")"
	# The command goes on from what the library kept.
	"$build/shardwright" run "$root/$name" --ranks 4 --steps 4 --save "$root/$name.kept" --resume --json -q |
		python3 -c 'import json, sys; print(*("%.9g" % x for x in json.load(sys.stdin)["losses"]), sep="\n")' >"$root/losses"
	tail -2 "$root/own" | cmp - "$root/losses" || complain "$name: the command goes on otherwise"
}
run_as_command whole $program local-2x2 tokens params.embed.tokens strategy=zero3
run_as_command padded tests/programs/odd-tiny.hlo.gz "$root/slow.yaml" tokens params.blocks.0.mlp.up.w strategy=dp
run_as_command owned $program local-2x2 tokens params.embed.tokens strategy=ps
# shellcheck disable=SC2086
run_as_command stages $program local-2x2 tokens params.embed.tokens $staged
run_as_command apart tests/programs/gpt-tiny-scan.hlo.gz local-2x2 tokens params.blocks.mlp.up.w.part1 stages=2 \
	microbatches=4 schedule=zb-v
run_as_command coded $program local-2x2 tokens params.embed.tokens strategy=dp codec=int8
# On files of data, and beside a second program, losses are the command's; a file of ways is taken.
# shellcheck disable=SC2086
cc $strict tests/build/library/data_run.c $flags -o "$root/data_run" || complain "data_run.c"
tail -c 3000 "$root/corpus" >"$root/held"
# data_as_command PLAN OPTION...
data_as_command() {
	"$root/data_run" "$root/$1" seed=3 "data=$root/corpus,$root/held" "eval=$program" "eval-data=$root/held" \
		eval-batches=3 >"$root/own" 2>&1 || complain "$1: $(cat "$root/own")"
	"$build/shardwright" run "$root/$1" --ranks 4 --steps 4 --seed 3 --data "$root/corpus,$root/held" --eval $program \
		--eval-data "$root/held" --eval-batches 3 --eval-every 2 --json -q >"$root/out" || complain "$1: the command"
	python3 - "$root/out" >"$root/losses" <<'END'
import json, sys
run = json.load(open(sys.argv[1]))
after = {e["step"]: e["loss"] for e in run["evaluated"]}
for step, loss in enumerate(run["losses"], 1):
    print("%.9g" % loss)
    if step in after:
        print("eval %.9g" % after[step])
END
	cmp "$root/own" "$root/losses" || complain "$1: other losses on files: $(paste "$root/own" "$root/losses")"
}
data_as_command whole
data_as_command stages
printf -- '- {variable: "*", way: zero1}\n- {variable: "params.head.w", way: ps, parts: [20, 12]}\n' >"$root/ways.yaml"
"$root/plan" $program local-2x2 "$root/ways" "sync=$root/ways.yaml" >"$root/out" 2>"$root/err" || complain "$(cat "$root/err")"
"$build/shardwright" plan $program --cluster local-2x2 --sync "$root/ways.yaml" -o "$root/command.plan" -q || complain "--sync"
cmp "$root/ways" "$root/command.plan" || complain "another plan of ways than the command's"
data_as_command ways
refuse 2 "strategy sync is what a file says: add sync FILE" $program local-2x2 "$root/x" strategy=sync
refuse 2 "sync is a strategy of its own: leave strategy dp out" $program local-2x2 "$root/x" strategy=dp "sync=$root/ways.yaml"
"$root/plan" $program local-2x2 "$root/served" strategy=ps:served >/dev/null || complain "no plan whose variables are served"
"$root/train" "$root/served" 1 "$root" >"$root/trained" 2>&1 && complain "variables that owners serve"
grep -q "shardwright run trains such a plan" "$root/trained" || complain "served: $(cat "$root/trained")"
"$root/train" "$root/out" 1 "$root" >"$root/trained" 2>&1 && complain "a plan that is none"
[ "$(wc -l <"$root/trained")" = 1 ] || complain "not one line: $(cat "$root/trained")"
for name in whole stages; do
	timeout 200 "$root/refused_run" "$root/$name" >"$root/out" 2>"$root/err" || complain "refused memory: $(tail -3 "$root/out")"
	[ ! -s "$root/err" ] || complain "it prints: $(cat "$root/err")"
done
readelf -d "$libdir/libshardwright.so" | grep -i "NEEDED.*\(mpi\|blas\)" && complain "it needs MPI or BLAS"

# C++ takes the header.
if command -v c++ >/dev/null; then
	echo '#include <shardwright.h>
	int main() { return shardwright_version()[0] == 0; }' >"$root/a.cc"
	# shellcheck disable=SC2086
	c++ -Wall -Wextra -Werror "$root/a.cc" $flags -o "$root/a" && "$root/a" || complain "not from C++"
fi

# What it shows is what the header has, and what it takes from outside ends nothing; _exit is that of
# the child that did not start a solver, and of a handler that is replaced.
nm -D --defined-only "$libdir/libshardwright.so" | awk '{ print $3 }' | sort >"$root/shown"
grep -o 'shardwright_[a-z_]*(' library/shardwright.h | tr -d '(' | sort -u | grep -vx shardwright_error >"$root/wanted"
cmp "$root/shown" "$root/wanted" || complain "$(diff "$root/shown" "$root/wanted")"
nm -D --undefined-only "$libdir/libshardwright.so" | awk '{ print $2 }' | sed 's/@.*//' |
	grep -x 'exit\|abort\|quick_exit\|__assert_fail\|MPI_.*' && complain "it can end the process"

# Refused memory, with one thread and with several.
# shellcheck disable=SC2086
cc $strict -D_GNU_SOURCE tests/build/library/refused_memory.c $flags -o "$root/refused" || complain "refused_memory.c"
for threads in 1 3; do
	timeout 200 "$root/refused" tests/programs/mlp.hlo.gz local-2x2 "$root/x.plan" $threads >"$root/out" 2>"$root/err" ||
		complain "refused memory, $threads threads: code $?: $(tail -3 "$root/out")"
	[ ! -s "$root/err" ] || complain "it prints: $(cat "$root/err")"
done

# The calls by themselves.
# shellcheck disable=SC2086,SC2046
cc -std=c11 -D_GNU_SOURCE -Isrc -Ilibrary tests/build/library/calls.c library/call.c library/assertion.c \
	"$build/libsw_base.a" $(pkg-config --libs jansson) -lpthread -lm -o "$root/calls" || complain "calls.c"
[ "$("$root/calls" 2>&1)" = called ] || complain "calls: $("$root/calls" 2>&1)"
exit $failed
