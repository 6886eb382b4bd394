/*
 * explain: a plan in words and tables.
 */
#ifndef SW_EXPLAIN_EXPLAIN_H
#define SW_EXPLAIN_EXPLAIN_H

#include "model/model.h"
#include "partition/partition.h"

/* What is explained. `local` and `origins` are what `partition` made of the plan; the sidecar names
 * the inputs. */
typedef struct sw_explained {
	const sw_plan *plan;
	const sw_program *local;
	const sw_origins *origins;
	const sw_sidecar *sidecar;
} sw_explained;
/* All that there is to say about a plan, as data (docs/plan-file.md, "What explain says"): blocks
 * of the model with the layouts in words, collectives by what they cost and what it would cost to
 * avoid them, memory at its peak, what else was considered, the gap. */
json_t *sw_plan_explain(const sw_explained *what);
/* The same for people. Tables end after a dozen lines unless they are to be whole. */
void sw_plan_explain_print(const json_t *explained, bool whole_tables, sw_text *text);
/* What two explanations say differently: "same", or lists of what one has and the other has not. */
json_t *sw_plan_diff(const json_t *explained, const json_t *other);
void sw_plan_diff_print(const json_t *diff, bool whole_tables, sw_text *text);

#endif
