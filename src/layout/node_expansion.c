/*
 * Expanding a node of a search: every move that its layout allows, and every placement of the
 * digits after it that is tried.
 */
#include "layout/node_expansion.h"

#include <string.h>

static bool within_limit(expansion *e, double total)
{
	if (total <= e->limit)
		return true;
	if (total < e->least_left_out)
		e->least_left_out = total;
	return false;
}

static double transposes_ps(const expansion *e)
{
	unsigned transposes = move_transposes(e->p, e->kind, e->mask, e->from.state, e->after);
	double ps = 0;
	if (transposes & 1)
		ps += e->table->transpose_of[e->split];
	if (transposes & 2)
		ps += e->table->transpose_of[split_after(e->kind, e->mask, e->split)];
	return ps;
}

/* Create the node of the layout after the move. Transposes are counted last, and only where the
 * move might be an improvement without them. */
static void create(expansion *e, path_cost rest)
{
	int32_t number = workspace_node(e->work, e->after, e->so_far);
	if (number < 0)
		return;
	node *n = &e->work->nodes.data[number];
	path_cost so_far = e->so_far;
	so_far.ps += transposes_ps(e);
	path_cost total = cost_add(so_far, rest);
	if (!cost_less(so_far, n->so_far) || !within_limit(e, total.ps))
		return;
	n->so_far = so_far;
	n->total = total;
	n->total.ps = so_far.ps + e->weight * rest.ps;
	n->parent = e->number;
	n->kind = (uint8_t)e->kind;
	n->mask = e->mask;
	n->permutation = e->permutation;
	workspace_push(e->work, number);
}

/* ---- placing digits --------------------------------------------------------------------- */

static void place_away(expansion *e, uint32_t away, uint64_t fits, path_cost rest);

static void place_tuple(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t fits,
                        path_cost rest)
{
	e->after[u] = (uint8_t)(UNIT_S + i);
	place_away(e, away & (away - 1), fits & e->p->classes[e->p->units[u].class].tuples[i].fits,
	           rest);
}

/* Place unit u in each tuple from i on that fits; where there are many spare tuples, in only the
 * first of them. */
static void place_any(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t fits,
                      path_cost rest)
{
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	bool spared = false;
	for (; i < class->n_tuples; i++) {
		const tuple *t = &class->tuples[i];
		if (t->digits & ~fits || (class->has_spares && !t->leads && (!t->spare || spared)))
			continue;
		spared = spared || t->spare;
		place_tuple(e, u, i, away, fits, rest);
	}
}

/* Place unit u in two tuples from i on: the first that fits, and the first that fits and nests with
 * all digits of the target. */
static void place_sparingly(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t fits,
                            path_cost rest)
{
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	for (bool placed = false, apart = false; i < class->n_tuples && !apart; i++) {
		if (class->tuples[i].digits & ~fits)
			continue;
		apart = !(class->tuples[i].digits & ~e->p->goal_fits);
		if (apart || !placed)
			place_tuple(e, u, i, away, fits, rest);
		placed = true;
	}
}

/* Choose tuples for the remaining units of `away`, none of them the unit's home, then create the
 * node. The tuples of from and to come first, since a PERMUTE may bring them where they belong; for
 * several units of a large problem they are skipped, because there would be too many combinations.
 * Plain tuples are equivalent to one another, except for transposes and for the digits that they
 * exclude later. */
static void place_away(expansion *e, uint32_t away, uint64_t fits, path_cost rest)
{
	if (e->work_left <= 0)
		return;
	if (!away) {
		e->work_left--;
		create(e, rest);
		return;
	}
	int32_t u = __builtin_ctz(away), i = 0;
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	bool several = e->p->n_units > MAX_EXACT_UNITS && (e->away & (e->away - 1));
	for (; i < class->n_named; i++)
		if (!several && !(class->tuples[i].digits & ~fits) && UNIT_S + i != e->p->home[u])
			place_tuple(e, u, i, away, fits, rest);
	if (e->p->thorough)
		place_any(e, u, i, away, fits, rest);
	else
		place_sparingly(e, u, i, away, fits, rest);
}

/* Return the one digit of this size that leads local data from which the digits `removed` are taken
 * out; -1: there is none. */
