#!/bin/sh
# Signals to `run` while a step has no end: it is given up in time, and says what was done before.
. tests/cli/lib.sh
program=$scratch/endless.hlo
# The first step counts to the initial state; the second one to the greatest integer, and on.
cat >"$program" <<'END'
HloModule endless, input_output_alias={ {0}: (0, {}, must-alias) }

body {
  carried = (s32[], s32[]) parameter(0)
  count = s32[] get-tuple-element(carried), index=0
  one = s32[] constant(1)
  next = s32[] add(count, one)
  limit = s32[] get-tuple-element(carried), index=1
  ROOT both = (s32[], s32[]) tuple(next, limit)
}

condition {
  carried = (s32[], s32[]) parameter(0)
  count = s32[] get-tuple-element(carried), index=0
  limit = s32[] get-tuple-element(carried), index=1
  ROOT less = pred[] compare(count, limit), direction=LE
}

ENTRY main {
  limit = s32[] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], s32[]) tuple(zero, limit)
  end = (s32[], s32[]) while(start), condition=condition, body=body
  count = s32[] get-tuple-element(end), index=0
  nothing = s32[] multiply(count, zero)
  most = s32[] constant(2147483647)
  next = s32[] add(nothing, most)
  loss = f32[] convert(count)
  ROOT out = (s32[], f32[]) tuple(next, loss)
}
END

# end_by SIGNAL COMMAND...: run the command, signal it once its first step is logged, and set $took
# to the seconds that it goes on
end_by() {
	name=$1
	shift
	rm -f "$scratch/log"
	# sh starts background jobs deaf to SIGINT
	env --default-signal=INT timeout --foreground -k 60 120 "$@" --log "$scratch/log" >"$scratch/out" \
		2>"$scratch/err" &
	tries=0
	until [ -s "$scratch/log" ] || [ $tries -ge 300 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	begun=$(date +%s)
	kill -s "$name" $!
	wait $!
	took=$(($(date +%s) - begun))
}

for signal in INT TERM HUP; do
	end_by $signal "$sw" run "$program" --steps 3
	[ "$took" -ge 9 ] && [ "$took" -le 30 ] || complain "SIG$signal ended it after $took s"
	grep -q "endless.hlo: step 2 does not end, 10 s after .* 1 step is done" "$scratch/err" ||
		complain "SIG$signal: what ended is not said"
done
[ "$(wc -l <"$scratch/log")" = 1 ] || complain "the log does not have the step that was done"

# mpirun kills its ranks; before that, one of them says what was done, once.
make_plan endless "$program" dp
end_by INT mpirun -n 4 "$sw" run "$scratch/endless.plan" --steps 3
[ "$(grep -c "so far 1 step is done, the last loss is" "$scratch/err")" = 1 ] ||
	complain "under mpirun it is not said what was done"
exit $failed
