/* Ops that combine elements along dimensions: reductions, windows, sorts, maps, batch
 * normalisation. */
#include "generate/maker.h"

#include <math.h>

#include "interpret/kernel.h"

/* ---- computations of scalars ------------------------------------------------------------ */

static value_facts anything(void)
{
	return (value_facts){-INFINITY, INFINITY, 0, false};
}

static sw_id scalar_parameter(maker *m, sw_type type)
{
	sw_shape shape = {.type = type};
	value_facts k = anything();
	return scope_parameter(m, &shape, &k, 1, false);
}

static sw_id compared(maker *m, sw_direction direction, sw_id x, sw_id y)
{
	sw_attrs attrs = {.compare = {.direction = direction}};
	return write_simple_op(m, SW_OP_COMPARE, (sw_id[]){x, y}, 2, &attrs, NULL);
}

/* A comparator (x, y) -> x direction y, of the first of `n` operands with these types. */
static int32_t comparator(maker *m, sw_direction direction, const sw_type *types, uint32_t n)
{
	scope s;
	sw_id first[2] = {0};
	scope_open(m, &s, "compare");
	for (uint32_t i = 0; i < 2 * n; i++) {
		sw_id id = scalar_parameter(m, types[i / 2]);
		if (i < 2)
			first[i] = id;
	}
	sw_id result = compared(m, direction, first[0], first[1]);
	return scope_close(m, &s, &result, 1, false);
}

/* (value, index, value, index) -> the larger value; of equal ones the one with the smaller
 * index. */
static int32_t arg_max(maker *m, sw_type type, sw_type index)
{
	scope s;
	scope_open(m, &s, "argmax");
	sw_id v = scalar_parameter(m, type), i = scalar_parameter(m, index),
	      w = scalar_parameter(m, type), j = scalar_parameter(m, index);
	sw_id more = compared(m, SW_GT, v, w), equal = compared(m, SW_EQ, v, w),
	      less = compared(m, SW_LT, i, j);
	sw_id tie = write_simple_op(m, SW_OP_AND, (sw_id[]){equal, less}, 2, NULL, NULL);
	sw_id first = write_simple_op(m, SW_OP_OR, (sw_id[]){more, tie}, 2, NULL, NULL);
	sw_id out[] = {write_simple_op(m, SW_OP_SELECT, (sw_id[]){first, v, w}, 3, NULL, NULL),
	               write_simple_op(m, SW_OP_SELECT, (sw_id[]){first, i, j}, 3, NULL, NULL)};
	return scope_close(m, &s, out, 2, true);
}

/* ---- reduce ----------------------------------------------------------------------------- */

static sw_monoid random_monoid(maker *m, sw_type type)
{
	static const sw_monoid all[] = {SW_MONOID_SUM, SW_MONOID_SUM,     SW_MONOID_MAX,
	                                SW_MONOID_MIN, SW_MONOID_PRODUCT, SW_MONOID_AND,
	                                SW_MONOID_OR};
	if (is_kind(type, KIND(COMPLEX)))
		return SW_MONOID_SUM;
	if (is_kind(type, KIND(PRED)))
		return all[2 + below(m, 2) + 3 * below(m, 2)];
	return all[below(m, is_kind(type, INTEGERS) ? 7 : 5)];
}

static value_facts combined(sw_type type, sw_monoid monoid, value_facts k, value_facts init,
                            double terms)
{
	value_facts every = facts_either(k, init);
	if (type == SW_PRED)
		return (value_facts){0, 1, 0, true};
	if (monoid == SW_MONOID_SUM)
		return round_sum(type, facts_add(facts_times(k, terms), init), terms);
	if (monoid == SW_MONOID_PRODUCT) {
		double size = pow(fmax(size_of(k), 1), terms) * fmax(size_of(init), 1);
		double error = (every.error * terms) * size;
		return round_facts(type, (value_facts){-size, size, error, every.integral});
	}
	if (monoid == SW_MONOID_AND || monoid == SW_MONOID_OR)
		return round_facts(type, anything());
	return every;
}

