/* Calls of cuDNN's attention in place of the ops that compute it. */
#include "export/attention_calls.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/attention_formula.h"

typedef struct caller {
	const sw_program *in;
	sw_call_numbers numbers;
	sw_program *out;
	int32_t *computation; /* of `in` -> of `out`; -1: not written yet */
	sw_id *value;         /* of `in` -> of `out`; SW_NO_ID: not written yet */
	sw_attention_formulas list;
	uint32_t *gives;  /* per value of `in`: 1 + the attention that gives it */
	sw_id *forward;   /* per attention: the call's first result; SW_NO_ID: not written yet */
	SW_VEC(sw_id) stack; /* values of `in` that are being written */
	bool *begun;         /* per value of `in`: its operands are being written */
	uint32_t n_calls;
	sw_error *err;
} caller;

/* ---- which attention is called ------------------------------------------------------------ */

static int64_t size_of(const caller *x, const sw_heads *h, int32_t dim)
{
	return dim < 0 ? 1 : sw_value_shape(x->in, h->value).dims[dim];
}

/* Do these heads have the type, the batch, the depth and an even number of positions? */
static bool fit(const caller *x, const sw_heads *h, const sw_heads *q)
{
	int64_t depth = size_of(x, h, h->depth);
	return sw_value_shape(x->in, h->value).type == sw_value_shape(x->in, q->value).type &&
	       size_of(x, h, h->position) % 2 == 0 && depth == size_of(x, q, q->depth) &&
	       size_of(x, h, h->batch[0]) == size_of(x, q, q->batch[0]) &&
	       size_of(x, h, h->batch[1]) == size_of(x, q, q->batch[1]);
}

/* Return whether one of the values needs one of those that a call is to give. */
static bool needs_given(const caller *x, const sw_id *values, uint32_t n, const sw_id *given,
                        uint32_t n_given)
{
	SW_VEC(sw_id) left = {0};
	sw_map seen = {0};
	sw_id first = SW_NO_ID;
	bool needs = false;
	for (uint32_t k = 0; k < n_given; k++)
		first = SW_MIN(first, given[k]);
	for (uint32_t i = 0; i < n; i++)
		sw_vec_push(&left, values[i]);
	while (left.len > 0 && !needs) {
		sw_id value = left.data[--left.len];
		for (uint32_t k = 0; k < n_given; k++)
			needs |= value == given[k];
		/* operands stand before their users, so that what is made of `first` is behind it */
		if (value < first || sw_map_get(&seen, &value, sizeof(value)) != SW_ABSENT)
			continue;
		sw_map_put(&seen, &value, sizeof(value), 0);
		const sw_op *op = sw_op_at(x->in, x->in->values.data[value].op);
		for (uint32_t k = 0; k < op->n_operands; k++)
			sw_vec_push(&left, op->operands[k]);
	}
	sw_vec_clear(&left);
	sw_map_clear(&seen);
	return needs;
}

/* A softmax over queries looks like the derivative of one over keys, whose call would wait for
 * itself. */
static bool is_in_order(const caller *x, const sw_attention_formula *a)
{
	sw_id read[] = {a->q.value, a->k.value, a->v.value, a->d_o.value},
	      given[] = {a->d_q.value, a->d_k.value, a->d_v.value};
	if (a->o.value != SW_NO_ID && needs_given(x, read, 3, &a->o.value, 1))
		return false;
	return a->d_q.value == SW_NO_ID || !needs_given(x, read, 4, given, 3);
}

static bool is_called(const caller *x, const sw_attention_formula *a)
{
	sw_type type = sw_value_shape(x->in, a->q.value).type;
	int64_t depth = size_of(x, &a->q, a->q.depth);
	bool floats = type == SW_F32 && x->numbers == SW_CALLS_OF_FLOATS;
	return (type == SW_BF16 || type == SW_F16 || floats) && depth % 8 == 0 && depth <= 128 &&
	       fit(x, &a->q, &a->q) && fit(x, &a->k, &a->q) && fit(x, &a->v, &a->q) &&
	       (a->d_q.value == SW_NO_ID || fit(x, &a->d_o, &a->q)) && is_in_order(x, a);
}

/* ---- arrays as the calls take and give them ------------------------------------------------- */

/* List dimensions in this order, without those that are not there (-1), and all others behind them.
 * Return whether that moves any. */
static bool order_dims(const int32_t first[4], int32_t rank, int64_t *order)
{
	int32_t n = 0;
	bool moves = false;
	for (int i = 0; i < 4; i++)
		if (first[i] >= 0)
			order[n++] = first[i];
	for (int32_t d = 0; d < rank; d++) {
		int32_t i = 0;
		while (i < 4 && first[i] != d)
			i++;
		if (i == 4)
			order[n++] = d;
	}
	for (int32_t d = 0; d < rank; d++)
		moves |= order[d] != d;
	return moves;
}

