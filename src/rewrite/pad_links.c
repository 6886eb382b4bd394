/*
 * Links: how an op treats padding in each dimension of its operands and results. The rules identify
 * dimensions: if a factor covers each dimension in which it stands, these dimensions are one.
 */
#include "rewrite/internal.h"

/* One dimension of an operand or result of an op. */
typedef struct op_dim {
	const sw_program *program;
	const sw_op *op;
	const sw_rule *rule;
	bool result;
	uint32_t index;
	int32_t dim;
} op_dim;

static sw_shape shape_at(const sw_program *program, const sw_op *op, bool result, uint32_t index)
{
	return sw_value_shape(program, result ? op->first_result + index : op->operands[index]);
}

/* Return whether each dimension of the operands (results) either is covered by one factor or lacks
 * this one. */
static bool covers(const sw_program *program, const sw_op *op, const sw_rule *rule, bool result,
                   int32_t factor)
{
	int32_t n = result ? rule->n_results : rule->n_operands;
	const sw_dim_map *const *maps = result ? rule->results : rule->operands;
	for (int32_t i = 0; i < n; i++) {
		sw_shape shape = shape_at(program, op, result, (uint32_t)i);
		for (int32_t d = 0; d < shape.rank; d++) {
			const sw_dim_map *map = &maps[i][d];
			bool all = map->n == 1 && map->refs[0].stride == 1 &&
			           rule->factors[map->refs[0].factor].size == shape.dims[d];
			for (int32_t k = 0; k < map->n && !all; k++)
				if (map->refs[k].factor == factor)
					return false;
		}
	}
	return true;
}

/* Return whether padding may be reduced along the dimension: pad.c masks the operands of these ops.
 * The size of a convolution's window must not change. */
static bool may_reduce(const op_dim *s)
{
	switch (s->op->opcode) {
	case SW_OP_DOT:
	case SW_OP_REDUCE:
	case SW_OP_GATHER:
	case SW_OP_SCATTER:
		return true;
	case SW_OP_CONVOLUTION:
		return s->dim == (s->index == 0 ? s->op->attrs->convolution.input_feature
		                                : s->op->attrs->convolution.kernel_input);
	default:
		return false;
	}
}

/* Return the factor that covers this dimension, and every other in which it stands. An op that
 * reads an element's neighbours, or its place counted from the end, must not see padding. */
static int32_t factor_link(const op_dim *s)
{
	int32_t n = s->result ? s->rule->n_results : s->rule->n_operands;
	if ((int32_t)s->index >= n)
		return SW_PAD_WHOLE;
	const sw_dim_map *map =
		&(s->result ? s->rule->results : s->rule->operands)[s->index][s->dim];
	if (map->n != 1)
		return SW_PAD_WHOLE;
	int32_t factor = map->refs[0].factor;
	if (s->rule->factors[factor].exchange != SW_EXCHANGE_NONE ||
	    (s->rule->factors[factor].kind == SW_FACTOR_REDUCED && !may_reduce(s)))
		return SW_PAD_WHOLE;
	bool all = covers(s->program, s->op, s->rule, false, factor) &&
	           covers(s->program, s->op, s->rule, true, factor);
	return all ? factor : SW_PAD_WHOLE;
}

/* ---- links of single opcodes ------------------------------------------------------------ */

/* Each operand passes to the result of the same number. */
static int32_t pass_link(const op_dim *s)
{
	return (int32_t)s->index * SW_MAX_RANK + s->dim;
}

static int32_t free_link(const op_dim *s)
{
	(void)s;
	return SW_PAD_FREE;
}

static int32_t whole_link(const op_dim *s)
{
	(void)s;
	return SW_PAD_WHOLE;
}

/* The data of an elided constant are unknown. */
static int32_t constant_link(const op_dim *s)
{
	return s->op->attrs->constant.data ? factor_link(s) : SW_PAD_WHOLE;
}

/* A slice ends at its limit, whatever follows. */
static int32_t slice_link(const op_dim *s)
{
	int32_t link = factor_link(s);
	return link == SW_PAD_WHOLE && !s->result ? SW_PAD_FREE : link;
}

/* The op can append more of the padding value; a dimension that it does not change is passed on. */
static int32_t pad_link(const op_dim *s)
{
	if (s->index > 0)
		return SW_PAD_WHOLE;
	if (s->op->attrs->pad.low.v[s->dim] == 0 && s->op->attrs->pad.high.v[s->dim] == 0)
		return factor_link(s);
	return s->result ? SW_PAD_FREE : SW_PAD_WHOLE;
}

