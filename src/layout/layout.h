/*
 * layout: how a tensor lies on the cluster, and how it gets from one layout to another.
 *
 * A layout gives every atom ONE state (design.md section 2):
 *   B             every coordinate of the atom holds the whole
 *   S(dim, t)     coordinate c holds the elements with (i / t) mod p == c of dimension dim (p: the
 * atom's size) P             every coordinate holds a term; the value is their sum (max, min, ...)
 * The digits of a dimension, in descending order of stride, nest: t*p divides the next larger t,
 * and the largest t*p divides N (the padding rewrite sees to that; here N is what the shape says).
 * A value has one monoid for its P atoms. This array of states IS the canonical form: two layouts
 * are equal iff states and monoid are (monoid NONE when no atom is P). A dimension's local index is
 * the global index with the digits of its atoms taken out: one digit (t, p) takes i to (i / (t*p))
 * * t + i mod t.
 */
#ifndef SW_LAYOUT_H
#define SW_LAYOUT_H

#include "cluster/cluster.h"

typedef enum sw_state_kind { SW_STATE_B, SW_STATE_S, SW_STATE_P } sw_state_kind;

typedef struct sw_state {
	uint8_t kind;   /* sw_state_kind */
	int8_t dim;     /* S only, else 0 */
	int64_t stride; /* S only, else 0 */
} sw_state;

typedef struct sw_layout {
	sw_monoid monoid; /* of the P atoms; NONE when there are none */
	int32_t n;        /* atoms */
	sw_state state[SW_MAX_ATOMS];
} sw_layout;

sw_layout sw_layout_replicated(const sw_atoms *atoms);
bool sw_layout_equal(const sw_layout *a, const sw_layout *b);
uint64_t sw_layout_hash(const sw_layout *layout);
/* Does the layout fit the shape: digits nest and divide, dims exist, monoid present iff a P is. */
bool sw_layout_valid(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout);
/* Masks of atoms by state; atoms that split `dim` (dim < 0: any). */
uint32_t sw_layout_partial_atoms(const sw_layout *layout);
uint32_t sw_layout_split_atoms(const sw_layout *layout, int32_t dim);
/* Places the atoms of the mask, in order (outermost atom first), as adjacent digits that descend
 * from `top` (the first gets stride top/p1, the next top/(p1 p2), ...): a block split when top ==
 * N. False (and no change) if that does not divide. */
bool sw_layout_split(const sw_atoms *atoms, sw_layout *layout, uint32_t mask, int32_t dim,
                     int64_t top);

/* dims of one device's part; dims has room for shape.rank. */
void sw_layout_local_dims(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                          int64_t *dims);
int64_t sw_layout_local_bytes(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout);
/* Local index along dim -> global index, on a device. */
int64_t sw_layout_global_index(const sw_atoms *atoms, const sw_layout *layout, int32_t dim,
                               int64_t device, int64_t local);
/* Is global element `index` (rank entries) in the device's part? P counts as held. */
bool sw_layout_holds(const sw_atoms *atoms, const sw_layout *layout, int64_t device,
                     const int64_t *index);
/* Copies a device's part out of (into) the whole; element_bytes each. P: as B. O(local elements),
 * inner runs copied at once. */
void sw_layout_cut(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, int64_t device,
                   int64_t element_bytes, const void *whole, void *part);
void sw_layout_paste(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, int64_t device,
                     int64_t element_bytes, const void *part, void *whole);

/* "[S0 S1/4 B P(sum)]": one word per atom; "/t" only where the stride is not that of a plain block
 * split (digits of a dim descending from N in atom order). Parses back given the shape. */
void sw_layout_print(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, sw_text *text);
sw_status sw_layout_parse(const sw_atoms *atoms, sw_shape shape, const char *text,
                          sw_layout *layout, sw_error *err);

/* Local data of a dimension seen as digits: what the lowering of a move works on. The local extent
 * of `dim` under `layout` is written as factors, major first: extents[k], and atom_of[k] = the atom
 * of `extra` whose digit of `with` sits there (extent = its size), or -1 for an undivided run
 * (never of extent 1). The digits that `with` gives to the atoms of `extra` must nest with ALL
 * digits of `layout`; these are what the device does not have, and are left out. So, for a move
 * from X to Y on the atoms m: SLICE, REDUCE_SCATTER  (X, with Y, m): where the part to keep or send
 * lies in the local data of X ALL_GATHER             (Y, with X, m): where the gathered index goes
 * in the local data of Y ALL_TO_ALL             (X, with Y, m) before the exchange, (Y, with X, m)
 * after it Room for 2 * atoms->n + 1. Returns the number of factors; their product is the local
 * extent. */
int32_t sw_layout_local_digits(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                               const sw_layout *with, uint32_t extra, int32_t dim, int64_t *extents,
                               int32_t *atom_of);

/* ---- redistribution --------------------------------------------------------------------- */

/*  move            states before -> after (for every atom of the mask)       communicates
 *  SLICE           B -> S                                                      no
 *  TO_PARTIAL      B -> P: kept on coordinate 0, identity elsewhere            no
 *  ALL_GATHER      S -> B                                                      yes
 *  ALL_REDUCE      P -> B                                                      yes
 *  REDUCE_SCATTER  P -> S                                                      yes
 *  ALL_TO_ALL      S(d, t) -> S(d', t')  (each atom keeps being split)         yes
 *  PERMUTE         the states of the mask's atoms are permuted among atoms of equal size: whole
 * local parts travel; yes Several atoms in one move form one group, numbered as in sw_atoms_groups.
 */
