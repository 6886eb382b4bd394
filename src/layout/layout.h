/*
 * layout: how a tensor lies on the cluster, and how it gets from one layout to another.
 *
 * A layout gives every atom ONE state (src/layout/README.md):
 *   B             every coordinate of the atom holds the whole
 *   S(dim, t)     coordinate c holds the elements with (i / t) mod p == c of dimension dim
 *                 (p: the atom's size)
 *   P             every coordinate holds a term; the value is their sum (max, min, ...)
 *   O(c)          coordinate c, the OWNER, holds the whole; the others hold nothing
 * The digits of a dimension, in descending order of stride, nest: t*p divides the next larger t,
 * and the largest t*p divides N (the padding rewrite ensures that; here N is the extent that the
 * shape states). A value has one monoid for its P atoms. This array of states IS the canonical
 * form: two layouts are equal iff their states and monoids are (monoid NONE when no atom is P). A
 * dimension's local index is the global index with the digits of its atoms taken out: one digit
 * (t, p) takes i to (i / (t*p)) * t + i mod t.
 */
#ifndef SW_LAYOUT_H
#define SW_LAYOUT_H

#include "cluster/cluster.h"

typedef enum sw_state_kind { SW_STATE_B, SW_STATE_S, SW_STATE_P, SW_STATE_O } sw_state_kind;

typedef struct sw_state {
	uint8_t kind;   /* sw_state_kind */
	int8_t dim;     /* S only, else 0 */
	int64_t stride; /* S: of the digit; O: the owner's coordinate; else 0 */
} sw_state;

typedef struct sw_layout {
	sw_monoid monoid; /* of the P atoms; NONE when there are none */
	int32_t n;        /* atoms */
	sw_state state[SW_MAX_ATOMS];
} sw_layout;

sw_layout sw_layout_replicated(const sw_atoms *atoms);
bool sw_layout_equal(const sw_layout *a, const sw_layout *b);
uint64_t sw_layout_hash(const sw_layout *layout);
/* Return whether the layout fits the shape: its digits nest and divide, its dims exist, it has a
 * monoid iff an atom is P, and no token has an owner. */
bool sw_layout_valid(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout);
/* Return the mask of the atoms that are P; of the atoms that split `dim` (dim < 0: any
 * dimension). */
uint32_t sw_layout_partial_atoms(const sw_layout *layout);
uint32_t sw_layout_split_atoms(const sw_layout *layout, int32_t dim);
/* Return the mask of the atoms that are O. */
uint32_t sw_layout_owned_atoms(const sw_layout *layout);
/* Return whether each device has a part of the value itself: no atom is P or O. */
bool sw_layout_is_on_all(const sw_layout *layout);
/* Return whether a device has a part at all: on each O atom it is the owner. */
bool sw_layout_has_part(const sw_atoms *atoms, const sw_layout *layout, int64_t device);
/* Place the atoms of the mask, in order (outermost atom first), as adjacent digits that descend
 * from `top` (the first gets stride top/p1, the next top/(p1 p2), ...); this is a block split when
 * top == N. Return false and change nothing if the sizes do not divide `top`. */
bool sw_layout_split(const sw_atoms *atoms, sw_layout *layout, uint32_t mask, int32_t dim,
                     int64_t top);

/* Write the dimensions of the part of a device that has one; dims has space for shape.rank
 * entries. */
void sw_layout_local_dims(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                          int64_t *dims);
int64_t sw_layout_local_bytes(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout);
/* Return the bytes of all devices' parts over the number of devices: an owner's part is of one. */
int64_t sw_layout_mean_bytes(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout);
/* Return the global index along dim of a local index on a device. */
int64_t sw_layout_global_index(const sw_atoms *atoms, const sw_layout *layout, int32_t dim,
                               int64_t device, int64_t local);
/* Return whether global element `index` (rank entries) is in the device's part. An element of a P
 * value counts as held. */
bool sw_layout_holds(const sw_atoms *atoms, const sw_layout *layout, int64_t device,
                     const int64_t *index);
/* Copy a device's part out of (into) the whole, with element_bytes per element. P atoms are treated
 * as B. O(local elements); inner runs are copied at once. */