static int32_t some_dims(maker *m, int32_t rank, int64_t *dims, double *terms, sw_shape shape)
{
	int32_t n = 0;
	*terms = 1;
	for (int32_t d = 0; d < rank; d++)
		if (chance(m, 50) || (n == 0 && d + 1 == rank)) {
			dims[n++] = d;
			*terms *= (double)shape.dims[d];
		}
	return n;
}

/* The neutral element, or any other: the init value counts once. */
static sw_id some_init(maker *m, sw_type type, sw_monoid monoid, value_facts k)
{
	bool neutral = chance(m, 60) || m->options->portable;
	if (neutral && is_kind(type, KIND(COMPLEX)) && m->options->portable)
		return scalar(m, type, monoid == SW_MONOID_PRODUCT);
	if (neutral && !is_kind(type, KIND(COMPLEX)))
		return set_facts(m,
		                 sw_emit_identity(m->program, m->scope->computation, type, monoid),
		                 monoid == SW_MONOID_SUM || monoid == SW_MONOID_PRODUCT
		                         ? facts_exactly(monoid == SW_MONOID_PRODUCT)
		                         : k);
	return pick_like(m, make_shape(m, type, NULL, 0), false);
}

static void make_reduce(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .min_rank = 1, .max_rank = 5});
	sw_shape shape = shape_of(m, x);
	sw_monoid monoid = random_monoid(m, shape.type);
	int64_t dims[SW_MAX_RANK];
	double terms;
	int32_t n = some_dims(m, shape.rank, dims, &terms, shape);
	sw_id init = some_init(m, shape.type, monoid, *fact(m, x));
	sw_attrs attrs = {.dims.dims = ints_of(m, dims, n)};
	value_facts k = combined(shape.type, monoid, *fact(m, x), *fact(m, init), terms);
	add_to_pool(m,
	            write_calling_op(m, SW_OP_REDUCE, (sw_id[]){x, init}, 2, &attrs,
	                             reducer(m, monoid, shape.type)),
	            k);
}

/* The largest element and its index. */
static void make_arg_max(maker *m)
{
	sw_id x = pick(m,
	               (operand_need){.kinds = REALS, .min_rank = 1, .max_rank = 4, .exact = true});
	if (fact(m, x)->error > 0)
		return;
	sw_shape shape = shape_of(m, x), places = shape;
	places.type = SW_S32;
	int64_t dim = below(m, shape.rank);
	sw_id where = sw_emit_iota(m->program, m->scope->computation, places, dim);
	sw_id low = sw_emit_identity(m->program, m->scope->computation, shape.type, SW_MONOID_MAX),
	      none = sw_emit_scalar(m->program, m->scope->computation, SW_S32, 1000000);
	sw_attrs attrs = {.dims.dims = ints_of(m, &dim, 1)};
	sw_id first = write_calling_op(m, SW_OP_REDUCE, (sw_id[]){x, where, low, none}, 4, &attrs,
	                               arg_max(m, shape.type, SW_S32));
	add_to_pool(m, first, *fact(m, x));
	add_to_pool(m, first + 1, (value_facts){0, (double)shape.dims[dim], 0, true});
}

/* ---- windows ---------------------------------------------------------------------------- */

/* Draw all fields of a window dimension whose result is not empty. `plain`: no dilation, as
 * select-and-scatter requires. */
