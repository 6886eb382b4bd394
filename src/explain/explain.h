/*
 * explain: describe a plan in words and tables.
 */
#ifndef SW_EXPLAIN_EXPLAIN_H
#define SW_EXPLAIN_EXPLAIN_H

#include "model/model.h"
#include "partition/partition.h"

/* The input of explain. `local` and `origins` are the results of partitioning the plan; the sidecar
 * names the inputs. */
typedef struct sw_explained {
	const sw_plan *plan;
	const sw_program *local;
	const sw_origins *origins;
	const sw_sidecar *sidecar;
} sw_explained;
/* Describe a plan as data (docs/plan-file.md, "What explain says"): the blocks of the model with
 * their layouts in words, the collectives by cost and what it would cost to avoid each, the memory
 * at its peak, the alternatives considered, and the gap. */
json_t *sw_plan_explain(const sw_explained *what);
/* Print this data for people. Tables end after a dozen rows unless `whole_tables` is
 * set. */
void sw_plan_explain_print(const json_t *explained, bool whole_tables, sw_text *text);
/* Compare two explanations: "same", or lists of what one has and the other has not. */
json_t *sw_plan_diff(const json_t *explained, const json_t *other);
void sw_plan_diff_print(const json_t *diff, bool whole_tables, sw_text *text);

#endif
