/* Elementwise ops. Tables hold what a function requires of its operand, and the facts of its
 * result. */
#include "generate/maker.h"

#include <math.h>

#include "interpret/kernel.h"

/* A function f on [low, high] (complex: a box of that width, with a symmetric imaginary part): |f|
 * <= reach, |f'| <= slope. Poles and branch cuts lie outside. */
typedef struct smooth {
	sw_opcode opcode;
	double low, high, reach, slope;
} smooth;

static const smooth smooths[] = {
	{SW_OP_ACOS, -0.5, 0.5, 2.2, 2},
	{SW_OP_ACOSH, 1.5, 4, 3, 2},
	{SW_OP_ASIN, -0.5, 0.5, 1, 2},
	{SW_OP_ASINH, -0.5, 0.5, 1, 2},
	{SW_OP_ATANH, -0.5, 0.5, 1, 2},
	{SW_OP_CBRT, 0.5, 8, 2, 1},
	{SW_OP_COSINE, -2, 2, 4, 4},
	{SW_OP_COSH, -2, 2, 4, 4},
	{SW_OP_ERF, -1, 1, 2, 2},
	{SW_OP_EXPONENTIAL, -3, 2, 8, 8},
	{SW_OP_EXPONENTIAL_MINUS_ONE, -3, 2, 8, 8},
	{SW_OP_LOG, 0.5, 8, 3, 2},
	{SW_OP_LOG_PLUS_ONE, -0.5, 8, 3, 2},
	{SW_OP_LOGISTIC, -2, 2, 2, 1},
	{SW_OP_RSQRT, 0.5, 8, 2, 2},
	{SW_OP_SINE, -2, 2, 4, 4},
	{SW_OP_SINH, -2, 2, 4, 4},
	{SW_OP_SQRT, 0.5, 8, 3, 1},
	{SW_OP_TAN, -1, 1, 2, 4},
	{SW_OP_TANH, -1, 1, 2, 2.5},
};

static sw_id pick_for(maker *m, sw_opcode opcode, operand_need w)
{
	sw_id x = pick(m, w);
	for (int i = 0; i < 8 && !sw_find_unary(opcode, type_of(m, x)); i++)
		x = pick(m, w);
	return x;
}

static void make_smooth(maker *m)
{
	const smooth *f = &smooths[below(m, SW_COUNT(smooths))];
	sw_id x = pick_for(m, f->opcode, (operand_need){.kinds = INEXACT, .max_rank = 5});
	if (!sw_find_unary(f->opcode, type_of(m, x)))
		return;
	x = in_box(m, x, f->low, f->high);
	double error = fact(m, x)->error * f->slope + 6 * unit_of(type_of(m, x)) * f->reach;
	add_to_pool(m, write_simple_op(m, f->opcode, &x, 1, NULL, NULL),
	            (value_facts){-f->reach, f->reach, error, false});
}

/* Ops that map exact values to exact ones; since they jump, their operands must be exact. */
static void make_stepped(maker *m)
{
	static const sw_opcode opcodes[] = {SW_OP_CEIL, SW_OP_FLOOR, SW_OP_ROUND_NEAREST_AFZ,
	                                    SW_OP_ROUND_NEAREST_EVEN, SW_OP_SIGN};
	sw_opcode opcode = opcodes[below(m, SW_COUNT(opcodes))];
	sw_id x = pick_for(m, opcode, (operand_need){.kinds = REALS, .max_rank = 5, .exact = true});
	value_facts k = *fact(m, x);
	if (!sw_find_unary(opcode, type_of(m, x)) || k.error > 0)
		return;
	k = opcode == SW_OP_SIGN ? (value_facts){-1, 1, 0, true}
	                         : (value_facts){floor(k.low), ceil(k.high), 0, true};
	add_to_pool(m, write_simple_op(m, opcode, &x, 1, NULL, NULL), k);
}

