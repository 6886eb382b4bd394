/*
 * Gradients sent in fewer bytes than they have, with error feedback.
 *
 * The gradient of a variable is one value of the entry. It is taken apart into the terms that the
 * devices have (`terms`), each device adds what its code lacked in the last step, encodes that, and
 * keeps what the code lacks now: the RESIDUAL, which is state. What readers of the gradient get is
 * made of the codes alone, so that the layouts of these decide what is sent; everything is ops that
 * other programs have, too, and planned, costed and run as those are. What was sent and the
 * residuals add up to what the gradient and the residuals were.
 *
 *   bf16, f16, int8  each term is rounded (int8: scaled by the largest number of each row along the
 *                    first dimension, of a vector by the largest of all); the sum, which devices
 *                    may have in parts, is rounded again, with a residual of its own
 *   topk             the share of the elements with the largest magnitudes, and their indices
 *   powersgd         the product of two matrices of rank R (Vogels and others, NeurIPS 2019): one
 *                    step of a power iteration that goes on from the last step's
 *
 * Codes are read through barriers, for what a device decodes for itself and what it decodes of all
 * may lie otherwise, and equal ops are one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite/codecs.h"

/* ---- words ------------------------------------------------------------------------------ */

static const char *const WORDS[SW_CODEC_COUNT] = {
	[SW_CODEC_NONE] = "none", [SW_CODEC_TERMS] = "terms", [SW_CODEC_BF16] = "bf16", [SW_CODEC_F16] = "f16",
	[SW_CODEC_INT8] = "int8", [SW_CODEC_TOPK] = "topk", [SW_CODEC_POWERSGD] = "powersgd",
};

void sw_codec_print(sw_codec codec, sw_text *text)
{
	sw_text_add(text, WORDS[codec.kind]);
	if (codec.kind == SW_CODEC_TOPK)
		sw_text_addf(text, "=%g", codec.share);
	if (codec.kind == SW_CODEC_POWERSGD)
		sw_text_addf(text, "=%lld", (long long)codec.rank);
}

static bool parse_number(const char *text, sw_codec *codec)
{
	char *end;
	double number = strtod(text, &end);
	if (end == text || *end)
		return false;
	if (codec->kind == SW_CODEC_TOPK) {
		codec->share = number;
		return number > 0 && number <= 1;
	}
	codec->rank = (int64_t)(number >= 1 && number <= SW_MAX_CODEC_RANK ? number : 0);
	return codec->kind == SW_CODEC_POWERSGD && number >= 1 && (double)codec->rank == number;
}

bool sw_codec_parse(const char *text, sw_codec *codec)
{
	size_t n = strcspn(text, "=");
	*codec = (sw_codec){.share = 0.01, .rank = 4};
	for (int k = 0; k < SW_CODEC_COUNT; k++)
		if (k != SW_CODEC_TERMS && strlen(WORDS[k]) == n &&
		    strncmp(text, WORDS[k], n) == 0) {
			codec->kind = (sw_codec_kind)k;
			return !text[n] || parse_number(text + n + 1, codec);
		}
	return false;
}

bool sw_stale_parse(const char *text, int64_t *stale)
{
	*stale = SW_STALE_ANY;
	return strcmp(text, "any") == 0 ||
	       (sw_parse_count(text, stale) && *stale <= SW_MAX_STALE);
}

const char *sw_served_key(const sw_variable_forms *forms)
{
	for (size_t i = 0; i < forms->n; i++)
		if (forms->list[i].stale)
			return "stale";
	return "served";
}

void sw_stale_print(int64_t stale, sw_text *text)
{
	if (stale == SW_STALE_ANY)
		sw_text_add(text, "any");
	else
		sw_text_addf(text, "%lld", (long long)stale);
}

/* ---- the ops of a codec ----------------------------------------------------------------- */

/* A gradient being coded. Values are of the program that is written; `stack` has the terms. */
typedef struct coding {
	sw_program *p;
	int32_t c;
	sw_shape shape; /* of the gradient, in f32 */
	sw_shape stack; /* [devices, dimensions of the gradient], in f32 */
	sw_coded *to;
	sw_codec codec;
	sw_status status;
	sw_error *err;
} coding;

static sw_shape shape_of(const coding *x, sw_id value)
{
	return sw_value_shape(x->p, value);
}

static sw_shape with_type(coding *x, sw_shape shape, sw_type type)
{
	return sw_build_shape(x->p, type, shape.dims, shape.rank);
}

