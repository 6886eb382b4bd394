/*
 * The canonical form that planning works on.
 *
 * forward: inline calls and fusions, write out batch normalisations and loops over layers, replace
 * ops that only rename their operand by it, an op equal to an earlier one of the same computation
 * by that one, and a reducer by the first that computes the same; a product that is only read
 * transposed is one of the other order; what follows from constants is a constant, and so are places
 * of slices. prune: drop the ops that no result needs, put those that follow from
 * constants before their readers, and give each loop and conditional computations of its own. Sorts
 * of rows that are put back go last (sorted_rows.c).
 * O(ops with calls, loops and conditionals written out); programs that would have too many of them
 * are refused (reached_computations.c).
 */
#include "rewrite/internal.h"
#include "rewrite/expand_batch_norm.h"
#include "frontend/sharding.h"
#include "program/attributes.h"

#include <stdlib.h>
#include <string.h>

typedef struct rewriter {
	const sw_program *in;
	sw_program *out;
	int32_t *computation;  /* of `in` -> of `out`, -1: not there */
	sw_id *value;          /* of `in` -> of `out`, in the computation being walked */
	const bool *is_layers; /* per op of `in`: a loop that is written out; NULL: none is */
	sw_map seen;           /* key of an op -> its first result in `out` */
	uint32_t *uses;        /* per value of `in`: how often it is read or returned */
	int64_t listed;        /* elements of the lists that were computed so far */
	/* 0: none, else the index + 1 of the computation of `out` that computes this reduction */
	int32_t reducer[SW_MONOID_OR + 1][SW_TYPE_COUNT];
	sw_text key;
	sw_status status;
	sw_error *err;
} rewriter;

/* ---- forwarding ------------------------------------------------------------------------- */

static bool is_identity_list(sw_ints dims)
{
	for (int32_t i = 0; i < dims.n; i++)
		if (dims.v[i] != i)
			return false;
	return true;
}

/* Return whether the op returns its first operand unchanged, element for element. */
static bool is_identity(const sw_program *p, const sw_op *op)
{
	if (sw_op_sharding(op))
		return false; /* a constraint */
	switch (op->opcode) {
	case SW_OP_COPY:
	case SW_OP_CONVERT:
	case SW_OP_RESHAPE:
		break;
	case SW_OP_BROADCAST:
	case SW_OP_TRANSPOSE:
		if (!is_identity_list(op->attrs->dims.dims))
			return false;
		break;
	default:
		return false;
	}
	return sw_shape_equal(sw_value_shape(p, op->first_result),
	                      sw_value_shape(p, op->operands[0]));
}

/* Return the value that a reshape of x may read: if x is a reshape itself, its operand. */
static sw_id reshape_source(const rewriter *pass, sw_id x)
{
	const sw_op *op = sw_op_at(pass->out, pass->out->values.data[x].op);
	return op->opcode == SW_OP_RESHAPE ? op->operands[0] : x;
}

/* Return whether the op must not be merged with an equal one, because each has a meaning of its
 * own. The data of an elided constant are unknown. */
static bool is_unique(const sw_op *op)
{
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	if (op->opcode == SW_OP_CONSTANT && !op->attrs->constant.data)
		return true;
	return op->opcode == SW_OP_PARAMETER || class == SW_CLASS_RANDOM ||
	       class == SW_CLASS_OTHER || class == SW_CLASS_REGION || op->n_results != 1 ||
	       op->extras != NULL;
}

static void key_bytes(sw_text *key, const void *data, size_t bytes)
{
	if (bytes)
		sw_text_add_n(key, data, bytes);
}

static void key_number(sw_text *key, int64_t number)
{
	key_bytes(key, &number, sizeof(number));
}

/* Add to the key all parts of a shape that equality compares. */
static void key_shape(sw_text *key, sw_shape shape)
{
	key_number(key, shape.type);
	key_number(key, shape.rank);
	key_number(key, shape.bounded);
	key_bytes(key, shape.dims, sizeof(int64_t) * (size_t)shape.rank);
}

/* Begin the key of an op with one result; the computations that it calls are added to it. */
static void key_of_op(rewriter *pass, sw_opcode opcode, sw_shape shape, const sw_attrs *attrs,
                      const sw_id *operands, uint32_t n_operands)
{
	sw_text *key = &pass->key;
	key->len = 0;
	key_number(key, opcode);
	key_shape(key, shape);
	key_number(key, n_operands);
	key_bytes(key, operands, sizeof(sw_id) * n_operands);
	sw_attributes_key(opcode, attrs, key);
}

static void copy_op(rewriter *pass, int32_t to, sw_id id, const sw_id *operands,
                    const int32_t *called)
{
	const sw_op *op = sw_op_at(pass->in, id);
	sw_id first = sw_build_copy_op(pass->out, to, pass->in, id, operands, called);
	if (first == SW_NO_ID)
		pass->status = sw_fail(pass->err, SW_ERR_INTERNAL,
		                       "canonical form: op '%s' can't be copied", op->name);
	for (uint32_t k = 0; k < op->n_results; k++)
		pass->value[op->first_result + k] = first + k;
}