static void make_bits(maker *m)
{
	static const sw_opcode opcodes[] = {SW_OP_NOT, SW_OP_POPCNT, SW_OP_COUNT_LEADING_ZEROS};
	sw_opcode opcode = opcodes[below(m, SW_COUNT(opcodes))];
	uint32_t kinds = opcode == SW_OP_NOT ? INTEGERS | KIND(PRED) : INTEGERS;
	sw_id x = pick_for(m, opcode, (operand_need){.kinds = kinds, .max_rank = 5});
	value_facts k = {0, (double)(8 * sw_type_bytes(type_of(m, x))), 0, true};
	if (opcode == SW_OP_NOT)
		k = (value_facts){-INFINITY, INFINITY, 0, true};
	add_to_pool(m, write_simple_op(m, opcode, &x, 1, NULL, NULL),
	            round_facts(type_of(m, x), k));
}

static void make_abs_negate(maker *m)
{
	sw_opcode opcode = chance(m, 50) ? SW_OP_ABS : SW_OP_NEGATE;
	sw_id x = pick_for(m, opcode, (operand_need){.kinds = NUMBERS, .max_rank = 5});
	value_facts k = *fact(m, x);
	sw_type type = type_of(m, x);
	if (!sw_find_unary(opcode, type))
		return;
	if (opcode == SW_OP_NEGATE)
		k = (value_facts){-k.high, -k.low, k.error, k.integral};
	else if (is_kind(type, KIND(COMPLEX)))
		k = (value_facts){0, 1.5 * size_of(k),
		                  1.5 * k.error + 6 * unit_of(type) * size_of(k), false};
	else
		k = (value_facts){0, size_of(k), k.error, k.integral};
	add_to_pool(m, write_simple_op(m, opcode, &x, 1, NULL, NULL),
	            is_kind(type, INEXACT) ? k : round_facts(type, k));
}

static void make_parts(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = KIND(COMPLEX), .max_rank = 5});
	add_to_pool(m,
	            write_simple_op(m, chance(m, 50) ? SW_OP_REAL : SW_OP_IMAG, &x, 1, NULL, NULL),
	            *fact(m, x));
}

static void make_complex(maker *m)
{
	sw_shape shape = random_shape(m, chance(m, 60) ? SW_F32 : SW_F64, 0, 4);
	sw_id two[] = {pick_like(m, shape, false), pick_like(m, shape, false)};
	add_to_pool(m, write_simple_op(m, SW_OP_COMPLEX, two, 2, NULL, NULL),
	            facts_either(*fact(m, two[0]), *fact(m, two[1])));
}

static void make_convert(maker *m)
{
	sw_type to = random_type(m, ANY_KIND);
	bool rounds = !is_kind(to, INEXACT);
	uint32_t kinds = is_kind(to, KIND(COMPLEX)) ? NUMBERS : REALS | KIND(PRED);
	sw_id x = pick(m, (operand_need){.kinds = kinds, .max_rank = 5, .exact = rounds});
	value_facts k = *fact(m, x);
	if (type_of(m, x) == to || (rounds && k.error > 0))
		return;
	/* the type converts by rounding towards zero */
	if (rounds && is_kind(type_of(m, x), KIND(FLOAT)))
		k = (value_facts){trunc(k.low), trunc(k.high), 0, true};
	set_facts(m, x, *fact(m, x));
	sw_id y = converted(m, x, to);
	add_to_pool(m, y, to == SW_PRED ? (value_facts){0, 1, 0, true} : round_facts(to, k));
}

