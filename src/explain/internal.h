/*
 * What the files of explain share.
 *
 *   anatomy.c              what the ops of a training step are for: forward, backward, update;
 * which layer; whose gradient explain_words.c        layouts and strategies in words
 *   explain_blocks.c       the model's blocks: how each is split, where weights rest, how gradients
 * are reduced explain_collectives.c  collectives by what they cost, and (explain_avoid.c) what it
 * would cost to do without explain_memory.c       who fills the memory at its peak explain.c all of
 * it as data, and printed diff.c                 what two explanations say differently
 */
#ifndef SW_EXPLAIN_INTERNAL_H
#define SW_EXPLAIN_INTERNAL_H

#include "explain/explain.h"

/* ---- explain.c: reading what was said --------------------------------------------------- */

#define SW_MOST_LINES 12                                    /* of a table, unless it is whole */
const char *sw_said(const json_t *object, const char *key); /* "" where there is nothing */
double sw_said_number(const json_t *object, const char *key);
size_t sw_said_lines(const json_t *list, bool whole); /* how many of a list are shown */

/* ---- anatomy.c -------------------------------------------------------------------------- */

/* FORWARD: what the loss needs. UPDATE: from a gradient to the new value of its state. */
typedef enum sw_pass { SW_PASS_FORWARD, SW_PASS_BACKWARD, SW_PASS_UPDATE } sw_pass;

/* A SECTION of the model: a layer, or what else has parameters of its own ("embed", "head"). Layers
 * that differ by a number have one pattern. */
typedef struct sw_section {
	const char *name, *pattern; /* "blocks.3", "blocks.*" */
} sw_section;

typedef struct sw_anatomy {
	sw_arena arena;
	const sw_program *program;
	const sw_sidecar *sidecar;
	sw_roles roles;
	sw_classes classes;
	sw_users users;
	/* per entry input: short, without what all parameters have in front */
	const char **input_name;
	sw_id *region; /* per computation: the op that runs it, SW_NO_ID */
	sw_id *order;  /* ops as they run */
	/* per value: the entry input that it is, seen through moves and conversions; -1 */
	int32_t *input;
	/* per value: the parameter (entry input) whose gradient or update it is part of; -1 */
	int32_t *gradient;
	bool *is_update;             /* per value: of those the ones behind the gradient */
	int32_t *parameter_of;       /* per entry input: the parameter whose moment it is; -1 */
	uint8_t *phase;              /* sw_pass per op */
	int32_t *section;            /* per op: -1: none */
	SW_VEC(sw_section) sections; /* as the forward pass comes by */
	/* per class: "batch", "heads", ...; NULL: none that everybody knows */
	const char **class_name;
} sw_anatomy;
void sw_anatomy_init(sw_anatomy *anatomy, const sw_explained *what);
void sw_anatomy_clear(sw_anatomy *anatomy);
/* The parameter that an operand of the op is; -1: none. *operand: which. */
int32_t sw_anatomy_parameter(const sw_anatomy *anatomy, sw_id op, uint32_t *operand);
/* What the result of an op is, in words: "blocks.3.mlp.up", "gradient of head.w", "blocks.3
 * exponential". */
void sw_anatomy_label(const sw_anatomy *anatomy, sw_id value, sw_text *text);
/* The same with "*" for the numbers by which alike layers differ. In the anatomy's arena. */
const char *sw_anatomy_folded(sw_anatomy *anatomy, const char *label);
bool sw_is_contraction(const sw_op *op); /* dot, ragged-dot, convolution */
/* Does a result have fewer elements, or other ones, than what the op reads: contractions,
 * reductions, scatters, regions. */
bool sw_op_sums(const sw_program *program, const sw_op *op);

/* ---- explain_words.c -------------------------------------------------------------------- */

/* "x and y", "part of x". */
void sw_words_axes(const sw_plan *plan, uint32_t atoms, sw_text *text);
/* "whole", "batch over x", "dim 1 (heads) over y, partial sum over x". */
void sw_words_layout(const sw_anatomy *anatomy, const sw_plan *plan, sw_id value,
                     const sw_layout *layout, sw_text *text);

/* What an op of two operands splits on an axis. */
typedef enum sw_use {
	SW_USE_NONE,
	SW_USE_BATCH,
	SW_USE_ROWS,
	SW_USE_OUTPUT,
	SW_USE_CONTRACTION,
	SW_USE_GROUP,
	SW_USE_PARTIAL,
	SW_USE_COUNT
} sw_use;
/* On axis i; `weight` is the operand that is a parameter, or 1. *factor: which; -1: none. */
sw_use sw_words_use(const sw_anatomy *anatomy, const sw_plan *plan, sw_id op, uint32_t weight,
                    int32_t axis, int32_t *factor);
/* "batch over x; output (heads) over y". */
void sw_words_strategy(const sw_anatomy *anatomy, const sw_plan *plan, sw_id op, uint32_t weight,
                       sw_text *text);
/* "all-gather over x", ...: what the local ops of an origin send. False: nothing. */
bool sw_words_move(const sw_explained *what, size_t origin, sw_text *text);

/* ---- the sections ----------------------------------------------------------------------- */

json_t *sw_explain_blocks(sw_anatomy *anatomy, const sw_explained *what);
/* "dp over x; as Megatron (output split, then contraction split) over y", of the whole model. */
json_t *sw_explain_parallelism(const sw_anatomy *anatomy, const sw_explained *what);
json_t *sw_explain_collectives(sw_anatomy *anatomy, const sw_explained *what);
json_t *sw_explain_memory(sw_anatomy *anatomy, const sw_explained *what);

/* The cheapest other choice next to a redistribution under which nothing is sent for it: another
 * strategy of the op that makes the value or of the one that reads it, or a parameter at rest as
 * its readers want it. Everything else is as it is. */
#define SW_MOST_FOLLOWERS 4
typedef struct sw_avoidance {
	bool possible;
	/* ops whose choice would be another: the first's, and behind it those that only hand its
	 * result on */
	int32_t n;
	sw_id op[SW_MOST_FOLLOWERS];
	sw_strategy strategy[SW_MOST_FOLLOWERS];
	sw_layout rest; /* of a parameter */
	/* results are moved at once to how they are kept now; else each reader moves them */
	bool at_once;
	double seconds; /* more per step (less: negative) */
	/* of that: the op itself; redistributions of what it reads and gives */
	double compute_s, communication_s;
	/* more per step and rank; more on a device for what it reads and gives */
	int64_t payload_bytes, memory_bytes;
} sw_avoidance;
typedef struct sw_avoider sw_avoider;
sw_avoider *sw_avoider_new(const sw_explained *what, sw_anatomy *anatomy);
void sw_avoider_free(sw_avoider *avoider);
void sw_avoid(sw_avoider *avoider, const sw_origin *origin, sw_avoidance *best);
/* What would be done instead, in words. */
void sw_avoidance_print(sw_avoider *avoider, const sw_avoidance *avoidance, sw_text *text);
/* Takes it into a plan. False if the strategy is impossible. */
bool sw_avoidance_apply(const sw_avoidance *avoidance, sw_plan *plan);

#endif