/* A collective refers to devices, which only planning chooses. */
static sw_status refuse_collective(const rewriter *pass, const sw_op *op)
{
	return sw_fail_at(
		pass->err, SW_ERR_INPUT, pass->in->source, op->line, 0, "op '%s', %s: %s", op->name,
		op->opcode == SW_OP_CUSTOM_CALL ? op->attrs->custom.target : sw_op_opcode_name(op),
		SW_SEVERAL_DEVICES);
}

static void emit(rewriter *pass, int32_t to, sw_id id, const sw_id *operands, const int32_t *called)
{
	const sw_op *op = sw_op_at(pass->in, id);
	uint32_t equal = SW_ABSENT;
	if (sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE ||
	    (op->opcode == SW_OP_CUSTOM_CALL && sw_sharding_is_manual(op->attrs->custom.target))) {
		pass->status = refuse_collective(pass, op);
		return;
	}
	bool unique = is_unique(op);
	if (!unique) {
		key_of_op(pass, (sw_opcode)op->opcode, sw_value_shape(pass->in, op->first_result),
		          op->attrs, operands, op->n_operands);
		for (uint32_t i = 0; i < op->n_called; i++)
			key_number(&pass->key, called[i]);
		equal = sw_map_get(&pass->seen, pass->key.data, pass->key.len);
	}
	if (equal != SW_ABSENT) {
		pass->value[op->first_result] = equal;
		return;
	}
	copy_op(pass, to, id, operands, called);
	if (!unique)
		sw_map_put(&pass->seen, pass->key.data, pass->key.len,
		           pass->value[op->first_result]);
}

/* Write another op in the place of one of `in`, with its name. */
static sw_id emit_new(rewriter *pass, int32_t to, const sw_op *op, sw_opcode opcode,
                      const sw_attrs *attrs, sw_shape shape, const sw_id *operands,
                      uint32_t n_operands)
{
	sw_op_spec spec = {.opcode = opcode,
	                   .name = op->name,
	                   .operands = operands,
	                   .n_operands = n_operands,
	                   .attrs = attrs,
	                   .shapes = &shape,
	                   .n_results = 1,
	                   .op_name = op->op_name,
	                   .line = op->line};
	key_of_op(pass, opcode, shape, attrs, operands, n_operands);
	sw_id value = sw_map_get(&pass->seen, pass->key.data, pass->key.len);
	if (value != SW_ABSENT)
		return value;
	pass->status = sw_build_op(pass->out, to, &spec, &value, pass->err);
	sw_map_put(&pass->seen, pass->key.data, pass->key.len, value);
	return value;
}

/* Write the ops of computation `from` into `to`; if it is inlined, without its parameters. */
static void walk(rewriter *pass, int32_t from, int32_t to, bool inlined);

static void bind_parameters(rewriter *pass, const sw_computation *computation,
                            const sw_id *arguments)
{
	for (size_t i = 0; i < computation->parameters.len; i++) {
		const sw_op *parameter = sw_op_at(pass->in, computation->parameters.data[i]);
		for (uint32_t k = 0; k < parameter->n_results; k++)
			pass->value[parameter->first_result + k] = *arguments++;
	}
}

/* Write the ops of called computation k in the place of the op. */
static void walk_called(rewriter *pass, int32_t to, const sw_op *op, uint16_t k,
                        const sw_id *operands)
{
	uint32_t n;
	const sw_computation *callee = &pass->in->computations.data[op->called[k]];
	const sw_id *given = sw_called_operands(pass->in, op, k, &n);
	bind_parameters(pass, callee, operands + (given - op->operands));
	walk(pass, op->called[k], to, true);
	for (uint32_t i = 0; i < op->n_results; i++)
		pass->value[op->first_result + i] = pass->value[callee->results.data[i]];
}

/* Return whether the op is part of a pair that starts something early and ends it late, other than
 * a collective. Its context, which the end reads, is a number. */
static bool is_pair(const sw_program *in, const sw_op *op)
{
	const sw_op *start = sw_async_start_of(in, op);
	if (op->opcode == SW_OP_COPY_START || op->opcode == SW_OP_COPY_DONE)
		return op->n_operands > 0;
	if (!start || sw_async_collective(in, start) != SW_NO_ID)
		return false;
	for (uint32_t k = start->n_operands; k < start->n_results; k++)
		if (sw_type_kind_of(sw_value_shape(in, start->first_result + k).type) ==
		    SW_KIND_TOKEN)
			return false;
	return true;
}

/* The context of a pair, which nobody needs but its end. */
static sw_id context_of(rewriter *pass, int32_t to, sw_shape shape)
{
	const int64_t none[1] = {0};
	sw_id zero = sw_emit_scalar(pass->out, to, shape.type, 0);
	return shape.rank ? sw_emit_broadcast(pass->out, to, zero, shape, none) : zero;
}

