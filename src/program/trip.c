/*
 * Trip counts of loops whose counter runs from a constant to a constant in constant steps. In a
 * program of several devices an element of a constant table, at the number of the device, is such a
 * constant, too, of which each device has its own.
 *
 * The condition compares a carried integer with a bound; the body adds a constant to it. A bound or
 * an initial value is a constant, possibly behind copies and converts, or a carried value that the
 * body passes on unchanged and that starts as a constant. A counter that could wrap around has no
 * known trip count.
 */
#include <string.h>

#include "program/internal.h"
#include "program/number.h"

/* maximum number of copies that are followed back */
#define MAX_STEPS 16

typedef struct range {
	int64_t low, high;
} range;

typedef struct counted_loop {
	const sw_program *program;
	const sw_op *op;
	const sw_computation *condition, *body;
	const sw_op *condition_parameter, *body_parameter;
	int64_t device; /* whose trips are counted */
	bool *differs;  /* set where they depend on the device */
} counted_loop;

typedef struct loop_counter {
	uint32_t leaf;
	sw_direction direction; /* counter DIRECTION bound */
	int64_t start, step, bound;
	range fits; /* the common range of all types that the counter passes through */
} loop_counter;

static bool is_integer(sw_type type)
{
	sw_type_kind kind = sw_type_kind_of(type);
	return kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED;
}

static const sw_op *op_of(const sw_program *program, sw_id value)
{
	return sw_op_at(program, program->values.data[value].op);
}

static void narrow(range *fits, sw_type type)
{
	int64_t low, high;
	sw_integer_range(type, &low, &high);
	fits->low = SW_MAX(fits->low, low);
	fits->high = SW_MIN(fits->high, high);
}

static bool moves_scalar(const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_CONVERT:
	case SW_OP_RESHAPE:
	case SW_OP_BITCAST:
	case SW_OP_BROADCAST:
		return true;
	case SW_OP_COPY:
	case SW_OP_OPT_BARRIER:
		return op->n_operands == 1;
	default:
		return false;
	}
}

/* Follow copies, converts and reshapes of a single element back to their source; their types narrow
 * the range. */
static sw_id trace(const sw_program *program, sw_id value, range *fits)
{
	for (int i = 0; i < MAX_STEPS; i++) {
		sw_shape shape = sw_value_shape(program, value);
		const sw_op *op = op_of(program, value);
		if (!is_integer(shape.type) || sw_shape_elements(shape) != 1)
			return value;
		narrow(fits, shape.type);
		if (!moves_scalar(op))
			return value;
		value = op->operands[0];
	}
	return value;
}

static bool is_constant(const sw_op *op)
{
	return op->opcode == SW_OP_CONSTANT && op->attrs->constant.data;
}

/* Find the element of a constant of one dimension at the number of the device. */
static bool element_of(const counted_loop *l, const sw_op *slice, int64_t *number)
{
	if (slice->opcode != SW_OP_DYNAMIC_SLICE || slice->n_operands != 2)
		return false;
	range fits = {INT64_MIN, INT64_MAX};
	const sw_op *table = op_of(l->program, slice->operands[0]),
		    *at = op_of(l->program, trace(l->program, slice->operands[1], &fits));
	sw_shape shape = sw_value_shape(l->program, table->first_result);
	if (!is_constant(table) || at->opcode != SW_OP_PARTITION_ID ||
	    l->device >= sw_shape_elements(shape))
		return false;
	*l->differs = true;
	*number = sw_integer_get(shape.type, table->attrs->constant.data, l->device);
	return true;
}

static bool constant_of(const counted_loop *l, sw_id value, int64_t *number)
{
	range fits = {INT64_MIN, INT64_MAX};
	value = trace(l->program, value, &fits);
	const sw_op *op = op_of(l->program, value);
	sw_shape shape = sw_value_shape(l->program, value);
	if (!is_integer(shape.type) || sw_shape_elements(shape) != 1)
		return false;
	if (is_constant(op))
		*number = sw_integer_get(shape.type, op->attrs->constant.data, 0);
	else if (!element_of(l, op, number))
		return false;
	return *number >= fits.low && *number <= fits.high &&
	       !(shape.type == SW_U64 && *number < 0);
}

/* Set *leaf to the loop-carried value that a value of the condition or body is a copy of. */
static bool leaf_of(const counted_loop *l, const sw_op *parameter, sw_id value, range *fits,
                    uint32_t *leaf)
{
	value = trace(l->program, value, fits);
	if (op_of(l->program, value) != parameter)
		return false;
	*leaf = l->program->values.data[value].index;
	return true;
}

/* Find the number that a value of the condition has in every iteration: a carried value that never
 * changes, or a constant in the condition itself. */
static bool bound_of(const counted_loop *l, sw_id value, int64_t *number)
{
	range fits = {INT64_MIN, INT64_MAX};
	uint32_t leaf, from;
	if (constant_of(l, value, number))
		return true;
	if (!leaf_of(l, l->condition_parameter, value, &fits, &leaf))
		return false;
	if (!leaf_of(l, l->body_parameter, l->body->results.data[leaf], &fits, &from) ||
	    from != leaf)
		return false;
	return constant_of(l, l->op->operands[leaf], number) && *number >= fits.low &&
	       *number <= fits.high;
}

static sw_direction mirrored(sw_direction direction)
{
	switch (direction) {
	case SW_LT:
		return SW_GT;
	case SW_LE:
		return SW_GE;
	case SW_GT:
		return SW_LT;
	case SW_GE:
		return SW_LE;
	default:
		return direction;
	}
}