static sw_id binary(coding *x, sw_opcode opcode, sw_id a, sw_id b)
{
	return sw_emit_binary(x->p, x->c, opcode, a, b);
}

static sw_id like(coding *x, sw_id a, double number)
{
	sw_shape shape = shape_of(x, a);
	return sw_emit_broadcast(x->p, x->c, sw_emit_scalar(x->p, x->c, shape.type, number), shape,
	                         NULL);
}

/* Let readers have the values, which may lie otherwise for them. */
static void behind_barrier(coding *x, sw_id *values, uint32_t n)
{
	sw_op_spec spec = {
		.opcode = SW_OP_OPT_BARRIER, .operands = values, .n_operands = n, .tuple = n > 1};
	sw_id first = SW_NO_ID;
	if (x->status == SW_OK)
		x->status = sw_build_op(x->p, x->c, &spec, &first, x->err);
	for (uint32_t i = 0; x->status == SW_OK && i < n; i++)
		values[i] = first + i;
}

static sw_id sum_of_terms(coding *x, sw_id terms)
{
	static const int64_t first[] = {0};
	return sw_emit_reduce(x->p, x->c, SW_MONOID_SUM, terms,
	                      sw_emit_scalar(x->p, x->c, SW_F32, 0), first, 1);
}

/* ---- rounded to fewer bits -------------------------------------------------------------- */

/* A code: rounded numbers, and of int8 the scales, per row. */
typedef struct rounded {
	sw_id numbers, scales;
	int32_t rows; /* leading dimensions that have scales of their own */
} rounded;

static sw_id spread_scales(coding *x, sw_id scales, int32_t rows, sw_shape shape)
{
	int64_t dims[SW_MAX_RANK];
	for (int32_t d = 0; d < rows; d++)
		dims[d] = d;
	return sw_emit_broadcast(x->p, x->c, scales, with_type(x, shape, SW_F32), dims);
}

/* The largest magnitude of each row becomes 127; a row of zeros stays one. */
static sw_id scales_of(coding *x, sw_id value, int32_t rows)
{
	int64_t dims[SW_MAX_RANK];
	int32_t n = 0;
	for (int32_t d = rows; d < shape_of(x, value).rank; d++)
		dims[n++] = d;
	sw_id most = sw_emit_reduce(x->p, x->c, SW_MONOID_MAX,
	                            sw_emit_unary(x->p, x->c, SW_OP_ABS, value),
	                            sw_emit_identity(x->p, x->c, SW_F32, SW_MONOID_MAX), dims, n);
	sw_id scales = binary(x, SW_OP_MULTIPLY, most, like(x, most, 1.0 / 127));
	return binary(x, SW_OP_MAXIMUM, scales, like(x, scales, 1e-30));
}

static sw_id clamp(coding *x, sw_id value, double limit)
{
	sw_id below = binary(x, SW_OP_MINIMUM, value, like(x, value, limit));
	return binary(x, SW_OP_MAXIMUM, below, like(x, below, -limit));
}

/* `rows`: how many leading dimensions a scale of int8 is for. */
static rounded encode(coding *x, sw_id value, int32_t rows)
{
	rounded code = {.scales = SW_NO_ID, .rows = rows};
	if (x->codec.kind == SW_CODEC_BF16) {
		code.numbers = sw_emit_convert(x->p, x->c, value, SW_BF16);
	} else if (x->codec.kind == SW_CODEC_F16) {
		code.numbers = sw_emit_convert(x->p, x->c, clamp(x, value, 65504), SW_F16);
	} else {
		code.scales = scales_of(x, value, rows);
		sw_id scaled = binary(x, SW_OP_DIVIDE, value,
		                      spread_scales(x, code.scales, rows, shape_of(x, value)));
		sw_id whole = sw_emit_unary(x->p, x->c, SW_OP_ROUND_NEAREST_EVEN, scaled);
		code.numbers = sw_emit_convert(x->p, x->c, clamp(x, whole, 127), SW_S8);
	}
	return code;
}

static sw_id decode(coding *x, rounded code)
{
	sw_id numbers = sw_emit_convert(x->p, x->c, code.numbers, SW_F32);
	return code.scales == SW_NO_ID
	               ? numbers
	               : binary(x, SW_OP_MULTIPLY, numbers,
	                        spread_scales(x, code.scales, code.rows, shape_of(x, numbers)));
}