typedef enum sw_move_kind {
	SW_MOVE_SLICE,
	SW_MOVE_TO_PARTIAL,
	SW_MOVE_ALL_GATHER,
	SW_MOVE_ALL_REDUCE,
	SW_MOVE_REDUCE_SCATTER,
	SW_MOVE_ALL_TO_ALL,
	SW_MOVE_PERMUTE,
	SW_MOVE_COUNT
} sw_move_kind;
const char *sw_move_name(sw_move_kind kind);

typedef struct sw_move {
	sw_move_kind kind;
	uint32_t atoms;
	sw_layout after;
	/* PERMUTE: the state of atom a goes to atom to_atom[a]; else unused */
	int8_t to_atom[SW_MAX_ATOMS];
} sw_move;

/* Seconds of one collective with `operand_bytes` per rank over the groups of `atoms`; the caller's
 * model (`cost`). */
typedef double sw_collective_seconds(void *context, sw_move_kind kind, uint32_t atoms,
                                     int64_t operand_bytes);

#define SW_MAX_MOVES 32
typedef struct sw_path {
	int32_t n;
	double seconds;
	/* per rank, by sw_collective_payload_bytes (a rank that does send) */
	int64_t payload_bytes;
	/* largest operand + result of any move, or of a transpose around one */
	int64_t peak_bytes;
	sw_move moves[SW_MAX_MOVES];
} sw_path;

/* The pairs source, target of a PERMUTE from layout `before`: for every device one, fixed points
 * left out. */
int32_t sw_move_permute_pairs(const sw_atoms *atoms, const sw_move *move, sw_arena *arena,
                              const int64_t **pairs);

/* Cheapest path by best-first search over layouts (ties: fewer moves, then fewer bytes, then a
 * fixed order; times are compared in whole picoseconds). `from` and `to` are valid and have the
 * same monoid where both have one. TO_PARTIAL is used only where `to` has P and `from` has not; B
 * and S to P(to) are always possible. Up to two atoms, and four of a small tensor, the path is the
 * cheapest of all (of at most SW_MAX_MOVES moves). More of a large one: digits are tried sparingly,
 * which costs next to nothing. Up to five, a move acts on any set of atoms; with more, atoms that
 * behave alike move as one, in at most seven such units. However many, a path is never dearer than:
 * one move; gather-and-reduce, then slice; each atom by a move of its own, kind by kind;
 * reduce-scatter, all-to-all, all-gather (AutoDDL section 4.3). Local work: a slice and a
 * TO_PARTIAL touch their result twice (read, write); a collective whose digits do not lead the
 * local data needs a transpose, which touches it twice too; over `local_bandwidth` (bytes/s; 0:
 * bytes are free), and slices and transposes cost `local_overhead_s` each. `seconds` may say
 * INFINITY: not possible. It is a function of its arguments; the search, or cache, asks it once for
 * each. SW_NO if no path is found that keeps peak_bytes within memory_bytes (0: no bound). n == 0
 * if from == to. */
typedef struct sw_redistribution {
	const sw_atoms *atoms;
	sw_collective_seconds *seconds;
	void *context;
	double local_bandwidth;
	double local_overhead_s; /* of each slice or transpose */
	int64_t memory_bytes;
} sw_redistribution;
sw_status sw_redistribute(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                          const sw_layout *to, sw_path *path, sw_error *err);

/* Remembers seconds and payload by (shape, from, to). Threads may get paths side by side, while one
 * of them asks by number. */
typedef struct sw_path_cache sw_path_cache;
sw_path_cache *sw_path_cache_new(const sw_redistribution *how);
/* A cache for layouts in which the atoms of each group (adjacent atoms; all groups together all
 * atoms, outermost first) always have one state with adjacent digits: paths between such layouts
 * keep the groups together, and are found much faster. */
sw_path_cache *sw_path_cache_new_grouped(const sw_redistribution *how, const uint32_t *groups,
                                         int32_t n);
void sw_path_cache_free(sw_path_cache *cache);
/* Same path as sw_redistribute. Owned by the cache, which keeps only moves[0..n): do not copy *path
 * as a whole. Infinite seconds (n == 0) where there is none. */
const sw_path *sw_path_cache_get(sw_path_cache *cache, sw_shape shape, const sw_layout *from,
                                 const sw_layout *to);
/* For those who ask of many pairs only what they cost: shapes and layouts by number. First they say
 * which layouts of a shape they will ask of (begin, expect); all ways between these are then found
 * at once, through layouts that are made of their states (all_pairs.c), so that what
 * sw_path_cache_get finds for a pair may be a little cheaper. What was asked before changes nothing
 * but how long it takes. */
void sw_path_cache_begin(sw_path_cache *cache); /* nothing is expected */
uint32_t sw_path_cache_shape(sw_path_cache *cache, sw_shape shape);
uint32_t sw_path_cache_layout(sw_path_cache *cache, const sw_layout *layout);
void sw_path_cache_expect(sw_path_cache *cache, uint32_t shape, uint32_t layout);
/* Finds the ways of some more of the shapes that layouts are expected of, so that
 * sw_path_cache_seconds need not; false if there are none left. What is found does not depend on
 * the number of threads. */
bool sw_path_cache_find(sw_path_cache *cache, int threads);
/* seconds[i * m + j] from from[i] to to[j]; INFINITY where there is no way, and between layouts
 * that are partial in different ways: a maximum is no sum. All were expected. */
void sw_path_cache_seconds(sw_path_cache *cache, uint32_t shape, const uint32_t *from, int32_t n,
                           const uint32_t *to, int32_t m, double *seconds);

#endif
