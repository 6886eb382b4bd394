# Functions for tests that kill and signal ranks of a job of mpirun's: . tests/cli/jobs.sh, behind lib.sh

# start [PLAN [RANKS [OPTION...]]]: start a job that would take minutes; return once it has done a step.
start() {
	started=${1:-slow.plan}
	n_ranks=${2:-4}
	[ $# -ge 2 ] && shift 2 || shift $#
	: >"$scratch/err" # here: the job may empty it only after the first look
	SW_TEST_JOB=$$ mpirun -n "$n_ranks" "$sw" run "$scratch/$started" --steps 100000 -v "$@" >"$scratch/out" 2>"$scratch/err" &
	job=$!
	waited=0
	until grep -q "step 1/" "$scratch/err" || [ $waited = 600 ]; do
		sleep 0.2
		waited=$((waited + 1))
	done
}

# rank_pid RANK: print the process id of that rank of this test's job
rank_pid() {
	for environ in /proc/[0-9]*/environ; do
		cat "$environ" 2>/dev/null | tr '\0' '\n' >"$scratch/environ"
		grep -qx "SW_TEST_JOB=$$" "$scratch/environ" || continue
		grep -qx -e "OMPI_COMM_WORLD_RANK=$1" -e "PMIX_RANK=$1" -e "PMI_RANK=$1" "$scratch/environ" || continue
		pid=${environ%/environ}
		echo "${pid#/proc/}"
	done
}

# signal_rank SIGNAL RANK: signal the rank; if it is gone, the job ends anyway
signal_rank() {
	pid=$(rank_pid "$2" | head -n 1)
	if [ -n "$pid" ]; then
		kill "-$1" "$pid"
	else
		complain "rank $2 is not running"
		kill $job
	fi
}

# ends CODE: check that the job, which would take hours, ends soon (steps are slow on a busy machine)
# with a matching exit code
ends() {
	begin=$(date +%s)
	got=0
	wait $job || got=$?
	took=$(($(date +%s) - begin))
	[ $took -le 60 ] || complain "the job took $took s to end"
	case $got in
	$1) ;;
	*) complain "exit code $got" ;;
	esac
}

# killed RANK: check that mpirun names the rank that was killed (MPICH's says the signal alone, on
# standard output)
killed() {
	grep -q "rank $1.*signal 9" "$scratch/err" || grep -q "Killed (signal 9)" "$scratch/out" ||
		complain "rank $1, which was killed, isn't named"
}
