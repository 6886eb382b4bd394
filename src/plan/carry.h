/*
 * Carrying a plan over to a program that has changed since the plan was made.
 */
#ifndef SW_PLAN_CARRY_H
#define SW_PLAN_CARRY_H

#include "plan/plan.h"

/* ---- plan.c --------------------------------------------------------------------------- */
/* Can a value be redistributed from one layout to the other? A value that is partial under one
 * monoid can't become partial under another, and not every element type supports every monoid. */
bool sw_plan_can_become(const sw_plan *plan, sw_id value, const sw_layout *from,
                        const sw_layout *to);
/* Is the op's strategy possible with layouts that it can read, and are its results produced in the
 * layouts of the plan? */
bool sw_plan_op_fits(const sw_plan *plan, sw_id op);

/* ---- carry_match.c ---------------------------------------------------------------------- */
/* Build the section "ops" of a plan file: op -> signature. */
json_t *sw_plan_signatures(const sw_plan *plan);

/* Hashes of an op: alone with its sizes, alone without; with its surroundings and sizes, with its
 * surroundings without sizes. */
typedef struct sw_op_signature {
	uint64_t own, kind, exact, form;
} sw_op_signature;
typedef struct sw_plan_old_op {
	const char *name, *text; /* text: its signature in the file */
	sw_op_signature signature;
	sw_id match; /* op of the program, or SW_NO_ID */
} sw_plan_old_op;
typedef struct sw_plan_carrier {
	const json_t *decisions;
	sw_plan *plan;
	const sw_program *program;
	sw_arena arena;
	sw_op_signature *signatures; /* per op of the program */
	uint32_t *match;             /* per op: old op, or SW_ABSENT */
	/* per op: the old op whose decisions it takes (its match, else a similar op), or
	 * SW_ABSENT */
	uint32_t *source;
	SW_VEC(sw_plan_old_op) old; /* in the order of the file, which is that of the old program */
	sw_map old_by_name;
	sw_plan_changes *changes;
	sw_error *err;
} sw_plan_carrier;
/* Fill signatures, match, source, old and old_by_name from the section "ops", and count the
 * changes. SW_ERR_INPUT if too few ops have a match. */
sw_status sw_carry_match(sw_plan_carrier *carrier, const json_t *ops);

/* ---- carry.c ---------------------------------------------------------------------------- */
/* Is the strategy possible for the op, with layouts that are valid for its results? */
bool sw_plan_strategy_possible(const sw_plan *plan, sw_id id, const sw_strategy *strategy);
/* Return the strategy that splits the op as its largest operand is produced; none if that is
 * impossible. */
sw_strategy sw_plan_follow_largest(const sw_plan *plan, sw_id id);
/* Set the layouts in which the op leaves its results by its strategy. */
void sw_plan_derive_produced(sw_plan *plan, sw_id id);
/* Fill the decisions of `plan`, in which everything is replicated, from those of a file for another
 * program, and set plan->changes. An error message does not name the file. */
sw_status sw_plan_carry(const json_t *file, sw_plan *plan, sw_error *err);

#endif
