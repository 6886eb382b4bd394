#!/bin/sh
# Nothing is left: after a run that was asked to end, or was killed; after down, twice, in the middle of a run, and of half a lab.
. tests/lab/lib.sh
file=clusters/lab-4x1.yaml

# wait_until COMMAND...: for ten seconds, at most
wait_until() {
	patience=100
	until "$@"; do
		patience=$((patience - 1))
		[ $patience -gt 0 ] || return 1
		sleep 0.1
	done
}

four_run() { [ "$(grep -c running "$scratch/out")" = 4 ]; }
none_runs() { [ -z "$(marks)" ]; }

# begin: a run that sleeps on every node; run_pid is tools/lab itself. What a shell starts in the background ignores SIGINT.
begin() {
	: >"$scratch/out"
	env --default-signal=INT tools/lab run -- sh -c "echo running; exec sleep 60.$$" >"$scratch/out" 2>"$scratch/err" &
	run_pid=$!
	wait_until four_run || complain "the run does not begin"
}

# ended WHAT
ended() {
	wait $run_pid 2>/dev/null && complain "$1, and the run succeeded"
	wait_until none_runs || complain "$1, and there are still processes"
}

links() {
	ip -o link | sed 's/^[0-9]*: \([^:]*\):.*/\1/' | sort
}

links >"$scratch/links"
up $file
links | diff "$scratch/links" - || complain "the machine's own links are others now"
for signal in TERM INT KILL; do
	begin
	kill -s $signal $run_pid
	ended "$signal was sent"
done

begin
# The first process of the hub is mpirun.
kill -s KILL "$(ip netns pids "lab.$SHARDWRIGHT_LAB.hub" | sort -n | head -n 1)"
ended "mpirun was killed"

begin
tools/lab down || complain "down in the middle of a run"
ended "the lab is down"
nothing_left "down in the middle of a run"
tools/lab down || complain "down once more"

# Half a lab: an up that was killed.
ip netns add "lab.$SHARDWRIGHT_LAB.0"
ip netns exec "lab.$SHARDWRIGHT_LAB.0" sleep 60.$$ &
expect 0 "" tools/lab down
nothing_left "down of half a lab"
links | diff "$scratch/links" - || complain "the machine's own links are others now"
exit $failed
