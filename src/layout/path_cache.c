/*
 * The cache of paths: single paths by their ends, and the seconds between all pairs of the layouts
 * that are expected of a shape.
 */
#include "layout/all_pairs.h"
#include "layout/grouping.h"
#include "layout/path_planner.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

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

/* ---- paths ------------------------------------------------------------------------------ */

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

/* ---- seconds of all pairs --------------------------------------------------------------- */

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
		            !sw_layout_owned_atoms(&here) &&
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
