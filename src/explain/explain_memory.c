/* The tensors that fill a device's memory at its peak, by their purpose, and the program point of
 * the peak. */
#include "explain/internal.h"

#include <stdlib.h>
#include <string.h>

#include "fuse/fuse.h"
#include "interpret/interpret.h"

typedef struct memory_table {
	sw_anatomy *a;
	const sw_explained *what;
	sw_users users; /* of the local program */
	/* the program that runs, cut into kernels, and the local value that each of its values is
	 */
	sw_program *run;
	sw_id *local_of;
	sw_arena arena;
	sw_map index; /* label -> line */
	json_t *lines;
} memory_table;

/* Is the local value, or a view of it, read in a later pass than the one that produces it? */
static bool is_read_later(const memory_table *h, sw_id value, int depth)
{
	for (uint32_t u = h->users.start[value]; u < h->users.start[value + 1]; u++) {
		const sw_op *op = sw_op_at(h->what->local, h->users.ops[u]);
		const sw_origin *o = sw_origin_of(h->what->origins, h->users.ops[u]);
		if (o && o->op != SW_NO_ID && h->a->phase[o->op] != SW_PASS_FORWARD)
			return true;
		bool seen_through = op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST ||
		                    op->opcode == SW_OP_OPT_BARRIER;
		if (seen_through && depth > 0 && is_read_later(h, op->first_result, depth - 1))
			return true;
	}
	return false;
}

static const char *role_of_input(const sw_anatomy *a, int32_t input)
{
	switch (a->roles.input_role[input]) {
	case SW_ROLE_PARAMETER:
		return "parameter";
	case SW_ROLE_MOMENT:
		return "optimizer state";
	case SW_ROLE_DATA:
		return "data";
	case SW_ROLE_RESIDUAL:
	case SW_ROLE_SUM_RESIDUAL:
		return "residual of a codec";
	default:
		return "input";
	}
}

/* Return the value of the plan's program that a local value is, or is part of. */
static sw_id value_behind(const memory_table *h, sw_id local, const sw_origin *o)
{
	const sw_value *v = &h->what->local->values.data[local];
	if (o->value != SW_NO_ID)
		return o->value;
	if (o->op == SW_NO_ID)
		return SW_NO_ID;
	const sw_op *op = sw_op_at(h->a->program, o->op);
	bool alike = sw_op_at(h->what->local, v->op)->n_results == op->n_results;
	return op->n_results == 0 ? SW_NO_ID : op->first_result + (alike ? v->index : 0);
}

static const char *kind_of(const memory_table *h, sw_id local, sw_id value, const sw_origin *o)
{
	const sw_anatomy *a = h->a;
	sw_id op = a->program->values.data[value].op;
	bool moved = o->value != SW_NO_ID;
	if (a->input[value] >= 0 && !moved && sw_op_at(a->program, op)->opcode == SW_OP_PARAMETER)
		return role_of_input(a, a->input[value]);
	if (a->input[value] >= 0)
		return moved ? "moved for its readers" : "another form of it";
	if (a->gradient[value] >= 0)
		return a->is_update[value] ? "update" : "gradient";
	if (a->phase[op] == SW_PASS_FORWARD && is_read_later(h, local, 3))
		return "activation kept for the backward pass";
	return moved ? "moved for its readers" : "temporary";
}

static void add_tensor(memory_table *h, const char *name, const char *kind, int64_t bytes)
{
	const char *folded = sw_anatomy_fold(h->a, name),
		   *key = sw_arena_printf(&h->arena, "%s\n%s", folded, kind);
	uint32_t fresh = (uint32_t)json_array_size(h->lines);
	uint32_t line = sw_map_intern(&h->index, key, strlen(key), fresh);
	if (line == fresh)
		json_array_append_new(h->lines,
		                      json_pack("{s:s, s:s, s:i, s:I}", "name", folded, "kind",
		                                kind, "count", 0, "bytes", (json_int_t)0));
	json_t *entry = json_array_get(h->lines, line);
	json_object_set_new(entry, "count",
	                    json_integer(json_integer_value(json_object_get(entry, "count")) + 1));
	json_object_set_new(
		entry, "bytes",
		json_integer(json_integer_value(json_object_get(entry, "bytes")) + bytes));
}

/* Return the local op that an op of the running program is, or whose result it stores first. */
static sw_id local_op(const memory_table *h, sw_id run)
{
	if (!h->run)
		return run;
	const sw_op *op = sw_op_at(h->run, run);
	sw_id local = op->n_results ? h->local_of[op->first_result] : SW_NO_ID;
	return local == SW_NO_ID ? SW_NO_ID : h->what->local->values.data[local].op;
}

