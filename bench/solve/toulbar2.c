/*
 * toulbar2 1.1.1: weighted constraint satisfaction, exact, by soft local consistency and hybrid
 * best-first search (de Givry et al., https://toulbar2.github.io). It is given the problem as a
 * .wcsp file: a variable per node, a cost function per node and edge, all costs made non-negative.
 *
 * Its linear constraint takes 0/1 variables and a lower limit. So each usage of a node has one 0/1
 * variable per distinct value u above its least, "less than u", tied to the node by a hard table;
 * the usage that these save must reach the excess of the largest usages over the capacity. (With
 * the values themselves as the 0/1 variables, a constraint would not see that a node takes only one
 * of them.) The options are those with which it does best on the contest's instances B, G and V;
 * with the default ones it found nothing on G and V.
 */
#include "peers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The largest cost that toulbar2 takes is about 5e17. */
#define MAX_COST INT64_C(400000000000000000)

static const char *const refusal = "its costs may not sum to more than 4e17";

typedef struct cost_range {
	int64_t least, most; /* of the allowed entries */
	bool any;
} cost_range;

static cost_range range_of(const int64_t *cost, int64_t n)
{
	cost_range r = {0};
	for (int64_t i = 0; i < n; i++) {
		if (cost[i] == SW_FORBIDDEN)
			continue;
		r.least = r.any ? SW_MIN(r.least, cost[i]) : cost[i];
		r.most = r.any ? SW_MAX(r.most, cost[i]) : cost[i];
		r.any = true;
	}
	return r;
}

static int64_t entries_of(const model_edge *edge)
{
	return (int64_t)edge->rows * edge->columns;
}

/* Compute the offset that is subtracted from all costs, and a cost that no allowed assignment
 * reaches. */
static bool scale_of(const model *m, int64_t *offset, int64_t *top)
{
	__int128 least = 0, range = 1;
	for (size_t n = 0; n < m->nodes.len; n++) {
		cost_range r = range_of(m->nodes.data[n].cost, m->nodes.data[n].strategies);
		least += r.least;
		range += r.most - r.least;
	}
	for (size_t e = 0; e < m->edges.len; e++) {
		cost_range r = range_of(m->edges.data[e].cost, entries_of(&m->edges.data[e]));
		least += r.least;
		range += r.most - r.least;
	}
	*offset = (int64_t)least;
	*top = (int64_t)range;
	return range <= MAX_COST && least == *offset;
}

/* ---- levels of usage -------------------------------------------------------------------- */

/* The distinct values of each usage, ascending. */
typedef struct levels {
	int32_t *first; /* [usages + 1] into values */
	SW_VEC(int64_t) values;
	int64_t variables; /* number of 0/1 variables: one per value but the least */
} levels;

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

static void add_levels(levels *l, const int64_t *usage, int32_t strategies)
{
	size_t start = l->values.len, n = start;
	for (int32_t i = 0; i < strategies; i++)
		sw_vec_push(&l->values, usage[i]);
	qsort(l->values.data + start, (size_t)strategies, sizeof *usage, ascending);
	for (size_t i = start; i < l->values.len; i++)
		if (n == start || l->values.data[i] != l->values.data[n - 1])
			l->values.data[n++] = l->values.data[i];
	l->values.len = n;
}

static void levels_init(levels *l, const model *m)
{
	*l = (levels){.first = sw_alloc((m->usages.len + 1) * sizeof *l->first)};
	for (size_t u = 0; u < m->usages.len; u++) {
		const model_usage *usage = &m->usages.data[u];
		l->first[u] = (int32_t)l->values.len;
		add_levels(l, usage->usage, m->nodes.data[usage->node].strategies);
	}
	l->first[m->usages.len] = (int32_t)l->values.len;
	l->variables = (int64_t)(l->values.len - m->usages.len);
}

static void levels_clear(levels *l)
{
	free(l->first);
	sw_vec_clear(&l->values);
}

