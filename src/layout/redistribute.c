/*
 * Redistribution: the steps in order, and the writing of the path.
 */
#include "layout/path_planner.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *sw_move_name(sw_move_kind kind)
{
	static const char *const names[] = {[SW_MOVE_SLICE] = "slice",
	                                    [SW_MOVE_TO_PARTIAL] = "to-partial",
	                                    [SW_MOVE_ALL_GATHER] = "all-gather",
	                                    [SW_MOVE_ALL_REDUCE] = "all-reduce",
	                                    [SW_MOVE_REDUCE_SCATTER] = "reduce-scatter",
	                                    [SW_MOVE_ALL_TO_ALL] = "all-to-all",
	                                    [SW_MOVE_PERMUTE] = "permute",
	                                    [SW_MOVE_KEEP] = "keep",
	                                    [SW_MOVE_REDUCE] = "reduce",
	                                    [SW_MOVE_SPREAD] = "broadcast"};
	return (size_t)kind < SW_COUNT(names) ? names[kind] : "unknown";
}

/* ---- permute ---------------------------------------------------------------------------- */

/* Set what a step of each atom's coordinate adds to the target: a moved atom's target coordinate is
 * that of another atom, so that the target is linear in the coordinates. */
static void set_weights(const sw_atoms *atoms, const sw_move *move, int64_t *weight)
{
	for (int32_t a = 0; a < atoms->n; a++)
		weight[a] = sw_atoms_stride(atoms, a);
	for (int32_t a = 0; a < atoms->n; a++) {
		if (!(move->atoms >> a & 1))
			continue;
		int64_t stride = sw_atoms_stride(atoms, move->to_atom[a]);
		weight[a] += stride;
		weight[move->to_atom[a]] -= stride;
	}
}

/* Count the coordinates up by one device; return what that adds to the target. There may be a
 * million devices, so that this must not divide. */
static int64_t step_of_target(const sw_atoms *atoms, const int64_t *weight, int32_t *coordinate)
{
	int64_t step = 0;
	for (int32_t a = atoms->n - 1; a >= 0; a--) {
		if (++coordinate[a] < atoms->size[a])
			return step + weight[a];
		coordinate[a] = 0;
		step -= (atoms->size[a] - 1) * weight[a];
	}
	return step;
}

int32_t sw_move_permute_pairs(const sw_atoms *atoms, const sw_move *move, sw_arena *arena,
                              const int64_t **pairs)
{
	int64_t devices = sw_atoms_devices(atoms), target = 0, weight[SW_MAX_ATOMS];
	int64_t *list = SW_NEW_N(arena, int64_t, 2 * devices);
	int32_t n = 0, coordinate[SW_MAX_ATOMS] = {0};
	set_weights(atoms, move, weight);
	for (int64_t device = 0; device < devices; device++) {
		if (target != device) {
			list[2 * n] = device;
			list[2 * n++ + 1] = target;
		}
		target += step_of_target(atoms, weight, coordinate);
	}
	*pairs = list;
	return n;
}

/* ---- the path written out --------------------------------------------------------------- */

static sw_layout write_layout(const problem *p, const uint8_t *state)
{
	/* The frozen atoms keep their state. */
	sw_layout layout = *p->from;
	for (int32_t u = 0; u < p->n_units; u++) {
		const atom_unit *here = &p->units[u];
		for (int32_t k = 0; k < here->n; k++) {
			sw_state *s = &layout.state[here->atom[k]];
			*s = (sw_state){.kind = state[u] == UNIT_P ? SW_STATE_P : SW_STATE_B};
			if (state[u] < UNIT_S)
				continue;
			const split_digit *d = &p->digits[unit_tuple(p, u, state[u])->digit[k]];
			*s = (sw_state){
				.kind = SW_STATE_S, .dim = (int8_t)d->dim, .stride = d->stride};
		}
	}
	layout.monoid = sw_layout_partial_atoms(&layout) ? p->monoid : SW_MONOID_NONE;
	return layout;
}

