/*
 * Custom calls of cuDNN's fused attention, as jax.nn.dot_product_attention(implementation="cudnn")
 * and XLA's rewriter write them:
 *
 *     __cudnn$fmha...(q, k, v [, bias])                      -> o [, statistics], workspace
 *     __cudnn$fmha...Backward(q, k, v, statistics, do [, bias], o) -> dq, dk, dv [, dbias],
 * workspace
 *
 * q, k and v are [b, t, n, h] or [b, n, t, h], which the dimension numbers of the configuration
 * tell; results are [b, n, t, h]. Written out: P = softmax(scale q k^T + bias, masked), o = P v;
 * dP = do v^T, dS = P (dP - rowsum(do o)), dq = scale dS k, dk = scale dS^T q, dv = P^T do. The
 * derivative computes P from q and k as the forward pass does, so that equal ops are merged and the
 * device's fusion finds the one attention that they are. Dropout, and lengths per row, stay calls.
 */
#include "frontend/calls.h"

#include <math.h>
#include <string.h>

typedef struct attention {
	sw_known_call *call;
	const json_t *config;
	double scale;
	bool causal;
	int64_t window;  /* keys that a query sees, 0: all */
	sw_shape scores; /* [b, n, t, s] in f32 */
} attention;

/* ---- operands --------------------------------------------------------------------------- */

/* Transpose an operand to [b, n, t, h]: b and n are the batch of its dot; `depth` is the place of
 * h. */
static bool arrange(const attention *a, uint32_t operand, sw_ints batch, int64_t depth, sw_id *x)
{
	sw_shape shape = sw_call_operand(a->call, operand);
	int64_t order[4] = {0, 0, 6, depth};
	bool same = true;
	if (shape.rank != 4 || batch.n != 2)
		return false;
	order[0] = batch.v[0];
	order[1] = batch.v[1];
	order[2] = 6 - order[0] - order[1] - depth;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			if (order[i] == order[j] || order[i] < 0 || order[i] > 3)
				return false;
	for (int i = 0; i < 4; i++)
		same &= order[i] == i;
	*x = same ? a->call->operands[operand]
	          : sw_emit_transpose(a->call->out, a->call->c, a->call->operands[operand], order);
	return true;
}

/* Repeat heads, each for as many queries' heads as share it. */
static sw_id repeat_heads(const attention *a, sw_id x, int64_t heads)
{
	sw_program *out = a->call->out;
	sw_shape s = sw_value_shape(out, x);
	if (s.dims[1] == heads || s.dims[1] == 0 || heads % s.dims[1] != 0)
		return x;
	int64_t wide[5] = {s.dims[0], s.dims[1], heads / s.dims[1], s.dims[2], s.dims[3]},
		flat[4] = {s.dims[0], heads, s.dims[2], s.dims[3]}, from[4] = {0, 1, 3, 4};
	sw_shape shape = sw_build_shape(out, s.type, wide, 5);
	return sw_emit_reshape(out, a->call->c, sw_emit_broadcast(out, a->call->c, x, shape, from),
	                       flat, 4);
}

static sw_id dot(const attention *a, sw_id x, int64_t x_dim, sw_id y, int64_t y_dim)
{
	static const int64_t batch[] = {0, 1};
	sw_program *out = a->call->out;
	sw_attrs attrs = {.dot = {.lhs_batch = sw_build_ints(out, batch, 2),
	                          .rhs_batch = sw_build_ints(out, batch, 2),
	                          .lhs_contracting = sw_build_ints(out, &x_dim, 1),
	                          .rhs_contracting = sw_build_ints(out, &y_dim, 1)}};
	return sw_emit_dot(out, a->call->c, x, y, attrs);
}

/* ---- scores ----------------------------------------------------------------------------- */

/* Write which keys each query sees: [b, n, t, s] of pred. */
static sw_id visible(const attention *a)
{
	sw_program *out = a->call->out;
	int32_t c = a->call->c;
	int64_t plane[] = {a->scores.dims[2], a->scores.dims[3]};
	static const int64_t last[] = {2, 3};
	sw_shape shape = sw_build_shape(out, SW_S32, plane, 2), all = a->scores;
	sw_id t = sw_emit_iota(out, c, shape, 0), s = sw_emit_iota(out, c, shape, 1);
	sw_id seen = sw_emit_compare(out, c, SW_GE, t, s);
	if (a->window > 0) {
		sw_id near = sw_emit_compare(out, c, SW_LT,
		                             sw_call_binary(a->call, SW_OP_SUBTRACT, t, s),
		                             sw_call_filled(a->call, shape, (double)a->window));
		seen = sw_call_binary(a->call, SW_OP_AND, seen, near);
	}
	all.type = SW_PRED;
	return sw_emit_broadcast(out, c, seen, all, last);
}

