/*
 * rewrite: program to program.
 *
 * Each pass takes a verified program and returns a new verified one that computes the same results
 * from the same inputs, in the same order, with the same aliases. Ops that survive keep their
 * names.
 */
#ifndef SW_REWRITE_H
#define SW_REWRITE_H

#include <string.h>

#include "frontend/frontend.h"
#include "rules/rules.h"

/* Write the canonical form that planning works on: calls and fusions are inlined; identities
 * (same-shape broadcast, reshape, transpose, copy, convert, chains of reshapes) are forwarded;
 * batch normalisations are written out as sums and elementwise ops, and loops over layers layer by
 * layer; rows that are sorted by a key and put back are not sorted; what follows from constants is
 * a constant, and slices at constant places read what was put there; equal ops are merged; ops
 * without effect on a result are removed; no two loops share a condition or a body. Refuses
 * collectives (SW_ERR_INPUT); requires nothing else. Keeps all semantics bit for bit, except that
 * batch normalisations are rounded op by op, that rows which are not sorted are summed in another
 * order, and for the sign of a zero. Entry parameters stay, used or not. Deterministic. */
sw_status sw_rewrite_canonical(const sw_program *in, sw_program **out, sw_error *err);

/* Return whether the op is a loop or a conditional: the computations that it calls are parts of the
 * program around it, planned and padded op by op. In the canonical form no other op shares them,
 * since two callers may want different layouts or paddings of the same computation. */
static inline bool sw_is_region(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL;
}
/* Set where a dynamic-update-slice puts its update, clamped as it does, per dimension; false: op is
 * none, or the place is not constant. */
bool sw_fold_update(const sw_program *program, const sw_op *op, int64_t *start);
/* Mark the computations whose ops are planned one by one: c, and those of its regions. */
void sw_mark_planned(const sw_program *program, int32_t c, bool *planned);

/* Write a program in which each dot, convolution and sum of floats is one over the first elements, as
 * large a share of them as this, and one over the rest, added up; those in loops and branches, too.
 * Its results differ from the program's by what rounding does to them. O(ops). */
sw_program *sw_rewrite_regroup(const sw_program *in, double share);

/* ---- padding ---------------------------------------------------------------------------- */

/* States which dimensions are padded, and how far: to the next multiple, where that adds at most
 * one part in `share`. The dimensions that rules identify with one another are a class; classes are
 * numbered in the order of the program. */
typedef struct sw_pad_rule {
	int64_t multiple, share; /* multiple 0: nothing is padded */
	sw_ints classes;         /* only these classes; n == 0: all */
} sw_pad_rule;

/* Counts the values that have a dimension padded from one size to another. */
typedef struct sw_padded {
	int64_t size, padded;
	int32_t values;
} sw_padded;
typedef SW_VEC(sw_padded) sw_padded_list;

/* Takes a canonical program; returns another canonical one in which the dimensions that `rule`
 * selects have their padded sizes, including those of inputs and results of the entry, which
 * out->paddings lists. *out is NULL if there is nothing to pad.
 *
 * Dimensions that the rules (of ops) identify are padded together, if one of them is contracted or
 * convolved, is a leading dimension of an input that is no state, or belongs to a state of which no
 * dimension is a multiple yet. An op that needs the true size of a dimension gets a slice, and its
 * result is padded after it. Where a padded dimension is reduced the padding holds the neutral
 * element, by a select unless it holds it already; indices never point into the padding. So the
 * true part of the results depends only on the true part of the inputs, whatever their padding
 * holds; sums have additional neutral elements at their end. Ops keep their names where no slice or
 * mask took them first. Deterministic. `list` receives the sizes that were padded, ascending; the
 * caller clears it. */
sw_status sw_rewrite_pad(const sw_program *in, sw_pad_rule rule, sw_program **out,
                         sw_padded_list *list, sw_error *err);

