#!/bin/sh
# calibrate: under mpirun it ends in time and writes a cluster file that plan accepts; options that
# do not fit are refused; after a signal nothing is written.
. tests/cli/lib.sh
out=$scratch/here.yaml

begin=$(date +%s)
expect 0 "" mpirun -n 4 "$sw" calibrate --cluster $cluster -o "$out" --plot "$scratch/here.svg" --time-limit 4 --json -q
took=$(($(date +%s) - begin))
[ $took -le 30 ] || complain "it took $took s with a time limit of 4"
for key in '"median_error"' '"standard_error"' '"seconds"' '"left_out"'; do
	grep -q "$key" "$scratch/out" || complain "$key is missing"
done
grep -q '^# Measured by' "$out" || complain "the file does not say how it was measured"
grep -q '^#   mpirun -n 4 shardwright calibrate --cluster' "$out" || complain "the file does not say by which command"
grep -q '^calibration:' "$out" || complain "the file has no points"
grep -q 'matmul: {' "$out" || complain "the file has no kernels"
tail -n 1 "$scratch/here.svg" | grep -q '</svg>' || complain "the picture is not whole"
expect 0 "" "$sw" plan $tiny --cluster "$out" -o "$scratch/tiny.plan" --strategy zero1 -q
expect 0 "" mpirun -n 4 "$sw" run "$scratch/tiny.plan" --steps 2 -q

# Without a shape, the ranks of one host form one level. Tables are printed for people.
expect 0 "" mpirun -n 2 "$sw" calibrate -o "$scratch/two.yaml" --time-limit 2 -q
grep -q 'name: device, count: 2' "$scratch/two.yaml" || complain "two ranks of a host are not one level of 2"
for words in '^figure ' '^device latency' '^matmul ' 'worst points'; do
	grep -q "$words" "$scratch/out" || complain "'$words' is not shown"
done

# Links or kernels that are left out keep their figures.
expect 0 "" "$sw" calibrate --cluster $cluster --ranks 4 --no-links -o "$scratch/kernels.yaml" --time-limit 1 -q
grep -q 'count: 2, latency: 30 us, bandwidth: 2 GB/s' "$scratch/kernels.yaml" || complain "the links changed"
grep -q '^calibration:' "$scratch/kernels.yaml" && complain "links that were not measured have points"
expect 0 "" "$sw" calibrate --cluster $cluster --ranks 4 --no-kernels -o "$scratch/links.yaml" --time-limit 1 -q
grep -q 'flops: {f32: 140 GFLOP/s' "$scratch/links.yaml" || complain "the device changed"

# For paced runs, communication takes no time from kernels.
expect 0 "" "$sw" calibrate --cluster $cluster --ranks 4 --no-kernels --pace -o "$scratch/paced.yaml" --time-limit 1 --json -q
grep -q '"transfer_share": 0.0' "$scratch/out" || complain "paced kernels lost something"
grep -q 'no-kernels --pace' "$scratch/paced.yaml" || complain "the file does not say that it is for paced runs"
grep -q 'transfer_share' "$scratch/paced.yaml" && complain "the file of paced runs has a share of the device"

rm -f "$out"
refuse "where is the cluster file to go" "$sw" calibrate --time-limit 1
refuse "leave nothing to measure" "$sw" calibrate --no-links --no-kernels --cluster $cluster -o "$out"
refuse "give --cluster FILE" "$sw" calibrate --no-links -o "$out"
refuse "the cluster has 4 devices and there are 3 ranks" "$sw" calibrate --cluster $cluster --ranks 3 -o "$out" -q
refuse "no/such: cannot read" "$sw" calibrate --cluster no/such -o "$out" -q
refuse "takes options alone" "$sw" calibrate here.yaml -o "$out"
expect 2 "" mpirun -n 3 "$sw" calibrate --cluster $cluster -o "$out" -q
grep -q "mpirun -n 4" "$scratch/err" || complain "the mend is not said"

# When it is stopped, no file is written, not even a part of one.
"$sw" calibrate --ranks 2 -o "$out" --time-limit 120 -q >"$scratch/out" 2>"$scratch/err" &
job=$!
sleep 2
kill -INT $job
got=0
wait $job || got=$?
[ $got = 1 ] || complain "exit code $got after a signal"
grep -q "nothing was written" "$scratch/err" || complain "it does not say that nothing was written"
for left in "$out"*; do
	[ ! -e "$left" ] || complain "$left is left"
done
exit $failed
