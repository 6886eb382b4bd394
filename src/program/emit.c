/* Short forms for passes that write programs. A shape that does not fit is a bug of the caller. */
#include "program/program.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "program/attributes.h"
#include "program/number.h"

static sw_id emit(sw_program *p, int32_t c, const sw_op_spec *spec)
{
	sw_id result = SW_NO_ID;
	sw_error err;
	sw_status status = sw_build_op(p, c, spec, &result, &err);
	if (status != SW_OK)
		fprintf(stderr, "sw_emit: %s\n", err.message);
	assert(status == SW_OK);
	return result;
}

/* Append an op with one result, whose shape is declared or (shape NULL) inferred. */
static sw_id emit_op(sw_program *p, int32_t c, sw_opcode opcode, const sw_id *operands, uint32_t n,
                     const sw_attrs *attrs, const sw_shape *shape)
{
	sw_op_spec spec = {
		.opcode = opcode,
		.operands = operands,
		.n_operands = n,
		.attrs = attrs,
		.shapes = shape,
		.n_results = shape != NULL,
	};
	return emit(p, c, &spec);
}

static int32_t rank_of(const sw_program *p, sw_id x)
{
	return sw_value_shape(p, x).rank;
}

/* ---- sources ---------------------------------------------------------------------------- */

sw_id sw_emit_parameter(sw_program *p, int32_t c, sw_shape shape, const char *name)
{
	sw_attrs attrs = {.parameter = {.number = (int64_t)p->computations.data[c].parameters.len}};
	sw_op_spec spec = {
		.opcode = SW_OP_PARAMETER,
		.name = name,
		.attrs = &attrs,
		.shapes = &shape,
		.n_results = 1,
	};
	return emit(p, c, &spec);
}

sw_id sw_emit_elements(sw_program *p, int32_t c, const sw_shape *shapes, uint32_t n)
{
	sw_attrs attrs = {.parameter = {.number = 0}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = n,
	                   .tuple = true};
	return emit(p, c, &spec);
}

sw_id sw_emit_while(sw_program *p, int32_t c, const char *name, const sw_id *elements, uint32_t n,
                    const int32_t called[2], const sw_attrs *attrs)
{
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .name = name,
	                   .operands = elements,
	                   .n_operands = n,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = attrs,
	                   .tuple = true};
	return emit(p, c, &spec);
}

sw_id sw_emit_literal(sw_program *p, int32_t c, sw_literal literal)
{
	sw_attrs attrs = {.constant = literal};
	attrs.constant.shape.dims = sw_build_ints(p, literal.shape.dims, literal.shape.rank).v;
	if (literal.data)
		attrs.constant.data = sw_arena_copy(&p->arena, literal.data,
		                                    (size_t)sw_shape_bytes(literal.shape));
	return emit_op(p, c, SW_OP_CONSTANT, NULL, 0, &attrs, &attrs.constant.shape);
}

sw_id sw_emit_scalar(sw_program *p, int32_t c, sw_type type, double value)
{
	uint64_t data[2] = {0};
	sw_number_set(type, data, 0, value);
	return sw_emit_literal(p, c, (sw_literal){.shape = {.type = type}, .data = data});
}

/* Store infinity or, in an f8 type without infinity, the largest number. The lowest number of a
 * type without a sign is that of code 0. */
static void set_float_extreme(sw_type type, bool lowest, void *data)
{
	sw_number_set(type, data, 0, INFINITY);
	for (int64_t code = 0xff; !(sw_number_get(type, data, 0) > 0); code--)
		sw_integer_set(type, data, 0, code);
	if (lowest)
		sw_number_set(type, data, 0, -sw_number_get(type, data, 0));
	if (lowest && isnan(sw_number_get(type, data, 0)))
		sw_integer_set(type, data, 0, 0);
}

/* Store the lowest or the highest value of a type. */
static void set_extreme(sw_type type, bool lowest, void *data)
{
	int64_t low, high;
	if (sw_type_kind_of(type) == SW_KIND_FLOAT) {
		set_float_extreme(type, lowest, data);
		return;
	}
	sw_integer_range(type, &low, &high);
	sw_integer_set(type, data, 0, lowest ? low : type == SW_U64 ? -1 : high);
}

