/*
 * Spans of the problem: the bytes that a value occupies from its program point to its last reader,
 * and those that local ops need while they run.
 */
#include "model/internal.h"

#include <stdlib.h>

/* What owners hold counts as if they shared it evenly, as no device has less than the mean. */
static int64_t bytes_of(const sw_model *m, sw_id value, uint32_t layout)
{
	return sw_layout_mean_bytes(&m->analysis->cluster->atoms,
	                            sw_value_shape(m->analysis->program, value),
	                            &m->memo->layouts.items.data[layout]);
}

int64_t sw_model_input_bytes(const sw_model *m)
{
	const sw_program *program = m->analysis->program;
	sw_arena arena;
	sw_arena_init(&arena);
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &inputs);
	int64_t sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (m->index.producer[inputs[i]] == SW_NO_ID)
			continue;
		sw_layout_list layouts = sw_layouts_at(m, sw_end_of_producer(m, inputs[i]));
		int64_t least = INT64_MAX;
		for (int32_t k = 0; k < layouts.n; k++)
			least = SW_MIN(least, bytes_of(m, inputs[i],
			                               layouts.list[(uint32_t)k * layouts.step]));
		sum += layouts.n > 0 ? least : 0;
	}
	sw_arena_clear(&arena);
	return sum;
}

/* Add a span of the bytes of a value per layout. A value that may alias another buffer counts only
 * the bytes beyond those of its smallest layout. */
static void add_span(sw_model *m, int32_t node, sw_id value, sw_layout_list layouts, int32_t begin,
                     int32_t end)
{
	int64_t *usage = sw_alloc(sizeof(int64_t) * (size_t)layouts.n), least = INT64_MAX;
	for (int32_t i = 0; i < layouts.n; i++) {
		usage[i] = bytes_of(m, value, layouts.list[(uint32_t)i * layouts.step]);
		least = SW_MIN(least, usage[i]);
	}
	bool shared = m->analysis->roles.alias_of[value] != SW_NO_ID;
	for (int32_t i = 0; shared && i < layouts.n; i++)
		usage[i] -= least;
	sw_problem_add_span(&m->problem, node, begin, end, usage);
	free(usage);
}

/* Return the point at which a value becomes live: 0 for entry inputs, which are there from the
 * start. */
static int32_t birth_point(const sw_roles *roles, sw_id value)
{
	const sw_program *program = roles->program;
	sw_id id = program->values.data[value].op;
	const sw_op *op = sw_op_at(program, id);
	return op->opcode == SW_OP_PARAMETER && op->computation == program->entry
	               ? 0
	               : roles->point[id];
}

/* Return the point at which a value is converted to its materialised layout: for results of ops
 * when they are produced, for inputs and values of boundaries when they are first read. */
static int32_t conversion_point(const sw_model *m, sw_id value, const sw_readers *r, int32_t begin,
                                int32_t end)
{
	int32_t first = end;
	if (m->decisions.data[m->index.producer[value]].kind == SW_DECISION_OP)
		return begin;
	for (uint32_t i = r->start[value]; i < r->start[value + 1]; i++)
		first = SW_MIN(first, SW_MAX(r->list[i].point, begin));
	return first;
}

void sw_add_workspace_spans(sw_model *m)
{
	const sw_roles *roles = &m->analysis->roles;
	for (size_t s = 0; s < m->decisions.len; s++) {
		const sw_decision *decision = &m->decisions.data[s];
		const sw_strategy_table *table = &m->memo->tables.data[decision->table];
		int64_t most = 0;
		for (int32_t i = 0; table->temporary_bytes && i < table->n; i++)
			most = SW_MAX(most, table->temporary_bytes[i]);
		if ((double)most > m->analysis->limits->min_span_bytes)
			sw_problem_add_span(
				&m->problem, decision->node, roles->point[decision->index],
				roles->point[decision->index] + 1, table->temporary_bytes);
	}
}

void sw_add_value_spans(sw_model *m, const sw_readers *r)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_program *program = m->analysis->program;
	for (sw_id v = 0; v < program->values.len; v++) {
		bool buffered = !roles->stored || roles->stored[v];
		if (m->index.producer[v] == SW_NO_ID || roles->in_place[v] || !buffered ||
		    (double)sw_shape_bytes(sw_value_shape(program, v)) <=
		            m->analysis->limits->min_span_bytes)
			continue;
		int32_t begin = birth_point(roles, v), end = roles->last_use[v];
		int32_t first = conversion_point(m, v, r, begin, end);
		bool materialised = m->index.materialised_of[v] != SW_NO_ID;
		add_span(m, m->decisions.data[m->index.producer[v]].node, v,
		         sw_layouts_at(m, sw_end_of_producer(m, v)), begin,
		         materialised ? SW_MIN(first + 1, end) : end);
		if (!materialised)
			continue;
		const sw_materialised *kept = &m->materialised.data[m->index.materialised_of[v]];
		add_span(m, kept->node, v, sw_layouts_at(m, (sw_edge_end){kept->table, 0, false}),
		         SW_MIN(first + 1, end), end);
	}
}
