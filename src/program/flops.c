/*
 * Floating-point operations and bytes of an op, and of a program.
 *
 * A dot takes 2 m n k, a convolution 2 for each weight that meets an input element (padding and the
 * holes of dilation meet none). Elementwise ops that compute take 1 per element when they yield
 * floats; comparisons, selections, conversions and moves 0. A reduction applies its computation
 * once per input element. Decompositions: batch norm as the sums and products it stands for; FFT 5
 * n log2 n; Cholesky n^3 / 3; triangular solve n^2 per right-hand side (Golub and Van Loan).
 * Collectives take 0: `cost` knows their seconds.
 */
#include <math.h>

#include "program/call_signature.h"
#include "program/internal.h"

typedef struct counts {
	double flops, bytes;
} counts;

/* The counts of each computation, filled once, callees first. */
typedef struct accountant {
	const sw_program *program;
	const counts *computations;
} accountant;

static double elements(sw_shape shape)
{
	double n = 1;
	for (int32_t d = 0; d < shape.rank; d++)
		n *= (double)shape.dims[d];
	return n;
}

static double bytes_of(sw_shape shape)
{
	return elements(shape) * (double)sw_type_bytes(shape.type);
}

static sw_shape operand(const sw_program *p, const sw_op *op, uint32_t i)
{
	return sw_value_shape(p, op->operands[i]);
}

static sw_shape result(const sw_program *p, const sw_op *op)
{
	return sw_value_shape(p, op->first_result);
}

/* ---- contractions ----------------------------------------------------------------------- */

static double dot_flops(const sw_program *p, const sw_op *op)
{
	double flops = 2 * elements(result(p, op));
	sw_ints contracted = op->attrs->dot.lhs_contracting;
	for (int32_t i = 0; i < contracted.n; i++)
		flops *= (double)operand(p, op, 0).dims[contracted.v[i]];
	return flops;
}

static double convolution_flops(const sw_program *p, const sw_op *op)
{
	const sw_attrs *a = op->attrs;
	sw_shape input = operand(p, op, 0), kernel = operand(p, op, 1), output = result(p, op);
	double flops = 2 * (double)output.dims[a->convolution.output_batch] *
	               (double)output.dims[a->convolution.output_feature] *
	               (double)kernel.dims[a->convolution.kernel_input];
	for (int32_t i = 0; i < a->convolution.window.rank; i++)
		flops *= sw_window_hits(&a->convolution.window.dims[i],
		                     input.dims[a->convolution.input_spatial.v[i]],
		                     output.dims[a->convolution.output_spatial.v[i]]);
	return flops;
}

/* ---- elementwise ------------------------------------------------------------------------ */

static bool only_moves(sw_opcode opcode)
{
	switch (opcode) {
	case SW_OP_CONVERT:
	case SW_OP_COPY:
	case SW_OP_IMAG:
	case SW_OP_REAL:
	case SW_OP_IS_FINITE:
	case SW_OP_COMPARE:
	case SW_OP_COMPLEX:
	case SW_OP_SELECT:
	case SW_OP_STOCHASTIC_CONVERT:
	case SW_OP_REDUCE_PRECISION:
		return true;
	default:
		return false;
	}
}

static double elementwise_flops(const sw_program *p, const sw_op *op)
{
	if (op->n_results != 1 || only_moves((sw_opcode)op->opcode))
		return 0;
	sw_type_kind kind = sw_type_kind_of(result(p, op).type);
	return kind == SW_KIND_FLOAT || kind == SW_KIND_COMPLEX ? elements(result(p, op)) : 0;
}

/* ---- reductions ------------------------------------------------------------------------- */

static double called_flops(const accountant *a, const sw_op *op, uint32_t k)
{
	return a->computations[op->called[k]].flops;
}

static double reduce_window_flops(const accountant *a, const sw_op *op)
{
	double hits = 1;
	sw_window window = op->attrs->window.window;
	for (int32_t d = 0; d < window.rank; d++)
		hits *= sw_window_hits(&window.dims[d], operand(a->program, op, 0).dims[d],
		                    result(a->program, op).dims[d]);
	return hits * called_flops(a, op, 0);
}

static double cube(double n)
{
	return n * n * n;
}

