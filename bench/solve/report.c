/* The tables. Lines of the first one are printed as soon as they are known, so that a long run
 * shows its progress. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct column_style {
	const char *heading;
	int width; /* negative: aligned to the left */
} column_style;

static const column_style columns[] = {
	{"instance", -24},
	{"nodes/edges", 12},
	{"left", 11},
	{"limit s", 7},
	{"cost", 16},
	{"bound", 16},
	{"gap", 9},
	{"answer", 10},
	{"s", 7},
	{"MB", 6},
	{"x least", 7},
	{"best known", 10},
	{"after a while", 16},
	{"gap then", 9},
};
enum {
	NAME,
	SIZE,
	LEFT,
	LIMIT,
	COST,
	BOUND,
	GAP,
	ANSWER,
	SECONDS,
	MEMORY,
	LEAST,
	PUBLISHED,
	EARLY,
	EARLY_GAP
};

/* One line of the table; cells that were not set are empty. */
typedef struct cells {
	char text[SW_COUNT(columns)][64];
} cells;

static void set(cells *c, int column, const char *format, ...) SW_PRINTF(3, 4);
static void set(cells *c, int column, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(c->text[column], sizeof c->text[column], format, list);
	va_end(list);
}

static void print_cells(const cells *c, const char *note)
{
	char line[1024];
	int at = 0;
	for (size_t i = 0; i < SW_COUNT(columns); i++)
		at += snprintf(line + at, sizeof line - (size_t)at, "%*s ", columns[i].width,
		               c->text[i]);
	while (at > 0 && line[at - 1] == ' ')
		line[--at] = '\0';
	printf("%s%s%s\n", line, *note ? "  " : "", note);
	fflush(stdout);
}

void report_heading(double early_s)
{
	cells c = {0};
	for (size_t i = 0; i < SW_COUNT(columns); i++)
		set(&c, (int)i, "%s", columns[i].heading);
	if (early_s > 0)
		set(&c, EARLY, "after %g s", early_s);
	else
		set(&c, EARLY, "%s", "");
	print_cells(&c, "");
}

/* ---- numbers ---------------------------------------------------------------------------- */

/* Print a cost relative to another, with digits enough for costs of 1e11 that differ by 1. */
static void set_relative(cells *c, int column, int64_t cost, int64_t other)
{
	double percent = other ? 100 * ((double)cost - (double)other) / fabs((double)other) : 0;
	if (cost == other)
		set(c, column, "same");
	else if (other != 0)
		set(c, column, fabs(percent) < 5e-5 ? "%+.0e%%" : "%+.4f%%", percent);
}

static void set_gap(cells *c, int column, const outcome *o)
{
	if (o->has_cost && o->has_bound && o->cost != 0)
		set(c, column, "%.4f%%",
		    100 * ((double)o->cost - (double)o->bound) / fabs((double)o->cost));
}

static const char *answer_word(const outcome *o)
{
	return o->wrong        ? "WRONG"
	       : o->infeasible ? "infeasible"
	       : o->optimal    ? "optimal"
	       : o->has_cost   ? "feasible"
	                       : "none";
}

static void set_outcome(cells *c, const outcome *o)
{
	if (o->nodes > 0)
		set(c, SIZE, "%" PRId64 "/%" PRId64, o->nodes, o->edges);
	if (o->has_cost)
		set(c, COST, "%" PRId64, o->cost);
	if (o->has_bound)
		set(c, BOUND, "%" PRId64, o->bound);
	set_gap(c, GAP, o);
	set(c, ANSWER, "%s", answer_word(o));
	set(c, SECONDS, "%.2f", o->seconds);
	if (o->peak_bytes > 0)
		set(c, MEMORY, "%.0f", (double)o->peak_bytes / 1e6);
}

static void set_known(cells *c, const instance *what, const outcome *o)
{
	if (o->has_cost && what->published && what->published->best >= 0)
		set_relative(c, PUBLISHED, o->cost, what->published->best);
}

void report_ours(const instance *what, double time_s, const outcome *o, const outcome *early)
{
	cells c = {0};
	set(&c, NAME, "%s", what->name);
	set(&c, LIMIT, "%.0f", time_s);
	set_outcome(&c, o);
	set_known(&c, what, o);
	if (o->nodes_left >= 0)
		set(&c, LEFT, "%" PRId64 "/%" PRId64, o->nodes_left, o->edges_left);
	if (o->least_bytes > 0)
		set(&c, LEAST, "%.2f", (double)o->peak_bytes / (double)o->least_bytes);
	if (early && early->has_cost)
		set(&c, EARLY, "%" PRId64, early->cost);
	if (early)
		set_gap(&c, EARLY_GAP, early);
	print_cells(&c, o->note);
}

void report_peer(const char *name, const instance *what, const outcome *o)
{
	cells c = {0};
	set(&c, NAME, "  %s", name);
	set_outcome(&c, o);
	set_known(&c, what, o);
	print_cells(&c, o->note);
}

/* ---- comparison with published results -------------------------------------------------- */

void report_published_init(sw_table *table)
{
	static const char *const headings[] = {
		"instance", "our cost", "best known", "ours",         "contest best", "ours",
		"XLA's",    "ours",     "our bound",   "bound known", "ours"};
	sw_table_init(table, (int)SW_COUNT(headings), headings);
}

static void add_value(sw_table *table, bool have, int64_t value)
{
	if (have)
		sw_table_cell(table, "%" PRId64, value);
	else
		sw_table_cell(table, "-");
}

/* Print a published number, and ours relative to it. */
static void add_pair(sw_table *table, int64_t public, bool have, int64_t ours)
{
	cells c = {.text[0] = "-"};
	add_value(table, public >= 0, public);
	if (public >= 0 && have)
		set_relative(&c, 0, ours, public);
	sw_table_cell(table, "%s", c.text[0]);
}

void report_published(sw_table *table, const instance *what, const outcome *o)
{
	const published_result *k = what->published;
	sw_table_cell(table, "%s", what->name);
	add_value(table, o->has_cost, o->cost);
	add_pair(table, k->best, o->has_cost, o->cost);
	add_pair(table, k->contest, o->has_cost, o->cost);
	add_pair(table, k->xla, o->has_cost, o->cost);
	add_value(table, o->has_bound, o->bound);
	add_pair(table, k->bound, o->has_bound, o->bound);
}
