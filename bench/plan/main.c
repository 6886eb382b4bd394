/*
 * Planning time and predictions: each program under each strategy on one cluster.
 *
 *   bench/plan [--cluster FILE] [--devices SHAPE] [--strategies A,B,...] [--time-limit S]
 *              [--memory BYTES] [FILE ...]
 *   bench/plan --sizes [--time-limit S]
 *
 * Defaults: every program of tests/programs, clusters/local-2x2.yaml, all strategies of the
 * cluster's size. "step" is the predicted time, "vs dp" that of dp divided by it (both of this
 * run), "gap" the distance to its lower bound. Four shares of the step say what the gap consists
 * of: "memory", by which the kernels' bound of the plan's own program, rewritten to fit, is above
 * that of the program; "ways", what its ops take beyond that since they are not divided in their
 * cheapest way, and its layers are alike; "moves", the kernels that redistribute values; and
 * "waiting" for collectives. "messages" is what of them the bound counts: it adds to the bound of
 * the kernels. "sent" is the seconds of all collectives as a share of the step, hidden or not. Each
 * plan is made by a process of its own, whose memory peak is "held"; "cpu s" is the time of all its
 * threads together. Planning times are wall-clock and depend on the machine; nothing else does.
 * --sizes: some programs and clusters from small to large, as `auto` plans them.
 */
#include "bound/bound.h"
#include "partition/partition.h"
#include "simulate/simulate.h"
#include "search/search.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/child.h"
#include "common/cpu.h"

typedef struct settings {
	const char *cluster;
	const char *devices; /* NULL: all of the cluster's */
	const char *strategies;
	double time_limit_s;
	int64_t memory_bytes; /* 0: the cluster's */
} settings;

typedef struct subject {
	const char *name;
	sw_program *program;
	sw_sidecar sidecar;
	double read_s, dp_step_s;
} subject;

/* The figures that the planning process reports. */
typedef struct outcome {
	sw_status status; /* SW_NO: nothing fits into memory, which is a valid answer */
	sw_error err;
	size_t canonical; /* instructions */
	sw_program_cost predicted;
	double planning_s, cpu_s, gap;
	/* bounds of kernels, of the plan's own program and before all rewrites; kernels of moves */
	double own_bound_s, kernels_bound_s, moves_s;
	size_t held_bytes;
	char chosen[SW_NAME_BYTES];
} outcome;

typedef struct job {
	const subject *subject;
	const sw_cluster *cluster;
	const settings *how;
	sw_plan_strategy strategy;
} job;

/* Return the seconds of kernels that move values between layouts, in one execution of a
 * computation of the program of one device. */
static double moves_in(const sw_plan *plan, const sw_program *local, const sw_origins *origins,
                       int32_t computation)
{
	const sw_computation *c = &local->computations.data[computation];
	double seconds = 0;
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i];
		const sw_op *op = sw_op_at(local, id);
		const sw_origin *origin = sw_origin_of(origins, id);
		if (op->opcode == SW_OP_WHILE)
			seconds += (double)sw_op_trips(op) *
			           moves_in(plan, local, origins, op->called[1]);
		else if (op->opcode == SW_OP_CONDITIONAL)
			seconds += moves_in(
				plan, local, origins,
				op->called[sw_cost_dearest_branch(plan->cluster, local, id)]);
		else if (origin && origin->value != SW_NO_ID)
			seconds += sw_cost_op(plan->cluster, local, id);
	}
	return seconds;
}

static double moves_of(const sw_plan *plan)
{
	sw_program *local = NULL;
	sw_origins origins = {0};
	sw_error err;
	double seconds = 0;
	if (sw_partition_with_origins(plan, &local, &origins, &err) == SW_OK)
		seconds = moves_in(plan, local, &origins, local->entry);
	sw_origins_clear(&origins);
	sw_program_free(local);
	return seconds;
}

