/*
 * Local search on a core: an assignment with its usage and, per strategy, its cost given all
 * neighbours; moves are exact and can be taken back. Private to solve.
 */
#ifndef SW_SOLVE_SEARCH_H
#define SW_SOLVE_SEARCH_H

#include "solve/core.h"

typedef struct search_change {
	int32_t node, before;
} search_change;

typedef struct search {
	const core *c;
	sw_rng rng;
	int32_t *x;
	int64_t *field; /* per strategy: its cost with the neighbours' choices, penalties included */
	int64_t *used;  /* per moment */
	int64_t cost;   /* penalties included, without the core's constant */
	wide over;      /* sum over moments of what exceeds the capacity */
	int64_t penalty; /* for a forbidden pair: more than any allowed difference, unless that overflows */
	int64_t forbidden; /* pairs chosen now */
	SW_VEC(search_change) journal;
	struct forest *forest;
	SW_VEC(int32_t) block; /* the region chosen last */
	int32_t *rank;         /* per node: its place in it, or -1 */
	double *price; /* per moment: what usage costs in tree moves */
	const int32_t *other[2]; /* NULL, or assignments that are cheaper but perhaps not valid */
	int64_t work, work_limit;
	int64_t target; /* valid and at most this: nothing is left to gain */
	const volatile bool *stop;
	double deadline_s; /* 0: none */
} search;

void search_init(search *s, const core *c, const int32_t *start, const double *price, uint64_t seed);
void search_clear(search *s);
void search_move(search *s, int32_t node, int32_t strategy); /* journalled */
void search_undo(search *s, size_t journal_length);
/* Whether the change keeps every moment that it raises within the capacity. May say no too often for
 * nodes with several spans, never yes wrongly. */
bool search_fits(const search *s, int32_t node, int32_t strategy);
void search_descend(search *s); /* single nodes, until none improves; journalled */
bool search_descend_node(search *s, int32_t node);
static inline bool search_valid(const search *s)
{
	return s->over == 0 && s->forbidden == 0;
}
bool search_done(const search *s);

/* ---- forest.c: exact minimisation over an induced forest, the rest fixed ---------------------------- */

typedef struct forest forest;
forest *forest_new(const core *c);
void forest_free(forest *f);
/* A random induced forest of about `size` nodes around `seed`, or over everything if seed < 0; without
 * the node `barred` unless that is -1. */
void forest_choose(search *s, int32_t seed, int32_t size, int32_t barred);
/* Minimises over it with prices times `scale`, and moves there. Returns how many nodes changed. */
int32_t forest_optimise(search *s, double scale);
void forest_descend(search *s); /* single nodes of the forest chosen last */

/* ---- block.c: exact minimisation over a compact region, the rest fixed ------------------------------- */

void block_choose(search *s, int32_t seed, int32_t size);
/* False, and nothing moved, if the region's treewidth is too large. */
bool block_optimise(search *s, double scale);
void block_descend(search *s);

/* ---- repair.c, improve.c ----------------------------------------------------------------------------- */

/* Towards an assignment within capacity and without forbidden pairs; true if found. */
bool search_repair(search *s, int64_t work_limit);
/* From a valid assignment, better valid ones, until the work limit. */
void search_improve(search *s, int64_t work_limit);

#endif
