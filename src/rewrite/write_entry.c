/* A program whose entry is written op by op. */
#include "rewrite/internal.h"

void sw_write_copied(sw_program *out, int32_t c, const sw_program *in, sw_id id, sw_id *value,
                     int32_t *computations)
{
	const sw_op *op = sw_op_at(in, id);
	sw_id first = sw_build_copy_mapped(out, c, in, id, value, computations);
	for (uint32_t r = 0; r < op->n_results; r++)
		value[op->first_result + r] = first + r;
}

sw_program *sw_write_entry(const sw_program *in, sw_write_op_fn *write, const void *x)
{
	const sw_computation *entry = sw_entry(in);
	sw_program *out = sw_program_new(in->name);
	sw_arena arena;
	sw_arena_init(&arena);
	int32_t *computations = SW_NEW_N(&arena, int32_t, in->computations.len + 1);
	sw_id *value = SW_NEW_N(&arena, sw_id, in->values.len + 1),
	      *results = SW_NEW_N(&arena, sw_id, entry->results.len + 1);
	sw_build_copy_frame(out, in);
	sw_build_copy_called(out, in, computations);
	int32_t c = sw_build_computation(out, entry->name);
	for (size_t i = 0; i < entry->ops.len; i++)
		write(x, out, c, entry->ops.data[i], value, computations);
	for (size_t i = 0; i < entry->results.len; i++)
		results[i] = value[entry->results.data[i]];
	sw_build_results(out, c, results, (uint32_t)entry->results.len, entry->root_tuple);
	out->entry = c;
	sw_arena_clear(&arena);
	return out;
}
