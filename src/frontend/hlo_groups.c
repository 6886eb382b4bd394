/*
 * Replica groups, in all the notations of HLO text:
 *
 *     {{0,1},{2,3}}   {}   [2,4]<=[8]   [4,2]<=[2,4]T(1,0)   mesh['x'=2,'y'=4] {'y'}
 *
 * The last becomes the iota form: the axes that are not named in the braces enumerate the groups,
 * those that are named enumerate the members. A sub-axis 'x':(2)4 is the digit of size 4 of axis x
 * below a digit of size 2.
 */
#include "frontend/hlo.h"

#include <string.h>

#define MAX_RANKS ((int64_t)1 << 20) /* of a mesh or an iota form */

/* ---- lists ------------------------------------------------------------------------------ */

/* Push the ids of all groups onto reader->ints, each group ended by -1. */
static sw_status push_list(sw_hlo *reader, int64_t *n_groups, int64_t *largest)
{
	sw_lexer *lexer = &reader->lexer;
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (sw_lex_take(lexer, '}'))
		return SW_OK;
	do {
		size_t first = reader->ints.len;
		const char *place = (sw_lex_skip(lexer), lexer->at);
		SW_TRY(sw_hlo_push_ints(reader));
		for (size_t i = first; i < reader->ints.len; i++)
			if (reader->ints.data[i] < 0)
				return sw_lex_fail(lexer, place, "a rank can't be negative");
		*largest = SW_MAX(*largest, (int64_t)(reader->ints.len - first));
		sw_vec_push(&reader->ints, -1);
		(*n_groups)++;
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, '}', "',' or '}'");
}

/* Read a list of groups. Short groups are filled up with -1; the memory for this is bounded by the
 * text's length. */
static sw_status read_list(sw_hlo *reader, sw_groups *groups)
{
	sw_lexer *lexer = &reader->lexer;
	size_t first = reader->ints.len;
	const char *place = lexer->at;
	int64_t n = 0, size = 0;
	SW_TRY(push_list(reader, &n, &size));
	int64_t given = (int64_t)(reader->ints.len - first);
	if (n > 0 && (size == 0 || n > 64 * given / size))
		return sw_lex_fail(lexer, place,
		                   "the groups are empty, or their sizes differ too much");
	if (n == 0)
		return SW_OK;
	int64_t *list = SW_NEW_N(&reader->program->arena, int64_t, n * size);
	const int64_t *next = reader->ints.data + first;
	for (int64_t g = 0; g < n; g++, next++)
		for (int64_t m = 0; m < size; m++)
			list[g * size + m] = *next >= 0 ? *next++ : -1;
	reader->ints.len = first;
	*groups = (sw_groups){.n_groups = n, .group_size = size, .list = list};
	return SW_OK;
}

/* ---- iota ------------------------------------------------------------------------------- */

/* Read numbers between brackets: `[2,4]` or `(1,0)`. */
static sw_status read_numbers(sw_lexer *lexer, char open, char close, int64_t v[SW_MAX_RANK],
                              int32_t *n)
{
	SW_TRY(sw_lex_expect(lexer, open, NULL));
	*n = 0;
	do {
		const char *place = (sw_lex_skip(lexer), lexer->at);
		if (*n == SW_MAX_RANK)
			return sw_lex_fail(lexer, place, "more than %d numbers", SW_MAX_RANK);
		SW_TRY(sw_lex_int(lexer, &v[*n]));
		if (v[*n] < 0)
			return sw_lex_fail(lexer, place,
			                   "%lld: expected a number that is not negative",
			                   (long long)v[*n]);
		(*n)++;
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, close, NULL);
}

static bool is_permutation(const int64_t *v, int32_t n)
{
	uint32_t seen = 0;
	for (int32_t i = 0; i < n; i++) {
		if (v[i] >= n || seen >> v[i] & 1)
			return false;
		seen |= 1u << v[i];
	}
	return true;
}

/* Return the product of all numbers, or -1 if it is 0 or too large. */
static int64_t rank_count(const int64_t *v, int32_t n)
{
	int64_t product = 1;
	for (int32_t i = 0; i < n; i++)
		if (!sw_mul_i64(product, v[i], &product) || product > MAX_RANKS || product == 0)
			return -1;
	return product;
}

