/*
 * The table that judges the solver.
 *
 *   bench/solve [--time S] [--early S] [--work N] [--threads N] [--peers] [--reduced]
 *               [--peer-memory GB] [--planner] [--cluster FILE] [FILE ...]
 *
 * A FILE is a problem of the ASPLOS 2025 contest on intra-operator parallelism, JSON, plain or
 * gzip: one line each, and a second table beside published results (published.tsv). --time: seconds
 * for each solver; by default the contest's limit for its instances, 60 for others; reading is not
 * counted. "x least": peak memory relative to that of the process after reading plus the tables
 * that the reductions leave. "after 5 s": a second run with that limit (--early; 0: none).
 *
 * --peers: below each line the results of toulbar2 and CBC (tools/setup --bench) on the same
 * problem in the same time, each answer evaluated as ours are; --reduced: also their results after
 * our exact reductions; --peer-memory: gigabytes for each (8).
 *
 * A FILE may also be a program in HLO text: then the problems that the planner makes of it for a
 * cluster (--cluster, clusters/a100-8x8.yaml) are solved without a capacity and with one: the
 * device's memory if that lies between the least usage of any answer and that of the first answer,
 * else the least usage plus 40 % of the difference. --planner: all programs of tests/programs.
 *
 * Times are wall-clock: nothing else should run on the machine. Exit code 1 if a solve of ours
 * failed, or if the evaluator, a peer's answer or the best published cost refutes it.
 */
#include "bench.h"

#include "solve/contest_problem.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_SHARE 0.4

typedef struct bench {
	settings how;
	published_list published;
	sw_table beside;
	int beside_rows;
	bool failed;
} bench;

/* ---- one instance ----------------------------------------------------------------------- */

/* Whether a valid answer of that cost refutes ours: it costs less than our bound, or we claimed
 * that there is none. */
static bool refutes(int64_t cost, const outcome *ours)
{
	return ours->infeasible || (ours->has_bound && cost < ours->bound);
}

static void run_peers(bench *b, const instance *what, double time_s, bool reduced,
                      const outcome *ours)
{
	for (const peer *const *p = all_peers; *p; p++) {
		char name[64];
		outcome o;
		solve_peer(*p, what, reduced, &b->how, time_s, &o);
		if (o.has_cost && refutes(o.cost, ours)) {
			snprintf(o.note, sizeof o.note, "this refutes our answer");
			b->failed = true;
		}
		snprintf(name, sizeof name, "%s%s", peer_name(*p), reduced ? ", reduced" : "");
		report_peer(name, what, &o);
	}
}

/* Check our result, and write a note if there is no answer, or a wrong one. */
static void check_ours(bench *b, const instance *what, outcome *o)
{
	if (what->published && what->published->best >= 0 && refutes(what->published->best, o))
		snprintf(o->note, sizeof o->note, "the best known cost refutes it");
	b->failed |= o->wrong || o->note[0];
}

static void run_early(const instance *what, const settings *how, const outcome *full,
                      outcome *early)
{
	if (full->seconds > how->early_s)
		solve_ours(what, how, how->early_s, early);
	else
		*early = *full;
}

static outcome run_instance(bench *b, const instance *what)
{
	double time_s = time_for(what, &b->how);
	bool twice = b->how.early_s > 0 && b->how.early_s < time_s;
	outcome o, early;
	solve_ours(what, &b->how, time_s, &o);
	check_ours(b, what, &o);
	if (twice)
		run_early(what, &b->how, &o, &early);
	report_ours(what, time_s, &o, twice ? &early : NULL);
	if (b->how.peers)
		run_peers(b, what, time_s, false, &o);
	if (b->how.reduced)
		run_peers(b, what, time_s, true, &o);
	if (what->published) {
		report_published(&b->beside, what, &o);
		b->beside_rows++;
	}
	return o;
}

/* ---- files ------------------------------------------------------------------------------ */

static sw_status load_file(const instance *what, sw_problem *problem, sw_error *err)
{
	return sw_problem_read(problem, what->path, true, err);
}

static void run_file(bench *b, const char *path)
{
	const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
	instance what = {.path = path, .load = load_file, .capacity = INT64_MAX};
	snprintf(what.name, sizeof what.name, "%.*s",
	         (int)SW_MIN(strcspn(stem, "."), sizeof what.name - 1), stem);
	what.published = published_find(&b->published, what.name);
	run_instance(b, &what);
}

/* ---- problems of the planner ------------------------------------------------------------ */

