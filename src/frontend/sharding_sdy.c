/*
 * Shardings of Shardy, in the words of HLO text.
 *
 * A mesh `<["x"=2, "y"=4]>` numbers its devices with the last axis fastest. A sharding names the
 * axes that cut each dimension, major first: `[{"y"}, {}]`, or parts of axes: `"y":(2)2` is the
 * digit of size 2 of y below a digit of size 2. The axes are cut into factors where such parts
 * begin and end; those that cut a dimension come first in the iota form, and the others replicate.
 */
#include "frontend/sharding.h"

#include <string.h>

typedef struct axis {
	sw_span name;
	int64_t size;
	int32_t n;                   /* factors */
	int64_t factor[SW_MAX_RANK]; /* major first */
} axis;

/* A part of an axis that cuts a dimension: the digit of `size` below one of `before`. */
typedef struct axis_part {
	int32_t axis, dim;
	int64_t before, size;
} axis_part;

typedef struct reading {
	sw_lexer lexer;
	axis axes[SW_MAX_RANK];
	axis_part parts[SW_MAX_RANK];
	int32_t n_axes, n_parts, rank;
	uint32_t open; /* dimensions */
} reading;

static bool same(sw_span a, sw_span b)
{
	return a.length == b.length && memcmp(a.start, b.start, a.length) == 0;
}

/* ---- the mesh --------------------------------------------------------------------------- */

static bool read_axis(reading *r)
{
	axis *a = &r->axes[r->n_axes];
	if (r->n_axes == SW_MAX_RANK || sw_lex_string(&r->lexer, &a->name) != SW_OK ||
	    !sw_lex_take(&r->lexer, '=') || sw_lex_int(&r->lexer, &a->size) != SW_OK ||
	    a->size < 1 || a->size > SW_SHARDING_DEVICES)
		return false;
	a->n = 1;
	a->factor[0] = a->size;
	r->n_axes++;
	return true;
}

/* Read `<["x"=2, "y"=4]>`; a mesh that lists its devices in another order is not understood. */
static bool read_mesh(reading *r, sw_span mesh, sw_error *err)
{
	int64_t all = 1;
	const char *open = mesh.length ? memchr(mesh.start, '<', mesh.length) : NULL;
	if (!open)
		return false;
	sw_lex_init(&r->lexer, open + 1, mesh.length - (size_t)(open + 1 - mesh.start), "", err);
	if (!sw_lex_take(&r->lexer, '['))
		return false;
	if (!sw_lex_take(&r->lexer, ']')) {
		do {
			if (!read_axis(r) || !sw_mul_i64(all, r->axes[r->n_axes - 1].size, &all) ||
			    all > SW_SHARDING_DEVICES)
				return false;
		} while (sw_lex_take(&r->lexer, ','));
		if (!sw_lex_take(&r->lexer, ']'))
			return false;
	}
	return sw_lex_take(&r->lexer, '>');
}

/* ---- the dimensions --------------------------------------------------------------------- */

/* Read `"x"` or `"x":(2)4`. */
static bool read_part(reading *r)
{
	axis_part *part = &r->parts[r->n_parts];
	sw_span name;
	if (r->n_parts == SW_MAX_RANK || sw_lex_string(&r->lexer, &name) != SW_OK)
		return false;
	*part = (axis_part){.dim = r->rank, .before = 1};
	while (part->axis < r->n_axes && !same(r->axes[part->axis].name, name))
		part->axis++;
	if (part->axis == r->n_axes)
		return false;
	part->size = r->axes[part->axis].size;
	if (sw_lex_take(&r->lexer, ':') &&
	    (!sw_lex_take(&r->lexer, '(') || sw_lex_int(&r->lexer, &part->before) != SW_OK ||
	     !sw_lex_take(&r->lexer, ')') || sw_lex_int(&r->lexer, &part->size) != SW_OK))
		return false;
	r->n_parts++;
	return part->before > 0 && part->size > 0 && part->before <= SW_SHARDING_DEVICES &&
	       part->size <= SW_SHARDING_DEVICES &&
	       r->axes[part->axis].size % (part->before * part->size) == 0;
}

/* Read `{"x", "y"}p1`; one that ends with `?` is open. */
static bool read_dimension(reading *r)
{
	if (!sw_lex_take(&r->lexer, '{') || r->rank >= SW_MAX_RANK)
		return false;
	if (!sw_lex_take(&r->lexer, '}')) {
		do {
			if (sw_lex_take(&r->lexer, '?')) {
				r->open |= 1u << r->rank;
				break;
			}
			if (!read_part(r))
				return false;
		} while (sw_lex_take(&r->lexer, ','));
		if (!sw_lex_take(&r->lexer, '}'))
			return false;
	}
	sw_lex_word(&r->lexer); /* its priority, which only propagation needs */
	r->rank++;
	return r->rank <= SW_MAX_RANK;
}

/* Read `[{"x"}, {}], replicated={"y"}>`; `unreduced` is a partial sum, which is not understood. */
static bool read_dimensions(reading *r)
{
	sw_span axes;
	if (!sw_lex_take(&r->lexer, '['))
		return false;
	if (!sw_lex_take(&r->lexer, ']')) {
		do {
			if (!read_dimension(r))
				return false;
		} while (sw_lex_take(&r->lexer, ','));
		if (!sw_lex_take(&r->lexer, ']'))
			return false;
	}
	if (sw_lex_take(&r->lexer, ',') && (!sw_lex_take_text(&r->lexer, "replicated=") ||
	                                    sw_lex_balanced(&r->lexer, &axes) != SW_OK))
		return false;
	return sw_lex_take(&r->lexer, '>');
}

