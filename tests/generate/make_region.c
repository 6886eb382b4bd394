/* Loops, branches and calls: a few steps inside, and a value for every result. */
#include "generate/maker.h"

#include <math.h>

#define MAX_DEPTH 2
#define MAX_CARRIED 5

static void few_steps(maker *m)
{
	int64_t n = between(m, 1, 4);
	for (int64_t i = 0; i < n; i++)
		make_something(m);
}

/* ---- while ------------------------------------------------------------------------------ */

/* A loop. Leaf 0 is the counter. `facts` hold before each iteration. */
typedef struct loop {
	uint32_t n;
	int64_t trips;
	sw_id init[MAX_CARRIED];
	sw_shape shapes[MAX_CARRIED];
	value_facts facts[MAX_CARRIED];
} loop;

static bool is_bound(value_facts k)
{
	return size_of(k) < 1e30;
}

/* A carried value may become any number of its size; one that is rounded before the loop is rounded
 * more inside. */
static value_facts carried_fact(sw_type type, value_facts init)
{
	if (type == SW_PRED || !is_kind(type, INEXACT)) {
		init = round_facts(type, (value_facts){-INFINITY, INFINITY, 0, true});
		return init;
	}
	double size = fmax(size_of(init), fmin(8, largest_integer(type)));
	double error = init.error > 0 ? fmax(init.error, 32 * unit_of(type) * size) : 0;
	return (value_facts){-size, size, error, init.integral};
}

static void loop_init(maker *m, loop *l)
{
	l->n = (uint32_t)between(m, 2, MAX_CARRIED);
	l->trips = between(m, 1, 3);
	l->init[0] = scalar(m, SW_S32, 0);
	l->facts[0] = (value_facts){0, 8, 0, true};
	for (uint32_t i = 1; i < l->n; i++) {
		l->init[i] = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4});
		l->facts[i] = carried_fact(type_of(m, l->init[i]), *fact(m, l->init[i]));
	}
	for (uint32_t i = 0; i < l->n; i++)
		l->shapes[i] = shape_of(m, l->init[i]);
}

/* i < trips, and sometimes also a condition on the data: on an exact value, so that all devices
 * agree. */
static int32_t loop_condition(maker *m, loop *l, bool by_data)
{
	scope s;
	int64_t dims[SW_MAX_RANK];
	scope_open(m, &s, "condition");
	sw_id first = scope_parameter(m, l->shapes, l->facts, l->n, l->n > 1);
	sw_attrs less = {.compare = {.direction = SW_LT}},
		 unequal = {.compare = {.direction = SW_NE}};
	sw_id limit = scalar(m, SW_S32, (double)l->trips);
	sw_id result = write_simple_op(m, SW_OP_COMPARE, (sw_id[]){first, limit}, 2, &less, NULL);
	for (uint32_t i = 1; by_data && i < l->n; i++) {
		sw_shape shape = l->shapes[i];
		if (l->facts[i].error > 0 || is_kind(shape.type, KIND(COMPLEX) | KIND(PRED)))
			continue;
		for (int32_t d = 0; d < shape.rank; d++)
			dims[d] = d;
		sw_id most = shape.rank ? summed(m, first + i, SW_MONOID_MAX, dims, shape.rank)
		                        : first + i;
		sw_id other = scalar(m, shape.type, 3);
		sw_id go_on = write_simple_op(m, SW_OP_COMPARE, (sw_id[]){most, other}, 2, &unequal,
		                              NULL);
		result = write_simple_op(m, SW_OP_AND, (sw_id[]){result, go_on}, 2, NULL, NULL);
		break;
	}
	return scope_close(m, &s, &result, 1, false);
}

/* Return a value of this shape and type, as exact as required: the last one that fits, else the
 * carried value with something added. */
static sw_id next_of(maker *m, sw_id carried, sw_shape shape, value_facts k)
{
	for (size_t i = m->scope->pool.len; i-- > 0;) {
		sw_id value = m->scope->pool.data[i];
		sw_shape found = shape_of(m, value);
		value_facts f = *fact(m, value);
		if (value == carried || !sw_shape_equal(found, shape) ||
		    (k.error == 0 && f.error > 0) || (k.integral && !f.integral))
			continue;
		if (chance(m, 70))
			return value;
	}
	if (shape.type == SW_PRED)
		return set_facts(m, write_simple_op(m, SW_OP_NOT, &carried, 1, NULL, NULL), k);
	if (is_kind(shape.type, KIND(COMPLEX)))
		return set_facts(m, write_simple_op(m, SW_OP_NEGATE, &carried, 1, NULL, NULL), k);
	if (k.error > 0 || k.integral)
		return binary(m, SW_OP_ADD, carried, constant_like(m, shape, 1));
	if (sw_type_kind_of(shape.type) == SW_KIND_COMPLEX)
		return binary(m, SW_OP_MULTIPLY, carried, constant_like(m, shape, 1));
	return binary(m, SW_OP_MAXIMUM, carried, constant_like(m, shape, 0));
}