static void write_move(const problem *p, const prices *table, const node *n, sw_move *move)
{
	*move = (sw_move){.kind = (sw_move_kind)n->kind, .atoms = table->atoms_of[n->mask]};
	move->after = write_layout(p, n->state);
	for (int32_t u = 0; u < p->n_units && move->kind == SW_MOVE_PERMUTE; u++) {
		const atom_unit *target = &p->units[table->permutations[n->permutation].to[u]];
		for (int32_t k = 0; k < target->n && n->mask >> u & 1; k++)
			move->to_atom[p->units[u].atom[k]] = (int8_t)target->atom[k];
	}
}

static int64_t node_bytes(const problem *p, const prices *table, const node *n)
{
	uint32_t split = 0;
	/* The minimum with MAX_UNITS states the bound for the compiler. */
	for (int32_t u = 0; u < SW_MIN(p->n_units, MAX_UNITS); u++)
		split |= (uint32_t)(n->state[u] >= UNIT_S) << u;
	return table->bytes_of[split];
}

/* Return the bytes of operand and result of the move, or of a transpose around it. */
static int64_t move_peak(const problem *p, const prices *table, const node *before,
                         const node *after)
{
	int64_t operand = node_bytes(p, table, before), result = node_bytes(p, table, after);
	unsigned transposes = move_transposes(p, (sw_move_kind)after->kind, after->mask,
	                                      before->state, after->state);
	int64_t peak = operand + result;
	if (transposes & 1)
		peak = SW_MAX(peak, 2 * operand);
	return transposes & 2 ? SW_MAX(peak, 2 * result) : peak;
}

static void write_path(const problem *p, const prices *table, const best_path *best, sw_path *path)
{
	path->n = best->n - 1;
	path->seconds = best->cost.ps * 1e-12;
	path->payload_bytes = best->cost.payload;
	path->peak_bytes = 0;
	for (int32_t i = 0; i < path->n; i++) {
		const node *before = &best->nodes[i], *after = &best->nodes[i + 1];
		path->peak_bytes = SW_MAX(path->peak_bytes, move_peak(p, table, before, after));
		write_move(p, table, after, &path->moves[i]);
	}
}

/* ---- one redistribution, with tables that others may share ------------------------------ */

void planner_init(path_planner *planner, const sw_redistribution *how)
{
	memset(planner, 0, sizeof(*planner));
	planner->how = *how;
	sw_arena_init(&planner->arena);
}

void planner_clear(path_planner *planner)
{
	workspace_clear(&planner->work);
	for (size_t i = 0; i < planner->bounds.len; i++)
		bound_end(planner->bounds.data[i]);
	sw_vec_clear(&planner->price_tables);
	sw_vec_clear(&planner->bounds);
	sw_map_clear(&planner->price_index);
	sw_map_clear(&planner->bound_index);
	sw_arena_clear(&planner->arena);
}

/* Return the number of the price table of the problem. Prices depend on the bytes, the units and
 * the sets of units that may move together. */
static uint32_t find_prices(path_planner *planner, const problem *p)
{
	struct {
		int64_t bytes;
		uint32_t units[MAX_UNITS + 1];
		uint8_t masks[MAX_MASKS];
	} key = {.bytes = p->bytes};
	for (int32_t u = 0; u < p->n_units; u++)
		key.units[u] = p->units[u].atoms;
	memcpy(key.masks, p->masks, (size_t)p->n_masks);
	uint32_t fresh = (uint32_t)planner->price_tables.len;
	uint32_t number = sw_map_intern(&planner->price_index, &key, sizeof(key), fresh);
	if (number == fresh)
		sw_vec_push(&planner->price_tables, prices_new(&planner->how, p, &planner->arena));
	return number;
}

/* Return the bound of the problem. It depends on the prices, on the kinds of the target, on which
 * units have a home and whether it may lead, and on the units that may become partial. */