/* Add a bias [b or 1, n or 1, t, s]. */
static bool add_bias(const attention *a, uint32_t operand, sw_id *scores)
{
	sw_program *out = a->call->out;
	sw_shape bias = sw_call_operand(a->call, operand);
	int64_t kept[4], sizes[4];
	int32_t n = 0;
	if (bias.rank != 4)
		return false;
	for (int32_t d = 0; d < 4; d++) {
		if (bias.dims[d] != a->scores.dims[d] && bias.dims[d] != 1)
			return false;
		if (bias.dims[d] == a->scores.dims[d]) {
			kept[n] = d;
			sizes[n++] = bias.dims[d];
		}
	}
	sw_id x = sw_call_converted(a->call, a->call->operands[operand], SW_F32);
	if (n < 4)
		x = sw_emit_reshape(out, a->call->c, x, sizes, n);
	*scores =
		sw_call_binary(a->call, SW_OP_ADD, *scores,
	                       n < 4 ? sw_emit_broadcast(out, a->call->c, x, a->scores, kept) : x);
	return true;
}

static sw_id over_keys(const attention *a, sw_monoid monoid, sw_id x)
{
	static const int64_t keys[] = {3};
	return sw_emit_reduce(a->call->out, a->call->c, monoid, x,
	                      sw_emit_identity(a->call->out, a->call->c, SW_F32, monoid), keys, 1);
}

static sw_id spread(const attention *a, sw_id row)
{
	static const int64_t rows[] = {0, 1, 2};
	return sw_emit_broadcast(a->call->out, a->call->c, row, a->scores, rows);
}

/* Write P, and the logarithm of the sums of exponentials per query. */
static bool softmax(attention *a, sw_id q, sw_id k, int32_t bias, sw_id *p, sw_id *statistics)
{
	sw_program *out = a->call->out;
	int32_t c = a->call->c;
	sw_id s = sw_call_converted(a->call, dot(a, q, 3, k, 3), SW_F32);
	a->scores = sw_value_shape(out, s);
	if (a->scale != 1)
		s = sw_call_binary(a->call, SW_OP_MULTIPLY, s,
		                   sw_call_filled(a->call, a->scores, a->scale));
	if (bias >= 0 && !add_bias(a, (uint32_t)bias, &s))
		return false;
	if (a->causal || a->window > 0)
		s = sw_emit_select(out, c, visible(a), s,
		                   sw_call_filled(a->call, a->scores, -1e30));
	sw_id most = over_keys(a, SW_MONOID_MAX, s);
	sw_id e = sw_emit_unary(out, c, SW_OP_EXPONENTIAL,
	                        sw_call_binary(a->call, SW_OP_SUBTRACT, s, spread(a, most)));
	sw_id sum = over_keys(a, SW_MONOID_SUM, e);
	*p = sw_call_binary(a->call, SW_OP_DIVIDE, e, spread(a, sum));
	if (statistics)
		*statistics = sw_call_binary(a->call, SW_OP_ADD, most,
		                             sw_emit_unary(out, c, SW_OP_LOG, sum));
	return true;
}

static bool begin(attention *a, sw_known_call *call)
{
	const char *target = call->op->attrs->custom.target;
	const json_t *config = json_object_get(call->config, "cudnn_fmha_backend_config");
	const char *mask;
	*a = (attention){.call = call, .config = config ? config : call->config};
	mask = json_string_value(json_object_get(a->config, "mask_type"));
	a->scale = sw_call_number(a->config, "fmha_scale", 1);
	a->causal = mask && strcmp(mask, "CAUSAL") == 0;
	a->window = (int64_t)sw_call_number(a->config, "sliding_window_length", 0);
	return json_is_object(a->config) && !strstr(target, "Dropout") && a->window >= 0 &&
	       sw_call_number(a->config, "dropout_rate", 0) == 0 &&
	       (!mask || a->causal || strcmp(mask, "NO_MASK") == 0);
}

static bool has_bias(const attention *a)
{
	return strstr(a->call->op->attrs->custom.target, "Bias") != NULL;
}

