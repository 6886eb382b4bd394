/*
 * Ways as an object, and as the entries of a file of ways: what most variables have is that of "*",
 * kinds that this leaves with other ways have an entry by the glob of their names, and variables
 * that are still left one of their own.
 */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune.h"

/* ---- ways ------------------------------------------------------------------------------- */

int64_t sw_part_size(int64_t size, int32_t parts, int32_t part)
{
	return size / parts + (part < size % parts);
}

bool sw_ways_possible(const sw_ways_space *space, uint32_t variable, int32_t axis, int32_t parts,
                      int32_t part, sw_way_kind kind)
{
	sw_shape shape = space->variables[variable].shape;
	if (kind == SW_WAY_GATHER)
		return parts == 1 && space->gathers && space->variables[variable].made_of_bytes > 0;
	if (kind != SW_WAY_SPLIT && kind != SW_WAY_MOMENTS)
		return true;
	for (int32_t d = 0; d < shape.rank; d++) {
		int64_t size = d == axis ? sw_part_size(shape.dims[d], parts, part) : shape.dims[d];
		if (size % space->cluster->n_devices == 0)
			return true;
	}
	return false;
}

static bool same_way(const sw_way *a, const sw_way *b)
{
	return a->kind == b->kind && a->proxy == b->proxy &&
	       (a->kind != SW_WAY_OWNED || a->owner == b->owner);
}

static bool same_codec(sw_codec a, sw_codec b)
{
	return a.kind == b.kind && a.share == b.share && a.rank == b.rank;
}

static bool alike(const sw_variable_ways *a, const sw_variable_ways *b)
{
	if (a->n != b->n || (a->n > 1 && a->axis != b->axis) || !same_codec(a->codec, b->codec) ||
	    a->group != b->group || a->algorithm != b->algorithm || a->order != b->order)
		return false;
	for (int32_t i = 0; i < a->n; i++)
		if (!same_way(&a->parts[i], &b->parts[i]))
			return false;
	return true;
}

/* A variable counts by the square root of its bytes. */
double sw_ways_distance(const sw_ways_space *space, const sw_ways *a, const sw_ways *b)
{
	double all = 0, other = 0;
	for (uint32_t i = 0; i < space->n; i++) {
		double weight = sqrt((double)space->variables[i].bytes);
		all += weight;
		other += alike(&a->of[i], &b->of[i]) ? 0 : weight;
	}
	bool merges = a->merge.bytes == b->merge.bytes && a->merge.ops == b->merge.ops;
	return 0.9 * other / all + (merges ? 0 : 0.1);
}

static uint64_t hash_variable(const sw_variable_ways *w, uint64_t hash)
{
	hash = sw_hash_u64(hash, (uint64_t)(w->n > 1 ? w->axis : 0) << 32 | (uint64_t)w->n);
	hash = sw_hash_u64(hash, (uint64_t)w->codec.kind << 32 | (uint64_t)w->codec.rank);
	hash = sw_hash_bytes(&w->codec.share, sizeof(w->codec.share), hash);
	hash = w->group ? sw_hash_u64(hash, w->group) : hash;
	hash = w->algorithm ? sw_hash_u64(hash, UINT64_C(1) << 32 | w->algorithm) : hash;
	hash = w->order ? sw_hash_u64(hash, UINT64_C(1) << 33 | w->order) : hash;
	for (int32_t i = 0; i < w->n; i++) {
		bool owned = w->parts[i].kind == SW_WAY_OWNED;
		hash = sw_hash_u64(hash, (uint64_t)w->parts[i].kind << 1 | w->parts[i].proxy);
		hash = sw_hash_u64(hash, owned ? (uint64_t)w->parts[i].owner : 0);
	}
	return hash;
}

static bool is_all_reduced(const sw_variable_ways *w)
{
	for (int32_t i = 0; i < w->n; i++)
		if (w->parts[i].kind != SW_WAY_ALL_REDUCE)
			return false;
	return w->codec.kind == SW_CODEC_NONE;
}

/* The collective by which gradients are summed up that go a way. */
static sw_collective_kind sum_of(sw_way_kind kind)
{
	return kind == SW_WAY_OWNED                              ? SW_COLLECTIVE_BROADCAST
	       : kind == SW_WAY_SPLIT || kind == SW_WAY_MOMENTS ? SW_COLLECTIVE_REDUCE_SCATTER
	                                                         : SW_COLLECTIVE_ALL_REDUCE;
}