/* The variable of a usage's k-th value, k > 0; they come after the nodes. */
static int64_t level_variable(const model *m, const levels *l, int32_t usage, int32_t k)
{
	return (int64_t)m->nodes.len + l->first[usage] - usage + k - 1;
}

static int32_t level_count(const levels *l, int32_t usage)
{
	return l->first[usage + 1] - l->first[usage];
}

/* ---- writing ---------------------------------------------------------------------------- */

static void write_header(const model *m, const levels *l, int64_t top, FILE *file)
{
	int32_t widest = 2;
	for (size_t n = 0; n < m->nodes.len; n++)
		widest = SW_MAX(widest, m->nodes.data[n].strategies);
	fprintf(file, "problem %" PRId64 " %d %" PRId64 " %" PRId64 "\n",
	        (int64_t)m->nodes.len + l->variables, widest,
	        (int64_t)(m->nodes.len + m->edges.len + m->rows.len) + l->variables, top);
	for (size_t n = 0; n < m->nodes.len; n++)
		fprintf(file, "%d\n", m->nodes.data[n].strategies);
	for (int64_t i = 0; i < l->variables; i++)
		fprintf(file, "2\n");
}

static void write_node(const model_node *node, size_t n, int64_t top, FILE *file)
{
	int64_t least = range_of(node->cost, node->strategies).least;
	fprintf(file, "1 %zu 0 %d\n", n, node->strategies);
	for (int32_t i = 0; i < node->strategies; i++)
		fprintf(file, "%d %" PRId64 "\n", i,
		        node->cost[i] == SW_FORBIDDEN ? top : node->cost[i] - least);
}

/* Write the entries that are not zero. */
static void write_edge(const model_edge *edge, int64_t top, FILE *file)
{
	int64_t least = range_of(edge->cost, entries_of(edge)).least, tuples = 0;
	for (int64_t i = 0; i < entries_of(edge); i++)
		tuples += edge->cost[i] != least;
	fprintf(file, "2 %d %d 0 %" PRId64 "\n", edge->from, edge->to, tuples);
	for (int32_t i = 0; i < edge->rows; i++)
		for (int32_t j = 0; j < edge->columns; j++) {
			int64_t cost = edge->cost[(int64_t)i * edge->columns + j];
			if (cost != least)
				fprintf(file, "%d %d %" PRId64 "\n", i, j,
				        cost == SW_FORBIDDEN ? top : cost - least);
		}
}

/* Write the table that makes the variable 1 exactly where the usage is less. */
static void write_level(const model *m, const levels *l, int32_t u, int32_t k, int64_t top,
                        FILE *file)
{
	const model_usage *usage = &m->usages.data[u];
	int32_t strategies = m->nodes.data[usage->node].strategies;
	int64_t value = l->values.data[l->first[u] + k];
	fprintf(file, "2 %d %" PRId64 " 0 %d\n", usage->node, level_variable(m, l, u, k),
	        strategies);
	for (int32_t i = 0; i < strategies; i++)
		fprintf(file, "%d %d %" PRId64 "\n", i, usage->usage[i] < value ? 0 : 1, top);
}

static void write_row(const model *m, const levels *l, const model_row *row, FILE *file)
{
	int64_t needed = -row->capacity, arity = 0;
	for (size_t i = 0; i < row->usages.len; i++) {
		int32_t u = row->usages.data[i];
		needed += l->values.data[l->first[u + 1] - 1];
		arity += level_count(l, u) - 1;
	}
	fprintf(file, "%" PRId64 "\n", arity);
	for (size_t i = 0; i < row->usages.len; i++)
		for (int32_t k = 1; k < level_count(l, row->usages.data[i]); k++)
			fprintf(file, "%" PRId64 " ", level_variable(m, l, row->usages.data[i], k));
	fprintf(file, "-1 knapsack %" PRId64 "\n", needed);
	for (size_t i = 0; i < row->usages.len; i++) {
		const int64_t *values = l->values.data + l->first[row->usages.data[i]];
		for (int32_t k = 1; k < level_count(l, row->usages.data[i]); k++)
			fprintf(file, "%" PRId64 " ", values[k] - values[k - 1]);
	}
	fprintf(file, "\n");
}

