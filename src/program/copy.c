/*
 * Copying ops and computations from one program to another, lists and literals included.
 */
#include "program/attributes.h"

#include <stdlib.h>

static sw_ints copy_ints(sw_program *out, sw_ints list)
{
	return sw_build_ints(out, list.v, list.n);
}

static void copy_window(sw_program *out, sw_window *window)
{
	window->dims = sw_arena_copy(&out->arena, window->dims,
	                             sizeof(*window->dims) * (size_t)window->rank);
}

static void copy_groups(sw_program *out, sw_groups *groups)
{
	if (groups->list)
		groups->list = sw_arena_copy(
			&out->arena, groups->list,
			sizeof(int64_t) * (size_t)(groups->n_groups * groups->group_size));
	groups->reshape = copy_ints(out, groups->reshape);
	groups->transpose = copy_ints(out, groups->transpose);
}

/* Copy `first` and the n - 1 lists behind it, for kinds whose member is a struct of several
 * lists. */
static void copy_lists(sw_program *out, sw_ints *first, int n)
{
	for (int i = 0; i < n; i++)
		first[i] = copy_ints(out, first[i]);
}

static void copy_member(sw_program *out, const sw_attribute *attribute, sw_attrs *attrs)
{
	void *member = sw_attribute_member(attribute, attrs);
	switch (attribute->kind) {
	case SW_ATTRIBUTE_INTS:
	case SW_ATTRIBUTE_PAIRS:
		copy_lists(out, member, 1);
		break;
	case SW_ATTRIBUTE_SLICE:
	case SW_ATTRIBUTE_PADDING:
		copy_lists(out, member, 3);
		break;
	case SW_ATTRIBUTE_WORD:
	case SW_ATTRIBUTE_STRING: {
		const char **text = member;
		if (*text)
			*text = sw_arena_text(&out->arena, *text);
		break;
	}
	case SW_ATTRIBUTE_WINDOW:
		copy_window(out, member);
		break;
	case SW_ATTRIBUTE_GROUPS:
		copy_groups(out, member);
		break;
	case SW_ATTRIBUTE_DIM_LABELS:
		copy_lists(out, &attrs->convolution.input_spatial, 3);
		break;
	default: /* numbers and flags need no copy; computations belong to the op */
		break;
	}
}

static sw_shape copy_shape(sw_program *out, sw_shape shape)
{
	sw_shape copy = sw_build_shape(out, shape.type, shape.dims, shape.rank);
	copy.bounded = shape.bounded;
	return copy;
}

static void copy_special(sw_program *out, sw_opcode opcode, sw_attrs *attrs)
{
	if (opcode == SW_OP_CONSTANT) {
		size_t bytes = (size_t)sw_shape_bytes(attrs->constant.shape);
		attrs->constant.shape = copy_shape(out, attrs->constant.shape);
		if (attrs->constant.data)
			attrs->constant.data =
				sw_arena_copy(&out->arena, attrs->constant.data, bytes);
	} else if (opcode == SW_OP_CUSTOM_CALL) {
		attrs->custom.operand_arity = copy_ints(out, attrs->custom.operand_arity);
	} else if (opcode == SW_OP_WHILE) {
		attrs->loop.each = copy_ints(out, attrs->loop.each);
	} else if (opcode == SW_OP_UNKNOWN) {
		attrs->unknown.operand_arity = copy_ints(out, attrs->unknown.operand_arity);
		attrs->unknown.spelling = sw_arena_text(&out->arena, attrs->unknown.spelling);
	}
}

const sw_attrs *sw_build_copy_attrs(sw_program *out, const sw_op *op)
{
	if (!op->attrs)
		return NULL;
	sw_attrs *attrs = sw_arena_copy(&out->arena, op->attrs, sizeof(*attrs));
	size_t n;
	const sw_attribute *table = sw_attributes_of((sw_opcode)op->opcode, &n);
	for (size_t i = 0; i < n; i++)
		if (table[i].use != SW_ATTRIBUTE_ALIAS)
			copy_member(out, &table[i], attrs);
	copy_special(out, (sw_opcode)op->opcode, attrs);
	return attrs;
}

const sw_extra *sw_build_copy_extras(sw_program *out, const sw_extra *extra)
{
	const sw_extra *first = NULL, **link = &first;
	for (; extra; extra = extra->next) {
		sw_extra *copy = SW_NEW(&out->arena, sw_extra);
		copy->name = sw_arena_text(&out->arena, extra->name);
		copy->text = extra->text ? sw_arena_text(&out->arena, extra->text) : NULL;
		*link = copy;
		link = (const sw_extra **)&copy->next;
	}
	return first;
}

void sw_build_copy_frame(sw_program *out, const sw_program *in)
{
	out->source = sw_arena_text(&out->arena, in->source ? in->source : "");
	out->num_partitions = in->num_partitions;
	out->replica_count = in->replica_count;
	out->library_kernels = in->library_kernels;
	out->library_attention = in->library_attention;
	out->extras = sw_build_copy_extras(out, in->extras);
	out->unannotated = in->unannotated;
	out->lost_annotations = in->lost_annotations;
	for (size_t i = 0; i < in->aliases.len; i++)
		sw_vec_push(&out->aliases, in->aliases.data[i]);
	for (size_t i = 0; i < in->donors.len; i++)
		sw_vec_push(&out->donors, in->donors.data[i]);
	for (size_t i = 0; i < in->paddings.len; i++)
		sw_vec_push(&out->paddings, in->paddings.data[i]);
}

