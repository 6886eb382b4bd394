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
/* Return the op that each op of the program of one device runs in: one of the body of the loop over
 * microbatches, or else of the entry; itself where it is one. In the arena. O(ops). */
const sw_id *sw_stage_outer_ops(const sw_program *scheduled, sw_id loop, sw_arena *arena);
/* Return the step's loop over microbatches in its program of one device; SW_NO_ID: it is not there. */
sw_id sw_stage_loop_of(const sw_stage_step *step, const sw_program *scheduled);

/* Enter the sw_pass_order of each op of a stage's loop by its name. O(ops). */
void sw_stage_passes_by_name(const sw_stage_step *step, const sw_stages *stages, sw_map *passes);

/* Let the collectives with which a backward pass begins wait for the forward pass. part: of each op.
 * O(ops of the loop). */
void sw_stage_part_passes(sw_program *local, sw_id loop, const sw_stage_part *part);

/* Set the bytes of the times, whose peak_bytes are known, from the scheduled program of one device
 * and the parts of its ops. O(values + ops), and a packing of its buffers. */
void sw_stage_find_bytes(const sw_stage_step *step, const sw_stages *stages,
                         const sw_program *scheduled, const sw_stage_part *part,
                         sw_stage_times *times);

/* Set the seconds of a microbatch between this stage and the next. */
sw_status sw_stage_transfers(sw_pipelined *plan, int32_t stage, sw_error *err);

typedef struct sw_pipelined_request {
	const sw_program *program;
	const char *program_path;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_pipelined_options *options;
} sw_pipelined_request;

/* Has a level of the cluster as many parts, which are unequal? The devices of the largest of them;
 * 0: there is none. */
int64_t sw_pipelined_largest_part(const sw_cluster *cluster, int32_t n);
static inline bool sw_pipelined_has_parts(const sw_cluster *cluster, int32_t n)
{
	return sw_pipelined_largest_part(cluster, n) > 0;
}
/* Return a layout on a rank's slice as a side of a transfer. In the arena. */
sw_crossmesh_side sw_pipelined_side(const sw_pipelined *p, int32_t rank, const sw_layout *layout,
                                    sw_arena *arena);

typedef struct sw_pipelined_source sw_pipelined_source;
void sw_pipelined_source_free(sw_pipelined_source *source);

/* What a trial is of. */
typedef struct sw_pipelined_numbers {
	int32_t n_ranks, microbatches;
	const char *remat; /* NULL: none */
	int32_t n_chunks;  /* stages of each slice */
	bool by_parts;     /* the slices are the unequal parts of a level of the cluster */
	sw_pipeline_placement placement;
	/* The program is cut into so many pieces, each on the slice of a stage: what is opened is
	 * no plan, but has smaller steps to learn from. 0: it is cut into stages. */
	int32_t n_pieces;
	/* [stages]: how much more work each may have than one of its devices' speed, of a mean of 1;
	 * NULL: all have as much. Borrowed while the program is cut. */
	const double *share;
	/* [stages - 1]: the last position of each stage but the last; NULL: cuts are searched for.
	 * Borrowed while the program is cut. */
	const int32_t *cuts;
	/* These numbers as they were planned before, with other cuts: what it says of the seconds of
	 * bytes that cross counts; NULL: it is not known. */
	const struct sw_pipelined *planned;
} sw_pipelined_numbers;

typedef struct sw_stage_store sw_stage_store;

/* Cut the program, without steps of its stages and plans. op_s: seconds of each op of the
 * looped program by which it is cut; NULL: those of its kernels. */
sw_status sw_pipelined_open(const sw_pipelined_request *request, sw_stage_store *store,
                            sw_pipelined_numbers numbers, const double *op_s, sw_pipelined **out,
                            sw_error *err);
/* Write the step of one stage, which is like no other then; or of all stages, if they are not
 * written yet: only what is planned needs them. */
sw_status sw_pipelined_write_step(sw_pipelined *p, const sw_stage_store *store, int32_t stage,
                                  sw_error *err);