static bool agree(const attention *a, sw_id q, sw_id k, sw_id v)
{
	sw_shape x = sw_value_shape(a->call->out, q), y = sw_value_shape(a->call->out, k),
		 z = sw_value_shape(a->call->out, v);
	return sw_call_is_float(a->call) && x.dims[0] == y.dims[0] && x.dims[1] == y.dims[1] &&
	       x.dims[3] == y.dims[3] && y.dims[0] == z.dims[0] && y.dims[1] == z.dims[1] &&
	       y.dims[2] == z.dims[2] && x.type == y.type && y.type == z.type;
}

/* ---- the calls -------------------------------------------------------------------------- */

bool sw_call_attention(sw_known_call *call)
{
	attention a;
	sw_attrs first, second;
	sw_id q, k, v, p, statistics;
	uint32_t given = 3, n = call->op->n_results;
	if (!begin(&a, call) || call->op->n_operands < 3 || n < 2)
		return false;
	given += has_bias(&a);
	sw_shape scores = {.rank = 4, .dims = (const int64_t[]){1, 1, 1, 1}};
	if (call->op->n_operands != given ||
	    !sw_call_dot(call, json_object_get(a.config, "bmm1_dot_dimension_numbers"),
	                 sw_call_operand(call, 0), sw_call_operand(call, 1), &first) ||
	    !sw_call_dot(call, json_object_get(a.config, "bmm2_dot_dimension_numbers"), scores,
	                 sw_call_operand(call, 2), &second) ||
	    first.dot.lhs_contracting.n != 1 || second.dot.rhs_contracting.n != 1 ||
	    second.dot.rhs_batch.n != 2 ||
	    !arrange(&a, 0, first.dot.lhs_batch, first.dot.lhs_contracting.v[0], &q) ||
	    !arrange(&a, 1, first.dot.rhs_batch, first.dot.rhs_contracting.v[0], &k) ||
	    !arrange(&a, 2, second.dot.rhs_batch,
	             6 - second.dot.rhs_batch.v[0] - second.dot.rhs_batch.v[1] -
	                     second.dot.rhs_contracting.v[0],
	             &v))
		return false;
	int64_t heads = sw_value_shape(call->out, q).dims[1];
	k = repeat_heads(&a, k, heads);
	v = repeat_heads(&a, v, heads);
	if (!agree(&a, q, k, v) || !softmax(&a, q, k, has_bias(&a) ? 3 : -1, &p, &statistics))
		return false;
	sw_type type = sw_value_shape(call->out, v).type;
	call->results[0] =
		sw_call_converted(a.call, dot(&a, sw_call_converted(a.call, p, type), 3, v, 2),
	                          sw_call_result(call, 0).type);
	for (uint32_t i = 1; i < n; i++)
		call->results[i] = i == 1 && n > 2 ? statistics : sw_call_zeros(call, i);
	call->out->library_attention = true;
	return true;
}

/* The operands of the derivative, as [b, n, t, h]. */
typedef struct gradient {
	sw_id q, k, v, d_o, o;
	int64_t heads; /* of keys */
} gradient;

/* The dimension numbers of the products that the derivative takes tell where the dimensions of
 * their right operands are. */
static bool arrange_by(const attention *a, const char *key, bool contracts_depth, uint32_t operand,
                       sw_id *x)
{
	const json_t *numbers = json_object_get(a->config, key);
	sw_ints batch, contracted;
	if (!sw_call_dims(a->call->out, numbers, "rhs_batch_dimensions", 4, &batch) ||
	    !sw_call_dims(a->call->out, numbers, "rhs_contracting_dimensions", 4, &contracted) ||
	    batch.n != 2 || contracted.n != 1)
		return false;
	int64_t rest = 6 - batch.v[0] - batch.v[1] - contracted.v[0];
	return arrange(a, operand, batch, contracts_depth ? contracted.v[0] : rest, x);
}