static bool window_dim(maker *m, int64_t size, bool plain, sw_window_dim *w)
{
	*w = (sw_window_dim){.size = 1, .stride = 1, .lhs_dilate = 1, .rhs_dilate = 1};
	if (chance(m, 50))
		return true;
	w->size = SW_MIN(between(m, 1, 4), size);
	w->stride = chance(m, 40) ? between(m, 2, 3) : 1;
	w->rhs_dilate = !plain && chance(m, 25) ? 2 : 1;
	w->lhs_dilate = !plain && chance(m, 20) ? 2 : 1;
	int64_t reach = (w->size - 1) * w->rhs_dilate + 1, whole = (size - 1) * w->lhs_dilate + 1;
	if (chance(m, 20)) { /* a running sum */
		w->size = size;
		w->stride = w->rhs_dilate = w->lhs_dilate = 1;
		w->pad_low = size - 1;
		return true;
	}
	w->pad_low = between(m, 0, reach - 1);
	w->pad_high = between(m, 0, reach - 1);
	if (chance(m, 40)) { /* tiles, or the same size again */
		w->stride = chance(m, 50) && whole % reach == 0 ? reach : 1;
		w->pad_low = w->stride > 1 ? 0 : (reach - 1) / 2;
		w->pad_high = w->stride > 1 ? 0 : reach - 1 - w->pad_low;
	}
	if (!plain && chance(m, 10) && size > 3)
		w->pad_low = -1;
	return whole + w->pad_low + w->pad_high >= reach;
}

static bool random_window(maker *m, sw_shape shape, bool plain, sw_window *window, double *terms)
{
	sw_window_dim *dims = SW_NEW_N(&m->program->arena, sw_window_dim, shape.rank);
	*terms = 1;
	for (int32_t d = 0; d < shape.rank; d++) {
		if (!window_dim(m, shape.dims[d], plain, &dims[d]))
			return false;
		*terms *= (double)dims[d].size;
	}
	*window = (sw_window){shape.rank, dims};
	return true;
}

static void make_reduce_window(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .min_rank = 1, .max_rank = 4});
	sw_shape shape = shape_of(m, x);
	sw_monoid monoid = random_monoid(m, shape.type);
	sw_attrs attrs = {.window = {{0}}};
	double terms;
	sw_type type = shape.type;
	if (!random_window(m, shape, false, &attrs.window.window, &terms))
		return;
	bool zero = chance(m, 50) && (monoid == SW_MONOID_SUM || monoid == SW_MONOID_OR);
	sw_id init = m->options->portable ? some_init(m, type, monoid, *fact(m, x))
	             : zero               ? scalar(m, type, 0)
	                                  : pick_like(m, make_shape(m, type, NULL, 0), false);
	value_facts k = combined(type, monoid, *fact(m, x), *fact(m, init), terms);
	sw_id y = write_calling_op(m, SW_OP_REDUCE_WINDOW, (sw_id[]){x, init}, 2, &attrs,
	                           reducer(m, monoid, type));
	add_to_pool(m, y, k);
}

/* The gradient of a maximum over windows. */
static void make_select_and_scatter(maker *m)
{
	sw_id x = pick(m,
	               (operand_need){.kinds = REALS, .min_rank = 1, .max_rank = 4, .exact = true});
	sw_shape shape = shape_of(m, x), source = shape;
	sw_attrs attrs = {.window = {{0}}};
	int64_t dims[SW_MAX_RANK];
	double terms;
	if (fact(m, x)->error > 0 || !random_window(m, shape, true, &attrs.window.window, &terms))
		return;
	int32_t wide = 0;
	for (int32_t d = 0; d < shape.rank; d++) {
		sw_window_dim w = attrs.window.window.dims[d];
		wide += w.size > 1;
		dims[d] = (shape.dims[d] + w.pad_low + w.pad_high - w.size) / w.stride + 1;
	}
	if (m->options->portable && wide > 1)
		return;
	source = make_shape(m, shape.type, dims, shape.rank);
	sw_monoid monoid = chance(m, 70) ? SW_MONOID_SUM : SW_MONOID_MAX;
	sw_id three[] = {x, pick_like(m, source, false),
	                 pick_like(m, make_shape(m, shape.type, NULL, 0), false)};
	int32_t called[] = {comparator(m, chance(m, 50) ? SW_GE : SW_LE, &shape.type, 1),
	                    reducer(m, monoid, shape.type)};
	sw_op_spec spec = {.opcode = SW_OP_SELECT_AND_SCATTER,
	                   .operands = three,
	                   .n_operands = 3,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs};
	value_facts k = combined(shape.type, monoid, *fact(m, three[1]), *fact(m, three[2]), terms);
	/* terms are added one after another, each sum rounded */
	if (monoid == SW_MONOID_SUM)
		k = round_chain(shape.type, k, terms);
	add_to_pool(m, write_op(m, &spec), k);
}