typedef struct iota {
	int64_t dims[SW_MAX_RANK], reshape[SW_MAX_RANK], transpose[SW_MAX_RANK];
	int32_t n_dims, n_reshape, n_transpose;
} iota;

static sw_status read_iota(sw_lexer *lexer, iota *t)
{
	const char *place = (sw_lex_skip(lexer), lexer->at);
	SW_TRY(read_numbers(lexer, '[', ']', t->dims, &t->n_dims));
	SW_TRY(sw_lex_expect_text(lexer, "<="));
	SW_TRY(read_numbers(lexer, '[', ']', t->reshape, &t->n_reshape));
	t->n_transpose = 0;
	if (sw_lex_take(lexer, 'T'))
		SW_TRY(read_numbers(lexer, '(', ')', t->transpose, &t->n_transpose));
	if (t->n_transpose &&
	    (t->n_transpose != t->n_reshape || !is_permutation(t->transpose, t->n_transpose)))
		return sw_lex_fail(lexer, place, "expected a permutation of %d dimensions behind T",
		                   t->n_reshape);
	int64_t n = rank_count(t->dims, t->n_dims);
	if (n < 0 || n != rank_count(t->reshape, t->n_reshape))
		return sw_lex_fail(lexer, place,
		                   "both sides of <= must count the same ranks, from 1 to %lld",
		                   (long long)MAX_RANKS);
	return SW_OK;
}

static sw_status read_iota_groups(sw_hlo *reader, sw_groups *groups)
{
	sw_lexer *lexer = &reader->lexer;
	const char *place = lexer->at;
	iota t;
	SW_TRY(read_iota(lexer, &t));
	if (t.n_dims != 2)
		return sw_lex_fail(lexer, place,
		                   "expected [groups,members] before <=, found %d numbers",
		                   t.n_dims);
	*groups = (sw_groups){.n_groups = t.dims[0],
	                      .group_size = t.dims[1],
	                      .reshape = sw_hlo_keep_dims(reader, t.reshape, t.n_reshape),
	                      .transpose = sw_hlo_keep_dims(reader, t.transpose, t.n_transpose)};
	return SW_OK;
}

/* ---- meshes ----------------------------------------------------------------------------- */

/* A digit of the rank numbers, which are written major first: an axis, or a part of one. */
typedef struct mesh_digit {
	int axis;
	int64_t size, before; /* before: product of the more major digits of this axis */
} mesh_digit;

typedef struct mesh {
	sw_span names[SW_MAX_RANK];
	int axes, n_digits;
	mesh_digit digits[SW_MAX_RANK];
	int64_t members[SW_MAX_RANK]; /* digits that enumerate the members, in order */
	int n_members;
	const int64_t *ids; /* NULL: 0, 1, 2, ... */
} mesh;

static sw_status read_axis_name(sw_lexer *lexer, sw_span *name)
{
	char quote = sw_lex_peek(lexer);
	if (quote != '\'' && quote != '"') {
		*name = sw_lex_word(lexer);
		return name->length ? SW_OK : sw_lex_expected(lexer, "the name of an axis");
	}
	const char *start = lexer->at + 1;
	const char *close = memchr(start, quote, (size_t)(lexer->end - start));
	if (!close)
		return sw_lex_fail(lexer, lexer->at, "expected %c to close this name", quote);
	*name = (sw_span){start, (size_t)(close - start)};
	lexer->at = close + 1;
	return SW_OK;
}

static int find_axis(const mesh *m, sw_span name)
{
	for (int i = 0; i < m->axes; i++)
		if (m->names[i].length == name.length &&
		    memcmp(m->names[i].start, name.start, name.length) == 0)
			return i;
	return -1;
}

static sw_status read_axes(sw_lexer *lexer, mesh *m)
{
	SW_TRY(sw_lex_expect(lexer, '[', NULL));
	do {
		const char *place = (sw_lex_skip(lexer), lexer->at);
		sw_span name;
		int64_t size;
		SW_TRY(read_axis_name(lexer, &name));
		SW_TRY(sw_lex_expect(lexer, '=', NULL));
		SW_TRY(sw_lex_int(lexer, &size));
		if (m->axes == SW_MAX_RANK || size < 1 || find_axis(m, name) >= 0)
			return sw_lex_fail(
				lexer, place,
				"expected at most %d axes with different names and sizes from 1",
				SW_MAX_RANK);
		m->digits[m->axes] = (mesh_digit){m->axes, size, 1};
		m->names[m->axes++] = name;
	} while (sw_lex_take(lexer, ','));
	m->n_digits = m->axes;
	return sw_lex_expect(lexer, ']', NULL);
}

