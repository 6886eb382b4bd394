#!/bin/sh
# Wrong command lines are refused in one line that names the mend; --help of each command works.
. tests/cli/lib.sh

for command in inspect plan explain verify run solve; do
	expect 0 "" "$sw" $command --help
	grep -q "^usage: shardwright $command " "$scratch/out" || complain "no usage of $command"
	grep -q "^example:" "$scratch/out" || complain "no example of $command"
	grep -q -- "--json" "$scratch/out" || complain "no --json of $command"
	refuse "$command has no option --frobnicate; see shardwright $command --help" "$sw" $command x --frobnicate
	refuse "$command: its P.* is missing" "$sw" $command
	refuse "$command takes one P.*, and 'y' is one too many" "$sw" $command x y
done
expect 0 "" "$sw" --help
refuse "which command? See shardwright --help" "$sw"
refuse "there is no command 'frobnicate'" "$sw" frobnicate

refuse "Add --cluster FILE" "$sw" plan $tiny -o "$scratch/p"
refuse "Add -o PLAN" "$sw" plan $tiny --cluster $cluster
refuse "--cluster: its value is missing" "$sw" plan $tiny -o "$scratch/p" --cluster
refuse "unknown strategy 'dq'" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --strategy dq
refuse "expected a size, such as 16GiB" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --memory lots
refuse "expected seconds" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --time-limit soon
refuse "has 4 devices and --devices says 8" "$sw" plan $tiny --cluster $cluster -o "$scratch/p" --devices 8
expect 2 "both need standard output" "$sw" plan $tiny --cluster $cluster -o - --json
refuse "expected read, canonical or partition" "$sw" plan $tiny --dump-after planning
refuse "expected a whole number" "$sw" run $tiny --steps many
refuse "expected a whole number" "$sw" run $tiny --steps=-1
refuse "takes no value" "$sw" inspect $tiny --json=yes
refuse "no/such/folder/p: cannot write" "$sw" plan $tiny --cluster $cluster -o no/such/folder/p --strategy dp -q

# Words after -- are no options.
refuse "--json: cannot read" "$sw" inspect -- --json
for stage in read canonical partition; do
	expect 0 "" "$sw" plan tests/programs/mlp.hlo.gz --cluster $cluster --strategy dp --dump-after $stage
	grep -q "^HloModule" "$scratch/out" || complain "no program after $stage"
	cp "$scratch/out" "$scratch/$stage.hlo"
	expect 0 "" "$sw" inspect "$scratch/$stage.hlo"
done
# Results that can't be written are a failure.
if [ -c /dev/full ]; then
	sh -c '"$1" inspect "$2" >/dev/full 2>/dev/null' sh "$sw" $tiny && complain "a full disk goes unnoticed"
fi
exit $failed
