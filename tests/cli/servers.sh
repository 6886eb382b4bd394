#!/bin/sh
# Servers: ranks that serve stale variables and have no device, under mpirun and as threads. They save
# and load what they have, go on with or without each other, and end with the job.
. tests/cli/lib.sh
. tests/cli/jobs.sh

make_plan sync $tiny ps:balanced,proxy
make_plan one $tiny ps:stale=2
make_plan some $tiny ps:balanced,stale=4
make_plan any $tiny ps:balanced,stale=any
here=$(hostname)

# ---- threads, the last ranks, the ranks on hosts
for plan in one some any; do
	servers=2
	[ $plan = one ] && servers=1
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --servers $servers --steps 20 --json -q
	holds 'j["servers"] == '$servers' and j["ranks"] == 4 and j["steps"] == 20 and j["stale"] is not None'
	expect 0 "" mpirun -n $((4 + servers)) "$sw" run "$scratch/$plan.plan" --servers $servers --steps 20 --json -q
	holds 'j["servers"] == '$servers' and len(j["losses"]) == 20 and j["losses"][0] > 4.1'
done
holds 'j["stale"]["oldest"] > 0'
expect 0 "" mpirun -n 6 "$sw" run "$scratch/some.plan" --servers "$here:2" --steps 5 --json -q
holds 'j["servers"] == 2 and j["stale"]["oldest"] <= 4'
# mpirun's first ranks may be the servers: they think that they are on another host
printf '#include <string.h>\n#include <stdlib.h>\nint gethostname(char *name, size_t n)\n{\n\tconst char *rank = getenv("OMPI_COMM_WORLD_RANK");\n\tif (!rank)\n\t\trank = getenv("PMI_RANK");\n\tstrncpy(name, rank && atoi(rank) %% 3 == 0 ? "store.far.away" : "near", n);\n\treturn 0;\n}\n' >"$scratch/host.c"
# (address sanitizer lets nothing be loaded before it)
if cc -shared -fPIC -o "$scratch/host.so" "$scratch/host.c" 2>/dev/null &&
	LD_PRELOAD=$scratch/host.so "$sw" --version >/dev/null 2>&1; then
	cat >"$scratch/elsewhere" <<SH
#!/bin/sh
LD_PRELOAD=$scratch/host.so exec "\$@"
SH
	chmod +x "$scratch/elsewhere"
	expect 0 "servers are ranks 0, 3 of mpirun's; here they are numbered behind all others" \
		mpirun -n 6 "$scratch/elsewhere" "$sw" run "$scratch/some.plan" --servers store --steps 8
	expect 0 "servers are ranks 3 of mpirun's" \
		mpirun -n 5 "$scratch/elsewhere" "$sw" run "$scratch/some.plan" --servers store:1 --steps 8
	expect 2 "no rank is on a host 'stor.far.away' (nearest: 'store.far.away'); ranks are on store.far.away, near" \
		mpirun -n 6 "$scratch/elsewhere" "$sw" run "$scratch/some.plan" --servers stor.far.away --steps 8
	expect 2 "2 ranks are on store, not 3" \
		mpirun -n 6 "$scratch/elsewhere" "$sw" run "$scratch/some.plan" --servers near:1,store:3 --steps 8
fi

# ---- checkpoints: servers write what they have; a run goes on with others, or with none
for plan in some any; do
	mkdir "$scratch/kept-$plan"
	expect 0 "" mpirun -n 6 "$sw" run "$scratch/$plan.plan" --servers 2 --steps 12 --every 5 \
		--save "$scratch/kept-$plan" -q
	[ -f "$scratch/kept-$plan/step-12/model-00006-of-00006.safetensors" ] || complain "no file of the last server"
	for step in 5 10 12; do
		expect 0 "" "$sw" checkpoint "$scratch/kept-$plan/step-$step" --json
	done
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --servers 3 --steps 16 --resume \
		--save "$scratch/kept-$plan" --json -q
	holds 'j["steps"] == 4 and j["saved_step"] == 16'
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --steps 20 --resume --save "$scratch/kept-$plan" -q
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --servers 1 --steps 22 --resume \
		--save "$scratch/kept-$plan" --json -q
	holds 'j["steps"] == 2 and j["saved_step"] == 22'
	expect 0 "" "$sw" run "$scratch/sync.plan" --ranks 4 --steps 2 --load "$scratch/kept-$plan/step-22" -q