/* Find where the classes that `rule` selects stand in `padded`, which was made of `in` by that
 * rule: for dimension d of value v, entry v * SW_MAX_RANK + d holds the number of the class and its
 * true size; the number is -1 where there is none, or where the name of the value's op identifies
 * no op of `in`. */
typedef struct sw_pad_map {
	int32_t n; /* classes in all */
	const int32_t *number;
	const int64_t *size;
} sw_pad_map;
sw_pad_map sw_rewrite_pad_map(const sw_program *in, sw_pad_rule rule, const sw_program *padded,
                              sw_arena *arena);

/* ---- rematerialisation ------------------------------------------------------------------ */

/* The part of a whole training step (forward, backward and optimizer in one graph) that matters for
 * rematerialisation: the values kept from forward to backward, and the places at which the forward
 * pass is narrow. All of it is found from the graph alone.
 *
 * FORWARD are the ops that every gradient needs: those from which the new value of each trained
 * state can be reached. Paths through single numbers, such as the norm of gradient clipping, do not
 * count. FLOW are the forward ops that depend on both data and state. LATE are the ops that depend
 * on the loss, and those that only late ops need and that stand after the loss begins.
 *
 * CRITICAL VALUES are those alive, for the forward pass, at a narrow place of the flow: one at which
 * the live values are at most a quarter of the bytes that the backward pass reads from the ops since
 * the last narrow place. (Rhino's critical nodes are contractions, and something else.) A SEGMENT is
 * the flow between two narrow places; equal layers give equal segments. The ops after the last
 * narrow place are the loss, and are never computed again.
 *
 * The order of time is that of the entry's ops, which run one after another. */
typedef enum sw_remat_role {
	/* inputs, constants; ops that feed no late op (metrics, running statistics) */
	SW_REMAT_APART,
	/* not late, computed from inputs and constants without the flow: masks, tables of angles,
	 * converted weights */
	SW_REMAT_SIDE,
	/* not late, part of the flow */
	SW_REMAT_FLOW,
	SW_REMAT_LATE
} sw_remat_role;

typedef struct sw_remat_points {
	sw_arena arena;
	const sw_program *program;
	const sw_remat_role *roles; /* per op of the entry */
	/* per op: the segment that computes it if it is FLOW; -1 elsewhere */
	const int32_t *segment;
	/* per value of the flow: the last segment whose forward ops read it; n_segments: the loss
	 * reads it; -1 elsewhere */
	const int32_t *needed_in;
	const bool *after_loss; /* per op: LATE because it depends on the loss */
	/* per op: the last gradient needs it (through more than single numbers) */
	const bool *chain;
	/* per op: it is FORWARD. Forward ops read originals, never copies: what the loss reads is
	 * kept. */
	const bool *forward;
	/* per op: it depends on the last op of the flow, so that it is LATE wherever the narrow
	 * places are, in padded programs too; everywhere where there is no trained state */
	const bool *settled;
	/* 0: none found (there is no trained state, or no narrow place) */
	int32_t n_segments;
	/* bytes of side and flow values that late ops read: the ACTIVATIONS */
	int64_t kept_bytes;
} sw_remat_points;
/* Find the points of a canonical program, which must outlive them. O(ops * states / 64). Only the
 * entry is examined: a loop is one op. */
void sw_remat_points_init(sw_remat_points *points, const sw_program *program);
void sw_remat_points_clear(sw_remat_points *points);
/* Return whether the reader reads the op itself wherever something is computed again, in padded
 * programs too, and never a copy of it. */
bool sw_remat_reads_original(const sw_remat_points *points, sw_id op, sw_id reader);
/* Return whether at most one copy of the op is written, which then serves all readers that do not
 * read the op itself. */
bool sw_remat_copies_once(const sw_remat_points *points, sw_id op);
/* Return whether the value is kept when only every `every`-th narrow place is kept. */
bool sw_remat_is_critical(const sw_remat_points *points, sw_id value, int32_t every);

/* Selects the ops that are computed again for late readers. They must be side or flow, repeatable
 * (without effect; no random number except from a state), and no source. All other values that the
 * copies read are kept. */
