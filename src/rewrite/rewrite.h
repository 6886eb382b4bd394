/*
 * rewrite: program to program.
 *
 * Each pass takes a verified program and gives a new verified one that computes the same results
 * from the same inputs, in the same order, with the same aliases. Names of ops that survive are
 * kept.
 */
#ifndef SW_REWRITE_H
#define SW_REWRITE_H

#include "frontend/frontend.h"
#include "rules/rules.h"

/* What planning works on: calls and fusions inlined; identities (same-shape broadcast, reshape,
 * transpose, copy, convert, chains of reshapes) forwarded; batch normalisations written out as sums
 * and elementwise ops; equal ops merged; ops without effect on a result removed; no two loops share
 * a condition or a body. Refuses collectives (SW_ERR_INPUT); requires nothing else, keeps all
 * semantics bit for bit, but that batch normalisations are rounded op by op. Entry parameters stay,
 * used or not. Deterministic. */
sw_status sw_rewrite_canonical(const sw_program *in, sw_program **out, sw_error *err);

/* A loop or a conditional: what it calls is a part of the program around it, planned and padded op
 * by op. In the canonical form it has its computations for itself, since two callers may want what
 * lies in them in two ways. */
static inline bool sw_is_region(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL;
}
/* The computations whose ops are planned one by one: c, and those of its regions. */
void sw_mark_planned(const sw_program *program, int32_t c, bool *planned);

/* ---- padding ---------------------------------------------------------------------------- */

/* Which dimensions are padded, and how far: to the next multiple, where that adds at most one part
 * in `share`. Those that rules identify are a class; classes have numbers, in the order of the
 * program. */
typedef struct sw_pad_rule {
	int64_t multiple, share; /* multiple 0: nothing is padded */
	sw_ints classes;         /* only these; n == 0: all */
} sw_pad_rule;

/* Of all that was padded from one size to another: how many values have such a dimension. */
typedef struct sw_padded {
	int64_t size, padded;
	int32_t values;
} sw_padded;
typedef SW_VEC(sw_padded) sw_padded_list;

/* Takes a canonical program; gives one, canonical too, in which dimensions that `rule` names have
 * the sizes that it says, for inputs and results of the entry as well: out->paddings lists those.
 * *out is NULL if there is nothing to pad.
 *
 * Dimensions that the rules (of ops) identify are padded together, if one of them is contracted or
 * convolved, is a leading dimension of an input that is no state, or belongs to a state of which no
 * dimension is a multiple yet. An op that needs the true size of a dimension gets a slice, and its
 * result is padded after it. Where a padded dimension is reduced the padding holds the neutral
 * element, by a select unless it does anyway; indices never point into it. So what is true in the
 * results follows from what is true in the inputs, whatever else these hold; sums have neutral
 * elements at their end. Ops keep their names where no slice or mask took them first.
 * Deterministic. `list` gets what was padded, ascending; the caller clears it. */
sw_status sw_rewrite_pad(const sw_program *in, sw_pad_rule rule, sw_program **out,
                         sw_padded_list *list, sw_error *err);

/* Where the classes that `rule` names, and by which `padded` was made of `in`, stand in `padded`:
 * for dimension d of value v, at v * SW_MAX_RANK + d, the number of the class and its true size; -1
 * where there is none, or the name of the value's op tells nothing. */
typedef struct sw_pad_map {
	int32_t n; /* classes in all */
	const int32_t *number;
	const int64_t *size;
} sw_pad_map;
sw_pad_map sw_rewrite_pad_map(const sw_program *in, sw_pad_rule rule, const sw_program *padded,
                              sw_arena *arena);

/* ---- rematerialisation ------------------------------------------------------------------ */

/* Of a whole training step (forward, backward and optimizer in one graph) what is kept from forward
 * to backward, and where the forward pass is narrow, found from the graph alone: FORWARD are the
 * ops that every gradient needs: those from which the new value of each trained state can be
 * reached (paths through single numbers, as the norm of gradient clipping is one, don't count). Of
 * them those that depend on both data and state FLOW. CRITICAL VALUES (Rhino's critical nodes) are
 * those alive, for the forward pass, at a narrow place of the flow: what is alive there is at most
 * a quarter of what the backward pass reads of the ops since the last narrow place. Between two of
 * them lies a SEGMENT; equal layers give equal segments. What follows the last narrow place is the
 * loss and never computed again. LATE ops are what depends on the loss, and what only such ops need
 * and stands behind its beginning. The order of time is that of the entry's ops, which run one
 * after another. */
