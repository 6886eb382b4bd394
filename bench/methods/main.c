/*
 * AutoDDL's figure 8: the search methods on a perceptron of four layers, widths 32768, 16384, 4096,
 * 2048, 512, on 128 and 4096 nodes of Piz Daint, 8 samples per node (the paper does not say how
 * many): cost relative to the optimum against time relative to exhaustive search.
 *
 *   bench/methods [--cluster FILE] [--ilp-time S] [--json]
 *
 * Twice: in AutoDDL's own space, a factorisation of the nodes for each layer (layers.c), where
 * exhaustive search really runs; and on the problem that the planner makes of the whole training
 * step for one mesh, where the time of exhaustive search is extrapolated from the assignments that
 * it tries in two seconds.
 *
 * "after 1e4" to "after 1e8": cost / optimum after so many units of work (about 5e8 a second), the
 * median of ten seeds; 1 is the optimum, - nothing allowed. "optimum": how many of the ten reach it
 * within the last budget. "s": of those the median time (a run whose limit is doubled until it
 * does, so at most twice the least). "/ exhaustive": that time over exhaustive search's. Times are
 * wall-clock: nothing else should run on the machine. Exit code 1: two methods contradict each
 * other.
 */
#include "bench_methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t widths[] = {32768, 16384, 4096, 2048, 512};
static const char *const node_counts[] = {"128", "4096"};
#define BATCH_PER_NODE 8

typedef struct settings {
	const char *cluster;
	double ilp_s;
	bool json;
} settings;

/* ---- for people ------------------------------------------------------------------------- */

static void add_number(sw_table *table, double number)
{
	if (isfinite(number))
		sw_table_cell(table, "%.4g", number);
	else
		sw_table_cell(table, "-");
}

static void add_power(sw_table *table, double log10_number)
{
	if (log10_number > -4 && log10_number < 4)
		sw_table_cell(table, "%.3g", pow(10, log10_number));
	else
		sw_table_cell(table, "10^%.1f", log10_number);
}

static void add_time(sw_table *table, const comparison *c, const row *w)
{
	if (w->method == SW_METHOD_EXHAUSTIVE) {
		add_power(table, c->log10_exhaustive_s);
		sw_table_cell(table, "1");
	} else if (w->ran && isfinite(w->seconds)) {
		add_power(table, log10(w->seconds));
		add_power(table, log10(w->seconds) - c->log10_exhaustive_s);
	} else {
		sw_table_cell(table, "-");
		sw_table_cell(table, "-");
	}
}

static void add_row(sw_table *table, const comparison *c, const row *w)
{
	sw_table_cell(table, "%s", sw_method_name(w->method));
	for (int k = 0; k < BUDGETS; k++)
		if (w->reached < 0)
			sw_table_cell(table, "%s", "");
		else
			add_number(table, w->budgets[k].cost);
	if (w->reached >= 0)
		sw_table_cell(table, "%d of %d", w->reached, SEEDS);
	else if (w->ran)
		add_number(table, w->cost);
	else
		sw_table_cell(table, "-");
	add_time(table, c, w);
	sw_table_cell(table, "%s", w->note);
}

static void add_descent(const comparison *c, sw_method method, const char *name, sw_text *text)
{
	const row *w = &c->rows[method];
	if (w->reached > 0)
		sw_text_addf(text,
		             "%s finds the optimum in %d of %d runs, in %.1f orders of magnitude "
		             "less time than exhaustive search (paper: 2 to 4)",
		             name, w->reached, SEEDS, c->log10_exhaustive_s - log10(w->seconds));
	else
		sw_text_addf(text, "%s does not find the optimum: %.4g times it", name, w->cost);
}

/* Say whether the paper's statement holds here. */
static void add_verdict(const comparison *c, sw_text *text)
{
	const row *exact = &c->rows[SW_METHOD_EXACT];
	add_descent(c, SW_METHOD_COORDINATE, "coordinate descent", text);
	sw_text_add(text, "; ");
	add_descent(c, SW_METHOD_BLOCKS, "descent by blocks", text);
	sw_text_addf(text,
	             " (assumed: %d samples a node, which the paper does not say, and its time "
	             "is of another machine)",
	             BATCH_PER_NODE);
	sw_text_addf(text, "; exact %s in %.1f orders of magnitude less\n\n",
	             c->proved ? "proves it" : "does not prove it",
	             c->log10_exhaustive_s - log10(exact->seconds));
}

static void print(const comparison *c)
{
	static const char *const headings[] = {"method", "after 1e4", "1e5", "1e6",          "1e7",
	                                       "1e8",    "optimum",   "s",   "/ exhaustive", ""};
	sw_text text = {0};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (int m = 0; m < SW_METHOD_COUNT; m++)
		add_row(&table, c, &c->rows[m]);
	sw_text_addf(&text, "%s: %d nodes, 10^%.1f assignments, optimum %.4g s%s\n", c->name,
	             c->nodes, c->log10_assignments, (double)c->optimum * 1e-12,
	             c->proved ? "" : " (not proved)");
	sw_table_add_to(&table, &text);
	add_verdict(c, &text);
	fputs(text.data, stdout);
	sw_text_clear(&text);
	sw_table_clear(&table);
	fflush(stdout);
}