static int32_t leading_digit(const problem *p, uint64_t removed, int32_t size)
{
	if (p->shape.rank == 0)
		return -1;
	int32_t dim = 0;
	int64_t above = p->shape.dims[0];
	for (uint64_t rest = removed;; rest &= rest - 1) {
		const split_digit *next = rest ? &p->digits[__builtin_ctzll(rest)] : NULL;
		while (above == 1 && dim + 1 < p->shape.rank && (!next || dim < next->dim))
			above = p->shape.dims[++dim];
		if (!next || next->dim > dim || next->stride * next->size != above)
			break;
		above = next->stride;
	}
	for (int32_t d = 0; d < p->n_digits; d++) {
		const split_digit *here = &p->digits[d];
		if (here->dim == dim && here->size == size && here->stride * size == above)
			return removed & ~p->fits[d] ? -1 : d;
	}
	return -1;
}

static int32_t find_tuple(const unit_class *class, const uint8_t *digits)
{
	for (int32_t i = 0; i < class->n_tuples; i++)
		if (memcmp(class->tuples[i].digit, digits, (size_t) class->n) == 0)
			return i;
	return -1;
}

/* Place the units of the mask in the one way in which their digits lead the device's local data;
 * return false if there is none. The units of `home` must come home, the others must not. */
static bool place_leading(expansion *e, uint32_t home)
{
	const problem *p = e->p;
	uint64_t removed = p->frozen_digits | used_digits(p, UINT32_MAX, e->from.state);
	uint8_t digits[MAX_UNITS][SW_MAX_ATOMS], found[MAX_UNITS] = {0};
	for (int32_t a = 0; a < p->atoms->n; a++) {
		int32_t u = p->unit_of[a];
		if (u < 0 || !(e->mask >> u & 1))
			continue;
		int32_t d = leading_digit(p, removed, p->atoms->size[a]);
		if (d < 0)
			return false;
		digits[u][found[u]++] = (uint8_t)d;
		removed |= UINT64_C(1) << d;
	}
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (uint32_t rest = e->mask; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest);
		int32_t i = find_tuple(&p->classes[p->units[u].class], digits[u]);
		if (i < 0 || (UNIT_S + i == p->home[u]) != (home >> u & 1))
			return false;
		e->after[u] = (uint8_t)(UNIT_S + i);
	}
	return true;
}

/* Move the units of `home` to their homes, whose digits must nest with those in use and with one
 * another, and the units of `away` elsewhere. */
static void place(expansion *e, uint32_t home, uint32_t away, path_cost rest)
{
	bool sends = e->kind == SW_MOVE_REDUCE_SCATTER || e->kind == SW_MOVE_ALL_TO_ALL;
	if (sends && !within_limit(e, e->so_far.ps + rest.ps + e->table->transpose_of[e->split])) {
		e->work_left--;
		if (place_leading(e, home))
			create(e, rest);
		return;
	}
	uint64_t fits = e->fits;
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (; home; home &= home - 1) {
		int32_t u = __builtin_ctz(home);
		const tuple *t = unit_tuple(e->p, u, e->p->home[u]);
		if (t->digits & ~fits)
			return;
		fits &= t->fits;
		e->after[u] = e->p->home[u];
	}
	e->away = away;
	place_away(e, away, fits, rest);
}

/* ---- moves ------------------------------------------------------------------------------ */

static int32_t recode(const expansion *e, int32_t code, uint32_t mask, uint32_t kind)
{
	int32_t low = (int32_t)mask, high = low << e->p->n_units;
	code = kind & 1 ? code | low : code & ~low;
	return kind & 2 ? code | high : code & ~high;
}

/* Bound the cost of the path that remains after the move, from this code on; return false if the
 * total exceeds the limit. */
static bool bound_within_limit(expansion *e, int32_t code, path_cost *rest)
{
	*rest = bound_at(e->least, code, e->limit - e->so_far.ps);
	return rest->ps != NO_PATH && within_limit(e, e->so_far.ps + rest->ps);
}

static bool begin_move(expansion *e, sw_move_kind kind, uint32_t mask)
{
	price step = prices_get(e->table, kind, mask, e->split);
	if (step.ps == NO_PATH)
		return false;
	e->kind = kind;
	e->mask = mask;
	e->so_far = cost_add(e->from.so_far, (path_cost){step.ps, 1, step.payload});
	return true;
}

