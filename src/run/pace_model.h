/* pace: the predicted time of each op of a program on a cluster's device, and the predicted
 * branches, for a paced run. */
#ifndef SW_RUN_PACE_H
#define SW_RUN_PACE_H

#include "run/run.h"

/* The predictions are computed once per op; a step only looks them up. pace.context points to this
 * struct, which must not move. */
typedef struct sw_run_pace {
	sw_pace pace;
	double *seconds;    /* per op */
	uint32_t *branches; /* per op: the most expensive branch of a conditional */
} sw_run_pace;
void sw_run_pace_init(sw_run_pace *pace, const sw_cluster *cluster, const sw_program *program);
void sw_run_pace_clear(sw_run_pace *pace);

#endif