typedef enum sw_remat_role {
	SW_REMAT_APART, /* inputs, constants; what feeds no late op (metrics, running statistics) */
	/* early, from inputs and constants without the flow: masks, tables of angles, converted
	   weights */
	SW_REMAT_SIDE,
	SW_REMAT_FLOW, /* early */
	SW_REMAT_LATE
} sw_remat_role;

typedef struct sw_remat_points {
	sw_arena arena;
	const sw_program *program;
	const sw_remat_role *roles; /* per op of the entry */
	const int32_t *segment;     /* per op: of FLOW the segment that computes it; -1 elsewhere */
	/* per value of the flow: the last segment whose forward ops read it, n_segments: the
	 * loss's; -1 elsewhere */
	const int32_t *needed_in;
	const bool *after_loss; /* per op: LATE because it depends on the loss */
	/* per op: the last gradient needs it (through more than single numbers) */
	const bool *chain;
	/* 0: there is nothing to be found (no trained state, or no narrow place) */
	int32_t n_segments;
	int64_t kept_bytes; /* of side and flow that late ops read: the ACTIVATIONS */
} sw_remat_points;
/* Of a canonical program, which must outlive the points. O(ops * states / 64). Only the entry is
 * looked at: a loop is one op. */
void sw_remat_points_init(sw_remat_points *points, const sw_program *program);
void sw_remat_points_clear(sw_remat_points *points);
/* Is the value kept when only each `every`-th narrow place is? */
bool sw_remat_is_critical(const sw_remat_points *points, sw_id value, int32_t every);

/* Which ops late readers compute again. They must be side or flow, repeatable (no op with an
 * effect, no random number but of a state), and no source. Everything else that the copies read is
 * kept. */
typedef struct sw_remat {
	const sw_remat_points *points;
	const bool *again; /* per op */
	/* segments that are one: side ops are computed again once for each of these */
	int32_t every;
} sw_remat;

/* Writes the program in which late ops read copies of what is computed again, and never the first
 * results: so those end with the forward pass. Copies stand right before their first late reader. A
 * copy reads what is kept through an opt-barrier (as JAX's checkpoint does), so that equal ops are
 * not merged again; late readers of what is kept take it from there too, once it exists. Late ops
 * apart from the chain (weight gradients, and updates that wait for no other gradient) are written
 * as soon as what they read is there, since they are the last readers of activations: this order is
 * all that a policy without copies changes. The result is canonical and computes the same bit for
 * bit; *out is NULL if nothing changes. `in` is canonical. O(ops log ops). */
sw_status sw_rewrite_remat(const sw_program *in, const sw_remat *what, sw_program **out,
                           sw_error *err);

/* By which seconds are estimated: an op takes the longer of computing and moving bytes. */
typedef struct sw_remat_device {
	double flops_per_s, bytes_per_s;
} sw_remat_device;

typedef struct sw_remat_policy {
	const char *name;
	sw_remat what; /* again == NULL: nothing is */
	/* sw_program_peak_bytes of the program that comes of it, in the order in which it is
	 * written */
	int64_t peak_bytes;
	int64_t kept_bytes; /* activations */
	double added_flops, added_bytes, added_s;
} sw_remat_policy;
typedef SW_VEC(sw_remat_policy) sw_remat_policy_list;

/* What is worth trying, from "none" on with rising seconds; each has a lower peak than all before
 * it. Per segment the ops that are computed again are those behind the cheapest cut, in bytes kept,
 * that leaves out what is too dear: early gradients  nothing is computed again, and weight
 * gradients as soon as can be; so in all that follow elementwise    every contraction, convolution,
 * sort and loop is too dear memory-bound   those are that the device computes longer than it moves
 * their operands and results (attention's are not) blocks A/B     nothing is, in the first A/B of
 * the segments, whose copies come when most else is freed; elsewhere as elementwise blocks nothing
 * is, anywhere: what AxoNN and Megatron call activation checkpointing blocks of K    the same, with
 * every K-th narrow place kept `points` must outlive the list, whose arrays lie in its arena. */
sw_status sw_remat_policies(sw_remat_points *points, sw_remat_device device,
                            sw_remat_policy_list *list, sw_error *err);
/* By the policy of that name alone, worth it or not. SW_ERR_INPUT if none is called so, SW_NO if it
 * changes nothing of this program. */
