/*
 * How long planning takes, and what it says: each program under each strategy on one cluster.
 *
 *   bench/plan [--cluster FILE] [--strategies A,B,...] [--time-limit S] [--memory BYTES] [FILE ...]
 *
 * Defaults: every program of tests/programs, clusters/local-2x2.yaml, all strategies of the cluster's size. "step" is the
 * predicted time, "vs dp" that of dp divided by it (both of this run), "gap" is what its lower bound leaves open.
 * Times of planning are wall-clock and depend on the machine; all else does not.
 */
#include "simulate/simulate.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
	const char *cluster;
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

static void add_row(sw_table *table, const subject *s, const char *strategy, const sw_plan *plan)
{
	sw_text memory = {0}, step = {0};
	sw_text_add_bytes(&memory, (double)plan->predicted.peak_bytes);
	sw_text_add_seconds(&step, plan->predicted.step_time_s);
	sw_table_cell(table, "%s", s->name);
	sw_table_cell(table, "%zu", s->program->ops.len);
	sw_table_cell(table, "%zu", plan->program->ops.len);
	sw_table_cell(table, "%.3f", s->read_s);
	sw_table_cell(table, "%s", strategy);
	sw_table_cell(table, "%.3f", plan->planning_s);
	sw_table_cell(table, "%s", memory.data);
	sw_table_cell(table, "%s", step.data);
	sw_table_cell(table, "%.2f", s->dp_step_s / plan->predicted.step_time_s);
	sw_table_cell(table, "%.2f %%", plan->gap * 100);
	sw_table_cell(table, "%s", strcmp(plan->chosen, strategy) ? plan->chosen : "");
	sw_text_clear(&memory);
	sw_text_clear(&step);
}

static void add_refusal(sw_table *table, const subject *s, const char *strategy, double seconds,
                        const sw_error *err)
{
	sw_table_cell(table, "%s", s->name);
	sw_table_cell(table, "%zu", s->program->ops.len);
	sw_table_cell(table, "-");
	sw_table_cell(table, "%.3f", s->read_s);
	sw_table_cell(table, "%s", strategy);
	sw_table_cell(table, "%.3f", seconds);
	for (int i = 0; i < 4; i++)
		sw_table_cell(table, "-");
	sw_table_cell(table, "%.60s", err->message);
}

/* dp comes first: the others are compared with it. Not fitting into memory is an answer. */
static sw_status bench_strategy(sw_table *table, subject *s, const sw_cluster *cluster, const settings *how,
                                const char *strategy, sw_error *err)
{
	sw_plan *plan;
	sw_plan_options options = {.measure = sw_partition_measure,
	                           .play = sw_simulate_plan,
	                           .quiet = true,
	                           .time_limit_s = how->time_limit_s,
	                           .memory_bytes = how->memory_bytes};
	sw_status status = sw_plan_strategy_parse(strategy, &options.strategy, err);
	if (status != SW_OK)
		return status;
	double start_s = sw_now_s();
	status = sw_plan_make(s->program, s->name, &s->sidecar, cluster, &options, &plan, err);
	if (status == SW_NO)
		add_refusal(table, s, strategy, sw_now_s() - start_s, err);
	if (status != SW_OK)
		return status == SW_NO ? SW_OK : status;
	if (!strcmp(strategy, "dp"))
		s->dp_step_s = plan->predicted.step_time_s;
	add_row(table, s, strategy, plan);
	sw_plan_free(plan);
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

/* Every number of innermost devices that a cluster can have as a group. */
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
	static const char *const headings[] = {"program",  "instructions", "canonical", "read s",
	                                       "strategy", "plan s",       "memory",    "step",
	                                       "vs dp",    "gap",          "chosen"};
	sw_cluster cluster;
	sw_text strategies = {0};
	sw_status status = sw_cluster_read(how.cluster, &cluster, err);
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
	int i = 1;
	while (i < argc && (option(argc, argv, &i, "--cluster", &how.cluster) ||
	                    option(argc, argv, &i, "--strategies", &how.strategies) ||
	                    option(argc, argv, &i, "--time-limit", &limit) ||
	                    option(argc, argv, &i, "--memory", &memory)))
		;
	how.time_limit_s = strtod(limit, NULL);
	how.memory_bytes = (int64_t)strtod(memory, NULL);
	if (i == argc)
		glob(SW_SOURCE_DIR "/tests/programs/*.hlo.gz", 0, NULL, &found);
	char **paths = i == argc ? found.gl_pathv : argv + i;
	size_t n = i == argc ? found.gl_pathc : (size_t)(argc - i);
	sw_status status = bench_all(paths, n, how, &err);
	if (status != SW_OK)
		fprintf(stderr, "%s:%d:%d: %s\n", err.file, err.line, err.column, err.message);
	globfree(&found);
	return sw_status_exit_code(status);
}