static double cholesky_flops(const sw_program *p, const sw_op *op)
{
	sw_shape a = operand(p, op, 0);
	double n = (double)a.dims[a.rank - 1];
	return n == 0 ? 0 : elements(a) / (n * n) * cube(n) / 3;
}

static double triangular_solve_flops(const sw_program *p, const sw_op *op)
{
	sw_shape a = operand(p, op, 0);
	return elements(operand(p, op, 1)) * (double)a.dims[a.rank - 1];
}

static double fft_flops(const sw_program *p, const sw_op *op)
{
	double points = 1, all = SW_MAX(elements(operand(p, op, 0)), elements(result(p, op)));
	for (int32_t i = 0; i < op->attrs->fft.length.n; i++)
		points *= (double)op->attrs->fft.length.v[i];
	return points > 1 ? 5 * all * log2(points) : 0;
}

static double computing_flops(const accountant *a, const sw_op *op)
{
	const sw_program *p = a->program;
	switch (op->opcode) {
	case SW_OP_DOT:
	case SW_OP_SCALED_DOT:
	case SW_OP_RAGGED_DOT: /* each row is multiplied by the matrix of its own group only */
		return dot_flops(p, op);
	case SW_OP_CONVOLUTION:
		return convolution_flops(p, op);
	case SW_OP_REDUCE:
		return elements(operand(p, op, 0)) * called_flops(a, op, 0);
	case SW_OP_REDUCE_WINDOW:
		return reduce_window_flops(a, op);
	case SW_OP_SELECT_AND_SCATTER:
		return elements(operand(p, op, 1)) * called_flops(a, op, 1);
	case SW_OP_SCATTER:
		return elements(operand(p, op, op->n_operands / 2 + 1)) * called_flops(a, op, 0);
	case SW_OP_BATCH_NORM_TRAINING:
		/* two sums, square, subtract, scale twice, shift, mean */
		return 8 * elements(operand(p, op, 0));
	case SW_OP_BATCH_NORM_INFERENCE:
		return 4 * elements(operand(p, op, 0));
	case SW_OP_BATCH_NORM_GRAD:
		return 11 * elements(operand(p, op, 0));
	case SW_OP_CHOLESKY:
		return cholesky_flops(p, op);
	case SW_OP_TRIANGULAR_SOLVE:
		return triangular_solve_flops(p, op);
	case SW_OP_FFT:
		return fft_flops(p, op);
	case SW_OP_CUSTOM_CALL:
		return sw_call_flops(p, op);
	default:
		return 0;
	}
}

/* ---- bytes ------------------------------------------------------------------------------ */

double sw_op_traffic(const sw_op *op, uint32_t which)
{
	bool is_result = which >= op->n_operands;
	switch (op->opcode) {
	case SW_OP_PARAMETER:
	case SW_OP_CONSTANT:
	case SW_OP_BITCAST:
	case SW_OP_OPT_BARRIER:
	case SW_OP_ADD_DEPENDENCY:
	case SW_OP_AFTER_ALL:
	case SW_OP_DOMAIN:
	case SW_OP_GET_DIMENSION_SIZE:
		return 0;
	case SW_OP_SLICE:
	case SW_OP_DYNAMIC_SLICE:
		return is_result ? 2 : 0;
	case SW_OP_DYNAMIC_UPDATE_SLICE:
		return which == 1 ? 2 : 0;
	case SW_OP_GATHER:
		return is_result ? 2 : which;
	default:
		return 1;
	}
}

static double plain_bytes(const sw_program *p, const sw_op *op)
{
	double bytes = 0;
	for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
		sw_id value = i < op->n_operands ? op->operands[i]
		                                 : op->first_result + (i - op->n_operands);
		bytes += sw_op_traffic(op, i) * bytes_of(sw_value_shape(p, value));
	}
	return bytes;
}

/* ---- regions ---------------------------------------------------------------------------- */

static counts times(double n, counts a, counts b)
{
	return (counts){n * a.flops + b.flops, n * a.bytes + b.bytes};
}

