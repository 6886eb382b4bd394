/*
 * The integer program for CBC 2.10, branch and cut for linear programs with integers
 * (https://github.com/coin-or/Cbc): that of Rhino's section 4.2 (and Alpa's), as an MPS file.
 * x[n][s] = 1 if node n takes strategy s, exactly one per node; the cost of an edge is on variables
 * e[i][j]; there is a row per point that can bind.
 *
 * Rhino demands e[i][j] >= x[i] + x[j] - 1. Here the e of a row sum to its x, and those of a column
 * to its x, which is equivalent for integers and the tighter of the two for fractions, hence fairer
 * to CBC. The e may then be continuous, and forbidden pairs have none.
 *
 * Columns: the x, node by node; then the e, edge by edge. Rows: one per node; per edge its rows,
 * then its columns; one per point. CBC computes in floating point: the bound that it prints is
 * lowered a little and rounded up.
 */
#include "solve/methods/external_solver.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The columns and rows of the program, and the edges of each node. */
typedef struct mps_places {
	int64_t *first_x;     /* per node, one more: its first column */
	int64_t *first_row;   /* per edge, one more: its first row */
	int32_t *first_edge;  /* per node, one more: its first entry in `edges` */
	int32_t *edges;       /* 2 e + side */
	int32_t *first_usage; /* per node, one more: its first usage */
} mps_places;

static void list_edges(mps_places *p, const model *m)
{
	size_t n = m->nodes.len;
	p->first_edge = sw_alloc((n + 2) * sizeof *p->first_edge);
	p->edges = sw_alloc((2 * m->edges.len + 1) * sizeof *p->edges);
	for (size_t e = 0; e < m->edges.len; e++) {
		p->first_edge[m->edges.data[e].from + 2]++;
		p->first_edge[m->edges.data[e].to + 2]++;
	}
	for (size_t i = 2; i < n + 2; i++)
		p->first_edge[i] += p->first_edge[i - 1];
	for (size_t e = 0; e < m->edges.len; e++) {
		p->edges[p->first_edge[m->edges.data[e].from + 1]++] = (int32_t)(2 * e);
		p->edges[p->first_edge[m->edges.data[e].to + 1]++] = (int32_t)(2 * e + 1);
	}
}

static void list_usages(mps_places *p, const model *m)
{
	p->first_usage = sw_alloc((m->nodes.len + 1) * sizeof *p->first_usage);
	for (size_t u = 0; u < m->usages.len; u++)
		p->first_usage[m->usages.data[u].node + 1]++;
	for (size_t n = 0; n < m->nodes.len; n++)
		p->first_usage[n + 1] += p->first_usage[n];
}

static void places_init(mps_places *p, const model *m)
{
	*p = (mps_places){.first_x = sw_alloc((m->nodes.len + 1) * sizeof *p->first_x),
	                  .first_row = sw_alloc((m->edges.len + 1) * sizeof *p->first_row)};
	for (size_t n = 0; n < m->nodes.len; n++)
		p->first_x[n + 1] = p->first_x[n] + m->nodes.data[n].strategies;
	p->first_row[0] = (int64_t)m->nodes.len;
	for (size_t e = 0; e < m->edges.len; e++)
		p->first_row[e + 1] =
			p->first_row[e] + m->edges.data[e].rows + m->edges.data[e].columns;
	list_edges(p, m);
	list_usages(p, m);
}

static void places_clear(mps_places *p)
{
	free(p->first_x);
	free(p->first_row);
	free(p->first_edge);
	free(p->edges);
	free(p->first_usage);
}

/* ---- writing ---------------------------------------------------------------------------- */

static void write_rows(const model *m, const mps_places *p, FILE *file)
{
	int64_t equalities = p->first_row[m->edges.len];
	fprintf(file, "NAME problem FREE\nROWS\n N COST\n");
	for (int64_t r = 0; r < equalities; r++)
		fprintf(file, " E R%" PRId64 "\n", r);
	for (size_t r = 0; r < m->rows.len; r++)
		fprintf(file, " L R%" PRId64 "\n", equalities + (int64_t)r);
}

static void write_usages(const model *m, const mps_places *p, size_t n, int32_t s, FILE *file)
{
	int64_t column = p->first_x[n] + s, equalities = p->first_row[m->edges.len];
	for (int32_t u = p->first_usage[n]; u < p->first_usage[n + 1]; u++) {
		const model_usage *usage = &m->usages.data[u];
		for (size_t i = 0; usage->usage[s] && i < usage->rows.len; i++)
			fprintf(file, " X%" PRId64 " R%" PRId64 " %" PRId64 "\n", column,
			        equalities + usage->rows.data[i], usage->usage[s]);
	}
}

static void write_x(const model *m, const mps_places *p, size_t n, int32_t s, FILE *file)
{
	int64_t column = p->first_x[n] + s, cost = m->nodes.data[n].cost[s];
	if (cost != SW_FORBIDDEN && cost != 0)
		fprintf(file, " X%" PRId64 " COST %" PRId64 "\n", column, cost);
	fprintf(file, " X%" PRId64 " R%zu 1\n", column, n);
	for (int32_t i = p->first_edge[n]; i < p->first_edge[n + 1]; i++) {
		int32_t e = p->edges[i] / 2, side = p->edges[i] % 2;
		int64_t row = p->first_row[e] + (side ? m->edges.data[e].rows : 0) + s;
		fprintf(file, " X%" PRId64 " R%" PRId64 " -1\n", column, row);
	}
	write_usages(m, p, n, s, file);
}