static double kernels_of(const sw_program *program, const subject *s, const sw_cluster *cluster,
                         bool owners)
{
	sw_arena arena;
	sw_arena_init(&arena);
	double seconds = sw_bound_kernels_s(program, &s->sidecar, sw_rules_make(program, &arena),
	                                    cluster, owners);
	sw_arena_clear(&arena);
	return seconds;
}

static void make_plan(const void *context, void *result)
{
	const job *what = context;
	const subject *s = what->subject;
	const settings *how = what->how;
	outcome *o = result;
	sw_memory_keep();
	sw_plan *plan = NULL;
	sw_plan_options options = {.strategy = what->strategy,
	                           .quiet = true,
	                           .time_limit_s = how->time_limit_s,
	                           .memory_bytes = how->memory_bytes};
	double start_s = sw_now_s();
	o->status = sw_plan_make(s->program, s->name, &s->sidecar, what->cluster, &options, &plan,
	                         &o->err);
	o->planning_s = sw_now_s() - start_s;
	o->cpu_s = cpu_now_s();
	o->held_bytes = sw_peak_memory_bytes();
	if (o->status != SW_OK)
		return;
	o->canonical = plan->program->ops.len;
	o->predicted = plan->predicted;
	o->gap = plan->gap;
	bool owners = plan->strategy.owners != SW_OWNERS_NONE;
	o->own_bound_s = kernels_of(plan->program, s, plan->cluster, owners);
	o->kernels_bound_s = kernels_of(sw_plan_serial(plan), s, plan->cluster, owners);
	o->moves_s = moves_of(plan);
	snprintf(o->chosen, sizeof(o->chosen), "%s", plan->chosen);
	sw_plan_free(plan);
}

/* Plan in a process of its own, so that its memory is that of this plan. */
static sw_status plan_apart(const job *what, outcome *o, sw_error *err)
{
	char note[96];
	*o = (outcome){0};
	child_end end = child_run(make_plan, what, o, sizeof(*o), INFINITY, 0);
	child_explain(&end, note, sizeof(note));
	return end.finished ? SW_OK
	                    : sw_fail(err, SW_ERR_INTERNAL, "%s: the planner %s",
	                              what->subject->name, note);
}

/* Add the gap, the four parts of it, and the seconds of collectives, as shares of the step. */
static void add_gap(sw_table *table, const outcome *o)
{
	const sw_program_cost *p = &o->predicted;
	double bound_s = p->step_time_s * (1 - o->gap);
	double own_s = SW_MAX(o->own_bound_s, o->kernels_bound_s);
	const double parts_s[] = {p->step_time_s - bound_s,
	                          own_s - o->kernels_bound_s,
	                          p->compute_s - o->moves_s - own_s,
	                          o->moves_s,
	                          p->step_time_s - p->compute_s,
	                          bound_s - o->kernels_bound_s,
	                          p->communication_s};
	for (size_t i = 0; i < SW_COUNT(parts_s); i++)
		sw_table_cell(table, "%.2f %%", 100 * parts_s[i] / p->step_time_s);
}

static void add_row(sw_table *table, const subject *s, const char *strategy, const outcome *o)
{
	bool fits = o->status == SW_OK;
	sw_table_cell(table, "%s", s->name);
	sw_table_cell(table, "%zu", s->program->ops.len);
	if (fits)
		sw_table_cell(table, "%zu", o->canonical);
	else
		sw_table_cell(table, "-");
	sw_table_cell(table, "%.3f", s->read_s);
	sw_table_cell(table, "%s", strategy);
	sw_table_cell(table, "%.3f", o->planning_s);
	sw_table_cell(table, "%.3f", o->cpu_s);
	sw_table_cell_number(table, sw_text_add_bytes, (double)o->held_bytes);
	if (fits) {
		sw_table_cell_number(table, sw_text_add_bytes, (double)o->predicted.peak_bytes);
		sw_table_cell_number(table, sw_text_add_seconds, o->predicted.step_time_s);
		if (s->dp_step_s > 0)
			sw_table_cell(table, "%.2f", s->dp_step_s / o->predicted.step_time_s);
		else
			sw_table_cell(table, "-");
		add_gap(table, o);
		sw_table_cell(table, "%s", strcmp(o->chosen, strategy) ? o->chosen : "");
	} else {
		for (int i = 0; i < 9; i++)
			sw_table_cell(table, "-");
		sw_table_cell(table, "%.60s", o->err.message);
	}
}

