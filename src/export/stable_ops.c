/*
 * The table of ops: what each opcode is in StableHLO. Elementwise ops without attributes have the
 * same name with '_' for '-', and need no row.
 */
#include "export/stable_writer.h"

#include <stdarg.h>
#include <string.h>

static bool any_needed(const sw_stable_writer *w, const sw_op *op)
{
	for (uint32_t r = 0; r < op->n_results; r++)
		if (w->needed[op->first_result + r])
			return true;
	return false;
}

static void find_needed(sw_stable_writer *w)
{
	w->needed = SW_NEW_N(&w->arena, bool, w->program->values.len + 1);
	for (size_t k = 0; k < w->program->computations.len; k++) {
		const sw_computation *c = &w->program->computations.data[k];
		for (size_t i = 0; i < c->results.len; i++)
			w->needed[c->results.data[i]] = true;
		for (size_t i = c->ops.len; i-- > 0;) {
			const sw_op *op = sw_op_at(w->program, c->ops.data[i]);
			bool needed = any_needed(w, op);
			for (uint32_t o = 0; o < op->n_operands && needed; o++)
				w->needed[op->operands[o]] = true;
		}
	}
}

void sw_stable_open(sw_stable_writer *w, const sw_program *program, sw_text *text, sw_error *err)
{
	*w = (sw_stable_writer){.program = program, .text = text, .err = err, .depth = 1};
	sw_arena_init(&w->arena);
	w->held = SW_NEW_N(&w->arena, bool, program->values.len + 1);
	w->stands = SW_NEW_N(&w->arena, sw_id, program->values.len + 1);
	for (size_t i = 0; i < program->values.len; i++)
		w->stands[i] = (sw_id)i;
	find_needed(w);
}

void sw_stable_close(sw_stable_writer *w)
{
	sw_arena_clear(&w->arena);
}

sw_status sw_stable_fail(sw_stable_writer *w, const sw_op *op, const char *format, ...)
{
	char message[256];
	va_list list;
	va_start(list, format);
	vsnprintf(message, sizeof(message), format, list);
	va_end(list);
	return sw_fail(w->err, SW_ERR_INPUT, "%s '%s': %s", sw_op_opcode_name(op), op->name,
	               message);
}

void sw_stable_line(sw_stable_writer *w)
{
	sw_text_addf(w->text, "\n%*s", 2 * w->depth, "");
}

/* ---- names ------------------------------------------------------------------------------ */

void sw_stable_name(sw_stable_writer *w, sw_id value)
{
	const sw_value *v = &w->program->values.data[w->stands[value]];
	const sw_op *op = sw_op_at(w->program, v->op);
	if (w->held[w->stands[value]])
		sw_text_addf(w->text, "%%h%u", op->first_result + v->index);
	else if (op->opcode != SW_OP_PARAMETER && op->n_results > 1)
		sw_text_addf(w->text, "%%v%u#%u", op->first_result, v->index);
	else
		sw_text_addf(w->text, "%%v%u", op->first_result + v->index);
}

static void add_names(sw_stable_writer *w, const sw_id *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sw_text_add(w->text, i ? ", " : "");
		sw_stable_name(w, values[i]);
	}
}

void sw_stable_return(sw_stable_writer *w, const char *name, const sw_id *values, size_t n)
{
	sw_stable_line(w);
	sw_text_addf(w->text, "\"%s\"(", name);
	add_names(w, values, n);
	sw_text_add(w->text, ") : (");
	sw_stable_types(w, values, n);
	sw_text_add(w->text, ") -> ()");
}

/* ---- ops -------------------------------------------------------------------------------- */

typedef struct stable_row {
	const char *name;                 /* NULL: "stablehlo." and the opcode's own */
	sw_stable_attributes *attributes; /* NULL: none */
	bool known, forward;              /* forward: its result is its first operand */
} stable_row;

#define ROW(opcode, attributes) [SW_OP_##opcode] = {NULL, attributes, true, false}
#define NAMED(opcode, name, attributes) [SW_OP_##opcode] = {name, attributes, true, false}
#define FORWARD(opcode) [SW_OP_##opcode] = {NULL, NULL, true, true}

