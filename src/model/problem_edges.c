/*
 * Edges of the problem: from the decision that makes a value to its reader, or by way of the layout
 * in which the value is materialised, where that is a choice of its own.
 */
#include "model/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables of materialised layouts ----------------------------------------------------- */

static void add_distinct(uint32_t *list, int32_t *n, sw_layout_list from)
{
	for (int32_t i = 0; i < from.n; i++) {
		uint32_t id = from.list[(uint32_t)i * from.step];
		int32_t k = 0;
		while (k < *n && list[k] != id)
			k++;
		if (k == *n)
			list[(*n)++] = id;
	}
}

/* A materialised layout is any in which the value is produced or read. */
static int32_t make_materialised_table(sw_model *m, const sw_edge_end *ends, size_t n_ends)
{
	size_t most = 0;
	for (size_t i = 0; i < n_ends; i++)
		most += (size_t)sw_layouts_at(m, ends[i]).n;
	uint32_t *list = sw_alloc(sizeof(uint32_t) * most);
	int32_t n = 0;
	for (size_t i = 0; i < n_ends; i++)
		add_distinct(list, &n, sw_layouts_at(m, ends[i]));
	sw_memo *memo = m->memo;
	sw_text key = {0};
	sw_text_add(&key, "h");
	sw_text_add_n(&key, (const char *)&n, sizeof(n));
	sw_text_add_n(&key, (const char *)list, sizeof(uint32_t) * (size_t)n);
	uint32_t next = (uint32_t)memo->tables.len;
	uint32_t number = sw_map_intern(&memo->table_index, key.data, key.len, next);
	if (number == next) {
		const uint32_t *copy =
			sw_arena_copy(&memo->arena, list, sizeof(uint32_t) * (size_t)n);
		sw_strategy_table table = {.n = n, .n_in = 1, .n_out = 1, .in = copy, .out = copy};
		sw_vec_push(&memo->tables, table);
	}
	sw_text_clear(&key);
	free(list);
	return (int32_t)number;
}

/* from: where the value comes from. */
static int32_t materialised_table(sw_model *m, sw_edge_end from, const sw_value_reader *uses,
                                  uint32_t n_uses)
{
	sw_edge_end *ends = sw_alloc(sizeof(*ends) * (n_uses + 1));
	ends[0] = from;
	for (uint32_t i = 0; i < n_uses; i++)
		ends[i + 1] = sw_end_of_reader(m, &uses[i]);
	sw_text key = {0};
	for (uint32_t i = 0; i <= n_uses; i++) {
		const uint32_t numbers[] = {(uint32_t)ends[i].table, ends[i].which, ends[i].out};
		sw_text_add_n(&key, (const char *)numbers, sizeof(numbers));
	}
	uint32_t table = sw_map_get(&m->index.materialised_tables, key.data, key.len);
	if (table == SW_ABSENT) {
		table = (uint32_t)make_materialised_table(m, ends, n_uses + 1);
		sw_map_put(&m->index.materialised_tables, key.data, key.len, table);
	}
	sw_text_clear(&key);
	free(ends);
	return (int32_t)table;
}

/* ---- edges ------------------------------------------------------------------------------ */

/* Return the op before which a reader needs a value of this computation; SW_NO_ID: at its end. */
static sw_id reading_op(const sw_model *m, int32_t computation, const sw_value_reader *use)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_decision *decision = &m->decisions.data[use->decision];
	sw_id op = decision->kind == SW_DECISION_OP ? decision->index
	           : decision->kind == SW_DECISION_BOUNDARY
	                   ? roles->boundaries.data[decision->index].region
	                   : SW_NO_ID;
	bool here = op != SW_NO_ID && sw_op_at(roles->program, op)->computation == computation;
	return here ? op : SW_NO_ID;
}

/* Constants are mostly the neutral element of the sum that they are added to. */
static bool is_constant(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	while (op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_RESHAPE)
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	return op->opcode == SW_OP_CONSTANT;
}

/* Round windows down to powers of two, so that there are few cost tables. */
static double round_window(double seconds)
{
	int exponent;
	return seconds > 0 && frexp(seconds, &exponent) > 0 ? ldexp(0.5, exponent) : 0;
}

/* Describe the conversion of a value for this reader; use NULL: for all readers. */
static sw_movement move_value(const sw_model *m, sw_id value, double trips,
                              const sw_value_reader *use)
{
	const sw_analysis *analysis = m->analysis;
	sw_id from = analysis->program->values.data[value].op;
	sw_id to = use ? reading_op(m, sw_op_at(analysis->program, from)->computation, use) : from;
	double window_s = analysis->overlap ? sw_overlap_window_s(analysis->overlap, from, to) : 0;
	double term_s = is_constant(analysis->program, value)
	                        ? 0
	                        : analysis->cluster->device.kernel_overhead_s;
	return (sw_movement){.trips = trips,
	                     .window_s = round_window(window_s),
	                     .price = analysis->prices ? sw_message_price(analysis, from, to)
	                                               : m->overlap_weight,
	                     .count = 1,
	                     .term_s = term_s,
	                     .made = sw_repeats_number(analysis->program,
	                                               sw_op_at(analysis->program, from))};
}