done

# ---- without staleness the bits are those of owners' threads, here and under mpirun
make_plan none $tiny ps:balanced,served
# losses FILE: write the losses of the result there
losses() {
	python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["losses"])' "$scratch/out" >"$scratch/$1"
}
expect 0 "" "$sw" run "$scratch/none.plan" --ranks 4 --steps 12 --json -q
holds 'j["stale"]["oldest"] == 0'
losses owners
mkdir "$scratch/kept-none"
expect 0 "" mpirun -n 6 "$sw" run "$scratch/none.plan" --servers 2 --steps 6 --save "$scratch/kept-none" --json -q
expect 0 "" "$sw" run "$scratch/none.plan" --ranks 4 --servers 3 --steps 12 --resume --save "$scratch/kept-none" --json -q
losses last
python3 -c 'import json,sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
sys.exit(a[6:] != b)' "$scratch/owners" "$scratch/last" || complain "a run that went on with other servers has other losses"
expect 0 "" mpirun -n 6 "$sw" run "$scratch/none.plan" --servers 2 --steps 12 --json -q
losses servers
cmp -s "$scratch/owners" "$scratch/servers" || complain "servers have other losses"
expect 0 "" "$sw" verify "$scratch/none.plan"
grep -q "lossy" "$scratch/out" && complain "without staleness nothing is lossy"
printf -- '- {variable: "*", way: ps, served: true}\n- {variable: "params.head.w", way: ps, owner: 1}\n' >"$scratch/ways.yaml"
expect 0 "in the long run as owners serve variables" "$sw" plan $tiny --cluster $cluster --sync "$scratch/ways.yaml" -o "$scratch/a.plan"
expect 0 "" "$sw" run "$scratch/a.plan" --ranks 4 --servers 4 --steps 2 -q
expect 0 "" "$sw" explain "$scratch/a.plan" --json
holds 'all(v["stale"] == 0 for v in j["variables"])'

# ---- simulated: a server's link carries what owners' links did
expect 0 "" "$sw" simulate "$scratch/some.plan" --json
cp "$scratch/out" "$scratch/owners"
# what is sent in a step is what is predicted, to the byte, by owners and by servers, of digests too
expect 0 "" "$sw" plan tests/programs/gpt-tiny-clip.hlo.gz --cluster $cluster --strategy ps:balanced,stale=3 \
	-o "$scratch/clip.plan" -q
for plan in some none clip; do
	for servers in "" "--servers 1" "--servers 3"; do
		# shellcheck disable=SC2086
		expect 0 "" "$sw" simulate "$scratch/$plan.plan" $servers --json
		bytes=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["stale"]["payload_bytes"])' "$scratch/out")
		# shellcheck disable=SC2086
		expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 $servers --steps 3 --json -q
		holds 'j["payload_bytes"] == '"$bytes"
	done
	expect 0 "" "$sw" explain "$scratch/$plan.plan" --json
	holds 'j["served_payload_bytes"] > 0'
done
expect 0 "" "$sw" simulate "$scratch/some.plan" --servers 1 --json
holds 'j["servers"] == 1 and j["stale"]["update_s"] > 2 * json.load(open("'"$scratch/owners"'"))["stale"]["update_s"]'
refuse "there are 30 servers" "$sw" simulate "$scratch/some.plan" --servers 30
# more servers than owners share the variables
expect 0 "" "$sw" simulate "$scratch/some.plan" --servers 5 --json
holds 'j["servers"] == 5'
mkdir "$scratch/kept-more"
expect 0 "" mpirun -n 7 "$sw" run "$scratch/one.plan" --servers 3 --steps 12 --every 5 --save "$scratch/kept-more" --json -q
holds 'j["servers"] == 3 and j["stale"]["oldest"] <= 2'
expect 0 "" "$sw" run "$scratch/one.plan" --ranks 4 --servers 6 --steps 16 --resume --save "$scratch/kept-more" --json -q
holds 'j["steps"] == 4 and j["saved_step"] == 16'
refuse "expected how many" "$sw" simulate "$scratch/some.plan" --servers "$here"
refuse "the plan's variables are not served" "$sw" simulate "$scratch/sync.plan" --servers 1
refuse "ways.yaml:1:36: served: yes: expected true or false" sh -c "
	printf -- '- {variable: \"*\", way: ps, served: yes}\n' >'$scratch/ways.yaml'
	'$sw' plan $tiny --cluster $cluster --sync '$scratch/ways.yaml' -o '$scratch/a.plan'"
