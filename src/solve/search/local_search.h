/*
 * Local search on a core: an assignment and, per strategy, its cost given all neighbours; moves are
 * exact and can be undone. Private to solve.
 *
 * Only the points that proved binding are WATCHED from move to move: usually some hundred out of
 * thousands, which makes a move that much cheaper. search_verify checks all points, and watches
 * from then on those at which the assignment exceeds the capacity; an assignment counts as valid
 * only after it.
 */
#ifndef SW_SOLVE_LOCAL_SEARCH_H
#define SW_SOLVE_LOCAL_SEARCH_H

#include "solve/graph/packed_core.h"
#include "solve/graph/halt.h"

typedef struct search_change {
	int32_t node, before;
} search_change;

/* The usages of a node at a run of watched points. The spans of one node are disjoint and
 * ascending. */
typedef struct watch_span {
	int32_t begin, end;   /* indices of watched points */
	const int64_t *usage; /* per strategy */
} watch_span;

typedef struct watching {
	sw_arena arena;
	int32_t count;
	int32_t *point; /* ascending */
	int64_t *spare; /* capacity less usage; negative where it is exceeded */
	/* sum of extra prices (local_search.extra) over the watched points before it; one more at
	 * the end */
	double *extra_before;
	int32_t *first; /* per node: its spans */
	watch_span *spans;
} watching;

typedef struct local_search {
	const core *c;
	sw_rng rng;
	int32_t *x;
	/* per strategy: its cost given the neighbours' strategies, penalties included */
	int64_t *field;
	int64_t cost; /* penalties included, without the core's constant */
	/* cost of a forbidden pair: more than any difference of allowed costs, unless that
	 * overflows */
	int64_t penalty;
	int64_t forbidden; /* forbidden pairs chosen now */
	watching watch;
	wide over;     /* sum over the watched points of the usage above the capacity */
	bool verified; /* search_verify found no point exceeded, and no usage has changed since */
	SW_VEC(search_change) journal;
	double *priced; /* per strategy: the price of its usage in the bound */
	double *extra;  /* per point: extra prices of repairs, on top of the bound's */
	/* NULL, or per strategy: its reduced cost in the bound. Set after search_init */
	const double *reduced;
	struct induced_forest *forest;
	struct block_region *block;
	int64_t work, work_limit;
	int64_t target; /* a valid assignment of at most this cost ends the search */
	halt halt;
} local_search;

/* `price` per point, or NULL for none. The core must outlive the search. */
void search_init(local_search *s, const core *c, const int32_t *start, const double *price,
                 uint64_t seed);
void search_clear(local_search *s);
void search_move(local_search *s, int32_t node, int32_t strategy); /* recorded in the journal */
void search_undo(local_search *s, size_t journal_length);
/* single nodes until none improves; recorded in the journal */
void search_descend(local_search *s);
bool search_descend_node(local_search *s, int32_t node);
/* The price of a strategy's usage: the bound's times `scale`, plus the extra ones. */
int64_t search_price(const local_search *s, int32_t node, int32_t strategy, double scale);
static inline int64_t search_penalised(const local_search *s, int64_t cost)
{
	return cost == SW_FORBIDDEN ? s->penalty : cost;
}
/* Whether the assignment is valid at the watched points; after search_repair and search_improve at
 * all points. */
static inline bool search_valid(const local_search *s)
{
	return s->over == 0 && s->forbidden == 0;
}
bool search_done(const local_search *s);

/* ---- watched_points.c ------------------------------------------------------------------- */

/* True if no point exceeds its capacity; else the worst points are watched from now on. */
bool search_verify(local_search *s);
void search_watch_clear(local_search *s);
/* Recompute extra_before after local_search.extra was changed. */
void search_sum_extra(local_search *s);
void search_clear_extra(local_search *s);

/* ---- tree_moves.c: exact minimisation over an induced forest, the other nodes fixed ----- */

typedef struct induced_forest induced_forest;
induced_forest *forest_new(const core *c);
void forest_free(induced_forest *f);
/* Choose a random induced forest of about `size` nodes around `seed`, or over all nodes if seed <
 * 0. */
void forest_choose(local_search *s, int32_t seed, int32_t size);
/* Minimise over it with prices times `scale`, and move to the minimum. */
void forest_optimise(local_search *s, double scale);
void forest_descend(local_search *s); /* single nodes of the last forest */

/* ---- block_moves.c: exact minimisation over a region, a few strategies per node --------- */

typedef struct block_region block_region;
block_region *block_new(const core *c);
void block_free(block_region *b);

/* ---- repair_assignment.c, improve_assignment.c ------------------------------------------ */

/* Move towards an assignment within the capacity and without forbidden pairs; true if one was
 * found. A valid one that is not far above the target stays as it is. */
bool search_repair(local_search *s, int64_t work_limit);
/* The same from any assignment, also a valid one, which only says where to begin. */
bool search_restart(local_search *s, int64_t work_limit);
/* Improve a valid assignment until the work limit. */
void search_improve(local_search *s, int64_t work_limit);

#endif