static void write_e(const model_edge *edge, int64_t first_row, int64_t *column, FILE *file)
{
	for (int32_t i = 0; i < edge->rows; i++)
		for (int32_t j = 0; j < edge->columns; j++) {
			int64_t cost = edge->cost[(int64_t)i * edge->columns + j], c = *column;
			if (cost == SW_FORBIDDEN)
				continue;
			if (cost)
				fprintf(file, " E%" PRId64 " COST %" PRId64 "\n", c, cost);
			fprintf(file, " E%" PRId64 " R%" PRId64 " 1\n", c, first_row + i);
			fprintf(file, " E%" PRId64 " R%" PRId64 " 1\n", c,
			        first_row + edge->rows + j);
			(*column)++;
		}
}

static void write_columns(const model *m, const mps_places *p, FILE *file)
{
	int64_t column = 0;
	fprintf(file, "COLUMNS\n MARKER 'MARKER' 'INTORG'\n");
	for (size_t n = 0; n < m->nodes.len; n++)
		for (int32_t s = 0; s < m->nodes.data[n].strategies; s++)
			write_x(m, p, n, s, file);
	fprintf(file, " MARKER 'MARKER' 'INTEND'\n");
	for (size_t e = 0; e < m->edges.len; e++)
		write_e(&m->edges.data[e], p->first_row[e], &column, file);
}

static void write_limits(const model *m, const mps_places *p, FILE *file)
{
	fprintf(file, "RHS\n");
	for (size_t n = 0; n < m->nodes.len; n++)
		fprintf(file, " RHS R%zu 1\n", n);
	for (size_t r = 0; r < m->rows.len; r++)
		fprintf(file, " RHS R%" PRId64 " %" PRId64 "\n",
		        p->first_row[m->edges.len] + (int64_t)r, m->rows.data[r].capacity);
	fprintf(file, "BOUNDS\n");
	for (size_t n = 0; n < m->nodes.len; n++)
		for (int32_t s = 0; s < m->nodes.data[n].strategies; s++)
			fprintf(file, " UP BOUND X%" PRId64 " %d\n", p->first_x[n] + s,
			        m->nodes.data[n].cost[s] == SW_FORBIDDEN ? 0 : 1);
	fprintf(file, "ENDATA\n");
}

static sw_status write_mps(const model *m, FILE *file, sw_error *err)
{
	mps_places p;
	(void)err;
	places_init(&p, m);
	write_rows(m, &p, file);
	write_columns(m, &p, file);
	write_limits(m, &p, file);
	places_clear(&p);
	return SW_OK;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* Read one line per nonzero column: number, name, value, reduced cost. CBC marks lines that violate
 * a limit by "**" at the beginning. */
static void read_choice(const model *m, FILE *file, external_answer *answer)
{
	char line[512];
	mps_places p;
	places_init(&p, m);
	while (fgets(line, sizeof line, file)) {
		char name[64];
		double value;
		if (sscanf(line, " %*d %63s %lf", name, &value) != 2 || name[0] != 'X' ||
		    value < 0.5)
			continue;
		int64_t column = strtoll(name + 1, NULL, 10);
		size_t low = 0, high = m->nodes.len;
		while (high - low > 1) {
			size_t middle = (low + high) / 2;
			*(p.first_x[middle] <= column ? &low : &high) = middle;
		}
		answer->choice[low] = (int32_t)(column - p.first_x[low]);
	}
	places_clear(&p);
	answer->has_choice = true;
}

/* Costs are integers, so that a bound may be rounded up. */
static int64_t rounded_bound(double bound)
{
	return (int64_t)ceil(bound - 1e-6 - 1e-9 * fabs(bound));
}

static void read_answer(const model *m, const char *printed, FILE *file, external_answer *answer)
{
	static const char bound[] = "Lower bound:";
	char line[512] = "";
	const char *at = strstr(printed, bound);
	if (file && fgets(line, sizeof line, file) && !strstr(line, "no integer solution") &&
	    !strstr(line, "nfeasible"))
		read_choice(m, file, answer);
	answer->optimal =
		strncmp(line, "Optimal", 7) == 0 && !strstr(printed, "within gap tolerance");
	answer->infeasible = strncmp(line, "Infeasible", 10) == 0;
	answer->has_bound = at != NULL;
	if (at)
		answer->bound = rounded_bound(strtod(at + strlen(bound), NULL));
}

static void command(external_command *c, const char *problem, const char *answer, double time_s,
                    double gap)
{
	external_word(c, "cbc");
	external_word(c, "%s", problem);
	for (const char *const *word =
	             (const char *const[]){"-timeMode", "elapsed", "-allowableGap", "0", NULL};
	     *word; word++)
		external_word(c, "%s", *word);
	external_word(c, "-ratioGap");
	external_word(c, "%g", gap);
	if (time_s > 0) {
		external_word(c, "-sec");
		external_word(c, "%g", time_s);
	}
	external_word(c, "-solve");
	external_word(c, "-solution");
	external_word(c, "%s", answer);
}

const external_solver external_cbc = {"cbc", "problem.mps", write_mps, command, read_answer};
