/* Live ranges of values, and the peak of the memory that they take. */
#include <math.h>

#include "program/internal.h"

/* Of values that a device (view; NULL: any) does not have the ranges are empty. */
static sw_live_range *liveness(const sw_program *program, int32_t computation,
                               const sw_device_view *view, sw_live_range *ranges)
{
	const sw_computation *c = &program->computations.data[computation];
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(program, c->ops.data[i]);
		int32_t begin = op->opcode == SW_OP_PARAMETER ? 0 : (int32_t)i;
		for (uint32_t r = 0; r < op->n_results; r++) {
			bool has = !view || view->has[op->first_result + r];
			ranges[op->first_result + r] =
				(sw_live_range){begin, has ? (int32_t)i + 1 : begin};
		}
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (!view || (view->runs[c->ops.data[i]] && view->has[op->operands[k]]))
				ranges[op->operands[k]].end = (int32_t)i + 1;
	}
	for (size_t i = 0; i < c->results.len; i++)
		if (!view || view->has[c->results.data[i]])
			ranges[c->results.data[i]].end = (int32_t)c->ops.len;
	return ranges;
}

sw_live_range *sw_program_liveness(const sw_program *program, int32_t computation, sw_arena *arena)
{
	return liveness(program, computation, NULL,
	                SW_NEW_N(arena, sw_live_range, program->values.len + 1));
}

/* ---- peak ------------------------------------------------------------------------------- */

static double value_bytes(const sw_program *program, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(program, value));
}

const sw_id *sw_called_operands(const sw_program *program, const sw_op *op, uint16_t k, uint32_t *n)
{
	uint32_t first = op->opcode == SW_OP_CONDITIONAL;
	*n = op->n_operands;
	for (uint16_t i = 0; op->opcode == SW_OP_CONDITIONAL && i <= k; i++) {
		const sw_computation *branch = &program->computations.data[op->called[i]];
		first += i ? *n : 0;
		*n = 0;
		for (size_t p = 0; p < branch->parameters.len; p++)
			*n += sw_op_at(program, branch->parameters.data[p])->n_results;
	}
	return op->operands + first;
}

/* Return whether a loop passes the leaf on unchanged, so that it stays in the caller's buffer. */
static bool passes_unchanged(const sw_program *program, const sw_op *op, uint32_t leaf)
{
	if (op->opcode != SW_OP_WHILE)
		return false;
	const sw_computation *body = &program->computations.data[op->called[1]];
	sw_id inside = sw_op_at(program, body->parameters.data[0])->first_result + leaf;
	return body->results.data[leaf] == inside;
}

/* Return the bytes that both the caller and computation k of the region count: operands without
 * later uses, whose buffers the region takes over, and those that a loop passes on unchanged. */
static double shared_bytes(const sw_program *program, const sw_op *op, uint16_t k,
                           const sw_live_range *ranges, int32_t point)
{
	uint32_t n;
	const sw_id *operands = sw_called_operands(program, op, k, &n);
	double bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool again = false;
		for (uint32_t j = 0; j < i && !again; j++)
			again = operands[j] == operands[i];
		if (!again &&
		    (ranges[operands[i]].end == point + 1 || passes_unchanged(program, op, i)))
			bytes += value_bytes(program, operands[i]);
	}
	return bytes;
}

/* Return the bytes that a region needs beyond the operands and results that its caller counts. A
 * loop's condition gets all loop-carried values. Computations that are not regions work on scalars,
 * and a fusion allocates nothing. */
static double region_bytes(const sw_program *program, const sw_op *op, const sw_live_range *ranges,
                           int32_t point, const double *peaks)
{
	double most = -INFINITY;
	if (op->opcode == SW_OP_SCAN) /* the body holds slices of the operands, which stay live */
		return peaks[op->called[0]];
	if (op->opcode != SW_OP_WHILE && op->opcode != SW_OP_CONDITIONAL &&
	    op->opcode != SW_OP_CALL)
		return 0;
	for (uint16_t k = 0; k < op->n_called; k++) {
		double inside = fmax(peaks[op->called[k]],
		                     sw_computation_parameter_bytes(program, op->called[k]));
		most = fmax(most, inside - shared_bytes(program, op, k, ranges, point));
	}
	return most - sw_op_result_bytes(program, op);
}

