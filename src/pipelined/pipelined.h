/*
 * pipelined: a plan with pipeline stages.
 *
 * This stage takes a program, a cluster and a request, and gives a plan per stage, each for its own
 * contiguous slice of the cluster, with the schedule that plays them. Stages are those of
 * src/stages, each planned by src/search as a program of its own, whose loop runs the microbatches;
 * stages that are alike are planned once. From the simulator's play of a stage's plan follow the
 * seconds of its passes, from the layouts at its ends those of the transfers (src/crossmesh), and
 * from src/pipeline the step.
 */
#ifndef SW_PIPELINED_H
#define SW_PIPELINED_H

#include "crossmesh/crossmesh.h"
#include "search/search.h"
#include "stages/stage_step.h"

/* ---- what a stage takes ------------------------------------------------------------------ */

/* What a stage does: in a microbatch's forward pass; in its backward pass, for the stage before it
 * and for its own gradients alone; and once a step. */
typedef enum sw_stage_part {
	SW_STAGE_FORWARD,
	SW_STAGE_INPUT_GRADIENT,
	SW_STAGE_WEIGHT_GRADIENT,
	SW_STAGE_ONCE,
	SW_STAGE_PARTS
} sw_stage_part;
static inline bool sw_stage_is_backward(sw_stage_part part)
{
	return part == SW_STAGE_INPUT_GRADIENT || part == SW_STAGE_WEIGHT_GRADIENT;
}

typedef struct sw_stage_times {
	double part_s[SW_STAGE_PARTS]; /* of one microbatch; of a step: SW_STAGE_ONCE */
	double step_s;                 /* of the stage alone, all microbatches, as played */
	/* Per device: what a microbatch holds from its forward pass to its backward pass; and all
	 * else at the peak, without what crosses of other microbatches. */
	int64_t activation_bytes, fixed_bytes, peak_bytes;
	/* Of fixed_bytes, what is there all the time: state, and sums over microbatches. */
	int64_t resting_bytes;
} sw_stage_times;

/* Play the plan of a stage's step, whose search knew its passes, with these apart. Kernels, and waits
 * for collectives, belong to the part of the ops that they are made of. op_s [ops of the step's
 * program] gets the seconds of a microbatch of each op of its loop, and of a step of each other op;
 * NULL: they are not wanted. */
sw_status sw_stage_times_of(sw_plan *plan, const sw_stage_step *step, const sw_stages *stages,
                            sw_stage_times *times, double *op_s, sw_error *err);

/* The program of one device of a stage, scheduled with its passes apart: which part of the stage each
 * op is, and its loop over microbatches. */
typedef struct sw_stage_program {
	sw_arena arena;
	sw_program *program;
	const sw_stage_part *part; /* [ops] */
	sw_id loop;
} sw_stage_program;
/* Of the plan of a stage's step, as sw_stage_times_of plays it. Cleared with sw_stage_program_clear,
 * also after an error. */
sw_status sw_stage_schedule(sw_plan *plan, const sw_stage_step *step, const sw_stages *stages,
                            sw_stage_program *scheduled, sw_error *err);
void sw_stage_program_clear(sw_stage_program *scheduled);

/* ---- plans ------------------------------------------------------------------------------- */

typedef struct sw_planned_stage {
	sw_stage_step step;
	sw_sidecar sidecar;
	int32_t like;  /* the first stage with the same step and slice: itself, if it is that */
	/* NULL where it is that of the stage `like`, and of a file that was read */
	sw_plan *plan;
	const char *chosen;                   /* what it is called */
	const char *program_path, *plan_path; /* of the file's; NULL before it is written */
	int32_t rank;         /* which slice it is on */
	int64_t first_device; /* of the slice */
	uint32_t n_ops;       /* in its loop */
	sw_stage_times times;
	const double *op_s; /* [ops of the step's program]: of a microbatch; of the entry's ops, a step */
	/* A microbatch, to the next stage; and from it. */
	double send_forward_s, send_backward_s;
	int64_t forward_bytes, backward_bytes;
} sw_planned_stage;

/* What a user decides of the stages, in a file (docs/pipeline.md). */
typedef struct sw_stage_file_entry {
	const char *pattern; /* glob of names: of parameters, or of ops */
	bool is_op;
	int32_t stage, line;
} sw_stage_file_entry;
typedef struct sw_stage_file {
	sw_arena arena;
	const char *path;
	int32_t n_slices, n_stages; /* 0: not said */
	const int64_t *devices;     /* [n_slices]; NULL: equal slices */
	sw_stage_file_entry *entries;
	size_t n_entries;
} sw_stage_file;
/* Read it. Freed with sw_stage_file_clear, also if this fails. SW_ERR_INPUT names line and key. */
sw_status sw_stage_file_read(const char *path, sw_stage_file *file, sw_error *err);
void sw_stage_file_clear(sw_stage_file *file);
/* Find what the file names: parameters by the names of the sidecar, ops in the loop of the looped
 * program. In the arena. SW_ERR_INPUT: there is no such name. O(entries * ops). */
