/* The tables: every plan; which plan is best, predicted and measured; and how much overlap
 * hides. */
#include "fidelity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- figures ---------------------------------------------------------------------------- */

static double rank_correlation(const row_list *rows)
{
	double *x = sw_alloc((2 * rows->len + 1) * sizeof(*x)), *y = x + rows->len;
	for (size_t i = 0; i < rows->len; i++) {
		x[i] = rows->data[i].all.predicted_s;
		y[i] = rows->data[i].all.measured_s;
	}
	double result = sw_spearman(x, y, rows->len);
	free(x);
	return result;
}

static double median_error(const row_list *rows)
{
	double *errors = sw_alloc((rows->len + 1) * sizeof(*errors));
	for (size_t i = 0; i < rows->len; i++)
		errors[i] = fabs(error_of(&rows->data[i].all));
	double result = sw_median(errors, rows->len);
	free(errors);
	return result;
}

/* Return the end of the contest that begins here: rows of one program on one lab are adjacent. */
static size_t contest_end(const row_list *rows, size_t begin)
{
	size_t end = begin + (begin < rows->len);
	while (end < rows->len && rows->data[end].lab == rows->data[begin].lab &&
	       rows->data[end].program == rows->data[begin].program)
		end++;
	return end;
}

typedef struct contest {
	const row *predicted, *measured; /* the best of its rows */
	/* measured time of `predicted` over that of `measured`, less 1 */
	double loss;
} contest;

static contest judge(const row_list *rows, size_t begin, size_t end)
{
	contest c = {&rows->data[begin], &rows->data[begin], 0};
	for (size_t i = begin; i < end; i++) {
		const row *r = &rows->data[i];
		c.predicted = r->all.predicted_s < c.predicted->all.predicted_s ? r : c.predicted;
		c.measured = r->all.measured_s < c.measured->all.measured_s ? r : c.measured;
	}
	c.loss = c.predicted->all.measured_s / c.measured->all.measured_s - 1;
	return c;
}

static void count_verdicts(const row_list *rows, int counts[VERDICTS])
{
	memset(counts, 0, VERDICTS * sizeof(*counts));
	for (size_t i = 0; i < rows->len; i++)
		if (can_hide(&rows->data[i]))
			counts[verdict_of(&rows->data[i])]++;
}

static size_t count_equal_memory(const row_list *rows)
{
	size_t n = 0;
	for (size_t i = 0; i < rows->len; i++)
		n += rows->data[i].all.predicted_bytes == rows->data[i].all.executed_bytes;
	return n;
}

/* ---- tables ----------------------------------------------------------------------------- */

static void print_table(sw_table *table)
{
	sw_text text = {0};
	sw_table_add_to(table, &text);
	printf("\n%s", text.data);
	sw_text_clear(&text);
	sw_table_clear(table);
}

static void begin_row(sw_table *table, const row *r)
{
	sw_table_cell(table, "%s", r->lab->name);
	sw_table_cell(table, "%s", r->program);
	sw_table_cell(table, "%s", r->strategy);
}

static void print_plans(const row_list *rows)
{
	static const char *const headings[] = {"lab",     "program",         "strategy",
	                                       "kernels", "predicted ms",    "measured ms",
	                                       "error %", "bytes predicted", "executed"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < rows->len; i++) {
		const row *r = &rows->data[i];
		begin_row(&table, r);
		sw_table_cell(&table, "%s", r->lab->paced ? "paced" : "real");
		sw_table_cell(&table, "%.2f", r->all.predicted_s * 1e3);
		sw_table_cell(&table, "%.2f", r->all.measured_s * 1e3);
		sw_table_cell(&table, "%+.1f", 100 * error_of(&r->all));
		sw_table_cell(&table, "%lld", (long long)r->all.predicted_bytes);
		sw_table_cell(&table, "%lld", (long long)r->all.executed_bytes);
	}
	print_table(&table);
}

static void print_contests(const row_list *rows)
{
	static const char *const headings[] = {
		"lab", "program", "plans", "best predicted", "best measured", "slower %"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t begin = 0, end; begin < rows->len; begin = end) {
		end = contest_end(rows, begin);
		if (end - begin < 2) /* no choice */
			continue;
		contest c = judge(rows, begin, end);
		sw_table_cell(&table, "%s", c.predicted->lab->name);
		sw_table_cell(&table, "%s", c.predicted->program);
		sw_table_cell(&table, "%zu", end - begin);
		sw_table_cell(&table, "%s", c.predicted->strategy);
		sw_table_cell(&table, "%s", c.measured->strategy);
		sw_table_cell(&table, "%.1f", 100 * c.loss);
	}
	print_table(&table);
}

static void print_hidden(const row_list *rows)
{
	static const char *const headings[] = {
		"lab",        "program", "strategy", "compute ms",  "exposed ms",
		"overlapped", "left %",  "least %",  "cost left %", "moved by cores ms"};
	int counts[VERDICTS];
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < rows->len; i++) {
		const row *r = &rows->data[i];
		if (!can_hide(r))
			continue;
		begin_row(&table, r);
		sw_table_cell(&table, "%.2f", r->all.compute_s * 1e3);
		sw_table_cell(&table, "%.2f", r->none.waited_s * 1e3);
		sw_table_cell(&table, "%.2f", r->all.waited_s * 1e3);
		sw_table_cell(&table, "%.1f", 100 * exposed_share(r));
		sw_table_cell(&table, "%.1f", 100 * r->least_share);
		sw_table_cell(&table, "%.1f", 100 * cost_share(r));
		sw_table_cell(&table, "%.2f", r->all.transport_cpu_s * 1e3);
	}
	print_table(&table);
	count_verdicts(rows, counts);
	printf("at most %.0f %% left: met %d, not met though the bound allows it %d, the bound "
	       "itself is "
	       "above it %d\n",
	       100 * MAX_EXPOSED_SHARE, counts[MET], counts[NOT_MET], counts[NOT_POSSIBLE]);
}