sw_id sw_emit_identity(sw_program *p, int32_t c, sw_type type, sw_monoid monoid)
{
	uint64_t data[2] = {0};
	switch (monoid) {
	case SW_MONOID_PRODUCT:
		sw_number_set(type, data, 0, 1);
		break;
	case SW_MONOID_MAX:
	case SW_MONOID_MIN:
		set_extreme(type, monoid == SW_MONOID_MAX, data);
		break;
	case SW_MONOID_AND:
		sw_integer_set(type, data, 0, type == SW_PRED ? 1 : -1);
		break;
	default:
		assert(monoid == SW_MONOID_SUM || monoid == SW_MONOID_OR);
	}
	return sw_emit_literal(p, c, (sw_literal){.shape = {.type = type}, .data = data});
}

sw_id sw_emit_iota(sw_program *p, int32_t c, sw_shape shape, int64_t dimension)
{
	sw_attrs attrs = {.iota = {.dimension = dimension}};
	return emit_op(p, c, SW_OP_IOTA, NULL, 0, &attrs, &shape);
}

sw_id sw_emit_partition_id(sw_program *p, int32_t c)
{
	return emit_op(p, c, SW_OP_PARTITION_ID, NULL, 0, NULL, NULL);
}

/* ---- elementwise ------------------------------------------------------------------------ */

sw_id sw_emit_unary(sw_program *p, int32_t c, sw_opcode opcode, sw_id x)
{
	return emit_op(p, c, opcode, &x, 1, NULL, NULL);
}

sw_id sw_emit_binary(sw_program *p, int32_t c, sw_opcode opcode, sw_id x, sw_id y)
{
	sw_id operands[2] = {x, y};
	return emit_op(p, c, opcode, operands, 2, NULL, NULL);
}

sw_id sw_emit_select(sw_program *p, int32_t c, sw_id predicate, sw_id on_true, sw_id on_false)
{
	sw_id operands[3] = {predicate, on_true, on_false};
	return emit_op(p, c, SW_OP_SELECT, operands, 3, NULL, NULL);
}

sw_id sw_emit_compare(sw_program *p, int32_t c, sw_direction direction, sw_id x, sw_id y)
{
	sw_id operands[2] = {x, y};
	sw_attrs attrs = {.compare = {.direction = direction}};
	return emit_op(p, c, SW_OP_COMPARE, operands, 2, &attrs, NULL);
}

sw_id sw_emit_convert(sw_program *p, int32_t c, sw_id x, sw_type type)
{
	sw_shape shape = sw_value_shape(p, x);
	shape.type = type;
	return emit_op(p, c, SW_OP_CONVERT, &x, 1, NULL, &shape);
}

/* ---- shape ------------------------------------------------------------------------------ */

sw_id sw_emit_broadcast(sw_program *p, int32_t c, sw_id x, sw_shape shape, const int64_t *dims)
{
	sw_attrs attrs = {.dims = {.dims = sw_build_ints(p, dims, dims ? rank_of(p, x) : 0)}};
	shape.type = sw_value_shape(p, x).type;
	return emit_op(p, c, SW_OP_BROADCAST, &x, 1, &attrs, &shape);
}

sw_id sw_emit_reshape(sw_program *p, int32_t c, sw_id x, const int64_t *dims, int32_t rank)
{
	sw_shape shape = {.type = sw_value_shape(p, x).type, .rank = rank, .dims = dims};
	return emit_op(p, c, SW_OP_RESHAPE, &x, 1, NULL, &shape);
}

sw_id sw_emit_transpose(sw_program *p, int32_t c, sw_id x, const int64_t *permutation)
{
	sw_attrs attrs = {.dims = {.dims = sw_build_ints(p, permutation, rank_of(p, x))}};
	return emit_op(p, c, SW_OP_TRANSPOSE, &x, 1, &attrs, NULL);
}