static counts region_counts(const accountant *a, const sw_op *op)
{
	counts total = {0};
	double trips;
	switch (op->opcode) {
	case SW_OP_WHILE:
		trips = op->attrs->loop.trip_count < 0 ? 1 : (double)op->attrs->loop.trip_count;
		total = times(trips, a->computations[op->called[1]], total);
		return times(trips, a->computations[op->called[0]], total);
	case SW_OP_CONDITIONAL: /* the branch with the largest counts */
		for (uint16_t k = 0; k < op->n_called; k++) {
			total.flops = fmax(total.flops, called_flops(a, op, k));
			total.bytes = fmax(total.bytes, a->computations[op->called[k]].bytes);
		}
		return total;
	case SW_OP_FUSION: /* values inside a fusion never reach memory */
		total.flops = called_flops(a, op, 0);
		total.bytes = plain_bytes(a->program, op);
		return total;
	case SW_OP_MAP:
		total.flops = elements(result(a->program, op)) * called_flops(a, op, 0);
		total.bytes = plain_bytes(a->program, op);
		return total;
	default:
		return op->n_called ? a->computations[op->called[0]] : total;
	}
}

static counts op_counts(const accountant *a, const sw_op *op)
{
	switch (sw_opcode_class((sw_opcode)op->opcode)) {
	case SW_CLASS_REGION:
		return region_counts(a, op);
	case SW_CLASS_UNARY:
	case SW_CLASS_BINARY:
	case SW_CLASS_TERNARY:
		return (counts){elementwise_flops(a->program, op), plain_bytes(a->program, op)};
	default:
		return (counts){computing_flops(a, op), plain_bytes(a->program, op)};
	}
}

/* ---- programs --------------------------------------------------------------------------- */

static counts count_computation(const accountant *a, int32_t computation)
{
	const sw_computation *c = &a->program->computations.data[computation];
	counts total = {0};
	for (size_t i = 0; i < c->ops.len; i++)
		total = times(1, op_counts(a, sw_op_at(a->program, c->ops.data[i])), total);
	return total;
}

static const counts *count_computations(const sw_program *program, sw_arena *arena)
{
	counts *all = SW_NEW_N(arena, counts, program->computations.len + 1);
	accountant a = {.program = program, .computations = all};
	int32_t *order;
	sw_program_order(program, arena, &order);
	for (size_t n = 0; n < program->computations.len; n++)
		all[order[n]] = count_computation(&a, order[n]);
	return all;
}

static bool calls_nothing(const sw_program *program, const sw_op *op)
{
	for (uint16_t k = 0; k < op->n_called; k++) {
		const sw_computation *c = &program->computations.data[op->called[k]];
		for (size_t i = 0; i < c->ops.len; i++) {
			if (sw_op_at(program, c->ops.data[i])->n_called)
				return false;
		}
	}
	return true;
}

/* Count the op's own computations only, so that a query for each op one by one stays cheap; count
 * the whole program only for an op that calls computations which call others. */
static const counts *count_called(const sw_program *program, const sw_op *op, sw_arena *arena)
{
	if (!calls_nothing(program, op))
		return count_computations(program, arena);
	int32_t last = 0;
	for (uint16_t k = 0; k < op->n_called; k++)
		last = SW_MAX(last, op->called[k]);
	counts *all = SW_NEW_N(arena, counts, last + 1);
	accountant a = {.program = program, .computations = all};
	for (uint16_t k = 0; k < op->n_called; k++)
		all[op->called[k]] = count_computation(&a, op->called[k]);
	return all;
}

static counts count_op(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	accountant a = {.program = program};
	if (op->n_called == 0)
		return op_counts(&a, op);
	sw_arena arena;
	sw_arena_init(&arena);
	a.computations = count_called(program, op, &arena);
	counts found = op_counts(&a, op);
	sw_arena_clear(&arena);
	return found;
}

double sw_op_flops(const sw_program *program, sw_id op)
{
	return count_op(program, op).flops;
}

double sw_op_bytes(const sw_program *program, sw_id op)
{
	return count_op(program, op).bytes;
}

static counts count_program(const sw_program *program)
{
	if (program->entry < 0)
		return (counts){0};
	sw_arena arena;
	sw_arena_init(&arena);
	counts found = count_computations(program, &arena)[program->entry];
	sw_arena_clear(&arena);
	return found;
}

double sw_program_flops(const sw_program *program)
{
	return count_program(program).flops;
}

double sw_program_bytes(const sw_program *program)
{
	return count_program(program).bytes;
}
