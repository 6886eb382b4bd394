/*
 * The problem of a search: one redistribution, or the layouts of a list, written in units. It lists
 * the ways to split each unit, numbers their digits, and lists the sets of units that may move
 * together.
 */
#include "layout/path_search.h"

#include <assert.h>
#include <string.h>

/* ---- digits and tuples ------------------------------------------------------------------ */

/* Return the number of a digit, -1 where the table is full. Tuples are collected with digits
 * numbered in the order of discovery, and renumbered when all digits are known. */
static int32_t intern_digit(problem *p, split_digit d)
{
	for (int32_t i = 0; i < p->n_digits; i++)
		if (p->digits[i].dim == d.dim && p->digits[i].stride == d.stride &&
		    p->digits[i].size == d.size)
			return i;
	if (p->n_digits == MAX_DIGITS)
		return -1;
	p->digits[p->n_digits] = d;
	return p->n_digits++;
}

/* Return the tuple's number in its class; -1 where a table is full, which happens only to plain
 * tuples. */
static int32_t intern_tuple(problem *p, int32_t class, const split_digit *digits)
{
	unit_class *c = &p->classes[class];
	tuple t = {0};
	for (int32_t k = 0; k < c->n; k++) {
		int32_t d = intern_digit(p, digits[k]);
		if (d < 0)
			return -1;
		t.digit[k] = (uint8_t)d;
	}
	for (int32_t i = 0; i < c->n_tuples; i++)
		if (memcmp(c->tuples[i].digit, t.digit, (size_t)c->n) == 0)
			return i;
	if (c->n_tuples == MAX_TUPLES)
		return -1;
	c->tuples[c->n_tuples] = t;
	return c->n_tuples++;
}

/* Return the state, as a byte, of a unit whose atoms are in states of one kind; NO_STATE where the
 * tables are full. */
#define NO_STATE UINT8_MAX
static uint8_t read_state(problem *p, const atom_unit *u, const sw_layout *layout)
{
	split_digit digits[SW_MAX_ATOMS];
	sw_state first = layout->state[u->atom[0]];
	if (first.kind != SW_STATE_S)
		return first.kind == SW_STATE_P ? UNIT_P : UNIT_B;
	for (int32_t k = 0; k < u->n; k++) {
		sw_state s = layout->state[u->atom[k]];
		digits[k] = (split_digit){s.dim, p->atoms->size[u->atom[k]], s.stride};
	}
	int32_t number = intern_tuple(p, u->class, digits);
	return number < 0 ? NO_STATE : (uint8_t)(UNIT_S + number);
}

static void intern_frozen(problem *p)
{
	for (int32_t a = 0; a < p->atoms->n; a++)
		if (p->frozen >> a & 1 && p->from->state[a].kind == SW_STATE_S)
			intern_digit(p, (split_digit){p->from->state[a].dim, p->atoms->size[a],
			                              p->from->state[a].stride});
}

/* ---- plain splits ----------------------------------------------------------------------- */

#define MAX_TOPS 24

/* The strides times sizes at which plain tuples may begin in a dimension: its extent, the strides
 * of the digits of from and to, and below one another. */
typedef struct top_list {
	int32_t n;
	int64_t top[MAX_TOPS];
} top_list;

static void add_top(top_list *tops, int64_t top)
{
	if (top <= 1 || tops->n == MAX_TOPS)
		return;
	for (int32_t i = 0; i < tops->n; i++)
		if (tops->top[i] == top)
			return;
	tops->top[tops->n++] = top;
}

static void list_tops(const problem *p, int32_t dim, top_list *tops)
{
	tops->n = 0;
	add_top(tops, p->shape.dims[dim]);
	for (int32_t i = 0; i < p->n_digits; i++)
		if (p->digits[i].dim == dim)
			add_top(tops, p->digits[i].stride);
	int32_t begin = 0;
	for (int32_t depth = 1; depth < 2 * p->n_units && begin < tops->n; depth++) {
		int32_t end = tops->n;
		for (; begin < end; begin++)
			for (int32_t c = 0; c < p->n_classes; c++)
				if (tops->top[begin] % p->classes[c].product == 0)
					add_top(tops, tops->top[begin] / p->classes[c].product);
	}
}