refuse "owner, proxy, stale and served are for way: ps" sh -c "
	printf -- '- {variable: \"*\", way: dp, served: true}\n' | sed s/dp/zero1/ >'$scratch/ways.yaml'
	'$sw' plan $tiny --cluster $cluster --sync '$scratch/ways.yaml' -o '$scratch/a.plan'"

# ---- learning
write_tokens "$scratch/tokens"
for plan in some any; do
	expect 0 "" "$sw" run "$scratch/$plan.plan" --ranks 4 --servers 2 --steps 200 --seed 4 \
		--data "$scratch/tokens" --json -q
	holds 'sum(j["losses"][-20:]) / 20 < 1.35 and j["losses"][0] > 4.1'
done

# ---- what ends: a server or a worker that is killed ends the job, a signal ends it after a step
for case in "some 1" "some 5" "any 4" "clip 4"; do
	start "${case% *}.plan" 6 --servers 2
	signal_rank 9 "${case#* }"
	ends "[1-9]*"
	killed "${case#* }"
done
# one of the servers has the variables whose values say when to stop
# (without staleness no worker gives terms between what says it and the end, which the other must hear of)
for case in "some 2" "some 5" "none 4" "none 5" "any 5" "clip 5"; do
	start "${case% *}.plan" 6 --servers 2
	signal_rank TERM "${case#* }"
	ends 0
	grep -q "stopped after step" "$scratch/err" || complain "$case: the run does not say that it stopped"
done

# ---- what can't be
refuse "expected how many of the last ranks are servers" "$sw" run "$scratch/some.plan" --ranks 4 --servers 0
refuse "expected how many of the last ranks are servers" "$sw" run "$scratch/some.plan" --ranks 4 --servers -1
refuse "expected how many of the last ranks are servers" "$sw" run "$scratch/some.plan" --ranks 4 --servers 1.5
refuse "expected how many of the last ranks are servers" "$sw" run "$scratch/some.plan" --ranks 4 --servers host:x
refuse "expected how many of the last ranks are servers" "$sw" run "$scratch/some.plan" --ranks 4 --servers a,,b
refuse "'a' is there twice" "$sw" run "$scratch/some.plan" --ranks 4 --servers a,b,a:2
refuse "hosts are those of mpirun's ranks" "$sw" run "$scratch/some.plan" --ranks 4 --servers a:2
refuse "the plan's variables are not served" "$sw" run "$scratch/sync.plan" --ranks 4 --servers 1
refuse "there are 30 servers, and the plan has 29 variables: start no more" "$sw" run "$scratch/one.plan" --ranks 4 --servers 30
expect 0 "" "$sw" plan $tiny --cluster $cluster --stages 2 --microbatches 4 --strategy dp -q -o "$scratch/staged"
refuse "with stages has no variables that --servers could serve" \
	"$sw" run "$scratch/staged" --ranks 4 --servers 1
refuse "expected RANK:SECONDS with a rank from 0 to 3" \
	"$sw" run "$scratch/some.plan" --ranks 4 --servers 2 --straggler 4:1
refuse "servers come on top: start it with mpirun -n 6, or add --ranks 4" "$sw" run "$scratch/some.plan" --servers 2
expect 2 "the plan is for 4 devices, and of 5 ranks 2 are servers: start 6" \
	mpirun -n 5 "$sw" run "$scratch/some.plan" --servers 2
expect 2 "rank 3: .*6 ranks 1 are servers: start 5" mpirun -n 3 "$sw" run "$scratch/some.plan" --servers 2 : \
	-n 3 "$sw" run "$scratch/some.plan" --servers 1
exit $failed
