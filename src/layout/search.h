/*
 * search: the cheapest redistribution path. Private to src/layout.
 *
 *   units.c     atoms -> units: what moves as one, and the states a unit may be in
 *   prices.c    seconds and bytes of every (move kind, units, split units): tables that many
 * searches share bound.c     how far a layout is from the target at least, digits' places ignored:
 * exact distances in the graph of kinds (B, P, split at home, split elsewhere), shared like the
 * prices plain_paths.c   paths that are there without a search, over atoms search.c    A* over the
 * layouts, guided by that bound all_pairs.c   the same for all pairs of many layouts at once, in
 * seconds only redistribute.c  the steps in order, the path written out, and the cache
 *
 * A unit's state is a byte: 0 is B, 1 is P, 2 + i is tuple i of the unit's class. A class holds the
 * units whose atoms have the same sizes; they share their tuples, so that a PERMUTE moves the bytes
 * as they are.
 */
#ifndef SW_LAYOUT_SEARCH_H
#define SW_LAYOUT_SEARCH_H

#include "layout/digits.h"

#include <math.h>

#define MAX_UNITS 7
#define FINE_UNITS 4 /* up to here the search is finished, over all permutations */
#define FEW_UNITS                                                                                  \
	2 /* up to here every place is tried; up to FINE_UNITS where there are FEW_TUPLES */
#define SINGLE_ATOMS 5  /* up to here each atom is a unit, and a move acts on any set of them */
#define MAX_TUPLES 60   /* per class */
#define FEW_TUPLES 12   /* so few are all tried for as many as FINE_UNITS */
#define MAX_DIGITS 64   /* distinct (dim, stride, size): bits of a word */
#define MAX_MASKS 48    /* sets of units that a move may act on */
#define FIRST_WORK 1000 /* layouts created or met by the search that stays near the bound ... */
#define DIVE_WORK 3000  /* ... by each dive where that was too little ... */
#define MAX_WORK                                                                                   \
	20000 /* ... and by the search that finishes it, with at most FINE_UNITS: a few            \
	         milliseconds ... */
#define ALL_WORK                                                                                   \
	1000000 /* ... or, where all places are tried: only the strangest prices take a tenth of   \
	           it */
#define UNIT_B 0
#define UNIT_P 1
#define UNIT_S 2 /* and above */

/* Time in whole picoseconds (exact in a double up to 2.5 hours), then moves, then bytes sent: the
 * order of paths. */
typedef struct path_cost {
	double ps;
	int64_t moves, payload;
} path_cost;

static inline path_cost cost_add(path_cost a, path_cost b)
{
	return (path_cost){a.ps + b.ps, a.moves + b.moves, a.payload + b.payload};
}

static inline bool cost_less(path_cost a, path_cost b)
{
	if (a.ps != b.ps)
		return a.ps < b.ps;
	return a.moves != b.moves ? a.moves < b.moves : a.payload < b.payload;
}

/* ---- units ------------------------------------------------------------------------------ */

typedef struct unit {
	uint32_t atoms;
	int32_t n, atom[SW_MAX_ATOMS]; /* ascending */
	int32_t class;
} unit;

typedef struct split_digit {
	int32_t dim, size;
	int64_t stride;
} split_digit;

/* One way to split a class's atoms: the digit of each, in their order. */
typedef struct tuple {
	uint64_t digits, fits; /* bits of the digits; digits that nest with all of them */
	/* its digits may be in front of local data: a transpose can be spared */
	bool leads;
	/* they never are, and nest with all that from and to have: as good as any other such tuple
	 */
	bool spare;
	uint8_t digit[SW_MAX_ATOMS];
} tuple;

typedef struct unit_class {
	int32_t n, size[SW_MAX_ATOMS]; /* atoms of each unit, and their sizes */
	int64_t product;
	int32_t n_named, n_tuples; /* those of from and to come first, then plain ones */
	bool has_spares;           /* as many that nest with one another as a search can need */
	tuple tuples[MAX_TUPLES];
} unit_class;