static bound *find_bound(path_planner *planner, const problem *p, uint32_t table)
{
	uint32_t key[6] = {table, 0, 0, never_leading(p), p->to_partial, p->may_be_partial};
	uint32_t fresh = (uint32_t)planner->bounds.len;
	for (int32_t u = 0; u < p->n_units; u++) {
		key[1] |= kind_of(p, u, p->goal[u]) << 2 * u;
		key[2] |= (uint32_t)(p->home[u] >= UNIT_S) << u;
	}
	uint32_t number = sw_map_intern(&planner->bound_index, key, sizeof(key), fresh);
	if (number == fresh) {
		bound *b = SW_NEW(&planner->arena, bound);
		bound_begin(b, planner->price_tables.data[table], p);
		sw_vec_push(&planner->bounds, b);
	}
	return planner->bounds.data[number];
}

/* Find the cheapest path; the plain path is returned where the search finds no better one. */
static path_cost find_best(path_planner *planner, problem *p, prices *table, bound *least,
                           sw_path *path)
{
	best_path best;
	workspace *work = &planner->work;
	path_cost plain = {NO_PATH, 0, 0};
	bool done = search_near(work, p, table, least, &best);
	if (!done || p->atoms->n > MAX_EXACT_UNITS)
		plain = plain_path(&planner->how, p->shape, p->from, p->to, path);
	if (cost_less(plain, best.cost))
		best = (best_path){.n = 0, .cost = plain};
	if (!done)
		search_harder(work, p, table, least, &best);
	/* Where memory is tight, a placement that is seldom tried may be the only one. */
	if (best.cost.ps == NO_PATH && planner->how.memory_bytes > 0 && !p->thorough) {
		p->thorough = true;
		search_harder(work, p, table, least, &best);
	}
	if (best.n > 0)
		write_path(p, table, &best, path);
	return best.cost;
}

bool plan_path(path_planner *planner, sw_shape shape, const sw_layout *from, const sw_layout *to,
               sw_path *path)
{
	problem p;
	path->n = 0;
	path->seconds = 0;
	path->payload_bytes = path->peak_bytes = 0;
	if (sw_layout_equal(from, to))
		return true;
	if (owned_changes(from, to))
		return owned_path(planner, shape, from, to, path);
	if (planner->how.direct &&
	    single_move_path(&planner->how, shape, from, to, path).ps != NO_PATH)
		return true;
	problem_init(&p, planner->how.atoms, shape, from, to);
	uint32_t number = find_prices(planner, &p);
	prices *table = planner->price_tables.data[number];
	path_cost cost = find_best(planner, &p, table, find_bound(planner, &p, number), path);
	if (cost.ps == NO_PATH)
		path->seconds = INFINITY;
	return cost.ps != NO_PATH;
}

static sw_status no_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                         const sw_layout *to, sw_error *err)
{
	sw_text text = {0};
	sw_layout_print(how->atoms, shape, from, &text);
	sw_text_add(&text, " to ");
	sw_layout_print(how->atoms, shape, to, &text);
	sw_status status;
	if (how->memory_bytes > 0)
		status = sw_fail(err, SW_NO, "no path from %s within %lld bytes of memory",
		                 text.data, (long long)how->memory_bytes);
	else
		status = sw_fail(err, SW_NO, "no path from %s: the cost model allows none",
		                 text.data);
	sw_text_clear(&text);
	return status;
}

sw_status sw_redistribute(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                          const sw_layout *to, sw_path *path, sw_error *err)
{
	path_planner planner;
	assert(sw_layout_valid(how->atoms, shape, from) && sw_layout_valid(how->atoms, shape, to));
	assert(from->monoid == to->monoid || !from->monoid || !to->monoid);
	planner_init(&planner, how);
	bool found = plan_path(&planner, shape, from, to, path);
	planner_clear(&planner);
	return found ? SW_OK : no_path(how, shape, from, to, err);
}