sw_status sw_stage_file_pins(const sw_stage_file *file, const sw_program *looped,
                             const sw_sidecar *sidecar, sw_arena *arena, const sw_stage_pin **pins,
                             size_t *n, sw_error *err);

typedef struct sw_pipelined_options {
	/* Slices of the devices, each of which has one stage, or as many as the schedule wants;
	 * and microbatches. 0: the search takes the fastest. */
	int32_t n_stages, microbatches;
	int32_t schedule;               /* sw_named_schedule; -1: the search takes the fastest */
	/* Stages of each slice, where the schedule is interleaved; 0: 2, or with any schedule what
	 * is fastest. */
	int32_t n_chunks;
	const sw_stage_file *file;      /* what a user decides of the stages; NULL: nothing */
	/* The schedule of a file, whose ranks, stages and microbatches those above are; NULL: a
	 * named one. */
	const sw_pipeline_schedule *given;
	sw_plan_options plan; /* of each stage */
	/* The step of a plan that is there already, and its rematerialisation (NULL: none): what is
	 * not faster is given up. 0: there is none. */
	double known_s;
	const char *known_remat;
	/* [sw_pipelined_possible_stages]: sw_pipelined_bounds_s of each of these numbers, by which
	 * those are left out that are no faster than that; NULL: none is left out. */
	const double *bounds_s;
} sw_pipelined_options;

typedef struct sw_pipelined {
	sw_arena arena;
	const sw_cluster *cluster; /* borrowed */
	/* What programs and plans belong to; NULL: to a search that is still going on, or to nobody,
	 * of a file that was read. */
	struct sw_stage_store *store;
	struct sw_pipelined_source *source; /* of a plan that was loaded; else NULL */
	/* [n_ranks]: the slices, in the order of their devices; those that are alike are one. */
	const sw_cluster *const *slices;
	const int64_t *first_device; /* [n_ranks + 1]: of each slice, and behind the last one */
	const sw_program *canonical, *looped;
	sw_stages cut;
	const char *program_path;
	/* Stages, of which each of n_ranks slices has as many; microbatches. */
	int32_t n_stages, n_ranks, microbatches;
	sw_pipeline_placement placement; /* which of them: sw_pipeline_place */
	bool by_parts;                   /* the slices are the unequal parts of a level */
	bool in_pieces;                  /* cut for an estimate: of a piece only seconds count */
	const char *remat; /* a policy; NULL: none */
	/* Stages on slices like the first are planned on meshes whose name begins so; NULL: all. */
	const char *mesh;
	bool with_fixed; /* beside these, by fixed strategies */
	sw_planned_stage *stages;
	sw_named_schedule schedule; /* SW_NAMED_SCHEDULES: `given` is in its place */
	/* That of a file in its place, or one that was searched for, which have no name; NULL:
	 * there is none. */
	sw_pipeline_schedule *given;
	bool ordered, searched; /* a quicker order was searched for; it was found */
	sw_pipeline_costs costs;
	sw_pipeline_played played;
	sw_pipeline_bound bound; /* of any order of these stages' passes */
	bool fits;               /* all stages within memory */
	bool limited;            /* some schedule that was tried is not */
	bool out_of_time;        /* the time limit cut the search short */
	double planning_s;
} sw_pipelined;

/* Set stages, schedule or chunks as the command's options say them: stages auto or N, schedule auto
 * or a name, chunks K. SW_ERR_INPUT: it is no such value. */
sw_status sw_pipelined_set(sw_pipelined_options *options, const char *name, const char *value,
                           sw_error *err);
/* Take the stages (pp=) out of a strategy that has some: *n_stages and *schedule are what options
 * have for them, and each stage is planned by what is left. A fixed strategy has 1F1B, which is what
 * those train with who name one; auto has the fastest schedule. */
void sw_pipelined_split_strategy(sw_plan_strategy *strategy, int32_t *n_stages, int32_t *schedule);
/* Refuse what sw_pipelined_make would refuse whatever the plans of the stages are, in a fraction of
 * its time: options, and numbers of stages (0: any) that the program or the devices can't be cut
 * into. */
sw_status sw_pipelined_check(const sw_program *program, const char *program_path,
                             const sw_sidecar *sidecar, const sw_cluster *cluster,
                             const sw_pipelined_options *options, sw_error *err);
/* Plan with stages, at least 2. SW_NO: the program can't be cut, or a stage does not fit in memory.
 * SW_ERR_INPUT: the stages don't divide the devices, or the schedule has no such size. *out is
 * freed by the caller; out->fits is false if only the microbatches in flight are too many. */
sw_status sw_pipelined_make(const sw_program *program, const char *program_path,
                            const sw_sidecar *sidecar, const sw_cluster *cluster,
                            const sw_pipelined_options *options, sw_pipelined **out, sw_error *err);