static bool read_gradient(const attention *a, gradient *g)
{
	uint32_t o = has_bias(a) ? 6 : 5;
	sw_program *out = a->call->out;
	if (a->call->op->n_operands != o + 1 || a->call->op->n_results < 4 ||
	    !arrange_by(a, "bmm1_grad_gemm1_dot_dimension_numbers", false, 0, &g->q) ||
	    !arrange_by(a, "bmm1_grad_gemm2_dot_dimension_numbers", false, 1, &g->k) ||
	    !arrange_by(a, "bmm2_grad_gemm2_dot_dimension_numbers", true, 2, &g->v) ||
	    !arrange_by(a, "bmm2_grad_gemm1_dot_dimension_numbers", false, 4, &g->d_o) ||
	    !arrange_by(a, "bmm2_grad_gemm1_dot_dimension_numbers", false, o, &g->o))
		return false;
	int64_t heads = sw_value_shape(out, g->q).dims[1];
	g->heads = sw_value_shape(out, g->k).dims[1];
	g->k = repeat_heads(a, g->k, heads);
	g->v = repeat_heads(a, g->v, heads);
	sw_shape q = sw_value_shape(out, g->q), v = sw_value_shape(out, g->v),
		 d_o = sw_value_shape(out, g->d_o);
	return agree(a, g->q, g->k, g->v) && q.dims[3] == v.dims[3] && sw_shape_equal(d_o, q) &&
	       sw_shape_equal(d_o, sw_value_shape(out, g->o));
}

/* Add up the gradients of the heads that share one. */
static sw_id sum_heads(const attention *a, sw_id x, int64_t heads)
{
	sw_program *out = a->call->out;
	sw_shape s = sw_value_shape(out, x);
	int64_t shared = 2;
	if (s.dims[1] == heads)
		return x;
	int64_t wide[5] = {s.dims[0], heads, s.dims[1] / heads, s.dims[2], s.dims[3]};
	sw_id apart =
		sw_call_converted(a->call, sw_emit_reshape(out, a->call->c, x, wide, 5), SW_F32);
	return sw_emit_reduce(out, a->call->c, SW_MONOID_SUM, apart,
	                      sw_emit_scalar(out, a->call->c, SW_F32, 0), &shared, 1);
}

static sw_id bias_gradient(const attention *a, sw_id d_s, sw_shape bias)
{
	sw_program *out = a->call->out;
	int64_t dims[4];
	int32_t n = 0;
	for (int32_t d = 0; d < 4; d++)
		if (bias.dims[d] != a->scores.dims[d])
			dims[n++] = d;
	if (n == 0)
		return d_s;
	sw_id sum = sw_emit_reduce(out, a->call->c, SW_MONOID_SUM, d_s,
	                           sw_emit_scalar(out, a->call->c, SW_F32, 0), dims, n);
	return sw_emit_reshape(out, a->call->c, sum, bias.dims, 4);
}

bool sw_call_attention_gradient(sw_known_call *call)
{
	attention a;
	gradient g;
	sw_id p;
	if (!begin(&a, call) || call->op->n_operands < 6 || !read_gradient(&a, &g) ||
	    !softmax(&a, g.q, g.k, has_bias(&a) ? 5 : -1, &p, NULL))
		return false;
	sw_type type = sw_value_shape(call->out, g.q).type;
	sw_id d_p = sw_call_converted(a.call, dot(&a, g.d_o, 3, g.v, 3), SW_F32);
	sw_id both =
		sw_call_binary(a.call, SW_OP_MULTIPLY, sw_call_converted(a.call, g.d_o, SW_F32),
	                       sw_call_converted(a.call, g.o, SW_F32));
	sw_id d_s = sw_call_binary(a.call, SW_OP_MULTIPLY, p,
	                           sw_call_binary(a.call, SW_OP_SUBTRACT, d_p,
	                                          spread(&a, over_keys(&a, SW_MONOID_SUM, both))));
	uint32_t results = 3;
	if (has_bias(&a) && call->op->n_results > 4)
		call->results[results++] =
			sw_call_converted(a.call, bias_gradient(&a, d_s, sw_call_operand(call, 5)),
		                          sw_call_result(call, 3).type);
	if (a.scale != 1)
		d_s = sw_call_binary(a.call, SW_OP_MULTIPLY, d_s,
		                     sw_call_filled(a.call, a.scores, a.scale));
	d_s = sw_call_converted(a.call, d_s, type);
	sw_id d_k = sum_heads(&a, dot(&a, d_s, 2, g.q, 2), g.heads);
	sw_id d_v =
		sum_heads(&a, dot(&a, sw_call_converted(a.call, p, type), 2, g.d_o, 2), g.heads);
	call->results[0] =
		sw_call_converted(a.call, dot(&a, d_s, 3, g.k, 2), sw_call_result(call, 0).type);
	call->results[1] = sw_call_converted(a.call, d_k, sw_call_result(call, 1).type);
	call->results[2] = sw_call_converted(a.call, d_v, sw_call_result(call, 2).type);
	for (uint32_t i = results; i < call->op->n_results; i++)
		call->results[i] = sw_call_zeros(call, i);
	call->out->library_attention = true;
	return true;
}