static sw_id decode_elsewhere(coding *x, rounded code)
{
	behind_barrier(x, &code.numbers, 1);
	if (code.scales != SW_NO_ID)
		behind_barrier(x, &code.scales, 1);
	return decode(x, code);
}

static sw_id round_gradient(coding *x, sw_id terms)
{
	int32_t own_row = x->shape.rank > 1;
	rounded code = encode(x, terms, 1 + own_row);
	x->to->residual = binary(x, SW_OP_SUBTRACT, terms, decode(x, code));
	sw_id sum = binary(x, SW_OP_ADD, sum_of_terms(x, decode_elsewhere(x, code)),
	                   x->to->sum_residual_in);
	rounded whole = encode(x, sum, own_row);
	x->to->sum_residual = binary(x, SW_OP_SUBTRACT, sum, decode(x, whole));
	return decode_elsewhere(x, whole);
}

/* ---- the largest elements --------------------------------------------------------------- */

/* The dimension numbers of elements of a matrix at [rows, k, 1] indices, each within its row. */
static sw_index_dims within_rows(coding *x)
{
	static const int64_t zero[] = {0}, one[] = {1}, ones[] = {1, 1};
	return (sw_index_dims){.collapsed = sw_build_ints(x->p, one, 1),
	                       .start_index_map = sw_build_ints(x->p, one, 1),
	                       .operand_batch = sw_build_ints(x->p, zero, 1),
	                       .index_batch = sw_build_ints(x->p, zero, 1),
	                       .index_vector_dim = 2,
	                       .slice_sizes = sw_build_ints(x->p, ones, 2)};
}

static sw_id pick(coding *x, sw_id matrix, sw_id indices)
{
	sw_shape shape = shape_of(x, indices);
	sw_shape result = sw_build_shape(x->p, SW_F32, shape.dims, 2);
	sw_attrs attrs = {.index = within_rows(x)};
	sw_id operands[] = {matrix, indices}, picked = SW_NO_ID;
	sw_op_spec spec = {.opcode = SW_OP_GATHER,
	                   .operands = operands,
	                   .n_operands = 2,
	                   .attrs = &attrs,
	                   .shapes = &result,
	                   .n_results = 1};
	if (x->status == SW_OK)
		x->status = sw_build_op(x->p, x->c, &spec, &picked, x->err);
	return picked;
}

/* Add the elements to zeros of a shape. */
static sw_id put(coding *x, sw_shape shape, sw_id indices, sw_id elements, sw_index_dims dims)
{
	sw_attrs attrs = {.index = dims};
	sw_id zeros =
		sw_emit_broadcast(x->p, x->c, sw_emit_scalar(x->p, x->c, SW_F32, 0), shape, NULL);
	sw_id operands[] = {zeros, indices, elements}, full = SW_NO_ID;
	int32_t add = sw_build_reducer(x->p, SW_MONOID_SUM, SW_F32);
	attrs.index.slice_sizes = (sw_ints){0};
	sw_op_spec spec = {.opcode = SW_OP_SCATTER,
	                   .operands = operands,
	                   .n_operands = 3,
	                   .called = &add,
	                   .n_called = 1,
	                   .attrs = &attrs};
	if (x->status == SW_OK)
		x->status = sw_build_op(x->p, x->c, &spec, &full, x->err);
	return full;
}

static sw_id largest(coding *x, sw_id matrix, int64_t k)
{
	sw_shape from = shape_of(x, matrix);
	const int64_t dims[] = {from.dims[0], k};
	sw_shape shapes[] = {sw_build_shape(x->p, SW_F32, dims, 2),
	                     sw_build_shape(x->p, SW_S32, dims, 2)};
	sw_id magnitudes = sw_emit_unary(x->p, x->c, SW_OP_ABS, matrix), first = SW_NO_ID;
	sw_attrs attrs = {.topk = {.k = k, .largest = true}};
	sw_op_spec spec = {.opcode = SW_OP_TOPK,
	                   .operands = &magnitudes,
	                   .n_operands = 1,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = 2,
	                   .tuple = true};
	if (x->status == SW_OK)
		x->status = sw_build_op(x->p, x->c, &spec, &first, x->err);
	return first + 1;
}