static sw_status write_wcsp(const model *m, FILE *file, sw_error *err)
{
	int64_t offset, top;
	levels l;
	if (!scale_of(m, &offset, &top))
		return sw_fail(err, SW_ERR_INPUT, "%s", refusal);
	levels_init(&l, m);
	write_header(m, &l, top, file);
	for (size_t n = 0; n < m->nodes.len; n++)
		write_node(&m->nodes.data[n], n, top, file);
	for (size_t e = 0; e < m->edges.len; e++)
		write_edge(&m->edges.data[e], top, file);
	for (int32_t u = 0; u < (int32_t)m->usages.len; u++)
		for (int32_t k = 1; k < level_count(&l, u); k++)
			write_level(m, &l, u, k, top, file);
	for (size_t r = 0; r < m->rows.len; r++)
		write_row(m, &l, &m->rows.data[r], file);
	levels_clear(&l);
	return SW_OK;
}

/* ---- reading ---------------------------------------------------------------------------- */

static const char *last(const char *text, const char *word)
{
	const char *found = NULL;
	for (const char *at = text; (at = strstr(at, word)); at++)
		found = at;
	return found;
}

/* Read "New solution: 12 (...)", and a line with the value of each variable; nodes come first. */
static void read_solution(const model *m, const char *printed, external_answer *answer)
{
	const char *at = last(printed, "New solution: ");
	at = at ? strchr(at, '\n') : NULL;
	for (size_t n = 0; at && n < m->nodes.len; n++) {
		char *end;
		answer->choice[n] = (int32_t)strtol(at, &end, 10);
		at = end > at && *end ? end : NULL;
	}
	answer->has_choice = at != NULL;
}

/* Read the last of "VAC dual bound: 2", "Initial lower and upper bounds: [2, 3]", "Optimality gap:
 * [2, 3]" and "Optimum: 2", which are printed in this order. */
static void read_bound(const model *m, const char *printed, external_answer *answer)
{
	static const char *const words[] = {"dual bound: ", "Initial lower and upper bounds: [",
	                                    "Optimality gap: [", "Optimum: "};
	int64_t offset, top;
	scale_of(m, &offset, &top);
	for (size_t i = 0; i < SW_COUNT(words); i++) {
		const char *at = last(printed, words[i]);
		if (!at)
			continue;
		answer->has_bound = true;
		answer->bound = strtoll(at + strlen(words[i]), NULL, 10) + offset;
	}
}

static void read_answer(const model *m, const char *printed, FILE *file, external_answer *answer)
{
	(void)file;
	read_solution(m, printed, answer);
	read_bound(m, printed, answer);
	answer->optimal = strstr(printed, "Optimum: ") != NULL;
	/* With "found in" the line only says that the search was limited. */
	answer->infeasible = !answer->has_choice &&
	                     (strstr(printed, "No solution in ") ||
	                      strstr(printed, "No solution found by initial propagation"));
}

static void command(external_command *c, const char *problem, const char *answer, double time_s,
                    double gap)
{
	(void)answer;
	(void)gap;
	external_word(c, "toulbar2");
	external_word(c, "%s", problem);
	external_word(c, "-timer=%.0f", SW_MAX(time_s, 1));
	external_word(c, "-s"); /* print each solution */
	/* functional elimination runs for minutes on problems with linear constraints */
	external_word(c, "-f:");
	external_word(c, "-A"); /* virtual arc consistency in preprocessing */
	external_word(c, "-l"); /* limited discrepancies first */
}

const peer peer_toulbar2 = {"toulbar2", "problem.wcsp", write_wcsp, command, read_answer};