/* dp comes first: the others are compared with it. */
static sw_status bench_strategy(sw_table *table, subject *s, const sw_cluster *cluster,
                                const settings *how, const char *name, sw_error *err)
{
	job what = {.subject = s, .cluster = cluster, .how = how};
	outcome o = {0};
	sw_status status = sw_plan_strategy_parse(name, &what.strategy, err);
	if (status == SW_OK)
		status = plan_apart(&what, &o, err);
	if (status != SW_OK)
		return status;
	if (o.status != SW_OK && o.status != SW_NO) {
		*err = o.err;
		return o.status;
	}
	if (!strcmp(name, "dp"))
		s->dp_step_s = o.predicted.step_time_s;
	add_row(table, s, name, &o);
	return SW_OK;
}

static sw_status bench_strategies(sw_table *table, subject *s, const sw_cluster *cluster,
                                  const settings *how, sw_error *err)
{
	sw_status status = SW_OK;
	const char *at = how->strategies;
	while (*at && status == SW_OK) {
		char name[48];
		size_t n = strcspn(at, ",");
		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		status = bench_strategy(table, s, cluster, how, name, err);
		at += n;
		at += *at == ',';
	}
	return status;
}

static sw_status bench_program(sw_table *table, const char *path, const sw_cluster *cluster,
                               const settings *how, sw_error *err)
{
	const char *slash = strrchr(path, '/');
	char name[128];
	subject s = {.name = name};
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(slash ? slash + 1 : path, "."),
	         slash ? slash + 1 : path);
	double start_s = sw_now_s();
	sw_status status = sw_read_program(path, &s.program, err);
	s.read_s = sw_now_s() - start_s;
	if (status != SW_OK)
		return status;
	status = sw_sidecar_find(path, s.program, &s.sidecar, err);
	if (status == SW_OK) {
		status = bench_strategies(table, &s, cluster, how, err);
		sw_sidecar_clear(&s.sidecar);
	}
	sw_program_free(s.program);
	return status;
}

/* Every size of a group of innermost devices that a cluster can have. */
static void list_strategies(const sw_cluster *cluster, sw_text *text)
{
	int64_t tp = 1;
	sw_text_add(text, "dp,zero1,zero3");
	for (int32_t a = cluster->atoms.n - 1; a >= 0; a--) {
		tp *= cluster->atoms.size[a];
		sw_text_addf(text, ",megatron:tp=%lld", (long long)tp);
	}
	sw_text_add(text, ",auto");
}

static sw_status bench_all(char *const *paths, size_t n, settings how, sw_error *err)
{
	static const char *const headings[] = {
		"program", "instructions", "canonical", "read s", "strategy", "plan s", "cpu s",
		"held",    "memory",       "step",      "vs dp",  "gap",      "memory", "ways",
		"moves",   "waiting",      "messages",  "sent",   "chosen"};
	sw_cluster cluster;
	sw_text strategies = {0};
	sw_status status = sw_cluster_read(how.cluster, &cluster, err);
	if (status == SW_OK && how.devices)
		status = sw_cluster_take(&cluster, how.devices, err);
	if (status != SW_OK)
		return status;
	list_strategies(&cluster, &strategies);
	how.strategies = how.strategies ? how.strategies : strategies.data;
	printf("cluster %s, %lld devices\n", cluster.name, (long long)cluster.n_devices);
	for (size_t i = 0; i < n && status == SW_OK; i++) {
		sw_table table;
		sw_text text = {0};
		sw_table_init(&table, SW_COUNT(headings), headings);
		status = bench_program(&table, paths[i], &cluster, &how, err);
		sw_table_add_to(&table, &text);
		printf("%s\n", text.data);
		fflush(stdout);
		sw_text_clear(&text);
		sw_table_clear(&table);
	}
	sw_text_clear(&strategies);
	sw_cluster_clear(&cluster);
	return status;
}