/* ---- order ------------------------------------------------------------------------------ */

/* Keys, and values that are sorted with them. */
static void make_sort(maker *m)
{
	sw_id in[3] = {pick(
		m, (operand_need){.kinds = REALS, .min_rank = 1, .max_rank = 4, .exact = true})};
	sw_shape shape = shape_of(m, in[0]);
	sw_type types[3] = {shape.type};
	uint32_t n = (uint32_t)between(m, 1, 3);
	if (fact(m, in[0])->error > 0)
		return;
	for (uint32_t i = 1; i < n; i++) {
		types[i] = shape.type = random_type(m, ANY_KIND);
		in[i] = pick_like(m, shape, false);
	}
	int32_t called = comparator(m, chance(m, 50) ? SW_LT : SW_GT, types, n);
	sw_attrs attrs = {.sort = {.dimension = below(m, shape.rank), .stable = true}};
	sw_id first = write_calling_op(m, SW_OP_SORT, in, n, &attrs, called);
	for (uint32_t i = 0; i < n; i++)
		add_to_pool(m, first + i, *fact(m, in[i]));
}

static void make_topk(maker *m)
{
	sw_id x = pick(m,
	               (operand_need){.kinds = REALS, .min_rank = 1, .max_rank = 4, .exact = true});
	sw_shape shape = shape_of(m, x);
	if (fact(m, x)->error > 0)
		return;
	/* zeros of both signs would be in an undefined order */
	if (is_kind(shape.type, KIND(FLOAT))) {
		value_facts k = *fact(m, x);
		x = set_facts(m, binary(m, SW_OP_ADD, x, constant_like(m, shape, 0)), k);
	}
	int64_t last = shape.dims[shape.rank - 1];
	sw_attrs attrs = {.topk = {.k = between(m, 1, last), .largest = chance(m, 70)}};
	sw_op_spec spec = {.opcode = SW_OP_TOPK,
	                   .operands = &x,
	                   .n_operands = 1,
	                   .attrs = &attrs,
	                   .tuple = true};
	sw_id first = write_op(m, &spec);
	add_to_pool(m, first, *fact(m, x));
	add_to_pool(m, first + 1, (value_facts){0, (double)last, 0, true});
}

/* ---- map -------------------------------------------------------------------------------- */

/* x -> max(x, y) - x, of scalars. */
static void make_map(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = INTEGERS | KIND(FLOAT), .max_rank = 4});
	sw_shape shape = shape_of(m, x);
	sw_id y = pick_like(m, shape, false);
	scope s;
	scope_open(m, &s, "mapped");
	sw_id a = scalar_parameter(m, shape.type), b = scalar_parameter(m, shape.type);
	sw_id more = write_simple_op(m, SW_OP_MAXIMUM, (sw_id[]){a, b}, 2, NULL, NULL);
	sw_id result = write_simple_op(m, SW_OP_SUBTRACT, (sw_id[]){more, a}, 2, NULL, NULL);
	int32_t called = scope_close(m, &s, &result, 1, false);
	int64_t dims[SW_MAX_RANK];
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = d;
	sw_attrs attrs = {.dims.dims = ints_of(m, dims, shape.rank)};
	value_facts k = facts_either(*fact(m, x), *fact(m, y));
	k = round_facts(shape.type, (value_facts){0, k.high - k.low, 2 * k.error, k.integral});
	add_to_pool(m, write_calling_op(m, SW_OP_MAP, (sw_id[]){x, y}, 2, &attrs, called), k);
}

/* ---- batch normalisation ---------------------------------------------------------------- */

/* A tensor, and vectors over its feature dimension. Variances stay away from zero, also by a large
 * epsilon. */
typedef struct normalised {
	sw_attrs attrs;
	sw_shape shape, vector;
	sw_id x, scale, offset, variance;
	double error, unit, terms; /* the largest error of all; elements per feature */
} normalised;

