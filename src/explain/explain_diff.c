/* The differences between two explanations: figures, the splits of each layer, collectives,
 * memory. */
#include "explain/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- figures ---------------------------------------------------------------------------- */

static const struct {
	const char *key, *name;
	void (*add)(sw_text *text, double number); /* NULL: the figure is text */
} FIGURES[] = {
	{"program", "program", NULL},
	{"cluster", "cluster", NULL},
	{"devices", "devices", sw_text_add_count},
	{"strategy", "strategy", NULL},
	{"chosen", "chosen", NULL},
	{"step_time_s", "step", sw_text_add_seconds},
	{"stale_step_s", "in the long run", sw_text_add_seconds},
	{"compute_s", "compute", sw_text_add_seconds},
	{"communication_s", "communication", sw_text_add_seconds},
	{"collectives", "collectives", sw_text_add_count},
	{"payload_bytes", "payload", sw_text_add_bytes},
	{"peak_bytes", "memory", sw_text_add_bytes},
};

/* A plan without old values of variables has the same step in the long run. */
static json_t *figure_of(const json_t *explained, const char *key)
{
	json_t *value = json_object_get(explained, key);
	return value ? value : json_object_get(explained, "step_time_s");
}

static json_t *diff_figures(const json_t *a, const json_t *b)
{
	json_t *list = json_array();
	for (size_t i = 0; i < SW_COUNT(FIGURES); i++) {
		const char *key = FIGURES[i].key;
		bool known = json_object_get(a, key) || json_object_get(b, key);
		json_t *x = figure_of(a, key), *y = figure_of(b, key);
		if (known && !json_equal(x, y))
			json_array_append_new(list,
			                      json_pack("{s:s, s:O, s:O}", "figure", key,
			                                "here", x, "there", y));
	}
	return list;
}

static const json_t *axis_named(const json_t *explained, const char *name)
{
	const json_t *axis;
	size_t i;
	json_array_foreach(json_object_get(explained, "parallelism"), i,
	                   axis) if (!strcmp(sw_field_text(axis, "axis"), name)) return axis;
	return NULL;
}

static void add_axis(json_t *list, const char *name, const json_t *x, const json_t *y)
{
	sw_text here = {0}, there = {0};
	if (x && y && json_equal(x, y))
		return;
	sw_text_addf(&here, x ? "of %lld, %s" : "none", (long long)sw_field_number(x, "size"),
	             sw_field_text(x, "as"));
	sw_text_addf(&there, y ? "of %lld, %s" : "none", (long long)sw_field_number(y, "size"),
	             sw_field_text(y, "as"));
	json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "axis", name, "here", here.data,
	                                      "there", there.data));
	sw_text_clear(&here);
	sw_text_clear(&there);
}

static json_t *diff_axes(const json_t *a, const json_t *b)
{
	json_t *list = json_array();
	const json_t *axis;
	size_t i;
	json_array_foreach(json_object_get(a, "parallelism"), i, axis)
		add_axis(list, sw_field_text(axis, "axis"), axis,
	                 axis_named(b, sw_field_text(axis, "axis")));
	json_array_foreach(json_object_get(b, "parallelism"), i,
	                   axis) if (!axis_named(a, sw_field_text(axis, "axis")))
		add_axis(list, sw_field_text(axis, "axis"), NULL, axis);
	return list;
}

/* ---- layers ----------------------------------------------------------------------------- */

static const json_t *block_of_member(const json_t *explained, const char *member)
{
	const json_t *block, *name;
	size_t i, k;
	json_array_foreach(json_object_get(explained, "blocks"), i, block)
		json_array_foreach(json_object_get(block, "members"), k,
	                           name) if (!strcmp(json_string_value(name), member)) return block;
	return NULL;
}

/* Return the n-th line with the same name and op, so that unnamed dots find their counterparts. */
static const json_t *line_like(const json_t *block, const json_t *line, size_t nth)
{
	const json_t *other;
	size_t i;
	json_array_foreach(
		json_object_get(block, "lines"), i,
		other) if (!strcmp(sw_field_text(other, "name"), sw_field_text(line, "name")) &&
	                   !strcmp(sw_field_text(other, "op"), sw_field_text(line, "op")) &&
	                   nth-- == 0) return other;
	return NULL;
}

static size_t rank_of(const json_t *block, size_t index)
{
	const json_t *lines = json_object_get(block, "lines"), *line = json_array_get(lines, index);
	size_t rank = 0;
	for (size_t i = 0; i < index; i++) {
		const json_t *other = json_array_get(lines, i);
		rank += !strcmp(sw_field_text(other, "name"), sw_field_text(line, "name")) &&
		        !strcmp(sw_field_text(other, "op"), sw_field_text(line, "op"));
	}
	return rank;
}