static sw_id reshaped(caller *x, int32_t c, sw_id value, const int64_t *dims, int32_t rank)
{
	sw_shape shape = sw_value_shape(x->out, value);
	bool same = shape.rank == rank;
	for (int32_t d = 0; d < rank && same; d++)
		same = shape.dims[d] == dims[d];
	return same ? value : sw_emit_reshape(x->out, c, value, dims, rank);
}

/* Write the heads as [batch, positions, heads, depth]. */
static sw_id as_operand(caller *x, int32_t c, const sw_heads *h)
{
	sw_id value = x->value[h->value];
	const int32_t first[] = {h->batch[0], h->position, h->batch[1], h->depth};
	int64_t order[SW_MAX_RANK], dims[4];
	for (int i = 0; i < 4; i++)
		dims[i] = size_of(x, h, first[i]);
	if (order_dims(first, sw_value_shape(x->in, h->value).rank, order))
		value = sw_emit_transpose(x->out, c, value, order);
	return reshaped(x, c, value, dims, 4);
}

/* Write what a call gave, [batch, heads, positions, depth], as the program has it, times `factor`. */
static sw_id as_result(caller *x, int32_t c, sw_id value, const sw_heads *h, double factor)
{
	sw_shape shape = sw_value_shape(x->in, h->value);
	const int32_t first[] = {h->batch[0], h->batch[1], h->position, h->depth};
	int64_t order[SW_MAX_RANK], dims[SW_MAX_RANK], back[SW_MAX_RANK];
	bool moves = order_dims(first, shape.rank, order);
	for (int32_t d = 0; d < shape.rank; d++) {
		dims[d] = shape.dims[order[d]];
		back[order[d]] = d;
	}
	value = reshaped(x, c, value, dims, shape.rank);
	if (moves)
		value = sw_emit_transpose(x->out, c, value, back);
	if (sw_value_shape(x->out, value).type != shape.type)
		value = sw_emit_convert(x->out, c, value, shape.type);
	if (fabs(factor - 1) < 1e-6)
		return value;
	sw_id number = sw_emit_scalar(x->out, c, shape.type, factor);
	shape = sw_value_shape(x->out, value);
	return sw_emit_binary(x->out, c, SW_OP_MULTIPLY, value,
	                      sw_emit_broadcast(x->out, c, number, shape, NULL));
}

/* ---- the calls' attributes ------------------------------------------------------------------ */

/* A list of numbers as protobuf's JSON has it: of strings. */
static json_t *numbers(int n, const int64_t *v)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_sprintf("%lld", (long long)v[i]));
	return list;
}

static json_t *dot_numbers(int64_t left, int64_t right, int64_t left_heads, int64_t right_heads)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "lhs_contracting_dimensions", numbers(1, &left),
	                 "rhs_contracting_dimensions", numbers(1, &right),
	                 "lhs_batch_dimensions", numbers(2, (int64_t[]){0, left_heads}),
	                 "rhs_batch_dimensions", numbers(2, (int64_t[]){0, right_heads}));
}

static json_t *scores_shape(sw_type type, const int64_t *dims)
{
	json_t *layout = json_pack(
		"{s:[], s:[], s:[], s:o, s:[], s:s, s:s, s:s, s:s, s:s}", "dim_level_types",
		"dim_unique", "dim_ordered", "minor_to_major", numbers(4, (int64_t[]){3, 2, 1, 0}),
		"tiles", "element_size_in_bits", "0", "memory_space", "0", "index_primitive_type",
		"PRIMITIVE_TYPE_INVALID", "pointer_primitive_type", "PRIMITIVE_TYPE_INVALID",
		"dynamic_shape_metadata_prefix_bytes", "0");
	return json_pack("{s:s, s:o, s:[], s:o, s:[b, b, b, b]}", "element_type",
	                 type == SW_BF16 ? "BF16" : "F16", "dimensions", numbers(4, dims),
	                 "tuple_shapes", "layout", layout, "is_dynamic_dimension", 0, 0, 0, 0);
}

