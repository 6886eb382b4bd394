/*
 * The table of ops: what each op of StableHLO and CHLO becomes. An op that is not in the table
 * becomes one of unknown meaning, which is planned as whole on every device and can't be run.
 */
#include "frontend/mlir.h"

#include <string.h>

#include "frontend/sharding.h"
#include "program/attributes.h"

/* ---- elementwise ------------------------------------------------------------------------ */

static sw_status write_compare(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
	sw_attrs attrs = {0};
	sw_span word = sw_mlir_word_of(m, op, 0), type = sw_mlir_word_of(m, op, 1);
	if (!word.length) {
		word = sw_mlir_last_word(sw_mlir_attribute_of(m, op, "comparison_direction"));
		type = sw_mlir_last_word(sw_mlir_attribute_of(m, op, "compare_type"));
	}
	size_t d = 0;
	while (d < SW_COUNT(directions) && !sw_span_is(word, directions[d]))
		d++;
	if (d == SW_COUNT(directions))
		return sw_mlir_fail(m, op, "expected a direction: EQ, NE, GE, GT, LE or LT");
	attrs.compare.direction = (sw_direction)d;
	attrs.compare.type = sw_span_is(type, "TOTALORDER") ? "TOTALORDER" : NULL;
	sw_op_spec spec = {.opcode = SW_OP_COMPARE, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

/* A scalar condition is spread, as HLO's select takes conditions of the result's shape. */
static sw_status write_select(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	SW_TRY(sw_mlir_check_counts(m, op, 3, 1));
	sw_shape shape = sw_mlir_result_shape(m, op, 0);
	sw_id operands[3];
	for (uint32_t i = 0; i < 3; i++)
		operands[i] = sw_mlir_operand(m, op, i);
	if (sw_value_shape(m->program, operands[0]).rank == 0 && shape.rank > 0) {
		sw_attrs attrs = {0};
		shape.type = SW_PRED;
		SW_TRY(sw_mlir_build_inner(m, c, op, SW_OP_BROADCAST, operands, 1, &attrs, &shape,
		                           &operands[0]));
	}
	sw_op_spec spec = {.opcode = SW_OP_SELECT, .operands = operands, .n_operands = 3};
	return sw_mlir_build(m, c, op, &spec);
}

/* A conversion to the same type is none. */
static sw_status write_convert(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	sw_id x = sw_mlir_operand(m, op, 0);
	if (sw_value_shape(m->program, x).type == sw_mlir_result_shape(m, op, 0).type)
		return sw_mlir_forward(m, op, x);
	sw_op_spec spec = {.opcode = SW_OP_CONVERT};
	return sw_mlir_build(m, c, op, &spec);
}

static sw_status write_square(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	sw_id operands[] = {sw_mlir_operand(m, op, 0), sw_mlir_operand(m, op, 0)};
	sw_op_spec spec = {.opcode = SW_OP_MULTIPLY, .operands = operands, .n_operands = 2};
	return sw_mlir_build(m, c, op, &spec);
}

static sw_status write_reduce_precision(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_span format = sw_mlir_attribute_of(m, op, "format"); /* e5m10 */
	sw_attrs attrs = {0};
	sw_span digits = {format.start + 1, format.length ? format.length - 1 : 0};
	const char *middle = digits.length ? memchr(digits.start, 'm', digits.length) : NULL;
	if (middle) {
		sw_span left = {digits.start, (size_t)(middle - digits.start)};
		sw_span right = {middle + 1, digits.length - left.length - 1};
		SW_TRY(sw_mlir_int_of(m, left, 0, &attrs.reduce_precision.exponent_bits));
		SW_TRY(sw_mlir_int_of(m, right, 0, &attrs.reduce_precision.mantissa_bits));
	} else {
		SW_TRY(sw_mlir_int(m, op, "exponent_bits", "exponent_bits",
		                   &attrs.reduce_precision.exponent_bits));
		SW_TRY(sw_mlir_int(m, op, "mantissa_bits", "mantissa_bits",
		                   &attrs.reduce_precision.mantissa_bits));
	}
	sw_op_spec spec = {.opcode = SW_OP_REDUCE_PRECISION, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

/* ---- the rest --------------------------------------------------------------------------- */

static const char *keep_word(sw_mlir *m, sw_span word)
{
	return sw_arena_text_n(&m->program->arena, word.start, word.length);
}

static sw_status write_rng_bits(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	static const char *const words[][2] = {{"DEFAULT", "rng_default"},
	                                       {"THREE_FRY", "rng_three_fry"},
	                                       {"PHILOX", "rng_philox"}};
	sw_span name = sw_mlir_last_word(sw_mlir_attribute_of(m, op, "algorithm"));
	if (!name.length)
		name = sw_mlir_last_word(sw_mlir_attribute_of(m, op, "rng_algorithm"));
	sw_attrs attrs = {0};
	for (size_t i = 0; i < SW_COUNT(words); i++)
		if (sw_span_is(name, words[i][0]))
			attrs.rng.algorithm = words[i][1];
	if (!attrs.rng.algorithm)
		return sw_mlir_fail(m, op, "expected algorithm DEFAULT, THREE_FRY or PHILOX");
	sw_op_spec spec = {.opcode = SW_OP_RNG_BIT_GENERATOR, .attrs = &attrs, .tuple = true};
	return sw_mlir_build(m, c, op, &spec);
}

static sw_status write_barrier(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_op_spec spec = {.opcode = SW_OP_OPT_BARRIER, .tuple = true};
	return sw_mlir_build(m, c, op, &spec);
}

static sw_status write_top_k(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {.topk = {.largest = true}};
	SW_TRY(sw_mlir_int(m, op, "k", "k", &attrs.topk.k));
	sw_op_spec spec = {.opcode = SW_OP_TOPK, .attrs = &attrs, .tuple = true};
	return sw_mlir_build(m, c, op, &spec);
}

static sw_status write_nothing(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	(void)c;
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	return sw_mlir_forward(m, op, sw_mlir_operand(m, op, 0));
}

/* Return the value of a hexadecimal digit, -1: it is none. */
static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 'a' - 'A' : c) : NULL;
	return at ? (int)(at - digits) : -1;
}

/* Return the byte that begins at text[*at], behind which *at is left: MLIR writes \22 for a
 * quotation mark, or \". */
static char next_byte(sw_span text, size_t *at)
{
	const char *c = text.start + *at;
	size_t left = text.length - *at;
	bool escaped = *c == '\\' && left > 1;
	bool coded = escaped && left > 2 && hex_digit(c[1]) >= 0 && hex_digit(c[2]) >= 0;
	*at += coded ? 3 : escaped ? 2 : 1;
	if (coded)
		return (char)(16 * hex_digit(c[1]) + hex_digit(c[2]));
	return !escaped ? *c : c[1] == 'n' ? '\n' : c[1] == 't' ? '\t' : c[1];
}

/* Append a string's text between quotation marks, as HLO text has it. */
static void add_string(sw_text *text, sw_span string)
{
	sw_text_add(text, "\"");
	for (size_t at = 0; at < string.length;) {
		char c = next_byte(string, &at);
		if (c < ' ' || c == 0x7f) /* and what is no ASCII */
			sw_text_addf(text, "\\%03o", (unsigned)(unsigned char)c);
		else
			sw_text_addf(text, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
	}
	sw_text_add(text, "\"");
}

/* Keep the configuration as HLO text has it: a string, or the attributes `{uplo = 76 : ui8}` of
 * calls through XLA's foreign functions, which JAX names mhlo.backend_config. */
static const sw_extra *keep_config(sw_mlir *m, const sw_mlir_op *op)
{
	static const char *const names[] = {"mhlo.backend_config", "backend_config"};
	sw_text text = {0};
	for (size_t i = 0; i < SW_COUNT(names) && !text.len; i++) {
		sw_span config = sw_mlir_attribute_of(m, op, names[i]);
		if (config.length > 2 && *config.start == '{')
			sw_text_add_n(&text, config.start, config.length);
		else if (config.length >= 2 && *config.start == '"')
			add_string(&text, (sw_span){config.start + 1, config.length - 2});
	}
	if (!text.len)
		return NULL;
	sw_extra *extra = SW_NEW(&m->program->arena, sw_extra);
	extra->name = "backend_config";
	extra->text = sw_arena_text(&m->program->arena, text.data);
	sw_text_clear(&text);
	return extra;
}

/* Values that lie alike, however that may be. */
static sw_status write_lost(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	(void)c;
	m->program->lost_annotations++;
	return sw_mlir_check_counts(m, op, 1, 0);
}

static sw_status write_custom_call(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_span target = sw_mlir_attribute_of(m, op, "callee");
	if (!target.length) {
		target = sw_mlir_attribute_of(m, op, "call_target_name");
		if (target.length >= 2 && *target.start == '"')
			target = (sw_span){target.start + 1, target.length - 2};
	}
	sw_attrs attrs = {.custom.target = keep_word(m, target)};
	if (sw_sharding_is_constraint(attrs.custom.target) && op->results.n == 1)
		return sw_mlir_emit_constraint(m, c, op);
	sw_mlir_count_annotation(m, op);
	sw_op_spec spec = {.opcode = SW_OP_CUSTOM_CALL,
	                   .attrs = &attrs,
	                   .tuple = op->results.n != 1,
	                   .extras = keep_config(m, op)};
	return sw_mlir_build(m, c, op, &spec);
}

static sw_status refuse_manual(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	(void)c;
	return sw_mlir_fail(m, op, SW_SEVERAL_DEVICES);
}

static sw_status write_unknown(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {.unknown.spelling = keep_word(m, op->name)};
	sw_op_spec spec = {.opcode = SW_OP_UNKNOWN, .attrs = &attrs, .tuple = op->results.n != 1};
	sw_opcode of_hlo;
	if (op->regions.n || sw_opcode_find(op->name.start, op->name.length, &of_hlo))
		return sw_mlir_fail(m, op, "this op is not known");
	return sw_mlir_build(m, c, op, &spec);
}

/* ---- the table -------------------------------------------------------------------------- */

typedef struct op_row {
	const char *name; /* without dialect */
	sw_mlir_writer *write;
} op_row;

static const op_row rows[] = {
	{"compare", write_compare},
	{"select", write_select},
	{"convert", write_convert},
	{"square", write_square},
	{"reduce_precision", write_reduce_precision},
	{"constant", sw_mlir_emit_constant},
	{"broadcast_in_dim", sw_mlir_emit_broadcast},
	{"iota", sw_mlir_emit_iota},
	{"transpose", sw_mlir_emit_transpose},
	{"reverse", sw_mlir_emit_reverse},
	{"concatenate", sw_mlir_emit_concatenate},
	{"pad", sw_mlir_emit_pad},
	{"slice", sw_mlir_emit_slice},
	{"dynamic_slice", sw_mlir_emit_dynamic_slice},
	{"gather", sw_mlir_emit_gather},
	{"scatter", sw_mlir_emit_scatter},
	{"dot", sw_mlir_emit_dot_general},
	{"dot_general", sw_mlir_emit_dot_general},
	{"convolution", sw_mlir_emit_convolution},
	{"reduce", sw_mlir_emit_reduce},
	{"reduce_window", sw_mlir_emit_reduce_window},
	{"select_and_scatter", sw_mlir_emit_select_and_scatter},
	{"sort", sw_mlir_emit_sort},
	{"rng_bit_generator", write_rng_bits},
	{"optimization_barrier", write_barrier},
	{"fft", sw_mlir_emit_fft},
	{"cholesky", sw_mlir_emit_cholesky},
	{"triangular_solve", sw_mlir_emit_triangular_solve},
	{"batch_norm_training", sw_mlir_emit_batch_norm_training},
	{"batch_norm_inference", sw_mlir_emit_batch_norm_inference},
	{"batch_norm_grad", sw_mlir_emit_batch_norm_grad},
	{"map", sw_mlir_emit_map},
	{"top_k", write_top_k},
	{"while", sw_mlir_emit_while},
	{"case", sw_mlir_emit_case},
	{"if", sw_mlir_emit_case},
	{"call", sw_mlir_emit_call},
	{"composite", sw_mlir_emit_call},
	{"custom_call", write_custom_call},
	{"sharding_constraint", sw_mlir_emit_constraint},
	{"reshard", sw_mlir_emit_constraint},
	{"propagation_barrier", write_nothing},
	{"sharding_group", write_lost},
	{"manual_computation", refuse_manual},
	{"all_gather", refuse_manual},
	{"all_reduce", refuse_manual},
	{"all_to_all", refuse_manual},
	{"collective_broadcast", refuse_manual},
	{"collective_permute", refuse_manual},
	{"reduce_scatter", refuse_manual},
};

/* Return the opcode that has this name with '-' for '_', if it needs no attributes. */
static bool plain_opcode(sw_span name, sw_opcode *opcode)
{
	char text[64];
	if (name.length >= sizeof(text))
		return false;
	for (size_t i = 0; i < name.length; i++)
		text[i] = name.start[i] == '_' ? '-' : name.start[i];
	return sw_opcode_find(text, name.length, opcode) && !sw_opcode_has_attrs(*opcode) &&
	       sw_opcode_class(*opcode) != SW_CLASS_OTHER;
}

sw_status sw_mlir_emit_op(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	const char *dot = memchr(op->name.start, '.', op->name.length);
	sw_span name = op->name;
	sw_opcode opcode;
	if (dot)
		name = (sw_span){dot + 1, op->name.length - (size_t)(dot + 1 - op->name.start)};
	for (size_t i = 0; i < SW_COUNT(rows); i++)
		if (sw_span_is(name, rows[i].name)) {
			if (rows[i].write != write_custom_call &&
			    rows[i].write != sw_mlir_emit_constraint)
				sw_mlir_count_annotation(m, op);
			return rows[i].write(m, computation, op);
		}
	sw_mlir_count_annotation(m, op);
	if (sw_mlir_is_special(m, op))
		return sw_mlir_emit_special(m, computation, op);
	if (!plain_opcode(name, &opcode))
		return write_unknown(m, computation, op);
	sw_op_spec spec = {.opcode = opcode};
	return sw_mlir_build(m, computation, op, &spec);
}