/* stride NULL: all strides are 1 */
sw_id sw_emit_slice(sw_program *p, int32_t c, sw_id x, const int64_t *start, const int64_t *limit,
                    const int64_t *stride)
{
	int64_t ones[SW_MAX_RANK];
	for (int d = 0; d < SW_MAX_RANK; d++)
		ones[d] = 1;
	sw_attrs attrs = {.slice = {
				  .start = sw_build_ints(p, start, rank_of(p, x)),
				  .limit = sw_build_ints(p, limit, rank_of(p, x)),
				  .stride = sw_build_ints(p, stride ? stride : ones, rank_of(p, x)),
			  }};
	return emit_op(p, c, SW_OP_SLICE, &x, 1, &attrs, NULL);
}

sw_id sw_emit_pad(sw_program *p, int32_t c, sw_id x, sw_id value, const int64_t *low,
                  const int64_t *interior, const int64_t *high)
{
	sw_id operands[2] = {x, value};
	sw_attrs attrs = {.pad = {
				  .low = sw_build_ints(p, low, rank_of(p, x)),
				  .interior = sw_build_ints(p, interior, rank_of(p, x)),
				  .high = sw_build_ints(p, high, rank_of(p, x)),
			  }};
	return emit_op(p, c, SW_OP_PAD, operands, 2, &attrs, NULL);
}

sw_id sw_emit_concatenate(sw_program *p, int32_t c, const sw_id *x, uint32_t n, int64_t dimension)
{
	sw_attrs attrs = {.dims = {.dims = sw_build_ints(p, &dimension, 1)}};
	return n == 1 ? x[0] : emit_op(p, c, SW_OP_CONCATENATE, x, n, &attrs, NULL);
}

sw_id sw_emit_dynamic_slice(sw_program *p, int32_t c, sw_id x, const sw_id *starts,
                            const int64_t *sizes)
{
	sw_id operands[SW_MAX_RANK + 1] = {x};
	int32_t rank = rank_of(p, x);
	sw_attrs attrs = {.dynamic_slice = {.sizes = sw_build_ints(p, sizes, rank)}};
	for (int32_t d = 0; d < rank; d++)
		operands[d + 1] = starts[d];
	return emit_op(p, c, SW_OP_DYNAMIC_SLICE, operands, (uint32_t)rank + 1, &attrs, NULL);
}

sw_id sw_emit_dynamic_update_slice(sw_program *p, int32_t c, sw_id x, sw_id update,
                                   const sw_id *starts)
{
	sw_id operands[SW_MAX_RANK + 2] = {x, update};
	int32_t rank = rank_of(p, x);
	for (int32_t d = 0; d < rank; d++)
		operands[d + 2] = starts[d];
	return emit_op(p, c, SW_OP_DYNAMIC_UPDATE_SLICE, operands, (uint32_t)rank + 2, NULL, NULL);
}

/* ---- contractions ----------------------------------------------------------------------- */

sw_id sw_emit_dot(sw_program *p, int32_t c, sw_id x, sw_id y, sw_attrs attrs)
{
	sw_id operands[2] = {x, y};
	attrs.dot.lhs_batch = sw_build_ints(p, attrs.dot.lhs_batch.v, attrs.dot.lhs_batch.n);
	attrs.dot.rhs_batch = sw_build_ints(p, attrs.dot.rhs_batch.v, attrs.dot.rhs_batch.n);
	attrs.dot.lhs_contracting =
		sw_build_ints(p, attrs.dot.lhs_contracting.v, attrs.dot.lhs_contracting.n);
	attrs.dot.rhs_contracting =
		sw_build_ints(p, attrs.dot.rhs_contracting.v, attrs.dot.rhs_contracting.n);
	return emit_op(p, c, SW_OP_DOT, operands, 2, &attrs, NULL);
}

static const sw_opcode monoid_opcodes[] = {
	[SW_MONOID_SUM] = SW_OP_ADD,     [SW_MONOID_PRODUCT] = SW_OP_MULTIPLY,
	[SW_MONOID_MAX] = SW_OP_MAXIMUM, [SW_MONOID_MIN] = SW_OP_MINIMUM,
	[SW_MONOID_AND] = SW_OP_AND,     [SW_MONOID_OR] = SW_OP_OR,
};