/* cudnn_fmha_backend_config (XLA's backend_configs.proto), as JAX fills it. */
static json_t *config_of(const caller *x, const sw_attention_formula *a, bool gradient)
{
	const sw_heads *q = &a->q, *k = &a->k;
	int64_t scores[] = {size_of(x, q, q->batch[0]), size_of(x, q, q->batch[1]),
	                    size_of(x, q, q->position), size_of(x, k, k->position)};
	json_t *fmha = json_pack(
		"{s:{s:s, s:s, s:{s:s, s:s}, s:b, s:s}, s:f, s:o, s:b, s:s, s:f, s:i, s:i, s:i, s:b}",
		"algorithm", "algo_id", "0", "math_type", "TENSOR_OP_MATH", "tuning_knobs", "17",
		"1", "24", "0", "is_cudnn_frontend", 1, "workspace_size", "0", "fmha_scale", a->scale,
		"intermediate_tensor_shape",
		scores_shape(sw_value_shape(x->in, q->value).type, scores), "is_flash_attention", 1,
		"mask_type", a->causal ? "CAUSAL" : "NO_MASK", "dropout_rate", 0.0, "seed", 42,
		"sliding_window_length", 0, "max_seg_per_batch", 1, "is_paged_attention", 0);
	if (gradient) {
		json_object_set_new(fmha, "bmm1_grad_gemm1_dot_dimension_numbers",
		                    dot_numbers(2, 1, 1, 2));
		json_object_set_new(fmha, "bmm1_grad_gemm2_dot_dimension_numbers",
		                    dot_numbers(3, 1, 1, 2));
		json_object_set_new(fmha, "bmm2_grad_gemm1_dot_dimension_numbers",
		                    dot_numbers(2, 1, 1, 2));
		json_object_set_new(fmha, "bmm2_grad_gemm2_dot_dimension_numbers",
		                    dot_numbers(3, 3, 2, 2));
	} else {
		json_object_set_new(fmha, "bmm1_dot_dimension_numbers", dot_numbers(3, 3, 2, 2));
		json_object_set_new(fmha, "bmm2_dot_dimension_numbers", dot_numbers(3, 1, 1, 2));
	}
	return json_pack("{s:s, s:o}", "operation_queue_id", "0", "cudnn_fmha_backend_config", fmha);
}

static void add_layouts(sw_text *text, const char *key, uint32_t n, const sw_shape *shapes,
                        bool results)
{
	sw_text_addf(text, ", %s = [", key);
	for (uint32_t i = 0; i < n; i++) {
		sw_text_add(text, i ? ", " : "");
		if (shapes[i].rank == 4)
			sw_text_add(text, results ? "dense<[3, 1, 2, 0]> : tensor<4xindex>"
			                          : "dense<[3, 2, 1, 0]> : tensor<4xindex>");
		else if (shapes[i].rank == 3)
			sw_text_add(text, "dense<[2, 1, 0]> : tensor<3xindex>");
		else
			sw_text_add(text, "dense<0> : tensor<1xindex>");
	}
	sw_text_add(text, "]");
}

/* Return the attributes as an extra: results lie as [batch, positions, heads, depth]. */
static const sw_extra *attributes_of(caller *x, const sw_attention_formula *a, bool gradient,
                                     const sw_id *operands, uint32_t n_operands,
                                     const sw_shape *results, uint32_t n_results)
{
	json_t *config = config_of(x, a, gradient);
	char *words = json_dumps(config, JSON_REAL_PRECISION(17));
	sw_shape shapes[6];
	sw_text text = {0};
	sw_text_add(&text, "api_version = 2 : i32, backend_config = \"");
	for (const char *at = words; *at; at++)
		sw_text_add_n(&text, *at == '"' ? "\\22" : at, *at == '"' ? 3 : 1);
	sw_text_add(&text, "\"");
	for (uint32_t i = 0; i < n_operands; i++)
		shapes[i] = sw_value_shape(x->out, operands[i]);
	add_layouts(&text, "operand_layouts", n_operands, shapes, false);
	add_layouts(&text, "result_layouts", n_results, results, true);
	sw_extra *extra = SW_NEW(&x->out->arena, sw_extra);
	*extra = (sw_extra){.name = SW_STABLE_CALL_ATTRIBUTES,
	                    .text = sw_arena_text(&x->out->arena, text.data)};
	sw_text_clear(&text);
	free(words);
	json_decref(config);
	return extra;
}

static sw_id emit_call(caller *x, int32_t c, const sw_attention_formula *a, bool gradient,
                       const sw_id *operands, uint32_t n_operands, sw_shape *results,
                       uint32_t n_results)
{
	sw_attrs attrs = {.custom.target = gradient ? "__cudnn$fmhaSoftmaxBackward"
	                                            : "__cudnn$fmhaSoftmax"};
	sw_op_spec spec = {.opcode = SW_OP_CUSTOM_CALL,
	                   .operands = operands,
	                   .n_operands = n_operands,
	                   .attrs = &attrs,
	                   .shapes = results,
	                   .n_results = n_results,
	                   .tuple = true,
	                   .extras = attributes_of(x, a, gradient, operands, n_operands, results,
	                                           n_results)};
	sw_id first = SW_NO_ID;
	x->n_calls++;
	return sw_build_op(x->out, c, &spec, &first, x->err) == SW_OK ? first : SW_NO_ID;
}