static const stable_row rows[SW_OPCODE_COUNT] = {
	ROW(CONSTANT, sw_stable_constant),
	ROW(IOTA, sw_stable_iota),
	ROW(PARTITION_ID, NULL),
	ROW(REPLICA_ID, NULL),
	NAMED(ACOS, "chlo.acos", NULL),
	NAMED(ACOSH, "chlo.acosh", NULL),
	NAMED(ASIN, "chlo.asin", NULL),
	NAMED(ASINH, "chlo.asinh", NULL),
	NAMED(ATANH, "chlo.atanh", NULL),
	NAMED(COSH, "chlo.cosh", NULL),
	NAMED(SINH, "chlo.sinh", NULL),
	NAMED(ERF, "chlo.erf", NULL),
	FORWARD(COPY),
	ROW(REDUCE_PRECISION, sw_stable_precision),
	ROW(COMPARE, sw_stable_compare),
	ROW(BITCAST_CONVERT, NULL),
	NAMED(BROADCAST, "stablehlo.broadcast_in_dim", sw_stable_broadcast),
	ROW(CONCATENATE, sw_stable_dimension),
	ROW(DYNAMIC_SLICE, sw_stable_dynamic_slice),
	ROW(DYNAMIC_UPDATE_SLICE, NULL),
	ROW(GATHER, sw_stable_gather),
	ROW(PAD, sw_stable_pad),
	ROW(RESHAPE, NULL),
	ROW(REVERSE, sw_stable_dimensions),
	ROW(SLICE, sw_stable_slice),
	ROW(TRANSPOSE, sw_stable_transpose),
	ROW(CONVOLUTION, sw_stable_convolution),
	NAMED(DOT, "stablehlo.dot_general", sw_stable_dot),
	ROW(REDUCE, sw_stable_dimensions),
	ROW(REDUCE_WINDOW, sw_stable_reduce_window),
	ROW(SCATTER, sw_stable_scatter),
	ROW(SELECT_AND_SCATTER, sw_stable_select_and_scatter),
	ROW(SORT, sw_stable_sort),
	ROW(BATCH_NORM_GRAD, sw_stable_batch_norm),
	ROW(BATCH_NORM_INFERENCE, sw_stable_batch_norm),
	ROW(BATCH_NORM_TRAINING, sw_stable_batch_norm),
	NAMED(TOPK, "chlo.top_k", sw_stable_top_k),
	NAMED(CALL, "func.call", sw_stable_callee),
	NAMED(CONDITIONAL, "stablehlo.case", NULL),
	ROW(MAP, sw_stable_dimensions),
	ROW(WHILE, NULL),
	ROW(RNG_BIT_GENERATOR, sw_stable_rng_bits),
	ROW(CHOLESKY, sw_stable_cholesky),
	ROW(FFT, sw_stable_fft),
	ROW(TRIANGULAR_SOLVE, sw_stable_triangular_solve),
	ROW(ALL_GATHER, sw_stable_all_gather),
	ROW(ALL_REDUCE, sw_stable_all_reduce),
	ROW(REDUCE_SCATTER, sw_stable_reduce_scatter),
	ROW(ALL_TO_ALL, sw_stable_all_to_all),
	ROW(COLLECTIVE_PERMUTE, sw_stable_permute),
	ROW(COLLECTIVE_BROADCAST, sw_stable_broadcast_from),
	NAMED(OPT_BARRIER, "stablehlo.optimization_barrier", NULL),
	ROW(CUSTOM_CALL, sw_stable_custom_call),
};

/* Has every op of this opcode no attributes and no regions? */
static bool is_elementwise(sw_opcode opcode)
{
	return sw_opcode_is_elementwise(opcode) && opcode != SW_OP_STOCHASTIC_CONVERT;
}

static void add_op_name(sw_stable_writer *w, const sw_op *op)
{
	const stable_row *row = &rows[op->opcode];
	const char *name = row->name;
	bool yes_or_no = op->opcode == SW_OP_CONDITIONAL &&
	                 sw_value_shape(w->program, op->operands[0]).type == SW_PRED;
	if (yes_or_no)
		name = "stablehlo.if";
	if (name) {
		sw_text_addf(w->text, "\"%s\"", name);
		return;
	}
	sw_text_add(w->text, "\"stablehlo.");
	for (const char *c = sw_opcode_name((sw_opcode)op->opcode); *c; c++)
		sw_text_add_n(w->text, *c == '-' ? "_" : c, 1);
	sw_text_add(w->text, "\"");
}

static void add_results(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_line(w);
	if (op->n_results == 0)
		return;
	sw_text_addf(w->text, "%%v%u", op->first_result);
	if (op->n_results > 1)
		sw_text_addf(w->text, ":%u", op->n_results);
	sw_text_add(w->text, " = ");
}

static void add_op_types(sw_stable_writer *w, const sw_op *op, uint32_t n_operands)
{
	sw_text_add(w->text, " : (");
	sw_stable_types(w, op->operands, n_operands);
	sw_text_add(w->text, op->n_results == 1 ? ") -> " : ") -> (");
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_text_add(w->text, r ? ", " : "");
		sw_stable_type(w, sw_value_shape(w->program, op->first_result + r));
	}
	sw_text_add(w->text, op->n_results == 1 ? "" : ")");
}

static sw_status add_attributes(sw_stable_writer *w, const sw_op *op)
{
	sw_stable_attributes *attributes = rows[op->opcode].attributes;
	if (!attributes)
		return SW_OK;
	sw_text_add(w->text, " <{");
	SW_TRY(attributes(w, op));
	sw_text_add(w->text, "}>");
	return SW_OK;
}

static sw_status check_op(sw_stable_writer *w, const sw_op *op)
{
	if (!rows[op->opcode].known && !is_elementwise((sw_opcode)op->opcode))
		return sw_stable_fail(w, op, "this op is not exported to StableHLO");
	for (uint32_t r = 0; r < op->n_results; r++)
		SW_TRY(sw_stable_check_shape(w, op,
		                             sw_value_shape(w->program, op->first_result + r)));
	return SW_OK;
}

sw_status sw_stable_op(sw_stable_writer *w, sw_id id)
{
	const sw_op *op = sw_op_at(w->program, id);
	/* the branches of a conditional name its operands themselves */
	uint32_t n = op->opcode == SW_OP_CONDITIONAL ? 1 : op->n_operands;
	if (!any_needed(w, op))
		return SW_OK;
	SW_TRY(check_op(w, op));
	if (rows[op->opcode].forward) {
		w->stands[op->first_result] = w->stands[op->operands[0]];
		return SW_OK;
	}
	add_results(w, op);
	add_op_name(w, op);
	sw_text_add(w->text, "(");
	add_names(w, op->operands, n);
	sw_text_add(w->text, ")");
	SW_TRY(add_attributes(w, op));
	SW_TRY(sw_stable_regions(w, op));
	if (w->remarks)
		w->remarks->attributes(w->remarks->context, w, op);
	add_op_types(w, op, n);
	if (w->remarks)
		w->remarks->follow(w->remarks->context, w, op);
	return SW_OK;
}
