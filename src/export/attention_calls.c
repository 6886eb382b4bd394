/* Calls of cuDNN's attention in place of the ops that compute it. */
#include "export/attention_calls.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/on_demand.h"
#include "fuse/attention_formula.h"

typedef struct caller {
	sw_on_demand w;
	sw_call_numbers numbers;
	sw_attention_formulas list;
	uint32_t *gives; /* per value of the program: 1 + the attention that gives it */
	sw_id *forward;  /* per attention: the call's first result; SW_NO_ID: not written yet */
	uint32_t n_calls;
	sw_error *err;
} caller;

/* ---- which attention is called ------------------------------------------------------------ */

static int64_t size_of(const caller *x, const sw_heads *h, int32_t dim)
{
	return dim < 0 ? 1 : sw_value_shape(x->w.in, h->value).dims[dim];
}

/* Do these heads have the type, the batch, the depth and an even number of positions? */
static bool fit(const caller *x, const sw_heads *h, const sw_heads *q)
{
	int64_t depth = size_of(x, h, h->depth);
	return sw_value_shape(x->w.in, h->value).type == sw_value_shape(x->w.in, q->value).type &&
	       size_of(x, h, h->position) % 2 == 0 && depth == size_of(x, q, q->depth) &&
	       size_of(x, h, h->batch[0]) == size_of(x, q, q->batch[0]) &&
	       size_of(x, h, h->batch[1]) == size_of(x, q, q->batch[1]);
}

/* A softmax over queries looks like the derivative of one over keys, whose call would wait for
 * itself. */
static bool is_in_order(const caller *x, const sw_attention_formula *a)
{
	sw_id read[] = {a->q.value, a->k.value, a->v.value, a->d_o.value},
	      given[] = {a->d_q.value, a->d_k.value, a->d_v.value};
	if (a->o.value != SW_NO_ID && sw_needs_given(x->w.in, read, 3, &a->o.value, 1))
		return false;
	return a->d_q.value == SW_NO_ID || !sw_needs_given(x->w.in, read, 4, given, 3);
}

static bool is_called(const caller *x, const sw_attention_formula *a)
{
	sw_type type = sw_value_shape(x->w.in, a->q.value).type;
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
	sw_shape shape = sw_value_shape(x->w.out, value);
	bool same = shape.rank == rank;
	for (int32_t d = 0; d < rank && same; d++)
		same = shape.dims[d] == dims[d];
	return same ? value : sw_emit_reshape(x->w.out, c, value, dims, rank);
}

/* Write the heads as [batch, positions, heads, depth]. */
static sw_id as_operand(caller *x, int32_t c, const sw_heads *h)
{
	sw_id value = x->w.value[h->value];
	const int32_t first[] = {h->batch[0], h->position, h->batch[1], h->depth};
	int64_t order[SW_MAX_RANK], dims[4];
	for (int i = 0; i < 4; i++)
		dims[i] = size_of(x, h, first[i]);
	if (order_dims(first, sw_value_shape(x->w.in, h->value).rank, order))
		value = sw_emit_transpose(x->w.out, c, value, order);
	return reshaped(x, c, value, dims, 4);
}

/* Write what a call gave, [batch, heads, positions, depth], as the program has it, times `factor`.
 */
static sw_id as_result(caller *x, int32_t c, sw_id value, const sw_heads *h, double factor)
{
	sw_shape shape = sw_value_shape(x->w.in, h->value);
	const int32_t first[] = {h->batch[0], h->batch[1], h->position, h->depth};
	int64_t order[SW_MAX_RANK], dims[SW_MAX_RANK], back[SW_MAX_RANK];
	bool moves = order_dims(first, shape.rank, order);
	for (int32_t d = 0; d < shape.rank; d++) {
		dims[d] = shape.dims[order[d]];
		back[order[d]] = d;
	}
	value = reshaped(x, c, value, dims, shape.rank);
	if (moves)
		value = sw_emit_transpose(x->w.out, c, value, back);
	if (sw_value_shape(x->w.out, value).type != shape.type)
		value = sw_emit_convert(x->w.out, c, value, shape.type);
	if (fabs(factor - 1) < 1e-6)
		return value;
	sw_id number = sw_emit_scalar(x->w.out, c, shape.type, factor);
	shape = sw_value_shape(x->w.out, value);
	return sw_emit_binary(x->w.out, c, SW_OP_MULTIPLY, value,
	                      sw_emit_broadcast(x->w.out, c, number, shape, NULL));
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
	                 "rhs_contracting_dimensions", numbers(1, &right), "lhs_batch_dimensions",
	                 numbers(2, (int64_t[]){0, left_heads}), "rhs_batch_dimensions",
	                 numbers(2, (int64_t[]){0, right_heads}));
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
		"{s:{s:s, s:s, s:{s:s, s:s}, s:b, s:s}, s:f, s:o, s:b, s:s, s:f, s:i, s:i, s:i, "
	        "s:b}",
		"algorithm", "algo_id", "0", "math_type", "TENSOR_OP_MATH", "tuning_knobs", "17",
		"1", "24", "0", "is_cudnn_frontend", 1, "workspace_size", "0", "fmha_scale",
		a->scale, "intermediate_tensor_shape",
		scores_shape(sw_value_shape(x->w.in, q->value).type, scores), "is_flash_attention",
		1, "mask_type", a->causal ? "CAUSAL" : "NO_MASK", "dropout_rate", 0.0, "seed", 42,
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
	return json_pack("{s:s, s:o}", "operation_queue_id", "0", "cudnn_fmha_backend_config",
	                 fmha);
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
		shapes[i] = sw_value_shape(x->w.out, operands[i]);
	add_layouts(&text, "operand_layouts", n_operands, shapes, false);
	add_layouts(&text, "result_layouts", n_results, results, true);
	sw_extra *extra = SW_NEW(&x->w.out->arena, sw_extra);
	*extra = (sw_extra){.name = SW_STABLE_CALL_ATTRIBUTES,
	                    .text = sw_arena_text(&x->w.out->arena, text.data)};
	sw_text_clear(&text);
	free(words);
	json_decref(config);
	return extra;
}