/* The iterations one after the other. */
static void walk_layers(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	const sw_computation *body = &pass->in->computations.data[op->called[1]];
	size_t bytes = sizeof(sw_id) * op->n_operands;
	sw_id *carried = sw_alloc(bytes + 1);
	memcpy(carried, operands, bytes);
	for (int64_t i = 0; i < op->attrs->loop.trip_count && pass->status == SW_OK; i++) {
		bind_parameters(pass, body, carried);
		walk(pass, op->called[1], to, true);
		for (uint32_t k = 0; k < op->n_operands; k++)
			carried[k] = pass->value[body->results.data[k]];
	}
	memcpy(&pass->value[op->first_result], carried, bytes);
	free(carried);
}

/* What is started early and ended late becomes plain ops. A start gives its operands again, then
 * what it computes, then contexts; an end gives what was computed. */
static void walk_pair(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	bool copy = op->opcode == SW_OP_COPY_START || op->opcode == SW_OP_COPY_DONE;
	bool starts = op->opcode == SW_OP_COPY_START || op->opcode == SW_OP_ASYNC_START;
	const sw_op *start = copy ? NULL : sw_async_start_of(pass->in, op);
	const sw_computation *callee = copy ? NULL : &pass->in->computations.data[start->called[0]];
	size_t given = copy ? 2 : start->n_operands, computed = copy ? 0 : callee->results.len;
	if (op->opcode == SW_OP_ASYNC_START) {
		bind_parameters(pass, callee, operands);
		walk(pass, op->called[0], to, true);
	}
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_id *value = &pass->value[op->first_result + k];
		if (!starts)
			*value = operands[op->opcode == SW_OP_ASYNC_DONE ? given + k : k];
		else if (k < given)
			*value = operands[copy ? 0 : k];
		else if (k < given + computed)
			*value = pass->value[callee->results.data[k - given]];
		else
			*value = context_of(pass, to,
			                    sw_value_shape(pass->in, op->first_result + k));
	}
}

static void walk_batch_norm(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	sw_id results[3];
	sw_write_batch_norm(pass->out, to, pass->in, op, operands, results);
	for (uint32_t k = 0; k < op->n_results; k++)
		pass->value[op->first_result + k] = results[k];
}

/* Return the operand if the op's result is the same value, SW_NO_ID otherwise. The source of a
 * reshape may have been traced back past its operand, to a value of another shape. */
static sw_id forwarded(const rewriter *pass, const sw_op *op, const sw_id *operands)
{
	if (op->opcode != SW_OP_RESHAPE && !is_identity(pass->in, op))
		return SW_NO_ID;
	sw_shape shape = sw_value_shape(pass->in, op->first_result);
	return sw_shape_equal(sw_value_shape(pass->out, operands[0]), shape) ? operands[0]
	                                                                     : SW_NO_ID;
}

/* Write an op that moves no element as a reshape of its operand's source. */
static void walk_reshape(rewriter *pass, int32_t to, const sw_op *op, sw_id x)
{
	sw_shape shape = sw_value_shape(pass->in, op->first_result);
	x = reshape_source(pass, x);
	shape = sw_build_shape(pass->out, shape.type, shape.dims, shape.rank);
	pass->value[op->first_result] =
		sw_shape_equal(sw_value_shape(pass->out, x), shape)
			? x
			: emit_new(pass, to, op, SW_OP_RESHAPE, NULL, shape, &x, 1);
}

/* Write a concatenation without operands that have no elements. Return false if it is none, or has
 * no such operand. */
static bool walk_concatenation(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	if (op->opcode != SW_OP_CONCATENATE)
		return false;
	SW_VEC(sw_id) full = {0};
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (sw_shape_elements(sw_value_shape(pass->out, operands[k])) != 0)
			sw_vec_push(&full, operands[k]);
	bool drops = full.len > 0 && (full.len < op->n_operands || full.len == 1);
	sw_shape shape = sw_value_shape(pass->in, op->first_result);
	if (drops && full.len == 1) {
		pass->value[op->first_result] = full.data[0];
	} else if (drops) {
		shape = sw_build_shape(pass->out, shape.type, shape.dims, shape.rank);
		pass->value[op->first_result] = emit_new(
			pass, to, op, SW_OP_CONCATENATE, sw_build_copy_attrs(pass->out, op), shape,
			full.data, (uint32_t)full.len);
	}
	sw_vec_clear(&full);
	return drops;
}

/* Return whether the op transposes so that dimensions larger than 1 keep their order. */
static bool moves_ones(const rewriter *pass, const sw_op *op)
{
	if (op->opcode != SW_OP_TRANSPOSE)
		return false;
	sw_shape shape = sw_value_shape(pass->in, op->operands[0]);
	int64_t last = -1;
	for (int32_t d = 0; d < shape.rank; d++) {
		int64_t from = op->attrs->dims.dims.v[d];
		if (shape.dims[from] != 1 && from < last)
			return false;
		last = shape.dims[from] != 1 ? from : last;
	}
	return !shape.bounded;
}

