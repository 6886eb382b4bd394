/*
 * When nothing fits in memory: the tensors at the peak of the plan that needs least memory, and the
 * changes that would help.
 *
 * Changes are found by planning again, with one thing changed at a time by the smallest step that
 * suffices: rematerialisation or microbatches where they were ruled out, then more devices, doubled
 * at most three times, without numbers on which the program's even share is larger than the memory.
 * Each of these searches ends with the first plan that fits, and is limited by --time-limit, or else
 * by the time of the first search.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include "search/search.h"

/* rows that are printed; tensors in the JSON object */
#define MAX_PRINTED_TENSORS 12
#define MAX_JSON_TENSORS 100
#define MAX_DOUBLINGS 3
/* Time limit of a search for a remedy: a multiple of the time of the first search, and at least
 * this many seconds. */
#define SEARCH_TIME_FACTOR 1.0
#define MIN_SEARCH_SECONDS 10.0

/* ---- tensors at the peak ---------------------------------------------------------------- */

typedef struct tensor {
	const char *name;
	sw_shape shape;     /* of each device's part */
	const char *layout; /* NULL: the partition introduced it */
	int64_t bytes;
} tensor;

typedef SW_VEC(tensor) tensors;

static int by_bytes(const void *a, const void *b)
{
	const tensor *x = a, *y = b;
	int order = (x->bytes < y->bytes) - (x->bytes > y->bytes);
	return order ? order : strcmp(x->name, y->name);
}

static void index_ops(const sw_program *program, sw_map *ops)
{
	for (sw_id id = 0; id < program->ops.len; id++)
		sw_map_put(ops, program->ops.data[id].name, strlen(program->ops.data[id].name), id);
}

/* Return the layout in which the plan's op of the same name produces this result, or NULL. */
static const char *layout_of(const sw_plan *plan, const sw_map *ops, const sw_op *local,
                             uint32_t index, sw_arena *arena)
{
	uint32_t id = sw_map_get(ops, local->name, strlen(local->name));
	sw_text text = {0};
	if (id == SW_ABSENT || index >= sw_op_at(plan->program, id)->n_results)
		return NULL;
	sw_id value = sw_op_at(plan->program, id)->first_result + index;
	sw_layout_print(&plan->cluster->atoms, sw_value_shape(plan->program, value),
	                sw_plan_layout(plan, plan->produced[value]), &text);
	const char *layout = sw_arena_text(arena, text.data ? text.data : "");
	sw_text_clear(&text);
	return layout;
}

/* Index the entry inputs by value, for their names in the sidecar. */
static void name_inputs(const sw_program *local, const sw_sidecar *sidecar, sw_map *names,
                        sw_arena *arena)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(local, local->entry, arena, &inputs);
	for (uint32_t i = 0; i < n && i < sidecar->n_inputs; i++)
		sw_map_put(names, &inputs[i], sizeof(inputs[i]), i);
}

static void list_tensors(const sw_plan *plan, const sw_program *local, const sw_sidecar *sidecar,
                         const sw_peak *peak, sw_arena *arena, tensors *list)
{
	sw_map ops = {0}, names = {0};
	index_ops(plan->program, &ops);
	name_inputs(local, sidecar, &names, arena);
	for (size_t i = 0; i < peak->values.len; i++) {
		sw_id value = peak->values.data[i];
		const sw_value *v = &local->values.data[value];
		const sw_op *op = sw_op_at(local, v->op);
		uint32_t input = sw_map_get(&names, &value, sizeof(value));
		tensor t = {.name = input == SW_ABSENT ? op->name : sidecar->inputs[input].name,
		            .shape = v->shape,
		            .layout = layout_of(plan, &ops, op, v->index, arena),
		            .bytes = sw_shape_bytes(v->shape)};
		sw_vec_push(list, t);
	}
	qsort(list->data, list->len, sizeof(tensor), by_bytes);
	sw_map_clear(&ops);
	sw_map_clear(&names);
}

static void print_tensors(const tensors *list, sw_text *text)
{
	static const char *const headings[] = {"at the peak", "per device", "on each device",
	                                       "layout"};
	sw_table table;
	sw_text cell = {0};
	double rest = 0;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < list->len; i++) {
		const tensor *t = &list->data[i];
		if (i >= MAX_PRINTED_TENSORS) {
			rest += (double)t->bytes;
			continue;
		}
		sw_table_cell(&table, "%s", t->name);
		sw_table_cell_number(&table, sw_text_add_bytes, (double)t->bytes);
		sw_text_clear(&cell);
		sw_shape_print(t->shape, &cell);
		sw_table_cell(&table, "%s", cell.data);
		sw_table_cell(&table, "%s", t->layout ? t->layout : "moved");
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	sw_text_clear(&cell);
	if (rest > 0) {
		sw_text_addf(text, "and %zu more, ", list->len - MAX_PRINTED_TENSORS);
		sw_text_add_bytes(text, rest);
		sw_text_add(text, "\n");
	}
}

