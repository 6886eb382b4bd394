/*
 * search: the cheapest redistribution path. Private to src/layout.
 *
 *   atom_units.c       puts atoms together into units, which move as one
 *   path_problem.c     lists the states that a unit may be in
 *   move_prices.c      seconds and bytes of every (move kind, units, split units): tables that many
 *                      searches share
 *   move_transposes.c  which moves need a transpose
 *   path_bound.c       a lower bound on the cost from a layout to the target, which ignores the
 *                      places of digits: exact distances in the graph of kinds (B, P, split at
 *                      home, split elsewhere), shared like the prices
 *   path_search.c      A* over the layouts, guided by that bound (node_expansion.h)
 *   plain_paths.c      paths that are constructed without a search, over atoms
 *   all_pairs.c        the costs, in seconds only, between all pairs of many layouts at once
 *   redistribute.c     runs the steps in order and writes the path
 *   path_cache.c       keeps the paths
 *
 * A unit's state is a byte: 0 is B, 1 is P, 2 + i is tuple i of the unit's class. A class holds the
 * units whose atoms have the same sizes; they share their tuples, so that a PERMUTE moves the bytes
 * unchanged. A unit's HOME is its split in the target, or else in the start: the one split that the
 * bound distinguishes from all others, which are AWAY.
 */
#ifndef SW_LAYOUT_SEARCH_H
#define SW_LAYOUT_SEARCH_H

#include "layout/digits.h"

#include <math.h>

/* Limits of the search. Work is counted in layouts that a search creates or meets. */
#define MAX_UNITS 7
/* Up to this many units the search runs to its end, over all permutations. */
#define MAX_EXACT_UNITS 4
/* Up to this many units every placement of the digits is tried ... */
#define MAX_THOROUGH_UNITS 2
/* ... and up to MAX_EXACT_UNITS where no class has more than this many tuples. */
#define MAX_THOROUGH_TUPLES 12
/* Up to this many atoms each atom is a unit, and a move acts on any set of them. */
#define MAX_SINGLE_ATOMS 5
/* tuples of a class */
#define MAX_TUPLES 60
/* distinct digits (dim, stride, size): the bits of a word */
#define MAX_DIGITS 64
/* sets of units that a move may act on */
#define MAX_MASKS 48
/* The work of the search that stays near the bound ... */
#define FIRST_WORK 1000
/* ... of each dive, where that was too little ... */
#define DIVE_WORK 3000
/* ... of the search that finishes it, with at most MAX_EXACT_UNITS: a few milliseconds ... */
#define MAX_WORK 20000
/* ... and of that search where all placements are tried: only unusual prices take a tenth of it. */
#define MAX_THOROUGH_WORK 1000000

/* states of a unit; UNIT_S + i is tuple i of its class */
#define UNIT_B 0
#define UNIT_P 1
#define UNIT_S 2

/* The cost of a path; paths are ordered by time in whole picoseconds (exact in a double up to 2.5
 * hours), then by moves, then by bytes sent. */
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

typedef struct atom_unit {
	uint32_t atoms;
	int32_t n, atom[SW_MAX_ATOMS]; /* ascending */
	int32_t class;
} atom_unit;

typedef struct split_digit {
	int32_t dim, size;
	int64_t stride;
} split_digit;

/* One way to split a class's atoms: the digit of each atom, in the order of the atoms. */
typedef struct tuple {
	/* bits of the digits; bits of the digits that nest with all of them */
	uint64_t digits, fits;
	/* The digits may lead local data, so that a move to them or from them can spare a
	 * transpose. */
	bool leads;
	/* The digits never lead local data, and nest with all digits of from and to: every tuple
	 * with this property is as good as any other. */
	bool spare;
	uint8_t digit[SW_MAX_ATOMS];
} tuple;

typedef struct unit_class {
	int32_t n, size[SW_MAX_ATOMS]; /* atoms of each unit, and their sizes */
	int64_t product;
	/* the n_named tuples of from and to come first, then plain ones */
	int32_t n_named, n_tuples;
	/* as many spare tuples that nest with one another as a search can need */
	bool has_spares;
	tuple tuples[MAX_TUPLES];
} unit_class;