/* Round up or down as random numbers decide; integers that fit stay as they are. */
static void make_stochastic_convert(maker *m)
{
	static const sw_type unsigned_of[] = {
		[1] = SW_U8, [2] = SW_U16, [4] = SW_U32, [8] = SW_U64};
	sw_type to = random_type(m, INTEGERS | KIND(FLOAT));
	sw_id x = pick(m, (operand_need){.kinds = KIND(FLOAT),
	                                 .max_rank = 4,
	                                 .exact = !is_kind(to, KIND(FLOAT))});
	value_facts k = *fact(m, x);
	sw_shape shape = shape_of(m, x), bits = shape;
	if (!generate_can_compute(SW_OP_STOCHASTIC_CONVERT) || sw_type_bits(shape.type) % 8 != 0 ||
	    (!is_kind(to, KIND(FLOAT)) && k.error > 0))
		return;
	bits.type = unsigned_of[sw_type_bytes(shape.type)];
	sw_id two[] = {x, pick_like(m, bits, true)};
	shape.type = to;
	if (!is_kind(to, KIND(FLOAT)))
		k = (value_facts){floor(k.low), ceil(k.high), 0, true};
	k = round_facts(to, k);
	if (k.error > 0)
		k.error += 4 * unit_of(to) * size_of(k);
	add_to_pool(m, write_simple_op(m, SW_OP_STOCHASTIC_CONVERT, two, 2, NULL, &shape), k);
}

/* The narrower formats: bf16, f16, and shorter ones. */
static void make_reduce_precision(maker *m)
{
	static const int64_t formats[][2] = {{8, 7}, {5, 10}, {8, 5}, {5, 3}};
	const int64_t *f = formats[below(m, 4)];
	sw_id x = pick(m, (operand_need){.kinds = KIND(FLOAT), .max_rank = 5});
	value_facts k = *fact(m, x);
	if (size_of(k) > 8192 || is_kind(type_of(m, x), KIND(COMPLEX)))
		return;
	sw_attrs attrs = {.reduce_precision = {f[0], f[1]}};
	if (!(k.integral && k.error == 0 && size_of(k) <= ldexp(1, (int)f[1] + 1))) {
		k.error = 2 * k.error + ldexp(size_of(k), (int)-f[1]);
		k.integral = false;
	}
	add_to_pool(m, write_simple_op(m, SW_OP_REDUCE_PRECISION, &x, 1, &attrs, NULL), k);
}

static void make_arithmetic(maker *m)
{
	static const sw_opcode opcodes[] = {SW_OP_ADD,      SW_OP_ADD,      SW_OP_SUBTRACT,
	                                    SW_OP_MULTIPLY, SW_OP_MULTIPLY, SW_OP_MAXIMUM,
	                                    SW_OP_MINIMUM};
	sw_opcode opcode = opcodes[below(m, SW_COUNT(opcodes))];
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 5});
	bool chooses = opcode == SW_OP_MAXIMUM || opcode == SW_OP_MINIMUM;
	if (!sw_find_binary(opcode, type_of(m, x)))
		return;
	if (chooses && sw_type_kind_of(type_of(m, x)) == SW_KIND_COMPLEX)
		return; /* XLA does not say which of two complex numbers is larger */
	sw_id y = pick_like(m, shape_of(m, x), false);
	sw_id z = chance(m, 50) ? binary(m, opcode, x, y) : binary(m, opcode, y, x);
	add_to_pool(m, z, *fact(m, z));
}

static sw_id integers(maker *m, sw_opcode opcode, sw_id x, double number)
{
	sw_id y = constant_like(m, shape_of(m, x), number);
	sw_id z = write_simple_op(m, opcode, (sw_id[]){x, y}, 2, NULL, NULL);
	return set_facts(m, z,
	                 round_facts(type_of(m, x), (value_facts){-INFINITY, INFINITY, 0, true}));
}

/* Divide by values away from zero; integers by anything (XLA computes x / x as 1, even for 0). */
static void make_divide(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = NUMBERS, .max_rank = 5});
	sw_type type = type_of(m, x);
	sw_id y = pick_like(m, shape_of(m, x), false);
	value_facts all = {-INFINITY, INFINITY, 0, true};
	if (is_kind(type, INEXACT)) {
		y = in_box(m, y, 0.5, 4);
		value_facts a = *fact(m, x);
		double size = 2 * size_of(a);
		all = round_facts(type,
		                  (value_facts){-size, size,
		                                2 * a.error + 4 * size * fact(m, y)->error, false});
	} else if (m->options->portable) {
		y = integers(m, SW_OP_OR, y, 1);
	}
	add_to_pool(m, write_simple_op(m, SW_OP_DIVIDE, (sw_id[]){x, y}, 2, NULL, NULL),
	            round_facts(type, all));
}

