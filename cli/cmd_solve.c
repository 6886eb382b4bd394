#include "cli.h"

#include "solve/contest_problem.h"
#include "solve/methods.h"

#include <stdatomic.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define SHORT_ASSIGNMENT 64 /* an assignment of at most so many numbers is printed */
#define RUNS_SHOWN 8        /* runs of points above the limit that are printed */

/* The solution, and the facts printed with it. */
typedef struct answer {
	const cli *c;
	sw_method method;
	const sw_problem *problem;
	const sw_solution *solution;
	bool feasible, stopped;
	int32_t n_runs; /* runs of points above the limit, if no feasible assignment was found */
	sw_overuse runs[RUNS_SHOWN];
} answer;

/* ---- stopping --------------------------------------------------------------------------- */

/* A signal handler can reach file-scope variables only. */
static atomic_bool stop_asked;

static void ask_to_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = true;
}

/* Ctrl-C ends the search with the best assignment so far; a second one ends the process. */
static void watch_signals(void)
{
	struct sigaction action = {.sa_handler = ask_to_stop,
	                           .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* ---- for scripts ------------------------------------------------------------------------ */

static const char *const answer_names[] = {
	[SW_SOLVED_OPTIMAL] = "optimal",
	[SW_SOLVED_FEASIBLE] = "feasible",
	[SW_SOLVED_INFEASIBLE] = "infeasible",
	[SW_SOLVED_UNKNOWN] = "unknown",
};

static bool has_bound(const answer *a)
{
	return a->solution->answer != SW_SOLVED_INFEASIBLE && a->solution->lower_bound != INT64_MIN;
}

/* The gap as the planner defines it: the share of the cost that is above the bound. */
static bool gap_of(const answer *a, double *gap)
{
	double cost = (double)a->solution->cost, bound = (double)a->solution->lower_bound;
	if (!a->feasible || !has_bound(a))
		return false;
	*gap = a->solution->cost == a->solution->lower_bound
	               ? 0
	               : (cost - bound) / (cost < 0 ? -cost : cost);
	return a->solution->cost == a->solution->lower_bound || a->solution->cost != 0;
}

static json_t *assignment_json(const answer *a)
{
	if (!a->solution->assignment)
		return json_null();
	json_t *list = json_array();
	for (size_t n = 0; n < a->problem->nodes.len; n++)
		json_array_append_new(list, json_integer(a->solution->assignment[n]));
	return list;
}

static json_t *runs_json(const answer *a)
{
	json_t *list = json_array();
	for (int32_t i = 0; i < SW_MIN(a->n_runs, RUNS_SHOWN); i++)
		json_array_append_new(list, json_pack("{s:i, s:i, s:I}", "begin", a->runs[i].begin,
		                                      "end", a->runs[i].end, "excess",
		                                      (json_int_t)a->runs[i].excess));
	return list;
}

static void set_int(json_t *json, const char *key, bool known, int64_t value)
{
	json_object_set_new(json, key, known ? json_integer((json_int_t)value) : json_null());
}

static void set_answer(json_t *json, const answer *a)
{
	const sw_solution *s = a->solution;
	double gap;
	bool has_gap = gap_of(a, &gap), assigned = s->assignment != NULL;
	json_object_set_new(json, "answer", json_string(answer_names[s->answer]));
	json_object_set_new(json, "feasible", json_boolean(a->feasible));
	set_int(json, "cost", a->feasible, s->cost);
	set_int(json, "lower_bound", has_bound(a), s->lower_bound);
	json_object_set_new(json, "gap", has_gap ? json_real(gap) : json_null());
	set_int(json, "peak_usage", assigned, s->peak_usage);
	set_int(json, "peak_point", assigned, s->peak_point);
	if (s->answer == SW_SOLVED_UNKNOWN)
		json_object_set_new(json, "overuse", runs_json(a));
}

static void set_effort(json_t *json, const answer *a)
{
	const sw_solution *s = a->solution;
	json_object_set_new(json, "method", json_string(sw_method_name(a->method)));
	json_object_set_new(json, "seconds", json_real(s->seconds));
	set_int(json, "work", true, s->work);
	set_int(json, "assignments_tried", s->tried > 0, s->tried);
	json_object_set_new(json, "stopped", json_boolean(a->stopped));
	json_object_set_new(json, "timed_out", json_boolean(s->timed_out && !a->stopped));
	set_int(json, "nodes_left", true, s->nodes_left);
	set_int(json, "edges_left", true, s->edges_left);
}

static json_t *answer_json(const answer *a)
{
	const sw_problem *p = a->problem;
	json_t *json = json_object();
	set_answer(json, a);
	set_effort(json, a);
	set_int(json, "nodes", true, (int64_t)p->nodes.len);
	set_int(json, "edges", true, (int64_t)p->edges.len);
	set_int(json, "tables", true, (int64_t)p->tables.len);
	set_int(json, "program_points", true, p->points);
	set_int(json, "usage_limit", p->capacity != INT64_MAX, p->capacity);
	json_object_set_new(json, "assignment", assignment_json(a));
	return json;
}

/* ---- for people ------------------------------------------------------------------------- */

static void add_size(const answer *a, sw_text *text)
{
	const sw_problem *p = a->problem;
	int64_t strategies = 0;
	for (size_t n = 0; n < p->nodes.len; n++)
		strategies += p->nodes.data[n].strategies;
	sw_text_addf(text,
	             "problem    %zu nodes with %.1f strategies each, %zu edges with %zu different "
	             "tables\n",
	             p->nodes.len, (double)strategies / (double)SW_MAX(p->nodes.len, 1),
	             p->edges.len, p->tables.len);
	if (p->capacity == INT64_MAX)
		sw_text_add(text, "limit      none\n");
	else
		sw_text_addf(text, "limit      %" PRId64 " at each of %d points\n", p->capacity,
		             p->points);
}

static void add_overuse(const answer *a, sw_text *text)
{
	for (int32_t i = 0; i < SW_MIN(a->n_runs, RUNS_SHOWN); i++)
		sw_text_addf(text, "%s %" PRId64 " above the limit in points %d to %d\n",
		             i ? "          " : "nearest   ", a->runs[i].excess, a->runs[i].begin,
		             a->runs[i].end - 1);
	if (a->n_runs > RUNS_SHOWN)
		sw_text_addf(text, "           ... and in %d more places\n",
		             a->n_runs - RUNS_SHOWN);
}

static void add_cost(const answer *a, sw_text *text)
{
	static const char *const words[] = {
		[SW_SOLVED_OPTIMAL] = "optimal: no assignment is cheaper",
		[SW_SOLVED_FEASIBLE] = "feasible; a cheaper assignment may exist",
		[SW_SOLVED_INFEASIBLE] = "infeasible: it is proved that nothing fits",
		[SW_SOLVED_UNKNOWN] = "none found that fits, and not proved that there is none",
	};
	double gap;
	sw_text_addf(text, "answer     %s%s\n", words[a->solution->answer],
	             a->stopped               ? " (stopped)"
	             : a->solution->timed_out ? " (out of time)"
	                                      : "");
	if (a->feasible)
		sw_text_addf(text, "cost       %" PRId64 "\n", a->solution->cost);
	if (has_bound(a))
		sw_text_addf(text, "bound      %" PRId64 "\n", a->solution->lower_bound);
	if (gap_of(a, &gap))
		sw_text_addf(text, "gap        %.4f %%\n", 100 * gap);
}

static void add_usage(const answer *a, sw_text *text)
{
	if (!a->solution->assignment)
		return;
	sw_text_addf(text, "peak       %" PRId64, a->solution->peak_usage);
	if (a->problem->capacity != INT64_MAX && a->problem->capacity > 0)
		sw_text_addf(text, " (%.2f %% of the limit)",
		             100 * (double)a->solution->peak_usage / (double)a->problem->capacity);
	sw_text_addf(text, " at point %d\n", a->solution->peak_point);
	add_overuse(a, text);
}

static void add_method(const answer *a, sw_text *text)
{
	if (a->method != SW_METHOD_EXACT)
		sw_text_addf(text, "method     %s%s\n", sw_method_name(a->method),
		             sw_method_has_bound(a->method) ? "" : ", which proves no bound");
}

static void add_effort(const answer *a, sw_text *text)
{
	sw_text_add(text, "effort     ");
	sw_text_add_seconds(text, a->solution->seconds);
	if (a->solution->work > 0) { /* CBC counts no work */
		sw_text_add(text, ", ");
		sw_text_add_count(text, (double)a->solution->work);
		sw_text_add(text, " units of work");
	}
	if (a->method == SW_METHOD_EXACT)
		sw_text_addf(text, "; %d nodes and %d edges were left after the exact reductions\n",
		             a->solution->nodes_left, a->solution->edges_left);
	else if (a->solution->tried > 0)
		sw_text_addf(text, "; %" PRId64 " assignments were tried\n", a->solution->tried);
	else
		sw_text_add(text, "\n");
}

static void add_array(const answer *a, sw_text *text)
{
	for (size_t n = 0; n < a->problem->nodes.len; n++)
		sw_text_addf(text, "%s%d", n ? "," : "[", a->solution->assignment[n]);
	sw_text_add(text, a->problem->nodes.len ? "]\n" : "[]\n");
}

static void add_assignment(const answer *a, sw_text *text)
{
	if (!a->feasible)
		return;
	sw_text_add(text, "choice     ");
	if (a->problem->nodes.len <= SHORT_ASSIGNMENT)
		add_array(a, text);
	else if (a->c->values.output)
		sw_text_addf(text, "%zu numbers, in %s\n", a->problem->nodes.len,
		             a->c->values.output);
	else
		sw_text_addf(text, "%zu numbers: -o FILE writes them, --json prints them\n",
		             a->problem->nodes.len);
}

static void describe(const answer *a, sw_text *text)
{
	add_size(a, text);
	add_method(a, text);
	add_cost(a, text);
	add_usage(a, text);
	add_effort(a, text);
	add_assignment(a, text);
}

/* ---- checking and writing --------------------------------------------------------------- */

/* Compare the solution with the evaluator, which shares no code with the solver. */
static sw_status check_answer(const answer *a, sw_error *err)
{
	const sw_solution *s = a->solution;
	sw_evaluation e;
	if (!s->assignment)
		return SW_OK;
	sw_problem_evaluate(a->problem, s->assignment, &e);
	bool same = e.peak_usage == s->peak_usage && e.peak_point == s->peak_point;
	if (a->feasible &&
	    !(e.allowed && e.within && same && e.cost == s->cost && s->lower_bound <= s->cost))
		return sw_fail(err, SW_ERR_INTERNAL,
		               "the solver says cost %" PRId64 " and peak %" PRId64
		               ", the evaluator %s, cost %" PRId64 " and peak %" PRId64
		               ": please report this",
		               s->cost, s->peak_usage, !e.allowed ? "forbidden" : "allowed", e.cost,
		               e.peak_usage);
	if (!a->feasible && e.allowed && e.within)
		return sw_fail(err, SW_ERR_INTERNAL,
		               "the solver returns a feasible assignment and reports that there is "
		               "none: please report this");
	return SW_OK;
}

/* Write a feasible assignment only: the file, if it is there, is a solution. */
static sw_status write_assignment(const answer *a, sw_error *err)
{
	sw_text text = {0};
	if (!a->c->values.output || !a->feasible)
		return SW_OK;
	add_array(a, &text);
	sw_status status = sw_file_write(a->c->values.output, text.data, text.len, err);
	sw_text_clear(&text);
	return sw_error_in_file(err, status, a->c->values.output);
}

static sw_status judge(const answer *a, sw_error *err)
{
	if (a->feasible)
		return SW_OK;
	if (a->solution->answer == SW_SOLVED_INFEASIBLE)
		return sw_fail_at(err, SW_NO, a->c->argument, 0, 0,
		                  "infeasible: it is proved that nothing fits%s",
		                  a->problem->capacity != INT64_MAX ? "; raise usage_limit" : "");
	if (!a->n_runs)
		return sw_fail_at(err, SW_NO, a->c->argument, 0, 0,
		                  "no allowed assignment was found, and it is not proved that "
		                  "there is none: allow more time");
	return sw_fail_at(err, SW_NO, a->c->argument, 0, 0,
	                  "no assignment was found that fits, and it is not proved that there is "
	                  "none: the nearest is %" PRId64
	                  " above the limit; allow more time, or raise usage_limit",
	                  a->runs[0].excess);
}

/* ---- the command ------------------------------------------------------------------------ */

static sw_status report(cli *c, answer *a, sw_error *err)
{
	sw_text text = {0};
	sw_status status = check_answer(a, err);
	if (status == SW_OK)
		describe(a, &text); /* before the file is written, as memory may run out */
	if (status == SW_OK)
		status = write_assignment(a, err);
	if (status) {
		sw_text_clear(&text);
		return status;
	}
	if (c->values.output && strcmp(c->values.output, "-") == 0 && !c->values.quiet)
		fputs(text.data, stderr);
	else if (!c->values.output || strcmp(c->values.output, "-") != 0)
		cli_print(c, &text);
	sw_text_clear(&text);
	if (c->values.json)
		c->result = answer_json(a);
	if (a->stopped)
		cli_note(c, "stopped: this is the best so far");
	return judge(a, err);
}

static sw_status solve(cli *c, sw_method method, const sw_problem *problem, sw_error *err)
{
	sw_solution solution;
	sw_solve_options options = {
		.work_limit = c->values.work_limit,
		.time_limit_s = c->values.time_limit,
		.threads = (int)SW_MIN(c->values.threads, 4096),
		.seed = (uint64_t)c->values.seed,
		.quiet = c->values.quiet,
		.stop = &stop_asked,
	};
	watch_signals();
	sw_status status = sw_solve_by(method, problem, &options, &solution, err);
	if (status)
		return sw_error_in_file(err, status, c->argument);
	answer a = {.c = c, .method = method, .problem = problem, .solution = &solution};
	a.feasible = solution.answer == SW_SOLVED_OPTIMAL || solution.answer == SW_SOLVED_FEASIBLE;
	a.stopped = stop_asked && solution.answer != SW_SOLVED_OPTIMAL;
	if (solution.answer == SW_SOLVED_UNKNOWN)
		a.n_runs = sw_problem_overuse(problem, solution.assignment, a.runs, RUNS_SHOWN);
	status = report(c, &a, err);
	sw_solution_clear(&solution);
	return status;
}

static sw_status read_and_solve(cli *c, sw_error *err)
{
	sw_problem problem;
	sw_method method = SW_METHOD_EXACT;
	SW_TRY(cli_check_writable(c, c->values.output, err));
	if (c->values.json && c->values.output && strcmp(c->values.output, "-") == 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "-o - and --json both need standard output: leave one out");
	sw_status status =
		c->values.method ? sw_method_parse(c->values.method, &method, err) : SW_OK;
	if (status == SW_OK)
		status = sw_problem_read(&problem, c->argument, c->values.quiet, err);
	if (status)
		return status;
	status = solve(c, method, &problem, err);
	sw_problem_clear(&problem);
	return status;
}

static const char *const options[] = {"-o",           "--method",  "--seed", "--time-limit",
                                      "--work-limit", "--threads", NULL};
const cli_command cli_solve = {
	.name = "solve",
	.argument = "PROBLEM",
	.summary = "the solver alone: one strategy per node, least cost, under a limit",
	.details =
		"PROBLEM is a file of the ASPLOS 2025 contest on intra-operator parallelism, JSON, "
		"plain or gzip (docs/formats.md).\n"
		"Without a limit of time or work a default limit of work holds. Ctrl-C ends the "
		"search with the best assignment so far.\n"
		"Exit code 1: no assignment fits, or none was found that does.",
	.example =
		"shardwright solve tests/problems/example.json --time-limit 60 -o assignment.json",
	.options = options,
	.run = read_and_solve,
};
