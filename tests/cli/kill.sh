#!/bin/sh
# run --save under kill -9 at random moments: each time the folder's newest checkpoint is whole, no
# older than before, and a run resumes from it. At the end the losses and the state are those of a
# run that nobody killed. SW_KILLS: how many kills.
. tests/cli/lib.sh
kills=${SW_KILLS:-4}
make_plan zero3 $tiny zero3
mkdir "$scratch/kept" "$scratch/calm"

train="$sw run $scratch/zero3.plan --ranks 4 --threads 1 --overlap none --every 1 --keep 2 --resume -q"

newest() {
	{
		echo 0
		find "$scratch/kept" -maxdepth 1 -name 'step-*' ! -name '*.*' | sed 's/.*step-//'
	} | sort -n | tail -1
}

before=0
killed=0
while [ "$killed" -lt "$kills" ]; do
	$train --steps 1000000 --save "$scratch/kept" >"$scratch/out" 2>"$scratch/err" &
	pid=$!
	# every other kill comes once the run has kept something new, however slow it is
	polls=0
	while [ $((killed % 2)) = 0 ] && [ "$polls" -lt 1200 ] && [ "$(newest)" -le "$before" ]; do
		sleep 0.05
		polls=$((polls + 1))
	done
	pause=$(awk -v seed="${SW_SEED:-1}$killed" 'BEGIN { srand(seed); print 0.05 + 0.5 * rand() }')
	sleep "$pause"
	kill -9 $pid || complain "the run had ended by itself"
	wait $pid 2>/dev/null
	killed=$((killed + 1))
	step=$(newest)
	[ "$step" -ge "$before" ] || complain "after kill $killed the newest is step $step, and it was $before"
	[ "$step" = 0 ] || expect 0 "" "$sw" checkpoint "$scratch/kept/step-$step" --json
	before=$step
done
[ "$before" -gt 0 ] || complain "no checkpoint after $kills kills"
last=$((before + 2))
expect 0 "" $train --steps $last --save "$scratch/kept"
[ "$(find "$scratch/kept" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ] || complain "something is left: $(ls -a "$scratch/kept")"
expect 0 "" $train --steps $last --save "$scratch/calm"
diff -r "$scratch/kept/step-$last" "$scratch/calm/step-$last" || complain "another state than without kills"
exit $failed
