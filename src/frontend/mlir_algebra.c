/* Ops of StableHLO that few programs have: linear algebra, normalisations over a batch, map. */
#include "frontend/mlir.h"

#include <stdlib.h>

static bool flag(sw_mlir *m, const sw_mlir_op *op, const char *name)
{
	return sw_mlir_flag_of(sw_mlir_attribute_of(m, op, name));
}

sw_status sw_mlir_emit_fft(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_span kind = sw_mlir_last_word(sw_mlir_attribute_of(m, op, "type"));
	sw_attrs attrs = {0};
	if (!kind.length)
		kind = sw_mlir_last_word(sw_mlir_attribute_of(m, op, "fft_type"));
	attrs.fft.kind = sw_arena_text_n(&m->program->arena, kind.start, kind.length);
	SW_TRY(sw_mlir_ints(m, op, "length", "fft_length", &attrs.fft.length));
	sw_op_spec spec = {.opcode = SW_OP_FFT, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

sw_status sw_mlir_emit_cholesky(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {.cholesky = {.lower = flag(m, op, "lower")}};
	sw_op_spec spec = {.opcode = SW_OP_CHOLESKY, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

sw_status sw_mlir_emit_triangular_solve(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_span transpose = sw_mlir_last_word(sw_mlir_attribute_of(m, op, "transpose_a"));
	sw_attrs attrs = {.triangular_solve = {.left_side = flag(m, op, "left_side"),
	                                       .lower = flag(m, op, "lower"),
	                                       .unit_diagonal = flag(m, op, "unit_diagonal")}};
	if (transpose.length)
		attrs.triangular_solve.transpose_a =
			sw_arena_text_n(&m->program->arena, transpose.start, transpose.length);
	sw_op_spec spec = {.opcode = SW_OP_TRIANGULAR_SOLVE, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

static sw_status emit_batch_norm(sw_mlir *m, int32_t c, const sw_mlir_op *op, sw_opcode opcode)
{
	sw_attrs attrs = {0};
	sw_span epsilon = sw_mlir_attribute_of(m, op, "epsilon");
	const char *text = sw_arena_text_n(&m->scratch, epsilon.start, epsilon.length);
	char *end;
	attrs.batch_norm.epsilon = strtod(text, &end);
	if (end == text)
		return sw_mlir_fail(m, op, "expected epsilon, a number");
	SW_TRY(sw_mlir_int(m, op, "feature_index", "feature_index", &attrs.batch_norm.feature));
	sw_op_spec spec = {.opcode = opcode, .attrs = &attrs, .tuple = op->results.n != 1};
	return sw_mlir_build(m, c, op, &spec);
}

sw_status sw_mlir_emit_batch_norm_training(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	return emit_batch_norm(m, c, op, SW_OP_BATCH_NORM_TRAINING);
}

sw_status sw_mlir_emit_batch_norm_inference(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	return emit_batch_norm(m, c, op, SW_OP_BATCH_NORM_INFERENCE);
}

sw_status sw_mlir_emit_batch_norm_grad(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	return emit_batch_norm(m, c, op, SW_OP_BATCH_NORM_GRAD);
}

sw_status sw_mlir_emit_map(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	if (op->regions.n != 1)
		return sw_mlir_fail(m, op, "expected 1 region, found %u", op->regions.n);
	int32_t called = m->regions.data[m->region_ids.data[op->regions.first]].computation;
	SW_TRY(sw_mlir_ints(m, op, "dimensions", "dimensions", &attrs.dims.dims));
	sw_op_spec spec = {.opcode = SW_OP_MAP, .attrs = &attrs, .called = &called, .n_called = 1};
	return sw_mlir_build(m, c, op, &spec);
}