/* One redistribution, written in units. */
typedef struct problem {
	const sw_atoms *atoms;
	sw_shape shape;
	const sw_layout *from, *to;
	sw_monoid monoid;
	int32_t n_units, n_classes, n_digits, n_masks;
	unit units[MAX_UNITS];
	int8_t unit_of[SW_MAX_ATOMS]; /* -1: frozen */
	unit_class classes[MAX_UNITS];
	/* by dim, then by descending stride: the order of local data */
	split_digit digits[MAX_DIGITS];
	uint64_t fits[MAX_DIGITS]; /* per digit: those that nest with it */
	uint64_t frozen_digits;    /* of atoms outside all units; they keep their state */
	uint64_t goal_room;        /* digits that nest with all of the target's */
	uint32_t frozen;
	int64_t bytes;            /* of the tensor over the frozen split atoms */
	uint8_t masks[MAX_MASKS]; /* sets of units that a move may act on */
	uint8_t start[MAX_UNITS], goal[MAX_UNITS];
	/* the one split that the bound knows: the target's, or else the start's; UNIT_B: neither is
	 * one */
	uint8_t home[MAX_UNITS];
	uint32_t may_be_partial; /* units that some move may make P, or that are */
	uint32_t to_partial;     /* units that TO_PARTIAL may act on */
	bool thorough;           /* try every plain tuple */
} problem;

void problem_init(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *from,
                  const sw_layout *to);
/* All layouts of a list (over at most SINGLE_ATOMS atoms, each a unit) in one problem without start
 * and goal: the states of their units, and the tuples that they name. False if there is no room for
 * so many. */
bool problem_init_among(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *layouts,
                        int32_t n, uint8_t (*states)[8]);

static inline const tuple *unit_tuple(const problem *p, int32_t u, uint8_t state)
{
	return &p->classes[p->units[u].class].tuples[state - UNIT_S];
}

/* ---- prices ----------------------------------------------------------------------------- */

#define NO_WAY ((double)INFINITY)

typedef struct price {
	double ps; /* NAN: not asked yet; NO_WAY: too much memory, or the model says so */
	int64_t payload;
} price;

/* Of one move, transposes excluded. */
price price_move(const sw_redistribution *how, sw_move_kind kind, uint32_t atoms, int64_t operand,
                 int64_t result);
/* Picoseconds of a transpose of so many bytes; NO_WAY where memory does not hold them twice. */
double transpose_ps(const sw_redistribution *how, int64_t bytes);

/* A permutation of units within their classes, without the identity. */
typedef struct permutation {
	uint32_t moved;
	uint8_t to[MAX_UNITS];
} permutation;

#define MAX_PERMUTATIONS 24

/* Shared by all redistributions of as many bytes over the same units. */
typedef struct prices {
	const sw_redistribution *how;
	int32_t n_units, n_masks, n_permutations;
	uint32_t atoms_of[1 << MAX_UNITS]; /* set of units -> its atoms */
	int64_t group_of[1 << MAX_UNITS];  /* set of units -> devices that differ in it */
	int64_t bytes_of[1 << MAX_UNITS];  /* set of split units -> local bytes */
	uint8_t masks[MAX_MASKS];
	permutation permutations[MAX_PERMUTATIONS]; /* by ascending `moved` */
	int32_t n_levels;
	/* set of split units -> number of its bytes among the different ones */
	uint8_t level_of[1 << MAX_UNITS];
	/* set of split units -> picoseconds of a transpose, or NO_WAY */
	double transpose_of[1 << MAX_UNITS];
	/* [kind][set of units] -> [level before]; NULL: nothing asked yet */
	price *rows[SW_MOVE_COUNT][1 << MAX_UNITS];
	sw_arena *arena;
} prices;

/* Adds the tables for this problem to the arena. */
prices *prices_new(const sw_redistribution *how, const problem *p, sw_arena *arena);
/* A move of `kind` on the units of the mask, with `split` the units that are split before it;
 * transposes excluded. */
price prices_ask(prices *table, sw_move_kind kind, uint32_t mask, uint32_t split);
static inline price prices_get(prices *table, sw_move_kind kind, uint32_t mask, uint32_t split)
{
	const price *row = table->rows[kind][mask];
	if (row && !isnan(row[table->level_of[split]].ps))
		return row[table->level_of[split]];
	return prices_ask(table, kind, mask, split);
}
/* Units that are split afterwards. PERMUTE is not asked. */
uint32_t split_after(sw_move_kind kind, uint32_t mask, uint32_t split);

