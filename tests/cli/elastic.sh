#!/bin/sh
# tools/elastic: when a rank of four is killed, the run goes on with fewer from the last checkpoint,
# with the losses of a run that was stopped there and resumed by hand.
. tests/cli/lib.sh
mkdir "$scratch/kept" "$scratch/hand"

# Rank 3 of four kills itself after the checkpoint of step 3.
cat >"$scratch/mortal" <<'SH'
#!/bin/sh
for word; do
	[ "$word" != -n ] || next=1
	case ${next-}$word in 14) four=1 ;; esac
	[ "$word" = -n ] || next=
done
[ -z "${four-}" ] || exec mpirun -n 3 "$SHARDWRIGHT" $(echo " $*" | sed "s|.* run |run |") : \
	-n 1 "$(dirname "$0")/dying" $(echo " $*" | sed "s|.* run |run |")
exec mpirun "$@"
SH
cat >"$scratch/dying" <<'SH'
#!/bin/sh
"$SHARDWRIGHT" "$@" &
pid=$!
while [ ! -d "$(dirname "$0")/kept/step-3" ]; do sleep 0.02; done
kill -9 $pid
kill -9 $$
SH
chmod +x "$scratch/mortal" "$scratch/dying"
options="--steps 40 --every 1 --keep 40 --threads 1 --overlap none --json -q"
# shellcheck disable=SC2086
expect 0 "a rank of 4 is lost: going on with" tools/elastic $tiny --cluster $cluster \
	--save "$scratch/kept" --mpirun "$scratch/mortal" $options
sed -n '/"losses": \[/,/\]/p' "$scratch/out" | tr -d ' ,' | grep '^[0-9]' >"$scratch/elastic"
left=$(sed -n 's/.*going on with //p' "$scratch/err")
begun=$((40 - $(wc -l <"$scratch/elastic")))
[ "$begun" -ge 3 ] || complain "it went on from step $begun, before the last checkpoint"
[ "$begun" -lt 40 ] || complain "nothing was left to do"

# By hand: the checkpoint of that step, on as many ranks.
# shellcheck disable=SC2086
expect 0 "" "$sw" run "$scratch/kept/$left.plan" --ranks "$left" --load "$scratch/kept/step-$begun" \
	--steps $((40 - begun)) --threads 1 --overlap none --json -q
sed -n '/"losses": \[/,/\]/p' "$scratch/out" | tr -d ' ,' | grep '^[0-9]' >"$scratch/byhand"
cmp "$scratch/elastic" "$scratch/byhand" || complain "other losses than of a run resumed by hand"

# What is wrong with the input is said once, and not tried again.
expect 2 "a rank of 1 is lost\|--cluster FILE is missing" tools/elastic $tiny --save "$scratch/kept"
expect 2 "mkdir it first" tools/elastic $tiny --cluster $cluster --save "$scratch/none"
expect 2 "cannot read" tools/elastic no/such/program --cluster $cluster --save "$scratch/hand"
expect 2 "has no option --frobnicate" tools/elastic $tiny --cluster $cluster --save "$scratch/kept" \
	--frobnicate 3
exit $failed