static json_t *tensors_json(const tensors *list)
{
	json_t *array = json_array();
	for (size_t i = 0; i < list->len && i < MAX_JSON_TENSORS; i++) {
		const tensor *t = &list->data[i];
		sw_text shape = {0};
		sw_shape_print(t->shape, &shape);
		json_t *entry = json_pack("{s:s, s:s, s:I}", "name", t->name, "shape", shape.data,
		                          "bytes", (json_int_t)t->bytes);
		json_object_set_new(entry, "layout",
		                    t->layout ? json_string(t->layout) : json_null());
		json_array_append_new(array, entry);
		sw_text_clear(&shape);
	}
	return array;
}

static sw_status describe_peak(cli *c, const sw_plan *least, const sw_sidecar *sidecar,
                               json_t *json, sw_text *text, sw_error *err)
{
	sw_program *local;
	sw_peak peak;
	tensors list = {0};
	sw_sidecar own = {0};
	if (least->undivided) {
		SW_TRY(sw_plan_sidecar(least, sidecar, &own, err));
		sidecar = &own;
	}
	sw_status status = sw_partition(least, &local, err);
	if (status != SW_OK) {
		sw_sidecar_clear(&own);
		return status;
	}
	sw_peak_init(&peak, local);
	list_tensors(least, local, sidecar, &peak, &c->arena, &list);
	const char *op = peak.op == SW_NO_ID ? "" : sw_op_at(local, peak.op)->name;
	sw_text_addf(
		text,
		"The plan that needs least: %s. Its memory is fullest at '%s', by liveness:\n\n",
		least->chosen, op);
	print_tensors(&list, text);
	json_object_set_new(json, "plan", json_string(least->chosen));
	json_object_set_new(json, "peak_bytes", json_integer(least->predicted.peak_bytes));
	json_object_set_new(json, "op", json_string(op));
	json_object_set_new(json, "tensors", tensors_json(&list));
	sw_vec_clear(&list);
	sw_peak_clear(&peak);
	sw_program_free(local);
	sw_sidecar_clear(&own);
	return SW_OK;
}

/* ---- changes that would help ------------------------------------------------------------ */

typedef struct remedy_search {
	cli *c;
	const sw_program *program;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_plan_options *options;
	int64_t memory;      /* bytes per device */
	int64_t least_share; /* bytes per device that the program takes at least; 0: not known */
	double seconds;      /* time limit of each search */
	json_t *json;
	sw_text *text;
} remedy_search;

static void add_line(const remedy_search *h, const char *what, const char *value,
                     const sw_plan *plan)
{
	json_t *entry = json_pack("{s:s, s:s}", "change", what, "to", value);
	sw_text_addf(h->text, "  %-18s %s", what, value);
	if (plan) {
		json_object_set_new(entry, "peak_bytes", json_integer(plan->predicted.peak_bytes));
		json_object_set_new(entry, "step_time_s", json_real(plan->predicted.step_time_s));
		json_object_set_new(entry, "chosen", json_string(plan->chosen));
		sw_text_addf(h->text, ": %s, ", plan->chosen);
		sw_text_add_bytes(h->text, (double)plan->predicted.peak_bytes);
		sw_text_add(h->text, " per device");
	}
	sw_text_add(h->text, "\n");
	json_array_append_new(h->json, entry);
}

/* Plan with these options. NULL if no plan is found within the time limit. */
static sw_plan *plan_again(const remedy_search *h, const sw_cluster *cluster,
                           sw_plan_options options)
{
	sw_plan *plan = NULL;
	sw_error ignored = {0};
	options.least = NULL;
	options.least_share = NULL;
	options.any = true;
	options.time_limit_s = h->seconds;
	sw_plan_make(h->program, h->c->argument, h->sidecar, cluster, &options, &plan, &ignored);
	return plan;
}

static void try_rewrites(const remedy_search *h)
{
	sw_plan_options options = *h->options;
	sw_plan *plan = NULL;
	if (options.microbatches > 0) {
		options.microbatches = 0;
		plan = plan_again(h, h->cluster, options);
		if (plan) {
			char value[32];
			snprintf(value, sizeof(value), "%d", plan->rewrites.microbatches);
			add_line(h, "--microbatches", value, plan);
		}
		sw_plan_free(plan);
	}
	options = *h->options;
	if (options.remat) {
		options.remat = NULL;
		plan = plan_again(h, h->cluster, options);
		if (plan && plan->rewrites.remat)
			add_line(h, "--remat", plan->rewrites.remat, plan);
		sw_plan_free(plan);
	}
}

/* Multiply the number of parts of the outermost level by `factor`. False if those parts are
 * unequal. */