typedef struct sw_remat {
	const sw_remat_points *points;
	const bool *again; /* per op */
	/* number of consecutive segments treated as one: side ops are computed again once for each
	 * such group */
	int32_t every;
} sw_remat;

/* Write the program in which late ops read copies of the ops that are computed again, and never the
 * first results, whose live ranges therefore end with the forward pass. Copies stand right before
 * their first late reader. A copy reads kept values through an opt-barrier (as JAX's checkpoint
 * does), so that equal ops are not merged again; late readers of kept values read them from the
 * barrier too, once it exists. Late ops outside the chain (weight gradients, and updates that wait
 * for no other gradient) are written as soon as their operands are available, since they are the
 * last readers of activations: a policy without copies changes nothing but this order. The result
 * is canonical and computes the same bit for bit; *out is NULL if nothing changes. `in` is
 * canonical. O(ops log ops). */
sw_status sw_rewrite_remat(const sw_program *in, const sw_remat *what, sw_program **out,
                           sw_error *err);

/* The device by which seconds are estimated: an op takes the longer of computing and moving
 * bytes. */
typedef struct sw_remat_device {
	double flops_per_s, bytes_per_s;
} sw_remat_device;

typedef struct sw_remat_policy {
	const char *name;
	sw_remat what; /* again == NULL: no op is computed again */
	/* sw_program_peak_bytes of the rewritten program, in the order in which it is written */
	int64_t peak_bytes;
	int64_t kept_bytes; /* activations */
	double added_flops, added_bytes, added_s;
} sw_remat_policy;
typedef SW_VEC(sw_remat_policy) sw_remat_policy_list;

/* List the policies to try, beginning with "none", by rising seconds; each has a lower peak than
 * all before it. In each segment the ops that are computed again are those behind the cheapest cut,
 * in bytes kept, that recomputes no op that the policy considers too expensive; remat_policies.c
 * has the table of policies. `points` must outlive the list, whose arrays lie in its arena. */
sw_status sw_remat_policies(sw_remat_points *points, sw_remat_device device,
                            sw_remat_policy_list *list, sw_error *err);
/* The name of policy i of the table, "none" left out, from 0 on; NULL past the last. */
const char *sw_remat_policy_name(size_t i);
/* Rewrite by the policy of that name alone, whether it lowers the peak or not. SW_ERR_INPUT if no
 * policy has the name, SW_NO if it changes nothing of this program. */
sw_status sw_rewrite_remat_policy(const sw_program *in, const char *policy, sw_remat_device device,
                                  sw_program **out, sw_error *err);

/* ---- the batch -------------------------------------------------------------------------- */

/* Find the dimension of the entry inputs that is the batch. dim: of each input; 0 where it is data,
 * which is where the batch is looked for, and -1 where not; on return the dimension, -1: it has no
 * batch, as keys of random numbers, tables, weights of classes and masks of positions have none.
 * Return the greatest common divisor of these dimensions; 1: there is nothing to split. `inputs`:
 * the value of each input. O(ops), for each level of loops and branches, and O(values) for each
 * data input where their sizes differ. */
int64_t sw_find_batch(const sw_program *program, const sw_id *inputs, uint32_t n, int32_t *dim);

/* ---- microbatches ----------------------------------------------------------------------- */

/* The batch (of the data inputs that have it, sw_find_batch) is split over TIME: m iterations, each with
 * every m-th sample, so that any split of the batch over devices leaves each device its part of
 * every microbatch. Where the rules carry that split, an op is in the BODY of a loop. Sums over the
 * batch are partial sums over time. They pass every op that is linear in them; where the next op is
 * not linear, they are SUMMED, and the loop must be over first. So there may be several loops, one
 * after the other, each as late as its readers allow: PHASES. Values of an earlier loop's
 * microbatches that a later loop reads are STORED whole. Ops without time stand before the first
 * loop that needs them, or after the last (APPLY). Sources (constants, iotas, and values computed
 * from them by position, for example random numbers) are SUNK into the loop where only parts of
 * them are read. */
