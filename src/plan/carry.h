/*
 * Carrying a plan over to a program that has changed since: what file.c, object.c and carry.c share.
 */
#ifndef SW_PLAN_CARRY_H
#define SW_PLAN_CARRY_H

#include "plan/internal.h"

/* ---- file.c ---- */
/* One word per atom, as docs/plan-file.md says. False: it is none, or not of this rule. */
bool sw_plan_strategy_words(const char *text, const sw_rule *rule, sw_strategy *strategy);
/* "name" of the first result of an op, "name:k" of the others; in text. */
const char *sw_plan_value_name(const sw_program *program, sw_id value, sw_text *text);

/* ---- object.c ---- */
/* Can a value that lies one way be moved to another: what is partial in one way can't become partial in another, and not every type has every way. */
bool sw_plan_can_become(const sw_plan *plan, sw_id value, const sw_layout *from, const sw_layout *to);
/* Is the op's strategy possible, with layouts that it can read, and do its results lie as the plan says? */
bool sw_plan_op_fits(const sw_plan *plan, sw_id op);

/* ---- carry.c ---- */
/* The section "ops" of a plan file: op -> signature. */
json_t *sw_plan_signatures(const sw_plan *plan);
/* Fills the decisions of a plan in which all is whole from those of a file for another program; sets plan->changes. The message has no file. */
sw_status sw_plan_carry(const json_t *file, sw_plan *plan, sw_error *err);

#endif