/* ---- for scripts ------------------------------------------------------------------------ */

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *row_json(const comparison *c, const row *w)
{
	json_t *budgets = json_array();
	for (int k = 0; w->reached >= 0 && k < BUDGETS; k++)
		json_array_append_new(budgets,
		                      json_pack("{s:I, s:o, s:o}", "work",
		                                (json_int_t)w->budgets[k].work, "cost_to_optimum",
		                                number(w->budgets[k].cost), "seconds",
		                                number(w->budgets[k].seconds)));
	double seconds = w->ran ? w->seconds : NAN;
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:o}", "method", sw_method_name(w->method),
	                 "cost_to_optimum", number(w->ran ? w->cost : NAN), "runs_at_optimum",
	                 w->reached < 0 ? json_null() : json_integer(w->reached), "seconds",
	                 number(seconds), "log10_time_to_exhaustive",
	                 number(isfinite(seconds) ? log10(seconds) - c->log10_exhaustive_s : NAN),
	                 "note", w->note, "budgets", budgets);
}

static json_t *comparison_json(const comparison *c)
{
	json_t *rows = json_array();
	for (int m = 0; m < SW_METHOD_COUNT; m++)
		json_array_append_new(rows, row_json(c, &c->rows[m]));
	return json_pack("{s:s, s:i, s:f, s:b, s:I, s:b, s:f, s:o}", "name", c->name, "nodes",
	                 c->nodes, "log10_assignments", c->log10_assignments, "proved", c->proved,
	                 "optimum", (json_int_t)c->optimum, "exhausted", c->exhausted,
	                 "log10_exhaustive_s", c->log10_exhaustive_s, "methods", rows);
}

/* ---- the command ------------------------------------------------------------------------ */

typedef struct bench {
	settings how;
	json_t *json;
	bool failed;
} bench;

static void run_problem(bench *b, const sw_problem *problem, comparison *c)
{
	compare_methods(problem, b->how.ilp_s, c);
	b->failed |= c->contradiction;
	if (b->how.json)
		json_array_append_new(b->json, comparison_json(c));
	else
		print(c);
	if (c->contradiction)
		fprintf(stderr, "%s: two methods contradict each other\n", c->name);
}

static void run_layers(bench *b, const sw_cluster *cluster)
{
	comparison c = {0};
	sw_problem problem;
	snprintf(c.name, sizeof c.name, "AutoDDL's space, %lld nodes",
	         (long long)cluster->n_devices);
	layers_problem(cluster, widths, SW_COUNT(widths), BATCH_PER_NODE * cluster->n_devices,
	               &problem);
	run_problem(b, &problem, &c);
	sw_problem_clear(&problem);
}

static sw_status run_planned(bench *b, const char *nodes, const sw_cluster *cluster, sw_error *err)
{
	char path[512], mesh[64];
	comparison c = {0};
	sw_problem problem;
	snprintf(path, sizeof path, "%s/tests/programs/mlp-%s-nodes.hlo.gz", SW_SOURCE_DIR, nodes);
	sw_status status = planned_problem(path, cluster, &problem, mesh, sizeof mesh, err);
	if (status)
		return status;
	snprintf(c.name, sizeof c.name, "the planner's problem, %s nodes, %s", nodes, mesh);
	run_problem(b, &problem, &c);
	sw_problem_clear(&problem);
	return SW_OK;
}

static sw_status run_nodes(bench *b, const char *nodes, sw_error *err)
{
	sw_cluster cluster;
	sw_status status = sw_cluster_read(b->how.cluster, &cluster, err);
	if (status)
		return status;
	status = sw_cluster_take(&cluster, nodes, err);
	if (status == SW_OK) {
		run_layers(b, &cluster);
		status = run_planned(b, nodes, &cluster, err);
	}
	sw_cluster_clear(&cluster);
	return status;
}

static bool take_option(settings *how, char **argv, int *i)
{
	const char *name = argv[*i], *value = argv[*i + 1];
	if (!strcmp(name, "--json"))
		return how->json = true;
	if (!value)
		return false;
	++*i;
	if (!strcmp(name, "--cluster"))
		how->cluster = value;
	else if (!strcmp(name, "--ilp-time"))
		how->ilp_s = strtod(value, NULL);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	bench b = {.how = {.cluster = SW_SOURCE_DIR "/clusters/piz-daint.yaml", .ilp_s = 20},
	           .json = json_array()};
	sw_error err = {0};
	sw_status status = SW_OK;
	for (int i = 1; i < argc; i++)
		if (!take_option(&b.how, argv, &i)) {
			fprintf(stderr,
			        "usage: methods [--cluster FILE] [--ilp-time S] [--json]\n");
			return 2;
		}
	for (size_t k = 0; k < SW_COUNT(node_counts) && status == SW_OK; k++)
		status = run_nodes(&b, node_counts[k], &err);
	if (status != SW_OK)
		fprintf(stderr, "%s: %s\n", err.file, err.message);
	else if (b.how.json)
		json_dumpf(b.json, stdout, JSON_INDENT(1));
	json_decref(b.json);
	return status != SW_OK ? sw_status_exit_code(status) : b.failed ? 1 : 0;
}