static void add_plain(problem *p, int32_t class, int32_t dim, int64_t top)
{
	const unit_class *c = &p->classes[class];
	split_digit digits[SW_MAX_ATOMS];
	if (top % c->product != 0)
		return;
	for (int32_t k = 0; k < c->n; k++) {
		top /= c->size[k];
		digits[k] = (split_digit){dim, c->size[k], top};
	}
	intern_tuple(p, class, digits);
}

/* Add plain tuples: first at the first tops of all dimensions, then at the next ones, because the
 * tuples found last may not fit in the table. */
static void add_plain_tuples(problem *p)
{
	top_list tops[SW_MAX_RANK];
	for (int32_t dim = 0; dim < p->shape.rank; dim++)
		list_tops(p, dim, &tops[dim]);
	for (int32_t i = 0; i < MAX_TOPS; i++)
		for (int32_t dim = 0; dim < p->shape.rank; dim++)
			for (int32_t c = 0; c < p->n_classes && i < tops[dim].n; c++)
				add_plain(p, c, dim, tops[dim].top[i]);
}

/* ---- numbering -------------------------------------------------------------------------- */

static bool nests(split_digit a, split_digit b)
{
	if (a.dim != b.dim)
		return true;
	return a.stride % (b.stride * b.size) == 0 || b.stride % (a.stride * a.size) == 0;
}

static bool comes_before(split_digit a, split_digit b)
{
	if (a.dim != b.dim)
		return a.dim < b.dim;
	return a.stride != b.stride ? a.stride > b.stride : a.size > b.size;
}

/* Sort the digits into the order of local data; place[i] becomes the new number of digit i. */
static void sort_digits(problem *p, uint8_t *place)
{
	split_digit sorted[MAX_DIGITS];
	for (int32_t i = 0; i < p->n_digits; i++) {
		int32_t rank = 0;
		for (int32_t j = 0; j < p->n_digits; j++)
			rank += comes_before(p->digits[j], p->digits[i]);
		place[i] = (uint8_t)rank;
		sorted[rank] = p->digits[i];
	}
	memcpy(p->digits, sorted, sizeof(sorted[0]) * (size_t)p->n_digits);
}

/* Return whether the digit could lead some local data. All that stands above it must be taken out
 * by digits; a move that exchanges digits takes out two for each atom. */
static bool may_lead(const problem *p, split_digit d)
{
	double above = (double)p->shape.dims[d.dim] / ((double)d.stride * d.size), removed = 1;
	for (int32_t dim = 0; dim < d.dim; dim++)
		above *= (double)p->shape.dims[dim];
	for (int32_t a = 0; a < p->atoms->n; a++)
		removed *= (double)p->atoms->size[a] * p->atoms->size[a];
	return above * d.size <= removed;
}

static void finish_tuple(const problem *p, const unit_class *c, const uint8_t *place, tuple *t)
{
	t->leads = true;
	t->digits = 0;
	t->fits = UINT64_MAX;
	for (int32_t k = 0; k < c->n; k++) {
		t->digit[k] = place[t->digit[k]];
		t->digits |= UINT64_C(1) << t->digit[k];
		t->fits &= p->fits[t->digit[k]];
		t->leads = t->leads && may_lead(p, p->digits[t->digit[k]]);
	}
}

static uint64_t frozen_mask(const problem *p)
{
	uint64_t mask = 0;
	for (int32_t a = 0; a < p->atoms->n; a++) {
		sw_state s = p->from->state[a];
		for (int32_t i = 0; i < p->n_digits; i++)
			if (p->frozen >> a & 1 && s.kind == SW_STATE_S &&
			    p->digits[i].dim == s.dim && p->digits[i].stride == s.stride &&
			    p->digits[i].size == p->atoms->size[a])
				mask |= UINT64_C(1) << i;
	}
	return mask;
}