/* Record a difference in one part of a line; layers with the same difference share an entry. */
static void add_change(json_t *list, const char *block, const char *member, const char *name,
                       const char *key, const char *here, const char *there)
{
	json_t *entry;
	size_t i;
	json_array_foreach(list, i, entry) if (!strcmp(sw_field_text(entry, "block"), block) &&
	                                       !strcmp(sw_field_text(entry, "name"), name) &&
	                                       !strcmp(sw_field_text(entry, "part"), key) &&
	                                       !strcmp(sw_field_text(entry, "here"), here) &&
	                                       !strcmp(sw_field_text(entry, "there"), there))
	{
		json_t *members = json_object_get(entry, "members");
		if (strcmp(json_string_value(json_array_get(members, json_array_size(members) - 1)),
		           member))
			json_array_append_new(members, json_string(member));
		return;
	}
	json_array_append_new(list, json_pack("{s:s, s:[s], s:s, s:s, s:s, s:s}", "block", block,
	                                      "members", member, "name", name, "part", key, "here",
	                                      here, "there", there));
}

static void diff_line(json_t *list, const char *block, const char *member, const json_t *x,
                      const json_t *y)
{
	static const char *const keys[] = {
		"operands",          "split",           "result",   "backward_split",
		"backward_result",   "at_rest",         "moments",  "gathered_forward",
		"gathered_backward", "gathered_update", "gradient", "gradient_moved",
		"update_moved"};
	for (size_t k = 0; k < SW_COUNT(keys); k++)
		if (strcmp(sw_field_text(x, keys[k]), sw_field_text(y, keys[k])))
			add_change(list, block, member, sw_field_text(x, "name"), keys[k],
			           sw_field_text(x, keys[k]), sw_field_text(y, keys[k]));
}

/* Compare the blocks of a with those of b; with `only_missing` list only what b lacks. */
static void diff_blocks(json_t *list, const json_t *a, const json_t *b, bool only_missing)
{
	const json_t *block, *member, *line;
	size_t i, k, n;
	json_array_foreach(json_object_get(a, "blocks"), i, block)
		json_array_foreach(json_object_get(block, "members"), k, member)
	{
		const char *name = json_string_value(member),
			   *pattern = sw_field_text(block, "name");
		const json_t *other = block_of_member(b, name);
		if (!other) {
			add_change(list, pattern, name, "", "", only_missing ? "" : "there",
			           only_missing ? "there" : "");
			continue;
		}
		json_array_foreach(json_object_get(block, "lines"), n, line)
		{
			const json_t *like = line_like(other, line, rank_of(block, n));
			if (like && !only_missing)
				diff_line(list, pattern, name, line, like);
			else if (!like)
				add_change(list, pattern, name, sw_field_text(line, "name"), "op",
				           only_missing ? "" : sw_field_text(line, "op"),
				           only_missing ? sw_field_text(line, "op") : "");
		}
	}
}

/* ---- lists of entries with a weight ----------------------------------------------------- */

static bool same_keys(const json_t *x, const json_t *y, const char *const *keys)
{
	for (; *keys; keys++)
		if (strcmp(sw_field_text(x, *keys), sw_field_text(y, *keys)))
			return false;
	return true;
}

/* Sum the weights of entries with equal keys, side by side. */
static void add_weight(json_t *list, const json_t *entry, const char *const *keys,
                       const char *weight, const char *side)
{
	json_t *found = NULL, *other;
	size_t i;
	json_array_foreach(list, i, other) if (same_keys(entry, other, keys)) found = other;
	if (!found) {
		found = json_pack("{s:f, s:f}", "here", 0.0, "there", 0.0);
		for (const char *const *key = keys; *key; key++)
			json_object_set(found, *key, json_object_get(entry, *key));
		json_array_append_new(list, found);
	}
	json_object_set_new(
		found, side,
		json_real(sw_field_number(found, side) + sw_field_number(entry, weight)));
}

static int by_change(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	double m = fabs(sw_field_number(x, "there") - sw_field_number(x, "here")),
	       n = fabs(sw_field_number(y, "there") - sw_field_number(y, "here"));
	return (m < n) - (m > n);
}

static json_t *diff_weights(const json_t *a, const json_t *b, const char *const *keys,
                            const char *weight)
{
	json_t *all = json_array(), *entry, *list = json_array();
	size_t i, n = 0;
	json_array_foreach(a, i, entry) add_weight(all, entry, keys, weight, "here");
	json_array_foreach(b, i, entry) add_weight(all, entry, keys, weight, "there");
	json_t **differ = sw_alloc(sizeof(*differ) * (json_array_size(all) + 1));
	json_array_foreach(all, i, entry) if (sw_field_number(entry, "here") !=
	                                      sw_field_number(entry, "there")) differ[n++] = entry;
	qsort(differ, n, sizeof(*differ), by_change);
	for (i = 0; i < n; i++)
		json_array_append(list, differ[i]);
	free(differ);
	json_decref(all);
	return list;
}