/* One redistribution, written in units. */
typedef struct problem {
	const sw_atoms *atoms;
	sw_shape shape;
	const sw_layout *from, *to;
	sw_monoid monoid;
	int32_t n_units, n_classes, n_digits, n_masks;
	atom_unit units[MAX_UNITS];
	int8_t unit_of[SW_MAX_ATOMS]; /* -1: frozen */
	unit_class classes[MAX_UNITS];
	/* by dim, then by descending stride: the order of local data */
	split_digit digits[MAX_DIGITS];
	uint64_t fits[MAX_DIGITS]; /* per digit: the digits that nest with it */
	uint64_t frozen_digits;    /* of atoms outside all units; they keep their state */
	uint64_t goal_fits;        /* digits that nest with all digits of the target */
	uint32_t frozen;
	int64_t bytes;            /* of the part that the frozen split atoms leave of the tensor */
	uint8_t masks[MAX_MASKS]; /* sets of units that a move may act on */
	uint8_t start[MAX_UNITS], goal[MAX_UNITS];
	/* the home of each unit; UNIT_B: neither target nor start splits it */
	uint8_t home[MAX_UNITS];
	uint32_t may_be_partial; /* units that are P, or that some move may make P */
	uint32_t to_partial;     /* units that TO_PARTIAL may act on */
	bool thorough;           /* try every plain tuple */
} problem;

/* Put the atoms together into units; the ends of the redistribution must be known. */
void units_form(problem *p);
void problem_init(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *from,
                  const sw_layout *to);
/* Put all layouts of a list (over at most MAX_SINGLE_ATOMS atoms, each a unit) into one problem
 * without start and goal: the states of their units, and the tuples that they name. Return false if
 * they name more tuples or digits than the tables hold. */
bool problem_init_among(problem *p, const sw_atoms *atoms, sw_shape shape, const sw_layout *layouts,
                        int32_t n, uint8_t (*states)[8]);

static inline const tuple *unit_tuple(const problem *p, int32_t u, uint8_t state)
{
	return &p->classes[p->units[u].class].tuples[state - UNIT_S];
}

/* ---- prices ----------------------------------------------------------------------------- */

#define NO_PATH ((double)INFINITY)

typedef struct price {
	/* NAN: not asked yet; NO_PATH: needs too much memory, or the model returns infinity */
	double ps;
	int64_t payload;
} price;

/* Return the price of one move, transposes excluded. */
price price_move(const sw_redistribution *how, sw_move_kind kind, uint32_t atoms, int64_t operand,
                 int64_t result);
/* Return the picoseconds of a transpose of `bytes`; NO_PATH where memory does not hold them
 * twice. */
double transpose_ps(const sw_redistribution *how, int64_t bytes);

/* A permutation of units within their classes, without the identity. */
typedef struct permutation {
	uint32_t moved;
	uint8_t to[MAX_UNITS];
} permutation;

#define MAX_PERMUTATIONS 24

/* The prices that all redistributions of equally many bytes over the same units share. */
typedef struct prices {
	const sw_redistribution *how;
	int32_t n_units, n_masks, n_permutations;
	uint32_t atoms_of[1 << MAX_UNITS]; /* set of units -> its atoms */
	/* set of units -> devices that differ in its coordinates */
	int64_t group_of[1 << MAX_UNITS];
	int64_t bytes_of[1 << MAX_UNITS]; /* set of split units -> local bytes */
	uint8_t masks[MAX_MASKS];
	permutation permutations[MAX_PERMUTATIONS]; /* by ascending `moved` */
	int32_t n_levels;
	/* set of split units -> number of its bytes among the distinct ones */
	uint8_t level_of[1 << MAX_UNITS];
	/* set of split units -> picoseconds of a transpose, or NO_PATH */
	double transpose_of[1 << MAX_UNITS];
	/* [kind][set of units] -> [level before]; NULL: nothing asked yet */
	price *rows[SW_MOVE_COUNT][1 << MAX_UNITS];
	sw_arena *arena;
} prices;

/* Create the tables for this problem in the arena. */
prices *prices_new(const sw_redistribution *how, const problem *p, sw_arena *arena);
/* Return the price of a move of `kind` on the units of the mask, where `split` are the units that
 * are split before it; transposes excluded. */