static void make_remainder(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = REALS, .max_rank = 5, .integral = true});
	sw_type type = type_of(m, x);
	sw_id y = pick_like(m, shape_of(m, x), true);
	if (!fact(m, x)->integral || !fact(m, y)->integral || fact(m, y)->error > 0)
		return;
	if (is_kind(type, KIND(FLOAT)))
		y = clamped(m, y, 1, 8);
	value_facts a = *fact(m, x);
	add_to_pool(m, write_simple_op(m, SW_OP_REMAINDER, (sw_id[]){x, y}, 2, NULL, NULL),
	            (value_facts){fmin(a.low, 0), fmax(a.high, 0), 0, true});
}

static void make_power(maker *m)
{
	sw_opcode opcode = chance(m, 70) ? SW_OP_POWER : SW_OP_ATAN2;
	uint32_t kinds = opcode == SW_OP_POWER ? NUMBERS : KIND(FLOAT);
	sw_id x = pick(m, (operand_need){.kinds = kinds, .max_rank = 5});
	sw_type type = type_of(m, x);
	sw_id y = pick_like(m, shape_of(m, x), false);
	if (!sw_find_binary(opcode, type))
		return;
	if (!is_kind(type, INEXACT)) {
		if (m->options->portable)
			y = integers(m, SW_OP_AND, y, 63);
		add_to_pool(m, write_simple_op(m, opcode, (sw_id[]){x, y}, 2, NULL, NULL),
		            round_facts(type, (value_facts){-INFINITY, INFINITY, 0, true}));
		return;
	}
	if (opcode == SW_OP_POWER) {
		x = in_box(m, x, 0.5, 3);
		y = in_box(m, y, -2, 2);
	} else {
		y = in_box(m, y, 0.5, 4);
	}
	double reach = opcode == SW_OP_POWER ? (is_kind(type, KIND(COMPLEX)) ? 64 : 9) : 1.6;
	double error =
		(fact(m, x)->error + fact(m, y)->error) * 4 * reach + 8 * unit_of(type) * reach;
	add_to_pool(m, write_simple_op(m, opcode, (sw_id[]){x, y}, 2, NULL, NULL),
	            (value_facts){-reach, reach, error, false});
}

static void make_logic(maker *m)
{
	static const sw_opcode opcodes[] = {SW_OP_AND,
	                                    SW_OP_OR,
	                                    SW_OP_XOR,
	                                    SW_OP_SHIFT_LEFT,
	                                    SW_OP_SHIFT_RIGHT_ARITHMETIC,
	                                    SW_OP_SHIFT_RIGHT_LOGICAL};
	sw_opcode opcode = opcodes[below(m, SW_COUNT(opcodes))];
	bool shift = opcode >= SW_OP_SHIFT_LEFT && opcode <= SW_OP_SHIFT_RIGHT_LOGICAL;
	sw_id x = pick(m, (operand_need){.kinds = shift ? INTEGERS : INTEGERS | KIND(PRED),
	                                 .max_rank = 5});
	sw_id y = pick_like(m, shape_of(m, x), false);
	add_to_pool(m, write_simple_op(m, opcode, (sw_id[]){x, y}, 2, NULL, NULL),
	            round_facts(type_of(m, x), (value_facts){-INFINITY, INFINITY, 0, true}));
}

static void make_compare(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 5, .exact = true});
	sw_type type = type_of(m, x);
	sw_attrs attrs = {.compare = {.direction = (sw_direction)below(
					      m, is_kind(type, KIND(COMPLEX)) ? 2 : 6)}};
	sw_id y = pick_like(m, shape_of(m, x), true);
	if (fact(m, x)->error > 0 || fact(m, y)->error > 0)
		return;
	add_to_pool(m, write_simple_op(m, SW_OP_COMPARE, (sw_id[]){x, y}, 2, &attrs, NULL),
	            (value_facts){0, 1, 0, true});
}

