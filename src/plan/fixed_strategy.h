/*
 * The fixed strategies as data: the name and arguments of each, and how it uses the axes of its
 * mesh. model/meshes.c makes the meshes; the planner decides everything that a strategy leaves
 * open.
 */
#ifndef SW_PLAN_FIXED_STRATEGY_H
#define SW_PLAN_FIXED_STRATEGY_H

#include "plan/plan.h"

/* The members of a class of splits (model.h). A WEIGHT DOT is a dot or convolution of a parameter
 * with an operand that is no parameter. */
typedef enum sw_class_role {
	/* the batch of a data input (sw_find_batch), or digits of it (a batch within a microbatch) */
	SW_CLASS_DATA = 1,
	SW_CLASS_STATE = 2, /* a dimension of a state input */
	/* a dimension of a dot, or of a state or data input: splitting it makes a candidate */
	SW_CLASS_HEAVY = 4,
	/* a dimension that a weight dot has in its other operand and its result alone: batch,
	 * sequence, pixels */
	SW_CLASS_ROWS = 8,
	/* a dimension that a weight dot has in both operands and its result: a weight per expert */
	SW_CLASS_EXPERT = 16,
} sw_class_role;
/* The classes that have one of the roles `any` and none of the roles `none`. */
typedef struct sw_class_set {
	uint8_t any, none;
} sw_class_set;

/* OWN: each variable has its own way (model/ways.h). The others say of those that may have any: all have
 * one, as far as they can, and else gradients are all-reduced: REDUCED, MOMENTS and SPLIT (as under ZeRO),
 * OWNED, PROXY (owned, with a copy on every device), GATHERED. SPARSE, GATHERED_ROWS: scattered gradients go
 * to owners, or are gathered. PARTITIONED: what does not divide has an owner. */
typedef enum sw_axis_ways {
	SW_WAYS_NONE,
	SW_WAYS_OWN,
	SW_WAYS_REDUCED,
	SW_WAYS_MOMENTS,
	SW_WAYS_SPLIT,
	SW_WAYS_OWNED,
	SW_WAYS_PROXY,
	SW_WAYS_SPARSE,
	SW_WAYS_PARTITIONED,
	SW_WAYS_GATHERED,
	SW_WAYS_GATHERED_ROWS,
	SW_WAYS_COUNT
} sw_axis_ways;

/* How an axis may be used: the splits that decisions of each kind have over it. Where no demanded
 * split divides by the axis, a decision is free: it may be replicated, pass partial sums on, or
 * have a split of `may`. */
typedef struct sw_axis_use {
	/* a weight dot must split one of these dimensions of its parameter */
	sw_class_set weights;
	/* a dot that sums a gradient up over rows must have one of these splits */
	sw_class_set gradient_dots;
	bool apart;     /* each of the axes with this flag splits another dimension */
	bool contracts; /* a dot must split a dimension that it contracts */
	/* A decision that has one of these splits must have it or one of `may`; so must data inputs
	 * and boundaries. */
	sw_class_set must;
	sw_class_set may;
	/* an op that has one of these splits is not replicated: it has a split of `may` */
	sw_class_set cut;
	/* Parameters and moments are split at rest, along any dimension of state; then updates may
	 * be split, too. */
	bool parameters, moments;
	/* at rest, also by a digit below the one that an inner axis has of the same dimension */
	bool below;
	/* Values without a batch that are no parameters are split along a dimension of state, so
	 * that gradients are reduce-scattered at once. */
	bool gradients;
	sw_axis_ways ways; /* how variables are synchronised */
	/* Gradients that a loop sums up are not split while it runs, though moments are. */
	bool whole_sums;
} sw_axis_use;

/* One axis of a strategy's mesh. */
typedef struct sw_strategy_axis {
	const char *name; /* NULL: named by a letter */
	int32_t size;     /* index into sw_plan_strategy.size; -1: the devices that are left */
	const sw_axis_use *use;
	/* The use where the batch does not divide by the axis and those outside it; of Megatron's
	 * inner axis, the use with sequence parallelism. NULL: the same as `use`. */
	const sw_axis_use *other;
} sw_strategy_axis;

/* Parse the text behind the colon (NULL: no colon); print it with its colon. */
typedef bool sw_parse_strategy(const char *arguments, sw_plan_strategy *strategy);
typedef void sw_print_strategy(const sw_plan_strategy *strategy, sw_text *text);

typedef struct sw_fixed_strategy {
	sw_strategy_kind kind;
	const char *name, *arguments; /* arguments: how they are written, for messages */
	sw_parse_strategy *parse;     /* NULL: users can't request it */
	sw_print_strategy *print;
	int32_t n_axes;
	const sw_strategy_axis *axes; /* outermost first */
} sw_fixed_strategy;

const sw_fixed_strategy *sw_fixed_strategy_of(sw_strategy_kind kind);
/* Return the axes that stand for others of the strategy `ways` where it tries all variables in one
 * way. */
const sw_strategy_axis *sw_strategy_ways_axis(sw_axis_ways ways);
/* Return the first axis of a strategy, for data parallelism, as its stage of ZeRO uses it. */
const sw_strategy_axis *sw_strategy_data_axis(const sw_plan_strategy *strategy);

#endif