/* Write a barrier of several values as one of each: it hands each on by itself, and where a program
 * has a barrier around the inputs of all layers, or around all gradients, no loop and no stage could
 * be without one of them. The order that it asks for is that of the program, which stays. Return
 * false if the op is none. */
static bool walk_barrier(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	if (op->opcode != SW_OP_OPT_BARRIER || op->n_operands < 2)
		return false;
	for (uint32_t k = 0; k < op->n_operands && pass->status == SW_OK; k++) {
		sw_op_spec spec = {.opcode = SW_OP_OPT_BARRIER,
		                   .name = op->name,
		                   .operands = &operands[k],
		                   .n_operands = 1,
		                   .op_name = op->op_name,
		                   .line = op->line};
		pass->status = sw_build_op(pass->out, to, &spec,
		                           &pass->value[op->first_result + k], pass->err);
	}
	return true;
}

/* ---- constants -------------------------------------------------------------------------- */

/* Set the one element that all elements of a constant with dimensions are. */
static bool find_element(const sw_op *op, uint64_t element[2])
{
	if (op->opcode != SW_OP_CONSTANT)
		return false;
	sw_shape shape = op->attrs->constant.shape;
	const char *data = op->attrs->constant.data;
	size_t size = sw_type_bytes(shape.type);
	int64_t elements = sw_shape_elements(shape);
	if (!data || shape.rank == 0 || elements == 0 || size == 0)
		return false;
	for (int64_t i = 1; i < elements; i++)
		if (memcmp(data, data + (size_t)i * size, size) != 0)
			return false;
	memcpy(element, data, size);
	return true;
}

static sw_id emit_scalar(rewriter *pass, int32_t to, const sw_op *op, const uint64_t element[2])
{
	sw_shape shape = {.type = sw_value_shape(pass->in, op->first_result).type};
	sw_attrs attrs = {
		.constant = {.shape = shape,
	                     .data = sw_arena_copy(&pass->out->arena, element,
	                                           2 * sizeof(*element))}};
	return emit_new(pass, to, op, SW_OP_CONSTANT, &attrs, shape, NULL, 0);
}

/* Return the single number that the op moves around, or puts around nothing; SW_NO_ID if it does
 * not. */
static sw_id moved_number(const rewriter *pass, const sw_op *op, const sw_id *operands)
{
	switch (op->opcode) {
	case SW_OP_PAD:
		return sw_shape_elements(sw_value_shape(pass->out, operands[0])) == 0 ? operands[1]
		                                                                     : SW_NO_ID;
	case SW_OP_BROADCAST:
	case SW_OP_RESHAPE:
	case SW_OP_REVERSE:
	case SW_OP_SLICE:
	case SW_OP_TRANSPOSE:
		break;
	default:
		return SW_NO_ID;
	}
	const sw_op *source = sw_op_at(pass->out, pass->out->values.data[operands[0]].op);
	bool moves = source->opcode == SW_OP_BROADCAST || source->opcode == SW_OP_RESHAPE;
	sw_id number = moves ? source->operands[0] : operands[0];
	return sw_value_shape(pass->out, number).rank == 0 ? number : SW_NO_ID;
}

/* Return a number of `out` in a shape of `out`: itself, its broadcast, or a variable number's
 * reshape. */
static sw_id emit_spread(rewriter *pass, int32_t to, const sw_op *op, sw_shape shape, sw_id number)
{
	sw_attrs attrs = {0};
	const sw_op *made = sw_op_at(pass->out, pass->out->values.data[number].op);
	if (shape.rank == 0)
		return number;
	if (sw_shape_elements(shape) == 1 && made->opcode != SW_OP_CONSTANT)
		return emit_new(pass, to, op, SW_OP_RESHAPE, NULL, shape, &number, 1);
	return emit_new(pass, to, op, SW_OP_BROADCAST, &attrs, shape, &number, 1);
}

/* Return whether all elements of the result are one: a constant list of one number, however often,
 * what follows from constants, and a number that is moved around. */
static bool fold_number(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	uint64_t element[2] = {0};
	sw_id number;
	sw_shape shape;
	if (op->n_results != 1 || sw_value_shape(pass->in, op->first_result).bounded ||
	    sw_op_sharding(op))
		return false;
	if (find_element(op, element) ||
	    sw_fold_number(pass->out, pass->in, op, operands, element))
		number = emit_scalar(pass, to, op, element);
	else
		number = moved_number(pass, op, operands);
	if (number == SW_NO_ID)
		return false;
	shape = sw_value_shape(pass->in, op->first_result);
	shape = sw_build_shape(pass->out, shape.type, shape.dims, shape.rank);
	pass->value[op->first_result] = emit_spread(pass, to, op, shape, number);
	return true;
}

/* More are kept as ops, lest lists take more memory than the program. */
#define MAX_LISTED (1 << 22)