static sw_id pick_largest(coding *x, sw_id terms)
{
	static const int64_t zero[] = {0};
	int64_t n = sw_shape_elements(x->shape), devices = x->stack.dims[0];
	int64_t k = SW_MIN(SW_MAX((int64_t)ceil(x->codec.share * (double)n), 1), n);
	const int64_t flat[] = {devices, n}, rows[] = {devices, k, 1}, all[] = {devices * k, 1};
	sw_id matrix = sw_emit_reshape(x->p, x->c, terms, flat, 2);
	sw_id code[2] = {SW_NO_ID, largest(x, matrix, k)};
	if (x->status != SW_OK)
		return SW_NO_ID;
	sw_id indices = sw_emit_reshape(x->p, x->c, code[1], rows, 3);
	code[0] = pick(x, matrix, indices);
	if (x->status != SW_OK)
		return SW_NO_ID;
	sw_id own = put(x, sw_build_shape(x->p, SW_F32, flat, 2), indices, code[0], within_rows(x));
	x->to->residual = sw_emit_reshape(x->p, x->c, binary(x, SW_OP_SUBTRACT, matrix, own),
	                                  x->stack.dims, x->stack.rank);
	behind_barrier(x, code, 2);
	if (x->status != SW_OK)
		return SW_NO_ID;
	sw_index_dims dims = {.collapsed = sw_build_ints(x->p, zero, 1),
	                      .start_index_map = sw_build_ints(x->p, zero, 1),
	                      .index_vector_dim = 1};
	sw_id whole = put(x, sw_build_shape(x->p, SW_F32, &n, 1),
	                  sw_emit_reshape(x->p, x->c, code[1], all, 2),
	                  sw_emit_reshape(x->p, x->c, code[0], all, 1), dims);
	return x->status == SW_OK ? sw_emit_reshape(x->p, x->c, whole, x->shape.dims, x->shape.rank)
	                          : SW_NO_ID;
}

/* ---- low rank --------------------------------------------------------------------------- */

static sw_id dot(coding *x, sw_id a, int64_t a_dim, sw_id b, int64_t b_dim)
{
	return sw_emit_dot(x->p, x->c, a, b,
	                   (sw_attrs){.dot = {.lhs_contracting = {1, &a_dim},
	                                      .rhs_contracting = {1, &b_dim}}});
}

static sw_id column(coding *x, sw_id matrix, int64_t k)
{
	sw_shape shape = shape_of(x, matrix);
	const int64_t start[] = {0, k}, limit[] = {shape.dims[0], k + 1}, stride[] = {1, 1};
	return sw_emit_slice(x->p, x->c, matrix, start, limit, stride);
}

/* The inner product of two columns, in each of their elements. */
static sw_id inner(coding *x, sw_id a, sw_id b)
{
	static const int64_t both[] = {0, 1};
	sw_id sum = sw_emit_reduce(x->p, x->c, SW_MONOID_SUM, binary(x, SW_OP_MULTIPLY, a, b),
	                           sw_emit_scalar(x->p, x->c, SW_F32, 0), both, 2);
	return sw_emit_broadcast(x->p, x->c, sum, shape_of(x, a), NULL);
}

/* Make the columns orthonormal, one after the other; one that is a sum of those before becomes
 * about 0. */
static sw_id orthonormal(coding *x, sw_id matrix)
{
	sw_id columns[SW_MAX_CODEC_RANK];
	int64_t n = shape_of(x, matrix).dims[1];
	for (int64_t k = 0; k < n; k++) {
		sw_id a = column(x, matrix, k);
		for (int64_t j = 0; j < k; j++)
			a = binary(x, SW_OP_SUBTRACT, a,
			           binary(x, SW_OP_MULTIPLY, columns[j], inner(x, columns[j], a)));
		sw_id square = inner(x, a, a);
		sw_id scale = sw_emit_unary(x->p, x->c, SW_OP_RSQRT,
		                            binary(x, SW_OP_ADD, square, like(x, square, 1e-30)));
		columns[k] = binary(x, SW_OP_MULTIPLY, a, scale);
	}
	return n == 1 ? columns[0] : sw_emit_concatenate(x->p, x->c, columns, (uint32_t)n, 1);
}

