/*
 * Chance, and the facts of values: in which range they lie, and how far off rounding may be.
 */
#include "generate/maker.h"
#include "interpret/kernel.h"
#include "program/number.h"

#include <math.h>

/* ---- chance ----------------------------------------------------------------------------- */

int64_t below(maker *m, int64_t n)
{
	return sw_rng_below(&m->rng, n);
}

bool chance(maker *m, int percent)
{
	return below(m, 100) < percent;
}

int64_t between(maker *m, int64_t low, int64_t high)
{
	return low + below(m, high - low + 1);
}

void shuffle(maker *m, int64_t *order, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		int32_t j = (int32_t)below(m, i + 1);
		order[i] = order[j];
		order[j] = i;
	}
}

/* Mostly multiples of 2 and 3, so that they can be split; sometimes not. */
int64_t random_size(maker *m)
{
	static const int64_t sizes[] = {2, 2, 3, 4, 4, 6, 6, 8, 8, 12, 12, 16, 24, 1, 5, 7};
	return sizes[below(m, SW_COUNT(sizes))];
}

int64_t elements(sw_shape shape)
{
	return sw_shape_elements(shape);
}

static int64_t max_elements(const maker *m)
{
	return m->options->max_elements ? m->options->max_elements : 1500;
}

bool too_large(const maker *m, sw_shape shape)
{
	return elements(shape) > max_elements(m);
}

sw_shape make_shape(maker *m, sw_type type, const int64_t *dims, int32_t rank)
{
	return sw_build_shape(m->program, type, dims, rank);
}

/* One in three is the shape of an existing value, so that values can be combined. */
sw_shape random_shape(maker *m, sw_type type, int32_t min_rank, int32_t max_rank)
{
	int64_t dims[SW_MAX_RANK], n = 1;
	if (chance(m, 35) && m->scope->pool.len) {
		sw_shape seen =
			shape_of(m, m->scope->pool.data[below(m, (int64_t)m->scope->pool.len)]);
		if (seen.rank >= min_rank && seen.rank <= max_rank)
			return make_shape(m, type, seen.dims, seen.rank);
	}
	int32_t rank = (int32_t)between(m, min_rank, max_rank);
	if (rank > min_rank && chance(m, 40))
		rank = SW_MAX(min_rank, SW_MIN(rank, 2));
	for (int32_t d = 0; d < rank; d++) {
		dims[d] = random_size(m);
		while (n * dims[d] > max_elements(m))
			dims[d] = SW_MAX(dims[d] / 2, 1);
		n *= dims[d];
	}
	return make_shape(m, type, dims, rank);
}

bool is_kind(sw_type type, uint32_t kinds)
{
	return kinds >> sw_type_kind_of(type) & 1;
}

/* A type without -1 or 0 is a type of scales. */
static bool has_numbers(sw_type type)
{
	double stored[2] = {0};
	if (!is_kind(type, KIND(FLOAT)))
		return true;
	sw_element_set(type, stored, 0, -1);
	bool negative = sw_element_get(type, stored, 0) == -1;
	sw_element_set(type, stored, 0, 0);
	return negative && sw_element_get(type, stored, 0) == 0;
}

bool is_computed(sw_type type)
{
	return sw_type_kind_of(type) != SW_KIND_TOKEN && sw_find_binary(SW_OP_ADD, type) &&
	       has_numbers(type);
}

sw_type random_type(maker *m, uint32_t kinds)
{
	static const sw_type usual[] = {SW_F32, SW_F32, SW_F32, SW_F64, SW_S32, SW_BF16};
	if (chance(m, 60) && is_kind(m->main_type, kinds))
		return m->main_type;
	for (;;) {
		sw_type type = chance(m, 40) ? usual[below(m, SW_COUNT(usual))]
		                             : (sw_type)below(m, SW_TYPE_COUNT);
		if (is_kind(type, kinds) && is_computed(type))
			return type;
	}
}

/* ---- facts of values -------------------------------------------------------------------- */

/* Count the bits of the significand, the leading one included, by trying numbers, so that there is
 * no second table of float types. */
static int digits_of(sw_type type)
{
	double stored[2];
	sw_type part = type == SW_C64 ? SW_F32 : type == SW_C128 ? SW_F64 : type;
	int digits = 1;
	if (part == SW_F32 || part == SW_F64)
		return part == SW_F32 ? 24 : 53;
	for (;; digits++) {
		double odd = 1 + ldexp(1, -digits);
		sw_element_set(part, stored, 0, odd);
		if (sw_element_get(part, stored, 0) != odd)
			return digits;
	}
}

bool generate_can_compute(sw_opcode opcode)
{
	return opcode == SW_OP_PARAMETER || opcode == SW_OP_CONSTANT ||
	       (sw_kernels[opcode].run && opcode != SW_OP_TERMS);
}

double unit_of(sw_type type)
{
	return is_kind(type, INEXACT) ? ldexp(1, -digits_of(type)) : 0;
}

double integer_end(sw_type type, bool low)
{
	if (type == SW_PRED)
		return low ? 0 : 1;
	bool is_signed = is_kind(type, KIND(SIGNED));
	if (low)
		return is_signed ? -ldexp(1, sw_type_bits(type) - 1) : 0;
	return ldexp(1, sw_type_bits(type) - is_signed) - 1;
}

double largest_integer(sw_type type)
{
	return is_kind(type, INEXACT) ? ldexp(1, digits_of(type)) : integer_end(type, false);
}

double size_of(value_facts k)
{
	return fmax(fabs(k.low), fabs(k.high));
}

value_facts round_facts(sw_type type, value_facts k)
{
	if (!is_kind(type, INEXACT)) {
		if (k.low < integer_end(type, true) || k.high > integer_end(type, false))
			k = (value_facts){integer_end(type, true), integer_end(type, false), 0,
			                  true};
		return k;
	}
	if (k.error == 0 && k.integral && size_of(k) <= largest_integer(type))
		return k;
	k.integral = false;
	k.error = 2 * k.error + 6 * unit_of(type) * size_of(k);
	return k;
}

value_facts facts_add(value_facts a, value_facts b)
{
	return (value_facts){a.low + b.low, a.high + b.high, a.error + b.error,
	                     a.integral && b.integral};
}

value_facts facts_multiply(value_facts a, value_facts b)
{
	double p[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
	return (value_facts){fmin(fmin(p[0], p[1]), fmin(p[2], p[3])),
	                     fmax(fmax(p[0], p[1]), fmax(p[2], p[3])),
	                     a.error * size_of(b) + b.error * size_of(a), a.integral && b.integral};
}

value_facts round_chain(sw_type type, value_facts k, double terms)
{
	value_facts rounded = round_facts(type, k);
	if (rounded.error > 0)
		rounded.error += terms * unit_of(type) * size_of(k);
	return rounded;
}

value_facts round_sum(sw_type type, value_facts k, double terms)
{
	bool widened = is_kind(type, KIND(FLOAT)) && type != SW_F64;
	return widened ? round_facts(type, k) : round_chain(type, k, terms);
}

/* The bounds hold for partial sums, too. */
value_facts facts_times(value_facts k, double n)
{
	return (value_facts){fmin(k.low, 0) * n, fmax(k.high, 0) * n, k.error * n, k.integral};
}

value_facts facts_either(value_facts a, value_facts b)
{
	return (value_facts){fmin(a.low, b.low), fmax(a.high, b.high), fmax(a.error, b.error),
	                     a.integral && b.integral};
}

value_facts facts_exactly(double value)
{
	return (value_facts){value, value, 0, value == floor(value)};
}