/* Starts are clamped so that the part lies within the true size. */
static int32_t part_link(const op_dim *s)
{
	if (shape_at(s->program, s->op, false, 0).dims[s->dim] ==
	    shape_at(s->program, s->op, true, 0).dims[s->dim])
		return factor_link(s);
	return s->result ? SW_PAD_WHOLE : SW_PAD_FREE;
}

/* Starts are clamped likewise; operand and result are one. */
static int32_t update_link(const op_dim *s)
{
	if (shape_at(s->program, s->op, false, 0).dims[s->dim] ==
	    shape_at(s->program, s->op, false, 1).dims[s->dim])
		return factor_link(s);
	return s->result || s->index == 0 ? s->rule->n_factors + s->dim : SW_PAD_WHOLE;
}

/* Indices are clamped so that the elements read lie within the true size. */
static int32_t gather_link(const op_dim *s)
{
	const sw_index_dims *x = &s->op->attrs->index;
	bool indexed = !s->result && s->index == 0 && !sw_ints_has(x->operand_batch, s->dim);
	bool part = indexed &&
	            x->slice_sizes.v[s->dim] != shape_at(s->program, s->op, false, 0).dims[s->dim];
	return part ? SW_PAD_FREE : factor_link(s);
}

/* Return the extent written along a dimension of the operand. */
static int64_t written_extent(const op_dim *s)
{
	const sw_index_dims *x = &s->op->attrs->index;
	sw_shape updates = shape_at(s->program, s->op, false, (s->op->n_operands - 1) / 2 + 1);
	int32_t offset = 0;
	for (int32_t d = 0; d <= s->dim; d++) {
		bool dropped = sw_ints_has(x->collapsed, d) || sw_ints_has(x->operand_batch, d);
		if (d == s->dim)
			return dropped ? 1 : updates.dims[x->offset.v[offset]];
		offset += !dropped;
	}
	return 1;
}

/* Updates in the padding are dropped: their indices become -1, which requires that there are
 * indices and that their type is signed. A window that would extend beyond the end is dropped too,
 * and padding would move that end. */
static int32_t scatter_link(const op_dim *s)
{
	int32_t link = factor_link(s);
	uint32_t indices = (s->op->n_operands - 1) / 2;
	sw_shape shape = shape_at(s->program, s->op, false, indices);
	bool can_drop = s->op->attrs->index.start_index_map.n > 0 &&
	                sw_type_kind_of(shape.type) == SW_KIND_SIGNED;
	bool drops = link >= 0 && s->rule->factors[link].kind == SW_FACTOR_REDUCED;
	if (s->result || s->index < indices) {
		int64_t extent = written_extent(s);
		if (extent != 1 &&
		    extent != shape_at(s->program, s->op, s->result, s->index).dims[s->dim])
			return SW_PAD_WHOLE;
	}
	return drops && !can_drop ? SW_PAD_WHOLE : link;
}

/* ---- all ops ---------------------------------------------------------------------------- */

typedef int32_t link_fn(const op_dim *s);

/* Ops whose link is not simply that of the factor. */
static const struct {
	sw_opcode opcode;
	link_fn *link;
} special[] = {
	{SW_OP_PARAMETER, free_link},
	{SW_OP_WHILE, free_link},
	{SW_OP_CONDITIONAL, free_link},
	{SW_OP_OPT_BARRIER, pass_link},
	{SW_OP_ADD_DEPENDENCY, factor_link},
	{SW_OP_DOMAIN, factor_link},
	{SW_OP_CONSTANT, constant_link},
	{SW_OP_SLICE, slice_link},
	{SW_OP_PAD, pad_link},
	{SW_OP_GET_DIMENSION_SIZE, whole_link},
	{SW_OP_DYNAMIC_SLICE, part_link},
	{SW_OP_DYNAMIC_UPDATE_SLICE, update_link},
	{SW_OP_GATHER, gather_link},
	{SW_OP_SCATTER, scatter_link},
};

/* The numbers of a generator depend on its shape, and the behaviour of other regions and foreign
 * ops is unknown. */
static link_fn *link_of(sw_opcode opcode)
{
	for (size_t i = 0; i < SW_COUNT(special); i++)
		if (special[i].opcode == opcode)
			return special[i].link;
	switch (sw_opcode_class(opcode)) {
	case SW_CLASS_REGION:
	case SW_CLASS_RANDOM:
	case SW_CLASS_COLLECTIVE:
	case SW_CLASS_OTHER:
		return whole_link;
	default:
		return factor_link;
	}
}

int32_t sw_pad_link(const sw_pad_classes *classes, sw_id op_id, bool result, uint32_t index,
                    int32_t dim)
{
	const sw_op *op = sw_op_at(classes->program, op_id);
	op_dim s = {classes->program, op, classes->rules[op_id], result, index, dim};
	return link_of((sw_opcode)op->opcode)(&s);
}
