/*
 * internal: what the files of pipelined share.
 */
#ifndef SW_PIPELINED_INTERNAL_H
#define SW_PIPELINED_INTERNAL_H

#include "pipelined/pipelined.h"

/* Enter the part of each op of a stage's loop by its name. O(ops). */
void sw_stage_parts_by_name(const sw_stage_step *step, const sw_stages *stages, sw_map *by_name);
/* Return the part of each op of the program of one device: by name; of what the partitioner added,
 * that of its readers; of the entry's ops, SW_STAGE_ONCE. An op without any is SW_STAGE_PARTS. In
 * the arena. O(ops + operands). */
const sw_stage_part *sw_stage_parts_of(const sw_program *scheduled, const sw_map *by_name,
                                       sw_arena *arena);
/* Return the loop over microbatches; SW_NO_ID: there is none. */
sw_id sw_stage_loop_of(const sw_program *program);

/* Set the seconds of a microbatch between this stage and the next. */
sw_status sw_stage_transfers(sw_pipelined *plan, int32_t stage, sw_error *err);

typedef struct sw_pipelined_request {
	const sw_program *program;
	const char *program_path;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_pipelined_options *options;
} sw_pipelined_request;

/* Make the slice of one stage: the first n / n_stages devices, which all others are like. Cleared
 * by the caller, also if this fails. */
sw_status sw_pipelined_slice(const sw_cluster *cluster, int32_t n_stages, sw_cluster *slice,
                             sw_error *err);
/* Plan with these numbers and this rematerialisation (NULL: none). SW_NO with *least_s > 0 if no
 * step of it takes less than that, and that is no less than known_s. */
sw_status sw_pipelined_try(const sw_pipelined_request *request, int32_t n_stages,
                           int32_t microbatches, const char *remat, double known_s,
                           sw_pipelined **out, double *least_s, sw_error *err);
/* Set p->costs from the stages' times. */
void sw_pipelined_fill_costs(sw_pipelined *p, int64_t memory_bytes);
/* Play the schedule, or each that is possible (-1); keep the quickest that fits, its bound, and
 * whether it fits. */
sw_status sw_pipelined_find_schedule(sw_pipelined *p, int32_t schedule, sw_error *err);
/* SW_ERR_INPUT if the schedule is not of one stage per rank; -1: any. */
sw_status sw_pipelined_check_schedule(int32_t schedule, sw_error *err);

#endif