static bool fold_array(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	sw_attrs attrs = {0};
	if (pass->listed > MAX_LISTED ||
	    !sw_fold_array(pass->out, pass->in, op, operands, &attrs.constant))
		return false;
	pass->listed += sw_shape_elements(attrs.constant.shape);
	pass->value[op->first_result] = emit_new(pass, to, op, SW_OP_CONSTANT, &attrs,
	                                         attrs.constant.shape, NULL, 0);
	return true;
}

/* Set the start of the box that a slice, or a dynamic one at a constant place, cuts out. */
static bool is_box(const rewriter *pass, const sw_op *op, const sw_id *operands, int64_t *start)
{
	if (op->opcode == SW_OP_SLICE) {
		for (int32_t d = 0; d < op->attrs->slice.start.n; d++) {
			start[d] = op->attrs->slice.start.v[d];
			if (op->attrs->slice.stride.n > d && op->attrs->slice.stride.v[d] != 1)
				return false;
		}
		return true;
	}
	if (op->opcode != SW_OP_DYNAMIC_SLICE)
		return false;
	sw_shape whole = sw_value_shape(pass->in, op->operands[0]);
	return op->n_operands == 1 + (uint32_t)whole.rank &&
	       sw_fold_starts(pass->out, whole, operands + 1, op->attrs->dynamic_slice.sizes.v,
	                      start);
}

/* Write a box of a value of `out`, seen through what was put together; a conversion of that is one
 * of the box. */
static sw_id emit_box(rewriter *pass, int32_t to, const sw_op *op, sw_id x, const int64_t *size,
                      int64_t *start)
{
	int64_t limit[SW_MAX_RANK], stride[SW_MAX_RANK], inner[SW_MAX_RANK];
	x = sw_fold_box(pass->out, x, size, start);
	sw_shape shape = sw_value_shape(pass->out, x);
	const sw_op *of = sw_op_at(pass->out, pass->out->values.data[x].op);
	bool whole = true;
	for (int32_t d = 0; d < shape.rank; d++) {
		whole = whole && size[d] == shape.dims[d];
		limit[d] = start[d] + size[d];
		inner[d] = start[d];
		stride[d] = 1;
	}
	if (whole)
		return x;
	sw_shape box = sw_build_shape(pass->out, shape.type, size, shape.rank);
	if (of->opcode == SW_OP_BROADCAST && of->attrs->dims.dims.n == 0)
		return emit_spread(pass, to, op, box, of->operands[0]);
	if (of->opcode == SW_OP_CONVERT &&
	    sw_fold_box(pass->out, of->operands[0], size, inner) != of->operands[0]) {
		x = emit_box(pass, to, op, of->operands[0], size, start);
		return emit_new(pass, to, op, SW_OP_CONVERT, NULL, box, &x, 1);
	}
	sw_attrs attrs = {.slice = {.start = sw_build_ints(pass->out, start, shape.rank),
	                            .limit = sw_build_ints(pass->out, limit, shape.rank),
	                            .stride = sw_build_ints(pass->out, stride, shape.rank)}};
	return emit_new(pass, to, op, SW_OP_SLICE, &attrs, box, &x, 1);
}

static bool fold_box(rewriter *pass, int32_t to, const sw_op *op, const sw_id *operands)
{
	int64_t start[SW_MAX_RANK];
	if (sw_op_sharding(op) || !is_box(pass, op, operands, start))
		return false;
	pass->value[op->first_result] = emit_box(
		pass, to, op, operands[0], sw_value_shape(pass->in, op->first_result).dims, start);
	return true;
}

/* ---- transposed products ---------------------------------------------------------------- */

static void count_uses(rewriter *pass)
{
	const sw_program *in = pass->in;
	pass->uses = sw_alloc(sizeof(*pass->uses) * (in->values.len + 1));
	for (size_t i = 0; i < in->ops.len; i++)
		for (uint32_t k = 0; k < in->ops.data[i].n_operands; k++)
			pass->uses[in->ops.data[i].operands[k]]++;
	for (size_t c = 0; c < in->computations.len; c++)
		for (size_t i = 0; i < in->computations.data[c].results.len; i++)
			pass->uses[in->computations.data[c].results.data[i]]++;
}

/* Return the dot of which the op is the only reader, and whose result it turns from [batch, left,
 * right] to [batch, right, left]; NULL if there is none. So JAX writes the gradients of weights. */
static const sw_op *turned_dot(const rewriter *pass, const sw_op *op)
{
	const sw_op *dot = op->opcode == SW_OP_TRANSPOSE
	                           ? sw_op_at(pass->in, pass->in->values.data[op->operands[0]].op)
	                           : NULL;
	if (!dot || dot->opcode != SW_OP_DOT || dot->n_operands != 2 ||
	    pass->uses[op->operands[0]] != 1)
		return NULL;
	sw_ints order = op->attrs->dims.dims;
	int32_t batch = dot->attrs->dot.lhs_batch.n,
		left = sw_value_shape(pass->in, dot->operands[0]).rank - batch -
	               dot->attrs->dot.lhs_contracting.n,
		right = order.n - batch - left;
	for (int32_t i = 0; i < order.n; i++) {
		int32_t from = i < batch ? i : i < batch + right ? i + left : i - right;
		if (order.v[i] != from)
			return NULL;
	}
	return dot;
}

