/*
 * Slices of a program: what some of its values are made of, as a program of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

static const int64_t NOTHING[SW_MAX_RANK]; /* the sizes of inputs that are not read */

typedef struct slicer {
	const sw_program *in;
	const sw_slice *what;
	sw_program *out;
	int32_t c;
	bool *is_given, *needed; /* per value */
	sw_id *value;            /* of `in` -> of `out` */
	int32_t *computations;
} slicer;

static bool gives_needed(const slicer *x, const sw_op *op)
{
	bool gives = false;
	for (uint32_t r = 0; r < op->n_results; r++)
		gives = gives ||
		        (x->needed[op->first_result + r] && !x->is_given[op->first_result + r]);
	return gives;
}

static void find_needed(slicer *x)
{
	const sw_computation *entry = sw_entry(x->in);
	for (uint32_t i = 0; i < x->what->n_given; i++)
		x->is_given[x->what->given[i]] = true;
	for (uint32_t i = 0; i < x->what->n_results; i++)
		x->needed[x->what->results[i]] = true;
	for (size_t i = entry->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands && gives_needed(x, op); k++)
			x->needed[op->operands[k]] = true;
	}
}

static bool is_read(const slicer *x, sw_id input)
{
	return x->needed[input] && !x->is_given[input];
}

/* Write the parameters. */
static void write_inputs(slicer *x, const sw_id *leaves, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(x->in, leaves[i]);
		bool whole = x->what->keep ? x->what->keep[i] : is_read(x, leaves[i]);
		if (!whole && !x->what->keep)
			continue;
		shape = sw_build_shape(x->out, shape.type, whole ? shape.dims : NOTHING,
		                       shape.rank);
		x->value[leaves[i]] = sw_emit_parameter(x->out, x->c, shape, NULL);
	}
	for (uint32_t i = 0; i < x->what->n_given; i++) {
		sw_shape shape = sw_value_shape(x->in, x->what->given[i]);
		shape = sw_build_shape(x->out, shape.type, shape.dims, shape.rank);
		x->value[x->what->given[i]] = sw_emit_parameter(x->out, x->c, shape, NULL);
	}
}

static void copy_op(slicer *x, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id first = sw_build_copy_mapped(x->out, x->c, x->in, id, x->value, x->computations);
	for (uint32_t r = 0; r < op->n_results; r++)
		if (!x->is_given[op->first_result + r])
			x->value[op->first_result + r] = first + r;
}

static void copy_needed_computations(slicer *x)
{
	const sw_computation *entry = sw_entry(x->in);
	for (size_t c = 0; c < x->in->computations.len; c++)
		x->computations[c] = -1;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called && gives_needed(x, op); k++)
			sw_build_copy_computation(x->out, x->in, op->called[k], x->computations);
	}
}

static void write_entry(slicer *x, const sw_id *leaves, uint32_t n_leaves)
{
	const sw_computation *entry = sw_entry(x->in);
	copy_needed_computations(x);
	x->c = sw_build_computation(x->out, entry->name);
	write_inputs(x, leaves, n_leaves);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		if (op->opcode != SW_OP_PARAMETER && gives_needed(x, op))
			copy_op(x, entry->ops.data[i]);
	}
	sw_id *results = sw_alloc(sizeof(*results) * (x->what->n_results + 1));
	for (uint32_t i = 0; i < x->what->n_results; i++)
		results[i] = x->value[x->what->results[i]];
	sw_build_results(x->out, x->c, results, x->what->n_results, true);
	x->out->entry = x->c;
	free(results);
}

sw_program *sw_program_slice(const sw_program *program, const sw_slice *what, bool *reads)
{
	sw_arena arena;
	const sw_id *leaves;
	sw_arena_init(&arena);
	slicer x = {.in = program,
	            .what = what,
	            .out = sw_program_new(program->name),
	            .is_given = SW_NEW_N(&arena, bool, program->values.len + 1),
	            .needed = SW_NEW_N(&arena, bool, program->values.len + 1),
	            .value = SW_NEW_N(&arena, sw_id, program->values.len + 1),
	            .computations = SW_NEW_N(&arena, int32_t, program->computations.len + 1)};
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &leaves);
	sw_build_copy_frame(x.out, program);
	x.out->aliases.len = x.out->donors.len = x.out->paddings.len = 0;
	find_needed(&x);
	write_entry(&x, leaves, n);
	for (uint32_t i = 0; i < n && reads; i++)
		reads[i] = is_read(&x, leaves[i]);
	sw_arena_clear(&arena);
	return x.out;
}