typedef enum sw_part {
	SW_PART_HOISTED, /* before the first loop */
	SW_PART_BODY,    /* in a loop */
	SW_PART_BETWEEN, /* between two loops */
	SW_PART_APPLY,   /* after the last loop */
} sw_part;

/* A value that leaves a loop. */
typedef struct sw_leaving {
	/* reader: the first op outside the loop that reads it; SW_NO_ID: it is a result of the
	 * program */
	sw_id value, reader;
	sw_monoid monoid; /* of its sum over time; NONE: stored, microbatch by microbatch */
} sw_leaving;
typedef struct sw_phase {
	int32_t ops; /* ops of nested loops and branches are not counted: each region is one */
	double flops;
	int32_t n_sums, n_leaving;
	const sw_leaving *leaving; /* the sums first: the synchronisation points */
	int64_t sum_bytes, stored_bytes;
} sw_phase;

typedef struct sw_phases {
	sw_arena arena;
	int64_t batch; /* as sw_find_batch returns it */
	/* numbers of microbatches that the program allows, ascending, above 1 */
	sw_ints possible;
	/* the least possible number, to which all fields below refer; 0: none */
	int32_t microbatches;
	int32_t n; /* phases */
	const sw_phase *phases;
	const uint8_t *part; /* sw_part, per op of the entry (by id) */
	/* per op, in loops and branches too: the factor of its rule that iterations split, -1: none. It
	 * is the same for all possible numbers: that of the innermost part of the batch. */
	const int8_t *split;
	const bool *touched; /* per op: it depends on the batch, so that each iteration runs it */
	/* ops, without inputs and constants */
	int32_t hoisted, between, apply;
	double flops; /* of the whole step */
	/* The least number of microbatches that is not possible, and the first op that refuses it;
	 * refused 0: all divisors of the batch are possible. */
	int32_t refused;
	const char *refuses, *opcode, *why, *path; /* path: from an input to the op, by op names */
} sw_phases;
/* Find the phases of a canonical program. Time and memory: linear in the program, for each divisor
 * of the batch. */
void sw_phases_init(sw_phases *phases, const sw_program *program, const sw_sidecar *sidecar);
/* The same, but `possible` ends with the least number, beyond which nothing is looked for. */
void sw_phases_init_least(sw_phases *phases, const sw_program *program, const sw_sidecar *sidecar);
void sw_phases_clear(sw_phases *phases);

/* Takes a canonical program; returns another canonical one that computes the step in `microbatches`
 * iterations: a `while` with that trip count per phase, with sums in accumulators (those of short
 * floats in f32). Inputs, results and aliases are unchanged; sums are reassociated, all other
 * values are the same, random numbers included. SW_ERR_INPUT if the number is below 2 or does not
 * divide the batch; SW_NO if an op refuses: the message names it and the path from an input. */
sw_status sw_rewrite_microbatches(const sw_program *in, const sw_sidecar *sidecar,
                                  int32_t microbatches, sw_program **out, sw_error *err);

/* Is the op a loop that sw_rewrite_microbatches wrote? */
#define SW_MICROBATCH_LOOP "microbatches" /* what its name begins with */
static inline bool sw_is_microbatch_loop(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE &&
	       !strncmp(op->name, SW_MICROBATCH_LOOP, strlen(SW_MICROBATCH_LOOP));
}

/* ---- variables ------------------------------------------------------------------------- */

/* The state of a program, as arrays by number of input or result. All is borrowed. */
typedef struct sw_state_view {
	const sw_program *program;
	uint32_t n_inputs;
	const sw_id *inputs;            /* value per entry input leaf */
	const sw_role *role;            /* per input */
	const int32_t *input_of_output; /* per entry result: the input that it replaces; -1: none */
} sw_state_view;
/* The state as the sidecar and the aliases say it; its arrays lie in the arena. */
sw_state_view sw_state_view_of(const sw_program *program, const sw_sidecar *sidecar,
                               sw_arena *arena);

