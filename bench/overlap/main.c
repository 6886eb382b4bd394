/*
 * Measure how much overlap saves: the step of each program under each strategy with collectives
 * waited for where they stand; then with all-reduces beside kernels, with reduce-scatters too, with
 * all-gathers too, with all kinds; then with gathered parameters cached.
 *
 *     bench/overlap [--cluster FILE] [--devices N|AxB] [--strategies A;B;...] [--remat POLICY]
 *                   [--memory BYTES] [--measure] [--steps N] [-q] [FILE ...]
 *
 * Each stage is shown as a share saved of the step before it, as AxoNN counts in its figure 3 (GPT
 * 20B on 16 GPUs of Perlmutter): 5 % by all-reduces behind weight gradients, 8 % by reduce-scatters
 * behind the backward pass, 19 % by all-gathers ahead of their use; 9 % more by keeping gathered
 * weights ("cached"), 34 % by all four ("together"). Up to the last stage every reader of a parameter that is split at rest
 * re-gathers it, in the forward and in the backward pass; in the last one the first gather serves
 * all readers, as the planner chooses unless memory forbids. "exposed" is the communication left of
 * the one for which the plan waits without overlap: predicted, the step less its compute; measured,
 * the waiting that the run reports. "least" is a lower bound for every order of the ops
 * (sw_schedule_bound_seconds), with collectives one by one or merged as they were scheduled.
 * "schedule ms" is wall-clock time. -q: nothing but errors is printed on standard error.
 *
 * Predicted: by the streams that the scheduler plans with (sw_schedule_seconds). --measure: also by
 * the command of this build, paced, in the lab that is up (tools/lab up FILE), the median of three
 * runs; --cluster FILE must be that of the lab, so that both rows are of the same cluster.
 */
#include "schedule/schedule.h"
#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "overlap.h"

enum { CACHED = STAGES - 2, AS_PLANNED }; /* the planner's own choice, with overlap and without */

typedef struct settings {
	const char *cluster, *devices, *strategies, *remat; /* NULL: all; the planner's choice */
	int64_t memory_bytes, steps;
	bool measure, quiet;
} settings;

/* Figures of the cached stage besides its times. */
typedef struct figures {
	double scheduling_s, least_s; /* least: exposed in any order */
	int64_t ops;
} figures;

/* Ops: programs with more get no bound (NAN), because it takes time quadratic in the ops. */
#define MAX_BOUNDED_OPS 20000

static double least_exposed_s(const sw_plan *plan, const sw_program *local,
                              const sw_program *scheduled)
{
	if (local->ops.len > MAX_BOUNDED_OPS)
		return NAN;
	return fmin(sw_schedule_bound_seconds(plan->cluster, local, SW_OVERLAP_ALL),
	            sw_schedule_bound_seconds(plan->cluster, scheduled, SW_OVERLAP_ALL)) -
	       plan->predicted.compute_s;
}

/* Predict one stage; `beside` is filled by the stage CACHED. */
static sw_status predict_stage(sw_plan *plan, const settings *how, const sw_reads *made,
                               const stage *one, stage_time *time, figures *beside, sw_error *err)
{
	sw_program *local = NULL, *scheduled = NULL;
	sw_schedule_options options = {.memory_bytes = how->memory_bytes};
	cache_or_regather(plan, made, one);
	sw_status status = sw_overlap_parse(one->overlap, &options.overlap, err);
	if (status == SW_OK)
		status = sw_partition(plan, &local, err);
	double begin = sw_now_s();
	if (status == SW_OK)
		status = sw_schedule(plan->cluster, local, &options, &scheduled, err);
	double scheduling_s = sw_now_s() - begin;
	if (status == SW_OK) {
		time->seconds = sw_schedule_seconds(plan->cluster, scheduled);
		time->exposed_s = time->seconds - plan->predicted.compute_s;
	}
	if (status == SW_OK && one == &all_stages[CACHED])
		*beside = (figures){scheduling_s, least_exposed_s(plan, local, scheduled),
		                    (int64_t)local->ops.len};
	sw_program_free(scheduled);
	sw_program_free(local);
	return status;
}

static sw_status predict(sw_plan *plan, const settings *how, const sw_reads *made,
                         stage_time *times, figures *beside, sw_error *err)
{
	sw_status status = SW_OK;
	for (int k = 0; k < STAGES && status == SW_OK; k++)
		status = predict_stage(plan, how, made, &all_stages[k], &times[k], beside, err);
	return status;
}

/* ---- tables ----------------------------------------------------------------------------- */