static void make_is_finite(maker *m)
{
	sw_id x = pick_for(m, SW_OP_IS_FINITE, (operand_need){.kinds = KIND(FLOAT), .max_rank = 5});
	if (sw_find_unary(SW_OP_IS_FINITE, type_of(m, x)))
		add_to_pool(m, write_simple_op(m, SW_OP_IS_FINITE, &x, 1, NULL, NULL),
		            (value_facts){0, 1, 0, true});
}

static void make_select(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 5}),
	      y = pick_like(m, shape_of(m, x), false);
	sw_shape shape = shape_of(m, x);
	shape.type = SW_PRED;
	if (chance(m, 25))
		shape = make_shape(m, SW_PRED, NULL, 0);
	sw_id three[] = {pick_like(m, shape, true), x, y};
	add_to_pool(m, write_simple_op(m, SW_OP_SELECT, three, 3, NULL, NULL),
	            facts_either(*fact(m, x), *fact(m, y)));
}

static void make_clamp(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = REALS, .max_rank = 5});
	sw_shape whole = shape_of(m, x), one = make_shape(m, whole.type, NULL, 0);
	sw_id low = pick_like(m, chance(m, 50) ? whole : one, false),
	      high = pick_like(m, chance(m, 50) ? whole : one, false);
	value_facts k = facts_either(*fact(m, x), facts_either(*fact(m, low), *fact(m, high)));
	add_to_pool(m, write_simple_op(m, SW_OP_CLAMP, (sw_id[]){low, x, high}, 3, NULL, NULL), k);
}

static void make_copy(maker *m)
{
	static const sw_extra edges = {
		"domain", "{kind=\"sharding\", entry={replicated}, exit={replicated}}", NULL};
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 5});
	sw_op_spec spec = {.opcode = SW_OP_COPY, .operands = &x, .n_operands = 1};
	if (chance(m, 50)) {
		spec.opcode = SW_OP_DOMAIN;
		spec.extras = &edges;
	}
	add_to_pool(m, write_op(m, &spec), *fact(m, x));
}

static void make_barrier(maker *m)
{
	sw_id in[3];
	uint32_t n = (uint32_t)between(m, 1, 3);
	for (uint32_t i = 0; i < n; i++)
		in[i] = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4});
	sw_op_spec spec = {
		.opcode = SW_OP_OPT_BARRIER, .operands = in, .n_operands = n, .tuple = n > 1};
	sw_id first = write_op(m, &spec);
	for (uint32_t i = 0; i < n; i++)
		add_to_pool(m, first + i, *fact(m, in[i]));
}

static void make_dependency(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4});
	sw_id token = write_simple_op(m, SW_OP_AFTER_ALL, NULL, 0, NULL, NULL);
	add_to_pool(m, write_simple_op(m, SW_OP_ADD_DEPENDENCY, (sw_id[]){x, token}, 2, NULL, NULL),
	            *fact(m, x));
}

static const make_row rows[] = {
	{"smooth", 12, make_smooth},
	{"stepped", 4, make_stepped},
	{"bits", 3, make_bits},
	{"abs-negate", 4, make_abs_negate},
	{"parts", 2, make_parts},
	{"complex", 2, make_complex},
	{"convert", 7, make_convert},
	{"reduce-precision", 1, make_reduce_precision},
	{"stochastic-convert", 1, make_stochastic_convert},
	{"arithmetic", 14, make_arithmetic},
	{"divide", 3, make_divide},
	{"remainder", 1, make_remainder},
	{"power", 2, make_power},
	{"logic", 4, make_logic},
	{"compare", 4, make_compare},
	{"is-finite", 1, make_is_finite},
	{"select", 5, make_select},
	{"clamp", 2, make_clamp},
	{"copy", 1, make_copy},
	{"barrier", 1, make_barrier},
	{"dependency", 1, make_dependency},
};
const make_table makers_elementwise = {rows, SW_COUNT(rows)};
