/* Redistribution: the steps in order, the writing of the path, and the cache of paths. */
#include "layout/all_pairs.h"
#include "layout/grouping.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

const char *sw_move_name(sw_move_kind kind)
{
	static const char *const names[] = {[SW_MOVE_SLICE] = "slice",
	                                    [SW_MOVE_TO_PARTIAL] = "to-partial",
	                                    [SW_MOVE_ALL_GATHER] = "all-gather",
	                                    [SW_MOVE_ALL_REDUCE] = "all-reduce",
	                                    [SW_MOVE_REDUCE_SCATTER] = "reduce-scatter",
	                                    [SW_MOVE_ALL_TO_ALL] = "all-to-all",
	                                    [SW_MOVE_PERMUTE] = "permute"};
	return (size_t)kind < SW_COUNT(names) ? names[kind] : "unknown";
}

/* ---- permute ---------------------------------------------------------------------------- */

static int64_t permuted_device(const sw_atoms *atoms, const sw_move *move, int64_t device)
{
	int64_t target = device;
	for (int32_t a = 0; a < atoms->n; a++) {
		if (!(move->atoms >> a & 1))
			continue;
		int32_t to = move->to_atom[a];
		target += (int64_t)(sw_atoms_coordinate(atoms, device, a) -
		                    sw_atoms_coordinate(atoms, device, to)) *
		          sw_atoms_stride(atoms, to);
	}
	return target;
}