static sw_id multiply_low_rank(coding *x, sw_id terms)
{
	static const int64_t turn[] = {0, 2, 1};
	int64_t n = x->shape.dims[0], m = sw_shape_elements(x->shape) / n;
	const int64_t cube[] = {x->stack.dims[0], n, m};
	sw_id matrices = sw_emit_reshape(x->p, x->c, terms, cube, 3);
	sw_id left = orthonormal(x, sum_of_terms(x, dot(x, matrices, 2, x->to->factor_in, 0)));
	sw_id own = dot(x, matrices, 1, left, 0); /* [devices, m, rank] */
	x->to->factor = sum_of_terms(x, own);
	sw_id lacks = sw_emit_transpose(x->p, x->c, dot(x, own, 2, left, 1), turn);
	x->to->residual = sw_emit_reshape(x->p, x->c, binary(x, SW_OP_SUBTRACT, matrices, lacks),
	                                  x->stack.dims, x->stack.rank);
	return sw_emit_reshape(x->p, x->c, dot(x, left, 1, x->to->factor, 1), x->shape.dims,
	                       x->shape.rank);
}

/* ---- the gradient ----------------------------------------------------------------------- */

bool sw_codec_fits(sw_codec codec, sw_shape shape)
{
	if (sw_type_kind_of(shape.type) != SW_KIND_FLOAT || shape.rank >= SW_MAX_RANK)
		return false;
	if (codec.kind == SW_CODEC_TERMS)
		return true;
	if (shape.rank == 0 || sw_shape_elements(shape) < 2)
		return false;
	int64_t n = shape.dims[0], m = sw_shape_elements(shape) / n;
	return codec.kind != SW_CODEC_POWERSGD || codec.rank < SW_MIN(n, m);
}

sw_shape sw_codec_factor_shape(sw_codec codec, sw_shape shape, sw_program *p)
{
	const int64_t dims[] = {sw_shape_elements(shape) / shape.dims[0], codec.rank};
	return sw_build_shape(p, SW_F32, dims, 2);
}

/* Take the gradient apart; each device's term is a row of the result, [devices, dimensions]. */
static sw_status take_apart(sw_program *p, int32_t c, int64_t devices, sw_id gradient,
                            const char *name, sw_id *terms, sw_error *err)
{
	sw_shape given = sw_value_shape(p, gradient);
	int64_t dims[SW_MAX_RANK] = {devices};
	for (int32_t d = 0; d < given.rank; d++)
		dims[d + 1] = given.dims[d];
	sw_shape stack = sw_build_shape(p, given.type, dims, given.rank + 1);
	sw_op_spec spec = {.opcode = SW_OP_TERMS,
	                   .name = name,
	                   .operands = &gradient,
	                   .n_operands = 1,
	                   .shapes = &stack,
	                   .n_results = 1};
	return sw_build_op(p, c, &spec, terms, err);
}

static sw_status write_code(sw_program *p, int32_t c, sw_codec codec, int64_t devices,
                            sw_id gradient, const char *name, sw_coded *coded, sw_error *err)
{
	static const int64_t first[] = {0};
	sw_shape given = sw_value_shape(p, gradient);
	coding x = {.p = p, .c = c, .to = coded, .codec = codec, .err = err};
	sw_id terms;
	SW_TRY(take_apart(p, c, devices, gradient, name, &terms, err));
	if (codec.kind == SW_CODEC_TERMS) {
		coded->sent = sw_emit_reduce(p, c, SW_MONOID_SUM, terms,
		                             sw_emit_scalar(p, c, given.type, 0), first, 1);
		return SW_OK;
	}
	if (given.type != SW_F32)
		terms = sw_emit_convert(p, c, terms, SW_F32);
	x.shape = sw_build_shape(p, SW_F32, given.dims, given.rank);
	x.stack = sw_value_shape(p, terms);
	terms = binary(&x, SW_OP_ADD, terms, coded->residual_in);
	coded->sent = codec.kind == SW_CODEC_TOPK       ? pick_largest(&x, terms)
	              : codec.kind == SW_CODEC_POWERSGD ? multiply_low_rank(&x, terms)
	                                                : round_gradient(&x, terms);
	if (x.status == SW_OK && given.type != SW_F32)
		coded->sent = sw_emit_convert(p, c, coded->sent, given.type);
	return x.status;
}

sw_status sw_codec_write(sw_program *p, int32_t c, sw_codec codec, int64_t devices, sw_id gradient,
                         const char *name, const char *title, sw_coded *coded, sw_error *err)
{
	size_t first = p->ops.len;
	SW_TRY(write_code(p, c, codec, devices, gradient, name, coded, err));
	for (size_t i = first; i < p->ops.len; i++)
		p->ops.data[i].op_name = title;
	return SW_OK;
}