static sw_id bounded(maker *m, sw_id x, value_facts k)
{
	sw_type type = type_of(m, x);
	value_facts f = *fact(m, x);
	if (!is_kind(type, INEXACT) || (f.low >= k.low && f.high <= k.high))
		return x;
	return in_box(m, x, k.low, k.high);
}

static int32_t loop_body(maker *m, loop *l, value_facts *after)
{
	scope s;
	sw_id results[MAX_CARRIED];
	scope_open(m, &s, "body");
	sw_id first = scope_parameter(m, l->shapes, l->facts, l->n, l->n > 1);
	fact(m, first)->high = (double)l->trips;
	few_steps(m);
	results[0] = binary(m, SW_OP_ADD, first, scalar(m, SW_S32, 1));
	for (uint32_t i = 1; i < l->n; i++) {
		bool stays = chance(m, 20);
		results[i] = stays ? first + i : next_of(m, first + i, l->shapes[i], l->facts[i]);
		results[i] = bounded(m, results[i], l->facts[i]);
		after[i] = *fact(m, results[i]);
	}
	return scope_close(m, &s, results, l->n, l->n > 1);
}

static void make_while(maker *m)
{
	loop l;
	value_facts after[MAX_CARRIED];
	if (depth_of(m) >= MAX_DEPTH)
		return;
	loop_init(m, &l);
	int32_t called[2];
	called[0] = loop_condition(m, &l, chance(m, 25));
	called[1] = loop_body(m, &l, after);
	sw_attrs attrs;
	sw_attrs_init(SW_OP_WHILE, &attrs);
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .operands = l.init,
	                   .n_operands = l.n,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs,
	                   .tuple = l.n > 1};
	sw_id first = write_op(m, &spec);
	for (uint32_t i = 1; i < l.n; i++) {
		value_facts k = l.facts[i];
		if (k.error > 0)
			k.error *= pow(fmax(after[i].error / k.error, 1), (double)l.trips);
		if (is_bound(k))
			add_to_pool(m, first + i, k);
	}
}

/* ---- conditional ------------------------------------------------------------------------ */

#define MAX_BRANCHES 3
#define MAX_LEAVES 3

static sw_id branch_index(maker *m, uint32_t branches)
{
	sw_type type = branches == 2 && chance(m, 60) ? SW_PRED : SW_S32;
	sw_shape shape = make_shape(m, type, NULL, 0);
	if (type == SW_S32 && chance(m, 60))
		return fresh_integers(m, shape, -1, branches);
	return pick_like(m, shape, true);
}

/* Write one branch on its own operands; the first branch determines the results. */
static int32_t branch(maker *m, const sw_id *operands, uint32_t n, sw_shape *shapes,
                      value_facts *facts, uint32_t n_results, bool first)
{
	scope s;
	sw_shape taken[MAX_LEAVES];
	value_facts known_of[MAX_LEAVES];
	sw_id results[2];
	for (uint32_t i = 0; i < n; i++) {
		taken[i] = shape_of(m, operands[i]);
		known_of[i] = *fact(m, operands[i]);
	}
	scope_open(m, &s, "branch");
	scope_parameter(m, taken, known_of, n, n > 1);
	few_steps(m);
	for (uint32_t i = 0; i < n_results; i++) {
		results[i] = first ? pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4})
		                   : pick_like(m, shapes[i], false);
		shapes[i] = shape_of(m, results[i]);
		facts[i] =
			first ? *fact(m, results[i]) : facts_either(facts[i], *fact(m, results[i]));
	}
	return scope_close(m, &s, results, n_results, n_results > 1);
}