price prices_ask(prices *table, sw_move_kind kind, uint32_t mask, uint32_t split);
static inline price prices_get(prices *table, sw_move_kind kind, uint32_t mask, uint32_t split)
{
	const price *row = table->rows[kind][mask];
	if (row && !isnan(row[table->level_of[split]].ps))
		return row[table->level_of[split]];
	return prices_ask(table, kind, mask, split);
}
/* Return the units that are split after the move. The kind is not PERMUTE. */
uint32_t split_after(sw_move_kind kind, uint32_t mask, uint32_t split);

/* ---- the bound -------------------------------------------------------------------------- */

/* The bound's view of a unit's state. A code has bit 0 of each unit's kind, then bit 1 of each.
 * HOME: split as problem.home says; AWAY: split otherwise. */
enum { KIND_B, KIND_P, KIND_HOME, KIND_AWAY };

typedef struct bound_entry {
	path_cost cost;
	int32_t code;
} bound_entry;

/* Distances to the goal, computed backwards from it as far as they are queried: the nearest codes
 * first. */
typedef struct bound {
	prices *table;
	int32_t n_units;
	/* True with up to MAX_EXACT_UNITS. With more units, the bound leaves out paths on which a
	 * unit leaves the target's digits or is exchanged to another wrong place: they are hardly
	 * ever the nearest, and make most of the work. */
	bool exact;
	/* never_lead: units whose home never leads local data */
	uint32_t leaves_home, never_lead, to_partial, may_be_partial;
	path_cost *least; /* [code]: least cost of any path to the target; final where done */
	bool *done;
	SW_VEC(bound_entry) heap;
} bound;

/* Prepare the bound: O(4^units); each code settled costs O(masks * 2^units). Problems with the same
 * key (find_bound) share it. */
void bound_begin(bound *b, prices *table, const problem *p);
void bound_end(bound *b);
/* Return a lower bound on the cost of the path from this code: the exact cost where it is at most
 * `most_ps`, else a cost above that; ps NO_PATH: there is no path. */
path_cost bound_at(bound *b, int32_t code, double most_ps);

static inline uint32_t kind_of(const problem *p, int32_t u, uint8_t state)
{
	return state < UNIT_S ? state : state == p->home[u] ? KIND_HOME : KIND_AWAY;
}

/* Return the units whose home never leads local data. */
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
	uint8_t state[8]; /* of the units; the rest 0 */
	/* total: with the bound */
	path_cost so_far, total;
	int32_t parent;
	uint32_t mask;
	uint8_t kind, permutation;
	bool closed;
} node;

/* A node that waits, with its cost when it was pushed: a node that was improved since then is in
 * the heap twice. */
typedef struct open_node {
	path_cost total;
	int32_t depth, number;
} open_node;

/* Storage of a search besides the problem; kept from one search to the next. */
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

/* Find the cheapest path where it is near the bound, and write it to *best; return false if the
 * work did not suffice to tell. */
bool search_near(workspace *work, const problem *p, prices *table, bound *least, best_path *best);
/* Replace *best (which may have no nodes: a cost to beat) by a cheaper path if one is found; with
 * up to MAX_EXACT_UNITS it seldom fails to find the cheapest. */
void search_harder(workspace *work, const problem *p, prices *table, bound *least, best_path *best);

/* Find the cheapest of the paths that need no search: one move; gather and reduce all that changes,
 * then slice; each atom by its own move; reduce-scatter, all-to-all, all-gather. They go over
 * atoms, not units. Return NO_PATH if none is possible. O(rank * atoms^2). */
path_cost plain_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                     const sw_layout *to, sw_path *path);
/* Write the cheapest path of one move of one atom; NO_PATH where no such move does it. */
path_cost single_move_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                           const sw_layout *to, sw_path *path);

/* Return whether a move between these states needs a transpose of the operand (bit 0), of the
 * result (bit 1). */
unsigned move_transposes(const problem *p, sw_move_kind kind, uint32_t mask, const uint8_t *before,
                         const uint8_t *after);
/* Return the digits of the units of the mask that are split. */
uint64_t used_digits(const problem *p, uint32_t mask, const uint8_t *state);

#endif
