/* The values that are live at the program point at which a computation needs most memory. */
#include "program/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct finder {
	const sw_program *program;
	sw_arena arena;
	sw_live_range *ranges;
	sw_peak *peak;
} finder;

static int64_t bytes_of(const finder *f, sw_id value)
{
	return sw_shape_bytes(sw_value_shape(f->program, value));
}

/* Return the computation that needs most memory beyond its parameters, among those that a loop,
 * conditional or call runs; -1: none. *bytes is what it needs beyond its parameters. */
static int32_t largest_called(const finder *f, const sw_op *op, int64_t *bytes)
{
	int32_t largest = -1;
	bool runs = op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL ||
	            op->opcode == SW_OP_CALL;
	*bytes = 0;
	for (uint16_t k = 0; runs && k < op->n_called; k++) {
		double handed = sw_computation_parameter_bytes(f->program, op->called[k]);
		int64_t more = sw_program_peak_bytes(f->program, op->called[k]) - (int64_t)handed;
		if (more > *bytes) {
			*bytes = more;
			largest = op->called[k];
		}
	}
	return largest;
}

/* Return the point of the peak, as an op's place. *called: the computation that runs at that point
 * and has live values of its own, -1: none. */
static int32_t find_point(const finder *f, const sw_computation *c, int32_t *called)
{
	double *changes = sw_alloc(sizeof(*changes) * (c->ops.len + 1)), live = 0, most = -1;
	int32_t point = 0;
	*called = -1;
	sw_live_changes(f->program, c, f->ranges, changes);
	for (size_t i = 0; i < c->ops.len; i++) {
		int64_t inside;
		int32_t runs = largest_called(f, sw_op_at(f->program, c->ops.data[i]), &inside);
		live += changes[i];
		if (live + (double)inside > most) {
			most = live + (double)inside;
			point = (int32_t)i;
			*called = runs;
		}
	}
	free(changes);
	return point;
}

/* List the live values. The parameters of a called computation are skipped, since its caller lists
 * them. */
static void list_live(finder *f, const sw_computation *c, int32_t point, bool called)
{
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, c->ops.data[i]);
		bool handed = called && op->opcode == SW_OP_PARAMETER;
		for (uint32_t r = 0; r < op->n_results && !handed; r++) {
			sw_live_range range = f->ranges[op->first_result + r];
			if (range.begin <= point && point < range.end &&
			    bytes_of(f, op->first_result + r) > 0)
				sw_vec_push(&f->peak->values, op->first_result + r);
		}
	}
}

void sw_peak_init(sw_peak *peak, const sw_program *program)
{
	finder f = {.program = program, .peak = peak};
	int32_t c = program->entry, called;
	*peak = (sw_peak){.op = SW_NO_ID};
	sw_arena_init(&f.arena);
	while (c >= 0) {
		const sw_computation *computation = &program->computations.data[c];
		f.ranges = sw_program_liveness(program, c, &f.arena);
		int32_t point = find_point(&f, computation, &called);
		list_live(&f, computation, point, c != program->entry);
		if (computation->ops.len > 0)
			peak->op = computation->ops.data[point];
		c = called;
	}
	sw_arena_clear(&f.arena);
}

void sw_peak_clear(sw_peak *peak)
{
	sw_vec_clear(&peak->values);
}