json_t *sw_plan_diff(const json_t *a, const json_t *b)
{
	static const char *const of_collective[] = {"collective", "what", "over", NULL},
				 *const of_tensor[] = {"name", "kind", NULL};
	json_t *layers = json_array();
	diff_blocks(layers, a, b, false);
	diff_blocks(layers, b, a, true);
	json_t *diff = json_pack(
		"{s:o, s:o, s:o, s:o, s:o}", "figures", diff_figures(a, b), "axes", diff_axes(a, b),
		"blocks", layers, "communication",
		diff_weights(json_object_get(a, "communication"),
	                     json_object_get(b, "communication"), of_collective, "seconds"),
		"memory",
		diff_weights(json_object_get(json_object_get(a, "memory"), "tensors"),
	                     json_object_get(json_object_get(b, "memory"), "tensors"), of_tensor,
	                     "bytes"));
	const json_t *list;
	const char *key;
	bool same = true;
	json_object_foreach(diff, key, list) same = same && json_array_size(list) == 0;
	json_object_set_new(diff, "same", json_boolean(same));
	return diff;
}

/* ---- printed ---------------------------------------------------------------------------- */

static void end_table(const json_t *list, size_t shown, sw_text *text)
{
	sw_print_more(list, shown, text);
	sw_text_add(text, json_array_size(list) ? "\n" : "");
}

static void add_side(const json_t *value, void (*add)(sw_text *, double), sw_text *text)
{
	if (json_is_string(value))
		sw_text_add(text, json_string_value(value));
	else if (add)
		add(text, json_number_value(value));
}

static void print_figures(const json_t *list, sw_text *text)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(list, i, entry)
	{
		size_t k = 0;
		while (strcmp(FIGURES[k].key, sw_field_text(entry, "figure")))
			k++;
		sw_text_addf(text, "%-15s ", FIGURES[k].name);
		add_side(json_object_get(entry, "here"), FIGURES[k].add, text);
		sw_text_add(text, " -> ");
		add_side(json_object_get(entry, "there"), FIGURES[k].add, text);
		double here = sw_field_number(entry, "here"),
		       there = sw_field_number(entry, "there");
		if (FIGURES[k].add && here > 0)
			sw_text_addf(text, " (%+.1f %%)", 100 * (there / here - 1));
		sw_text_add(text, "\n");
	}
	sw_text_add(text, json_array_size(list) ? "\n" : "");
}

static const char *or_nothing(const char *words)
{
	return words[0] ? words : "nothing";
}

static void print_axes(const json_t *list, sw_text *text)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(list, i, entry)
		sw_text_addf(text, "axis %s: %s\n     -> %s\n", sw_field_text(entry, "axis"),
	                     sw_field_text(entry, "here"), sw_field_text(entry, "there"));
	sw_text_add(text, json_array_size(list) ? "\n" : "");
}

static void print_layers(const json_t *list, bool whole, sw_text *text)
{
	size_t shown = sw_count_shown(list, whole);
	for (size_t i = 0; i < shown; i++) {
		const json_t *entry = json_array_get(list, i),
			     *members = json_object_get(entry, "members");
		sw_text_add(text, json_string_value(json_array_get(members, 0)));
		if (json_array_size(members) > 1)
			sw_text_addf(text, " and %zu more of %s", json_array_size(members) - 1,
			             sw_field_text(entry, "block"));
		sw_text_addf(text, "  %s, %s: %s\n     -> %s\n", sw_field_text(entry, "name"),
		             sw_field_text(entry, "part"), or_nothing(sw_field_text(entry, "here")),
		             or_nothing(sw_field_text(entry, "there")));
	}
	end_table(list, shown, text);
}

static void print_weights(const json_t *list, const char *const *headings, const char *const *keys,
                          int n, void (*add)(sw_text *, double), bool whole, sw_text *text)
{
	size_t shown = sw_count_shown(list, whole);
	sw_table table;
	if (shown == 0)
		return;
	sw_table_init(&table, n + 2, headings);
	for (size_t i = 0; i < shown; i++) {
		const json_t *entry = json_array_get(list, i);
		sw_text here = {0}, there = {0};
		for (int k = 0; k < n; k++)
			sw_table_cell(&table, "%s", sw_field_text(entry, keys[k]));
		add(&here, sw_field_number(entry, "here"));
		add(&there, sw_field_number(entry, "there"));
		sw_table_cell(&table, "%s", here.data);
		sw_table_cell(&table, "%s", there.data);
		sw_text_clear(&here);
		sw_text_clear(&there);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	end_table(list, shown, text);
}

void sw_plan_diff_print(const json_t *diff, bool whole_tables, sw_text *text)
{
	static const char *const collectives[] = {"collective", "of", "over", "here", "there"},
				 *const of_collective[] = {"collective", "what", "over"},
				 *const tensors[] = {"tensor", "what it is", "here", "there"},
				 *const of_tensor[] = {"name", "kind"};
	if (json_is_true(json_object_get(diff, "same"))) {
		sw_text_add(text, "the same\n");
		return;
	}
	print_figures(json_object_get(diff, "figures"), text);
	print_axes(json_object_get(diff, "axes"), text);
	print_layers(json_object_get(diff, "blocks"), whole_tables, text);
	print_weights(json_object_get(diff, "communication"), collectives, of_collective, 3,
	              sw_text_add_seconds, whole_tables, text);
	print_weights(json_object_get(diff, "memory"), tensors, of_tensor, 2, sw_text_add_bytes,
	              whole_tables, text);
}
