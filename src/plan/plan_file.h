/*
 * The plan file: declarations that its parts share.
 */
#ifndef SW_PLAN_PLAN_FILE_H
#define SW_PLAN_PLAN_FILE_H

#include "plan/plan.h"

/* ---- plan_file.c: the seal ------------------------------------------------------------------ */

/* Give a plan file, or an index of stages, the hash of its figures and of what they depend on. */
void sw_plan_seal(json_t *root);
/* Return whether it has that hash; else it was edited since. */
bool sw_plan_is_sealed(const json_t *root);

/* ---- plan_file_text.c ------------------------------------------------------------------------ */
/* Append one word per atom: "." nothing; "F@T" the digit of stride T of factor F; "F@T<G@U" the
 * same, with the other operand streamed by the digit of stride U of factor G; "~K:sum" linearity K
 * of partial sums. */
void sw_plan_strategy_text(const sw_strategy *strategy, sw_text *text);
/* Parse these words. False if the text is malformed or does not fit the rule. */
bool sw_plan_strategy_words(const char *text, const sw_rule *rule, sw_strategy *strategy);
/* sending.c: the sections of the decisions that say how values are sent. The JSON of one, NULL: it would be
 * empty; and read one (NULL: it is missing) into a plan without it: *number_of has the number of each value
 * that it names, for sw_sending_put. False: it is none. */
#define SW_SENDING_SECTIONS 3
const char *sw_sending_section(int section);
json_t *sw_sending_json(const sw_plan *plan, int section);
bool sw_sending_read(const json_t *json, int section, sw_plan *plan, sw_map *number_of);
void sw_sending_put(sw_plan *plan, int section, sw_id value, uint32_t number);
/* "name" for the first result of an op, "name:k" for the others; stored in text. */
const char *sw_plan_value_name(const sw_program *program, sw_id value, sw_text *text);

/* ---- plan_file_decisions.c ------------------------------------------------------------------- */
typedef struct sw_plan_reading {
	const char *path;
	json_t *root, *decisions; /* decisions: borrowed from root */
	sw_plan *plan;
	sw_cluster *cluster;
	/* the program as it was read, until the plan takes it, where variables have other forms */
	sw_program *undivided;
	sw_variable_forms forms;
	bool changed; /* the program has changed since the plan was made */
	sw_error *err;
} sw_plan_reading;
/* ---- changes.c ------------------------------------------------------------------------------- */
/* Return the changes of a plan; the first call begins them, with its figures as those in the
 * file. */
sw_plan_changes *sw_plan_changes_of(sw_plan *plan);

/* ---- plan_file_decisions.c: the section ------------------------------------------------------ */
json_t *sw_plan_decisions_json(const sw_plan *plan);
/* Fill the plan, in which everything is replicated. O(ops + values). */
sw_status sw_plan_read_decisions(sw_plan_reading *reading);

#endif