sw_id sw_build_copy_op(sw_program *out, int32_t c, const sw_program *in, sw_id op_id,
                       const sw_id *operands, const int32_t *called)
{
	const sw_op *op = sw_op_at(in, op_id);
	sw_shape *shapes = SW_NEW_N(&out->arena, sw_shape, op->n_results);
	for (uint32_t i = 0; i < op->n_results; i++)
		shapes[i] = copy_shape(out, sw_value_shape(in, op->first_result + i));
	sw_op_spec spec = {
		.opcode = (sw_opcode)op->opcode,
		.name = op->name,
		.operands = operands,
		.n_operands = op->n_operands,
		.called = called ? called : op->called,
		.n_called = op->n_called,
		.attrs = sw_build_copy_attrs(out, op),
		.shapes = shapes,
		.n_results = op->n_results,
		.tuple = op->tuple,
		.op_name = op->op_name,
		.extras = sw_build_copy_extras(out, op->extras),
		.line = op->line,
	};
	sw_id first = SW_NO_ID;
	sw_error err;
	if (sw_build_op(out, c, &spec, &first, &err) != SW_OK)
		return SW_NO_ID;
	return first;
}

sw_status sw_build_op_like(sw_program *out, int32_t c, const sw_op *op, const char *name,
                           const sw_id *operands, sw_shape shape, sw_id *result, sw_error *err)
{
	sw_op_spec spec = {.opcode = (sw_opcode)op->opcode,
	                   .name = name,
	                   .operands = operands,
	                   .n_operands = op->n_operands,
	                   .attrs = sw_build_copy_attrs(out, op),
	                   .shapes = &shape,
	                   .n_results = 1,
	                   .op_name = op->op_name,
	                   .line = op->line};
	return sw_build_op(out, c, &spec, result, err);
}

sw_id sw_build_copy_mapped(sw_program *out, int32_t c, const sw_program *in, sw_id op_id,
                           const sw_id *value, int32_t *computations)
{
	const sw_op *op = sw_op_at(in, op_id);
	sw_id *operands = sw_alloc(sizeof(*operands) * (op->n_operands + 1));
	int32_t *called = sw_alloc(sizeof(*called) * (op->n_called + 1u));
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = value[op->operands[k]];
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = sw_build_copy_computation(out, in, op->called[k], computations);
	sw_id first = sw_build_copy_op(out, c, in, op_id, operands, called);
	free(operands);
	free(called);
	return first;
}

/* Find the range [*low, *high) of the computation's value ids; ids of other computations may be in
 * between. */
static void value_range(const sw_program *program, const sw_computation *computation, sw_id *low,
                        sw_id *high)
{
	*low = SW_NO_ID;
	*high = 0;
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(program, computation->ops.data[i]);
		*low = SW_MIN(*low, op->first_result);
		*high = SW_MAX(*high, op->first_result + op->n_results);
	}
}

int32_t sw_build_copy_computation(sw_program *out, const sw_program *in, int32_t computation,
                                  int32_t *map)
{
	if (map[computation] >= 0)
		return map[computation];
	const sw_computation *from = &in->computations.data[computation];
	sw_id low, high;
	value_range(in, from, &low, &high);
	sw_id *value = high > low ? sw_alloc(sizeof(sw_id) * (high - low)) : NULL;
	SW_VEC(sw_id) operands = {0};
	SW_VEC(int32_t) called = {0};
	for (size_t i = 0; i < from->ops.len; i++) /* copy callees first */
		for (uint32_t k = 0; k < sw_op_at(in, from->ops.data[i])->n_called; k++)
			sw_build_copy_computation(out, in,
			                          sw_op_at(in, from->ops.data[i])->called[k], map);
	int32_t to = sw_build_computation(out, from->name);
	for (size_t i = 0; i < from->ops.len; i++) {
		const sw_op *op = sw_op_at(in, from->ops.data[i]);
		operands.len = called.len = 0;
		for (uint32_t k = 0; k < op->n_operands; k++)
			sw_vec_push(&operands, value[op->operands[k] - low]);
		for (uint32_t k = 0; k < op->n_called; k++)
			sw_vec_push(&called, map[op->called[k]]);
		sw_id first = sw_build_copy_op(out, to, in, from->ops.data[i], operands.data,
		                               called.data);
		for (uint32_t k = 0; k < op->n_results; k++)
			value[op->first_result + k - low] = first + k;
	}
	operands.len = 0;
	for (size_t i = 0; i < from->results.len; i++)
		sw_vec_push(&operands, value[from->results.data[i] - low]);
	sw_build_results(out, to, operands.data, (uint32_t)operands.len, from->root_tuple);
	sw_vec_clear(&operands);
	sw_vec_clear(&called);
	free(value);
	map[computation] = to;
	return to;
}

void sw_build_copy_called(sw_program *out, const sw_program *in, int32_t *map)
{
	for (size_t c = 0; c < in->computations.len; c++)
		map[c] = -1;
	for (size_t c = 0; c < in->computations.len; c++)
		if ((int32_t)c != in->entry)
			sw_build_copy_computation(out, in, (int32_t)c, map);
}