/* Write the product of the other order. */
static void walk_turned_dot(rewriter *pass, int32_t to, const sw_op *op, const sw_op *dot)
{
	sw_id operands[2] = {pass->value[dot->operands[1]], pass->value[dot->operands[0]]};
	const sw_attrs *given = sw_build_copy_attrs(pass->out, dot);
	sw_attrs attrs = {.dot = {.lhs_batch = given->dot.rhs_batch,
	                          .rhs_batch = given->dot.lhs_batch,
	                          .lhs_contracting = given->dot.rhs_contracting,
	                          .rhs_contracting = given->dot.lhs_contracting}};
	sw_shape shape = sw_value_shape(pass->in, op->first_result);
	shape = sw_build_shape(pass->out, shape.type, shape.dims, shape.rank);
	sw_op_spec spec = {.opcode = SW_OP_DOT,
	                   .name = dot->name,
	                   .operands = operands,
	                   .n_operands = 2,
	                   .attrs = &attrs,
	                   .shapes = &shape,
	                   .n_results = 1,
	                   .op_name = dot->op_name,
	                   .extras = sw_build_copy_extras(pass->out, dot->extras),
	                   .line = dot->line};
	pass->status = sw_build_op(pass->out, to, &spec, &pass->value[op->first_result], pass->err);
}

/* Write a gather or a scatter with batches in place of indices that count the rows. Return false if
 * it has none. */
static bool walk_indexed(rewriter *pass, int32_t to, const sw_op *op, sw_id *operands,
                         const int32_t *called)
{
	sw_id columns[SW_MAX_RANK];
	uint32_t n, which = op->opcode == SW_OP_GATHER ? 1 : op->n_operands / 2;
	sw_attrs attrs = {0};
	if (!sw_batch_indices(pass->out, op, operands, &attrs.index, columns, &n))
		return false;
	const sw_op *list = sw_op_at(pass->out, pass->out->values.data[operands[which]].op);
	sw_shape shape = sw_value_shape(pass->out, operands[which]);
	int64_t dims[SW_MAX_RANK];
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = d == attrs.index.index_vector_dim ? n : shape.dims[d];
	shape = sw_build_shape(pass->out, shape.type, dims, shape.rank);
	operands[which] =
		n == 1 ? columns[0]
		       : emit_new(pass, to, list, SW_OP_CONCATENATE,
	                          sw_build_copy_attrs(pass->out, list), shape, columns, n);
	sw_op_spec spec = {.opcode = (sw_opcode)op->opcode,
	                   .name = op->name,
	                   .operands = operands,
	                   .n_operands = op->n_operands,
	                   .called = called,
	                   .n_called = op->n_called,
	                   .attrs = &attrs,
	                   .op_name = op->op_name,
	                   .extras = sw_build_copy_extras(pass->out, op->extras),
	                   .line = op->line};
	sw_id first = SW_NO_ID;
	pass->status = sw_build_op(pass->out, to, &spec, &first, pass->err);
	for (uint32_t k = 0; k < op->n_results; k++)
		pass->value[op->first_result + k] = first + k;
	return true;
}

static void walk_op(rewriter *pass, int32_t to, sw_id op_id)
{
	const sw_op *op = sw_op_at(pass->in, op_id);
	SW_VEC(sw_id) operands = {0};
	SW_VEC(int32_t) called = {0};
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_vec_push(&operands, pass->value[op->operands[k]]);
	for (uint32_t k = 0; k < op->n_called; k++)
		sw_vec_push(&called, pass->computation[op->called[k]]);
	if (op->opcode == SW_OP_RESHAPE)
		operands.data[0] = reshape_source(pass, operands.data[0]);
	sw_fold_constant_right(pass->out, op, operands.data);
	sw_id same = forwarded(pass, op, operands.data);
	if (same == SW_NO_ID)
		same = sw_fold_neutral(pass->out, op, operands.data);
	const sw_op *dot = turned_dot(pass, op);
	int32_t branch = op->opcode == SW_OP_CONDITIONAL
	                         ? sw_fold_branch(pass->out, op, operands.data[0])
	                         : -1;
	if (sw_is_inlined(op) || branch >= 0)
		walk_called(pass, to, op, (uint16_t)SW_MAX(branch, 0), operands.data);
	else if (pass->is_layers && pass->is_layers[op_id])
		walk_layers(pass, to, op, operands.data);
	else if (sw_is_batch_norm(pass->in, op))
		walk_batch_norm(pass, to, op, operands.data);
	else if (is_pair(pass->in, op))
		walk_pair(pass, to, op, operands.data);
	else if (same != SW_NO_ID)
		pass->value[op->first_result] = same;
	else if (fold_number(pass, to, op, operands.data) ||
	         fold_array(pass, to, op, operands.data))
		;
	else if (moves_ones(pass, op))
		walk_reshape(pass, to, op, operands.data[0]);
	else if (dot)
		walk_turned_dot(pass, to, op, dot);
	else if (fold_box(pass, to, op, operands.data) ||
	         walk_concatenation(pass, to, op, operands.data) ||
	         walk_barrier(pass, to, op, operands.data) ||
	         walk_indexed(pass, to, op, operands.data, called.data))
		;
	else
		emit(pass, to, op_id, operands.data, called.data);
	sw_vec_clear(&operands);
	sw_vec_clear(&called);
}