/* A VARIABLE is a parameter with the moments that its update reads; it has a shape, which all of
 * them have. */
typedef struct sw_variable_map {
	uint32_t n;
	const uint32_t *input;   /* per variable: the parameter's leaf; a moment's if it has none */
	/* per variable: a gradient, or something else than its own state and constants, changes it;
	 * else it is frozen, as the weights are to which LoRA adds */
	const bool *trained;
	const int32_t *of_input; /* per input leaf: its variable; -1: of none */
	const int32_t *of_op;    /* per op of an update: likewise */
	const int32_t *of_end;   /* per op that gives a gradient, or a term of it: likewise */
	/* per op: updates of several variables read it, element by element, in their shape */
	const bool *shared;
	/* Per variable without a parameter: the one with a parameter whose update alone reads it, as that
	 * of a factored moment or of one that a product orthogonalises; -1: there is none. Of
	 * sw_variables_map alone, else NULL. */
	const int32_t *goes_with;
} sw_variable_map;
/* Find the variables of a canonical program; all of the map lies in the arena. O(ops), times the longest
 * chain of variables without a parameter that updates of each other read. */
sw_variable_map sw_variables_map(const sw_state_view *state, sw_arena *arena);
/* The same without variables that are frozen. */
sw_variable_map sw_trained_variables(const sw_state_view *state, sw_arena *arena);

/* How a gradient is sent: as it is, or in fewer bytes, with error feedback (codecs.c). TERMS: as it
 * is, but each device's term of it is a value of its own, so that whoever owns the variable may add
 * up what has come (staleness, partition/served.h). */
typedef enum sw_codec_kind {
	SW_CODEC_NONE,
	SW_CODEC_TERMS,
	SW_CODEC_BF16,
	SW_CODEC_F16,
	SW_CODEC_INT8,
	SW_CODEC_TOPK,
	SW_CODEC_POWERSGD,
	SW_CODEC_COUNT
} sw_codec_kind;
typedef struct sw_codec {
	sw_codec_kind kind;
	double share; /* TOPK: of the elements, in (0, 1] */
	int64_t rank; /* POWERSGD */
} sw_codec;
#define SW_MAX_CODEC_RANK 64
#define SW_MAX_CODED_DEVICES (1 << 20)
/* "bf16", "topk=0.01", "powersgd=4"; the number may be missing. */
#define SW_CODEC_WORDS "none, bf16, f16, int8, topk[=SHARE], or powersgd[=RANK], of at most rank 64"
bool sw_codec_parse(const char *text, sw_codec *codec);
void sw_codec_print(sw_codec codec, sw_text *text);
/* Can gradients of this shape be coded so? Others are sent as they are. */
bool sw_codec_fits(sw_codec codec, sw_shape shape);
/* The op_name of all ops that code the gradient of a variable: its name, and this. */
#define SW_CODED_TITLE ".gradient"
/* Is less sent than the gradient, so that what that lacks is kept? */
static inline bool sw_codec_lacks(sw_codec codec)
{
	return codec.kind > SW_CODEC_TERMS;
}
/* Does it round numbers, so that their sum is rounded once more? */
static inline bool sw_codec_rounds(sw_codec codec)
{
	return codec.kind == SW_CODEC_BF16 || codec.kind == SW_CODEC_F16 ||
	       codec.kind == SW_CODEC_INT8;
}