/* Try a move that ends in splits: each unit may get the digits of its home, where it does not have
 * them, or others. */
static void split_move(expansion *e, sw_move_kind kind, uint32_t mask)
{
	uint32_t either = 0;
	if (!begin_move(e, kind, mask))
		return;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest);
		if (e->p->home[u] >= UNIT_S && e->p->home[u] != e->from.state[u])
			either |= 1u << u;
	}
	int32_t all_away = recode(e, e->code, mask, KIND_AWAY);
	for (uint32_t home = either;; home = (home - 1) & either) {
		path_cost rest;
		if (bound_within_limit(e, recode(e, all_away, home, KIND_HOME), &rest))
			place(e, home, mask & ~home, rest);
		if (!home)
			break;
	}
}

/* Try a move that ends in B or in P. */
static void plain_move(expansion *e, sw_move_kind kind, uint32_t mask, uint8_t state)
{
	if (!begin_move(e, kind, mask))
		return;
	path_cost rest;
	if (!bound_within_limit(e, recode(e, e->code, mask, state == UNIT_P ? KIND_P : KIND_B),
	                        &rest))
		return;
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (; mask; mask &= mask - 1)
		e->after[__builtin_ctz(mask)] = state;
	create(e, rest);
}

int32_t kinds_code(const problem *p, const uint8_t *state)
{
	uint32_t code = 0, kind;
	for (int32_t u = 0; u < p->n_units; u++) {
		kind = kind_of(p, u, state[u]);
		code |= (kind & 1) << u | kind >> 1 << (u + p->n_units);
	}
	return (int32_t)code;
}

/* Try a permutation. It counts only if every unit that it moves changes its state; otherwise a
 * smaller permutation does the same. */
static void permute_move(expansion *e, int32_t number)
{
	const permutation *permuted = &e->table->permutations[number];
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (uint32_t rest = permuted->moved; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest);
		if (e->from.state[u] == e->from.state[permuted->to[u]])
			return;
		e->after[permuted->to[u]] = e->from.state[u];
	}
	path_cost rest;
	e->permutation = (uint8_t)number;
	if (begin_move(e, SW_MOVE_PERMUTE, permuted->moved) &&
	    bound_within_limit(e, kinds_code(e->p, e->after), &rest))
		create(e, rest);
}

/* ---- the node --------------------------------------------------------------------------- */

static void prepare(expansion *e, int32_t number)
{
	const problem *p = e->p;
	e->number = number;
	e->from = e->work->nodes.data[number];
	e->split = 0;
	e->fits = UINT64_MAX;
	e->permutation = 0;
	for (uint64_t rest = p->frozen_digits; rest; rest &= rest - 1)
		e->fits &= p->fits[__builtin_ctzll(rest)];
	for (int32_t u = 0; u < p->n_units; u++) {
		if (e->from.state[u] < UNIT_S)
			continue;
		e->split |= 1u << u;
		e->fits &= unit_tuple(p, u, e->from.state[u])->fits;
	}
	e->code = kinds_code(p, e->from.state);
}

void expand_node(expansion *e, int32_t number)
{
	uint32_t partial = 0, whole;
	prepare(e, number);
	for (int32_t u = 0; u < e->p->n_units; u++)
		partial |= (uint32_t)(e->from.state[u] == UNIT_P) << u;
	whole = ~(e->split | partial);
	for (int32_t i = 0; i < e->table->n_masks; i++) {
		uint32_t mask = e->table->masks[i];
		if (!(mask & ~whole)) {
			split_move(e, SW_MOVE_SLICE, mask);
			if (!(mask & ~e->p->to_partial))
				plain_move(e, SW_MOVE_TO_PARTIAL, mask, UNIT_P);
		} else if (!(mask & ~partial)) {
			plain_move(e, SW_MOVE_ALL_REDUCE, mask, UNIT_B);
			split_move(e, SW_MOVE_REDUCE_SCATTER, mask);
		} else if (!(mask & ~e->split)) {
			plain_move(e, SW_MOVE_ALL_GATHER, mask, UNIT_B);
			split_move(e, SW_MOVE_ALL_TO_ALL, mask);
		}
	}
	for (int32_t i = 0; i < e->table->n_permutations; i++)
		permute_move(e, i);
}
