#!/bin/sh
# Under Slurm, on two emulated machines: srun starts the ranks of a plan, which train as in one process;
# a signal by scancel ends the step and saves it; a wrong number of ranks is refused; a batch job's
# mpirun works too.
. tests/lab/lib.sh
for tool in munged slurmctld slurmd srun sbatch nsenter; do
	command -v $tool >/dev/null || skip "no $tool: Debian's slurmctld, slurmd, slurm-client and munge have it"
done
# Not in /tmp: each machine gets a /tmp of its own, where Slurm and PMIx keep their sockets.
home=/run/shardwright-slurm-$$
mkdir -p $home/state $home/tmp0 $home/tmp1
daemons=
finish() {
	# shellcheck disable=SC2086
	[ -z "$daemons" ] || kill $daemons 2>/dev/null
	tools/lab down 2>/dev/null
	rm -rf "$scratch" "$home"
}
trap finish EXIT

munge -n >/dev/null 2>&1 || {
	dd if=/dev/urandom of=$home/key bs=1024 count=1 2>/dev/null
	chmod 400 $home/key
	chmod 755 $home
	munged --force --key-file=$home/key --socket=$home/munge --pid-file=$home/munged.pid \
		--log-file=$home/munged.log --seed-file=$home/seed || skip "munged does not start"
	daemons=$(cat $home/munged.pid)
}
socket=$home/munge
[ -S $socket ] || socket=/run/munge/munge.socket.2
up clusters/lab-2x4.yaml
cat >$home/slurm.conf <<END
ClusterName=lab
SlurmctldHost=node0(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$socket
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool-%n
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=node0 NodeAddr=10.77.0.1 CPUs=4
NodeName=node1 NodeAddr=10.77.0.2 CPUs=4
PartitionName=lab Nodes=ALL Default=YES State=UP
END
printf 'CgroupAutomount=yes\nIgnoreSystemd=yes\n' >$home/cgroup.conf
export SLURM_CONF=$home/slurm.conf

# on NODE COMMAND...: a machine has its network, its name and its /tmp
on() {
	node=$1
	shift
	nsenter --net="/run/netns/lab.$SHARDWRIGHT_LAB.$node" unshare -u -m sh -c \
		'mount --bind "$0" /tmp && hostname "$1" && shift && exec "$@"' "$home/tmp$node" "node$node" "$@" </dev/null
}
# The daemons run in a session of their own, so that nothing waits for them.
begin() {
	on "$@" -D -f $home/slurm.conf >"$home/$2-$1.out" 2>&1 &
	daemons="$daemons $!"
}
begin 0 slurmctld
sleep 1
begin 0 slurmd -N node0
begin 1 slurmd -N node1
tries=0
until [ "$(on 0 sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; do
	tries=$((tries + 1))
	[ $tries -lt 60 ] || skip "Slurm does not start: $(tail -n 2 $home/slurmd-0.out)"
	sleep 0.5
done

expect 0 "" "$sw" plan $tiny --cluster clusters/lab-2x4.yaml --strategy zero3 -q -o $home/plan
expect 0 "" "$sw" run $home/plan --ranks 8 --steps 3 -q
grep '^loss' "$scratch/out" >"$scratch/alone"
export OMP_NUM_THREADS=1
start="srun --mpi=pmix -N 2 -n 8 --distribution=block:block"
# shellcheck disable=SC2086
{
	on 0 $start "$sw" run $home/plan --steps 3 -q >"$scratch/out" 2>"$scratch/err" || complain "srun: exit code $?"
	grep '^loss' "$scratch/out" | cmp -s - "$scratch/alone" || complain "it trains otherwise under srun"

	on 0 srun --mpi=pmix -N 2 -n 4 "$sw" run $home/plan --steps 3 -q >"$scratch/out" 2>"$scratch/err"
	grep -q "the plan is for 8 devices and there are 4 ranks" "$scratch/err" || complain "four ranks for eight devices"

	mkdir $home/kept
	on 0 timeout 60 $start "$sw" run $home/plan --steps 1000000 -v --save $home/kept >"$scratch/out" 2>"$scratch/err" &
	job=$!
	tries=0
	until grep -q "step 1/" "$scratch/err" || [ $tries = 100 ]; do
		tries=$((tries + 1))
		sleep 0.2
	done
	on 0 scancel -s TERM "$(on 0 squeue -h -o %i)" || complain "scancel"
	wait $job || complain "after a signal: exit code $?"
	grep -q '^steps ' "$scratch/out" || complain "no results after a signal"
	[ "$(find $home/kept -maxdepth 1 -name 'step-*' | wc -l)" = 1 ] || complain "nothing is kept after a signal"
}

cat >$home/batch <<END
#!/bin/sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun -n 8 "$sw" run $home/plan --steps 3 -q
END
on 0 sbatch -W -N 2 -n 8 -o $home/batch.out $home/batch >"$scratch/out" 2>"$scratch/err" || complain "sbatch: $(cat $home/batch.out)"
grep '^loss' $home/batch.out | cmp -s - "$scratch/alone" || complain "it trains otherwise in a batch job: $(cat $home/batch.out)"
exit $failed