/* The form in which a variable stands in the program that is planned. */
typedef struct sw_variable_form {
	uint32_t input; /* the leaf of its parameter */
	int32_t axis;
	sw_ints sizes; /* along the axis, of the parts that it is divided into; n == 0: it is whole */
	sw_codec codec;  /* of its gradient, or of those of its parts */
	int64_t devices; /* that have a term of the gradient, where it is coded; else 0 */
	/* of TERMS: how many steps old a value may be that a device reads; SW_STALE_ANY */
	int64_t stale;
} sw_variable_form;
#define SW_STALE_ANY (-1) /* as old as it is: the owner updates with each term that comes */
#define SW_MAX_STALE 1000 /* steps */
/* "4", "any". */
bool sw_stale_parse(const char *text, int64_t *stale);
void sw_stale_print(int64_t stale, sw_text *text);
typedef struct sw_variable_forms {
	size_t n;
	const sw_variable_form *list; /* by rising input */
} sw_variable_forms;
/* Return the form of the variable that an input is of, or of a part of which it is; NULL: none. */
const sw_variable_form *sw_form_of(const sw_variable_forms *forms, const sw_sidecar *sidecar,
                                   uint32_t input);
/* Return the map of the variables that owners serve: of those that are trained, and whose gradient
 * these forms take apart into terms. */
sw_variable_map sw_served_variables(const sw_state_view *state, const sw_sidecar *sidecar,
                                    const sw_variable_forms *forms, sw_arena *arena);
/* Return the key that lets owners serve variables of these forms, as messages name it: "stale" where
 * a value may be old, else "served". */
const char *sw_served_key(const sw_variable_forms *forms);
#define SW_MAX_VARIABLE_PARTS 4096
void sw_forms_sort(sw_variable_form *list, size_t n); /* by rising input */
/* Return the sizes of parts of a dimension: they differ by 1 at most, the larger ones first. */
sw_ints sw_about_equal_parts(sw_arena *arena, int64_t size, int64_t parts);
/* Write the program in which variables have these forms, and its sidecar. `in` is canonical, and
 * so is *out. Of a variable in parts each input, and the result that replaces it, stands for as many
 * as it has parts, in its place; each part is updated by itself, from its slice of the gradient;
 * other ops read the parts concatenated. Names of parts are NAME.part0 and so on. Readers of a coded
 * gradient get what its codes say; what they lack is state, in inputs and results behind all others,
 * NAME.residual and so on. Where a gradient is in TERMS, so is the loss, and all elements of the
 * gradient of a variable in parts are added up part by part. SW_ERR_INPUT: an input is no
 * variable's, sizes do not add up to its dimension, or a gradient is no single value. O(ops + parts),
 * for gradients that are sums of several values times the ops of their updates. */
sw_status sw_rewrite_variables(const sw_program *in, const sw_sidecar *sidecar,
                               const sw_variable_forms *forms, sw_program **out,
                               sw_sidecar *out_sidecar, sw_error *err);

/* Write the program in which each variable that is a stack of layers, read one layer at a time, is a
 * variable per layer, and its sidecar; *out is NULL if there is none. Numbers that are reduced from
 * all layers, such as a norm, are made of one for each layer, in another order of summation. Updates
 * and errors are those of sw_rewrite_variables. O(ops + layers). */
sw_status sw_rewrite_layers_apart(const sw_program *in, const sw_sidecar *sidecar, sw_program **out,
                                  sw_sidecar *out_sidecar, sw_error *err);

/* ---- all passes in order ---------------------------------------------------------------- */

/* The rewrites of a program before its layouts are chosen, in this order, because rematerialisation
 * examines only the whole step, and its barriers and its order of the ops are preserved within the
 * body of a loop. */
typedef struct sw_rewrites {
	sw_pad_rule padding;  /* multiple 0: nothing is padded */
	const char *remat;    /* a policy; NULL: nothing is computed again */
	int32_t microbatches; /* below 2: the batch is not split */
} sw_rewrites;
/* Takes a canonical program and returns another; *out is NULL if no rewrite is requested. Fails as
 * the passes do, with SW_NO where one changes nothing. `padded` receives the sizes that were
 * padded; the caller clears it. */
sw_status sw_rewrite_in_order(const sw_program *in, const sw_sidecar *sidecar,
                              const sw_rewrites *what, sw_remat_device device, sw_program **out,
                              sw_padded_list *padded, sw_error *err);

#endif
