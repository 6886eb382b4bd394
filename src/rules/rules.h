/*
 * rules: for each opcode, how the dimensions of operands and results correspond.
 *
 * Takes an op, gives its RULE: FACTORS in the sense of an einsum, and for every dimension of every
 * operand and result which factors it is made of. Everything else follows: an op STRATEGY assigns
 * each atom to a digit of one factor, or to a linearity of partial sums, or to nothing; from it
 * come the layouts that the operands must have, the layouts of the results, the share of the work,
 * and the local op. Planner, partitioner, cost and simulator ask here and hold no second copy.
 *
 * The one law. A factor of size s stands in a dimension at stride m (a sw_ref): the factor's digit
 * (t, p) is the dimension's digit (t*m, p). An atom on a factor's digit makes every dimension that
 * has the factor S there; an operand without the factor is B; a result without it is P(monoid) of
 * the factor if that is REDUCED, and B if it is PARALLEL (the result does not depend on it: an
 * opt-barrier's other values); an operand that the factor lists in `joins` is P too (an init value
 * or a scatter's operand: it counts once). Reshape, slice, concatenate and pad are the same law:
 * their factors are the digits that survive.
 */
#ifndef SW_RULES_H
#define SW_RULES_H

#include "layout/layout.h"

typedef enum sw_factor_kind {
	SW_FACTOR_PARALLEL, /* each result that depends on it has it */
	SW_FACTOR_REDUCED,  /* no result has it: combined by `monoid` */
} sw_factor_kind;

/* What the local op asks of the other devices on the factor's atoms; all but FLIP split it into
 * blocks only (digits that tile the factor from the top, so that block c is contiguous). HALO
 * windows, and slices that do not fall on blocks: rows of the neighbouring blocks SCAN   cumulative
 * ops: what the blocks before (or after) sum up to MERGE  top-k, arg-max: every block's candidates,
 * from which each device chooses FLIP   reversed dimensions: the whole part of the device with the
 * opposite digits */
typedef enum sw_exchange {
	SW_EXCHANGE_NONE,
	SW_EXCHANGE_HALO,
	SW_EXCHANGE_SCAN,
	SW_EXCHANGE_MERGE,
	SW_EXCHANGE_FLIP,
	SW_EXCHANGE_COUNT
} sw_exchange;
const char *sw_exchange_name(sw_exchange exchange); /* "halo", ...; "" for NONE */

typedef struct sw_factor {
	int64_t size;
	sw_factor_kind kind;
	sw_exchange exchange;
	bool streams;     /* REDUCED: the local op can run over it in a loop, see sw_choice */
	sw_monoid monoid; /* REDUCED */
	sw_ints joins;    /* REDUCED: operands that must be P(monoid) on its atoms */
} sw_factor;

typedef struct sw_ref {
	int32_t factor;
	int64_t stride;
} sw_ref;

/* One dimension: the factors in it, descending strides; what they do not cover can't be split. */
typedef struct sw_dim_map {
	int32_t n;
	const sw_ref *refs;
} sw_dim_map;

/* A jointly linear (monotone) set: if exactly these operands are P(m) on an atom and the others B,
 * all results are P(becomes[m]) on it, for every monoid m in the mask (bit = sw_monoid). becomes[m]
 * is m but where the order iterations: negation makes min of max, `not` or of and; and where it is
 * seen as a predicate: x > c makes or of max. */
typedef struct sw_linearity {
	const bool *operands; /* [n_operands] */
	uint32_t monoids;
	uint8_t becomes[SW_MONOID_OR + 1]; /* sw_monoid */
} sw_linearity;
/* What the results may be P of (a mask) where the operands are P of some of these. */
uint32_t sw_linearity_becomes(const sw_linearity *linearity, uint32_t monoids);

typedef struct sw_rule {
	int32_t n_factors, n_linearities, n_operands, n_results;
	const sw_factor *factors;
	const sw_linearity *linearities;
	const sw_dim_map *const *operands; /* [operand][dim] */
	const sw_dim_map *const *results;  /* [result][dim] */
	const int32_t *operand_ranks, *result_ranks;
	const char *
		/* why some or all dimensions stay whole ("sort needs its dimension", "no rule for
	           fft"); NULL: nothing to report */
		whole;
	bool missing; /* there is no row for this opcode: everything replicated, worth a warning */
} sw_rule;

/* All in the arena. Never fails: an op without a row is replicated. Loops, conditionals and
 * parameters get an empty rule (their layouts are decided by the planner), calls too; constants
 * have PARALLEL factors (any part can be cut out). */
const sw_rule *sw_rule_make(const sw_program *program, sw_id op, sw_arena *arena);

/* The monoid under which a reduction of this type can be split over devices: max and min of pred
 * are or and and; products, and anything not known to be a monoid, are NONE. */
sw_monoid sw_rule_splittable(sw_type type, sw_monoid monoid);

/* Of a convolution whose operands and result have got other sizes: as many groups, of the same
 * sizes, as these have. */
void sw_convolution_regroup(sw_attrs *attrs, sw_shape input, sw_shape kernel, sw_shape output);

typedef enum sw_choice_kind { SW_CHOICE_NONE, SW_CHOICE_SPLIT, SW_CHOICE_PASS } sw_choice_kind;
/* STREAMED (stream_stride > 0): an operand that does not have the chosen factor need not be whole
 * on the atom: it is split there by a digit of the factor `stream` (one that `streams`), and the
 * local op is a loop that gathers one panel of it after the other: SUMMA. As many panels as the
 * most devices that an operand is streamed over, so that a panel is no larger than the operand's
 * part. */