static void add_share(sw_table *table, double part, double whole)
{
	if (whole > 0 && isfinite(part))
		sw_table_cell(table, "%.0f %%", 100 * part / whole);
	else
		sw_table_cell(table, "-");
}

/* least_s: exposed in any order; NAN: not known */
static void add_stages(sw_table *table, const stage_time *times, double least_s)
{
	sw_table_cell_number(table, sw_text_add_seconds, times[0].seconds);
	for (int k = 1; k <= CACHED; k++)
		sw_table_cell(table, "%.1f %%",
		              100 * (times[k - 1].seconds - times[k].seconds) /
		                      times[k - 1].seconds);
	sw_table_cell(table, "%.1f %%", 100 * (1 - times[CACHED].seconds / times[0].seconds));
	sw_table_cell_number(table, sw_text_add_seconds, times[CACHED].seconds);
	add_share(table, times[CACHED].exposed_s, times[AS_PLANNED].exposed_s);
	add_share(table, least_s, times[AS_PLANNED].exposed_s);
}

static sw_status add_rows(sw_table *table, const char *program, const char *strategy, sw_plan *plan,
                          const settings *how, sw_error *err)
{
	stage_time predicted[STAGES] = {{0}}, measured[STAGES];
	figures beside = {0};
	sw_reads made = {0};
	sw_reads_copy(&made, &plan->regathered);
	sw_status status = predict(plan, how, &made, predicted, &beside, err);
	if (status == SW_OK && how->measure)
		status = measure_stages(plan, &made, all_stages, how->steps, how->quiet, measured,
		                        err);
	sw_vec_clear(&made);
	if (status != SW_OK)
		return status;
	sw_table_cell(table, "%s", program);
	sw_table_cell(table, "%s", strategy);
	sw_table_cell(table, "predicted");
	sw_table_cell_number(table, sw_text_add_seconds, plan->predicted.compute_s);
	sw_table_cell_number(table, sw_text_add_seconds, plan->predicted.communication_s);
	add_stages(table, predicted, beside.least_s);
	sw_table_cell(table, "%lld", (long long)beside.ops);
	sw_table_cell(table, "%.1f", 1e3 * beside.scheduling_s);
	if (!how->measure)
		return SW_OK;
	sw_table_cell(table, "%s", program);
	sw_table_cell(table, "%s", strategy);
	sw_table_cell(table, "measured");
	sw_table_cell(table, "-");
	sw_table_cell(table, "-");
	add_stages(table, measured, NAN);
	sw_table_cell(table, "%lld", (long long)beside.ops);
	sw_table_cell(table, "-");
	return SW_OK;
}

static void add_axonn(sw_table *table)
{
	sw_table_cell(table, "GPT 20B");
	sw_table_cell(table, "AxoNN, fig. 3");
	sw_table_cell(table, "published");
	for (int i = 0; i < 3; i++)
		sw_table_cell(table, "-");
	for (int k = 1; k <= CACHED; k++) {
		if (all_stages[k].axonn > 0)
			sw_table_cell(table, "%.0f %%", all_stages[k].axonn);
		else
			sw_table_cell(table, "-");
	}
	sw_table_cell(table, "%d %%", AXONN_TOGETHER);
	for (int i = 0; i < 5; i++)
		sw_table_cell(table, "-");
}

/* ---- programs and strategies ------------------------------------------------------------ */

typedef struct subject {
	char name[128];
	const char *path;
	sw_program *program;
	sw_sidecar sidecar;
} subject;

static sw_status open_subject(const char *path, subject *s, sw_error *err)
{
	const char *slash = strrchr(path, '/');
	*s = (subject){.path = path};
	snprintf(s->name, sizeof(s->name), "%.*s", (int)strcspn(slash ? slash + 1 : path, "."),
	         slash ? slash + 1 : path);
	sw_status status = sw_read_program(path, &s->program, err);
	if (status != SW_OK)
		return status;
	status = sw_sidecar_find(path, s->program, &s->sidecar, err);
	if (status != SW_OK)
		sw_program_free(s->program);
	return status;
}