sw_status sw_rewrite_remat_policy(const sw_program *in, const char *policy, sw_remat_device device,
                                  sw_program **out, sw_error *err);

/* ---- microbatches ----------------------------------------------------------------------- */

/* The batch (the leading dimension of every data input) is split over TIME: m iterations, each with
 * every m-th sample, so that any split of the batch over devices leaves each device its part of
 * every microbatch. Where the rules carry that split, an op is the BODY of a loop. Sums over the
 * batch are partial sums over time; they pass what is linear in them, and where the next op is not,
 * they are SUMMED: the loop must be over first. So there may be several loops, one after the other,
 * each as late as its readers allow: PHASES. What a later loop reads of an earlier one's
 * microbatches is STORED whole. Ops without time stand before the first loop that needs them, or
 * after the last (APPLY). Sources (constants, iotas, what is made of them by position: random
 * numbers) are DRAWN into the loop where only parts are read. */
typedef enum sw_part {
	SW_PART_HOISTED, /* before the first loop */
	SW_PART_BODY,    /* in a loop */
	SW_PART_BETWEEN, /* two loops */
	SW_PART_APPLY,   /* after the last loop */
} sw_part;

/* A value that leaves a loop. */
typedef struct sw_leaving {
	/* reader: the first op outside the loop that reads it, SW_NO_ID: a result of the program */
	sw_id value, reader;
	sw_monoid monoid; /* of its sum over time; NONE: stored, microbatch by microbatch */
} sw_leaving;
typedef struct sw_phase {
	int32_t ops; /* those of loops and branches in it counted as one */
	double flops;
	int32_t n_sums, n_leaving;
	const sw_leaving *leaving; /* the sums first: the synchronisation points */
	int64_t sum_bytes, stored_bytes;
} sw_phase;

typedef struct sw_phases {
	sw_arena arena;
	/* what the leading dimensions of the data inputs have in common; 1: nothing to split */
	int64_t batch;
	/* numbers of microbatches that the program allows, ascending, above 1 */
	sw_ints possible;
	int32_t microbatches; /* that all below is about: the least possible; 0: none */
	int32_t n;            /* phases */
	const sw_phase *phases;
	const uint8_t *part;             /* sw_part, per op of the entry (by id) */
	int32_t hoisted, between, apply; /* ops, but inputs and constants */
	double flops;                    /* of the whole step */
	/* The first op that stands in the way of the least number that is not possible; refused 0:
	 * all divisors of the batch are. */
	int32_t refused;
	const char *refuses, *opcode, *why, *path; /* path: from an input to the op, by op names */
} sw_phases;
/* Of a canonical program. Time and memory: linear in the program, for each divisor of the batch. */
void sw_phases_init(sw_phases *phases, const sw_program *program, const sw_sidecar *sidecar);
void sw_phases_clear(sw_phases *phases);

/* Takes a canonical program; gives one, canonical too, that computes the step in `microbatches`
 * iterations: a `while` with that trip count per phase, sums in accumulators (those of short floats
 * in f32). Inputs, results and aliases are as they were; sums are reassociated, all else is the
 * same, random numbers included. SW_ERR_INPUT if the number is below 2 or does not divide the
 * batch; SW_NO if an op refuses: the message names it and the path from an input. */
sw_status sw_rewrite_microbatches(const sw_program *in, const sw_sidecar *sidecar,
                                  int32_t microbatches, sw_program **out, sw_error *err);

/* ---- one after the other ---------------------------------------------------------------- */

/* What is done to a program before its layouts are chosen, in this order: rematerialisation looks
 * at the whole step only, and its barriers and the order in which it writes the ops stay as they
 * are within the body of a loop. */
typedef struct sw_rewrites {
	sw_pad_rule padding;  /* multiple 0: nothing is padded */
	const char *remat;    /* a policy; NULL: nothing is computed again */
	int32_t microbatches; /* below 2: the batch is one */
} sw_rewrites;
/* Takes a canonical program, gives one; *out is NULL if nothing is asked. Fails as the passes do,
 * with SW_NO where one changes nothing. `padded` gets what was padded; the caller clears it. */
sw_status sw_rewrite_in_order(const sw_program *in, const sw_sidecar *sidecar,
                              const sw_rewrites *what, sw_remat_device device, sw_program **out,
                              sw_padded_list *padded, sw_error *err);

#endif
