/*
 * Pairs of an output and a window position that meet an input element, in closed form.
 *
 * Along one dimension, output o and position k meet element i where o s + k r - p = i d: s is the
 * stride, r the window's dilation, p the low padding, d the input's dilation. The solutions are a
 * plane lattice: k = k0 + step t, o = o0 + u t + (d / g) j, i = i0 + v t + (s / g) j with g =
 * gcd(s, d). For each t the bounds of o and i leave an interval of j between two lines each; which
 * line of the two bounds it changes once along t. So the count is a few sums of floor((a t + b) /
 * m), each by Euclid's algorithm: O(log) in all sizes, which come from a file and may be anything.
 */
#include "program/internal.h"

/* Products of two sizes; sums of them wrap, and the result, which fits, is right. */
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

static wide floor_div(wide a, wide b)
{
	return a / b - (a % b < 0);
}

static wide ceil_div(wide a, wide b)
{
	return -floor_div(-a, b);
}

static wide modulo(wide a, wide b)
{
	return a - b * floor_div(a, b);
}

static wide smaller(wide a, wide b)
{
	return a < b ? a : b;
}

static wide larger(wide a, wide b)
{
	return a > b ? a : b;
}

/* Return x with a x = 1 modulo m; a and m have no common factor. */
static wide inverse(wide a, wide m)
{
	wide x = 1, next_x = 0, r = modulo(a, m), next_r = m;
	while (next_r) {
		wide q = r / next_r, old_r = r, old_x = x;
		r = next_r;
		next_r = old_r - q * next_r;
		x = next_x;
		next_x = old_x - q * next_x;
	}
	return modulo(x, m);
}

/* Return the sum of floor((a t + b) / m) for t in [0, n); m > 0. */
static uwide floor_sum(wide n, wide m, wide a, wide b)
{
	uwide sum = 0;
	while (n > 0) {
		uwide pairs =
			n % 2 ? (uwide)((n - 1) / 2) * (uwide)n : (uwide)(n / 2) * (uwide)(n - 1);
		sum += (uwide)floor_div(a, m) * pairs + (uwide)floor_div(b, m) * (uwide)n;
		a = modulo(a, m);
		b = modulo(b, m);
		/* count the points below the line by columns of the other axis */
		wide top = a * n + b;
		n = top / m;
		b = top % m;
		wide rest = m;
		m = a;
		a = rest;
	}
	return sum;
}

/* value(t) = a t + b, to be divided by m > 0 */
typedef struct border {
	wide a, b, m;
} border;

/* Return the sum of floor(upper) - ceil(lower) + 1 for t in [from, to), where it is not negative.
 */
static uwide count_between(border upper, border lower, wide from, wide to)
{
	wide n = to - from;
	if (n <= 0)
		return 0;
	return floor_sum(n, upper.m, upper.a, upper.a * from + upper.b) +
	       floor_sum(n, lower.m, -lower.a, -(lower.a * from + lower.b)) + (uwide)n;
}

/* The lattice: of each of o and i, its start, its steps along t and j, and how many there are. */
typedef struct lattice {
	wide o, o_t, o_j, outputs;
	wide i, i_t, i_j, inputs;
	wide columns; /* t in [0, columns) */
	wide slope;   /* i_t o_j - o_t i_j > 0 */
} lattice;

static border first_j(wide at, wide along_t, wide along_j)
{
	return (border){-along_t, -at, along_j};
}

static border last_j(wide at, wide along_t, wide along_j, wide n)
{
	return (border){-along_t, n - 1 - at, along_j};
}

/* Below column `bend` the lower bound is that of i and from there on that of o; the upper bound is
 * that of o up to column `turn`, and then that of i. */
static uwide count_lattice(const lattice *l)
{
	border o_first = first_j(l->o, l->o_t, l->o_j), i_first = first_j(l->i, l->i_t, l->i_j);
	border o_last = last_j(l->o, l->o_t, l->o_j, l->outputs);
	border i_last = last_j(l->i, l->i_t, l->i_j, l->inputs);
	wide n = l->columns;
	wide bend = ceil_div(l->o * l->i_j - l->i * l->o_j, l->slope);
	wide turn = floor_div(i_last.b * l->o_j - o_last.b * l->i_j, l->slope) + 1;
	/* where the interval is not empty */
	wide begin = ceil_div(-(o_last.b * l->i_j + l->i * l->o_j), l->slope);
	wide end = floor_div(i_last.b * l->o_j + l->o * l->i_j, l->slope) + 1;
	bend = smaller(larger(bend, 0), n);
	turn = smaller(larger(turn, 0), n);
	begin = larger(begin, 0);
	end = smaller(end, n);
	return count_between(o_last, i_first, begin, smaller(bend, turn)) +
	       count_between(o_last, o_first, bend, turn) +
	       count_between(i_last, i_first, turn, bend) +
	       count_between(i_last, o_first, larger(bend, turn), end);
}

double sw_window_hits(const sw_window_dim *w, int64_t inputs, int64_t outputs)
{
	int64_t s = w->stride, r = w->rhs_dilate, d = w->lhs_dilate;
	int64_t g = sw_gcd(s, d), common = sw_gcd(r, g), step = g / common;
	wide pad = w->pad_low;
	if (inputs <= 0 || outputs <= 0 || pad % common != 0)
		return 0;
	wide first = modulo(pad / common * inverse(r / common, step), step);
	if (first >= w->size)
		return 0;
	wide turn = inverse(s / g, d / g);
	lattice l = {.o_j = d / g, .i_j = s / g, .outputs = outputs, .inputs = inputs};
	l.columns = (w->size - 1 - first) / step + 1;
	l.o = modulo(modulo((pad - r * first) / g, l.o_j) * turn, l.o_j);
	l.o_t = modulo(modulo(-(wide)r / common, l.o_j) * turn, l.o_j);
	l.i = (s * l.o + r * first - pad) / d;
	l.i_t = (s * l.o_t + (wide)r * step) / d;
	l.slope = (wide)r / common;
	return (double)count_lattice(&l);
}
