/*
 * Custom calls of known targets become ops: one pass over the program, which copies everything
 * else. The table says what is known.
 */
#include "frontend/calls.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "program/call_signature.h"

typedef struct target_row {
	const char *target; /* a pattern */
	sw_call_expansion *expand;
	const char *signature; /* where there is no expansion, or it fails; NULL: none */
} target_row;

/* Operations of factorisations: Golub and Van Loan, "Matrix Computations". */
static const target_row targets[] = {
	{"__cublas$gemm", sw_call_product, NULL},
	{"__cublas$lt$matmul", sw_call_product_lt, NULL},
	{"__cudnn$convForward", sw_call_convolution, NULL},
	{"__cudnn$convBackwardInput", sw_call_convolution, NULL},
	{"__cudnn$convBackwardFilter", sw_call_convolution, NULL},
	{"__cudnn$convBiasActivationForward", sw_call_convolution_bias, NULL},
	{"__cudnn$fmha*Backward", sw_call_attention_gradient, NULL},
	{"__cudnn$fmha*", sw_call_attention, NULL},
	{"cu_threefry2x32*", sw_call_threefry, NULL},
	{"TopK", sw_call_top_k, NULL},
	{"__gpu$TopK", sw_call_top_k, NULL},
	{"mhlo.topk", sw_call_top_k, NULL},
	{"chlo.top_k", sw_call_top_k, NULL},
	{"MoveToHost", sw_call_forward, NULL},
	{"MoveToDevice", sw_call_forward, NULL},
	{"annotate_device_placement", sw_call_forward, NULL},
	{"cusolver_potrf*", sw_call_cholesky, NULL},
	{"lapack_?potrf*", NULL, "... n n -> ... n n, ...; split ...; flops ...*n*n*n/3"},
	{"lapack_?getrf*", NULL,
         "... m n -> ... m n, ... k, ...; split ...; flops ...*(m*n*n - n*n*n/3)"},
	{"cusolver_getrf*", NULL,
         "... m n -> ... m n, ... k, ...; split ...; flops ...*(m*n*n - n*n*n/3)"},
	{"lapack_?trsm*", NULL, "... m m, ... n k -> ... n k; split ...; flops ...*m*n*k"},
	{"lapack_?geqrf*", NULL,
         "... m n -> ... m n, ... k; split ...; flops ...*(2*m*n*n - 2*n*n*n/3)"},
	{"cusolver_geqrf*", NULL,
         "... m n -> ... m n, ... k; split ...; flops ...*(2*m*n*n - 2*n*n*n/3)"},
	{"lapack_?orgqr*", NULL, "... m n, ... k -> ... m n; split ...; flops ...*4*m*n*k/3"},
	{"lapack_?syevd*", NULL, "... n n -> ... n n, ... n, ...; split ...; flops ...*9*n*n*n"},
	{"cusolver_syevd*", NULL, "... n n -> ... n n, ... n, ...; split ...; flops ...*9*n*n*n"},
};

static const target_row *row_of(const sw_op *op)
{
	if (op->opcode != SW_OP_CUSTOM_CALL || op->attrs->custom.signature)
		return NULL;
	for (size_t i = 0; i < SW_COUNT(targets); i++)
		if (fnmatch(targets[i].target, op->attrs->custom.target, 0) == 0)
			return &targets[i];
	return NULL;
}

/* ---- configurations --------------------------------------------------------------------- */

/* Return the text of a string as C writes it: "...\"...". */
static char *unescape(const char *text)
{
	char *plain = sw_alloc(strlen(text) + 1), *to = plain;
	for (const char *at = text + 1; *at && !(*at == '"' && at[1] == 0); at++) {
		if (*at == '\\' && at[1])
			at++;
		*to++ = *at;
	}
	*to = 0;
	return plain;
}