static void walk(rewriter *pass, int32_t from, int32_t to, bool inlined)
{
	const sw_computation *computation = &pass->in->computations.data[from];
	for (size_t i = 0; i < computation->ops.len && pass->status == SW_OK; i++) {
		const sw_op *op = sw_op_at(pass->in, computation->ops.data[i]);
		if (!inlined || op->opcode != SW_OP_PARAMETER)
			walk_op(pass, to, computation->ops.data[i]);
	}
}

static void pass_init(rewriter *pass, const sw_program *in, sw_error *err)
{
	*pass = (rewriter){.in = in, .err = err};
	pass->out = sw_program_new(in->name);
	pass->computation = sw_alloc(sizeof(int32_t) * (in->computations.len + 1));
	pass->value = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	for (size_t i = 0; i < in->computations.len; i++)
		pass->computation[i] = -1;
	sw_build_copy_frame(pass->out, in);
}

static void set_results(rewriter *pass, int32_t from, int32_t to)
{
	const sw_computation *computation = &pass->in->computations.data[from];
	SW_VEC(sw_id) results = {0};
	for (size_t i = 0; i < computation->results.len; i++)
		sw_vec_push(&results, pass->value[computation->results.data[i]]);
	sw_build_results(pass->out, to, results.data, (uint32_t)results.len,
	                 computation->root_tuple);
	sw_vec_clear(&results);
}

static sw_status pass_finish(rewriter *pass, sw_program **out)
{
	free(pass->computation);
	free(pass->value);
	free(pass->uses);
	sw_map_clear(&pass->seen);
	sw_text_clear(&pass->key);
	if (pass->status == SW_OK) {
		sw_program_find_trip_counts(pass->out);
		pass->status = sw_program_verify(pass->out, pass->err);
	}
	*out = pass->out;
	if (pass->status != SW_OK) {
		sw_program_free(pass->out);
		*out = NULL;
	}
	return pass->status;
}

/* Return the place that records which computation performs the reduction of this one; NULL if it is
 * not a known reduction. */
static int32_t *reducer_like(rewriter *pass, int32_t c)
{
	sw_monoid monoid = sw_computation_monoid(pass->in, c);
	if (monoid == SW_MONOID_NONE || c == pass->in->entry)
		return NULL;
	return &pass->reducer[monoid][sw_value_shape(pass->in,
	                                             pass->in->computations.data[c].results.data[0])
	                                      .type];
}

/* Programs have a reducer for each of their reductions: the first of equal ones serves all. */
static void forward_computation(rewriter *pass, int32_t c)
{
	int32_t *reducer = reducer_like(pass, c);
	if (reducer && *reducer > 0) {
		pass->computation[c] = *reducer - 1;
		return;
	}
	sw_map_clear(&pass->seen);
	int32_t to = sw_build_computation(pass->out, pass->in->computations.data[c].name);
	walk(pass, c, to, false);
	if (pass->status == SW_OK)
		set_results(pass, c, to);
	pass->computation[c] = to;
	if (reducer)
		*reducer = to + 1;
}

static sw_status forward(const sw_program *in, const bool *is_layers, sw_program **out,
                         sw_error *err)
{
	rewriter pass;
	sw_reached r;
	pass_init(&pass, in, err);
	pass.is_layers = is_layers;
	count_uses(&pass);
	pass.status = sw_reached_init(&r, in, err);
	for (size_t n = 0; n < r.order.len && pass.status == SW_OK; n++)
		if (r.stays[r.order.data[n]])
			forward_computation(&pass, r.order.data[n]);
	pass.out->entry = pass.computation[in->entry];
	sw_reached_clear(&r);
	return pass_finish(&pass, out);
}

/* ---- pruning ---------------------------------------------------------------------------- */

/* Take the ops that no result and no effect needs out of a computation. */
static void drop_dead(sw_program *in, int32_t c, const bool *effect, bool *live)
{
	sw_computation *computation = &in->computations.data[c];
	size_t n = 0;
	for (size_t i = 0; i < computation->results.len; i++)
		live[in->values.data[computation->results.data[i]].op] = true;
	for (size_t i = computation->ops.len; i-- > 0;) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(in, id);
		live[id] |= effect[id] || op->opcode == SW_OP_PARAMETER;
		for (uint32_t k = 0; live[id] && k < op->n_operands; k++)
			live[in->values.data[op->operands[k]].op] = true;
	}
	for (size_t i = 0; i < computation->ops.len; i++)
		if (live[computation->ops.data[i]])
			computation->ops.data[n++] = computation->ops.data[i];
	computation->ops.len = n;
}

