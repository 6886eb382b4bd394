/* task_options: the ways to do a unit task. Private to src/crossmesh. */
#ifndef SW_CROSSMESH_TASK_OPTIONS_H
#define SW_CROSSMESH_TASK_OPTIONS_H

#include "crossmesh/phase_price.h"

/* Who holds the terms: the last of them is the head, which has the whole value after the others
 * sent theirs along the chain. */
typedef struct sender_chain {
	int32_t n;
	const int64_t *devices;
} sender_chain;
typedef SW_VEC(sender_chain) sender_chains;
/* List a chain for each part of the task's level that has a holder: its head is there. Terms that
 * are not there come from as few parts as can be. `number` turns which of several devices of a part
 * sends, so that a part's devices take turns. */
void senders_list(const sw_cluster *cluster, const sw_unit_task *task, int32_t n_terms,
                  int32_t number, sw_arena *arena, sender_chains *chains);

#endif
