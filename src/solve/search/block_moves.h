/*
 * Block moves: a region is minimised exactly, cycles included, by elimination of its nodes one
 * after the other (Dechter 1999), while all other nodes keep their strategies. To keep that cheap
 * each node may choose among a few strategies only, those of small reduced cost, and nodes that
 * would make a table too large are held: they keep theirs. The problem that the reduced costs leave
 * is so sparse that a block often spans most of the core. Private to solve.
 *
 * block_moves.c chooses the region and the strategies offered to its nodes; block_order.c the order
 * of elimination; block_tables.c computes the tables. Nodes are numbered within the region, in the
 * order in which they joined it.
 */
#ifndef SW_SOLVE_BLOCK_MOVES_H
#define SW_SOLVE_BLOCK_MOVES_H

#include "base/heap.h"
#include "solve/search/local_search.h"

/* Values in place of a position in the order. */
#define BLOCK_HELD (-1)
#define BLOCK_WAITING (-2)

/* Costs over some nodes; the one eliminated first has the slowest digit, and so on. */
typedef struct block_factor {
	int32_t next; /* the next factor summed at the same elimination; -1 ends */
	int32_t count;
	const int32_t *nodes;
	int64_t *cost;
} block_factor;

struct block_region {
	int32_t n_core; /* nodes of the core */
	int_list nodes; /* their numbers in the core */
	int32_t *rank;  /* per node of the core: its number, or -1 */
	/* NULL, or each node's strategies, least reduced cost first; indexed like the core's
	 * strategies */
	int32_t *ranked;
	/* per node: the strategies that it may choose begin at offered[first[v]] */
	int_list first, offered;
	SW_VEC(double) keys; /* sort keys of one node's strategies */

	/* The order. */

	/* per node; from its elimination on those that are eliminated later, in the order */
	int_list *neighbours;
	int32_t *position; /* in the order, or BLOCK_HELD */
	int32_t *order, eliminated;
	double *hold_priority; /* per node, random: the larger, the sooner it is held */
	sw_heap heap;          /* by table size; it may hold outdated entries */
	int32_t *mark, stamp;

	/* The tables. */

	SW_VEC(block_factor) factors;
	size_t n_pairs;       /* the first factors are the edges in the region */
	int32_t *bucket;      /* per node: the factors summed at its elimination */
	int_list ends;        /* of those edges */
	SW_VEC(int64_t) pool; /* holds all tables */
	int64_t *own;         /* per strategy offered: its cost without the edges in the region */
	int64_t *value;       /* the same with the price of its usage */
	int64_t *made;        /* where the tables that eliminations make begin */
	int64_t *sum;         /* workspace for one of them */
	int32_t *chosen;      /* per node: index among its offered strategies */
};

static inline int32_t block_choices(const block_region *b, int32_t node)
{
	return b->first.data[node + 1] - b->first.data[node];
}

/* Entries of the table that the elimination of a node makes. */
static inline int64_t block_entries(const block_region *b, int32_t node)
{
	int64_t entries = 1;
	for (size_t k = 0; k < b->neighbours[node].len; k++)
		entries *= block_choices(b, b->neighbours[node].data[k]);
	return entries;
}

/* ---- block_moves.c: the parts of a move, in the order of calls -------------------------- */

/* Choose the region: nodes around `seed`; those numbered from it on; or nodes of large usage at a
 * watched point. */
void block_around(local_search *s, int32_t seed, int32_t size);
void block_range(local_search *s, int32_t seed, int32_t size);
void block_users(local_search *s, int32_t point, int32_t size);
/* Offer the region's nodes their present strategy and up to `most` - 1 others of reduced cost at
 * most `slack`; or the present one and that of another assignment. */
void block_offer(local_search *s, int32_t most, double slack);
void block_offer_other(local_search *s, const int32_t *other);
/* Choose which nodes are free, and prepare the tables, of which none has more than about `table`
 * entries. */
void block_plan(local_search *s, double table);
/* Offer and plan with limits drawn at random, the reduced cost from a wide range below `gap`: the
 * best limits differ from problem to problem, and from region to region. */
void block_prepare(local_search *s, double gap);
/* Minimise with prices times `scale`, and move to the minimum. */
void block_optimise(local_search *s, double scale);
/* Return to `mark`, where the plan was made, and minimise again with extra prices at the points
 * that are exceeded, until none is. The first time the whole capacity of those points becomes
 * dearer by capacity_price together, and by twice as much each later time. */
void block_settle(local_search *s, size_t mark, double scale, double capacity_price);
void block_descend(local_search *s);

/* ---- block_order.c, block_tables.c ------------------------------------------------------ */

/* Choose the order: the smallest table first. Where a table would have more than `table` entries,
 * the node or one of its neighbours is held, mostly the one of most neighbours. */
void block_order(local_search *s, double table);
/* Pack the edges and the nodes' own costs in that order. The assignment must be the same when
 * block_sum is called. */
void block_pack(local_search *s);
/* Sum up, and fill b->chosen. */
void block_sum(local_search *s, double scale);

#endif
