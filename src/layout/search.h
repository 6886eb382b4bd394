/*
 * search: the cheapest redistribution path. Private to src/layout.
 *
 *   units.c     atoms -> units: what moves as one, and the states a unit may be in
 *   prices.c    seconds and bytes of every (move kind, units, split units): tables that many searches share
 *   bound.c     how far a layout is from the target at least, digits' places ignored: exact distances in the
 *               graph of kinds (B, P, split as in the target, split otherwise), shared like the prices
 *   plain_paths.c   paths that are there without a search
 *   search.c    A* over the layouts, guided by that bound
 *   redistribute.c  the steps in order, the path written out, and the cache
 *
 * A unit's state is a byte: 0 is B, 1 is P, 2 + i is tuple i of the unit's class. A class holds the units whose atoms
 * have the same sizes; they share their tuples, so that a PERMUTE moves the bytes as they are.
 */
#ifndef SW_LAYOUT_SEARCH_H
#define SW_LAYOUT_SEARCH_H

#include "layout/digits.h"

#include <math.h>

#define MAX_UNITS 7
#define FINE_UNITS 4   /* up to here a move acts on any set of units */
#define MAX_TUPLES 40  /* per class */
#define MAX_DIGITS 64  /* distinct (dim, stride, size): bits of a word */
#define MAX_MASKS 48   /* sets of units that a move may act on */
#define MAX_WORK 20000 /* layouts created or met in one search: a few milliseconds */
#define UNIT_B 0
#define UNIT_P 1
#define UNIT_S 2       /* and above */

/* Time in whole picoseconds (exact in a double up to 2.5 hours), then moves, then bytes sent: the order of paths. */
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

/* ---- units ------------------------------------------------------------------------------------------------ */

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
	uint64_t digits, fits;        /* bits of the digits; digits that nest with all of them */
	uint8_t digit[SW_MAX_ATOMS];
} tuple;

typedef struct unit_class {
	int32_t n, size[SW_MAX_ATOMS]; /* atoms of each unit, and their sizes */
	int64_t product;
	int32_t n_named, n_tuples;     /* those of from and to come first, then plain ones */
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
	unit_class classes[MAX_UNITS];
	split_digit digits[MAX_DIGITS];  /* by dim, then by descending stride: the order of local data */
	uint64_t fits[MAX_DIGITS];       /* per digit: those that nest with it */
	uint64_t frozen_digits;          /* of atoms outside all units; they keep their state */
	uint64_t goal_room;              /* digits that nest with all of the target's */
	uint32_t frozen;
	int64_t bytes;                   /* of the tensor over the frozen split atoms */
	uint8_t masks[MAX_MASKS];        /* sets of units that a move may act on */
	uint8_t start[MAX_UNITS], goal[MAX_UNITS];
	uint32_t to_partial;             /* units that TO_PARTIAL may act on */
	bool thorough;                   /* try every plain tuple */
} problem;

void problem_init(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *from, const sw_layout *to);

static inline const tuple *unit_tuple(const problem *p, int32_t u, uint8_t state)
{
	return &p->classes[p->units[u].class].tuples[state - UNIT_S];
}

/* ---- prices ------------------------------------------------------------------------------------------------ */

#define NO_WAY ((double)INFINITY)

typedef struct price {
	double ps; /* NAN: not asked yet; NO_WAY: too much memory, or the model says so */
	int64_t payload;
} price;

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
	uint32_t atoms_of[1 << MAX_UNITS];   /* set of units -> its atoms */
	int64_t group_of[1 << MAX_UNITS];    /* set of units -> devices that differ in it */
	int64_t bytes_of[1 << MAX_UNITS];    /* set of split units -> local bytes */
	uint8_t masks[MAX_MASKS];
	permutation permutations[MAX_PERMUTATIONS];
	price *table;                        /* [kind][set of units][set of split units before] */
} prices;

/* Adds the tables for this problem to the arena. */
prices *prices_new(const sw_redistribution *how, const problem *p, sw_arena *arena);
/* A move of `kind` on the units of the mask, with `split` the units that are split before it; transposes excluded. */
price prices_get(prices *table, sw_move_kind kind, uint32_t mask, uint32_t split);
/* Time of a transpose of so many bytes. */
double touch_ps(const sw_redistribution *how, int64_t bytes);
/* Units that are split afterwards. PERMUTE is not asked. */
uint32_t split_after(sw_move_kind kind, uint32_t mask, uint32_t split);

/* ---- the bound ---------------------------------------------------------------------------------------------- */

/* What the bound sees of a unit's state; two bits each make a code. */
enum { KIND_B, KIND_P, KIND_RIGHT, KIND_WRONG }; /* RIGHT: split as in the target */

typedef struct bound {
	path_cost *least; /* [code]: of any way to the target; ps NO_WAY: there is none */
} bound;

/* Adds the distances to the problem's goal to the arena. O(4^units * masks * 2^units). */
bound *bound_new(prices *table, const problem *p, sw_arena *arena);

static inline uint32_t kind_of(const problem *p, int32_t u, uint8_t state)
{
	return state < UNIT_S ? state : state == p->goal[u] ? KIND_RIGHT : KIND_WRONG;
}

/* ---- searching ------------------------------------------------------------------------------------------------ */

typedef struct node {
	uint8_t state[8];  /* of the units; the rest 0 */
	path_cost so_far, total; /* total: with the bound */
	int32_t parent;
	uint32_t mask;
	uint8_t kind, permutation;
	bool closed;
} node;

/* A node that waits, with its cost when it was put there: a node that was improved since waits twice. */
typedef struct open_node {
	path_cost total;
	int32_t depth, number;
} open_node;

/* What a search needs besides the problem; kept from one to the next. */
typedef struct workspace {
	SW_VEC(node) nodes;
	SW_VEC(open_node) heap; /* the best first */
	int32_t *slots;        /* hash of states -> node number + 1 */
	size_t n_slots;
} workspace;

void workspace_clear(workspace *work);
/* The number of the goal's node in work->nodes, whose parents lead to the start; -1 if there is no path. */
int32_t search_path(workspace *work, const problem *p, prices *table, const bound *least);

/* The cheaper of the paths that need no search: gather and reduce all that changes, then slice; or straight to the target
 * where digits permit, the rest by way of B. The nodes from the start to the goal, each the parent of the next; returns their
 * number, 0 if neither path is possible. */
#define PLAIN_NODES 8
int32_t plain_path(const problem *p, prices *table, node nodes[PLAIN_NODES]);

/* Does a move of these states need a transpose of the operand (bit 0), of the result (bit 1)? */
unsigned move_transposes(const problem *p, sw_move_kind kind, uint32_t mask, const uint8_t *before, const uint8_t *after);

#endif
