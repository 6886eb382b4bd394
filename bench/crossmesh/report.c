/* The tables, and the JSON object. */
#include "bench_crossmesh.h"

#include <stdio.h>

/* ---- tables ----------------------------------------------------------------------------- */

static void add_times(const experiment *e, const case_row *row, const char *where,
                      const case_times *times, sw_table *table)
{
	double ours = times->ways_s[WAY_OURS];
	sw_table_cell(table, "%s", row->which->name);
	sw_table_cell(table, "%s", where);
	sw_table_cell_number(table, sw_text_add_seconds, times->bound_s);
	sw_table_cell_number(table, sw_text_add_seconds, ours);
	sw_table_cell(table, "%.1f %%", 100 * (ours / times->bound_s - 1));
	for (int32_t w = 1; w < e->n_ways; w++) {
		sw_text cell = {0};
		sw_text_add_seconds(&cell, times->ways_s[w]);
		sw_text_addf(&cell, " (%.2f)", times->ways_s[w] / ours);
		sw_table_cell(table, "%s", times->ways_s[w] > 0 ? cell.data : "");
		sw_text_clear(&cell);
	}
}

static void print_experiment(const experiment *e, const case_rows *rows)
{
	const char *heads[5 + MAX_WAYS] = {"case", "", "bound", "ours", "over the bound"};
	sw_table table;
	sw_text text = {0};
	for (int32_t w = 1; w < e->n_ways; w++)
		heads[4 + w] = e->ways[w]->label;
	sw_table_init(&table, 4 + e->n_ways, heads);
	for (size_t i = 0; i < rows->len; i++) {
		const case_row *row = &rows->data[i];
		if (row->of != e)
			continue;
		add_times(e, row, "model", &row->paper, &table);
		if (row->measured) {
			add_times(e, row, "lab, model", &row->lab, &table);
			add_times(e, row, "lab, measured", &row->lab_measured, &table);
		}
	}
	sw_text_addf(&text, "%s; %s, in the lab %s; in brackets: times ours\n", e->title, e->shape,
	             e->lab_shape);
	sw_table_add_to(&table, &text);
	sw_table_clear(&table);
	printf("%s\n", text.data);
	sw_text_clear(&text);
}

static bool has_rows(const experiment *e, const case_rows *rows)
{
	for (size_t i = 0; i < rows->len; i++)
		if (rows->data[i].of == e)
			return true;
	return false;
}

void report_text(const case_rows *rows)
{
	for (size_t e = 0; e < n_experiments; e++)
		if (has_rows(&experiments[e], rows))
			print_experiment(&experiments[e], rows);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void set_times(json_t *object, const experiment *e, const case_times *times)
{
	json_object_set_new(object, "bound_s", json_real(times->bound_s));
	for (int32_t w = 0; w < e->n_ways; w++) {
		char key[64];
		double seconds = times->ways_s[w];
		snprintf(key, sizeof(key), "%s_s", e->ways[w]->key);
		json_object_set_new(object, key, seconds > 0 ? json_real(seconds) : json_null());
	}
}

static json_t *row_json(const case_row *row)
{
	json_t *object = json_pack("{s:s, s:s, s:s}", "case", row->which->name, "from",
	                           row->which->from, "to", row->which->to);
	json_t *lab = json_object(), *measured = json_object();
	set_times(object, row->of, &row->paper);
	set_times(lab, row->of, &row->lab);
	set_times(measured, row->of, &row->lab_measured);
	json_object_set_new(object, "lab_modelled", lab);
	json_object_set_new(object, "measured",
	                    row->measured ? json_incref(measured) : json_null());
	json_decref(measured);
	return object;
}

void report_json(const case_rows *rows, double load)
{
	json_t *object = json_object();
	for (size_t e = 0; e < n_experiments; e++) {
		json_t *list = json_array();
		for (size_t i = 0; i < rows->len; i++)
			if (rows->data[i].of == &experiments[e])
				json_array_append_new(list, row_json(&rows->data[i]));
		if (has_rows(&experiments[e], rows))
			json_object_set_new(object, experiments[e].key, list);
		else
			json_decref(list);
	}
	json_object_set_new(object, "load", json_real(load));
	json_dumpf(object, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(object);
}
