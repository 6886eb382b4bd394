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

static int32_t first_use(const sw_value_reader *uses, uint32_t n, int32_t begin, int32_t end)
{
	int32_t first = end;
	for (uint32_t i = 0; i < n; i++)
		first = SW_MIN(first, SW_MAX(uses[i].point, begin));
	return first;
}

static int32_t last_use(const sw_value_reader *uses, uint32_t n, int32_t begin)
{
	int32_t last = begin;
	for (uint32_t i = 0; i < n; i++)
		last = SW_MAX(last, uses[i].point);
	return last;
}

/* Return the point at which a value is converted for these readers: for results of ops when they are
 * produced, for inputs and values of boundaries when they are first read. */
static int32_t conversion_point(const sw_model *m, sw_id value, const sw_value_reader *uses,
                                uint32_t n, int32_t begin, int32_t end)
{
	if (m->decisions.data[m->index.producer[value]].kind == SW_DECISION_OP)
		return begin;
	return first_use(uses, n, begin, end);
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

/* Add the span of a value that is kept for all its n readers, or for some of them. */
static void add_kept_span(sw_model *m, const sw_materialised *kept, const sw_readers *r)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_value_reader *uses = r->list + kept->first_use;
	sw_id v = kept->value;
	bool all = kept->n_uses == r->start[v + 1] - r->start[v];
	int32_t birth = birth_point(roles, v), end = roles->last_use[v];
	int32_t begin = kept->kept == SW_KEPT_LATER
	                        ? first_use(uses, kept->n_uses, birth, end)
	                        : SW_MIN(conversion_point(m, v, uses, kept->n_uses, birth, end) + 1, end);
	if (!all)
		end = SW_MIN(last_use(uses, kept->n_uses, birth) + 1, end);
	add_span(m, kept->node, v, sw_layouts_at(m, (sw_edge_end){kept->table, 0, false}), begin, end);
}

/* Is the value, as it is produced, converted at once for all its readers? */
static bool is_converted(const sw_model *m, sw_id value, uint32_t n_readers)
{
	uint32_t number = m->index.rest_of[value];
	if (number == SW_NO_ID)
		number = m->index.materialised_of[value];
	return number != SW_NO_ID && m->materialised.data[number].n_uses == n_readers;
}

void sw_add_value_spans(sw_model *m, const sw_readers *r)
{
	const sw_roles *roles = &m->analysis->roles;
	const sw_program *program = m->analysis->program;
	size_t next = 0; /* of what is kept, which is listed by value */
	for (sw_id v = 0; v < program->values.len; v++) {
		size_t first = next;
		while (next < m->materialised.len && m->materialised.data[next].value == v)
			next++;
		bool buffered = !roles->stored || roles->stored[v];
		if (m->index.producer[v] == SW_NO_ID || roles->in_place[v] || !buffered ||
		    (double)sw_shape_bytes(sw_value_shape(program, v)) <=
		            m->analysis->limits->min_span_bytes)
			continue;
		uint32_t n = r->start[v + 1] - r->start[v];
		int32_t begin = birth_point(roles, v), end = roles->last_use[v];
		int32_t converted = conversion_point(m, v, r->list + r->start[v], n, begin, end);
		add_span(m, m->decisions.data[m->index.producer[v]].node, v,
		         sw_layouts_at(m, sw_end_of_producer(m, v)), begin,
		         is_converted(m, v, n) ? SW_MIN(converted + 1, end) : end);
		for (size_t i = first; i < next; i++)
			add_kept_span(m, &m->materialised.data[i], r);
	}
}