/* [batch, heads, positions, depth] of an array of heads. */
static sw_shape given_shape(caller *x, const sw_heads *h)
{
	int64_t dims[] = {size_of(x, h, h->batch[0]), size_of(x, h, h->batch[1]),
	                  size_of(x, h, h->position), size_of(x, h, h->depth)};
	return sw_build_shape(x->out, sw_value_shape(x->in, h->value).type, dims, 4);
}

static sw_shape workspace_shape(caller *x)
{
	return sw_build_shape(x->out, SW_U8, (int64_t[]){0}, 1);
}

/* Write the call of one attention forward; its operands are written. Return o, before the
 * statistics. */
static sw_id call_forward(caller *x, int32_t c, uint32_t number)
{
	const sw_attention_formula *a = &x->list.data[number];
	if (x->forward[number] != SW_NO_ID)
		return x->forward[number];
	sw_id operands[] = {as_operand(x, c, &a->q), as_operand(x, c, &a->k),
	                    as_operand(x, c, &a->v)};
	sw_shape o = given_shape(x, &a->q);
	sw_shape results[] = {o, sw_build_shape(x->out, SW_F32, o.dims, 3), workspace_shape(x)};
	return x->forward[number] = emit_call(x, c, a, false, operands, 3, results, 3);
}

static bool call_gradient(caller *x, int32_t c, uint32_t number)
{
	const sw_attention_formula *a = &x->list.data[number];
	static const int64_t positions_first[] = {0, 2, 1, 3};
	sw_id forward = call_forward(x, c, number);
	if (forward == SW_NO_ID)
		return false;
	sw_id o = sw_emit_transpose(x->out, c, forward, positions_first);
	sw_id operands[] = {as_operand(x, c, &a->q), as_operand(x, c, &a->k),
	                    as_operand(x, c, &a->v), forward + 1,
	                    as_operand(x, c, &a->d_o), o};
	sw_shape results[] = {given_shape(x, &a->q), given_shape(x, &a->k), given_shape(x, &a->v),
	                      workspace_shape(x)};
	sw_id first = emit_call(x, c, a, true, operands, 6, results, 4);
	if (first == SW_NO_ID)
		return false;
	const sw_heads *heads[] = {&a->d_q, &a->d_k, &a->d_v};
	double factor = a->d_scale / a->scale;
	for (uint32_t i = 0; i < 3; i++)
		x->value[heads[i]->value] = as_result(x, c, first + i, heads[i], i < 2 ? factor : 1);
	return true;
}

/* ---- writing on demand ---------------------------------------------------------------------- */

/* What a call needs may stand behind the first op that it replaces, so that each value is written
 * when it is needed first. Return whether all of these values are written; push those that are
 * not. */
static bool are_written(caller *x, const sw_id *values, uint32_t n)
{
	size_t before = x->stack.len;
	for (uint32_t i = 0; i < n; i++)
		if (x->value[values[i]] == SW_NO_ID)
			sw_vec_push(&x->stack, values[i]);
	return x->stack.len == before;
}

static bool write_op(caller *x, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id first = sw_build_copy_mapped(x->out, c, x->in, id, x->value, x->computation);
	for (uint32_t r = 0; r < op->n_results && first != SW_NO_ID; r++)
		x->value[op->first_result + r] = first + r;
	return first != SW_NO_ID || op->n_results == 0;
}

/* Write what gives a value, once its operands are written; else push these. */
static bool write_giver(caller *x, int32_t c, sw_id value)
{
	uint32_t number = x->gives[value];
	sw_id id = x->in->values.data[value].op;
	const sw_op *op = sw_op_at(x->in, id);
	if (number == 0) {
		return !are_written(x, op->operands, op->n_operands) || write_op(x, c, id);
	}
	const sw_attention_formula *a = &x->list.data[--number];
	if (value == a->o.value) {
		if (!are_written(x, (sw_id[]){a->q.value, a->k.value, a->v.value}, 3))
			return true;
		sw_id o = call_forward(x, c, number);
		if (o != SW_NO_ID)
			x->value[value] = as_result(x, c, o, &a->o, 1);
		return o != SW_NO_ID;
	}
	return !are_written(x,
	                    (sw_id[]){a->q.value, a->k.value, a->v.value, a->d_o.value}, 4) ||
	       call_gradient(x, c, number);
}

