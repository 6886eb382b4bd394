/*
 * Describe a plan as data, and print this data for people.
 */
#include "explain/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- as data ---------------------------------------------------------------------------- */

/* Count a block's gathered weights that are cached for the backward pass, and those gathered again
 * for it. */
static void count_gathers(const json_t *block, json_int_t *cached, json_int_t *regathered)
{
	const json_t *line;
	size_t i;
	*cached = *regathered = 0;
	json_array_foreach(json_object_get(block, "lines"), i, line)
	{
		json_int_t count = json_integer_value(json_object_get(line, "count"));
		bool twice = json_object_get(line, "gathered_forward") &&
		             json_object_get(line, "gathered_backward");
		*cached += json_is_true(json_object_get(line, "cached")) ? count : 0;
		*regathered += twice ? count : 0;
	}
}

static void add_to(json_t *gathers, const char *key, json_int_t number)
{
	json_int_t before = json_integer_value(json_object_get(gathers, key));
	json_object_set_new(gathers, key, json_integer(before + number));
}

/* Count, among similar layers whose weights are gathered for the forward pass and read in the
 * backward pass, all layers and those that keep all their weights; and the same of weights. */
static json_t *gathers_of(const json_t *blocks)
{
	json_t *by_name = json_object();
	const json_t *block;
	size_t i;
	json_array_foreach(blocks, i, block)
	{
		const char *name = sw_field_text(block, "name");
		json_int_t members = (json_int_t)json_array_size(json_object_get(block, "members")),
			   cached, regathered;
		count_gathers(block, &cached, &regathered);
		if (cached + regathered == 0)
			continue;
		if (!json_object_get(by_name, name))
			json_object_set_new(by_name, name, json_object());
		json_t *gathers = json_object_get(by_name, name);
		add_to(gathers, "layers", members);
		add_to(gathers, "layers_cached", regathered == 0 ? members : 0);
		add_to(gathers, "weights", members * (cached + regathered));
		add_to(gathers, "weights_cached", members * cached);
	}
	return by_name;
}

/* Add how variables are synchronised and, where owners serve them, what is sent for it in a step. */
static void explain_served(json_t *json, const sw_anatomy *anatomy, const sw_explained *what)
{
	sw_served served = {0};
	sw_error err = {0};
	bool is = sw_forms_served(&what->plan->forms) &&
	          sw_served_cut(what->plan, what->sidecar, &served, &err) == SW_OK;
	json_object_set_new(json, "variables",
	                    sw_explain_variables(anatomy, what, is ? &served : NULL));
	json_object_set_new(json, "owners", sw_explain_owners(anatomy, what->plan));
	if (is)
		json_object_set_new(json, "served_payload_bytes",
		                    json_integer(sw_served_payload(
					    &served, what->plan->cluster->n_devices)));
	sw_served_clear(&served);
}

json_t *sw_plan_explain(const sw_explained *what)
{
	sw_anatomy anatomy;
	const sw_plan *plan = what->plan;
	json_t *json = sw_plan_summary(plan);
	sw_anatomy_init(&anatomy, what);
	json_object_set_new(json, "program", json_string(plan->program->name));
	json_object_set_new(json, "cluster", json_string(plan->cluster->name));
	json_object_set_new(json, "devices", json_integer(plan->cluster->n_devices));
	json_object_set_new(json, "prediction_error",
	                    json_real(plan->cluster->device.prediction_error));
	json_object_set_new(json, "parallelism", sw_explain_parallelism(&anatomy, what, -1));
	json_object_set_new(json, "blocks", sw_explain_blocks(&anatomy, what));
	explain_served(json, &anatomy, what);
	json_object_set_new(json, "gathers", gathers_of(json_object_get(json, "blocks")));
	json_object_set_new(json, "communication", sw_explain_collectives(&anatomy, what));
	json_object_set_new(json, "memory", sw_explain_memory(&anatomy, what));
	json_object_set_new(json, "grids", sw_explain_grids(&anatomy, plan));
	sw_anatomy_clear(&anatomy);
	return json;
}

/* ---- reading the data ------------------------------------------------------------------- */

const char *sw_field_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