static sw_id emit_call(caller *x, int32_t c, const sw_attention_formula *a, bool gradient,
                       const sw_id *operands, uint32_t n_operands, sw_shape *results,
                       uint32_t n_results)
{
	sw_attrs attrs = {.custom.target =
	                          gradient ? "__cudnn$fmhaSoftmaxBackward" : "__cudnn$fmhaSoftmax"};
	sw_op_spec spec = {
		.opcode = SW_OP_CUSTOM_CALL,
		.operands = operands,
		.n_operands = n_operands,
		.attrs = &attrs,
		.shapes = results,
		.n_results = n_results,
		.tuple = true,
		.extras = attributes_of(x, a, gradient, operands, n_operands, results, n_results)};
	sw_id first = SW_NO_ID;
	x->n_calls++;
	return sw_build_op(x->w.out, c, &spec, &first, x->err) == SW_OK ? first : SW_NO_ID;
}

/* [batch, heads, positions, depth] of an array of heads. */
static sw_shape given_shape(caller *x, const sw_heads *h)
{
	int64_t dims[] = {size_of(x, h, h->batch[0]), size_of(x, h, h->batch[1]),
	                  size_of(x, h, h->position), size_of(x, h, h->depth)};
	return sw_build_shape(x->w.out, sw_value_shape(x->w.in, h->value).type, dims, 4);
}

static sw_shape workspace_shape(caller *x)
{
	return sw_build_shape(x->w.out, SW_U8, (int64_t[]){0}, 1);
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
	sw_shape results[] = {o, sw_build_shape(x->w.out, SW_F32, o.dims, 3), workspace_shape(x)};
	return x->forward[number] = emit_call(x, c, a, false, operands, 3, results, 3);
}

static bool call_gradient(caller *x, int32_t c, uint32_t number)
{
	const sw_attention_formula *a = &x->list.data[number];
	static const int64_t positions_first[] = {0, 2, 1, 3};
	sw_id forward = call_forward(x, c, number);
	if (forward == SW_NO_ID)
		return false;
	sw_id o = sw_emit_transpose(x->w.out, c, forward, positions_first);
	sw_id operands[] = {as_operand(x, c, &a->q),   as_operand(x, c, &a->k),
	                    as_operand(x, c, &a->v),   forward + 1,
	                    as_operand(x, c, &a->d_o), o};
	sw_shape results[] = {given_shape(x, &a->q), given_shape(x, &a->k), given_shape(x, &a->v),
	                      workspace_shape(x)};
	sw_id first = emit_call(x, c, a, true, operands, 6, results, 4);
	if (first == SW_NO_ID)
		return false;
	const sw_heads *heads[] = {&a->d_q, &a->d_k, &a->d_v};
	double factor = a->d_scale / a->scale;
	for (uint32_t i = 0; i < 3; i++)
		x->w.value[heads[i]->value] =
			as_result(x, c, first + i, heads[i], i < 2 ? factor : 1);
	return true;
}

/* ---- writing on demand ---------------------------------------------------------------------- */

/* Write what gives a value: a call, once what it needs is written, or the op itself. */
static sw_giving give(sw_on_demand *w, int32_t c, sw_id value)
{
	caller *x = (caller *)w;
	uint32_t number = x->gives[value];
	if (number == 0)
		return sw_on_demand_copy(w, c, value);
	const sw_attention_formula *a = &x->list.data[--number];
	const sw_id needs[] = {a->q.value, a->k.value, a->v.value, a->d_o.value};
	bool forward = value == a->o.value;
	if (!sw_on_demand_have(w, needs, forward ? 3 : 4))
		return SW_GIVE_LATER;
	if (!forward)
		return call_gradient(x, c, number) ? SW_GIVEN : SW_GIVE_FAILED;
	sw_id o = call_forward(x, c, number);
	if (o != SW_NO_ID)
		w->value[value] = as_result(x, c, o, &a->o, 1);
	return o != SW_NO_ID ? SW_GIVEN : SW_GIVE_FAILED;
}

static void find_attention(caller *x, int32_t computation)
{
	size_t first = x->list.len, kept = first;
	sw_attention_formulas_find(x->w.in, computation, &x->list);
	for (size_t i = first; i < x->list.len; i++)
		if (is_called(x, &x->list.data[i]))
			x->list.data[kept++] = x->list.data[i];
	x->list.len = kept;
}

sw_status sw_attention_calls(const sw_program *in, sw_call_numbers numbers, sw_program **out,
                             uint32_t *n_calls, sw_error *err)
{
	caller x = {.numbers = numbers, .err = err};
	sw_on_demand_open(&x.w, in, give);
	x.gives = sw_alloc((in->values.len + 1) * sizeof(uint32_t));
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
	sw_status status = sw_on_demand_close(&x.w, out, "calls of attention", err);
	*n_calls = x.n_calls;
	sw_vec_clear(&x.list);
	free(x.gives);
	free(x.forward);
	return status;
}