/* Sort plain tuples by the place of their first digit, so that those that lead the local data come
 * first. */
static void sort_plain(unit_class *c)
{
	for (int32_t i = c->n_named + 1; i < c->n_tuples; i++) {
		tuple t = c->tuples[i];
		int32_t k = i;
		for (; k > c->n_named && c->tuples[k - 1].digit[0] > t.digit[0]; k--)
			c->tuples[k] = c->tuples[k - 1];
		c->tuples[k] = t;
	}
}

/* Find the spare tuples of a class. Each unit may be in one, and on its way to another. */
static void find_spares(const problem *p, unit_class *c, uint64_t named)
{
	uint64_t fits = UINT64_MAX;
	int32_t n = 0;
	for (int32_t i = c->n_named; i < c->n_tuples; i++) {
		tuple *t = &c->tuples[i];
		t->spare = !t->leads && !(named & ~t->fits);
		if (!t->spare || t->digits & ~fits)
			continue;
		fits &= t->fits;
		n++;
	}
	c->has_spares = n >= 2 * p->n_units;
}

static uint64_t named_digits(const problem *p)
{
	uint64_t named = p->frozen_digits;
	for (int32_t c = 0; c < p->n_classes; c++)
		for (int32_t i = 0; i < p->classes[c].n_named; i++)
			named |= p->classes[c].tuples[i].digits;
	return named;
}

static void number_digits(problem *p)
{
	uint8_t place[MAX_DIGITS];
	sort_digits(p, place);
	for (int32_t i = 0; i < p->n_digits; i++) {
		p->fits[i] = 0;
		for (int32_t j = 0; j < p->n_digits; j++)
			if (nests(p->digits[i], p->digits[j]))
				p->fits[i] |= UINT64_C(1) << j;
	}
	for (int32_t c = 0; c < p->n_classes; c++) {
		for (int32_t i = 0; i < p->classes[c].n_tuples; i++)
			finish_tuple(p, &p->classes[c], place, &p->classes[c].tuples[i]);
		sort_plain(&p->classes[c]);
	}
	p->frozen_digits = frozen_mask(p);
	uint64_t named = named_digits(p);
	for (int32_t c = 0; c < p->n_classes; c++)
		find_spares(p, &p->classes[c], named);
}

/* ---- sets of units that move together --------------------------------------------------- */

static void add_mask(problem *p, uint32_t mask)
{
	for (int32_t i = 0; i < p->n_masks; i++)
		if (p->masks[i] == mask)
			return;
	if (mask && p->n_masks < MAX_MASKS)
		p->masks[p->n_masks++] = (uint8_t)mask;
}

static uint32_t kind_bit(uint8_t state)
{
	return state < UNIT_S ? state : UNIT_S;
}

/* Return the units that begin in the kind `from` and end in the kind `to`; 3 is any kind. */
static uint32_t units_between(const problem *p, uint32_t from, uint32_t to)
{
	uint32_t mask = 0;
	for (int32_t u = 0; u < p->n_units; u++)
		if ((from == 3 || kind_bit(p->start[u]) == from) &&
		    (to == 3 || kind_bit(p->goal[u]) == to))
			mask |= 1u << u;
	return mask;
}

static void list_masks(problem *p)
{
	uint32_t all = (1u << p->n_units) - 1;
	p->n_masks = 0;
	if (p->n_units <= MAX_SINGLE_ATOMS) {
		for (uint32_t mask = 1; mask <= all; mask++)
			add_mask(p, mask);
		return;
	}
	for (int32_t u = 0; u < p->n_units; u++)
		for (int32_t v = u; v < p->n_units; v++)
			add_mask(p, 1u << u | 1u << v);
	for (uint32_t from = 0; from <= 3; from++)
		for (uint32_t to = 0; to <= 3; to++)
			add_mask(p, units_between(p, from, to));
}

