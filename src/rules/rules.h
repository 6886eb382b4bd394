/*
 * rules: for each opcode, how the dimensions of operands and results correspond.
 *
 * This stage takes an op and gives its RULE: FACTORS in the sense of an einsum, and for every
 * dimension of every operand and result the factors that it is made of. All else follows from the
 * rule: an op STRATEGY assigns each atom to a digit of one factor, or to a linearity of partial
 * sums, or to nothing; from the strategy come the layouts that the operands must have, the layouts
 * of the results, the share of the work, and the local op. Planner, partitioner, cost and simulator
 * query the rules and hold no second copy.
 *
 * The one law. A factor of size s stands in a dimension at stride m (a sw_ref): the factor's digit
 * (t, p) is the dimension's digit (t*m, p). An atom on a factor's digit makes every dimension that
 * has the factor S there. An operand without the factor is B. A result without it is P(monoid) of
 * the factor if the factor is REDUCED, and B if it is PARALLEL (the result does not depend on it:
 * the other values of an opt-barrier). An operand that the factor lists in `joins` is P too (an
 * init value or a scatter's operand: it counts once). Reshape, slice, concatenate and pad obey the
 * same law: their factors are the digits that survive.
 */
#ifndef SW_RULES_H
#define SW_RULES_H

#include "layout/layout.h"

typedef enum sw_factor_kind {
	SW_FACTOR_PARALLEL, /* each result that depends on it has it */
	/* no result has it: combined by `monoid` (but for `terms`, which takes a sum apart: its
	 * operand joins, and the result has it) */
	SW_FACTOR_REDUCED,
} sw_factor_kind;

/* The data that the local op needs from the other devices on the factor's atoms. All exchanges but
 * FLIP split the factor into blocks only (digits that tile it from the top, so that block c is
 * contiguous).
 *   HALO   windows, and slices that do not fall on blocks: rows of the neighbouring blocks
 *   SCAN   cumulative ops: the totals of the blocks before (or after)
 *   MERGE  top-k, arg-max: every block's candidates, from which each device chooses
 *   FLIP   reversed dimensions: the whole part of the device with the opposite digits */
typedef enum sw_exchange {
	SW_EXCHANGE_NONE,
	SW_EXCHANGE_HALO,
	SW_EXCHANGE_SCAN,
	SW_EXCHANGE_MERGE,
	SW_EXCHANGE_FLIP,
	SW_EXCHANGE_COUNT
} sw_exchange;
const char *sw_exchange_name(sw_exchange exchange); /* Return "halo", ...; "" for NONE. */

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

/* One dimension: the factors in it, by descending strides. Digits that they do not cover cannot be
 * split. */
typedef struct sw_dim_map {
	int32_t n;
	const sw_ref *refs;
} sw_dim_map;

/* A set of operands in which the op is jointly linear (monotone): if exactly these operands are
 * P(m) on an atom and the others B, all results are P(becomes[m]) on it, for every monoid m in the
 * mask (bit = sw_monoid). becomes[m] is m unless the op reverses the order (negation makes min of
 * max, `not` makes or of and) or turns it into a predicate (x > c makes or of max). */
typedef struct sw_linearity {
	const bool *operands; /* [n_operands] */
	uint32_t monoids;
	uint8_t becomes[SW_MONOID_OR + 1]; /* sw_monoid */
} sw_linearity;
/* Return the mask of the monoids that the results may be P of where the operands are P of one of
 * `monoids`. */
uint32_t sw_linearity_becomes(const sw_linearity *linearity, uint32_t monoids);

typedef struct sw_rule {
	int32_t n_factors, n_linearities, n_operands, n_results;
	const sw_factor *factors;
	const sw_linearity *linearities;
	const sw_dim_map *const *operands; /* [operand][dim] */
	const sw_dim_map *const *results;  /* [result][dim] */
	const int32_t *operand_ranks, *result_ranks;
	/* why some or all dimensions stay whole ("sort needs its dimension", "no rule for fft");
	 * NULL: nothing to report */
	const char *whole;
	/* there is no row for this opcode: everything is replicated, and a warning is due */
	bool missing;
} sw_rule;