static void add_value(memory_table *h, sw_id run, int64_t bytes)
{
	sw_id local = h->run ? h->local_of[run] : run;
	const sw_origin *o =
		local == SW_NO_ID
			? NULL
			: sw_origin_of(h->what->origins, h->what->local->values.data[local].op);
	sw_id value = o ? value_behind(h, local, o) : SW_NO_ID;
	sw_text name = {0};
	if (value == SW_NO_ID)
		add_tensor(h, "results", "temporary", bytes); /* of a block of attention, too */
	else {
		sw_anatomy_label(h->a, value, &name);
		add_tensor(h, name.data, kind_of(h, local, value, o), bytes);
	}
	sw_text_clear(&name);
}

static const sw_origin *origin_of_op(const memory_table *h, sw_id run)
{
	sw_id local = local_op(h, run);
	return local == SW_NO_ID ? NULL : sw_origin_of(h->what->origins, local);
}

static void label_of_op(const memory_table *h, sw_id run, sw_text *text)
{
	const sw_origin *o = origin_of_op(h, run);
	sw_id value = SW_NO_ID;
	if (o && o->value != SW_NO_ID)
		value = o->value;
	else if (o && o->op != SW_NO_ID && sw_op_at(h->a->program, o->op)->n_results > 0)
		value = sw_op_at(h->a->program, o->op)->first_result;
	if (value == SW_NO_ID)
		sw_text_add(text, "the end");
	else
		sw_anatomy_label(h->a, value, text);
}

static void add_resident(memory_table *h, const sw_resident *r)
{
	sw_text name = {0};
	switch ((sw_resident_kind)r->kind) {
	case SW_RESIDENT_VALUE:
		add_value(h, r->id, r->bytes);
		break;
	case SW_RESIDENT_WORKING:
		label_of_op(h, r->id, &name);
		add_tensor(h, name.data, "workspace of its kernel", r->bytes);
		break;
	case SW_RESIDENT_CONSTANTS:
		add_tensor(h, "constants", "constant", r->bytes);
		break;
	case SW_RESIDENT_STAGED:
		add_tensor(h, "results", "moved to their layout at rest", r->bytes);
		break;
	}
	sw_text_clear(&name);
}

static int by_bytes(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	json_int_t m = json_integer_value(json_object_get(x, "bytes")),
		   n = json_integer_value(json_object_get(y, "bytes"));
	if (m != n)
		return m < n ? 1 : -1;
	int order = strcmp(json_string_value(json_object_get(x, "name")),
	                   json_string_value(json_object_get(y, "name")));
	return order ? order
	             : strcmp(json_string_value(json_object_get(x, "kind")),
	                      json_string_value(json_object_get(y, "kind")));
}

static json_t *sort_lines(json_t *lines)
{
	size_t n = json_array_size(lines);
	json_t **list = sw_alloc(sizeof(json_t *) * (n + 1)), *result = json_array();
	for (size_t i = 0; i < n; i++)
		list[i] = json_array_get(lines, i);
	qsort(list, n, sizeof(json_t *), by_bytes);
	for (size_t i = 0; i < n; i++)
		json_array_append(result, list[i]);
	free(list);
	json_decref(lines);
	return result;
}

json_t *sw_explain_memory(sw_anatomy *a, const sw_explained *what)
{
	static const char *const phases[] = {"forward", "backward", "update"};
	sw_arena_peak peak;
	sw_text at = {0};
	memory_table h = {.a = a, .what = what, .lines = json_array()};
	sw_arena_init(&h.arena);
	h.users = sw_program_users(what->local, &h.arena);
	sw_error err;
	sw_fusion device = what->plan->cluster->device.fusion;
	if (device != SW_FUSION_NONE &&
	    sw_fuse_with_origins(what->local, device, &h.run, &h.local_of, &err) != SW_OK)
		h.run = NULL;
	sw_placement_peak(h.run ? h.run : what->local, &peak);
	for (size_t i = 0; i < peak.residents.len; i++)
		add_resident(&h, &peak.residents.data[i]);
	label_of_op(&h, peak.op, &at);
	const sw_origin *o = origin_of_op(&h, peak.op);
	json_t *memory =
		json_pack("{s:I, s:I, s:s, s:s, s:o}", "peak_bytes", (json_int_t)peak.arena_bytes,
	                  "unused_bytes", (json_int_t)peak.unused_bytes, "program_point",
	                  sw_anatomy_fold(a, at.data), "phase",
	                  phases[o && o->op != SW_NO_ID ? a->phase[o->op] : SW_PASS_UPDATE],
	                  "tensors", sort_lines(h.lines));
	sw_text_clear(&at);
	sw_arena_peak_clear(&peak);
	sw_program_free(h.run);
	free(h.local_of);
	sw_map_clear(&h.index);
	sw_arena_clear(&h.arena);
	return memory;
}