/* Read the condition: which leaf is compared, how, and with which bound. */
static bool read_condition(const counted_loop *l, bool swapped, loop_counter *c)
{
	const sw_op *compare = op_of(l->program, l->condition->results.data[0]);
	if (compare->opcode != SW_OP_COMPARE)
		return false;
	sw_id left = compare->operands[swapped], right = compare->operands[!swapped];
	c->fits = (range){INT64_MIN, INT64_MAX};
	c->direction = swapped ? mirrored(compare->attrs->compare.direction)
	                       : compare->attrs->compare.direction;
	return leaf_of(l, l->condition_parameter, left, &c->fits, &c->leaf) &&
	       bound_of(l, right, &c->bound);
}

/* Read the body's update: leaf + constant, constant + leaf, or leaf - constant. */
static bool read_body(const counted_loop *l, loop_counter *c)
{
	sw_id next = trace(l->program, l->body->results.data[c->leaf], &c->fits);
	const sw_op *op = op_of(l->program, next);
	uint32_t leaf;
	if (op->opcode != SW_OP_ADD && op->opcode != SW_OP_SUBTRACT)
		return false;
	for (int side = 0; side < (op->opcode == SW_OP_ADD ? 2 : 1); side++) {
		range fits = c->fits;
		if (!leaf_of(l, l->body_parameter, op->operands[side], &fits, &leaf) ||
		    leaf != c->leaf || !constant_of(l, op->operands[!side], &c->step))
			continue;
		c->fits = fits;
		if (op->opcode == SW_OP_SUBTRACT)
			return c->step != INT64_MIN && ((c->step = -c->step), true);
		return true;
	}
	return false;
}

/* Return the number of steps of `step` >= 1 that cover `distance`. */
static int64_t steps_up(int64_t distance, int64_t step)
{
	return distance <= 0 ? 0 : distance / step + (distance % step != 0);
}

static bool trips_of(const loop_counter *c, int64_t *trips)
{
	int64_t distance, step = c->step, sign = 1, end;
	if (__builtin_sub_overflow(c->bound, c->start, &distance) || distance == INT64_MIN)
		return false;
	if (c->direction == SW_GT || c->direction == SW_GE || (c->direction == SW_NE && step < 0))
		sign = -1;
	if (c->direction == SW_EQ || step == INT64_MIN)
		return false;
	distance *= sign;
	step *= sign;
	if ((c->direction == SW_LE || c->direction == SW_GE) &&
	    __builtin_add_overflow(distance, 1, &distance))
		return false;
	if (c->direction == SW_NE && (distance < 0 || step == 0 || distance % step != 0))
		return false;
	if (step <= 0 && distance > 0)
		return false;
	*trips = distance <= 0 ? 0 : steps_up(distance, step);
	return sw_mul_i64(*trips, SW_MAX(step, 0), &end) &&
	       !__builtin_add_overflow(c->start, sign * end, &end) && end >= c->fits.low &&
	       end <= c->fits.high && c->start >= c->fits.low && c->start <= c->fits.high;
}

/* Return the trips of the loop on its device; -1: they are not known. */
static int64_t count_trips(const counted_loop *l)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		loop_counter c;
		int64_t trips;
		if (read_condition(l, swapped, &c) && read_body(l, &c) &&
		    constant_of(l, l->op->operands[c.leaf], &c.start) &&
		    trips_of(&c, &trips))
			return trips;
	}
	return -1;
}

static bool open_loop(const sw_program *program, const sw_op *op, counted_loop *l)
{
	*l = (counted_loop){.program = program, .op = op, .differs = l->differs};
	l->condition = &program->computations.data[op->called[0]];
	l->body = &program->computations.data[op->called[1]];
	if (l->condition->parameters.len != 1 || l->body->parameters.len != 1)
		return false;
	l->condition_parameter = sw_op_at(program, l->condition->parameters.data[0]);
	l->body_parameter = sw_op_at(program, l->body->parameters.data[0]);
	return true;
}

/* Count the trips of a loop on all devices, which differ; -1: they are not known. */
static int64_t count_each(counted_loop *l, int64_t n_devices, sw_arena *arena, sw_ints *each)
{
	int64_t *trips = SW_NEW_N(arena, int64_t, n_devices), most = 0;
	for (l->device = 0; l->device < n_devices; l->device++) {
		trips[l->device] = count_trips(l);
		if (trips[l->device] < 0)
			return -1;
		most = SW_MAX(most, trips[l->device]);
	}
	*each = (sw_ints){.n = (int32_t)n_devices, .v = trips};
	return most;
}

void sw_program_find_trip_counts(sw_program *program)
{
	for (size_t o = 0; o < program->ops.len; o++) {
		sw_op *op = &program->ops.data[o];
		bool differs = false;
		counted_loop l = {.differs = &differs};
		if (op->opcode != SW_OP_WHILE || !open_loop(program, op, &l))
			continue;
		sw_attrs *attrs = sw_arena_copy(&program->arena, op->attrs, sizeof(*attrs));
		attrs->loop.each = (sw_ints){0};
		attrs->loop.trip_count = count_trips(&l);
		if (differs)
			attrs->loop.trip_count = count_each(&l, program->num_partitions,
			                                    &program->arena, &attrs->loop.each);
		op->attrs = attrs;
	}
}

int64_t sw_op_least_trips(const sw_op *op)
{
	int64_t least = sw_op_trips(op);
	for (int32_t d = 0; op->attrs && d < op->attrs->loop.each.n; d++)
		least = SW_MIN(least, op->attrs->loop.each.v[d]);
	return least;
}