typedef SW_VEC(int32_t) computation_list;
static int32_t copy_computation(rewriter *pass, int32_t c);

/* List the copies of the computations that the ops call, in order. */
static void copy_callees(rewriter *pass, int32_t c, computation_list *copies)
{
	const sw_computation *computation = &pass->in->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(pass->in, computation->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called; k++) {
			int32_t *shared = &pass->computation[op->called[k]];
			if (!sw_is_region(op) && *shared < 0)
				*shared = copy_computation(pass, op->called[k]);
			sw_vec_push(copies, sw_is_region(op)
			                            ? copy_computation(pass, op->called[k])
			                            : *shared);
		}
	}
}

static int32_t copy_computation(rewriter *pass, int32_t c)
{
	const sw_computation *computation = &pass->in->computations.data[c];
	computation_list called = {0};
	copy_callees(pass, c, &called);
	int32_t to = sw_build_computation(pass->out, computation->name);
	SW_VEC(sw_id) operands = {0};
	size_t next = 0; /* of `called` */
	for (size_t i = 0; i < computation->ops.len && pass->status == SW_OK; i++) {
		const sw_op *op = sw_op_at(pass->in, computation->ops.data[i]);
		operands.len = 0;
		for (uint32_t k = 0; k < op->n_operands; k++)
			sw_vec_push(&operands, pass->value[op->operands[k]]);
		copy_op(pass, to, computation->ops.data[i], operands.data,
		        op->n_called ? &called.data[next] : NULL);
		next += op->n_called;
	}
	if (pass->status == SW_OK)
		set_results(pass, c, to);
	sw_vec_clear(&operands);
	sw_vec_clear(&called);
	return to;
}

/* Take dead ops out of `in`, put those that follow from constants before their readers, and write
 * the computations that are still referred to. */
static sw_status prune(sw_program *in, sw_program **out, sw_error *err)
{
	rewriter pass;
	pass_init(&pass, in, err);
	size_t n = in->computations.len;
	bool *live = sw_alloc(in->ops.len + 1), *effect = sw_alloc(in->ops.len + 1),
	     *effects = sw_alloc(n + 1);
	sw_program_effects(in, effect, effects);
	for (size_t c = 0; c < n; c++)
		drop_dead(in, (int32_t)c, effect, live);
	sw_program_order_constants(in);
	pass.out->entry = copy_computation(&pass, in->entry);
	free(live);
	free(effect);
	free(effects);
	return pass_finish(&pass, out);
}

static bool has_batch_norm(const sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++)
		if (sw_is_batch_norm(program, &program->ops.data[i]))
			return true;
	return false;
}

/* A second round merges the ops that batch normalisations are written out as with equal ones: a
 * canonical program stays as it is when it is made canonical again. */
static sw_status forward_all(const sw_program *in, sw_program **out, sw_error *err)
{
	sw_program *once;
	sw_status status = forward(in, NULL, &once, err);
	*out = once;
	if (status != SW_OK || !has_batch_norm(in))
		return status;
	status = forward(once, NULL, out, err);
	sw_program_free(once);
	return status;
}

/* Replace a program by the one without ops that no result needs. */
static sw_status prune_last(sw_program **program, sw_error *err)
{
	sw_program *forwarded = *program;
	sw_status status = prune(forwarded, program, err);
	sw_program_free(forwarded);
	return status;
}

/* Write out the loops over layers of a canonical program. */
static sw_status write_layers(sw_program **program, sw_error *err)
{
	sw_program *looped = *program;
	bool *is_layers = sw_alloc(looped->ops.len + 1);
	sw_status status = SW_OK;
	if (sw_find_layer_loops(looped, is_layers)) {
		status = forward(looped, is_layers, program, err);
		sw_program_free(looped);
		if (status == SW_OK)
			status = prune_last(program, err);
	}
	free(is_layers);
	return status;
}

/* Put in a program's place what a pass makes of it, if anything, in canonical form. */
static sw_status write_by(sw_program *(*pass)(const sw_program *), sw_program **program,
                          sw_error *err)
{
	sw_program *written = pass(*program);
	if (!written)
		return SW_OK;
	sw_program_free(*program);
	sw_status status = forward(written, NULL, program, err);
	sw_program_free(written);
	return status == SW_OK ? prune_last(program, err) : status;
}

sw_status sw_rewrite_canonical(const sw_program *in, sw_program **out, sw_error *err)
{
	*out = NULL;
	sw_status status = forward_all(in, out, err);
	if (status == SW_OK)
		status = prune_last(out, err);
	if (status == SW_OK)
		status = write_layers(out, err);
	if (status == SW_OK)
		status = write_by(sw_with_row_loops, out, err);
	if (status == SW_OK)
		status = write_by(sw_with_data_loops, out, err);
	if (status == SW_OK)
		status = write_by(sw_without_taking_again, out, err);
	return status == SW_OK ? write_by(sw_without_sorting, out, err) : status;
}