double sw_field_number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static long long integer_of(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

size_t sw_count_shown(const json_t *list, bool whole)
{
	size_t n = json_array_size(list);
	return whole ? n : SW_MIN(n, (size_t)SW_MAX_TABLE_ROWS);
}

void sw_print_more(const json_t *list, size_t shown, sw_text *text)
{
	if (json_array_size(list) > shown)
		sw_text_addf(text, "  ... and %zu more; -v shows them\n",
		             json_array_size(list) - shown);
}

static void add_signed(sw_text *text, sw_text_add_number *add, double number)
{
	sw_text_add(text, number < 0 ? "-" : "+");
	add(text, number < 0 ? -number : number);
}

/* ---- head ------------------------------------------------------------------------------- */

static void print_mesh(const json_t *e, sw_text *text)
{
	const json_t *mesh = json_object_get(e, "mesh"), *axis;
	size_t i;
	json_array_foreach(mesh, i, axis) sw_text_addf(
		text, " %s=%lld", sw_field_text(axis, "name"), integer_of(axis, "size"));
	sw_text_add(text, json_array_size(mesh) ? "" : " none");
	json_array_foreach(json_object_get(e, "parallelism"), i, axis) sw_text_addf(
		text, "\n%s%s=%lld %s", i ? "           " : "axes       ",
		sw_field_text(axis, "axis"), integer_of(axis, "size"), sw_field_text(axis, "as"));
}

static void print_rewrites(const json_t *e, sw_text *text)
{
	const json_t *padded;
	size_t i;
	json_array_foreach(json_object_get(e, "padding"), i, padded)
		sw_text_addf(text, "\n%s %lld -> %lld in %lld tensors",
	                     i ? "          " : "padding   ", integer_of(padded, "size"),
	                     integer_of(padded, "padded"), integer_of(padded, "tensors"));
	if (sw_field_text(e, "rematerialisation")[0])
		sw_text_addf(text,
		             "\nremat      %s: activations that the backward pass computes again",
		             sw_field_text(e, "rematerialisation"));
	if (integer_of(e, "microbatches") > 1)
		sw_text_addf(text, "\nbatch      in %lld microbatches, gradients summed over them%s",
		             integer_of(e, "microbatches"),
		             json_is_true(json_object_get(e, "last_apart"))
		                     ? "; the last one apart, so that they are sent beside it"
		                     : "");
}

static void print_gathers(const json_t *e, sw_text *text)
{
	json_t *g;
	const char *name, *before = "weights   ";
	json_object_foreach(json_object_get(e, "gathers"), name, g)
	{
		long long layers = integer_of(g, "layers"), cached = integer_of(g, "layers_cached");
		sw_text_addf(text, "%s %s: gathered once and cached for %lld of %lld layers",
		             before, name, cached, layers);
		if (cached < layers)
			sw_text_addf(text, " (%lld of %lld weights), the others gathered again",
			             integer_of(g, "weights_cached"), integer_of(g, "weights"));
		sw_text_add(text, "\n");
		before = "          ";
	}
}

/* Say what the step consists of, beside what the bound counts. */
static void print_parts_of_step(const json_t *e, sw_text *text)
{
	double step_s = sw_field_number(e, "step_time_s"),
	       compute_s = sw_field_number(e, "compute_s");
	if (sw_field_number(e, "gap") < 0.01 || compute_s > step_s)
		return;
	sw_text_addf(text,
	             "           kernels take %.2f %% of the step, waiting for collectives %.2f %%; "
	             "the bound counts kernels, and what must be sent between the outermost "
	             "parts, but not that one waits for the other\n",
	             100 * compute_s / step_s, 100 * (step_s - compute_s) / step_s);
}

static void print_gap(const json_t *e, sw_text *text)
{
	double bound_s = sw_field_number(e, "lower_bound_s");
	if (bound_s > 0) {
		sw_text_addf(text, "gap        %.2f %%: no step takes less than ",
		             sw_field_number(e, "gap") * 100);
		sw_text_add_seconds(text, bound_s);
		sw_text_addf(text, ", of all %s\n", sw_field_text(e, "scope"));
		print_parts_of_step(e, text);
	} else {
		sw_text_addf(text, "gap        unknown: %s\n", sw_field_text(e, "scope"));
	}
	if (*sw_field_text(e, "searched"))
		sw_text_addf(text, "searched   %s\n", sw_field_text(e, "searched"));
}

static void print_interval(const json_t *e, sw_text *text)
{
	const sw_device device = {.prediction_error = sw_field_number(e, "prediction_error")};
	sw_cost_add_interval(&device, sw_field_number(e, "step_time_s"), text);
}

/* May devices compute with old values of a variable? */
static bool is_any_stale(const json_t *e)
{
	const json_t *variable;
	size_t i;
	bool any = false;
	json_array_foreach(json_object_get(e, "variables"), i, variable) {
		const json_t *stale = json_object_get(variable, "stale");
		any = any || json_is_string(stale) || json_integer_value(stale) > 0;
	}
	return any;
}

static void print_stale(const json_t *e, sw_text *text)
{
	double stale_s = sw_field_number(e, "stale_step_s");
	if (!(stale_s > 0))
		return;
	sw_text_add(text, "stale      ");
	sw_text_add_seconds(text, stale_s);
	sw_text_add(text, is_any_stale(e)
	                          ? " from step to step in the long run, as devices go on with old "
	                            "values of variables; the step above is that without. Training "
	                            "is not that of the program\n"
	                          : " from step to step in the long run, as owners serve variables; "
	                            "the step above is that of a common program\n");
}

static void print_head(const json_t *e, sw_text *text)
{
	sw_text_addf(text, "strategy   %s", sw_field_text(e, "strategy"));
	if (strcmp(sw_field_text(e, "strategy"), "auto") == 0)
		sw_text_addf(text, " (chosen: %s)", sw_field_text(e, "chosen"));
	sw_text_addf(text, "\ncluster    %s, %lld devices; mesh", sw_field_text(e, "cluster"),
	             integer_of(e, "devices"));
	print_mesh(e, text);
	print_rewrites(e, text);
	sw_text_add(text, "\nstep       ");
	sw_text_add_seconds(text, sw_field_number(e, "step_time_s"));
	sw_text_add(text, " predicted");
	print_interval(e, text);
	sw_text_add(text, "; ");
	sw_text_add_seconds(text, sw_field_number(e, "compute_s") +
	                                  sw_field_number(e, "communication_s"));
	sw_text_add(text, " without overlap: ");
	sw_text_add_seconds(text, sw_field_number(e, "compute_s"));
	sw_text_add(text, " compute + ");
	sw_text_add_seconds(text, sw_field_number(e, "communication_s"));
	sw_text_addf(text, " communication in %lld collectives\n", integer_of(e, "collectives"));
	print_stale(e, text);
	sw_text_add(text, "payload    ");
	sw_text_add_bytes(text, sw_field_number(e, "payload_bytes"));
	sw_text_addf(text, " (%lld bytes) per step and rank\n", integer_of(e, "payload_bytes"));
	if (json_object_get(e, "served_payload_bytes")) {
		sw_text_add(text, "served     ");
		sw_text_add_bytes(text, sw_field_number(e, "served_payload_bytes"));
		sw_text_addf(text,
		             " (%lld bytes) per step of terms, values, digests and collectives, "
		             "from the rank that sends most\n",
		             integer_of(e, "served_payload_bytes"));
	}
	sw_text_add(text, "memory     ");
	sw_text_add_bytes(text, sw_field_number(e, "peak_bytes"));
	sw_text_add(text, " at the peak, per device\n");
	print_gathers(e, text);
	print_gap(e, text);
	sw_text_add(text, "\n");
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* The parts of a block's line, in the order of a step. */
static const struct {
	const char *heading, *key, *before;
} LINE_PARTS[] = {
	{"forward", "split", ""},
	{"", "result", "result "},
	{"backward", "backward_split", ""},
	{"", "backward_result", "result "},
	{"weight", "at_rest", "at rest "},
	{"", "gathered_forward", "forward: "},
	{"", "gathered_backward", "backward: "},
	{"", "gathered_update", "update: "},
	{"", "moments", "optimizer state "},
	{"gradient", "gradient", ""},
	{"gradient", "gradient_moved", ""},
	{"update", "update_moved", ""},
};

static void print_line(const json_t *line, sw_text *text)
{
	sw_text_addf(text, "  %s  %s %s", sw_field_text(line, "name"), sw_field_text(line, "op"),
	             sw_field_text(line, "operands"));
	if (integer_of(line, "count") > 1)
		sw_text_addf(text, " (%lld times)", integer_of(line, "count"));
	for (size_t i = 0; i < SW_COUNT(LINE_PARTS); i++) {
		const char *words = sw_field_text(line, LINE_PARTS[i].key);
		if (words[0] && LINE_PARTS[i].heading[0])
			sw_text_addf(text, "\n    %-9s %s%s", LINE_PARTS[i].heading,
			             LINE_PARTS[i].before, words);
		else if (words[0])
			sw_text_addf(text, "; %s%s", LINE_PARTS[i].before, words);
	}
	sw_text_add(text, "\n");
}

static void print_block(const json_t *block, bool whole, sw_text *text)
{
	const json_t *members = json_object_get(block, "members"),
		     *lines = json_object_get(block, "lines"), *axis;
	size_t n = json_array_size(members), shown = sw_count_shown(lines, whole), i;
	if (n > 1)
		sw_text_addf(text, "%s, %zu alike: %s to %s", sw_field_text(block, "name"), n,
		             json_string_value(json_array_get(members, 0)),
		             json_string_value(json_array_get(members, n - 1)));
	else
		sw_text_add(text, json_string_value(json_array_get(members, 0)));
	json_array_foreach(json_object_get(block, "as"), i, axis)
		sw_text_addf(text, "%s %s over %s", i ? ";" : ":", sw_field_text(axis, "as"),
	                     sw_field_text(axis, "axis"));
	sw_text_add(text, "\n");
	for (i = 0; i < shown; i++)
		print_line(json_array_get(lines, i), text);
	sw_print_more(lines, shown, text);
	sw_text_add(text, "\n");
}

static void print_blocks(const json_t *e, bool whole, sw_text *text)
{
	const json_t *blocks = json_object_get(e, "blocks");
	size_t shown = sw_count_shown(blocks, whole);
	for (size_t i = 0; i < shown; i++)
		print_block(json_array_get(blocks, i), whole, text);
	sw_print_more(blocks, shown, text);
}

/* ---- collectives ------------------------------------------------------------------------ */

static void add_rate(sw_text *text, double bytes_per_s)
{
	sw_text_add_bytes(text, bytes_per_s);
	sw_text_add(text, "/s");
}

static void print_instead(const json_t *collective, size_t number, sw_text *text)
{
	const json_t *instead = json_object_get(collective, "instead");
	if (!instead)
		return;
	sw_text_addf(text, "  %2zu  ", number);
	if (json_is_null(instead)) {
		sw_text_add(text, "no other choice of one op avoids it\n");
		return;
	}
	add_signed(text, sw_text_add_seconds, sw_field_number(instead, "seconds"));
	sw_text_add(text, " (compute ");
	add_signed(text, sw_text_add_seconds, sw_field_number(instead, "compute_s"));
	sw_text_add(text, ", communication ");
	add_signed(text, sw_text_add_seconds, sw_field_number(instead, "communication_s"));
	sw_text_add(text, "), payload ");
	add_signed(text, sw_text_add_bytes, sw_field_number(instead, "payload_bytes"));
	sw_text_add(text, ", memory ");
	add_signed(text, sw_text_add_bytes, sw_field_number(instead, "memory_bytes"));
	sw_text_addf(text, ": %s\n", sw_field_text(instead, "choice"));
}

static void print_collectives(const json_t *e, bool whole, sw_text *text)
{
	static const char *const headings[] = {
		"", "collective", "of", "over", "count", "payload", "time", "bandwidth", "layouts"};
	const json_t *list = json_object_get(e, "communication");
	size_t shown = sw_count_shown(list, whole);
	sw_table table;
	if (json_array_size(list) == 0)
		return;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < shown; i++) {
		const json_t *c = json_array_get(list, i);
		sw_table_cell(&table, "%zu", i + 1);
		sw_table_cell(&table, "%s", sw_field_text(c, "collective"));
		sw_table_cell(&table, "%s", sw_field_text(c, "what"));
		sw_table_cell(&table, "%s", sw_field_text(c, "over"));
		sw_table_cell(&table, "%lld", integer_of(c, "count"));
		sw_table_cell_number(&table, sw_text_add_bytes,
		                     sw_field_number(c, "payload_bytes") *
		                             sw_field_number(c, "count"));
		sw_table_cell_number(&table, sw_text_add_seconds, sw_field_number(c, "seconds"));
		sw_table_cell_number(&table, add_rate, sw_field_number(c, "bandwidth"));
		sw_table_cell(&table, "%s", sw_field_text(c, "why"));
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	sw_print_more(list, shown, text);
	sw_text_add(text,
	            "\nto avoid them, by the cheapest other choice of one op each, everything else "
	            "as it is:\n");
	for (size_t i = 0; i < shown; i++)
		print_instead(json_array_get(list, i), i + 1, text);
	sw_text_add(text, "\n");
}

/* ---- memory ----------------------------------------------------------------------------- */

static void memory_row(sw_table *table, const char *name, const char *kind, long long count,
                       double bytes)
{
	sw_table_cell(table, "%s", name);
	sw_table_cell(table, "%s", kind);
	sw_table_cell(table, count > 0 ? "%lld" : "", count);
	sw_table_cell_number(table, sw_text_add_bytes, bytes);
}

static void print_memory(const json_t *e, bool whole, sw_text *text)
{
	static const char *const headings[] = {"tensor", "what it is", "count", "per device"};
	const json_t *memory = json_object_get(e, "memory"),
		     *list = json_object_get(memory, "tensors");
	size_t shown = sw_count_shown(list, whole);
	double others = 0;
	sw_table table;
	sw_text_add(text, "memory at its peak, ");
	sw_text_add_bytes(text, sw_field_number(memory, "peak_bytes"));
	sw_text_addf(text, " (%lld bytes), in the %s pass at: %s\n",
	             integer_of(memory, "peak_bytes"), sw_field_text(memory, "phase"),
	             sw_field_text(memory, "program_point"));
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *t = json_array_get(list, i);
		if (i < shown)
			memory_row(&table, sw_field_text(t, "name"), sw_field_text(t, "kind"),
			           integer_of(t, "count"), sw_field_number(t, "bytes"));
		else
			others += sw_field_number(t, "bytes");
	}
	if (json_array_size(list) > shown)
		memory_row(&table, "others", "-v shows them",
		           (long long)(json_array_size(list) - shown), others);
	memory_row(&table, "unused", "between buffers", 0, sw_field_number(memory, "unused_bytes"));
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	sw_text_add(text, "\n");
}

/* ---- alternatives ----------------------------------------------------------------------- */

static void add_most_seconds(sw_text *text, double seconds)
{
	sw_text_add(text, "<= ");
	sw_text_add_seconds(text, seconds);
}

static sw_text_add_number *adder(const json_t *a, size_t key)
{
	if (key == 0 && json_is_true(json_object_get(a, "at_most")))
		return add_most_seconds;
	return key < 3 ? sw_text_add_seconds : sw_text_add_bytes;
}

static void print_alternative(sw_table *table, const json_t *a, const char *chosen)
{
	static const char *const keys[] = {"step_time_s", "compute_s", "communication_s",
	                                   "payload_bytes", "peak_bytes"};
	bool feasible = json_is_true(json_object_get(a, "feasible"));
	const char *untried = sw_field_text(a, "untried");
	sw_table_cell(table, "%s", sw_field_text(a, "name"));
	for (size_t k = 0; k < SW_COUNT(keys); k++) {
		bool shown = feasible || (k == 4 && sw_field_number(a, keys[k]) > 0);
		if (shown)
			sw_table_cell_number(table, adder(a, k), sw_field_number(a, keys[k]));
		else
			sw_table_cell(table, "-");
	}
	sw_text remark = {0};
	if (sw_field_number(a, "bound_s") > 0) {
		sw_text_addf(&remark, "pruned: %sat least ",
		             strstr(untried, "model") ? "by the model " : "");
		sw_text_add_seconds(&remark, sw_field_number(a, "bound_s"));
	} else if (!strcmp(untried, sw_untried_word(SW_UNTRIED_CUT)))
		sw_text_add(&remark, "slower: scheduled in part");
	else if (untried[0])
		sw_text_addf(&remark, "not tried: %s", untried);
	else if (!feasible)
		sw_text_add(&remark, "does not fit in memory");
	else if (strcmp(sw_field_text(a, "name"), chosen) == 0)
		sw_text_add(&remark, "chosen");
	sw_table_cell(table, "%s", remark.len ? remark.data : "");
	sw_text_clear(&remark);
}

static void print_alternatives(const json_t *e, sw_text *text)
{
	static const char *const headings[] = {"considered", "step",   "compute", "communication",
	                                       "payload",    "memory", ""};
	const json_t *list = json_object_get(e, "alternatives"), *a;
	size_t i;
	sw_table table;
	if (json_array_size(list) == 0)
		return;
	sw_table_init(&table, SW_COUNT(headings), headings);
	json_array_foreach(list, i, a) print_alternative(&table, a, sw_field_text(e, "chosen"));
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

void sw_plan_explain_print(const json_t *e, bool whole_tables, sw_text *text)
{
	const json_t *warning;
	size_t i;
	print_head(e, text);
	sw_explain_variables_print(json_object_get(e, "variables"), whole_tables, text);
	sw_explain_owners_print(json_object_get(e, "owners"), text);
	print_blocks(e, whole_tables, text);
	print_collectives(e, whole_tables, text);
	print_memory(e, whole_tables, text);
	print_alternatives(e, text);
	sw_explain_grids_print(e, text);
	json_array_foreach(json_object_get(e, "warnings"), i, warning) sw_text_addf(
		text, "%swarning: %s\n", i == 0 ? "\n" : "", json_string_value(warning));
}
