/*
 * pipeline: schedules of pipelines. It knows nothing of tensors, programs or clusters.
 *
 * A model is a chain of VIRTUAL STAGES, numbered from 0, and each of them lives on one RANK (a
 * device, or a group of devices that works as one). A step runs all microbatches forward through
 * the chain and backward again. A SCHEDULE says in which order each rank does what: a list of
 * ACTIONS per rank, each with its virtual stage and its microbatch. When an action begins follows
 * from that order and from what it waits for; the player says it, for given seconds and bytes.
 *
 * Which rank has which virtual stage is data (`rank_of_stage`): one stage per rank; LOOPED, rank =
 * stage mod ranks; V-shaped, rank = min(stage, 2 ranks - 1 - stage). A schedule may have two CHAINS
 * (DualPipe): the stages are then two copies of the model, one after the other, and microbatch j
 * runs through chain j mod 2.
 *
 * Sources: GPipe; PipeDream's 1F1B; Megatron's interleaved 1F1B; "On Optimizing the Communication
 * of Model Parallelism", section 4 (eager 1F1B); "Zero Bubble Pipeline Parallelism" (ZB-H1, ZB-H2,
 * ZB-V); "Pipeline Parallelism with Controllable Memory" (V-Half, V-Min); "DeepSeek-V3 Technical
 * Report" (DualPipe).
 */
#ifndef SW_PIPELINE_H
#define SW_PIPELINE_H

#include "base/base.h"

/* ---- schedules -------------------------------------------------------------------------- */

/* The order of this enum is the order of the table in actions.c. A BACKWARD is an input gradient
 * and a weight gradient in one. A send or a receive is named after the stage that sends, or that
 * receives: stage 0 sends forward what stage 1 receives. */
typedef enum sw_action_kind {
	SW_FORWARD,
	SW_BACKWARD,
	SW_INPUT_GRADIENT,
	SW_WEIGHT_GRADIENT,
	SW_SEND_FORWARD,
	SW_RECEIVE_FORWARD,
	SW_SEND_BACKWARD,
	SW_RECEIVE_BACKWARD,
	SW_GATHER_WEIGHTS,  /* all-gather of a stage's parameters */
	SW_DROP_WEIGHTS,    /* what was gathered is freed */
	SW_REDUCE_GRADIENT, /* reduce-scatter of a stage's gradients */
	SW_UPDATE,          /* the optimizer */
	SW_ACTION_KINDS,
} sw_action_kind;

typedef struct sw_action {
	sw_action_kind kind;
	int32_t stage;
	int32_t microbatch; /* -1: of none, as of an update */
} sw_action;

typedef SW_VEC(sw_action) sw_action_list;

typedef struct sw_pipeline_schedule {
	int32_t n_ranks, n_stages, n_microbatches, n_chains;
	int32_t *rank_of_stage; /* [n_stages] */
	sw_action_list *lists;  /* [n_ranks] */
} sw_pipeline_schedule;

/* Return a schedule without actions, all of whose stages are on rank 0. Freed by the caller. */
sw_pipeline_schedule *sw_pipeline_new(int32_t n_ranks, int32_t n_stages, int32_t n_microbatches,
                                      int32_t n_chains);
sw_pipeline_schedule *sw_pipeline_copy(const sw_pipeline_schedule *schedule);
void sw_pipeline_free(sw_pipeline_schedule *schedule);
int64_t sw_pipeline_length(const sw_pipeline_schedule *schedule); /* actions of all ranks */
/* Is the stage the first, or the last, of its chain? */
bool sw_stage_is_first(const sw_pipeline_schedule *schedule, int32_t stage);
bool sw_stage_is_last(const sw_pipeline_schedule *schedule, int32_t stage);
/* Does the microbatch run through the stage? */
bool sw_stage_takes(const sw_pipeline_schedule *schedule, int32_t stage, int32_t microbatch);

/* The word of a kind in PyTorch's CSV: F, B, I, W, SEND_F, ... */
const char *sw_action_word(sw_action_kind kind);
bool sw_action_is_compute(sw_action_kind kind); /* F, B, I or W */
void sw_action_print(sw_action action, sw_text *text);

/* Check that each stage's microbatches are computed once each way, on one rank, an input gradient
 * before its weight gradient, and that receives have sends. SW_ERR_INPUT names the action. */