static void run_planned(void *context, const instance *what, int64_t device_bytes)
{
	bench *b = context;
	outcome o = run_instance(b, what);
	instance tight = *what;
	sw_text name = {0};
	if (!o.has_cost || o.peak_usage <= o.least_usage)
		return;
	tight.capacity =
		o.least_usage + (int64_t)(CAPACITY_SHARE * (double)(o.peak_usage - o.least_usage));
	if (o.least_usage <= device_bytes && device_bytes < o.peak_usage)
		tight.capacity = device_bytes;
	sw_text_add(&name, "  in ");
	sw_text_add_bytes(&name, (double)tight.capacity);
	snprintf(tight.name, sizeof tight.name, "%s", name.data);
	sw_text_clear(&name);
	run_instance(b, &tight);
}

static bool is_program(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return strstr(name, ".hlo") || strstr(name, ".mlir");
}

static sw_status run_all_programs(bench *b, sw_error *err)
{
	glob_t found = {0};
	sw_status status = SW_OK;
	glob(SW_SOURCE_DIR "/tests/programs/*.hlo.gz", 0, NULL, &found);
	for (size_t i = 0; status == SW_OK && i < found.gl_pathc; i++)
		status = planner_each(found.gl_pathv[i], b->how.cluster, run_planned, b, err);
	globfree(&found);
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static void print_machine(const settings *how)
{
	char line[256], model[200] = "unknown processor";
	FILE *file = fopen("/proc/cpuinfo", "re");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "model name : %199[^\n]", model) == 1)
			break;
	if (file)
		fclose(file);
	printf("%s, %d processors; ours with %d threads, each peer with one\n", model,
	       sw_cpu_count(), sw_thread_count(how->threads));
}

static void print_beside(const bench *b)
{
	sw_text text = {0};
	if (b->beside_rows == 0)
		return;
	sw_table_add_to(&b->beside, &text);
	printf("\n%s", text.data);
	sw_text_clear(&text);
}

/* Read an option that takes a value: seconds, counts, gigabytes, or a text. */
static bool take_value(settings *how, const char *name, const char *value)
{
	double number = strtod(value, NULL);
	if (!strcmp(name, "--time"))
		how->time_s = number;
	else if (!strcmp(name, "--early"))
		how->early_s = number;
	else if (!strcmp(name, "--work"))
		how->work_limit = (int64_t)number;
	else if (!strcmp(name, "--threads"))
		how->threads = (int)number;
	else if (!strcmp(name, "--peer-memory"))
		how->peer_bytes = (int64_t)(number * 1e9);
	else if (!strcmp(name, "--cluster"))
		how->cluster = value;
	else
		return false;
	return true;
}

/* Read an option; returns the number of words it took, 0 if the word is no option. */
static int take_option(settings *how, const char *name, const char *value)
{
	if (!strcmp(name, "--peers"))
		how->peers = true;
	else if (!strcmp(name, "--reduced"))
		how->peers = how->reduced = true;
	else if (!strcmp(name, "--planner"))
		how->planner = true;
	else
		return value && take_value(how, name, value) ? 2 : 0;
	return 1;
}

static sw_status run_all(bench *b, char **paths, int n, sw_error *err)
{
	sw_status status =
		published_read(SW_SOURCE_DIR "/bench/solve/published.tsv", &b->published, err);
	if (status != SW_OK)
		return status;
	print_machine(&b->how);
	report_heading(b->how.early_s);
	for (int i = 0; status == SW_OK && i < n; i++)
		if (is_program(paths[i]))
			status = planner_each(paths[i], b->how.cluster, run_planned, b, err);
		else
			run_file(b, paths[i]);
	if (status == SW_OK && b->how.planner)
		status = run_all_programs(b, err);
	print_beside(b);
	return status;
}

int main(int argc, char **argv)
{
	bench b = {.how = {.early_s = 5,
	                   .peer_bytes = 8000000000,
	                   .cluster = SW_SOURCE_DIR "/clusters/a100-8x8.yaml"}};
	sw_error err = {0};
	int i = 1, used = 1;
	while (i < argc && (used = take_option(&b.how, argv[i], argv[i + 1])) > 0)
		i += used;
	if ((i == argc && !b.how.planner) || (i < argc && argv[i][0] == '-')) {
		fprintf(stderr,
		        "usage: solve [OPTION ...] FILE ...; the options stand at the top of "
		        "bench/solve/main.c\n");
		return 2;
	}
	report_published_init(&b.beside);
	sw_status status = run_all(&b, argv + i, argc - i, &err);
	if (status != SW_OK)
		fprintf(stderr, "%s: %s\n", err.file, err.message);
	sw_table_clear(&b.beside);
	sw_vec_clear(&b.published);
	return status != SW_OK ? sw_status_exit_code(status) : b.failed ? 1 : 0;
}
