/* reshard_parts: what the files of the executor of transfers share. Private to src/run. */
#ifndef SW_RUN_RESHARD_PARTS_H
#define SW_RUN_RESHARD_PARTS_H

#include "run/reshard.h"

/* ---- reshard_data.c --------------------------------------------------------------------- */

/* Fill a device's part of the source with its terms (index: in the mesh); padding stays 0. */
void reshard_fill(const sw_crossmesh_plan *plan, int64_t index, uint64_t seed, void *part);
/* Fill a part of the target with what it holds where nothing arrives. */
void reshard_clear(const sw_crossmesh_plan *plan, void *part);
/* Check each element of a part of the target; *checked: their number. The error names the first
 * that is wrong. */
sw_status reshard_check(const sw_crossmesh_plan *plan, int64_t index, uint64_t seed,
                        const void *part, int64_t *checked, sw_error *err);

/* ---- reshard_steps.c -------------------------------------------------------------------- */

typedef SW_VEC(sw_message_step) reshard_steps;
/* What a rank has and does in a transfer. */
typedef struct reshard_rank {
	const sw_crossmesh_plan *plan;
	int64_t device;
	char **buffers;  /* [tasks]: the task's elements, where the device has to do with it */
	bool *from_part; /* [tasks]: the buffer begins as what the device holds */
	reshard_steps steps;
	char token;
} reshard_rank;
sw_status reshard_rank_init(reshard_rank *rank, const sw_crossmesh_plan *plan, int64_t device,
                            sw_error *err);
void reshard_rank_clear(reshard_rank *rank);
/* Fill the buffers that begin as what the device holds, from its part of the source; before each
 * transfer, since buffers of terms are overwritten by their sums. */
void reshard_pack(const reshard_rank *rank, const void *part);
/* Fill the device's part of the target from the buffers. */
void reshard_unpack(const reshard_rank *rank, void *part);

#endif
