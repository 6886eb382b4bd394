/* The integer program of Rhino, section 4.2, solved by CBC: cbc_mps.c writes it, CBC runs as a
 * process, and its answer is read and evaluated like all answers. CBC computes in floating point
 * and is believed: an optimum or a bound that it reports is not proved in integers as that of
 * `exact` is. */
#include "solve/methods/method_run.h"
#include "solve/methods/external_solver.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds that CBC gets beyond its time limit before it is killed. */
#define GRACE_S 5
#define MIN_TIME_S 0.01
#define NOT_STARTED 127 /* the exit code that shells use */

typedef struct solver_call {
	const external_solver *solver;
	char folder[256], problem[320], answer[320], printed[320];
	double time_s; /* 0: none */
	double gap;
	const atomic_bool *stop;
	bool stopped; /* the process was ended before it was done */
} solver_call;

/* ---- files ------------------------------------------------------------------------------ */

static sw_status make_folder(solver_call *e, sw_error *err)
{
	const char *parent = getenv("TMPDIR");
	snprintf(e->folder, sizeof e->folder, "%s/shardwright-XXXXXX",
	         parent && *parent ? parent : "/tmp");
	if (!mkdtemp(e->folder))
		return sw_fail_at(err, SW_ERR_IO, e->folder, 0, 0, "cannot make this folder: %s",
		                  strerror(errno));
	snprintf(e->problem, sizeof e->problem, "%s/%s", e->folder, e->solver->file);
	snprintf(e->answer, sizeof e->answer, "%s/answer", e->folder);
	snprintf(e->printed, sizeof e->printed, "%s/printed", e->folder);
	return SW_OK;
}

static void remove_folder(const solver_call *e)
{
	unlink(e->problem);
	unlink(e->answer);
	unlink(e->printed);
	rmdir(e->folder);
}

static sw_status write_problem(const solver_call *e, const model *m, sw_error *err)
{
	FILE *file = fopen(e->problem, "we");
	sw_status status = file ? e->solver->write(m, file, err) : SW_OK;
	if (!file || (ferror(file) | fclose(file)))
		return sw_fail_at(err, SW_ERR_IO, e->problem, 0, 0, "cannot write");
	return status;
}

static void read_answer(const solver_call *e, const model *m, external_answer *answer)
{
	sw_text printed = {0};
	FILE *file = fopen(e->printed, "re");
	char buffer[4096];
	for (size_t n = 1; file && n > 0;) {
		n = fread(buffer, 1, sizeof buffer, file);
		sw_text_add_n(&printed, buffer, n);
	}
	if (file)
		fclose(file);
	file = fopen(e->answer, "re");
	e->solver->read(m, printed.data ? printed.data : "", file, answer);
	if (file)
		fclose(file);
	sw_text_clear(&printed);
}

/* ---- the process ------------------------------------------------------------------------ */

/* Run CBC in the child. It gets a process group of its own, so that Ctrl-C reaches this process
 * alone, which then ends CBC in an orderly way. */
static void execute_solver(const solver_call *e, pid_t parent)
{
	external_command command = {0};
	char *words[SW_COUNT(command.words) + 1] = {0};
	e->solver->command(&command, e->problem, e->answer, e->time_s, e->gap);
	for (int i = 0; i < command.n; i++)
		words[i] = command.words[i];
	int printed = open(e->printed, O_WRONLY | O_CREAT, 0600);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setpgid(0, 0) == 0 && getppid() == parent && dup2(printed, STDOUT_FILENO) >= 0 &&
	    dup2(printed, STDERR_FILENO) >= 0)
		execvp(words[0], words);
	_exit(NOT_STARTED);
}

/* Wait until it ends. After a stop CBC may write the solution that it has; it is killed if it takes
 * too long for that, or exceeds its time. */
static int wait_for(solver_call *e, pid_t pid)
{
	double deadline_s = e->time_s > 0 ? sw_now_s() + e->time_s + GRACE_S : INFINITY;
	const struct timespec nap = {.tv_nsec = 2000000};
	int status = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (!e->stopped && e->stop && *e->stop) {
			e->stopped = kill(pid, SIGINT) == 0;
			deadline_s = SW_MIN(deadline_s, sw_now_s() + GRACE_S);
		}
		if (sw_now_s() > deadline_s)
			e->stopped = kill(pid, SIGKILL) == 0;
		nanosleep(&nap, NULL);
	}
	return status;
}

static sw_status execute(solver_call *e, sw_error *err)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		execute_solver(e, parent);
	if (pid < 0)
		return sw_fail(err, SW_ERR_IO, "%s does not start: %s", e->solver->name,
		               strerror(errno));
	int status = wait_for(e, pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
		return sw_fail(err, SW_ERR_INPUT,
		               "method ilp needs the program %s, which is not installed: on Debian "
		               "apt install coinor-cbc, or tools/setup --bench",
		               e->solver->name);
	if (!e->stopped && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return sw_fail(err, SW_ERR_IO, "%s failed", e->solver->name);
	return SW_OK;
}

/* ---- the method ------------------------------------------------------------------------- */

static void set_limits(const method_run *r, solver_call *e)
{
	const sw_solve_options *options = &r->s.options;
	double work_s = (double)options->work_limit / SW_METHOD_WORK_PER_S;
	e->gap = options->gap;
	e->stop = options->stop;
	e->time_s = options->time_limit_s;
	if (options->work_limit > 0 && (e->time_s <= 0 || work_s < e->time_s))
		e->time_s = work_s;
	if (r->limited)
		e->time_s = SW_MAX(e->time_s, MIN_TIME_S);
}

static void take(method_run *r, const solver_call *e, const model *m, const external_answer *answer)
{
	if (external_assignment(m, answer, r->whole))
		solver_offer(&r->s, r->whole);
	bool feasible = solver_feasible(&r->s);
	r->exhausted = feasible ? answer->optimal : answer->infeasible;
	r->s.timed_out = e->stopped || !(r->exhausted || (answer->has_choice && e->gap > 0));
	if (answer->has_bound && r->g.exact)
		r->s.bound = model_bound(m, answer->bound);
	if (feasible)
		r->s.bound = SW_MIN(r->s.bound, r->s.best_value.cost);
}

static sw_status call_solver(method_run *r, const model *m, sw_error *err)
{
	solver_call e = {.solver = &external_cbc};
	external_answer answer = {.choice = sw_alloc((m->nodes.len + 1) * sizeof *answer.choice)};
	for (size_t n = 0; n < m->nodes.len; n++)
		answer.choice[n] = -1;
	set_limits(r, &e);
	sw_status status = make_folder(&e, err);
	if (status == SW_OK) {
		status = write_problem(&e, m, err);
		if (status == SW_OK)
			status = execute(&e, err);
		if (status == SW_OK)
			read_answer(&e, m, &answer);
		remove_folder(&e);
	}
	if (status == SW_OK)
		take(r, &e, m, &answer);
	free(answer.choice);
	return status;
}

sw_status method_ilp(method_run *r, sw_error *err)
{
	model m;
	sw_status status = SW_OK;
	model_init(&m, r->s.problem, false);
	if (m.infeasible || m.nodes.len == 0)
		r->exhausted = true;
	else
		status = call_solver(r, &m, err);
	model_clear(&m);
	return status;
}