static int64_t mesh_size(const mesh *m)
{
	int64_t sizes[SW_MAX_RANK];
	for (int i = 0; i < m->n_digits; i++)
		sizes[i] = m->digits[i].size;
	return rank_count(sizes, m->n_digits);
}

/* Compute the id at each place of a mesh that is written as an iota. */
static void fill_ids(const iota *t, int64_t n, int64_t *ids)
{
	int64_t stride[SW_MAX_RANK], step = 1;
	for (int32_t i = t->n_reshape; i-- > 0; step *= t->reshape[i])
		stride[i] = step;
	for (int64_t place = 0; place < n; place++) {
		int64_t rest = place, id = 0;
		for (int32_t i = t->n_reshape; i-- > 0;) {
			int64_t dim = t->n_transpose ? t->transpose[i] : i;
			id += rest % t->reshape[dim] * stride[dim];
			rest /= t->reshape[dim];
		}
		ids[place] = id;
	}
}

/* Read `, device_ids=(...)`: numbers with brackets anywhere between them, or an iota. */
static sw_status read_device_ids(sw_hlo *reader, mesh *m, int64_t n)
{
	sw_lexer *lexer = &reader->lexer;
	size_t first = reader->ints.len;
	SW_TRY(sw_lex_expect_text(lexer, "device_ids"));
	SW_TRY(sw_lex_expect_text(lexer, "=("));
	const char *start = lexer->at;
	while (sw_lex_peek(lexer) != ')') {
		int64_t id;
		if (sw_lex_take_text(lexer, "<=")) {
			iota t;
			lexer->at = start;
			SW_TRY(read_iota(lexer, &t));
			if (rank_count(t.dims, t.n_dims) != n)
				return sw_lex_fail(lexer, start, "expected %lld device ids",
				                   (long long)n);
			int64_t *ids = SW_NEW_N(&reader->scratch, int64_t, n);
			fill_ids(&t, n, ids);
			m->ids = ids;
			reader->ints.len = first;
			return sw_lex_expect(lexer, ')', NULL);
		}
		if (sw_lex_take(lexer, '[') || sw_lex_take(lexer, ']') || sw_lex_take(lexer, '{') ||
		    sw_lex_take(lexer, '}') || sw_lex_take(lexer, ','))
			continue;
		SW_TRY(sw_lex_int(lexer, &id));
		if (id < 0)
			return sw_lex_fail(lexer, start, "a device id can't be negative");
		sw_vec_push(&reader->ints, id);
	}
	if ((int64_t)(reader->ints.len - first) != n)
		return sw_lex_fail(lexer, start, "expected %lld device ids, found %lld",
		                   (long long)n, (long long)(reader->ints.len - first));
	m->ids = sw_arena_copy(&reader->scratch, reader->ints.data + first,
	                       (size_t)n * sizeof(int64_t));
	reader->ints.len = first;
	return sw_lex_expect(lexer, ')', NULL);
}

/* Split digit i into one of size `major` and the rest below it; no split is needed where one of
 * them is 1. */
static bool cut_digit(mesh *m, int i, int64_t major)
{
	mesh_digit *digit = &m->digits[i];
	if (major == 1 || major == digit->size)
		return true;
	if (major < 1 || digit->size % major != 0 || m->n_digits == SW_MAX_RANK)
		return false;
	memmove(digit + 1, digit, (size_t)(m->n_digits - i) * sizeof(*digit));
	m->n_digits++;
	digit[1].size = digit->size / major;
	digit[1].before = digit->before * major;
	digit->size = major;
	for (int k = 0; k < m->n_members; k++)
		if (m->members[k] > i)
			m->members[k]++;
	return true;
}

static bool is_member(const mesh *m, int digit)
{
	for (int i = 0; i < m->n_members; i++)
		if (m->members[i] == digit)
			return true;
	return false;
}

/* Return the digit of `axis` that starts below `before` and has `size`, split off where it is part
 * of a larger digit; -1 if there is none, or a part of it is a member already. */
