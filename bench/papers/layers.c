/* Contractions with weights, found by whether they depend on data and the loss on them. */
#include "papers.h"

static double bytes_of(const sw_program *p, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(p, value));
}

void find_layers(const sw_program *p, layer_list *layers)
{
	sw_arena arena = {0};
	const uint8_t *marks = flow_marks(p, &arena);
	const sw_computation *entry = sw_entry(p);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(p, entry->ops.data[i]);
		if (!contracts(op) || !(marks[op->first_result] & FLOW_TO_LOSS))
			continue;
		bool first = marks[op->operands[0]] & FLOW_FROM_DATA,
		     second = marks[op->operands[1]] & FLOW_FROM_DATA;
		if (first == second)
			continue;
		layer l = {bytes_of(p, op->operands[first ? 0 : 1]),
		           bytes_of(p, op->operands[first ? 1 : 0]), bytes_of(p, op->first_result),
		           op->opcode == SW_OP_CONVOLUTION};
		sw_vec_push(layers, l);
	}
	sw_arena_clear(&arena);
}
