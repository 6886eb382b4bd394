/*
 * Declarations that the files of explain share.
 *
 * - anatomy.c: the role of each op in a training step: forward, backward, update; whose gradient
 * - anatomy_sections.c: the layer to which each op belongs
 * - anatomy_names.c: names for inputs, dimensions and values
 * - explain_words.c: layouts, strategies and moves in words
 * - explain_blocks.c: how each block of the model is split, where its weights rest, how its
 * gradients are reduced
 * - explain_parallelism.c: the strategy that each axis resembles
 * - explain_collectives.c: the collectives by cost
 * - explain_avoid.c, avoid_price.c: the cheapest change that avoids a collective
 * - explain_memory.c: the tensors in memory at its peak
 * - explain_grids.c: how AxoNN's grids are ranked
 * - explain.c: all of this as data, and printed
 * - explain_diff.c: the differences between two explanations
 */
#ifndef SW_EXPLAIN_INTERNAL_H
#define SW_EXPLAIN_INTERNAL_H

#include "explain/explain.h"
#include "partition/served.h"

/* ---- explain.c: fields of an explanation ------------------------------------------------ */

#define SW_MAX_TABLE_ROWS 12 /* rows of a table that are printed unless it is to be whole */
const char *sw_field_text(const json_t *object, const char *key); /* "" if the field is missing */
double sw_field_number(const json_t *object, const char *key);
size_t sw_count_shown(const json_t *list, bool whole); /* number of entries that are printed */
void sw_print_more(const json_t *list, size_t shown, sw_text *text); /* "... and 3 more" */

/* ---- anatomy.c, anatomy_names.c, anatomy_sections.c ------------------------------------- */

/* FORWARD: ops that the loss depends on. UPDATE: ops from a gradient to the new value of its
 * state. */
typedef enum sw_pass { SW_PASS_FORWARD, SW_PASS_BACKWARD, SW_PASS_UPDATE } sw_pass;

/* A SECTION of the model: a layer, or another group of parameters ("embed", "head"). Layers whose
 * names differ only by a number share a pattern. */
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
	/* per entry input: its name without the prefix that all parameters share */
	const char **input_name;
	sw_id *region; /* per computation: the op that calls it, or SW_NO_ID */
	sw_id *order;  /* ops in the order of execution */
	/* per value: the entry input that it equals, seen through moves and conversions; -1:
	 * none */
	int32_t *input;
	/* per value: the parameter (entry input) whose gradient or update it is part of; -1:
	 * none */
	int32_t *gradient;
	int32_t *code_of; /* per op: the parameter whose gradient it codes or decodes; -1: none */
	bool *is_update; /* per value with a gradient: is it computed from the finished gradient? */
	int32_t *parameter_of; /* per entry input: the parameter whose moment it is; -1: none */
	uint8_t *phase;        /* sw_pass per op */
	int32_t *section;      /* per op; -1: none */
	SW_VEC(sw_section) sections; /* in the order of the forward pass */
	/* per class: "batch", "heads", ...; NULL: it has no well-known name */
	const char **class_name;
} sw_anatomy;
void sw_anatomy_init(sw_anatomy *anatomy, const sw_explained *what);
void sw_anatomy_clear(sw_anatomy *anatomy);
/* Parts of sw_anatomy_init, in this order: fill input_name; section and sections; class_name. */
void sw_anatomy_name_inputs(sw_anatomy *anatomy);
void sw_anatomy_find_sections(sw_anatomy *anatomy);
void sw_anatomy_name_classes(sw_anatomy *anatomy);
/* Return the parameter (entry input) that an operand of the op is, or -1. *operand: its index. */
int32_t sw_anatomy_parameter(const sw_anatomy *anatomy, sw_id op, uint32_t *operand);
/* Append a name for a value: "blocks.3.mlp.up", "gradient of head.w", "blocks.3 exponential". */
void sw_anatomy_label(const sw_anatomy *anatomy, sw_id value, sw_text *text);
/* Replace the numbers in which similar layers differ by "*". The result lives in the anatomy's
 * arena. */
const char *sw_anatomy_fold(sw_anatomy *anatomy, const char *label);
bool sw_is_contraction(const sw_op *op); /* dot, ragged-dot, convolution */
/* Does the op combine several elements of what it reads into one: contractions, reductions,
 * scatters, regions? */
bool sw_op_sums(const sw_program *program, const sw_op *op);

/* ---- explain_variables.c ---------------------------------------------------------------- */

/* Return the list "variables" of docs/plan-file.md; empty where the strategy has no ways. served:
 * what owners serve (partition/served.h); NULL: nothing. */
json_t *sw_explain_variables(const sw_anatomy *anatomy, const sw_explained *what,
                             const sw_served *served);