/* ---- factors ---------------------------------------------------------------------------- */

/* Let a factor of the axis end where the product of its major factors is `at`. */
static bool cut_axis(axis *a, int64_t at)
{
	int64_t before = 1;
	for (int32_t i = 0; i < a->n && before < at; before *= a->factor[i++]) {
		if (before * a->factor[i] <= at)
			continue;
		if (a->n == SW_MAX_RANK || at % before || a->factor[i] % (at / before))
			return false;
		memmove(&a->factor[i + 1], &a->factor[i], (size_t)(a->n - i) * sizeof(*a->factor));
		a->factor[i] = at / before;
		a->factor[i + 1] /= at / before;
		a->n++;
		return true;
	}
	return before == at;
}

static bool cut_axes(reading *r)
{
	for (int32_t p = 0; p < r->n_parts; p++) {
		const axis_part *part = &r->parts[p];
		axis *a = &r->axes[part->axis];
		if (!cut_axis(a, part->before) || !cut_axis(a, part->before * part->size))
			return false;
	}
	return true;
}

/* ---- the words of HLO text -------------------------------------------------------------- */

static int32_t first_factor(const reading *r, int32_t until)
{
	int32_t n = 0;
	for (int32_t a = 0; a < until; a++)
		n += r->axes[a].n;
	return n;
}

/* Append to `order` the factors of a part. Return false if one is in use already. */
static bool take_part(const reading *r, const axis_part *part, uint64_t *used, sw_text *order)
{
	const axis *a = &r->axes[part->axis];
	int64_t before = 1;
	for (int32_t i = 0; i < a->n; before *= a->factor[i++]) {
		uint64_t bit = (uint64_t)1 << (first_factor(r, part->axis) + i);
		if (before < part->before || before >= part->before * part->size)
			continue;
		if (*used & bit)
			return false;
		*used |= bit;
		sw_text_addf(order, "%s%d", order->len ? "," : "", first_factor(r, part->axis) + i);
	}
	return true;
}

/* Append the factors that no dimension takes. Return their product. */
static int64_t take_rest(const reading *r, uint64_t used, sw_text *order)
{
	int64_t rest = 1;
	for (int32_t a = 0, k = 0; a < r->n_axes; a++)
		for (int32_t i = 0; i < r->axes[a].n; i++, k++) {
			if (used >> k & 1)
				continue;
			sw_text_addf(order, "%s%d", order->len ? "," : "", k);
			rest *= r->axes[a].factor[i];
		}
	return rest;
}

static void write(const reading *r, int64_t rest, const char *order, sw_text *text)
{
	sw_text_add(text, "{devices=[");
	for (int32_t d = 0; d < r->rank; d++) {
		int64_t tiles = 1;
		for (int32_t p = 0; p < r->n_parts; p++)
			tiles *= r->parts[p].dim == d ? r->parts[p].size : 1;
		sw_text_addf(text, "%s%lld", d ? "," : "", (long long)tiles);
	}
	sw_text_addf(text, rest > 1 ? ",%lld]<=[" : "]<=[", (long long)rest);
	for (int32_t a = 0, k = 0; a < r->n_axes; a++)
		for (int32_t i = 0; i < r->axes[a].n; i++, k++)
			sw_text_addf(text, "%s%lld", k ? "," : "", (long long)r->axes[a].factor[i]);
	sw_text_addf(text, "]T(%s)%s", order, rest > 1 ? " last_tile_dim_replicate" : "");
	for (int32_t d = 0, n = 0; d < r->rank; d++)
		if (r->open >> d & 1)
			sw_text_addf(text, "%s%d", n++ ? "," : " unspecified_dims=[", d);
	sw_text_add(text, r->open ? "]}" : "}");
}

/* Write the sharding, or return false where a factor is used twice or there are too many. */
static bool write_tiles(reading *r, sw_text *text)
{
	sw_text order = {0};
	uint64_t used = 0;
	bool good = cut_axes(r) && first_factor(r, r->n_axes) <= SW_MAX_RANK;
	for (int32_t p = 0; p < r->n_parts && good; p++)
		good = take_part(r, &r->parts[p], &used, &order);
	if (good) {
		int64_t rest = take_rest(r, used, &order);
		write(r, rest, order.data, text);
	}
	sw_text_clear(&order);
	return good;
}

sw_span sw_sharding_mesh(sw_span sharding)
{
	sw_error ignored = {0};
	sw_lexer lexer;
	const char *at = sharding.length ? memchr(sharding.start, '@', sharding.length) : NULL;
	if (!at)
		return (sw_span){"", 0};
	sw_lex_init(&lexer, at + 1, sharding.length - (size_t)(at + 1 - sharding.start), "",
	            &ignored);
	return sw_lex_word(&lexer);
}

void sw_sharding_of_sdy(sw_span mesh, sw_span sharding, sw_text *text)
{
	reading r = {0};
	sw_error ignored = {0};
	sw_span name = sw_sharding_mesh(sharding);
	bool good = name.length && read_mesh(&r, mesh, &ignored);
	if (good) {
		const char *behind = name.start + name.length;
		sw_lex_init(&r.lexer, behind, sharding.length - (size_t)(behind - sharding.start),
		            "", &ignored);
		good = sw_lex_take(&r.lexer, ',') && read_dimensions(&r);
	}
	if (good && r.n_parts == 0)
		sw_text_add(text, r.open ? "{unknown}" : "{replicated}");
	else if (!good || !write_tiles(&r, text))
		sw_text_add(text, "{unknown}");
}
