/*
 * hierarchy: the members of a group by their places in the cluster, and which elements each of them
 * holds when a collective proceeds level by level. Private to src/transport.
 *
 * DEPTH 0 is the whole group. Each following depth splits the parts of the previous one at the next
 * level of the cluster that the group crosses; at the last depth every member is a part by itself.
 * Members are numbered by vrank, so a part is a range of vranks.
 *
 * A reduction goes from the last depth to 0. The elements that a member has combined over its part
 * at a depth are its HOLDINGS. At depth 0 they are the given targets. At depth d + 1 a member holds
 * its holdings of depth d; in addition, of the holdings at depth d of each sibling part (another
 * part of depth d + 1 in the same part of depth d), it holds an equal share with the other members
 * of its own part. So at the last depth it holds everything, which is its operand. A gathering goes
 * in the opposite direction.
 */
#ifndef SW_TRANSPORT_HIERARCHY_H
#define SW_TRANSPORT_HIERARCHY_H

#include "transport/algorithm.h"

typedef SW_VEC(sw_element_span) sw_element_spans;

typedef struct sw_hierarchy {
	const sw_task *task;
	int32_t depths;                  /* the last depth */
	int32_t level[SW_MAX_LEVELS];    /* level of the cluster at which depth d is split */
	int32_t *end[SW_MAX_LEVELS + 1]; /* [depth][vrank]: one past the last vrank of its part */
	int32_t *begin[SW_MAX_LEVELS + 1];
} sw_hierarchy;

void sw_hierarchy_init(sw_hierarchy *h, const sw_task *task);
void sw_hierarchy_clear(sw_hierarchy *h);
/* Return the part of depth + 1 that follows the one beginning at `vrank`, within one part of
 * depth. */
static inline int32_t sw_hierarchy_next(const sw_hierarchy *h, int32_t depth, int32_t vrank)
{
	return h->end[depth + 1][vrank];
}
/* Divide `whole` into shares by vrank, [n]. Parts get shares in proportion to the bandwidth of
 * their links (weights), members of a part equal ones. */
void sw_hierarchy_share(const sw_hierarchy *h, sw_element_span whole, sw_element_span *shares);

/* The holdings [depth][vrank] that follow from the targets by vrank. */
typedef struct sw_holdings {
	const sw_hierarchy *hierarchy;
	sw_element_spans *spans;
} sw_holdings;
void sw_holdings_init(sw_holdings *holdings, const sw_hierarchy *h, const sw_element_span *targets);
void sw_holdings_clear(sw_holdings *holdings);
static inline const sw_element_spans *sw_holdings_at(const sw_holdings *holdings, int32_t depth,
                                                     int32_t vrank)
{
	return &holdings->spans[(int64_t)depth * holdings->hierarchy->task->n + vrank];
}
/* An all-reduce of small operands is in hierarchical_small.c, an all-to-all in
 * hierarchical_exchange.c. */
sw_algorithm_fn sw_hierarchical_small_all_reduce, sw_hierarchical_all_to_all;

int64_t sw_spans_length(const sw_element_spans *spans);
/* Set `into` to the intersection of a and b, in the order of a. */
void sw_spans_common(const sw_element_spans *a, const sw_element_spans *b, sw_element_spans *into);

#endif
