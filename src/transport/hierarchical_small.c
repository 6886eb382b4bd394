/*
 * Hierarchical all-reduce of little: whole operands, level by level, in one round each.
 *
 * At each depth, from the last, a rank gets the sum of each sibling part from one of its members
 * (turn and turn about, as parts may have unequal numbers) and combines them with its own part's,
 * in the order of the parts. All members of a part have the same sums, to the bit.
 */
#include "transport/hierarchy.h"

#include <string.h>

typedef struct sums {
	const sw_task *task;
	sw_hierarchy hierarchy;
	char *came; /* [n][total]: of each sibling part, by its first turn */
} sums;

static int32_t depth_of(const sums *s, int32_t round)
{
	return s->hierarchy.depths - 1 - round;
}

/* Who of the part that begins at `first` sends to the rank at `turn`, of a sibling part. */
static int32_t sender(const sums *s, int32_t depth, int32_t first, int32_t turn)
{
	const sw_hierarchy *h = &s->hierarchy;
	return first +
	       (turn - h->begin[depth + 1][turn]) % (sw_hierarchy_next(h, depth, first) - first);
}

static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const sums *s = context;
	const sw_task *t = s->task;
	const sw_hierarchy *h = &s->hierarchy;
	int32_t depth = depth_of(s, round), turn = t->turn, own = h->begin[depth + 1][turn];
	int64_t bytes = t->total * t->width;
	(void)lane;
	for (int32_t p = h->begin[depth][turn]; p < h->end[depth][turn];
	     p = sw_hierarchy_next(h, depth, p)) {
		if (p == own)
			continue;
		for (int32_t peer = p; peer < sw_hierarchy_next(h, depth, p); peer++)
			if (sender(s, depth, own, peer) == turn)
				sw_lane_send(messages, sw_task_rank(t, peer), t->out, bytes);
		sw_lane_receive(messages, sw_task_rank(t, sender(s, depth, p, turn)),
		                s->came + p * bytes, bytes);
	}
}

static void settle(const void *context, int32_t round, int32_t lane)
{
	const sums *s = context;
	const sw_task *t = s->task;
	const sw_hierarchy *h = &s->hierarchy;
	int32_t depth = depth_of(s, round), turn = t->turn;
	int64_t bytes = t->total * t->width;
	char *sum = NULL;
	(void)lane;
	for (int32_t p = h->begin[depth][turn]; p < h->end[depth][turn];
	     p = sw_hierarchy_next(h, depth, p)) {
		char *next = p == h->begin[depth + 1][turn] ? t->out : s->came + p * bytes;
		if (sum)
			sw_task_combine(t, sum, next, sum, t->total);
		else
			sum = next;
	}
	if (sum != t->out && bytes)
		memcpy(t->out, sum, (size_t)bytes);
}

sw_status sw_hierarchical_small_all_reduce(sw_carrier *c, const sw_task *task, sw_error *err)
{
	int64_t bytes = task->total * task->width;
	sums s = {.task = task, .came = sw_carrier_scratch(c, task->n * bytes)};
	if (!s.came)
		return sw_scratch_refused(task->n * bytes, err);
	if (bytes)
		memcpy(task->out, task->in, (size_t)bytes);
	sw_hierarchy_init(&s.hierarchy, task);
	sw_wave wave = {&task->call, s.hierarchy.depths, 1, 1, &s, fill, settle};
	sw_status status = sw_wave_run(c, &wave, err);
	sw_hierarchy_clear(&s.hierarchy);
	return status;
}
