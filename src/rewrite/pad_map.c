/*
 * Where the classes of padded dimensions are in the padded program.
 */
#include "rewrite/internal.h"

#include <string.h>

static void index_ops(const sw_program *program, sw_map *ops)
{
	for (sw_id id = 0; id < program->ops.len; id++)
		sw_map_put(ops, program->ops.data[id].name, strlen(program->ops.data[id].name), id);
}

/* Return the value of the padded program that a value of the program became; SW_NO_ID if none has
 * its name and kind. */
static sw_id padded_value(const sw_program *in, sw_id value, const sw_program *padded,
                          const sw_map *ops)
{
	const sw_value *v = &in->values.data[value];
	const sw_op *op = sw_op_at(in, v->op);
	uint32_t found = sw_map_get(ops, op->name, strlen(op->name));
	if (found == SW_ABSENT)
		return SW_NO_ID;
	const sw_op *other = sw_op_at(padded, found);
	bool same = other->opcode == op->opcode && other->n_results == op->n_results &&
	            sw_value_shape(padded, other->first_result + v->index).rank == v->shape.rank;
	return same ? other->first_result + v->index : SW_NO_ID;
}

sw_pad_map sw_rewrite_pad_map(const sw_program *in, sw_pad_rule rule, const sw_program *padded,
                              sw_arena *arena)
{
	sw_pad_classes classes;
	sw_padded_list list = {0};
	sw_map ops = {0};
	size_t places = padded->values.len * SW_MAX_RANK;
	int32_t *number = SW_NEW_N(arena, int32_t, places + 1);
	int64_t *size = SW_NEW_N(arena, int64_t, places + 1);
	for (size_t i = 0; i < places; i++)
		number[i] = -1;
	index_ops(padded, &ops);
	bool fits = sw_pad_classes_init(&classes, in, rule, &list);
	for (sw_id v = 0; fits && v < in->values.len; v++) {
		sw_id value = padded_value(in, v, padded, &ops);
		sw_shape shape = sw_value_shape(in, v);
		for (int32_t d = 0; d < shape.rank && value != SW_NO_ID; d++) {
			if (!sw_pad_is_padded(&classes, v, d))
				continue;
			number[value * SW_MAX_RANK + (sw_id)d] =
				classes.number[classes.first[v] + (uint32_t)d];
			size[value * SW_MAX_RANK + (sw_id)d] = shape.dims[d];
		}
	}
	sw_pad_map map = {.n = classes.n, .number = number, .size = size};
	sw_map_clear(&ops);
	sw_vec_clear(&list);
	sw_pad_classes_clear(&classes);
	return map;
}