sw_status sw_pipelined_write_steps(sw_pipelined *p, const sw_stage_store *store, sw_error *err);
/* Plan one stage of it, or the one that it is like; its steps are written. */
sw_status sw_pipelined_plan_stage(sw_pipelined *p, sw_stage_store *store, int32_t stage,
                                  int64_t memory_bytes, sw_error *err);
/* Plan all stages, on the meshes of p->mesh, and find the schedule. SW_NO with *least_s > 0 if no
 * step of it takes less than that, and that is no less than known_s. */
sw_status sw_pipelined_plan(sw_pipelined *p, sw_stage_store *store,
                            const sw_pipelined_options *options, double known_s, double *least_s,
                            sw_error *err);
/* A stage whose plan is known, by which others are estimated. */
typedef struct sw_pipelined_probe {
	sw_stage_times times;
	sw_stage_load load;
	double forward_s;     /* of all stages of the trial that it is of */
	int32_t microbatches; /* likewise */
	double speed;         /* of its slice */
} sw_pipelined_probe;
/* Plan the stage of whose kind most of the load is. */
sw_status sw_pipelined_probe_stage(sw_pipelined *p, sw_stage_store *store, int64_t memory_bytes,
                                   sw_pipelined_probe *probe, sw_error *err);
/* Suppose the stages' times by those of a probe on the same slice, and play the schedule. */
sw_status sw_pipelined_estimate(sw_pipelined *p, const sw_pipelined_options *options,
                                const sw_pipelined_probe *probe, sw_error *err);
/* Seconds of a byte from a rank's slice to the next one, all of whose links are in use. */
double sw_pipelined_byte_s(const sw_pipelined *p, int32_t rank);
/* Return how quick the devices of a stage's slice are, of a mean of 1. */
double sw_pipelined_speed(const sw_pipelined *p, int32_t stage);
/* Return the seconds of a byte behind a stage, there and back, as it was planned; 0: none crosses. */
double sw_pipelined_planned_byte_s(const sw_pipelined *p, int32_t stage);
int64_t sw_pipelined_memory(const sw_pipelined *p, const sw_pipelined_options *options);
/* Return the bytes that a stage, or one like it, needs beyond those with one microbatch in flight: for
 * further ones. */
int64_t sw_pipelined_most_beyond(const sw_pipelined *p, int32_t stage);
/* The numbers of a plan's trial. */
sw_pipelined_numbers sw_pipelined_numbers_of(const sw_pipelined *p);
/* Give each rank its slice: of so many devices, of which there are n_slices numbers, or of equal ones
 * (NULL). Where ranks are more, they are pieces, all on the first slice. SW_ERR_INPUT: the slices
 * don't divide the devices. */
sw_status sw_pipelined_take_slices(sw_pipelined *p, struct sw_stage_store *store, int32_t n_slices,
                                   const int64_t *devices, sw_error *err);
/* Set the rank of each stage, and its first device. */
void sw_pipelined_place_stages(sw_pipelined *p);
/* Set p->costs from the stages' times. */
void sw_pipelined_fill_costs(sw_pipelined *p, int64_t memory_bytes);
/* Play the schedule, or each that is possible (-1); keep the quickest that fits, its bound, and
 * whether it fits. */
sw_status sw_pipelined_find_schedule(sw_pipelined *p, int32_t schedule, sw_error *err);
/* Take a quicker order of the same passes than that which was found, if a search finds one within
 * the memory and these seconds (INFINITY: as long as its work lasts). */
sw_status sw_pipelined_search_order(sw_pipelined *p, double time_limit_s, sw_error *err);
/* Refuse options that contradict each other, without regard to a file of stages; and what only plans
 * without stages have: where the number of stages is free, it is none then. */
sw_status sw_pipelined_check_words(const sw_pipelined_options *options, sw_error *err);
sw_status sw_pipelined_check_kinds(const sw_pipelined_options *options, sw_error *err);
/* SW_ERR_INPUT if no plan can have the schedule; -1: any. */
sw_status sw_pipelined_check_schedule(int32_t schedule, sw_error *err);

#endif