void sw_layout_cut(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, int64_t device,
                   int64_t element_bytes, const void *whole, void *part);
void sw_layout_paste(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, int64_t device,
                     int64_t element_bytes, const void *part, void *whole);

/* Print "[S0 S1/4 B P(sum) O1]": one word per atom; "/t" is printed only where the stride is not
 * that of a plain block split (digits of a dim descending from N in atom order); the number behind
 * O is the owner's coordinate. The text parses back given the shape. */
void sw_layout_print(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, sw_text *text);
sw_status sw_layout_parse(const sw_atoms *atoms, sw_shape shape, const char *text,
                          sw_layout *layout, sw_error *err);

/* Write the local data of a dimension as digits, which is the form that the lowering of a move
 * works on. The local extent of `dim` under `layout` is written as factors, major first:
 * extents[k], and atom_of[k] = the atom of `extra` whose digit of `with` sits there (extent = its
 * size), or -1 for an undivided run (never of extent 1). The digits that `with` gives to the atoms
 * of `extra` must nest with ALL digits of `layout`; the digits of `layout` itself are left out,
 * because the device does not have them. So, for a move from X to Y on the atoms m:
 *   SLICE, REDUCE_SCATTER  (X, with Y, m): where the part to keep or send lies in the data of X
 *   ALL_GATHER             (Y, with X, m): where the gathered index goes in the data of Y
 *   ALL_TO_ALL             (X, with Y, m) before the exchange, (Y, with X, m) after it
 * The arrays have space for 2 * atoms->n + 1 entries. Return the number of factors; their product
 * is the local extent. */
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
 *  PERMUTE         the states of the mask's atoms are permuted among           yes
 *                  atoms of equal size: whole local parts travel
 *  KEEP            B -> O: the owner keeps it                                  no
 *  REDUCE          P -> O: the owner gets the sum                              yes
 *  SPREAD          O -> B: the owner sends it to all                           yes
 * Several atoms in one move form one group, numbered as in sw_atoms_groups. */