/* The map of names caches the reducer, under a key with blanks, which no name contains. */
int32_t sw_build_reducer(sw_program *program, sw_monoid monoid, sw_type type)
{
	char key[64], name[64];
	int length = snprintf(key, sizeof(key), "reducer %s %s", sw_monoid_name(monoid),
	                      sw_type_name(type));
	uint32_t cached = sw_map_get(&program->names, key, (size_t)length);
	if (cached != SW_ABSENT)
		return (int32_t)cached;
	assert(monoid > SW_MONOID_NONE && monoid <= SW_MONOID_OR);
	snprintf(name, sizeof(name), "%s_%s", sw_monoid_name(monoid), sw_type_name(type));
	int32_t c = sw_build_computation(program, name);
	sw_shape scalar = {.type = type};
	sw_id x = sw_emit_parameter(program, c, scalar, "x");
	sw_id y = sw_emit_parameter(program, c, scalar, "y");
	sw_id root = sw_emit_binary(program, c, monoid_opcodes[monoid], x, y);
	sw_build_results(program, c, &root, 1, false);
	sw_map_put(&program->names, key, (size_t)length, (uint32_t)c);
	return c;
}

sw_id sw_emit_reduce(sw_program *p, int32_t c, sw_monoid monoid, sw_id x, sw_id init,
                     const int64_t *dims, int32_t n)
{
	sw_id operands[2] = {x, init};
	int32_t reducer = sw_build_reducer(p, monoid, sw_value_shape(p, x).type);
	sw_attrs attrs = {.dims = {.dims = sw_build_ints(p, dims, n)}};
	sw_op_spec spec = {
		.opcode = SW_OP_REDUCE,
		.operands = operands,
		.n_operands = 2,
		.called = &reducer,
		.n_called = 1,
		.attrs = &attrs,
	};
	return emit(p, c, &spec);
}

/* ---- collectives ------------------------------------------------------------------------ */

static sw_groups copy_groups(sw_program *p, const sw_groups *groups)
{
	sw_groups copy = *groups;
	copy.reshape = sw_build_ints(p, groups->reshape.v, groups->reshape.n);
	copy.transpose = sw_build_ints(p, groups->transpose.v, groups->transpose.n);
	if (groups->list)
		copy.list = sw_arena_copy(&p->arena, groups->list,
		                          sizeof(int64_t) *
		                                  (size_t)(groups->n_groups * groups->group_size));
	return copy;
}

sw_id sw_emit_collective(sw_program *p, int32_t c, sw_opcode opcode, sw_monoid monoid, sw_id x,
                         int64_t dimension, const sw_groups *groups)
{
	bool reduces = opcode == SW_OP_ALL_REDUCE || opcode == SW_OP_REDUCE_SCATTER;
	int32_t reducer = reduces ? sw_build_reducer(p, monoid, sw_value_shape(p, x).type) : 0;
	sw_attrs attrs = {.collective = {
				  .groups = copy_groups(p, groups),
				  .dimension = opcode == SW_OP_ALL_REDUCE ? -1 : dimension,
				  .channel = p->last_channel + 1,
				  .global_ids = true,
			  }};
	sw_op_spec spec = {
		.opcode = opcode,
		.operands = &x,
		.n_operands = 1,
		.called = &reducer,
		.n_called = reduces,
		.attrs = &attrs,
	};
	return emit(p, c, &spec);
}

sw_id sw_emit_permute(sw_program *p, int32_t c, sw_id x, const int64_t *pairs, int32_t n_pairs)
{
	sw_attrs attrs = {.collective = {
				  .pairs = sw_build_ints(p, pairs, 2 * n_pairs),
				  .dimension = -1,
				  .channel = p->last_channel + 1,
			  }};
	return emit_op(p, c, SW_OP_COLLECTIVE_PERMUTE, &x, 1, &attrs, NULL);
}