/* Read backend_config, which is JSON, or JSON within a string. */
static json_t *config_of(const sw_op *op)
{
	const char *text = sw_op_extra(op, "backend_config");
	if (!text)
		return NULL;
	char *plain = *text == '"' ? unescape(text) : NULL;
	json_t *config = json_loads(plain ? plain : text, 0, NULL);
	free(plain);
	return config;
}

double sw_call_number(const json_t *config, const char *key, double otherwise)
{
	const json_t *value = json_object_get(config, key);
	if (json_is_string(value))
		return strtod(json_string_value(value), NULL);
	return json_is_number(value) ? json_number_value(value) : otherwise;
}

bool sw_call_dims(sw_program *out, const json_t *config, const char *key, int32_t rank,
                  sw_ints *dims)
{
	const json_t *list = json_object_get(config, key);
	int64_t v[SW_MAX_RANK];
	size_t n = json_array_size(list);
	if (n > SW_MAX_RANK)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(list, i);
		v[i] = json_is_string(item) ? strtoll(json_string_value(item), NULL, 10)
		                            : json_integer_value(item);
		if (v[i] < 0 || v[i] >= rank)
			return false;
	}
	*dims = sw_build_ints(out, v, (int32_t)n);
	return true;
}

bool sw_call_dot(const sw_known_call *call, const json_t *numbers, sw_shape lhs, sw_shape rhs,
                 sw_attrs *attrs)
{
	*attrs = (sw_attrs){.dot = {.lhs_batch = {0}}};
	return json_is_object(numbers) &&
	       sw_call_dims(call->out, numbers, "lhs_batch_dimensions", lhs.rank,
	                    &attrs->dot.lhs_batch) &&
	       sw_call_dims(call->out, numbers, "rhs_batch_dimensions", rhs.rank,
	                    &attrs->dot.rhs_batch) &&
	       sw_call_dims(call->out, numbers, "lhs_contracting_dimensions", lhs.rank,
	                    &attrs->dot.lhs_contracting) &&
	       sw_call_dims(call->out, numbers, "rhs_contracting_dimensions", rhs.rank,
	                    &attrs->dot.rhs_contracting) &&
	       attrs->dot.lhs_batch.n == attrs->dot.rhs_batch.n &&
	       attrs->dot.lhs_contracting.n == attrs->dot.rhs_contracting.n;
}

bool sw_call_is_float(const sw_known_call *call)
{
	bool is = call->op->n_results > 0 &&
	          sw_type_kind_of(sw_call_result(call, 0).type) == SW_KIND_FLOAT;
	for (uint32_t i = 0; i < call->op->n_operands; i++)
		is &= sw_type_kind_of(sw_call_operand(call, i).type) == SW_KIND_FLOAT;
	return is;
}

sw_id sw_call_binary(const sw_known_call *call, sw_opcode opcode, sw_id x, sw_id y)
{
	return sw_emit_binary(call->out, call->c, opcode, x, y);
}

sw_id sw_call_filled(const sw_known_call *call, sw_shape shape, double value)
{
	return sw_emit_broadcast(call->out, call->c,
	                         sw_emit_scalar(call->out, call->c, shape.type, value), shape,
	                         NULL);
}

sw_id sw_call_converted(const sw_known_call *call, sw_id x, sw_type type)
{
	return sw_value_shape(call->out, x).type == type
	               ? x
	               : sw_emit_convert(call->out, call->c, x, type);
}

sw_id sw_call_zeros(const sw_known_call *call, uint32_t result)
{
	return sw_call_filled(call, sw_call_result(call, result), 0);
}

/* ---- the pass --------------------------------------------------------------------------- */

typedef struct call_rewriter {
	const sw_program *in;
	sw_program *out;
	sw_id *value;         /* per value of in: that of out */
	int32_t *computation; /* likewise */
	SW_VEC(sw_id) operands;
	SW_VEC(int32_t) called;
} call_rewriter;

/* The results of an expansion must be what the call declares. */
static bool is_right(const sw_known_call *call)
{
	for (uint32_t k = 0; k < call->op->n_results; k++)
		if (!sw_shape_equal(sw_value_shape(call->out, call->results[k]),
		                    sw_call_result(call, k)))
			return false;
	return true;
}

