/*
 * Carrying a plan over to a program that has changed since.
 */
#ifndef SW_PLAN_CARRY_H
#define SW_PLAN_CARRY_H

#include "plan/plan.h"

/* ---- plan.c --------------------------------------------------------------------------- */
/* Can a value that lies one way be moved to another: what is partial in one way can't become
 * partial in another, and not every type has every way. */
bool sw_plan_can_become(const sw_plan *plan, sw_id value, const sw_layout *from,
                        const sw_layout *to);
/* Is the op's strategy possible, with layouts that it can read, and do its results lie as the plan
 * says? */
bool sw_plan_op_fits(const sw_plan *plan, sw_id op);

/* ---- carry_match.c ---------------------------------------------------------------------- */
/* The section "ops" of a plan file: op -> signature. */
json_t *sw_plan_signatures(const sw_plan *plan);

/* Hashes of an op with its sizes, without; with its surroundings with sizes, without. */
typedef struct sw_signature {
	uint64_t own, kind, exact, form;
} sw_signature;
typedef struct sw_old_op {
	const char *name, *text; /* text: its signature in the file */
	sw_signature is;
	sw_id match; /* op of the program, SW_NO_ID */
} sw_old_op;
typedef struct sw_carrier {
	const json_t *decisions;
	sw_plan *plan;
	const sw_program *program;
	sw_arena arena;
	sw_signature *is; /* per op of the program */
	uint32_t *match;  /* per op: old op, SW_ABSENT */
	/* per op: its match, or an old op whose decisions it takes; SW_ABSENT */
	uint32_t *alike;
	SW_VEC(sw_old_op) old; /* in the order of the file, which is the program's */
	sw_map old_by_name;
	sw_plan_changes *changes;
	sw_error *err;
} sw_carrier;
/* Fills is, match, alike, old and old_by_name from the section "ops", and counts what changed.
 * SW_ERR_INPUT where too little has a match. */
sw_status sw_carry_match(sw_carrier *carrier, const json_t *ops);

/* ---- carry.c ---------------------------------------------------------------------------- */
/* Fills the decisions of a plan in which all is whole from those of a file for another program;
 * sets plan->changes. The message has no file. */
sw_status sw_plan_carry(const json_t *file, sw_plan *plan, sw_error *err);

#endif