/* Return the rule of an op; all of it lies in the arena. Never fails: an op without a row is
 * replicated. Loops, conditionals, calls and parameters get an empty rule (the planner decides
 * their layouts); constants have PARALLEL factors (any part can be cut out). */
const sw_rule *sw_rule_make(const sw_program *program, sw_id op, sw_arena *arena);
/* Return the rules of all ops, by op, in the arena. */
const sw_rule *const *sw_rules_make(const sw_program *program, sw_arena *arena);

/* Return the monoid under which a reduction of this type can be split over devices: max and min of
 * pred are or and and; products, and computations that are not recognised as a monoid, give
 * NONE. */
sw_monoid sw_rule_splittable(sw_type type, sw_monoid monoid);

/* Set the group counts of a convolution whose operands and result have got other sizes, so that its
 * groups keep their sizes. */
void sw_convolution_regroup(sw_attrs *attrs, sw_shape input, sw_shape kernel, sw_shape output);

/* OWN: the device of one coordinate does the op, whole, from operands that only it has; all
 * operands and results are O there. Any op can be done in this way. */
typedef enum sw_choice_kind {
	SW_CHOICE_NONE,
	SW_CHOICE_SPLIT,
	SW_CHOICE_PASS,
	SW_CHOICE_OWN
} sw_choice_kind;
/* An atom's choice. STREAMED (stream_stride > 0): an operand that does not have the chosen factor
 * need not be whole on the atom: it is split there by a digit of the factor `stream` (one that
 * `streams`), and the local op is a loop that gathers one panel of it after the other: SUMMA. The
 * loop has as many panels as the largest number of devices over which an operand is streamed, so
 * that a panel is no larger than the operand's part. */
typedef struct sw_choice {
	uint8_t kind;   /* sw_choice_kind */
	uint8_t monoid; /* PASS */
	int16_t index;  /* SPLIT: factor; PASS: linearity */
	int16_t stream; /* SPLIT: factor, if stream_stride > 0 */
	int64_t stride; /* SPLIT: of the digit within the factor; OWN: the owner's coordinate */
	int64_t stream_stride;
} sw_choice;
typedef struct sw_strategy {
	int32_t n; /* atoms */
	sw_choice atom[SW_MAX_ATOMS];
} sw_strategy;

sw_strategy sw_strategy_none(const sw_atoms *atoms);
bool sw_strategy_equal(const sw_strategy *a, const sw_strategy *b);
/* Return whether no atom has a choice: each device does the whole op. */
bool sw_strategy_is_none(const sw_strategy *strategy);
/* Return whether an owner does the op. */
bool sw_strategy_has_owner(const sw_strategy *strategy);
/* Put the atoms of the mask, in order, on adjacent digits of the factor that descend from `top`
 * (see sw_layout_split). */
bool sw_strategy_split(const sw_atoms *atoms, const sw_rule *rule, sw_strategy *strategy,
                       uint32_t mask, int32_t factor, int64_t top);
/* Return the product of the sizes of the atoms that split the work; an owner does all of it. */
int64_t sw_strategy_share(const sw_atoms *atoms, const sw_strategy *strategy);
/* Return whether the local op communicates: an atom is on a factor with an exchange, or an operand
 * is streamed. */
bool sw_strategy_exchanges(const sw_rule *rule, const sw_strategy *strategy);

/* Fill the layouts that follow from a strategy, operands[i] and results[i]. Return false if the
 * strategy is impossible: a digit does not divide or nest, a digit lies inside a factor that is
 * split into blocks only, or one value would have two monoids. The shapes are those of the op's
 * values. */
bool sw_rule_layouts(const sw_program *program, sw_id op, const sw_rule *rule,
                     const sw_atoms *atoms, const sw_strategy *strategy, sw_layout *operands,
                     sw_layout *results);

/* Find the strategy under which operand (result) `index` has this layout on the atoms of *mask; an
 * atom whose state is impossible is taken out of *mask and gets NONE. B gives NONE, and O gives
 * OWN. P of an operand gives PASS (the first linearity that has the operand and monoid); P of a
 * result gives the only REDUCED factor if there is exactly one and it still has digits to split,
 * else a linearity. */
void sw_rule_match(const sw_rule *rule, const sw_atoms *atoms, bool result, int32_t index,
                   const sw_layout *layout, uint32_t *mask, sw_strategy *strategy);