/* ---- homes and partial units ------------------------------------------------------------ */

static void find_homes(problem *p)
{
	for (int32_t u = 0; u < p->n_units; u++)
		p->home[u] = p->goal[u] >= UNIT_S    ? p->goal[u]
		             : p->start[u] >= UNIT_S ? p->start[u]
		                                     : UNIT_B;
}

/* Find the units that may become partial: a PERMUTE may bring a P to any unit of the class. */
static void find_partials(problem *p)
{
	p->may_be_partial = 0;
	for (int32_t u = 0; u < p->n_units; u++)
		for (int32_t v = 0; v < p->n_units; v++)
			if (p->units[u].class == p->units[v].class &&
			    (p->start[v] == UNIT_P || p->to_partial >> v & 1))
				p->may_be_partial |= 1u << u;
}

/* Return whether every plain tuple can be tried. */
static bool is_small(const problem *p)
{
	bool few = true;
	for (int32_t c = 0; c < p->n_classes; c++)
		few = few && p->classes[c].n_tuples <= MAX_THOROUGH_TUPLES;
	return p->n_units <= MAX_THOROUGH_UNITS || (p->n_units <= MAX_EXACT_UNITS && few);
}

/* ---- the problem ------------------------------------------------------------------------ */

static int64_t bytes_over_frozen(const problem *p)
{
	int64_t bytes = sw_shape_bytes(p->shape);
	for (int32_t a = 0; a < p->atoms->n; a++)
		if (p->frozen >> a & 1 && p->from->state[a].kind == SW_STATE_S)
			bytes /= p->atoms->size[a];
	return bytes;
}

static void begin(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *from,
                  const sw_layout *to)
{
	p->atoms = atoms;
	p->shape = shape;
	p->from = from;
	p->to = to;
	p->monoid = from->monoid != SW_MONOID_NONE ? from->monoid : to->monoid;
	p->n_classes = p->n_digits = 0;
	p->frozen = p->to_partial = 0;
	memset(p->start, 0, sizeof(p->start));
	memset(p->goal, 0, sizeof(p->goal));
	units_form(p);
}

static void end_named(problem *p)
{
	for (int32_t c = 0; c < p->n_classes; c++)
		p->classes[c].n_named = p->classes[c].n_tuples;
}

void problem_init(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *from,
                  const sw_layout *to)
{
	begin(p, atoms, shape, from, to);
	for (int32_t u = 0; u < p->n_units; u++) {
		p->start[u] = read_state(p, &p->units[u], from);
		p->goal[u] = read_state(p, &p->units[u], to);
		assert(p->start[u] != NO_STATE && p->goal[u] != NO_STATE);
		if (p->goal[u] == UNIT_P && p->start[u] != UNIT_P)
			p->to_partial |= 1u << u;
	}
	end_named(p);
	intern_frozen(p);
	add_plain_tuples(p);
	number_digits(p);
	p->thorough = is_small(p);
	find_homes(p);
	find_partials(p);
	p->goal_fits = UINT64_MAX;
	for (int32_t u = 0; u < p->n_units; u++)
		if (p->goal[u] >= UNIT_S)
			p->goal_fits &= unit_tuple(p, u, p->goal[u])->fits;
	list_masks(p);
	p->bytes = bytes_over_frozen(p);
}

bool problem_init_among(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *layouts,
                        int32_t n, uint8_t (*states)[8])
{
	assert(atoms->n <= MAX_SINGLE_ATOMS && n > 0);
	begin(p, atoms, shape, layouts, layouts);
	for (int32_t i = 0; i < n; i++) {
		memset(states[i], 0, sizeof(states[i]));
		for (int32_t u = 0; u < p->n_units; u++) {
			states[i][u] = read_state(p, &p->units[u], &layouts[i]);
			if (states[i][u] == NO_STATE)
				return false;
		}
	}
	end_named(p);
	number_digits(p);
	list_masks(p);
	p->bytes = bytes_over_frozen(p);
	return true;
}