int32_t sw_move_permute_pairs(const sw_atoms *atoms, const sw_move *move, sw_arena *arena,
                              const int64_t **pairs)
{
	int64_t devices = sw_atoms_devices(atoms);
	int64_t *list = SW_NEW_N(arena, int64_t, 2 * devices);
	int32_t n = 0;
	for (int64_t device = 0; device < devices; device++) {
		int64_t target = permuted_device(atoms, move, device);
		if (target == device)
			continue;
		list[2 * n] = device;
		list[2 * n++ + 1] = target;
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

typedef struct path_planner {
	sw_redistribution how;
	sw_arena arena;
	sw_map price_index, bound_index;
	SW_VEC(prices *) price_tables;
	SW_VEC(bound *) bounds;
	workspace work;
} path_planner;

static void planner_init(path_planner *planner, const sw_redistribution *how)
{
	memset(planner, 0, sizeof(*planner));
	planner->how = *how;
	sw_arena_init(&planner->arena);
}

static void planner_clear(path_planner *planner)
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

static bool plan_path(path_planner *planner, sw_shape shape, const sw_layout *from,
                      const sw_layout *to, sw_path *path)
{
	problem p;
	path->n = 0;
	path->seconds = 0;
	path->payload_bytes = path->peak_bytes = 0;
	if (sw_layout_equal(from, to))
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

/* ---- the cache -------------------------------------------------------------------------- */

/* Layouts of a shape that are queried together: the paths between them depend on nothing else. */
typedef struct query {
	uint32_t shape, n;
	const uint32_t *layouts; /* by number, ascending */
	int32_t *row;            /* of each layout in `costs`, -1: not in it */
	all_pairs costs;         /* between the layouts that keep groups together */
	bool found;
} query;

typedef struct shape_entry {
	sw_shape shape;
	SW_VEC(uint32_t) expected; /* layouts, since sw_path_cache_begin */
	/* the query of these layouts; SW_ABSENT: layouts were added since */
	uint32_t query;
} shape_entry;

struct sw_path_cache {
	path_planner planner;
	sw_atoms atoms;
	grouping grouping;      /* no groups: every atom by itself */
	path_planner by_groups; /* the same model, over groups as atoms */
	pthread_mutex_t getting;
	sw_map index;
	SW_VEC(const sw_path *) paths;
	/* Tables of the queries by number. */
	sw_map shape_index, layout_index, seconds_index, query_index;
	SW_VEC(shape_entry) shapes;
	SW_VEC(query) queries;
	SW_VEC(sw_layout) layouts;
	SW_VEC(double) seconds; /* of pairs that are not in an all-pairs table */
};

sw_path_cache *sw_path_cache_new(const sw_redistribution *how)
{
	sw_path_cache *cache = sw_alloc(sizeof(*cache));
	cache->atoms = *how->atoms;
	planner_init(&cache->planner, how);
	cache->planner.how.atoms = &cache->atoms;
	pthread_mutex_init(&cache->getting, NULL);
	return cache;
}

static double group_seconds(void *context, sw_move_kind kind, uint32_t groups,
                            int64_t operand_bytes)
{
	const sw_path_cache *cache = context;
	const sw_redistribution *how = &cache->planner.how;
	return how->seconds(how->context, kind, grouping_atoms(&cache->grouping, groups),
	                    operand_bytes);
}

sw_path_cache *sw_path_cache_new_grouped(const sw_redistribution *how, const uint32_t *groups,
                                         int32_t n)
{
	sw_path_cache *cache = sw_path_cache_new(how);
	grouping_init(&cache->grouping, &cache->atoms, groups, n);
	planner_init(&cache->by_groups, how);
	cache->by_groups.how.atoms = &cache->grouping.groups;
	cache->by_groups.how.seconds = group_seconds;
	cache->by_groups.how.context = cache;
	return cache;
}

/* Find a path over groups where both ends keep them together, else over atoms. */
static void find_path(sw_path_cache *cache, sw_shape shape, const sw_layout *from,
                      const sw_layout *to, sw_path *path)
{
	sw_layout grouped_from, grouped_to;
	if (cache->grouping.groups.n > 0 &&
	    grouping_gather(&cache->grouping, from, &grouped_from) &&
	    grouping_gather(&cache->grouping, to, &grouped_to)) {
		plan_path(&cache->by_groups, shape, &grouped_from, &grouped_to, path);
		grouping_spread_path(&cache->grouping, path);
	} else {
		plan_path(&cache->planner, shape, from, to, path);
	}
}

void sw_path_cache_free(sw_path_cache *cache)
{
	if (!cache)
		return;
	if (cache->grouping.groups.n > 0)
		planner_clear(&cache->by_groups);
	planner_clear(&cache->planner);
	sw_map_clear(&cache->index);
	sw_vec_clear(&cache->paths);
	sw_map_clear(&cache->shape_index);
	sw_map_clear(&cache->layout_index);
	sw_map_clear(&cache->seconds_index);
	sw_map_clear(&cache->query_index);
	for (size_t i = 0; i < cache->shapes.len; i++)
		sw_vec_clear(&cache->shapes.data[i].expected);
	for (size_t i = 0; i < cache->queries.len; i++)
		all_pairs_clear(&cache->queries.data[i].costs);
	sw_vec_clear(&cache->shapes);
	sw_vec_clear(&cache->queries);
	sw_vec_clear(&cache->layouts);
	sw_vec_clear(&cache->seconds);
	pthread_mutex_destroy(&cache->getting);
	free(cache);
}

/* Return the number of words. */
static size_t pack_shape(sw_shape shape, uint64_t *key)
{
	size_t n = 0;
	key[n++] = (uint64_t)shape.type << 8 | (uint64_t)shape.rank;
	for (int32_t dim = 0; dim < shape.rank; dim++)
		key[n++] = (uint64_t)shape.dims[dim];
	return n;
}

static size_t write_key(sw_shape shape, const sw_layout *from, const sw_layout *to, uint64_t *key)
{
	size_t n = pack_shape(shape, key);
	n += (size_t)layout_pack(from, key + n);
	n += (size_t)layout_pack(to, key + n);
	return n * sizeof(*key);
}

/* Copy the path with only its n moves. */
static const sw_path *keep_path(sw_path_cache *cache, const sw_path *path)
{
	size_t bytes = offsetof(sw_path, moves) + sizeof(sw_move) * (size_t)path->n;
	return sw_arena_copy(&cache->planner.arena, path, bytes);
}

const sw_path *sw_path_cache_get(sw_path_cache *cache, sw_shape shape, const sw_layout *from,
                                 const sw_layout *to)
{
	uint64_t key[1 + SW_MAX_RANK + 2 * (SW_MAX_ATOMS + 1)];
	size_t bytes = write_key(shape, from, to, key);
	pthread_mutex_lock(&cache->getting);
	uint32_t fresh = (uint32_t)cache->paths.len;
	uint32_t number = sw_map_intern(&cache->index, key, bytes, fresh);
	if (number == fresh) {
		sw_path path;
		find_path(cache, shape, from, to, &path);
		sw_vec_push(&cache->paths, keep_path(cache, &path));
	}
	const sw_path *kept = cache->paths.data[number];
	pthread_mutex_unlock(&cache->getting);
	return kept;
}

/* Allocate n bytes in the arena, under the lock because paths are added to it meanwhile: a copy of
 * `bytes`, or (NULL) zeros. */
static void *keep(sw_path_cache *cache, const void *bytes, size_t n)
{
	pthread_mutex_lock(&cache->getting);
	void *kept = bytes ? sw_arena_copy(&cache->planner.arena, bytes, n)
	                   : sw_arena_alloc(&cache->planner.arena, n);
	pthread_mutex_unlock(&cache->getting);
	return kept;
}

uint32_t sw_path_cache_shape(sw_path_cache *cache, sw_shape shape)
{
	uint64_t key[1 + SW_MAX_RANK];
	uint32_t fresh = (uint32_t)cache->shapes.len;
	uint32_t number = sw_map_intern(&cache->shape_index, key,
	                                pack_shape(shape, key) * sizeof(*key), fresh);
	if (number == fresh) {
		if (shape.rank > 0)
			shape.dims =
				keep(cache, shape.dims, sizeof(*shape.dims) * (size_t)shape.rank);
		sw_vec_push(&cache->shapes, ((shape_entry){.shape = shape, .query = SW_ABSENT}));
	}
	return number;
}

uint32_t sw_path_cache_layout(sw_path_cache *cache, const sw_layout *layout)
{
	uint64_t key[SW_MAX_ATOMS + 1];
	uint32_t fresh = (uint32_t)cache->layouts.len;
	size_t bytes = (size_t)layout_pack(layout, key) * sizeof(*key);
	uint32_t number = sw_map_intern(&cache->layout_index, key, bytes, fresh);
	if (number == fresh)
		sw_vec_push(&cache->layouts, *layout);
	return number;
}

void sw_path_cache_begin(sw_path_cache *cache)
{
	for (size_t i = 0; i < cache->shapes.len; i++) {
		cache->shapes.data[i].expected.len = 0;
		cache->shapes.data[i].query = SW_ABSENT;
	}
}

void sw_path_cache_expect(sw_path_cache *cache, uint32_t shape, uint32_t layout)
{
	shape_entry *entry = &cache->shapes.data[shape];
	sw_vec_push(&entry->expected, layout);
	entry->query = SW_ABSENT;
}

/* Return the query of all layouts that are expected of a shape by now, as a set: a new query, or an
 * earlier one of the same set. */
static query *find_query(sw_path_cache *cache, uint32_t shape)
{
	shape_entry *entry = &cache->shapes.data[shape];
	if (entry->query != SW_ABSENT)
		return &cache->queries.data[entry->query];
	uint32_t *list = entry->expected.data;
	size_t n = 0;
	qsort(list, entry->expected.len, sizeof(*list), sw_compare_u32);
	for (size_t i = 0; i < entry->expected.len; i++)
		if (n == 0 || list[n - 1] != list[i])
			list[n++] = list[i];
	entry->expected.len = n;
	sw_text key = {0};
	sw_text_add_n(&key, (const char *)&shape, sizeof(shape));
	sw_text_add_n(&key, (const char *)list, sizeof(*list) * n);
	uint32_t fresh = (uint32_t)cache->queries.len;
	entry->query = sw_map_intern(&cache->query_index, key.data, key.len, fresh);
	if (entry->query == fresh)
		sw_vec_push(&cache->queries,
		            ((query){.shape = shape,
		                     .n = (uint32_t)n,
		                     .layouts = keep(cache, list, sizeof(*list) * n),
		                     .row = keep(cache, NULL, sizeof(int32_t) * (n + 1))}));
	sw_text_clear(&key);
	return &cache->queries.data[entry->query];
}

/* Put the layouts that keep the groups together (or all layouts, where there are no groups and few
 * atoms) into one table. */
static void find_all_pairs(const sw_path_cache *cache, query *a)
{
	bool grouped = cache->grouping.groups.n > 0;
	const path_planner *planner = grouped ? &cache->by_groups : &cache->planner;
	SW_VEC(sw_layout) list = {0};
	for (size_t i = 0; i < a->n; i++) {
		sw_layout here = cache->layouts.data[a->layouts[i]], layout = here;
		bool fits = planner->how.atoms->n <= MAX_SINGLE_ATOMS &&
		            (!grouped || grouping_gather(&cache->grouping, &here, &layout));
		a->row[i] = fits ? (int32_t)list.len : -1;
		if (fits)
			sw_vec_push(&list, layout);
	}
	if (list.len > 0 &&
	    !all_pairs_init(&a->costs, &planner->how, cache->shapes.data[a->shape].shape, list.data,
	                    (int32_t)list.len))
		for (size_t i = 0; i < a->n; i++)
			a->row[i] = -1;
	a->found = true;
	sw_vec_clear(&list);
}

/* tables computed by one call of sw_path_cache_find, after which its caller may stop */
#define MAX_TABLES_AT_ONCE 16

typedef struct finding {
	const sw_path_cache *cache;
	uint32_t queries[MAX_TABLES_AT_ONCE];
} finding;

static void find_one(void *context, int64_t i)
{
	const finding *f = context;
	find_all_pairs(f->cache, &f->cache->queries.data[f->queries[i]]);
}

bool sw_path_cache_find(sw_path_cache *cache, int threads)
{
	finding f = {.cache = cache};
	int64_t n = 0;
	for (uint32_t i = 0; i < cache->shapes.len && n < MAX_TABLES_AT_ONCE; i++)
		if (cache->shapes.data[i].expected.len > 0 && !find_query(cache, i)->found)
			f.queries[n++] = cache->shapes.data[i].query;
	sw_parallel_for(n, threads, find_one, &f);
	return n > 0;
}

/* Return the seconds of a pair that is in no table. */
static double pair_seconds(sw_path_cache *cache, uint32_t shape, uint32_t from, uint32_t to)
{
	const uint32_t key[] = {shape, from, to};
	uint32_t fresh = (uint32_t)cache->seconds.len;
	uint32_t number = sw_map_intern(&cache->seconds_index, key, sizeof(key), fresh);
	if (number == fresh) {
		sw_path path;
		pthread_mutex_lock(&cache->getting);
		find_path(cache, cache->shapes.data[shape].shape, &cache->layouts.data[from],
		          &cache->layouts.data[to], &path);
		pthread_mutex_unlock(&cache->getting);
		sw_vec_push(&cache->seconds, path.seconds);
	}
	return cache->seconds.data[number];
}

static double seconds_between(sw_path_cache *cache, const query *among, uint32_t from, int32_t row,
                              uint32_t to, int32_t column)
{
	const sw_layout *a = &cache->layouts.data[from], *b = &cache->layouts.data[to];
	if (from == to)
		return 0;
	if (a->monoid != SW_MONOID_NONE && b->monoid != SW_MONOID_NONE && a->monoid != b->monoid)
		return INFINITY;
	if (row < 0 || column < 0)
		return pair_seconds(cache, among->shape, from, to);
	return among->costs.ps[row * among->costs.n + column] * 1e-12;
}

/* Return the rows of the layouts in the table. */
static int32_t *find_rows(const query *a, const uint32_t *layouts, int32_t n)
{
	int32_t *rows = sw_alloc(sizeof(*rows) * ((size_t)n + 1));
	for (int32_t i = 0; i < n; i++) {
		const uint32_t *place =
			bsearch(&layouts[i], a->layouts, a->n, sizeof(*a->layouts), sw_compare_u32);
		assert(place);
		rows[i] = a->row[place - a->layouts];
	}
	return rows;
}

void sw_path_cache_seconds(sw_path_cache *cache, uint32_t shape, const uint32_t *from, int32_t n,
                           const uint32_t *to, int32_t m, double *seconds)
{
	query *a = find_query(cache, shape);
	if (!a->found)
		find_all_pairs(cache, a);
	int32_t *rows = find_rows(a, from, n), *columns = find_rows(a, to, m);
	for (int32_t i = 0; i < n; i++)
		for (int32_t j = 0; j < m; j++)
			seconds[i * m + j] =
				seconds_between(cache, a, from[i], rows[i], to[j], columns[j]);
	free(rows);
	free(columns);
}