/* Find the factor in which (dim, top) of an operand or result lies, and the top within it (a digit
 * just below `top` in the dimension is a digit just below *factor_top in the factor). Return false
 * if no factor covers it. sw_rule_dim_of is the inverse. */
bool sw_rule_factor_at(const sw_rule *rule, bool result, int32_t index, int32_t dim, int64_t top,
                       int32_t *factor, int64_t *factor_top);
bool sw_rule_dim_of(const sw_rule *rule, bool result, int32_t index, int32_t factor,
                    int64_t factor_top, int32_t *dim, int64_t *top);
/* Return the dimension of an operand or result in which the factor stands, and write its stride
 * there; -1: in none. */
int32_t sw_rule_dim_with(const sw_rule *rule, bool result, int32_t index, int32_t factor,
                         int64_t *stride);
/* Return whether the factor stands in an operand or result. */
static inline bool sw_rule_has_factor(const sw_rule *rule, bool result, int32_t index,
                                      int32_t factor)
{
	int64_t stride;
	return sw_rule_dim_with(rule, result, index, factor, &stride) >= 0;
}

/* ---- the local op ----------------------------------------------------------------------- */

/* The coordinates of the running device as s32[] scalars of one computation of the program being
 * written; each is written at its first use. */
typedef struct sw_coordinates {
	sw_program *out;
	int32_t computation;
	const sw_atoms *atoms;
	sw_id partition; /* SW_NO_ID until needed */
	sw_id atom[SW_MAX_ATOMS];
	/* of sw_coordinate_is_first: the first sets of atoms that were queried, and the answers */
	int32_t n_first;
	uint32_t first_of[2 * SW_MAX_ATOMS];
	sw_id first[2 * SW_MAX_ATOMS];
	/* the permutations of devices that moves were written as, in turn; there may be a million
	 * devices */
	int32_t n_permuted;
	struct {
		sw_move move;
		sw_ints pairs;
	} permuted[8];
} sw_coordinates;
void sw_coordinates_init(sw_coordinates *coordinates, sw_program *out, int32_t computation,
                         const sw_atoms *atoms);
sw_id sw_coordinate(sw_coordinates *coordinates, int32_t atom);
/* Return a pred[]: the coordinates of all these atoms (at least one) are 0. It is written once for
 * each set. */
sw_id sw_coordinate_is_first(sw_coordinates *coordinates, uint32_t atoms);
/* Cut the device's part of `layout`'s digits of the atoms in `mask` out of x, which has every other
 * digit of `layout` taken out already. SLICE moves, constants and iotas are split in this way.
 * Emits reshape, dynamic-slice, reshape. */
sw_id sw_emit_cut(sw_coordinates *coordinates, sw_id x, sw_shape whole, const sw_layout *layout,
                  uint32_t mask);
/* Write one move of a redistribution: x is the device's part of `whole` under `before`; return its
 * part under move->after. Emits reshapes, transposes and one collective; reshapes and transposes
 * vanish where the digits that move lead the local data. */
sw_id sw_lower_move(sw_coordinates *coordinates, sw_shape whole, const sw_layout *before,
                    const sw_move *move, sw_id x);

/* Return the devices that have a part of a layout, as far as the O atoms of the mask say it. */
sw_owner sw_owner_of_layout(const sw_atoms *atoms, const sw_layout *layout, uint32_t mask);

typedef struct sw_localize {
	const sw_program *program;
	sw_id op;
	const sw_rule *rule;
	const sw_strategy *strategy;
	sw_coordinates *coordinates; /* holds the program and computation being written */
	/* source computation -> its copy in the program being written */
	const int32_t *computations;
	const sw_id *operands; /* local values, in the layouts of sw_rule_layouts */
} sw_localize;
/* Write the local op and the ops that it needs around it (offsets, masks, rebased indices); results
 * has n_results entries. */
sw_status sw_rule_localize(const sw_localize *local, sw_id *results, sw_error *err);

void sw_rule_print(const sw_program *program, sw_id op, const sw_rule *rule, sw_text *text);
void sw_strategy_print(const sw_atoms *atoms, const sw_rule *rule, const sw_strategy *strategy,
                       sw_text *text);

#endif
