/* Unit tasks: slices cut into pieces, and their receivers grouped by where the nearest holders
 * are. */
#include "crossmesh/internal.h"

/* The receivers of a slice that take it from the same holders. */
typedef struct receiver_group {
	int32_t level, part; /* part of level - 1 in which the holders are; level 0: anywhere */
	int32_t n_receivers, n_holders;
	const int64_t *receivers, *holders;
} receiver_group;
typedef SW_VEC(receiver_group) receiver_groups;

static bool is_within(const sw_cluster *cluster, int64_t device, int32_t level, int32_t part)
{
	return level == 0 || sw_cluster_part_at(cluster, device, level - 1) == part;
}

/* Count the holders of a term that are in the part of level - 1. */
static int32_t count_within(const sw_cluster *cluster, const sw_unit_slice *s, int32_t term,
                            int32_t level, int32_t part)
{
	int32_t n = 0;
	for (int32_t h = 0; h < s->n_holders; h++)
		n += is_within(cluster, s->holders[term * s->n_holders + h], level, part);
	return n;
}

/* Return the number of holders that each term has in the part: the least of all terms. */
static int32_t holders_within(const sw_cluster *cluster, const sw_unit_slice *s, int32_t level,
                              int32_t part)
{
	int32_t least = s->n_holders;
	for (int32_t t = 0; t < s->n_terms && least > 0; t++)
		least = SW_MIN(least, count_within(cluster, s, t, level, part));
	return least;
}

/* Return the innermost level such that all terms are in the receiver's part of the level above. */
static int32_t nearest_level(const sw_cluster *cluster, const sw_unit_slice *s, int64_t receiver)
{
	int32_t level = 0;
	while (level + 1 < cluster->n_levels &&
	       holders_within(cluster, s, level + 1, sw_cluster_part_at(cluster, receiver, level)) > 0)
		level++;
	return level;
}

static const int64_t *holders_of(const sw_cluster *cluster, const sw_unit_slice *s,
                                 const receiver_group *g, sw_arena *arena)
{
	if (g->level == 0)
		return s->holders;
	int64_t *holders = SW_NEW_N(arena, int64_t, (int64_t)s->n_terms * g->n_holders),
		*at = holders;
	for (int32_t t = 0; t < s->n_terms; t++) {
		int32_t taken = 0;
		for (int32_t h = 0; h < s->n_holders && taken < g->n_holders; h++) {
			int64_t device = s->holders[t * s->n_holders + h];
			if (is_within(cluster, device, g->level, g->part)) {
				*at++ = device;
				taken++;
			}
		}
	}
	return holders;
}

/* Collect the receivers whose nearest holders are in this part. */
static void add_group(const sw_cluster *cluster, const sw_unit_slice *s, int32_t level,
                      int32_t part, const int32_t *levels, sw_arena *arena, receiver_groups *groups)
{
	receiver_group g = {.level = level, .part = part};
	int64_t *receivers = SW_NEW_N(arena, int64_t, s->n_receivers);
	for (int32_t r = 0; r < s->n_receivers; r++)
		if (levels[r] == level && is_within(cluster, s->receivers[r], level, part))
			receivers[g.n_receivers++] = s->receivers[r];
	g.receivers = receivers;
	g.n_holders = holders_within(cluster, s, level, part);
	g.holders = holders_of(cluster, s, &g, arena);
	sw_vec_push(groups, g);
}

static bool is_known(const receiver_groups *groups, size_t first, int32_t level, int32_t part)
{
	for (size_t i = first; i < groups->len; i++)
		if (groups->data[i].level == level && groups->data[i].part == part)
			return true;
	return false;
}

static void group_receivers(const sw_cluster *cluster, const sw_unit_slice *s, sw_arena *arena,
                            receiver_groups *groups)
{
	int32_t *levels = sw_alloc((size_t)SW_MAX(s->n_receivers, 1) * sizeof(*levels));
	size_t first = groups->len;
	for (int32_t r = 0; r < s->n_receivers; r++)
		levels[r] = nearest_level(cluster, s, s->receivers[r]);
	for (int32_t r = 0; r < s->n_receivers; r++) {
		int32_t part = levels[r] ? sw_cluster_part_at(cluster, s->receivers[r], levels[r] - 1) : 0;
		if (!is_known(groups, first, levels[r], part))
			add_group(cluster, s, levels[r], part, levels, arena, groups);
	}
	free(levels);
}

static void add_pieces(const sw_unit_slice *s, int32_t slice, const receiver_group *g,
                       int32_t pieces, int64_t element_bytes, sw_unit_task *tasks, int32_t *n)
{
	for (int32_t p = 0; p < pieces; p++) {
		int64_t first = s->elements * p / pieces, end = s->elements * (p + 1) / pieces;
		if (end == first)
			continue;
		tasks[(*n)++] = (sw_unit_task){.slice = slice,
		                               .level = g->level,
		                               .first = first,
		                               .elements = end - first,
		                               .bytes = (end - first) * element_bytes,
		                               .n_receivers = g->n_receivers,
		                               .n_holders = g->n_holders,
		                               .receivers = g->receivers,
		                               .holders = g->holders};
	}
}

task_list tasks_make(const sw_cluster *cluster, const slice_list *slices, sw_shape shape,
                     int32_t pieces, sw_arena *arena)
{
	receiver_groups groups = {0};
	SW_VEC(int32_t) of = {0};
	int32_t n = 0;
	for (int32_t s = 0; s < slices->n; s++) {
		group_receivers(cluster, &slices->slices[s], arena, &groups);
		while (of.len < groups.len)
			sw_vec_push(&of, s);
	}
	sw_unit_task *tasks =
		SW_NEW_N(arena, sw_unit_task, SW_MAX((int64_t)groups.len * pieces, 1));
	for (size_t g = 0; g < groups.len; g++)
		add_pieces(&slices->slices[of.data[g]], of.data[g], &groups.data[g], pieces,
		           sw_type_bytes(shape.type), tasks, &n);
	sw_vec_clear(&groups);
	sw_vec_clear(&of);
	return (task_list){n, tasks};
}