bool sw_ways_has_algorithm(const sw_ways_space *space, const sw_variable_ways *ways,
                           sw_algorithm algorithm)
{
	for (int32_t k = 0; k < ways->n; k++)
		if (!sw_library_has(space->cluster->device.collectives, algorithm,
		                    sum_of(ways->parts[k].kind)))
			return false;
	return true;
}

/* Are gradients summed up, as they are? */
static bool is_summed(const sw_variable_ways *w)
{
	for (int32_t i = 0; i < w->n; i++)
		if (w->parts[i].kind == SW_WAY_GATHER)
			return false;
	return w->codec.kind == SW_CODEC_NONE;
}

static void settle_sending(const sw_ways_space *space, sw_variable_ways *w)
{
	if (!is_summed(w))
		w->algorithm = w->order = 0;
	if (w->algorithm && !sw_ways_has_algorithm(space, w, (sw_algorithm)(w->algorithm - 1)))
		w->algorithm = 0;
}

void sw_ways_settle(const sw_ways_space *space, sw_variable_ways *of)
{
	sw_map numbers = {0};
	SW_VEC(uint32_t) first = {0}; /* per group: its first variable */
	for (uint32_t i = 0; i < space->n; i++) {
		uint32_t *group = &of[i].group;
		settle_sending(space, &of[i]);
		if (*group == 0 || !is_all_reduced(&of[i])) {
			*group = 0;
			continue;
		}
		uint32_t number = sw_map_get(&numbers, group, sizeof(*group));
		if (number == SW_ABSENT) {
			number = (uint32_t)numbers.len + 1;
			sw_map_put(&numbers, group, sizeof(*group), number);
			sw_vec_push(&first, i);
		}
		*group = number;
		of[i].algorithm = of[first.data[number - 1]].algorithm;
		of[i].order = of[first.data[number - 1]].order;
	}
	sw_vec_clear(&first);
	sw_map_clear(&numbers);
}

void sw_ways_seal(const sw_ways_space *space, sw_ways *ways)
{
	ways->hash = sw_hash_u64((uint64_t)ways->merge.bytes, (uint64_t)ways->merge.ops);
	for (uint32_t i = 0; i < space->n; i++)
		ways->hash = hash_variable(&ways->of[i], ways->hash);
}

/* ---- to entries ------------------------------------------------------------------------- */

typedef struct entry_list {
	const sw_ways_space *space;
	sw_sync *sync;
	SW_VEC(sw_sync_entry) list;
	const sw_variable_ways **got; /* per variable: what the entries so far give it */
} entry_list;

static sw_sync_entry entry_of(const char *pattern, const sw_way *way)
{
	sw_sync_entry entry = {.pattern = pattern,
	                       .has_way = true,
	                       .way = *way,
	                       .balanced = way->kind != SW_WAY_OWNED || way->owner < 0};
	if (entry.balanced)
		entry.way.owner = 0;
	return entry;
}

static sw_sync_entry sent_entry(const char *pattern, const sw_way *way, const sw_variable_ways *ways)
{
	sw_sync_entry entry = entry_of(pattern, way);
	entry.algorithm = ways->algorithm;
	entry.order = ways->order;
	entry.of_algorithm = ways->algorithm > 0;
	entry.of_order = ways->order > 0;
	return entry;
}

static void add_entries(entry_list *l, const char *pattern, const sw_variable_ways *ways)
{
	sw_sync_entry whole = sent_entry(pattern, &ways->parts[0], ways);
	whole.has_codec = ways->codec.kind != SW_CODEC_NONE;
	whole.codec = ways->codec;
	if (ways->group)
		whole.group = sw_arena_printf(&l->sync->arena, "group%u", ways->group);
	if (ways->n > 1) {
		whole.of_parts = 1;
		whole.parts = ways->n;
		whole.axis = ways->axis;
	}
	sw_vec_push(&l->list, whole);
	for (int32_t i = 1; i < ways->n; i++) {
		char *part = sw_arena_printf(&l->sync->arena, "%s.part%d", pattern, i);
		if (!same_way(&ways->parts[i], &ways->parts[0]))
			sw_vec_push(&l->list, sent_entry(part, &ways->parts[i], ways));
	}
	for (uint32_t i = 0; i < l->space->n; i++)
		if (fnmatch(pattern, l->space->variables[i].name, 0) == 0)
			l->got[i] = ways;
}

