/* Costs of a pipeline whose stages are alike, for tests. */
#ifndef SW_TEST_PLAIN_COSTS_H
#define SW_TEST_PLAIN_COSTS_H

#include "pipeline/pipeline.h"

typedef struct plain_costs {
	double *values;
	sw_pipeline_costs costs;
} plain_costs;

/* Of each virtual stage: forward, input and weight gradient take these seconds, a transfer
 * `transfer_s`; a microbatch holds one byte until its weight gradient has ended. No limits. */
plain_costs make_plain_costs(const sw_pipeline_schedule *s, double forward_s, double input_s,
                             double weight_s, double transfer_s);
void clear_plain_costs(plain_costs *plain);

#endif
