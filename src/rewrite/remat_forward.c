/*
 * Rematerialisation: which ops are forward. The forward pass is found backwards from the new values
 * of trained state: gradients are computed from the loss down to the first layer, so that an op
 * from which all gradients can be reached comes before the first of them.
 */
#include "rewrite/remat_points.h"

#include <string.h>

/* A state is trained if the last gradient depends on it, and if the number of ops that it needs is
 * at least this fraction (1 / n) of the largest number: a gradient that is a constant does not show
 * where the forward pass ends. */
#define TRAINED_FRACTION 8

static bool is_float(sw_shape shape)
{
	return sw_type_kind_of(shape.type) == SW_KIND_FLOAT;
}

/* Add the states that can be reached through the op's results that are more than one number. */
static void add_reach(const sw_point_finder *f, const sw_op *op, uint64_t *reach)
{
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		if (sw_shape_elements(sw_value_shape(f->program, value)) <= 1)
			continue;
		for (size_t w = 0; w < f->words; w++)
			reach[w] |= f->reach[value * f->words + w];
	}
}

static void find_reach(sw_point_finder *f)
{
	const sw_program *p = f->program;
	f->words = (p->aliases.len + 63) / 64;
	f->reach = SW_NEW_N(f->arena, uint64_t, (p->values.len + 1) * f->words);
	uint64_t *of_op = SW_NEW_N(f->arena, uint64_t, f->words + 1);
	for (size_t a = 0; a < p->aliases.len; a++) {
		sw_id output = f->entry->results.data[p->aliases.data[a].output];
		if (is_float(sw_value_shape(p, output)))
			f->reach[output * f->words + a / 64] |= (uint64_t)1 << (a % 64);
	}
	for (size_t i = f->entry->ops.len; i-- > 0;) {
		const sw_op *op = sw_entry_op(f, i);
		memset(of_op, 0, sizeof(*of_op) * f->words);
		add_reach(f, op, of_op);
		for (uint32_t k = 0; k < op->n_operands; k++)
			for (size_t w = 0; w < f->words; w++)
				f->reach[op->operands[k] * f->words + w] |= of_op[w];
	}
}

/* Count, for each state, the ops that its new value needs. */
static int32_t *count_ancestors(const sw_point_finder *f)
{
	int32_t *count = SW_NEW_N(f->arena, int32_t, f->program->aliases.len + 1);
	uint64_t *of_op = SW_NEW_N(f->arena, uint64_t, f->words + 1);
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		memset(of_op, 0, sizeof(*of_op) * f->words);
		add_reach(f, sw_entry_op(f, i), of_op);
		for (size_t a = 0; a < f->program->aliases.len; a++)
			count[a] += (int32_t)(of_op[a / 64] >> (a % 64) & 1);
	}
	return count;
}

static bool reaches(const sw_point_finder *f, sw_id value, size_t state)
{
	return f->reach[value * f->words + state / 64] >> (state % 64) & 1;
}

/* Mark the CHAIN of cotangents, down to the last gradient. */
static void mark_chain(const sw_point_finder *f, size_t deepest)
{
	for (sw_id v = 0; v < f->program->values.len; v++)
		if (sw_shape_elements(sw_value_shape(f->program, v)) > 1 && reaches(f, v, deepest))
			f->chain[f->program->values.data[v].op] = true;
}

/* Mark the trained states, which every forward op must reach; return false if there are none. */
static bool mark_trained(const sw_point_finder *f, const sw_id *inputs, uint64_t *trained)
{
	const int32_t *count = count_ancestors(f);
	size_t n = f->program->aliases.len, deepest = 0;
	bool any = false;
	for (size_t a = 1; a < n; a++)
		if (count[a] > count[deepest])
			deepest = a;
	mark_chain(f, deepest);
	for (size_t a = 0; a < n; a++) {
		sw_id input = inputs[f->program->aliases.data[a].input];
		if (count[a] <= 1 || count[a] < count[deepest] / TRAINED_FRACTION ||
		    !reaches(f, input, deepest))
			continue;
		trained[a / 64] |= (uint64_t)1 << (a % 64);
		any = true;
	}
	return any;
}

bool sw_find_forward(sw_point_finder *f, const sw_id *inputs)
{
	if (f->program->aliases.len == 0)
		return false;
	find_reach(f);
	uint64_t *trained = SW_NEW_N(f->arena, uint64_t, f->words + 1),
		 *of_op = SW_NEW_N(f->arena, uint64_t, f->words + 1);
	if (!mark_trained(f, inputs, trained))
		return false;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		bool all = true;
		memset(of_op, 0, sizeof(*of_op) * f->words);
		add_reach(f, sw_entry_op(f, i), of_op);
		for (size_t w = 0; w < f->words; w++)
			all &= (of_op[w] & trained[w]) == trained[w];
		f->forward[f->entry->ops.data[i]] = all;
	}
	return true;
}