/* Merge edges between the same nodes that have the same conversion and equal movements. */
static void add_edge(sw_model *m, int32_t from, int32_t to, sw_shape shape, sw_movement movement,
                     sw_edge_end a, sw_edge_end b)
{
	struct {
		uint64_t from, to, conversion;
		sw_movement movement;
	} key = {(uint64_t)from, (uint64_t)to, sw_conversion_between(m, shape, a, b), movement};
	uint32_t fresh = (uint32_t)m->index.edges.len;
	uint32_t number = sw_map_intern(&m->index.edge_index, &key, sizeof(key), fresh);
	if (number == fresh)
		sw_vec_push(&m->index.edges,
		            ((sw_model_edge){from, to, (uint32_t)key.conversion, movement}));
	else
		m->index.edges.data[number].movement.count++;
}

/* What readers get a value from: the decision that makes it, or the layout in which it is kept. */
typedef struct value_source {
	int32_t node;
	sw_edge_end end;
} value_source;

/* Let the value be kept in a layout of its own for these readers. */
static value_source add_kept(sw_model *m, sw_id value, sw_kept kept, value_source from,
                             const sw_readers *r, uint32_t first_use, uint32_t n_uses)
{
	const sw_program *program = m->analysis->program;
	double trips = m->analysis->roles.trips[program->values.data[value].op];
	sw_movement movement = move_value(m, value, trips, NULL);
	sw_materialised materialised = {
		.value = value,
		.kept = kept,
		.table = materialised_table(m, from.end, r->list + first_use, n_uses),
		.first_use = first_use,
		.n_uses = n_uses};
	sw_tie_key tie = sw_tie_of_materialised(m, &materialised);
	materialised.node = sw_model_node_of(m, &tie);
	movement.rests = kept == SW_KEPT_AT_REST;
	add_edge(m, from.node, materialised.node, sw_value_shape(program, value), movement, from.end,
	         (sw_edge_end){materialised.table, 0, false});
	uint32_t number = (uint32_t)m->materialised.len;
	if (kept == SW_KEPT)
		m->index.materialised_of[value] = number;
	if (kept == SW_KEPT_AT_REST)
		m->index.rest_of[value] = number;
	sw_vec_push(&m->materialised, materialised);
	return (value_source){materialised.node, {materialised.table, 0, true}};
}

/* Is it a choice of its own in which layout the value is kept? It is where several ops read it; and
 * where it may be partial and its reader is not the next op, since it would be reduced while it
 * waits, unless it is at rest already. */
static bool wants_materialised(const sw_model *m, sw_id value, const sw_value_reader *uses,
                               uint32_t n_uses)
{
	const sw_analysis *analysis = m->analysis;
	bool waits =
		uses->point > analysis->roles.point[analysis->program->values.data[value].op] + 1;
	bool rests = m->index.rest_of[value] != SW_NO_ID;
	return n_uses > 1 || (waits && analysis->classes.partial[value] != 0 && !rests);
}

/* Let these readers get the value from there, or from a layout in which it is kept for them. */
static void add_reads(sw_model *m, sw_id value, sw_kept kept, value_source from, const sw_readers *r,
                      uint32_t first_use, uint32_t n_uses)
{
	const sw_value_reader *uses = r->list + first_use;
	if (n_uses > 0 && wants_materialised(m, value, uses, n_uses))
		from = add_kept(m, value, kept, from, r, first_use, n_uses);
	for (uint32_t i = 0; i < n_uses; i++)
		add_edge(m, from.node, m->decisions.data[uses[i].decision].node,
		         sw_value_shape(m->analysis->program, value),
		         move_value(m, value, uses[i].trips, &uses[i]), from.end,
		         sw_end_of_reader(m, &uses[i]));
}

static bool is_later(const sw_model *m, const sw_value_reader *use)
{
	const sw_decision *decision = &m->decisions.data[use->decision];
	return decision->kind == SW_DECISION_OP && m->analysis->is_later[decision->index];
}

/* Move those of the later pass behind the others, and return how many others there are. */
static uint32_t part_by_pass(const sw_model *m, sw_id value, sw_value_reader *uses, uint32_t n)
{
	const sw_analysis *a = m->analysis;
	uint32_t earlier = 0;
	if (!a->is_later || !a->is_handed_on[value])
		return n;
	for (uint32_t i = 0; i < n; i++)
		if (!is_later(m, &uses[i])) {
			sw_value_reader use = uses[i];
			memmove(&uses[earlier + 1], &uses[earlier], sizeof(use) * (i - earlier));
			uses[earlier++] = use;
		}
	return earlier;
}

void sw_find_edges(sw_model *m, sw_readers *r)
{
	const sw_program *program = m->analysis->program;
	for (sw_id v = 0; v < program->values.len; v++) {
		uint32_t first = r->start[v], n = r->start[v + 1] - first;
		if (n == 0)
			continue;
		value_source from = {m->decisions.data[m->index.producer[v]].node,
		                     sw_end_of_producer(m, v)};
		uint32_t earlier = part_by_pass(m, v, r->list + first, n);
		if (earlier < n && m->analysis->classes.partial[v] != 0)
			from = add_kept(m, v, SW_KEPT_AT_REST, from, r, first, n);
		add_reads(m, v, SW_KEPT, from, r, first, earlier);
		add_reads(m, v, SW_KEPT_LATER, from, r, first + earlier, n - earlier);
	}
}