void sw_pipelined_free(sw_pipelined *plan);

/* The plan with stages beside the search for one without: it is made once that search knows some
 * plan, whose step it has to beat, and then the search leaves out what can't be quicker than it. What
 * comes first is borrowed, and set by the caller. */
typedef struct sw_pipelined_rival {
	const sw_program *program;
	const char *program_path;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_pipelined_options *options; /* known_s and known_remat are not read */
	bool has_to_win; /* of plans that are no quicker than that without stages none is needed */
	bool made;
	bool was_asked; /* by a search, which then left out what can't be quicker */
	sw_pipelined *plan; /* NULL: there is none; freed by the caller */
	sw_status status;   /* of sw_pipelined_make, and why it failed */
	sw_error err;
} sw_pipelined_rival;
/* Return it as what a search asks (sw_plan_options.rival). */
sw_plan_rival sw_pipelined_as_rival(sw_pipelined_rival *rival);
/* Make it if no search asked for it. whole: the plan without stages; NULL: nothing fits. */
void sw_pipelined_rival_end(sw_pipelined_rival *rival, const sw_plan *whole);

/* Write the numbers of stages that are tried where none is asked for: the least divisors of the
 * devices from 2 on, and numbers of unequal parts, ascending; return how many they are. */
#define SW_STAGE_NUMBERS 16
size_t sw_pipelined_possible_stages(const sw_cluster *cluster, int32_t numbers[SW_STAGE_NUMBERS]);
/* Set bounds_s[i] to seconds that no plan with n_stages[i] stages on equal slices, or on the
 * unequal parts of a level of the cluster, is below, however the program is cut, padded, computed
 * again or run in microbatches: INFINITY where there are no such slices. */
sw_status sw_pipelined_bounds_s(const sw_program *program, const sw_sidecar *sidecar,
                                const sw_cluster *cluster, const int32_t *n_stages, size_t n,
                                int threads, double *bounds_s, sw_error *err);

/* Return the slice of a stage; the rank of a device, whose slice has it. */
static inline const sw_cluster *sw_pipelined_slice_of(const sw_pipelined *plan, int32_t stage)
{
	return plan->slices[plan->stages[stage].rank];
}
int32_t sw_pipelined_rank_of(const sw_pipelined *plan, int64_t device);
/* Return the bytes of a microbatch that cross at these ports of a stage's step, whole. */
int64_t sw_pipelined_crossing_bytes(const sw_pipelined *plan, const sw_stage_port *ports,
                                    uint32_t n);
/* Return the most microbatches that a stage holds at once. */
int32_t sw_pipelined_in_flight(const sw_pipelined *plan, int32_t stage);
/* Add the step, its bubble, what limits it, and a table of the stages. */
void sw_pipelined_print(const sw_pipelined *plan, sw_text *text);
/* Add the same, the timeline, and which files have the plans of the stages, if some do. */
void sw_pipelined_explain(const sw_pipelined *plan, sw_text *text);
/* Return what a device of any slice holds at most. */
int64_t sw_pipelined_peak_bytes(const sw_pipelined *plan);
json_t *sw_pipelined_json(const sw_pipelined *plan);

/* What the schedule of a file is called, and one that was searched for. */
#define SW_GIVEN_SCHEDULE "file"
#define SW_SEARCHED_SCHEDULE "searched"
const char *sw_pipelined_schedule_name(const sw_pipelined *plan);
#define SW_STAGES_FORMAT "shardwright-stages"
#define SW_STAGES_VERSION 3
/* Write PATH, the index, and for each stage K that is not like an earlier one PATH.stageK (its
 * plan), PATH.stageK.hlo and PATH.stageK.inputs.json. */
sw_status sw_pipelined_write(sw_pipelined *plan, const char *path, sw_error *err);
/* Is it such an index, by how it begins? A pipe is none: the index names files beside it. */
bool sw_pipelined_is_file(const char *path);
/* Read an index and play its schedule: what sw_pipelined_print prints, without the stages' programs
 * and plans. Freed by the caller. SW_ERR_INPUT names the key, or says that the file was edited: its
 * figures can't be computed again without the stages. */
sw_status sw_pipelined_read(const char *path, sw_pipelined **plan, sw_error *err);
/* Read an index with all that it names, so that it can be run: the program, cut where the index
 * says, and the stages' plans. SW_ERR_INPUT also if the program has changed since. */
sw_status sw_pipelined_load(const char *path, sw_pipelined **plan, sw_error *err);
/* Return the sidecar of a loaded plan's program. */
const sw_sidecar *sw_pipelined_sidecar(const sw_pipelined *plan);
/* Return the program of a loaded plan as it was read, and its sidecar: without stages, and with stacks
 * of layers whole. NULL: the plan was not loaded. */
const sw_program *sw_pipelined_as_read(const sw_pipelined *plan, const sw_sidecar **sidecar);

#endif