sw_status sw_pipeline_check(const sw_pipeline_schedule *schedule, sw_error *err);
bool sw_pipeline_has(const sw_pipeline_schedule *schedule, sw_action_kind kind);
bool sw_pipeline_has_transfers(const sw_pipeline_schedule *schedule);
/* Return a copy in which what crosses ranks is sent as soon as it is there, and received before it
 * is used; or one without sends and receives. Freed by the caller. */
sw_pipeline_schedule *sw_pipeline_with_transfers(const sw_pipeline_schedule *schedule);
sw_pipeline_schedule *sw_pipeline_without_transfers(const sw_pipeline_schedule *schedule);

/* ---- named schedules -------------------------------------------------------------------- */

typedef enum sw_named_schedule {
	SW_GPIPE,
	SW_1F1B,
	SW_EAGER_1F1B,
	SW_INTERLEAVED_1F1B,
	SW_ZB_H1,
	SW_ZB_2P,
	SW_ZB_V,
	SW_V_HALF,
	SW_V_MIN,
	SW_DUALPIPE,
	SW_NAMED_SCHEDULES,
} sw_named_schedule;

typedef enum sw_pipeline_placement {
	SW_PLACE_STRAIGHT,
	SW_PLACE_LOOPED,
	SW_PLACE_V
} sw_pipeline_placement;

typedef struct sw_pipeline_size {
	int32_t n_ranks, n_microbatches;
	int32_t n_chunks; /* virtual stages per rank; 0: what the schedule needs, 2 if interleaved
	                   */
} sw_pipeline_size;

const char *sw_pipeline_name(sw_named_schedule which);
const char *sw_pipeline_summary(sw_named_schedule which);
sw_status sw_pipeline_parse_name(const char *name, sw_named_schedule *which, sw_error *err);
int32_t sw_pipeline_place(sw_pipeline_placement placement, int32_t n_ranks, int32_t stage);
/* Return how a named schedule places its stages, and how many it has on each rank at least. */
sw_pipeline_placement sw_pipeline_placement_of(sw_named_schedule which);
int32_t sw_pipeline_chunks_of(sw_named_schedule which);
/* Make a named schedule of compute actions. Freed by the caller. SW_ERR_INPUT where it has no
 * schedule of that size, such as DualPipe on an odd number of ranks. O(actions). */
sw_status sw_pipeline_make(sw_named_schedule which, sw_pipeline_size size,
                           sw_pipeline_schedule **schedule, sw_error *err);

/* ---- CSV -------------------------------------------------------------------------------- */

/* The CSV of torch.distributed.pipelining: a row per rank, cells such as 0F1, 1I3, 2SEND_B0 or
 * (0F1;1B2)OVERLAP_F_B, empty cells for nothing. Both dialects are read, with sends and receives
 * (`compute_comms`) and without (`compute_only`). OVERLAP_F_B is read as its parts, one after the
 * other. `name` stands in errors. */
sw_status sw_pipeline_parse_csv(const char *text, size_t length, const char *name,
                                sw_pipeline_schedule **schedule, sw_error *err);
sw_status sw_pipeline_read(const char *path, sw_pipeline_schedule **schedule, sw_error *err);
/* UPDATE is a word of ours, which PyTorch does not read: it is left out. */
void sw_pipeline_print_csv(const sw_pipeline_schedule *schedule, sw_text *text);

/* ---- playing ---------------------------------------------------------------------------- */

/* No pass takes, and nothing holds, more seconds or bytes than that, so that sums are finite. */
#define SW_PIPELINE_MAX_COST 1e18
/* Seconds and bytes. Arrays of stages have n_stages entries, of ranks n_ranks. */
typedef struct sw_pipeline_costs {
	const double *forward_s, *input_gradient_s, *weight_gradient_s; /* of stages */
	/* of stages: to the next stage and to the one before; unused where both are on one rank */
	const double *send_forward_s, *send_backward_s;
	const double *gather_s, *reduce_s, *update_s; /* of stages */
	/* Of stages, what a microbatch holds: from the beginning of its forward to the end of its
	 * input gradient; from there to the end of its weight gradient. */
	const double *activation_bytes, *gradient_bytes;
	const double *fixed_bytes, *limit_bytes; /* of ranks; a limit may be INFINITY */
	/* A rank does nothing else while it sends. Otherwise sends run beside its computations, one
	 * after the other on each pair of ranks. */
	bool blocking_sends;
} sw_pipeline_costs;

/* Read costs from an object whose keys are the members' names. A value is an array, or a number: of
 * a rank, which its virtual stages share, where it is work or memory. Without them sends take no
 * time, a microbatch holds one byte per rank, and nothing is limited. The arrays are in the arena.
 * SW_ERR_INPUT names the key. */