/* ---- the bound -------------------------------------------------------------------------- */

/* What the bound sees of a unit's state. A code has bit 0 of each unit's kind, then bit 1 of each.
 * HOME: split as problem.home says; AWAY: otherwise. */
enum { KIND_B, KIND_P, KIND_HOME, KIND_AWAY };

typedef struct bound_entry {
	path_cost cost;
	int32_t code;
} bound_entry;

/* Distances to the goal, found backwards from there as far as they are asked for: the nearest codes
 * first. */
typedef struct bound {
	prices *table;
	int32_t n_units;
	bool exact; /* up to FINE_UNITS; with more, ways on which a unit leaves the target's digits,
	             * or is exchanged to another wrong place, are left out: hardly ever the
	             * nearest, and most of the work */
	/* never_lead: homes that are never in front of local data */
	uint32_t leaves_home, never_lead, to_partial, may_be_partial;
	path_cost *least; /* [code]: of any way to the target; final where done */
	bool *done;
	SW_VEC(bound_entry) heap;
} bound;

/* O(4^units); each code settled costs O(masks * 2^units). Shared by problems with the same
 * bound_key. */
void bound_begin(bound *b, prices *table, const problem *p);
void bound_end(bound *b);
/* At least what the way from this code costs: exactly that where it is at most `most_ps`, else
 * something above that; ps NO_WAY: there is none. */
path_cost bound_at(bound *b, int32_t code, double most_ps);

static inline uint32_t kind_of(const problem *p, int32_t u, uint8_t state)
{
	return state < UNIT_S ? state : state == p->home[u] ? KIND_HOME : KIND_AWAY;
}

static inline uint32_t never_leading(const problem *p)
{
	uint32_t mask = 0;
	for (int32_t u = 0; u < p->n_units; u++)
		mask |= (uint32_t)(p->home[u] >= UNIT_S && !unit_tuple(p, u, p->home[u])->leads)
		        << u;
	return mask;
}

/* ---- searching -------------------------------------------------------------------------- */

typedef struct node {
	uint8_t state[8];        /* of the units; the rest 0 */
	path_cost so_far, total; /* total: with the bound */
	int32_t parent;
	uint32_t mask;
	uint8_t kind, permutation;
	bool closed;
} node;

/* A node that waits, with its cost when it was put there: a node that was improved since waits
 * twice. */
typedef struct open_node {
	path_cost total;
	int32_t depth, number;
} open_node;

/* What a search needs besides the problem; kept from one to the next. */
typedef struct workspace {
	SW_VEC(node) nodes;
	SW_VEC(open_node) heap; /* the best first */
	int32_t *slots;         /* hash of states -> node number + 1 */
	size_t n_slots;
} workspace;

void workspace_clear(workspace *work);
/* A path as the nodes from the start to the goal, each the parent of the next. */
typedef struct best_path {
	int32_t n; /* nodes; 0: none */
	path_cost cost;
	node nodes[SW_MAX_MOVES + 1];
} best_path;

/* Finds the cheapest path where that is near the bound, and makes it *best; false if the work did
 * not suffice to tell. */
bool search_near(workspace *work, const problem *p, prices *table, bound *least, best_path *best);
/* Replaces *best (whose nodes may be none: a cost to beat) by what is cheaper; up to FINE_UNITS
 * seldom fails to find the cheapest. */
void search_harder(workspace *work, const problem *p, prices *table, bound *least, best_path *best);

/* The cheapest of the paths that need no search: one move; gather and reduce all that changes, then
 * slice; each atom by its own move; reduce-scatter, all-to-all, all-gather. Over atoms, not units.
 * NO_WAY if none is possible. O(rank * atoms^2). */
path_cost plain_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                     const sw_layout *to, sw_path *path);

/* Does a move of these states need a transpose of the operand (bit 0), of the result (bit 1)? */
unsigned move_transposes(const problem *p, sw_move_kind kind, uint32_t mask, const uint8_t *before,
                         const uint8_t *after);

#endif