typedef struct sw_choice {
	uint8_t kind;   /* sw_choice_kind */
	uint8_t monoid; /* PASS */
	int16_t index;  /* SPLIT: factor; PASS: linearity */
	int16_t stream; /* SPLIT: factor, if stream_stride > 0 */
	int64_t stride; /* SPLIT: of the digit within the factor */
	int64_t stream_stride;
} sw_choice;
typedef struct sw_strategy {
	int32_t n; /* atoms */
	sw_choice atom[SW_MAX_ATOMS];
} sw_strategy;

sw_strategy sw_strategy_none(const sw_atoms *atoms);
bool sw_strategy_equal(const sw_strategy *a, const sw_strategy *b);
/* Does no atom do anything: each device does the whole op. */
bool sw_strategy_is_none(const sw_strategy *strategy);
/* Puts the atoms of the mask, in order, on adjacent digits of the factor that descend from `top`
 * (see sw_layout_split). */
bool sw_strategy_split(const sw_atoms *atoms, const sw_rule *rule, sw_strategy *strategy,
                       uint32_t mask, int32_t factor, int64_t top);
/* Product of the sizes of the atoms that split the work. */
int64_t sw_strategy_share(const sw_atoms *atoms, const sw_strategy *strategy);
/* Does the local op communicate: is an atom on a factor with an exchange, or is an operand
 * streamed? */
bool sw_strategy_exchanges(const sw_rule *rule, const sw_strategy *strategy);

/* Layouts that follow: operands[i], results[i] are filled. False if the strategy is impossible: a
 * digit that does not divide or nest, one inside a factor that is split into blocks only, two
 * monoids in one value. The shapes are those of the op's values. */
bool sw_rule_layouts(const sw_program *program, sw_id op, const sw_rule *rule,
                     const sw_atoms *atoms, const sw_strategy *strategy, sw_layout *operands,
                     sw_layout *results);

/* The strategy under which operand (result) `index` has this layout on the atoms of *mask; an atom
 * whose state can't be had is taken out of *mask and gets NONE. B gives NONE. P of an operand gives
 * PASS (first linearity that has the operand and monoid); P of a result gives the only REDUCED
 * factor if there is one with room, else a linearity. */
void sw_rule_match(const sw_rule *rule, const sw_atoms *atoms, bool result, int32_t index,
                   const sw_layout *layout, uint32_t *mask, sw_strategy *strategy);

/* Where (dim, top) of an operand or result lies: the factor, and the top within it (a digit just
 * below `top` in the dimension is a digit just below *factor_top in the factor). False if no factor
 * covers it. And back. */
bool sw_rule_factor_at(const sw_rule *rule, bool result, int32_t index, int32_t dim, int64_t top,
                       int32_t *factor, int64_t *factor_top);
bool sw_rule_dim_of(const sw_rule *rule, bool result, int32_t index, int32_t factor,
                    int64_t factor_top, int32_t *dim, int64_t *top);
/* The dimension of an operand or result in which the factor stands, and at which stride; -1: in
 * none. */
int32_t sw_rule_dim_with(const sw_rule *rule, bool result, int32_t index, int32_t factor,
                         int64_t *stride);

/* ---- the local op ----------------------------------------------------------------------- */

/* Coordinates of the running device as s32[] scalars of one computation of the program being
 * written; made when first asked for. */
typedef struct sw_coordinates {
	sw_program *out;
	int32_t computation;
	const sw_atoms *atoms;
	sw_id partition; /* SW_NO_ID until needed */
	sw_id atom[SW_MAX_ATOMS];
	/* of sw_coordinate_is_first: sets of atoms that were asked for, as far as there is room,
	 * and the answers */
	int32_t n_first;
	uint32_t first_of[2 * SW_MAX_ATOMS];
	sw_id first[2 * SW_MAX_ATOMS];
} sw_coordinates;
void sw_coordinates_init(sw_coordinates *coordinates, sw_program *out, int32_t computation,
                         const sw_atoms *atoms);
sw_id sw_coordinate(sw_coordinates *coordinates, int32_t atom);
/* pred[]: are they 0 for all of these atoms, which are some? Written once for each set, whoever
 * asks. */
sw_id sw_coordinate_is_first(sw_coordinates *coordinates, uint32_t atoms);
/* Cuts the device's part of `layout`'s digits of the atoms in `mask` out of x, which has every
 * other digit of `layout` taken out already (a SLICE move; also how constants and iotas are split).
 * Emits reshape, dynamic-slice, reshape. */
sw_id sw_emit_cut(sw_coordinates *coordinates, sw_id x, sw_shape whole, const sw_layout *layout,
                  uint32_t mask);
/* Writes one move of a redistribution: x is the device's part of `whole` under `before`; returns
 * its part under move->after. Reshapes and transposes, one collective; they vanish where the digits
 * that move lead the local data. */
sw_id sw_lower_move(sw_coordinates *coordinates, sw_shape whole, const sw_layout *before,
                    const sw_move *move, sw_id x);

typedef struct sw_localize {
	const sw_program *program;
	sw_id op;
	const sw_rule *rule;
	const sw_strategy *strategy;
	sw_coordinates *coordinates; /* says which program and computation is being written */
	/* source computation -> its copy in the program being written */
	const int32_t *computations;
	const sw_id *operands; /* local values, laid out as sw_rule_layouts says */
} sw_localize;
/* Writes the local op (and what it needs around it: offsets, masks, rebased indices); results has
 * n_results entries. */
sw_status sw_rule_localize(const sw_localize *local, sw_id *results, sw_error *err);

void sw_rule_print(const sw_program *program, sw_id op, const sw_rule *rule, sw_text *text);
void sw_strategy_print(const sw_atoms *atoms, const sw_rule *rule, const sw_strategy *strategy,
                       sw_text *text);

#endif
