/* Shape inference: the table of rules, and the checks of every op. */
#include "program/attributes.h"
#include "program/internal.h"

static sw_infer_rule *const rules[SW_OPCODE_COUNT] = {
	[SW_OP_PARAMETER] = sw_infer_parameter,
	[SW_OP_CONSTANT] = sw_infer_constant,
	[SW_OP_IOTA] = sw_infer_iota,
	[SW_OP_PARTITION_ID] = sw_infer_rank_id,
	[SW_OP_REPLICA_ID] = sw_infer_rank_id,
	/* the other elementwise opcodes: sw_infer_elementwise, by class */
	[SW_OP_CONVERT] = sw_infer_convert,
	[SW_OP_COPY] = sw_infer_copy,
	[SW_OP_REDUCE_PRECISION] = sw_infer_reduce_precision,
	[SW_OP_COMPARE] = sw_infer_compare,
	[SW_OP_COMPLEX] = sw_infer_complex,
	[SW_OP_STOCHASTIC_CONVERT] = sw_infer_stochastic_convert,
	[SW_OP_CLAMP] = sw_infer_clamp,
	[SW_OP_SELECT] = sw_infer_select,
	[SW_OP_BITCAST] = sw_infer_bitcast,
	[SW_OP_BITCAST_CONVERT] = sw_infer_bitcast_convert,
	[SW_OP_BROADCAST] = sw_infer_broadcast,
	[SW_OP_CONCATENATE] = sw_infer_concatenate,
	[SW_OP_DYNAMIC_RESHAPE] = sw_infer_dynamic_reshape,
	[SW_OP_DYNAMIC_SLICE] = sw_infer_dynamic_slice,
	[SW_OP_DYNAMIC_UPDATE_SLICE] = sw_infer_dynamic_update_slice,
	[SW_OP_GATHER] = sw_infer_gather,
	[SW_OP_GET_DIMENSION_SIZE] = sw_infer_get_dimension_size,
	[SW_OP_PAD] = sw_infer_pad,
	[SW_OP_RESHAPE] = sw_infer_reshape,
	[SW_OP_REVERSE] = sw_infer_reverse,
	[SW_OP_TERMS] = sw_infer_terms,
	[SW_OP_SET_DIMENSION_SIZE] = sw_infer_set_dimension_size,
	[SW_OP_SLICE] = sw_infer_slice,
	[SW_OP_TRANSPOSE] = sw_infer_transpose,
	[SW_OP_CONVOLUTION] = sw_infer_convolution,
	[SW_OP_DOT] = sw_infer_dot,
	[SW_OP_RAGGED_DOT] = sw_infer_ragged_dot,
	[SW_OP_SCALED_DOT] = sw_infer_scaled_dot,
	[SW_OP_REDUCE] = sw_infer_reduce,
	[SW_OP_REDUCE_WINDOW] = sw_infer_reduce_window,
	[SW_OP_SCATTER] = sw_infer_scatter,
	[SW_OP_SELECT_AND_SCATTER] = sw_infer_select_and_scatter,
	[SW_OP_SORT] = sw_infer_sort,
	[SW_OP_TOPK] = sw_infer_topk,
	[SW_OP_BATCH_NORM_GRAD] = sw_infer_batch_norm_grad,
	[SW_OP_BATCH_NORM_INFERENCE] = sw_infer_batch_norm_inference,
	[SW_OP_BATCH_NORM_TRAINING] = sw_infer_batch_norm_training,
	[SW_OP_CALL] = sw_infer_call,
	[SW_OP_CONDITIONAL] = sw_infer_conditional,
	[SW_OP_FUSION] = sw_infer_call,
	[SW_OP_MAP] = sw_infer_map,
	[SW_OP_SCAN] = sw_infer_scan,
	[SW_OP_WHILE] = sw_infer_while,
	[SW_OP_RNG] = sw_infer_rng,
	[SW_OP_RNG_BIT_GENERATOR] = sw_infer_rng_bit_generator,
	[SW_OP_RNG_GET_AND_UPDATE_STATE] = sw_infer_rng_state,
	[SW_OP_CHOLESKY] = sw_infer_cholesky,
	[SW_OP_FFT] = sw_infer_fft,
	[SW_OP_TRIANGULAR_SOLVE] = sw_infer_triangular_solve,
	[SW_OP_ALL_GATHER] = sw_infer_all_gather,
	[SW_OP_ALL_GATHER_START] = sw_infer_all_gather_start,
	[SW_OP_ALL_GATHER_DONE] = sw_infer_all_gather_done,
	[SW_OP_ALL_REDUCE] = sw_infer_all_reduce,
	[SW_OP_ALL_REDUCE_START] = sw_infer_all_reduce,
	[SW_OP_ALL_REDUCE_DONE] = sw_infer_pass_through,
	[SW_OP_ALL_TO_ALL] = sw_infer_all_to_all,
	[SW_OP_RAGGED_ALL_TO_ALL] = sw_infer_ragged_all_to_all,
	[SW_OP_COLLECTIVE_BROADCAST] = sw_infer_collective_broadcast,
	[SW_OP_COLLECTIVE_PERMUTE] = sw_infer_permute,
	[SW_OP_COLLECTIVE_PERMUTE_START] = sw_infer_permute_start,
	[SW_OP_COLLECTIVE_PERMUTE_DONE] = sw_infer_permute_done,
	[SW_OP_REDUCE_SCATTER] = sw_infer_reduce_scatter,
	[SW_OP_SEND] = sw_infer_send,
	[SW_OP_SEND_DONE] = sw_infer_token,
	[SW_OP_RECV] = sw_infer_recv,
	[SW_OP_RECV_DONE] = sw_infer_recv_done,
	[SW_OP_ADD_DEPENDENCY] = sw_infer_add_dependency,
	[SW_OP_AFTER_ALL] = sw_infer_after_all,
	[SW_OP_ASYNC_START] = sw_infer_async_start,
	[SW_OP_ASYNC_UPDATE] = sw_infer_pass_through,
	[SW_OP_ASYNC_DONE] = sw_infer_async_done,
	[SW_OP_COPY_START] = sw_infer_copy_start,
	[SW_OP_COPY_DONE] = sw_infer_copy_done,
	[SW_OP_CUSTOM_CALL] = sw_infer_custom_call,
	[SW_OP_DOMAIN] = sw_infer_copy,
	[SW_OP_INFEED] = sw_infer_declared_only,
	[SW_OP_OUTFEED] = sw_infer_token,
	[SW_OP_OPT_BARRIER] = sw_infer_pass_through,
	[SW_OP_TUPLE] = sw_infer_text_only,
	[SW_OP_GET_TUPLE_ELEMENT] = sw_infer_text_only,
	[SW_OP_UNKNOWN] = sw_infer_declared_only,
};