void sw_live_changes(const sw_program *program, const sw_computation *c,
                     const sw_live_range *ranges, double *changes)
{
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(program, c->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++) {
			sw_live_range range = ranges[op->first_result + r];
			double bytes = value_bytes(program, op->first_result + r);
			changes[range.begin] += bytes;
			changes[range.end] -= bytes;
		}
	}
}

/* Return the room for what a device's op brings it that it does not have before: operands of
 * collectives in which it takes part. */
static double room_bytes(const sw_program *program, const sw_device_view *view, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	double bytes = 0;
	for (uint32_t k = 0; view && view->runs[id] && k < op->n_operands; k++)
		if (!view->has[op->operands[k]])
			bytes += value_bytes(program, op->operands[k]);
	return bytes;
}

static double computation_peak(const sw_program *program, int32_t computation,
                               const sw_device_view *view, sw_live_range *ranges,
                               const double *peaks)
{
	const sw_computation *c = &program->computations.data[computation];
	sw_arena arena;
	sw_arena_init(&arena);
	double *changes = SW_NEW_N(&arena, double, c->ops.len + 1), live = 0, peak = 0;
	sw_live_changes(program, c, liveness(program, computation, view, ranges), changes);
	for (size_t i = 0; i < c->ops.len; i++) {
		live += changes[i];
		peak = fmax(peak, live + room_bytes(program, view, c->ops.data[i]) +
		                          region_bytes(program, sw_op_at(program, c->ops.data[i]),
		                                       ranges, (int32_t)i, peaks));
	}
	sw_arena_clear(&arena);
	return peak;
}

/* Mark the computations reachable from `computation`, in the order callers first. */
static bool *find_reached(const sw_program *program, int32_t computation, const int32_t *order,
                          sw_arena *arena)
{
	bool *reached = SW_NEW_N(arena, bool, program->computations.len + 1);
	reached[computation] = true;
	for (size_t n = program->computations.len; n-- > 0;) {
		const sw_computation *c = &program->computations.data[order[n]];
		for (size_t i = 0; reached[order[n]] && i < c->ops.len; i++) {
			const sw_op *op = sw_op_at(program, c->ops.data[i]);
			for (uint16_t k = 0; k < op->n_called; k++)
				reached[op->called[k]] = true;
		}
	}
	return reached;
}

/* `view` is of the computation alone. */
static int64_t peak_bytes(const sw_program *program, int32_t computation,
                          const sw_device_view *view)
{
	sw_arena arena;
	sw_arena_init(&arena);
	int32_t *order;
	sw_program_order(program, &arena, &order);
	bool *reached = find_reached(program, computation, order, &arena);
	double *peaks = SW_NEW_N(&arena, double, program->computations.len + 1);
	sw_live_range *ranges = SW_NEW_N(&arena, sw_live_range, program->values.len + 1);
	for (size_t n = 0; n < program->computations.len; n++) {
		if (reached[order[n]])
			peaks[order[n]] = computation_peak(
				program, order[n], order[n] == computation ? view : NULL, ranges,
				peaks);
	}
	double peak = peaks[computation];
	sw_arena_clear(&arena);
	return peak >= 0x1p63 ? INT64_MAX : (int64_t)peak;
}

int64_t sw_program_peak_bytes(const sw_program *program, int32_t computation)
{
	return peak_bytes(program, computation, NULL);
}

int64_t sw_device_peak_bytes(const sw_program *program, const sw_device_view *view)
{
	return peak_bytes(program, program->entry, view);
}