static bool write_value(caller *x, int32_t c, sw_id value)
{
	x->stack.len = 0;
	sw_vec_push(&x->stack, value);
	while (x->stack.len > 0) {
		sw_id next = x->stack.data[x->stack.len - 1];
		size_t before = x->stack.len;
		if (x->value[next] != SW_NO_ID) {
			x->stack.len--;
			continue;
		}
		if (!write_giver(x, c, next))
			return false;
		if (x->stack.len > before && x->begun[next])
			return false; /* several calls wait for one another */
		x->begun[next] = true;
	}
	return true;
}

/* ---- computations --------------------------------------------------------------------------- */

static void find_attention(caller *x, int32_t computation)
{
	size_t first = x->list.len, kept = first;
	sw_attention_formulas_find(x->in, computation, &x->list);
	for (size_t i = first; i < x->list.len; i++)
		if (is_called(x, &x->list.data[i]))
			x->list.data[kept++] = x->list.data[i];
	x->list.len = kept;
}

static bool write_computation(caller *x, int32_t computation);

static bool write_called(caller *x, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_called; k++)
		if (x->computation[op->called[k]] < 0 && !write_computation(x, op->called[k]))
			return false;
	return true;
}

/* Write a computation after those that it calls. */
static bool write_computation(caller *x, int32_t computation)
{
	const sw_computation *from = &x->in->computations.data[computation];
	bool done = true;
	for (size_t i = 0; i < from->ops.len && done; i++)
		done = write_called(x, sw_op_at(x->in, from->ops.data[i]));
	int32_t c = sw_build_computation(x->out, from->name);
	x->computation[computation] = c;
	for (size_t i = 0; i < from->parameters.len && done; i++)
		done = write_op(x, c, from->parameters.data[i]);
	for (size_t i = 0; i < from->ops.len && done; i++) {
		const sw_op *op = sw_op_at(x->in, from->ops.data[i]);
		if (op->opcode != SW_OP_PARAMETER)
			done = op->n_results ? write_value(x, c, op->first_result)
			                     : write_op(x, c, from->ops.data[i]);
	}
	sw_id *results = sw_alloc(sizeof(sw_id) * (from->results.len + 1));
	for (size_t i = 0; i < from->results.len; i++)
		results[i] = x->value[from->results.data[i]];
	if (done)
		sw_build_results(x->out, c, results, (uint32_t)from->results.len, from->root_tuple);
	free(results);
	return done;
}

static void clear(caller *x)
{
	sw_vec_clear(&x->list);
	sw_vec_clear(&x->stack);
	free(x->computation);
	free(x->value);
	free(x->gives);
	free(x->begun);
	free(x->forward);
}

sw_status sw_attention_calls(const sw_program *in, sw_call_numbers numbers, sw_program **out,
                             uint32_t *n_calls, sw_error *err)
{
	caller x = {.in = in, .numbers = numbers, .err = err};
	x.out = sw_program_new(in->name);
	sw_build_copy_frame(x.out, in);
	x.computation = sw_alloc(sizeof(int32_t) * (in->computations.len + 1));
	x.value = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	x.begun = sw_alloc(in->values.len + 1);
	x.gives = sw_alloc((in->values.len + 1) * sizeof(uint32_t));
	memset(x.computation, -1, sizeof(int32_t) * (in->computations.len + 1));
	for (size_t v = 0; v <= in->values.len; v++)
		x.value[v] = SW_NO_ID;
	for (size_t c = 0; c < in->computations.len; c++)
		find_attention(&x, (int32_t)c);
	x.forward = sw_alloc(sizeof(sw_id) * (x.list.len + 1));
	for (size_t i = 0; i < x.list.len; i++) {
		const sw_attention_formula *a = &x.list.data[i];
		sw_id given[] = {a->o.value, a->d_q.value, a->d_k.value, a->d_v.value};
		x.forward[i] = SW_NO_ID;
		for (size_t k = 0; k < SW_COUNT(given); k++)
			if (given[k] != SW_NO_ID)
				x.gives[given[k]] = (uint32_t)i + 1;
	}
	bool done = write_computation(&x, in->entry);
	x.out->entry = done ? x.computation[in->entry] : -1;
	*out = x.out;
	*n_calls = x.n_calls;
	clear(&x);
	if (done)
		return SW_OK;
	sw_program_free(*out);
	*out = NULL;
	return sw_fail(err, SW_ERR_INTERNAL,
	               "the calls of attention can't be written: export with --attention ops");
}