static bool expand(call_rewriter *x, int32_t c, const sw_op *op, const target_row *row)
{
	sw_known_call call = {.out = x->out,
	                      .c = c,
	                      .in = x->in,
	                      .op = op,
	                      .operands = x->operands.data,
	                      .results = &x->value[op->first_result],
	                      .config = config_of(op)};
	bool done = row->expand && row->expand(&call) && is_right(&call);
	json_decref(call.config);
	return done;
}

static void write_op(call_rewriter *x, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	const target_row *row = row_of(op);
	x->operands.len = 0;
	for (uint32_t i = 0; i < op->n_operands; i++)
		sw_vec_push(&x->operands, x->value[op->operands[i]]);
	if (row && expand(x, c, op, row))
		return;
	x->called.len = 0;
	for (uint32_t k = 0; k < op->n_called; k++)
		sw_vec_push(&x->called, x->computation[op->called[k]]);
	sw_id first = sw_build_copy_op(x->out, c, x->in, id, x->operands.data, x->called.data);
	for (uint32_t k = 0; k < op->n_results; k++)
		x->value[op->first_result + k] = first + k;
}

/* Write a computation, and before it those that it calls. A verified program has no recursion. */
static void write_computation(call_rewriter *x, int32_t c)
{
	const sw_computation *from = &x->in->computations.data[c];
	if (x->computation[c] >= 0)
		return;
	for (size_t i = 0; i < from->ops.len; i++)
		for (uint32_t k = 0; k < sw_op_at(x->in, from->ops.data[i])->n_called; k++)
			write_computation(x, sw_op_at(x->in, from->ops.data[i])->called[k]);
	int32_t to = sw_build_computation(x->out, from->name);
	for (size_t i = 0; i < from->ops.len; i++)
		write_op(x, to, from->ops.data[i]);
	x->operands.len = 0;
	for (size_t i = 0; i < from->results.len; i++)
		sw_vec_push(&x->operands, x->value[from->results.data[i]]);
	sw_build_results(x->out, to, x->operands.data, (uint32_t)x->operands.len, from->root_tuple);
	x->computation[c] = to;
}

/* Give the signatures of the table to calls that stay. */
static void describe_rest(sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++) {
		sw_op *op = &program->ops.data[i];
		const target_row *row = row_of(op);
		sw_call_signature signature;
		if (!row || !row->signature)
			continue;
		sw_attrs *attrs = sw_arena_copy(&program->arena, op->attrs, sizeof(*attrs));
		attrs->custom.signature = row->signature;
		op->attrs = attrs;
		if (!sw_call_signature_of(program, op, &program->arena, &signature))
			attrs->custom.signature = NULL; /* not of the known form */
	}
}

sw_status sw_calls_expand(sw_program **program, sw_error *err)
{
	bool any = false;
	for (size_t i = 0; i < (*program)->ops.len; i++) {
		const target_row *row = row_of(&(*program)->ops.data[i]);
		any |= row && row->expand;
	}
	if (any) {
		call_rewriter x = {.in = *program, .out = sw_program_new((*program)->name)};
		x.value = sw_alloc(sizeof(sw_id) * (x.in->values.len + 1));
		x.computation = sw_alloc(sizeof(int32_t) * (x.in->computations.len + 1));
		for (size_t c = 0; c < x.in->computations.len; c++)
			x.computation[c] = -1;
		sw_build_copy_frame(x.out, x.in);
		for (size_t c = 0; c < x.in->computations.len; c++)
			write_computation(&x, (int32_t)c);
		x.out->entry = x.computation[x.in->entry];
		free(x.value);
		free(x.computation);
		sw_vec_clear(&x.operands);
		sw_vec_clear(&x.called);
		sw_program_free(*program);
		*program = x.out;
		SW_TRY(sw_program_verify(x.out, err));
	}
	describe_rest(*program);
	return SW_OK;
}