static sw_status bench_strategy(sw_table *table, const subject *s, const sw_cluster *cluster,
                                const settings *how, const char *strategy, sw_error *err)
{
	sw_plan *plan;
	sw_plan_options options = {
		.no_overlap = true,
		.quiet = true,
		.remat = how->remat,
		.microbatches = how->remat ? 1 : 0, /* the planner would choose those, too */
		.memory_bytes = how->memory_bytes};
	sw_status status = sw_plan_strategy_parse(strategy, &options.strategy, err);
	if (status == SW_OK)
		status = sw_plan_make(s->program, s->path, &s->sidecar, cluster, &options, &plan,
		                      err);
	if (status == SW_NO) {
		if (!how->quiet)
			fprintf(stderr, "%s, %s: %s\n", s->name, strategy, err->message);
		return SW_OK;
	}
	if (status != SW_OK)
		return status;
	status = add_rows(table, s->name, strategy, plan, how, err);
	sw_plan_free(plan);
	return status;
}

static sw_status bench_program(sw_table *table, const char *path, const sw_cluster *cluster,
                               const settings *how, sw_error *err)
{
	subject s;
	sw_status status = open_subject(path, &s, err);
	if (status != SW_OK)
		return status;
	for (const char *at = how->strategies; *at && status == SW_OK;) {
		char name[48];
		size_t n = strcspn(at, ";");
		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		status = bench_strategy(table, &s, cluster, how, name, err);
		at += n + (at[n] == ';');
	}
	sw_sidecar_clear(&s.sidecar);
	sw_program_free(s.program);
	return status;
}

static sw_status bench_all(const char *const *paths, size_t n, const settings *how, sw_error *err)
{
	static const char *const headings[] = {
		"program",       "strategy",   "figures",    "compute",
		"communication", "no overlap", "all-reduce", "+ reduce-scatter",
		"+ all-gather",  "+ others",   "+ cached",   "together",
		"overlapped",    "exposed",    "least",      "ops",
		"schedule ms"};
	sw_cluster cluster;
	sw_table table;
	sw_text text = {0};
	sw_status status = sw_cluster_read(how->cluster, &cluster, err);
	if (status == SW_OK && how->devices)
		status = sw_cluster_take(&cluster, how->devices, err);
	if (status != SW_OK)
		return status;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < n && status == SW_OK; i++)
		status = bench_program(&table, paths[i], &cluster, how, err);
	add_axonn(&table);
	sw_table_add_to(&table, &text);
	printf("cluster %s, %lld devices; percentages: share of the step that each saves\n%s",
	       cluster.name, (long long)cluster.n_devices, text.data);
	sw_text_clear(&text);
	sw_table_clear(&table);
	sw_cluster_clear(&cluster);
	return status;
}

/* ---- the command line ------------------------------------------------------------------- */

static bool option(int argc, char **argv, int *i, const char *name, const char **value)
{
	if (*i + 1 >= argc || strcmp(argv[*i], name))
		return false;
	*value = argv[*i + 1];
	*i += 2;
	return true;
}

static bool flag(int argc, char **argv, int *i, const char *name, bool *value)
{
	if (*i >= argc || strcmp(argv[*i], name))
		return false;
	*value = true;
	++*i;
	return true;
}

static bool take_number(const char *text, int64_t min, int64_t *number)
{
	char *end;
	double value = strtod(text, &end);
	*number = value >= 0 && value < 0x1p62 ? (int64_t)value : -1;
	return end != text && !*end && *number >= min;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {SW_SOURCE_DIR "/tests/programs/gpt-124m.hlo.gz"};
	settings how = {.cluster = SW_SOURCE_DIR "/clusters/a100-8x8.yaml",
	                .strategies = "dp;zero1;zero3;megatron:tp=8;auto"};
	sw_error err = {0};
	const char *memory = "0", *steps = "10";
	int i = 1;
	while (option(argc, argv, &i, "--cluster", &how.cluster) ||
	       option(argc, argv, &i, "--devices", &how.devices) ||
	       option(argc, argv, &i, "--strategies", &how.strategies) ||
	       option(argc, argv, &i, "--remat", &how.remat) ||
	       option(argc, argv, &i, "--memory", &memory) ||
	       option(argc, argv, &i, "--steps", &steps) ||
	       flag(argc, argv, &i, "--measure", &how.measure) ||
	       flag(argc, argv, &i, "-q", &how.quiet))
		;
	if (!take_number(memory, 0, &how.memory_bytes) || !take_number(steps, 1, &how.steps)) {
		fputs("overlap: --memory takes bytes, --steps a number from 1 on\n", stderr);
		return 2;
	}
	sw_status status = i == argc ? bench_all(usual, SW_COUNT(usual), &how, &err)
	                             : bench_all((const char *const *)argv + i, (size_t)(argc - i),
	                                         &how, &err);
	if (status != SW_OK)
		fprintf(stderr, "%s:%d:%d: %s\n", err.file, err.line, err.column, err.message);
	return sw_status_exit_code(status);
}