static sw_id tame_vector(maker *m, normalised *b, double low)
{
	sw_id v = in_box(m, pick_like(m, b->vector, false), low, 2);
	b->error = fmax(b->error, fact(m, v)->error);
	return v;
}

static normalised pick_normalised(maker *m)
{
	normalised b = {
		.x = pick(m, (operand_need){.kinds = KIND(FLOAT), .min_rank = 2, .max_rank = 4})};
	b.shape = shape_of(m, b.x);
	int64_t feature = below(m, b.shape.rank);
	b.attrs.batch_norm.epsilon = 0.5;
	b.attrs.batch_norm.feature = feature;
	b.vector = make_shape(m, b.shape.type, &b.shape.dims[feature], 1);
	b.terms = (double)(elements(b.shape) / SW_MAX(b.shape.dims[feature], 1));
	/* the unit of means: sums are rounded as they grow */
	b.unit = unit_of(b.shape.type) * fmax(1, b.terms / 8);
	b.x = in_box(m, b.x, -2, 2);
	b.error = fact(m, b.x)->error;
	b.scale = tame_vector(m, &b, -2);
	b.offset = tame_vector(m, &b, -2);
	b.variance = tame_vector(m, &b, 0.5);
	return b;
}

static sw_id put_normalised(maker *m, const normalised *b, sw_opcode opcode, const sw_id *operands,
                            uint32_t n)
{
	sw_op_spec spec = {.opcode = opcode,
	                   .operands = operands,
	                   .n_operands = n,
	                   .attrs = &b->attrs,
	                   .tuple = opcode != SW_OP_BATCH_NORM_INFERENCE};
	return write_op(m, &spec);
}

static value_facts normal(const normalised *b)
{
	return (value_facts){-24, 24, 64 * b->error + 256 * b->unit, false};
}

static void make_batch_norm(maker *m)
{
	normalised b = pick_normalised(m);
	if (chance(m, 50)) {
		sw_id five[] = {b.x, b.scale, b.offset, tame_vector(m, &b, -2), b.variance};
		add_to_pool(m, put_normalised(m, &b, SW_OP_BATCH_NORM_INFERENCE, five, 5),
		            normal(&b));
		return;
	}
	sw_id first = put_normalised(m, &b, SW_OP_BATCH_NORM_TRAINING,
	                             (sw_id[]){b.x, b.scale, b.offset}, 3);
	add_to_pool(m, first, normal(&b));
	add_to_pool(m, first + 1, (value_facts){-2, 2, 4 * b.error + 16 * b.unit, false});
	add_to_pool(m, first + 2, (value_facts){0, 4, 16 * b.error + 64 * b.unit, false});
}

static void make_batch_norm_grad(maker *m)
{
	normalised b = pick_normalised(m);
	sw_id out = in_box(m, pick_like(m, b.shape, false), -2, 2);
	double error = fmax(b.error, fact(m, out)->error), n = b.terms;
	sw_id five[] = {b.x, b.scale, b.offset, b.variance, out};
	sw_id first = put_normalised(m, &b, SW_OP_BATCH_NORM_GRAD, five, 5);
	add_to_pool(m, first, (value_facts){-100, 100, 256 * error + 1024 * b.unit, false});
	for (uint32_t i = 1; i < 3; i++)
		add_to_pool(m, first + i,
		            (value_facts){-16 * n, 16 * n, n * (32 * error + 64 * b.unit), false});
}

static const make_row rows[] = {
	{"reduce", 12, make_reduce},
	{"argmax", 3, make_arg_max},
	{"reduce-window", 6, make_reduce_window},
	{"select-and-scatter", 3, make_select_and_scatter},
	{"sort", 3, make_sort},
	{"topk", 2, make_topk},
	{"map", 2, make_map},
	{"batch-norm", 2, make_batch_norm},
	{"batch-norm-grad", 1, make_batch_norm_grad},
};
const make_table makers_reduce = {rows, SW_COUNT(rows)};
