/*
 * Hierarchical all-reduce of small operands: whole operands are exchanged, in one round per level.
 *
 * At each depth, beginning with the last, a rank gets the sum of each sibling part from one of that
 * part's members (the members send in rotation, as parts may have unequal sizes) and combines the
 * sums with that of its own part, in the order of the parts. All members of a part have bitwise
 * equal sums.
 */
#include "transport/hierarchy.h"

#include <string.h>

typedef struct sibling_sums {
	const sw_task *task;
	sw_hierarchy hierarchy;
	/* [n][total]: the sum of each sibling part, at the index of its first vrank */
	char *received;
} sibling_sums;

static int32_t depth_of(const sibling_sums *s, int32_t round)
{
	return s->hierarchy.depths - 1 - round;
}

/* Return the member of the part beginning at `first` that sends to `vrank`, which is in a sibling
 * part. */
static int32_t sender(const sibling_sums *s, int32_t depth, int32_t first, int32_t vrank)
{
	const sw_hierarchy *h = &s->hierarchy;
	return first +
	       (vrank - h->begin[depth + 1][vrank]) % (sw_hierarchy_next(h, depth, first) - first);
}

static void fill(const void *context, int32_t round, int32_t lane, sw_lane *messages)
{
	const sibling_sums *s = context;
	const sw_task *t = s->task;
	const sw_hierarchy *h = &s->hierarchy;
	int32_t depth = depth_of(s, round), vrank = t->vrank, own = h->begin[depth + 1][vrank];
	int64_t bytes = t->total * t->width;
	(void)lane;
	for (int32_t p = h->begin[depth][vrank]; p < h->end[depth][vrank];
	     p = sw_hierarchy_next(h, depth, p)) {
		if (p == own)
			continue;
		for (int32_t peer = p; peer < sw_hierarchy_next(h, depth, p); peer++)
			if (sender(s, depth, own, peer) == vrank)
				sw_lane_send(messages, sw_task_rank(t, peer), t->out, bytes);
		sw_lane_receive(messages, sw_task_rank(t, sender(s, depth, p, vrank)),
		                s->received + p * bytes, bytes);
	}
}

static void complete(const void *context, int32_t round, int32_t lane)
{
	const sibling_sums *s = context;
	const sw_task *t = s->task;
	const sw_hierarchy *h = &s->hierarchy;
	int32_t depth = depth_of(s, round), vrank = t->vrank;
	int64_t bytes = t->total * t->width;
	char *sum = NULL;
	(void)lane;
	for (int32_t p = h->begin[depth][vrank]; p < h->end[depth][vrank];
	     p = sw_hierarchy_next(h, depth, p)) {
		char *next = p == h->begin[depth + 1][vrank] ? t->out : s->received + p * bytes;
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
	sibling_sums s = {.task = task, .received = sw_carrier_scratch(c, task->n * bytes)};
	if (!s.received)
		return sw_scratch_refused(task->n * bytes, err);
	if (bytes)
		memcpy(task->out, task->in, (size_t)bytes);
	sw_hierarchy_init(&s.hierarchy, task);
	sw_wave wave = {&task->call, s.hierarchy.depths, 1, 1, &s, fill, complete};
	sw_status status = sw_wave_run(c, &wave, err);
	sw_hierarchy_clear(&s.hierarchy);
	return status;
}
