/*
 * Units: the atoms of a redistribution that move as one, and the classes of units with equal sizes.
 */
#include "layout/path_search.h"

#include <assert.h>
#include <string.h>

static bool stays(const sw_layout *from, const sw_layout *to, int32_t atom)
{
	return layout_same_state(&from->state[atom], &to->state[atom]);
}

/* Return a number that two atoms share if they go from the same kind and dimension to the same kind
 * and dimension. Where that still makes too many units, the dimensions are ignored. */
static uint32_t behaviour(const sw_layout *from, const sw_layout *to, int32_t atom,
                          bool ignore_dims)
{
	sw_state f = from->state[atom], t = to->state[atom];
	uint32_t dims = ignore_dims ? 0 : (uint32_t)f.dim << 8 | (uint32_t)t.dim;
	return dims << 8 | (uint32_t)stays(from, to, atom) << 4 | (uint32_t)f.kind << 2 | t.kind;
}

/* A rule by which atoms are put together: neighbours only, or all atoms of the same behaviour;
 * atoms that keep their state may be left out (frozen). The result is taken if it has at most
 * `max_units` units. */
typedef struct grouping_rule {
	bool neighbours_only, ignore_dims, freeze;
	int32_t max_units;
} grouping_rule;

static int32_t find_group(const problem *p, const uint32_t *behaves, int32_t n, int32_t atom,
                          grouping_rule how)
{
	for (int32_t g = n - 1; g >= 0; g--) {
		uint32_t here = p->units[g].atoms;
		if (behaves[g] == behaviour(p->from, p->to, atom, how.ignore_dims) &&
		    (!how.neighbours_only || here >> (atom - 1) & 1))
			return g;
	}
	return n;
}

/* Group the atoms into units; return false if there would be more than MAX_UNITS. */
static bool group_atoms(problem *p, grouping_rule how)
{
	uint32_t behaves[MAX_UNITS];
	int32_t n = 0;
	p->frozen = 0;
	for (int32_t a = 0; a < p->atoms->n; a++) {
		if (how.freeze && stays(p->from, p->to, a)) {
			p->frozen |= 1u << a;
			continue;
		}
		int32_t g = find_group(p, behaves, n, a, how);
		if (g == MAX_UNITS)
			return false;
		if (g == n) {
			behaves[n] = behaviour(p->from, p->to, a, how.ignore_dims);
			p->units[n++].atoms = 0;
		}
		p->units[g].atoms |= 1u << a;
	}
	p->n_units = n;
	return true;
}

/* Halve the longest unit that changes, if it has several atoms: the halves often sit on different
 * levels of the machine, and moving the inner one first may be cheaper. */
static bool halve_longest(problem *p)
{
	int32_t longest = -1, most = 1;
	for (int32_t u = 0; u < p->n_units; u++) {
		int32_t n = __builtin_popcount(p->units[u].atoms),
			first = __builtin_ctz(p->units[u].atoms);
		if (n > most && !stays(p->from, p->to, first)) {
			longest = u;
			most = n;
		}
	}
	if (longest < 0)
		return false;
	uint32_t rest = p->units[longest].atoms, outer = 0;
	for (int32_t k = 0; k < most / 2; k++) {
		outer |= rest & -rest;
		rest &= rest - 1;
	}
	memmove(&p->units[longest + 1], &p->units[longest],
	        sizeof(atom_unit) * (size_t)(p->n_units - longest));
	p->n_units++;
	p->units[longest].atoms = outer;
	p->units[longest + 1].atoms = rest;
	return true;
}

static void group_into_units(problem *p)
{
	static const grouping_rule rules[] = {{true, false, false, MAX_EXACT_UNITS},
	                                      {false, false, false, MAX_EXACT_UNITS},
	                                      {false, false, true, MAX_EXACT_UNITS + 1},
	                                      {false, true, true, MAX_UNITS}};
	if (p->atoms->n <= MAX_SINGLE_ATOMS) {
		p->n_units = p->atoms->n;
		for (int32_t a = 0; a < p->atoms->n; a++)
			p->units[a].atoms = 1u << a;
		return;
	}
	bool done = false;
	for (size_t w = 0; w < SW_COUNT(rules) && !done; w++)
		done = group_atoms(p, rules[w]) && (p->n_units <= rules[w].max_units);
	assert(done);
	while (p->n_units < MAX_EXACT_UNITS && halve_longest(p))
		;
}

/* ---- classes ---------------------------------------------------------------------------- */

static void list_unit_atoms(const problem *p, atom_unit *u)
{
	u->n = 0;
	for (int32_t a = 0; a < p->atoms->n; a++)
		if (u->atoms >> a & 1)
			u->atom[u->n++] = a;
}

static void find_class(problem *p, atom_unit *u)
{
	unit_class fresh = {.n = u->n, .product = 1};
	for (int32_t k = 0; k < u->n; k++) {
		fresh.size[k] = p->atoms->size[u->atom[k]];
		fresh.product *= fresh.size[k];
	}
	for (u->class = 0; u->class < p->n_classes; u->class ++) {
		const unit_class *c = &p->classes[u->class];
		if (c->n == u->n &&
		    memcmp(c->size, fresh.size, sizeof(fresh.size[0]) * (size_t)u->n) == 0)
			return;
	}
	unit_class *c = &p->classes[p->n_classes++];
	c->n = fresh.n;
	c->product = fresh.product;
	c->n_tuples = 0;
	memcpy(c->size, fresh.size, sizeof(fresh.size));
}

void units_form(problem *p)
{
	group_into_units(p);
	memset(p->unit_of, -1, sizeof(p->unit_of));
	for (int32_t u = 0; u < p->n_units; u++) {
		list_unit_atoms(p, &p->units[u]);
		for (int32_t k = 0; k < p->units[u].n; k++)
			p->unit_of[p->units[u].atom[k]] = (int8_t)u;
		find_class(p, &p->units[u]);
	}
}
