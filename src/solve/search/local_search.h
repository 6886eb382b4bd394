/*
 * Local search on a core: an assignment with, per strategy, its cost given all neighbours; moves
 * are exact and can be taken back. Private to solve.
 *
 * Only the points that proved binding are WATCHED from move to move: usually some hundred out of
 * thousands, which makes a move that much cheaper. search_verify looks at all of them, and watches
 * those from then on at which the assignment turned out to exceed the capacity; nothing is taken
 * for valid without it.
 */
#ifndef SW_SOLVE_LOCAL_SEARCH_H
#define SW_SOLVE_LOCAL_SEARCH_H

#include "solve/graph/packed_core.h"
#include "solve/graph/halt.h"

typedef struct search_change {
	int32_t node, before;
} search_change;

/* What a node uses at a run of watched points. Those of one node are disjoint and ascending. */
typedef struct watch_span {
	int32_t begin, end;   /* places among the watched points */
	const int64_t *usage; /* per strategy */
} watch_span;

typedef struct watching {
	sw_arena arena;
	int32_t count;
	int32_t *point; /* ascending */
	int64_t *spare; /* capacity less usage; negative where it is exceeded */
	/* sum of search.extra over the watched points before it; one more at the end */
	double *extra_before;
	int32_t *first; /* per node: its spans */
	watch_span *spans;
} watching;

typedef struct local_search {
	const core *c;
	sw_rng rng;
	int32_t *x;
	/* per strategy: its cost with the neighbours' choices, penalties included */
	int64_t *field;
	int64_t cost; /* penalties included, without the core's constant */
	/* for a forbidden pair: more than any allowed difference, unless that overflows */
	int64_t penalty;
	int64_t forbidden; /* pairs chosen now */
	watching watch;
	wide over;     /* sum over the watched points of what exceeds the capacity */
	bool verified; /* no usage has changed since search_verify found none exceeded */
	SW_VEC(search_change) journal;
	double *priced;        /* per strategy: its usage at the prices of the bound */
	double *extra;         /* per point: prices on top of those, for repairs */
	const double *reduced; /* NULL, or per strategy: its reduced cost by the bound. Set after
	                          search_init */
	struct induced_forest *forest;
	struct block_region *block;
	int64_t work, work_limit;
	int64_t target; /* valid and at most this: nothing is left to gain */
	halt halt;
} local_search;

/* `price` per point, or NULL for none. */
void search_init(local_search *s, const core *c, const int32_t *start, const double *price,
                 uint64_t seed);
void search_clear(local_search *s);
void search_move(local_search *s, int32_t node, int32_t strategy); /* journalled */
void search_undo(local_search *s, size_t journal_length);
void search_descend(local_search *s); /* single nodes, until none improves; journalled */
bool search_descend_node(local_search *s, int32_t node);
/* What a strategy's usage costs: at the bound's prices times `scale`, and at the extra ones. */
int64_t search_price(const local_search *s, int32_t node, int32_t strategy, double scale);
static inline int64_t search_penalised(const local_search *s, int64_t cost)
{
	return cost == SW_FORBIDDEN ? s->penalty : cost;
}
/* As far as the watched points tell. After search_repair and search_improve they tell all. */
static inline bool search_valid(const local_search *s)
{
	return s->over == 0 && s->forbidden == 0;
}
bool search_done(const local_search *s);

/* ---- watched_points.c ---------------------------------------------------------------- */

/* True if no point at all is above its capacity; else the worst of them are watched from now on.
 */
bool search_verify(local_search *s);
void search_watch_clear(local_search *s);
/* To be called after search.extra was changed. */
void search_sum_extra(local_search *s);
void search_clear_extra(local_search *s);

/* ---- tree_moves.c: exact minimisation over an induced forest, the rest fixed --------- */

typedef struct induced_forest induced_forest;
induced_forest *forest_new(const core *c);
void forest_free(induced_forest *f);
/* A random induced forest of about `size` nodes around `seed`, or over everything if seed < 0. */
void forest_choose(local_search *s, int32_t seed, int32_t size);
/* Minimises over it with prices times `scale`, and moves there. */
void forest_optimise(local_search *s, double scale);
void forest_descend(local_search *s); /* single nodes of the forest chosen last */

/* ---- block_moves.c: exact minimisation over a region with few strategies each; see block_moves.h
 * --- */

typedef struct block_region block_region;
block_region *block_new(const core *c);
void block_free(block_region *b);

/* ---- repair_assignment.c, improve_assignment.c --------------------------------------- */

/* Towards an assignment within capacity and without forbidden pairs; true if found. A valid one
 * that is not far from the target stays as it is. */
bool search_repair(local_search *s, int64_t work_limit);
/* The same, whatever the assignment is now: it only says where to begin. */
bool search_restart(local_search *s, int64_t work_limit);
/* From a valid assignment, better valid ones, until the work limit. */
void search_improve(local_search *s, int64_t work_limit);

#endif
