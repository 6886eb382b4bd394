/*
 * hierarchy: a group's members by place, and who holds what when a collective goes level by level.
 * Private to src/transport.
 *
 * DEPTH 0 is the group; each depth below splits the parts of the one above at the next level of the
 * cluster that the group crosses; at the last depth every member is a part by itself. Members are
 * numbered by turn (place), so a part is a range of turns.
 *
 * A reduction goes from the last depth to 0, and what a member holds at a depth are elements
 * combined over its part: HOLDINGS. At depth 0 they are the target, given. At depth d + 1 it holds
 * its holdings of depth d, and of what each sibling part (beside its own, in the same part of depth
 * d) holds at depth d an equal share with the others of its part. So at the last depth it holds
 * everything, which is its operand. Gathering goes the other way.
 */
#ifndef SW_TRANSPORT_HIERARCHY_H
#define SW_TRANSPORT_HIERARCHY_H

#include "transport/algorithm.h"

typedef SW_VEC(sw_span) sw_spans;

typedef struct sw_hierarchy {
	const sw_task *task;
	int32_t depths;                  /* the last depth */
	int32_t level[SW_MAX_LEVELS];    /* of the cluster, at which depth d is split */
	int32_t *end[SW_MAX_LEVELS + 1]; /* [depth][turn]: one past the last turn of its part */
	int32_t *begin[SW_MAX_LEVELS + 1];
} sw_hierarchy;

void sw_hierarchy_init(sw_hierarchy *h, const sw_task *task);
void sw_hierarchy_clear(sw_hierarchy *h);
/* Parts of depth + 1 within one part of depth: the one after the part that begins at `turn`. */
static inline int32_t sw_hierarchy_next(const sw_hierarchy *h, int32_t depth, int32_t turn)
{
	return h->end[depth + 1][turn];
}
/* Shares of `whole` by turn, [n]: parts get in proportion to what their links let through
 * (weights), members of a part alike. */
void sw_hierarchy_share(const sw_hierarchy *h, sw_span whole, sw_span *shares);

/* [depth][turn], from the targets by turn. */
typedef struct sw_holdings {
	const sw_hierarchy *hierarchy;
	sw_spans *spans;
} sw_holdings;
void sw_holdings_init(sw_holdings *holdings, const sw_hierarchy *h, const sw_span *targets);
void sw_holdings_clear(sw_holdings *holdings);
static inline const sw_spans *sw_holdings_at(const sw_holdings *holdings, int32_t depth,
                                             int32_t turn)
{
	return &holdings->spans[(int64_t)depth * holdings->hierarchy->task->n + turn];
}
/* An all-reduce of little: hierarchical_small.c. */
sw_algorithm_fn sw_hierarchical_small_all_reduce;

int64_t sw_spans_length(const sw_spans *spans);
/* What both have, in the order of a. `into` is emptied first. */
void sw_spans_common(const sw_spans *a, const sw_spans *b, sw_spans *into);

#endif