sw_status sw_pipeline_costs_of(const json_t *json, const sw_pipeline_schedule *schedule,
                               sw_arena *arena, sw_pipeline_costs *costs, sw_error *err);

/* A send's seconds are those of its message; a receive takes none, it ends a wait. `cause` is the
 * action of rank `cause_rank` whose end allowed the beginning; -1: none. */
typedef struct sw_played_action {
	double start_s, end_s;
	int32_t cause, cause_rank;
} sw_played_action;

typedef struct sw_played_rank {
	double first_s, last_s; /* beginning of its first computation, end of its last action */
	double busy_s;          /* its computations */
	double peak_bytes;
	sw_action peak_at;   /* the action that begins at the peak */
	double excess_bytes; /* the first time that its limit is exceeded: by how much; else 0 */
	sw_action excess_at;
} sw_played_rank;

/* Which of a critical path's seconds are spent where; they sum to the step. */
typedef struct sw_pipeline_path {
	double compute_s, transfer_s, other_s;
	int32_t crossings; /* transfers on it */
	int32_t busiest;   /* the rank with most of its seconds */
	double busiest_s;
} sw_pipeline_path;

typedef struct sw_pipeline_played {
	sw_pipeline_schedule *schedule; /* as it was played, with transfers */
	sw_played_action **actions;     /* [n_ranks][length of its list] */
	sw_played_rank *ranks;          /* [n_ranks] */
	double step_s;                  /* the end of the last action */
	/* The largest share of idle time of a rank: of the step, and between its own first and last
	 * action, as the zero-bubble papers count (the next step then begins where a rank is done).
	 */
	double bubble, own_bubble;
	sw_pipeline_path path;
} sw_pipeline_played;

/* Play a schedule; transfers are added where it has none. *played is freed with
 * sw_pipeline_played_free, also if memory is exceeded, which is no error here. SW_ERR_INPUT: the
 * schedule deadlocks, and the message has the cycle. O(actions). */
sw_status sw_pipeline_play(const sw_pipeline_schedule *schedule, const sw_pipeline_costs *costs,
                           sw_pipeline_played *played, sw_error *err);
void sw_pipeline_played_free(sw_pipeline_played *played);
/* SW_ERR_INPUT, with the action and the bytes, if a rank exceeds its limit. */
sw_status sw_pipeline_check_memory(const sw_pipeline_played *played, const sw_pipeline_costs *costs,
                                   sw_error *err);
/* A row of characters per rank; `columns` for the step. */
void sw_pipeline_draw(const sw_pipeline_played *played, int columns, sw_text *text);

/* ---- searching -------------------------------------------------------------------------- */

/* What bounds a step from below. */
typedef enum sw_pipeline_limit { SW_LIMIT_RANK, SW_LIMIT_CHAIN, SW_LIMIT_MEMORY } sw_pipeline_limit;

typedef struct sw_pipeline_bound {
	double seconds;
	sw_pipeline_limit by;
	int32_t rank; /* of SW_LIMIT_RANK and SW_LIMIT_MEMORY */
} sw_pipeline_bound;

/* Seconds that no order of the actions of these stages on these ranks is below, within the memory
 * limits: a rank's work behind the soonest it can begin; one microbatch there and back; and what
 * microbatches hold for how long, divided by the bytes that there are. O(stages). */
sw_pipeline_bound sw_pipeline_bound_of(const sw_pipeline_schedule *schedule,
                                       const sw_pipeline_costs *costs);

typedef struct sw_pipeline_search_options {
	int64_t work_limit;  /* actions played; 0: SW_PIPELINE_WORK */
	double time_limit_s; /* 0: none; with one, results may differ from run to run */
	uint64_t seed;
} sw_pipeline_search_options;

typedef struct sw_schedule_found {
	sw_pipeline_schedule *schedule; /* freed by the caller; NULL: nothing fits in memory */
	double step_s;
	int64_t played; /* schedules */
	bool proved;    /* within SW_PIPELINE_GAP of the bound */
} sw_schedule_found;

/* Search for the quickest schedule within memory, beginning with each of `starts` (NULL-terminated,
 * at least one; all of the same stages, ranks and microbatches) and with one microbatch after the
 * other. Backward passes are split if any start's are. */
sw_schedule_found sw_pipeline_search(const sw_pipeline_schedule *const starts[],
                                     const sw_pipeline_costs *costs,
                                     const sw_pipeline_search_options *options);

#endif