typedef enum sw_move_kind {
	SW_MOVE_SLICE,
	SW_MOVE_TO_PARTIAL,
	SW_MOVE_ALL_GATHER,
	SW_MOVE_ALL_REDUCE,
	SW_MOVE_REDUCE_SCATTER,
	SW_MOVE_ALL_TO_ALL,
	SW_MOVE_PERMUTE,
	SW_MOVE_KEEP,
	SW_MOVE_REDUCE,
	SW_MOVE_SPREAD,
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

/* Return the seconds of one collective with `operand_bytes` per rank over the groups of `atoms`, by
 * the caller's model (`cost`). */
typedef double sw_collective_seconds(void *context, sw_move_kind kind, uint32_t atoms,
                                     int64_t operand_bytes);

#define SW_MAX_MOVES 32
typedef struct sw_path {
	int32_t n;
	double seconds;
	/* per rank, by sw_collective_payload_bytes (of a rank that does send) */
	int64_t payload_bytes;
	/* largest operand + result of any move, or of a transpose around one */
	int64_t peak_bytes;
	sw_move moves[SW_MAX_MOVES];
} sw_path;

/* Write the pairs (source, target) of a PERMUTE, one for every device whose part moves; devices
 * that are fixed points are left out. Return the number of pairs, which lie in the arena. */
int32_t sw_move_permute_pairs(const sw_atoms *atoms, const sw_move *move, sw_arena *arena,
                              const int64_t **pairs);

/* The parameters of a redistribution. sw_redistribute finds the cheapest path by best-first search
 * over layouts (ties: fewer moves, then fewer bytes, then a fixed order; times are compared in
 * whole picoseconds). `from` and `to` are valid and have the same monoid where both have one.
 * TO_PARTIAL is used only where `to` has P and `from` has not; a path from B or S to P(to) is
 * always possible.
 * Optimality: with up to two atoms, and up to four for a small tensor, the path is the cheapest of
 * all (of at most SW_MAX_MOVES moves). With more atoms of a large tensor only some placements of
 * the digits are tried, which hardly raises the cost of the path. Up to five atoms, a move acts on
 * any set of atoms; with more, atoms with the same change of state move as one, in at most seven
 * such units. With any number of atoms, a path is never dearer than: one move; gather and reduce,
 * then slice; each atom by a move of its own, kind by kind; reduce-scatter, all-to-all, all-gather
 * (AutoDDL section 4.3). All of this is about the atoms that are O in neither end or alike in both;
 * the others are spread before or after them, and kept and reduced before or after them, over all
 * of these atoms at once or over one after the other, whichever is cheapest (owned_paths.c).
 * Local work: a slice and a TO_PARTIAL touch their result twice (read, write); a collective whose
 * digits do not lead the local data needs a transpose, which touches the data twice too. The bytes
 * touched take time by `local_bandwidth` (bytes/s; 0: bytes are free), and each slice or transpose
 * costs `local_overhead_s`.
 * `direct`: where a single move of one atom (or group, in a cache of groups) does it, the cheapest
 * of these is the path, though several moves may be cheaper.
 * `seconds` may return INFINITY: the collective is not possible. It is a pure function of its
 * arguments; a search, or a cache, calls it once for each combination of arguments.
 * Return SW_NO if no path is found that keeps peak_bytes within memory_bytes (0: no bound). path->n
 * == 0 if from == to. */
typedef struct sw_redistribution {
	const sw_atoms *atoms;
	sw_collective_seconds *seconds;
	void *context;
	double local_bandwidth;
	double local_overhead_s; /* of each slice or transpose */
	int64_t memory_bytes;
	bool direct;
} sw_redistribution;
sw_status sw_redistribute(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                          const sw_layout *to, sw_path *path, sw_error *err);

/* A cache of paths, seconds and payloads by (shape, from, to). Several threads may call
 * sw_path_cache_get at once, while one of them uses the functions that take numbers. */
typedef struct sw_path_cache sw_path_cache;
sw_path_cache *sw_path_cache_new(const sw_redistribution *how);
/* Return a cache for layouts in which the atoms of each group (adjacent atoms; all groups together
 * hold all atoms, outermost first) always have one state with adjacent digits: paths between these
 * layouts keep the groups together, and are found much faster. */
sw_path_cache *sw_path_cache_new_grouped(const sw_redistribution *how, const uint32_t *groups,
                                         int32_t n);
void sw_path_cache_free(sw_path_cache *cache);
/* Return the path that sw_redistribute returns. The cache owns it and keeps only moves[0..n): do
 * not copy *path as a whole. Its seconds are infinite (n == 0) where there is no path. */
const sw_path *sw_path_cache_get(sw_path_cache *cache, sw_shape shape, const sw_layout *from,
                                 const sw_layout *to);
/* The following functions serve a caller that needs only the costs of many pairs; they name shapes
 * and layouts by number. The caller first declares which layouts of a shape it will query (begin,
 * expect); the cheapest paths between all of them are then found at once, through layouts that
 * combine their states (all_pairs.c), so that the path that sw_path_cache_get returns for a pair
 * may be a little cheaper. Earlier queries change only the time that a query takes, not its
 * result. */
/* Forget which layouts are expected. */
void sw_path_cache_begin(sw_path_cache *cache);
uint32_t sw_path_cache_shape(sw_path_cache *cache, sw_shape shape);
uint32_t sw_path_cache_layout(sw_path_cache *cache, const sw_layout *layout);
void sw_path_cache_expect(sw_path_cache *cache, uint32_t shape, uint32_t layout);
/* Find the all-pairs costs of some more of the shapes for which layouts are expected, so that
 * sw_path_cache_seconds need not; return false if none are left. The costs do not depend on the
 * number of threads. */
bool sw_path_cache_find(sw_path_cache *cache, int threads);
/* Write seconds[i * m + j], the cost from from[i] to to[j]; INFINITY where there is no path, and
 * between layouts whose partial sums have different monoids (a maximum is not a sum). All layouts
 * must be expected. */
void sw_path_cache_seconds(sw_path_cache *cache, uint32_t shape, const uint32_t *from, int32_t n,
                           const uint32_t *to, int32_t m, double *seconds);

#endif