/* ---- one op ----------------------------------------------------------------------------- */

/* Return whether the opcode may take a tuple for an operand although its text form has a fixed
 * number of operands. */
static bool takes_tuple(sw_opcode opcode)
{
	return opcode == SW_OP_COPY || opcode == SW_OP_DOMAIN || opcode == SW_OP_ADD_DEPENDENCY;
}

static sw_status check_arity(const sw_inference *x)
{
	int expected = sw_opcode_operands(x->spec->opcode);
	if (expected == SW_ANY || takes_tuple(x->spec->opcode) ||
	    x->spec->n_operands == (uint32_t)expected)
		return SW_OK;
	return sw_infer_fail(x, "expected %d operand%s, found %u", expected,
	                     expected == 1 ? "" : "s", x->spec->n_operands);
}

static sw_status check_called(const sw_inference *x)
{
	size_t n;
	const sw_attribute *rows = sw_attributes_of(x->spec->opcode, &n);
	size_t least = 0, most = 0;
	for (size_t i = 0; i < n; i++) {
		if (rows[i].kind == SW_ATTRIBUTE_COMPUTATIONS)
			most = UINT16_MAX;
		if (rows[i].kind != SW_ATTRIBUTE_COMPUTATION)
			continue;
		most = SW_MAX(most, rows[i].offset + 1);
		if (rows[i].use == SW_ATTRIBUTE_REQUIRED)
			least = SW_MAX(least, rows[i].offset + 1);
	}
	if (x->spec->n_called < least || x->spec->n_called > most)
		return sw_infer_fail(x, "expected %zu called computation%s, found %u", least,
		                     least == 1 ? "" : "s", x->spec->n_called);
	return SW_OK;
}

static sw_status check_words(const sw_inference *x)
{
	size_t n;
	const sw_attribute *rows = sw_attributes_of(x->spec->opcode, &n);
	for (size_t i = 0; i < n; i++) {
		bool word =
			rows[i].kind == SW_ATTRIBUTE_WORD || rows[i].kind == SW_ATTRIBUTE_STRING;
		if (!word || rows[i].use != SW_ATTRIBUTE_REQUIRED)
			continue;
		const char *const *member = (const void *)((const char *)x->attrs + rows[i].offset);
		if (!*member)
			return sw_infer_fail(x, "expected the attribute %s", rows[i].name);
	}
	return SW_OK;
}

/* Return whether the opcode may take or yield a token or an opaque value. */
static bool takes_tokens(sw_opcode opcode)
{
	sw_op_class class = sw_opcode_class(opcode);
	return class == SW_CLASS_OTHER || class == SW_CLASS_REGION ||
	       class == SW_CLASS_COLLECTIVE || opcode == SW_OP_COPY || opcode == SW_OP_PARAMETER;
}

static sw_status check_tokens(const sw_inference *x)
{
	if (takes_tokens(x->spec->opcode))
		return SW_OK;
	for (uint32_t i = 0; i < x->spec->n_operands; i++) {
		sw_shape shape = sw_infer_operand(x, i);
		if (sw_type_kind_of(shape.type) == SW_KIND_TOKEN)
			return sw_infer_fail(x, "operand %u: expected an array, found %s", i,
			                     sw_infer_text(x, shape));
	}
	return SW_OK;
}