/* Programs and clusters for which planning must be quick, from small to large. */
static const struct size {
	const char *program, *cluster, *devices;
	double memory_bytes; /* 0: that of the cluster */
} sizes[] = {
	{"tests/programs/gpt-124m", "a100-8x8", "1x8", 0},
	{"tests/programs/llama3-8b", "a100-8x8", NULL, 400e9}, /* with ample memory */
	{"tests/programs/llama3-8b", "a100-8x8", NULL, 0},
	{"tests/programs/llama3-8b", "h100-superpod", "8x8", 0},
	/* the same layers, more of them: planning time must grow no faster than they do */
	{"bench/papers/programs/gpt-8x8192", "h100-superpod", "8x8", 4e12},
	{"bench/papers/programs/gpt-20x8192", "h100-superpod", "8x8", 4e12},
	{"bench/papers/programs/gpt-44x8192", "h100-superpod", "8x8", 4e12},
	{"tests/programs/gpt-175b", "perlmutter", "256x4", 0},
	{"bench/papers/programs/gpt-40x10240", "h100-10000", NULL, 0},
};

static sw_status bench_sizes(settings how, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(sizes) && status == SW_OK; i++) {
		char program[512], cluster[512];
		snprintf(program, sizeof(program), SW_SOURCE_DIR "/%s.hlo.gz", sizes[i].program);
		snprintf(cluster, sizeof(cluster), SW_SOURCE_DIR "/clusters/%s.yaml",
		         sizes[i].cluster);
		how.cluster = cluster;
		how.devices = sizes[i].devices;
		how.memory_bytes = (int64_t)sizes[i].memory_bytes;
		how.strategies = "auto";
		status = bench_all((char *const[]){program}, 1, how, err);
	}
	return status;
}

static bool flag(int argc, char **argv, int *i, const char *name, bool *value)
{
	bool here = *i < argc && !strcmp(argv[*i], name);
	*value = *value || here;
	*i += here;
	return here;
}

static bool option(int argc, char **argv, int *i, const char *name, const char **value)
{
	if (strcmp(argv[*i], name) || *i + 1 >= argc)
		return false;
	*value = argv[*i + 1];
	*i += 2;
	return true;
}

int main(int argc, char **argv)
{
	settings how = {.cluster = SW_SOURCE_DIR "/clusters/local-2x2.yaml"};
	sw_error err = {0};
	glob_t found = {0};
	const char *limit = "0", *memory = "0";
	bool by_size = false;
	int i = 1;
	while (i < argc && (flag(argc, argv, &i, "--sizes", &by_size) ||
	                    option(argc, argv, &i, "--cluster", &how.cluster) ||
	                    option(argc, argv, &i, "--devices", &how.devices) ||
	                    option(argc, argv, &i, "--strategies", &how.strategies) ||
	                    option(argc, argv, &i, "--time-limit", &limit) ||
	                    option(argc, argv, &i, "--memory", &memory)))
		;
	how.time_limit_s = strtod(limit, NULL);
	how.memory_bytes = (int64_t)strtod(memory, NULL);
	if (i == argc && !by_size)
		glob(SW_SOURCE_DIR "/tests/programs/*.hlo.gz", 0, NULL, &found);
	char **paths = i == argc ? found.gl_pathv : argv + i;
	size_t n = i == argc ? found.gl_pathc : (size_t)(argc - i);
	sw_status status = by_size ? bench_sizes(how, &err) : bench_all(paths, n, how, &err);
	if (status != SW_OK)
		fprintf(stderr, "%s:%d:%d: %s\n", err.file, err.line, err.column, err.message);
	globfree(&found);
	return sw_status_exit_code(status);
}
