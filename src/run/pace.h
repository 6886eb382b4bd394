/* pace: how long each op of a program takes on a cluster's device, and which branches are taken,
 * for a paced run. */
#ifndef SW_RUN_PACE_H
#define SW_RUN_PACE_H

#include "run/run.h"

/* Asked for once per op: a step looks them up. pace.context is this, which must not move. */
typedef struct sw_run_pace {
	sw_pace pace;
	double *seconds;    /* per op */
	uint32_t *branches; /* per op: of a conditional, the dearest */
} sw_run_pace;
void sw_run_pace_init(sw_run_pace *pace, const sw_cluster *cluster, const sw_program *program);
void sw_run_pace_clear(sw_run_pace *pace);

#endif