static int cut_out(mesh *m, int axis, int64_t before, int64_t size)
{
	for (int i = 0; i < m->n_digits; i++) {
		mesh_digit digit = m->digits[i];
		if (digit.axis != axis || before < digit.before ||
		    before >= digit.before * digit.size)
			continue;
		if (is_member(m, i) || before % digit.before != 0 ||
		    !cut_digit(m, i, before / digit.before))
			return -1;
		int place = before == digit.before ? i : i + 1;
		return cut_digit(m, place, size) && m->digits[place].size == size ? place : -1;
	}
	return -1;
}

static sw_status read_member(sw_lexer *lexer, mesh *m)
{
	const char *place = (sw_lex_skip(lexer), lexer->at);
	sw_span name;
	SW_TRY(read_axis_name(lexer, &name));
	int axis = find_axis(m, name);
	if (axis < 0)
		return sw_lex_fail(lexer, place, "the mesh has no axis '%.*s'",
		                   (int)SW_MIN(name.length, 60), name.start);
	int64_t before = 1, size = 1;
	if (sw_lex_take(lexer, ':')) {
		SW_TRY(sw_lex_expect(lexer, '(', NULL));
		SW_TRY(sw_lex_int(lexer, &before));
		SW_TRY(sw_lex_expect(lexer, ')', NULL));
		SW_TRY(sw_lex_int(lexer, &size));
	} else {
		for (int i = 0; i < m->n_digits; i++)
			if (m->digits[i].axis == axis)
				size *= m->digits[i].size;
	}
	int digit = size == 1 ? -2 : cut_out(m, axis, before, size);
	if (digit == -1)
		return sw_lex_fail(lexer, place,
		                   "this axis overlaps another, or does not divide the mesh");
	if (digit >= 0)
		m->members[m->n_members++] = digit;
	return SW_OK;
}

static sw_groups mesh_groups(sw_hlo *reader, const mesh *m, int64_t n)
{
	int64_t reshape[SW_MAX_RANK], transpose[SW_MAX_RANK];
	int32_t others = 0;
	int64_t size = 1;
	for (int i = 0; i < m->n_digits; i++) {
		reshape[i] = m->digits[i].size;
		if (!is_member(m, i))
			transpose[others++] = i;
		else
			size *= reshape[i];
	}
	for (int k = 0; k < m->n_members; k++)
		transpose[others++] = m->members[k];
	return (sw_groups){.n_groups = n / size,
	                   .group_size = size,
	                   .reshape = sw_hlo_keep_dims(reader, reshape, m->n_digits),
	                   .transpose = sw_hlo_keep_dims(reader, transpose, m->n_digits)};
}

static sw_status read_mesh(sw_hlo *reader, sw_groups *groups)
{
	sw_lexer *lexer = &reader->lexer;
	const char *place = lexer->at;
	mesh m = {.axes = 0};
	SW_TRY(sw_lex_expect_text(lexer, "mesh"));
	SW_TRY(read_axes(lexer, &m));
	int64_t n = mesh_size(&m);
	if (n < 0)
		return sw_lex_fail(lexer, place, "the mesh has more than %lld ranks",
		                   (long long)MAX_RANKS);
	if (sw_lex_take(lexer, ','))
		SW_TRY(read_device_ids(reader, &m, n));
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (!sw_lex_take(lexer, '}')) {
		do
			SW_TRY(read_member(lexer, &m));
		while (sw_lex_take(lexer, ','));
		SW_TRY(sw_lex_expect(lexer, '}', "',' or '}'"));
	}
	*groups = mesh_groups(reader, &m, n);
	if (!m.ids)
		return SW_OK;
	int64_t *list = SW_NEW_N(&reader->program->arena, int64_t, n);
	for (int64_t i = 0; i < n; i++)
		list[i] = m.ids[sw_groups_member(groups, i / groups->group_size,
		                                 i % groups->group_size)];
	*groups = (sw_groups){
		.n_groups = groups->n_groups, .group_size = groups->group_size, .list = list};
	return SW_OK;
}

sw_status sw_hlo_read_groups(sw_hlo *reader, sw_groups *groups)
{
	sw_lexer *lexer = &reader->lexer;
	*groups = (sw_groups){0};
	char c = sw_lex_peek(lexer);
	if (c == '{')
		return read_list(reader, groups);
	if (c == '[')
		return read_iota_groups(reader, groups);
	if (sw_span_is(sw_lex_peek_word(lexer), "mesh"))
		return read_mesh(reader, groups);
	return sw_lex_expected(lexer, "replica groups: '{', '[' or mesh");
}