static void make_conditional(maker *m)
{
	uint32_t branches = (uint32_t)between(m, 1, MAX_BRANCHES),
		 n_results = (uint32_t)between(m, 1, 2), n = 1;
	sw_id operands[1 + MAX_BRANCHES * MAX_LEAVES];
	int32_t called[MAX_BRANCHES];
	sw_shape shapes[2];
	value_facts facts[2];
	if (depth_of(m) >= MAX_DEPTH)
		return;
	operands[0] = branch_index(m, branches);
	if (fact(m, operands[0])->error > 0)
		return;
	for (uint32_t b = 0; b < branches; b++) {
		uint32_t leaves = (uint32_t)between(m, 1, MAX_LEAVES);
		for (uint32_t i = 0; i < leaves; i++)
			operands[n + i] = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4});
		called[b] = branch(m, operands + n, leaves, shapes, facts, n_results, b == 0);
		n += leaves;
	}
	sw_op_spec spec = {.opcode = SW_OP_CONDITIONAL,
	                   .operands = operands,
	                   .n_operands = n,
	                   .called = called,
	                   .n_called = branches,
	                   .tuple = n_results > 1};
	sw_id first = write_op(m, &spec);
	for (uint32_t i = 0; i < n_results; i++)
		add_to_pool(m, first + i, facts[i]);
}

/* ---- scan ------------------------------------------------------------------------------- */

/* Slices along a dimension, one after another: the running sum is carried, and its maximum with the
 * slice is the output. */
static void make_scan(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = REALS, .min_rank = 1, .max_rank = 4});
	sw_shape whole = shape_of(m, x);
	int64_t dim = below(m, whole.rank), dims[SW_MAX_RANK];
	scope s;
	if (!generate_can_compute(SW_OP_SCAN))
		return;
	for (int32_t d = 0, n = 0; d < whole.rank; d++)
		if (d != dim)
			dims[n++] = whole.dims[d];
	sw_shape part = make_shape(m, whole.type, dims, whole.rank - 1);
	sw_id two[] = {x, pick_like(m, part, false)};
	value_facts k = *fact(m, x),
		    so_far = facts_add(*fact(m, two[1]), facts_times(k, (double)whole.dims[dim]));
	so_far = round_chain(whole.type, so_far, (double)whole.dims[dim]);
	scope_open(m, &s, "step");
	sw_id slice = scope_parameter(m, &part, &k, 1, false),
	      carried = scope_parameter(m, &part, &so_far, 1, false);
	sw_id sum = write_simple_op(m, SW_OP_ADD, (sw_id[]){carried, slice}, 2, NULL, NULL);
	sw_id results[] = {write_simple_op(m, SW_OP_MAXIMUM, (sw_id[]){sum, slice}, 2, NULL, NULL),
	                   sum};
	int32_t called = scope_close(m, &s, results, 2, true);
	sw_attrs attrs = {.scan = {.dimension = dim, .carries = 1, .reverse = chance(m, 30)}};
	sw_op_spec spec = {.opcode = SW_OP_SCAN,
	                   .operands = two,
	                   .n_operands = 2,
	                   .attrs = &attrs,
	                   .called = &called,
	                   .n_called = 1,
	                   .tuple = true};
	sw_id first = write_op(m, &spec);
	add_to_pool(m, first, facts_either(so_far, k));
	add_to_pool(m, first + 1, so_far);
}

/* ---- call ------------------------------------------------------------------------------- */

static void make_call(maker *m)
{
	sw_id operands[MAX_LEAVES];
	uint32_t n = (uint32_t)between(m, 1, MAX_LEAVES), n_results = (uint32_t)between(m, 1, 2);
	sw_id results[2];
	value_facts facts[2];
	scope s;
	if (depth_of(m) >= MAX_DEPTH)
		return;
	for (uint32_t i = 0; i < n; i++)
		operands[i] = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4});
	scope_open(m, &s, "called");
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = shape_of(m, operands[i]);
		value_facts k = *fact(m, operands[i]);
		scope_parameter(m, &shape, &k, 1, false);
	}
	few_steps(m);
	for (uint32_t i = 0; i < n_results; i++) {
		results[i] = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4});
		facts[i] = *fact(m, results[i]);
	}
	int32_t called = scope_close(m, &s, results, n_results, n_results > 1);
	sw_id first = write_calling_op(m, SW_OP_CALL, operands, n, NULL, called);
	for (uint32_t i = 0; i < n_results; i++)
		add_to_pool(m, first + i, facts[i]);
}

static const make_row rows[] = {
	{"while", 6, make_while},
	{"conditional", 4, make_conditional},
	{"scan", 2, make_scan},
	{"call", 2, make_call},
};
const make_table makers_region = {rows, SW_COUNT(rows)};