static sw_status check_declared(const sw_inference *x)
{
	const sw_op_spec *spec = x->spec;
	for (uint32_t i = 0; spec->shapes && i < spec->n_results; i++) {
		if ((unsigned)spec->shapes[i].type >= SW_TYPE_COUNT)
			return sw_infer_fail(x, "result %u has an element type that does not exist",
			                     i);
		if (spec->shapes[i].rank < 0 || spec->shapes[i].rank > SW_MAX_RANK)
			return sw_infer_fail(x,
			                     "result %u: expected a rank of at most %d, found %d",
			                     i, SW_MAX_RANK, spec->shapes[i].rank);
		if (!sw_shape_fits(spec->shapes[i]))
			return sw_infer_fail(x, "result %u: %s has more bytes than can be counted",
			                     i, sw_infer_text(x, spec->shapes[i]));
	}
	return SW_OK;
}

static sw_status check_inferred(const sw_inference *x)
{
	for (uint32_t i = 0; i < x->n_out; i++) {
		if (x->out[i].rank > SW_MAX_RANK)
			return sw_infer_fail(x, "its result would have rank %d; the largest is %d",
			                     x->out[i].rank, SW_MAX_RANK);
		if (!sw_shape_fits(x->out[i]))
			return sw_infer_fail(x, "its result %s has more bytes than can be counted",
			                     sw_infer_text(x, x->out[i]));
	}
	return SW_OK;
}

static sw_infer_rule *rule_of(sw_opcode opcode)
{
	return rules[opcode] ? rules[opcode] : sw_infer_elementwise;
}

sw_status sw_infer_in(const sw_program *program, sw_arena *arena, const sw_op_spec *spec,
                      const sw_shape **shapes, uint32_t *n, sw_error *err)
{
	sw_attrs defaults;
	sw_inference x = {
		.program = program, .arena = arena, .spec = spec, .attrs = spec->attrs, .err = err};
	if (!x.attrs) {
		sw_attrs_init(spec->opcode, &defaults);
		x.attrs = &defaults;
	}
	static sw_status (*const steps[])(const sw_inference *) = {
		check_arity, check_called, check_words, check_tokens, check_declared,
	};
	sw_status status = SW_OK;
	for (size_t s = 0; s < SW_COUNT(steps) && status == SW_OK; s++)
		status = steps[s](&x);
	if (status == SW_OK)
		status = rule_of(spec->opcode)(&x);
	if (status == SW_OK)
		status = check_inferred(&x);
	*shapes = x.out;
	*n = x.out ? x.n_out : 0;
	return status;
}

sw_status sw_infer(sw_program *program, const sw_op_spec *spec, const sw_shape **shapes,
                   uint32_t *n, sw_error *err)
{
	return sw_infer_in(program, &program->arena, spec, shapes, n, err);
}

/* Return a copy of the declared shapes, with dims in the arena. */
static const sw_shape *copy_declared(sw_arena *arena, const sw_op_spec *spec)
{
	sw_shape *copy = SW_NEW_N(arena, sw_shape, SW_MAX(spec->n_results, 1));
	for (uint32_t i = 0; i < spec->n_results; i++) {
		copy[i] = spec->shapes[i];
		size_t bytes = sizeof(int64_t) * (size_t)copy[i].rank;
		copy[i].dims = bytes ? sw_arena_copy(arena, copy[i].dims, bytes) : NULL;
	}
	return copy;
}

/* Check that inferred and declared shapes agree. Bounds are not inferred, but taken from the
 * declared shapes. */
static sw_status compare_declared(const sw_inference *x)
{
	const sw_op_spec *spec = x->spec;
	if (spec->n_results != x->n_out)
		return sw_infer_fail(x, "expected %u results, found %u declared", x->n_out,
		                     spec->n_results);
	for (uint32_t i = 0; i < x->n_out; i++) {
		if (!sw_shape_same(x->out[i], spec->shapes[i]))
			return sw_infer_fail(x, "its result %u is %s, but %s was declared", i,
			                     sw_infer_text(x, x->out[i]),
			                     sw_infer_text(x, spec->shapes[i]));
		x->out[i].bounded = spec->shapes[i].bounded;
	}
	return SW_OK;
}

/* An op without results has an inferred list of length 0; an op that cannot be inferred has no
 * list. */
sw_status sw_op_check(const sw_program *program, sw_arena *arena, const sw_op_spec *spec,
                      const sw_shape **shapes, uint32_t *n, sw_error *err)
{
	sw_inference x = {.program = program, .arena = arena, .spec = spec, .err = err};
	static const sw_attrs none;
	x.attrs = spec->attrs ? spec->attrs : &none;
	const sw_shape *out;
	sw_status status = sw_infer_in(program, arena, spec, &out, n, err);
	if (status != SW_OK)
		return status;
	*shapes = x.out = (sw_shape *)out;
	x.n_out = *n;
	if (out)
		return spec->shapes ? compare_declared(&x) : SW_OK;
	if (!spec->shapes)
		return sw_infer_fail(&x, "its result can't be inferred: a shape must be given");
	*shapes = copy_declared(arena, spec);
	*n = spec->n_results;
	return SW_OK;
}