static bool enlarge(const sw_cluster *cluster, int64_t factor, sw_cluster *larger)
{
	sw_cluster copy = *cluster;
	sw_text text = {0};
	sw_error ignored = {0};
	int32_t outermost = 0;
	while (outermost + 1 < copy.n_levels && copy.levels[outermost].count == 1)
		outermost++;
	copy.levels[outermost].count *= factor;
	/* the figures were measured on another number of devices */
	copy.calibration = (sw_calibration){0};
	if (copy.levels[outermost].count == 0 || copy.levels[outermost].part_bandwidth)
		return false;
	sw_cluster_print(&copy, &text);
	bool made =
		sw_cluster_parse(text.data, text.len, "more devices", larger, &ignored) == SW_OK;
	sw_text_clear(&text);
	return made;
}

static void try_devices(const remedy_search *h)
{
	bool found = false;
	for (int i = 1; i <= MAX_DOUBLINGS && !found; i++) {
		sw_cluster larger;
		char value[32];
		if (h->least_share >> i > h->memory)
			continue;
		if (!enlarge(h->cluster, INT64_C(1) << i, &larger))
			return;
		sw_plan *plan = plan_again(h, &larger, *h->options);
		found = plan != NULL;
		snprintf(value, sizeof(value), "%lld", (long long)larger.n_devices);
		if (found)
			add_line(h, "devices", value, plan);
		sw_plan_free(plan);
		sw_cluster_clear(&larger);
	}
	if (!found)
		sw_text_addf(h->text, "  %-18s up to %lld: no plan that fits was found\n",
		             "devices", (long long)h->cluster->n_devices << MAX_DOUBLINGS);
}

static void report_memory(const remedy_search *h, const sw_plan *least)
{
	char value[32];
	snprintf(value, sizeof(value), "%lld", (long long)least->predicted.peak_bytes);
	add_line(h, "--memory", value, least);
}

/* A microbatch needs as much memory as a batch of its size, and the sums of gradients besides, so
 * the least plan is an estimate of the memory that a smaller batch would need. */
static void report_batch(const remedy_search *h, const sw_plan *least)
{
	if (h->options->microbatches == 0)
		sw_text_addf(h->text,
		             "  %-18s of fewer samples hardly helps: the plan above already "
		             "runs it in %d microbatch%s (an estimate)\n",
		             "a batch", SW_MAX(least->rewrites.microbatches, 1),
		             least->rewrites.microbatches > 1 ? "es" : "");
}

static void note_search(const remedy_search *h)
{
	sw_text line = {0};
	sw_text_add(&line, "nothing fits in ");
	sw_text_add_bytes(&line, (double)h->memory);
	if (h->least_share > h->memory) {
		sw_text_add(&line, ", at least ");
		sw_text_add_bytes(&line, (double)h->least_share);
		sw_text_add(&line, " is needed");
	}
	cli_note(h->c, "%s; looking for what would help (at most %.0f s each)", line.data,
	         h->seconds);
	sw_text_clear(&line);
}

static json_t *error_json(const sw_error *err)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:i}", "code", "no", "message", err->message, "file",
	                 "", "line", 0, "column", 0);
}

sw_status cli_plan_shortage(cli *c, const sw_program *program, const sw_sidecar *sidecar,
                            const sw_cluster *cluster, const sw_plan_options *options,
                            const sw_plan *least, double seconds, int64_t least_share,
                            sw_error *err)
{
	sw_text text = {0};
	sw_error why = {0};
	json_t *shortage = json_object();
	int64_t memory =
		options->memory_bytes > 0 ? options->memory_bytes : sw_cost_memory_bytes(&cluster->device);
	remedy_search h = {
		.c = c,
		.program = program,
		.sidecar = sidecar,
		.cluster = cluster,
		.options = options,
		.memory = memory,
		.least_share = least_share,
		.seconds = options->time_limit_s > 0
	                           ? options->time_limit_s
	                           : SW_MAX(SEARCH_TIME_FACTOR * seconds, MIN_SEARCH_SECONDS),
		.json = json_array(),
		.text = &text};
	json_object_set_new(shortage, "memory_bytes", json_integer(memory));
	json_object_set_new(shortage, "missing_bytes",
	                    json_integer(least->predicted.peak_bytes - memory));
	sw_status status = describe_peak(c, least, sidecar, shortage, &text, &why);
	if (status == SW_OK) {
		note_search(&h);
		sw_text_add(&text,
		            "\nWhat would fit, found by planning with one thing changed:\n\n");
		report_memory(&h, least);
		try_rewrites(&h);
		try_devices(&h);
		report_batch(&h, least);
		cli_print(c, &text);
	}
	json_object_set_new(shortage, "would_fit", h.json);
	c->result = json_pack("{s:o, s:o}", "error", error_json(err), "shortage", shortage);
	sw_text_clear(&text);
	return status == SW_OK ? SW_NO : status;
}
