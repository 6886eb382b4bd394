/*
 * Block moves: a region is minimised exactly, cycles and all, by elimination of its nodes one after
 * the other (Dechter 1999), the rest fixed. To keep that cheap each node may choose among few
 * strategies, those of small reduced cost, and nodes that would make a table too large keep theirs.
 * What the reduced costs leave is so sparse that a block often spans most of the core. Private to
 * solve.
 *
 * block_moves.c chooses the region and what its nodes may choose; block_order.c the order;
 * block_tables.c does the sums. Nodes are numbered within the region, in the order in which they
 * joined it.
 */
#ifndef SW_SOLVE_BLOCK_MOVES_H
#define SW_SOLVE_BLOCK_MOVES_H

#include "base/heap.h"
#include "solve/search/local_search.h"

/* Instead of a position in the order. */
#define BLOCK_HELD (-1)
#define BLOCK_WAITING (-2)

/* Costs over some nodes; the one eliminated first owns the slowest digit, and so on. */
typedef struct block_factor {
	int32_t next; /* of those summed at the same elimination; -1 ends */
	int32_t count;
	const int32_t *nodes;
	int64_t *cost;
} block_factor;

struct block_region {
	int32_t n_core; /* nodes of the core */
	int_list nodes; /* their numbers in the core */
	int32_t *rank;  /* per node of the core: its number, or -1 */
	/* per strategy of the core: each node's, least reduced cost first; or NULL */
	int32_t *ranked;
	int_list first, offered; /* per node: the strategies it may choose, offered[first[v]] .. */
	SW_VEC(double) keys;     /* of one node's strategies, to choose from */
	/* the order */
	/* per node; from its elimination on those eliminated later, in the order */
	int_list *neighbours;
	int32_t *position; /* in it, or BLOCK_HELD */
	int32_t *order, eliminated;
	double *hold_priority; /* per node: the larger, the sooner it is held */
	sw_heap heap;          /* with stale entries */
	int32_t *mark, stamp;
	/* the tables */
	SW_VEC(block_factor) factors;
	size_t n_pairs;       /* the first factors are edges: */
	int32_t *bucket;      /* per node: the factors summed at its elimination */
	int_list ends;        /* of the edges */
	SW_VEC(int64_t) pool; /* all tables */
	int64_t *own;         /* per strategy offered: its cost without the edges in the region */
	int64_t *value;       /* that with the price of its usage */
	int64_t *made;        /* where the tables begin that eliminations make */
	int64_t *sum;         /* room for one of them */
	int32_t *chosen;      /* per node: which of those offered */
};

static inline int32_t block_choices(const block_region *b, int32_t node)
{
	return b->first.data[node + 1] - b->first.data[node];
}

/* Entries of the table that a node's elimination makes. */
static inline int64_t block_entries(const block_region *b, int32_t node)
{
	int64_t entries = 1;
	for (size_t k = 0; k < b->neighbours[node].len; k++)
		entries *= block_choices(b, b->neighbours[node].data[k]);
	return entries;
}

/* ---- block_moves.c: what a move consists of, in the order of calls ------------------- */

/* The region: nodes around `seed`; those numbered on from it; or large users of a watched point.
 */
void block_around(local_search *s, int32_t seed, int32_t size);
void block_range(local_search *s, int32_t seed, int32_t size);
void block_users(local_search *s, int32_t point, int32_t size);
/* What the region's nodes may choose: the present strategy and up to `most` - 1 others whose
 * reduced cost is at most `slack`; or the present one and another assignment's. */
void block_offer(local_search *s, int32_t most, double slack);
void block_offer_other(local_search *s, const int32_t *other);
/* Which nodes are free, and the tables: none has more than about `table` entries. */
void block_plan(local_search *s, double table);
/* Offers and plans with limits drawn at random, the slack from a wide range below `gap`: which are
 * best differs from problem to problem, and from one region to another. */
void block_prepare(local_search *s, double gap);
/* Minimises with prices times `scale`, and moves there. */
void block_optimise(local_search *s, double scale);
/* Back to `mark`, where the plan was made, and again, with what is exceeded at extra prices, until
 * nothing is. They are such that all capacity of the points exceeded costs `worth` more the first
 * time, and twice as much each time. */
void block_settle(local_search *s, size_t mark, double scale, double capacity_price);
void block_descend(local_search *s);

/* ---- block_order.c, block_tables.c --------------------------------------------------- */

/* Least table first. A node whose table would have more than `table` entries loses neighbours:
 * those of most neighbours are held. */
void block_order(local_search *s, double table);
/* Packs the edges and own costs for an order. The state must be the same when block_sum is called.
 */
void block_pack(local_search *s);
/* Fills b->chosen. */
void block_sum(local_search *s, double scale);

#endif