/* Return the ways that most variables of a kind have; of several the first. any: of all kinds,
 * those of whole variables; NULL if there are none. */
static const sw_variable_ways *most_common(const sw_ways_space *space, const sw_ways *ways,
                                           uint32_t kind, bool any)
{
	const sw_variable_ways *best = NULL;
	uint32_t most = 0;
	for (uint32_t i = 0; i < space->n; i++) {
		uint32_t count = 0;
		bool of_kind = any ? ways->of[i].n == 1 : space->variables[i].kind == kind;
		if (!of_kind || (best && alike(best, &ways->of[i])))
			continue;
		for (uint32_t j = i; j < space->n; j++)
			count += (any || space->variables[j].kind == kind) &&
			         alike(&ways->of[i], &ways->of[j]);
		if (count > most) {
			most = count;
			best = &ways->of[i];
		}
	}
	return best;
}

static bool has_got(const entry_list *l, const sw_ways *ways, uint32_t kind)
{
	for (uint32_t i = 0; i < l->space->n; i++)
		if (l->space->variables[i].kind == kind &&
		    (!l->got[i] || !alike(l->got[i], &ways->of[i])))
			return false;
	return true;
}

static char *exact_pattern(sw_arena *arena, const char *name)
{
	sw_text text = {0};
	for (const char *c = name; *c; c++)
		sw_text_addf(&text, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
	char *pattern = sw_arena_text(arena, text.data ? text.data : "");
	sw_text_clear(&text);
	return pattern;
}

void sw_ways_to_sync(const sw_ways_space *space, const sw_ways *ways, sw_sync *sync)
{
	*sync = (sw_sync){.file = "the ways of a trial",
	                  .merges = sw_merge_is_given(ways->merge),
	                  .merge = ways->merge};
	sw_arena_init(&sync->arena);
	entry_list l = {.space = space,
	                .sync = sync,
	                .got = SW_NEW_N(&sync->arena, const sw_variable_ways *, space->n + 1)};
	const sw_variable_ways *all = most_common(space, ways, 0, true);
	if (all)
		add_entries(&l, "*", all);
	for (uint32_t k = 0; k < space->n_kinds; k++)
		if (!has_got(&l, ways, k))
			add_entries(&l, sw_arena_text(&sync->arena, space->kinds[k]),
			            most_common(space, ways, k, false));
	for (uint32_t i = 0; i < space->n; i++)
		if (!l.got[i] || !alike(l.got[i], &ways->of[i]))
			add_entries(&l, exact_pattern(&sync->arena, space->variables[i].name),
			            &ways->of[i]);
	sync->n = l.list.len;
	sync->list = sw_arena_copy(&sync->arena, l.list.data, sizeof(*l.list.data) * l.list.len);
	sw_vec_clear(&l.list);
}

/* ---- from entries ----------------------------------------------------------------------- */

static sw_status refuse(const sw_sync_entry *entry, const char *why, sw_error *err)
{
	return sw_fail_at(err, SW_ERR_INPUT, "", entry->line, 0, "'%s': %s", entry->pattern, why);
}

static sw_way way_of(const sw_sync_entry *entry)
{
	sw_way way = entry->way;
	way.owner = entry->balanced ? -1 : way.owner;
	return way;
}

static sw_status check_entry(const sw_ways_space *space, const sw_sync_entry *entry, sw_error *err)
{
	if (entry->way.kind == SW_WAY_ANY)
		return refuse(entry, "way: any leaves open what a trial has tried", err);
	if (entry->has_stale)
		return refuse(entry, "stale: trials are synchronous", err);
	if (entry->served)
		return refuse(entry, "served: trials have no servers", err);
	if (entry->group_bytes)
		return refuse(entry, "merge of trials is the name of a group, not bytes", err);
	if (entry->sizes.n > 0)
		return refuse(entry, "parts of trials are a number, not sizes", err);
	if (entry->way.owner >= space->cluster->n_devices)
		return refuse(entry, "the cluster has no such device", err);
	return SW_OK;
}

/* Groups are numbered by the first entry that names each. */
static uint32_t group_of(const sw_sync *sync, const sw_sync_entry *entry)
{
	uint32_t number = 1;
	for (const sw_sync_entry *e = sync->list; entry->group; e++, number++)
		if (e->group && strcmp(e->group, entry->group) == 0)
			return number;
	return 0;
}

/* Gradients that can't be gathered are all-reduced. */
static void take_whole(const sw_ways_space *space, const sw_sync *sync, const sw_sync_entry *entry,
                       uint32_t variable, sw_arena *arena, sw_variable_ways *ways)
{
	int32_t n = (int32_t)SW_MAX(entry->parts, 1);
	*ways = (sw_variable_ways){.axis = entry->axis,
	                           .n = n,
	                           .parts = SW_NEW_N(arena, sw_way, n),
	                           .codec = entry->codec,
	                           .group = group_of(sync, entry),
	                           .algorithm = entry->algorithm,
	                           .order = entry->order};
	for (int32_t k = 0; k < n; k++) {
		ways->parts[k] = way_of(entry);
		if (entry->way.kind == SW_WAY_GATHER &&
		    !sw_ways_possible(space, variable, entry->axis, n, k, SW_WAY_GATHER))
			ways->parts[k].kind = SW_WAY_ALL_REDUCE;
	}
}

static bool take_part(const sw_ways_space *space, const sw_sync_entry *entry, uint32_t i,
                      sw_variable_ways *ways)
{
	bool any = false;
	for (int32_t k = 0; k < ways->n && ways->n > 1; k++) {
		char name[32];
		sw_text text = {0};
		snprintf(name, sizeof(name), ".part%d", k);
		sw_text_addf(&text, "%s%s", space->variables[i].name, name);
		if (fnmatch(entry->pattern, text.data, 0) == 0) {
			ways->parts[k] = way_of(entry);
			any = true;
		}
		sw_text_clear(&text);
	}
	return any;
}

static sw_status check_parts(const sw_ways_space *space, const sw_variable_ways *ways, uint32_t i,
                             sw_error *err)
{
	if (ways->n == 0)
		return sw_fail(err, SW_ERR_INPUT, "no entry is about the variable '%s'",
		               space->variables[i].name);
	sw_shape shape = space->variables[i].shape;
	if (ways->n > 1 && (ways->axis >= shape.rank || ways->n > shape.dims[ways->axis]))
		return sw_fail(err, SW_ERR_INPUT, "'%s' can't have so many parts",
		               space->variables[i].name);
	for (int32_t k = 0; k < ways->n; k++)
		if (!sw_ways_possible(space, i, ways->axis, ways->n, k, ways->parts[k].kind))
			return sw_fail(err, SW_ERR_INPUT,
			               "'%s': no dimension divides by the devices",
			               space->variables[i].name);
	return SW_OK;
}

sw_status sw_ways_of_sync(const sw_ways_space *space, const sw_sync *sync, sw_arena *arena,
                          sw_ways *ways, sw_error *err)
{
	sw_variable_ways *of = SW_NEW_N(arena, sw_variable_ways, space->n + 1);
	for (size_t e = 0; e < sync->n; e++) {
		const sw_sync_entry *entry = &sync->list[e];
		bool any = false;
		SW_TRY(check_entry(space, entry, err));
		for (uint32_t i = 0; i < space->n; i++) {
			bool whole = fnmatch(entry->pattern, space->variables[i].name, 0) == 0;
			if (whole)
				take_whole(space, sync, entry, i, arena, &of[i]);
			bool part = !whole && take_part(space, entry, i, &of[i]);
			if (part && entry->group)
				return refuse(entry, "groups of trials have whole variables", err);
			any |= whole || part;
		}
		if (!any)
			return refuse(entry, "no variable of the program has such a name", err);
	}
	for (uint32_t i = 0; i < space->n; i++)
		SW_TRY(check_parts(space, &of[i], i, err));
	sw_ways_settle(space, of);
	*ways = (sw_ways){.merge = sync->merges ? sync->merge : (sw_merge){0}, .of = of};
	sw_ways_seal(space, ways);
	return SW_OK;
}