void report_text(const row_list *rows, double load)
{
	if (rows->len == 0) {
		puts("no plan was measured");
		return;
	}
	print_plans(rows);
	print_contests(rows);
	print_hidden(rows);
	printf("\n%zu plans: rank correlation %.3f, median error %.1f %%, memory as predicted in "
	       "%zu, %d "
	       "left out\n",
	       rows->len, rank_correlation(rows), 100 * median_error(rows),
	       count_equal_memory(rows), rows->left_out);
	printf("%d cores; load before the run %.1f\n", sw_cpu_count(), load);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static json_t *real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *rows_json(const row_list *rows)
{
	json_t *list = json_array();
	for (size_t i = 0; i < rows->len; i++) {
		const row *r = &rows->data[i];
		json_t *item = json_pack("{s:s, s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:I, s:I}",
		                         "lab", r->lab->name, "program", r->program, "strategy",
		                         r->strategy, "paced", r->lab->paced, "predicted_s",
		                         r->all.predicted_s, "measured_s", r->all.measured_s,
		                         "error", error_of(&r->all), "compute_s", r->all.compute_s,
		                         "predicted_bytes", (json_int_t)r->all.predicted_bytes,
		                         "executed_bytes", (json_int_t)r->all.executed_bytes);
		if (can_hide(r)) {
			json_object_set_new(item, "without_overlap_s",
			                    json_real(r->none.measured_s));
			json_object_set_new(item, "exposed_share", real_or_null(exposed_share(r)));
			json_object_set_new(item, "least_share", real_or_null(r->least_share));
			json_object_set_new(item, "cost_share", real_or_null(cost_share(r)));
			json_object_set_new(item, "waited_s", json_real(r->all.waited_s));
			json_object_set_new(item, "waited_without_s", json_real(r->none.waited_s));
			json_object_set_new(item, "slowed_s",
			                    json_real(r->all.rest_s - r->none.rest_s));
			json_object_set_new(item, "transport_cpu_s",
			                    json_real(r->all.transport_cpu_s));
		}
		json_array_append_new(list, item);
	}
	return list;
}

static json_t *contests_json(const row_list *rows)
{
	json_t *list = json_array();
	for (size_t begin = 0, end; begin < rows->len; begin = end) {
		end = contest_end(rows, begin);
		if (end - begin < 2)
			continue;
		contest c = judge(rows, begin, end);
		json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:s, s:s, s:f}", "lab",
		                                      c.predicted->lab->name, "program",
		                                      c.predicted->program, "plans",
		                                      (int)(end - begin), "best_predicted",
		                                      c.predicted->strategy, "best_measured",
		                                      c.measured->strategy, "loss", c.loss));
	}
	return list;
}

static json_t *verdicts_json(const row_list *rows)
{
	int counts[VERDICTS];
	count_verdicts(rows, counts);
	return json_pack("{s:i, s:i, s:i}", "met", counts[MET], "not_met", counts[NOT_MET],
	                 "not_possible", counts[NOT_POSSIBLE]);
}

/* ---- AutoDDL's figure 4 ------------------------------------------------------------------ */

static int by_communication(const void *a, const void *b)
{
	double x = ((const row *)a)->none.waited_s, y = ((const row *)b)->none.waited_s;
	return x < y ? 1 : x > y ? -1 : 0;
}

/* Return how many of the rows communicate for longer than r by the model, plus 1. */
static int place_by_model(const row_list *rows, const row *r)
{
	int place = 1;
	for (size_t i = 0; i < rows->len; i++)
		place += rows->data[i].none.exposed_s > r->none.exposed_s;
	return place;
}

void report_figure_4(const row_list *rows, double load)
{
	static const char *const headings[] = {"strategy", "measured ms", "model ms", "by model"};
	double *x = sw_alloc((2 * rows->len + 1) * sizeof(*x)), *y = x + rows->len;
	sw_table table;
	qsort(rows->data, rows->len, sizeof(row), by_communication);
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < rows->len; i++) {
		const row *r = &rows->data[i];
		x[i] = r->none.exposed_s;
		y[i] = r->none.waited_s;
		sw_table_cell(&table, "%s", r->strategy);
		sw_table_cell(&table, "%.2f", r->none.waited_s * 1e3);
		sw_table_cell(&table, "%.2f", r->none.exposed_s * 1e3);
		sw_table_cell(&table, "%d", place_by_model(rows, r));
	}
	print_table(&table);
	printf("\nrank correlation of communication %.3f over %zu strategies (the paper: the order "
	       "is the same, on 32 nodes of Piz Daint and 2 of Google Cloud; here an emulated "
	       "cluster of two slow nodes); load %.1f\n",
	       sw_spearman(x, y, rows->len), rows->len, load);
	free(x);
}

void report_json(const row_list *rows, double load)
{
	json_t *object = json_pack("{s:o, s:o, s:i, s:i, s:o, s:o}", "spearman",
	                           real_or_null(rank_correlation(rows)), "median_error",
	                           real_or_null(median_error(rows)), "plans", (int)rows->len,
	                           "memory_equal", (int)count_equal_memory(rows), "contests",
	                           contests_json(rows), "rows", rows_json(rows));
	json_object_set_new(object, "hidden", verdicts_json(rows));
	json_object_set_new(object, "left_out", json_integer(rows->left_out));
	json_object_set_new(object, "cores", json_integer(sw_cpu_count()));
	json_object_set_new(object, "load", real_or_null(load));
	json_dumpf(object, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(object);
}