/* Append it as a table, or nothing if it is empty. */
void sw_explain_variables_print(const json_t *variables, bool whole, sw_text *text);
/* Return the entry "owners": what the device owns that owns most; null: no device owns anything. */
json_t *sw_explain_owners(const sw_anatomy *anatomy, const sw_plan *plan);
void sw_explain_owners_print(const json_t *owners, sw_text *text);

/* ---- explain_words.c -------------------------------------------------------------------- */

/* Append "x and y", "part of x". */
void sw_describe_axes(const sw_plan *plan, uint32_t atoms, sw_text *text);
/* Append "whole", "batch split over x", "dimension 1 (heads) split over y, partial sum over x". */
void sw_describe_layout(const sw_anatomy *anatomy, const sw_plan *plan, sw_id value,
                        const sw_layout *layout, sw_text *text);

/* The kind of dimension that an op of two operands splits over an axis. */
typedef enum sw_split_kind {
	SW_SPLITS_NOTHING,
	SW_SPLITS_BATCH,
	SW_SPLITS_ROWS,
	SW_SPLITS_OUTPUT,
	SW_SPLITS_CONTRACTION,
	SW_SPLITS_GROUP,
	SW_PASSES_PARTIAL_SUMS,
	SW_HAS_OWNER,
	SW_SPLIT_KIND_COUNT
} sw_split_kind;
/* "nothing", "batch", ... */
const char *sw_split_kind_word(sw_split_kind kind);
/* Return what the op splits over this axis. `weight` is the operand that is a parameter, or 1.
 * *factor: the factor that is split, or -1. */
sw_split_kind sw_split_kind_of(const sw_anatomy *anatomy, const sw_plan *plan, sw_id op,
                               uint32_t weight, int32_t axis, int32_t *factor);
/* Return the opcode of a collective in words: with a root it is no all-reduce. */
const char *sw_collective_word(const sw_op *op);
/* Append "batch split over x, output (heads) split over y". */
void sw_describe_strategy(const sw_anatomy *anatomy, const sw_plan *plan, sw_id op, uint32_t weight,
                          sw_text *text);
/* Append "all-gather over x", ...: the collectives among the local ops of an origin. False if there
 * are none. */
bool sw_describe_move(const sw_explained *what, size_t origin, sw_text *text);

/* ---- the sections ----------------------------------------------------------------------- */

json_t *sw_explain_blocks(sw_anatomy *anatomy, const sw_explained *what);
/* Name the strategy that each axis resembles in one section (-1: the whole model): "dp" over x, "as
 * Megatron (output split, then contraction split)" over y. */
json_t *sw_explain_parallelism(const sw_anatomy *anatomy, const sw_explained *what,
                               int32_t section);
json_t *sw_explain_collectives(sw_anatomy *anatomy, const sw_explained *what);
json_t *sw_explain_memory(sw_anatomy *anatomy, const sw_explained *what);

/* ---- explain_grids.c -------------------------------------------------------------------- */

/* List AxoNN's grids among the alternatives, in the order of their ranking, with the seconds of
 * communication by which the plan's program ranks them. Empty if there are none. */
json_t *sw_explain_grids(const sw_anatomy *anatomy, const sw_plan *plan);
void sw_explain_grids_print(const json_t *explained, sw_text *text);

/* The cheapest single change to the plan that makes a redistribution needless: another strategy of
 * the op that produces the value or of the one that reads it, or a parameter at rest in the layout
 * that its readers need. All other decisions stay. */
#define SW_MAX_CHANGED_OPS 4
typedef struct sw_avoidance {
	bool possible;
	/* the changed ops: the one whose strategy is replaced, then the ops behind it that only
	 * forward its result */
	int32_t n;
	sw_id op[SW_MAX_CHANGED_OPS];
	sw_strategy strategy[SW_MAX_CHANGED_OPS];
	sw_layout rest_layout; /* of a parameter */
	/* true: results keep their materialised layout, to which they are moved at once; false:
	 * each reader moves them */
	bool keep_materialised;
	double seconds; /* additional seconds per step; negative: the change is faster */
	/* the parts of `seconds`: the ops themselves; redistributions of their operands and
	 * results */
	double compute_s, communication_s;
	/* additional payload per step and rank; additional bytes on a device for operands and
	 * results */
	int64_t payload_bytes, memory_bytes;
} sw_avoidance;
typedef struct sw_avoider sw_avoider;
sw_avoider *sw_avoider_new(const sw_explained *what, sw_anatomy *anatomy);
void sw_avoider_free(sw_avoider *avoider);
void sw_avoid(sw_avoider *avoider, const sw_origin *origin, sw_avoidance *best);
/* Append the change in words. */
void sw_avoidance_print(sw_avoider *avoider, const sw_avoidance *avoidance, sw_text *text);
/* Make the change in a plan. False if the strategy is impossible. */
bool sw_avoidance_apply(const sw_avoidance *avoidance, sw_plan *plan);

#endif
