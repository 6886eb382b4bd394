/*
 * What the files of this folder share, in the order in which the search uses them.
 *
 *   search.c        the driver: one loop over a queue of (program variant, mesh)
 *   variants.c      the program as it is, and rewritten
 *   waves.c         the meshes of one variant, entered into the queue and their results taken out
 *   queue.c         which meshes are next; the only place that prunes
 *   batch.c         a few meshes modelled, solved and costed side by side
 *   mesh_search.c   one mesh: attempts under one memory limit of the model after another
 *   costing.c       what a plan costs; with values re-gathered, or streamed, where memory is short
 *   regather.c      which readers re-gather (live_versions.c counts the bytes); stream.c streams
 *   candidates.c    plans that may be the quickest, played as they are scheduled
 *   neighbours.c    which variant is next: neighbours_memory.c, neighbours_padding.c
 *   answer.c        the plan that is returned, or why there is none
 */
#ifndef SW_SEARCH_INTERNAL_H
#define SW_SEARCH_INTERNAL_H

#include "search/limits.h"
#include "search/search.h"

/* ---- candidates --------------------------------------------------------------------------- */

/* A candidate plan: one mesh of one variant, solved and costed. */
typedef struct sw_candidate_plan {
	size_t variant, entry;
	char name[SW_NAME_BYTES];
	double model_s;       /* by the solver's model, with what re-gathering adds */
	sw_program_cost cost; /* step_time_s: as scheduled, once it was played */
	sw_snapshot snapshot; /* strategies NULL: there is no such candidate */
} sw_candidate_plan;

/* ---- variants ------------------------------------------------------------------------------- */

/* A set of a strategy's meshes, by number. */
typedef struct sw_mesh_set {
	bool rest; /* are the numbers beyond the list in the set? */
	SW_VEC(uint8_t) has;
} sw_mesh_set;
bool sw_mesh_set_has(const sw_mesh_set *set, size_t mesh);
void sw_mesh_set_put(sw_mesh_set *set, size_t mesh, bool has);
/* Adds the meshes of `more`. */
void sw_mesh_set_add(sw_mesh_set *set, const sw_mesh_set *more);

/* The result of a search on a mesh without a memory limit. */
typedef struct sw_unconstrained {
	double model_s;               /* the best by the model; INFINITY: none */
	double kernels_s;             /* no step is below */
	bool exceeds;                 /* it was costed, and does not fit */
	bool deferred;                /* it was not costed, since a quicker one does not fit */
	sw_program_cost cached, cost; /* before and after readers re-gather */
} sw_unconstrained;

/* A mesh of a variant: an entry of the queue, and afterwards what came of it. */
typedef struct sw_mesh_entry {
	sw_mesh mesh;                       /* its name says how the variant is rewritten */
	size_t number;                      /* of the strategy's meshes: the same in all variants */
	bool in_bound;                      /* its bound is part of the certificate */
	double step_bound_s, model_bound_s; /* below the steps of its plans; by the model */
	double best_s;                      /* the best that fits, by the model; INFINITY: none */
	sw_unconstrained unconstrained;
	sw_alternative line;
} sw_mesh_entry;

typedef struct sw_variant {
	sw_rewrites rewrites;
	sw_plan *plan; /* owned, with its program; its decisions are those of no candidate */
	sw_padded_list padded;
	sw_pad_map pad_map;  /* of programs in which every class of dimensions is padded */
	uint64_t hash;       /* of the program */
	int64_t share_bytes; /* no plan of the program takes less per device */
	double roofline_s;   /* no step is below: the kernels' time on one device, shared by all */
	sw_mesh_set wanted;  /* meshes that are to be searched; */
	sw_mesh_set behind;  /* that are far from the best; */
	sw_mesh_set open;    /* of which more may be found than a search without limit has shown */
	SW_VEC(sw_mesh_entry) entries;
	sw_program_cost
		unconstrained;   /* of the quickest plan by the model; step_time_s 0: unknown */
	double unconstrained_s;  /* by the model */
	bool far;                /* that plan needs many times the memory */
	sw_candidate_plan least; /* needs least memory of all that do not fit */
	sw_alternative untried;  /* name "": it was tried */
	int64_t left_out;        /* options of axes at decisions that exceeded the limits */
} sw_variant;

/* ---- waves: the meshes of one variant ------------------------------------------------------- */

typedef enum sw_memory_mode {
	SW_MEMORY_UNCONSTRAINED, /* find the quickest plan, and see whether it fits */
	SW_MEMORY_LIMITED,       /* find one that fits */
	SW_MEMORY_RESERVED /* leave a part of the memory to the schedule; bounds stay as they are */
} sw_memory_mode;

/* What the solver may do on one mesh. */
typedef struct sw_budget {
	int64_t work;
	double seconds;  /* 0: unlimited */
	double cutoff_s; /* by the model: nothing slower is sought */
	double accept_s; /* <= cutoff_s: nothing slower is costed */
} sw_budget;

/* Running figures of a wave. */
typedef struct sw_tally {
	double model_s;      /* the best by the model, here or before */
	double step_s;       /* the quickest that fits, as costed or played, here or before */
	double exceeding_s;  /* the quickest by the model that was costed not to fit */
	double merged_share; /* of collectives' seconds that remain if all that may begin as one do
	                      */
} sw_tally;

typedef struct sw_mesh_search sw_mesh_search;
typedef struct sw_wave {
	size_t variant;
	sw_memory_mode mode;
	int64_t memory_bytes;         /* per device, for the search */
	double start_s, time_limit_s; /* of sw_now_s; 0: unlimited */
	double tolerance;             /* how far behind the incumbent a mesh may be */
	sw_analysis analysis;
	sw_memo memo;
	SW_VEC(sw_start) starts; /* solutions of earlier meshes */
	sw_tally tally, before;  /* now; before this batch, which prefetched models go by */
	sw_mesh_search *storage, **meshes; /* [n]; in the order of the queue */
	size_t n, next, n_sorted;          /* next: first of those not taken yet */
	size_t batch;                      /* how many before `next` are searched now */
	SW_VEC(sw_candidate_plan) candidates;
	sw_progress progress;
} sw_wave;

/* ---- the search --------------------------------------------------------------------------- */

typedef struct sw_grid_search sw_grid_search;
/* The classes of dimensions that a candidate of a whole padded program needs padded. */
typedef struct sw_need {
	sw_pad_rule rule;
	size_t mesh;
	double model_s;
} sw_need;
typedef struct sw_search {
	const sw_plan_options *options; /* what was asked for */
	const sw_search_limits *limits;
	const sw_model_limits *model_limits;
	sw_arena arena;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const char *program_path;
	sw_program *canonical; /* owned, unless a plan that was returned has it */
	SW_VEC(sw_variant) variants;
	sw_candidate_plan incumbent; /* the quickest that fits, as scheduled */
	sw_strategy_set strategies;  /* of all snapshots */
	sw_wave *wave;               /* NULL: none is open */
	int step;                    /* of the proposers (neighbours.c) */
	bool was_near;               /* the program as it is was searched within memory at once */
	sw_grid_search *grid;        /* of variants that save memory; NULL: not made yet */
	SW_VEC(sw_need) needs;       /* of padding */
	struct {
		sw_rewrites base;  /* what is padded */
		double roofline_s; /* of that */
		size_t next;       /* variant; 0: none was added yet */
		bool in_part;
	} padding;
	sw_path_store *paths;
	double start_s;
	bool timed_out;
	char scope[192];   /* what the meshes leave out; "": not known yet */
	bool afford_three; /* free axes */
	sw_error *err;
} sw_search;

int64_t sw_search_memory(const sw_search *s); /* bytes per device */
double sw_search_left_s(const sw_search *s);  /* INFINITY: there is no time limit */
/* When the whole search is to end, whatever was found; of sw_now_s, 0: never. */
double sw_search_last_s(const sw_search *s);
bool sw_search_has_incumbent(const sw_search *s);
sw_variant *sw_search_variant(const sw_search *s, size_t number);

/* ---- variants.c ----------------------------------------------------------------------------- */

/* Adds a variant, or its meshes to one that has the same program. SW_NO, and no variant, if a
 * rewrite is impossible or changes nothing, or time is up. */
sw_status sw_variant_add(sw_search *s, const sw_rewrites *rewrites, const sw_mesh_set *wanted,
                         size_t *number, sw_error *err);
void sw_variant_clear(const sw_search *s, sw_variant *v);
bool sw_variant_is_too_large(const sw_search *s, const sw_variant *v);
bool sw_variant_was_searched(const sw_variant *v);
/* Has it a plan that fits? */
bool sw_variant_fits(const sw_variant *v);
/* The variant with the smallest plan of those that do not fit; NULL: there is none. */
const sw_variant *sw_variant_least(const sw_search *s);
/* Below the steps of all its plans, and below them by the model. */
double sw_variant_bound_s(const sw_variant *v);
double sw_variant_model_bound_s(const sw_variant *v);
/* Notes in its alternatives that a variant, or one of its meshes, was not tried. */
void sw_variant_note_untried(sw_variant *v, sw_untried untried, double bound_s);

/* ---- waves.c -------------------------------------------------------------------------------- */

/* Enters the wanted meshes of a variant into the queue. None where the variant is too large, or
 * lacks what is pinned. */
sw_status sw_wave_open(sw_search *s, size_t variant, sw_memory_mode mode, double time_limit_s);
/* Takes the results: alternatives, bounds, which meshes are far behind. */
void sw_wave_close(sw_search *s);
void sw_wave_free(sw_search *s);

/* ---- queue.c: which meshes are next; the only place that prunes ------------------------------ */

/* What is known of a mesh, a variant or a candidate when it is decided whether to go on with it. */
typedef struct sw_estimate {
	double step_s;   /* no step of it is below */
	double model_s;  /* its seconds by the model, or what bounds them; INFINITY: unknown */
	bool by_model;   /* is it dropped only if it is slower by the model, too? */
	bool deferrable; /* may it wait until there is a memory limit? */
} sw_estimate;
/* Why an estimate is not worth more work, given the figures of a wave. */
sw_untried sw_prune(const sw_wave *wave, const sw_tally *tally, const sw_estimate *estimate);

/* Takes the next meshes of the wave that are searched side by side; false: none is left. */
bool sw_queue_take(sw_search *s);
/* Prunes a mesh whose model was not built, or not solved, yet. */
void sw_queue_prune(const sw_search *s, const sw_tally *tally, sw_mesh_search *m);
/* Builds models beside the searches of this batch, for those after it. */
void sw_queue_prefetch(void *search);
/* Builds the model of the next attempt of a mesh, if it is not pruned. Not thread-safe. */
void sw_queue_build(sw_search *s, size_t position);

/* ---- batch.c --------------------------------------------------------------------------------- */

/* Searches the meshes that were taken, attempt by attempt, and enters what they found. */
sw_status sw_batch_search(sw_search *s);

/* ---- mesh_search.c: one mesh ------------------------------------------------------------------
 */

/* The memory limit of the model. */
typedef enum sw_capacity {
	SW_CAPACITY_NONE,
	SW_CAPACITY_GUESSED,    /* loose by memory_doubt */
	SW_CAPACITY_CALIBRATED, /* by what a plan was costed to take; no tighter than the memory */
	SW_CAPACITY_TIGHTENED   /* excludes a plan that did not fit: no bound any more */
} sw_capacity;

/* What one attempt found. */
typedef struct sw_found {
	bool feasible;           /* and fits, once it was judged */
	bool applied;            /* the sketch has its decisions */
	sw_untried untried;      /* why it was not costed, */
	double untried_s;        /* and its bound */
	double model_s, bound_s; /* by the model */
	double cached_s;         /* model_s before any reader re-gathers */
	double kernels_s;        /* no schedule takes less */
	sw_program_cost cost, cached;
	int64_t costed_bytes; /* the least peak that was costed; INT64_MAX: none */
} sw_found;

typedef struct sw_mesh_search {
	size_t entry; /* of the variant */
	const sw_mesh *mesh;
	sw_plan *sketch; /* decisions of the last attempt; NULL outside of a batch */
	sw_budget budget;
	sw_capacity capacity;
	int attempt, first_attempt;
	bool pending;       /* an attempt is to be made */
	bool listed, built; /* its model's decisions are listed; the model is complete */
	bool timed_out;
	sw_status status;
	sw_error err;
	struct { /* the model, from listing to judging */
		sw_model model;
		SW_VEC(int32_t *) places; /* where its solver begins */
		SW_VEC(sw_start) starts;  /* what it found, for later meshes */
		sw_solution solution;
		double deadline_s; /* 0: none */
	} work;
	struct {                           /* of all attempts */
		double kernels_s, model_s; /* below steps; below the model's seconds */
		double best_s;             /* the best by the model that fits; INFINITY: none */
		int64_t least_bytes;
	} bounds;
	sw_found found, best; /* of the last attempt; of the quickest that fits */
	sw_snapshot best_snapshot;
} sw_mesh_search;

bool sw_mesh_is_free(const sw_mesh *mesh); /* of demands: its axes may be used in any way */
void sw_mesh_search_init(sw_mesh_search *m, const sw_search *s, size_t entry);
/* Lists the decisions of the first attempt's model, which gives a bound of the kernels. */
void sw_mesh_search_list(sw_mesh_search *m, sw_wave *wave, const sw_watch *watch);
/* Builds the model of the next attempt. */
void sw_mesh_search_build(sw_mesh_search *m, sw_search *s, const sw_watch *watch);
/* Lets the solver begin where those of earlier meshes ended. */
void sw_mesh_search_warm_start(sw_mesh_search *m, const sw_wave *wave);
/* Gives it up before it is solved. */
void sw_mesh_search_drop(sw_mesh_search *m, sw_untried untried);
/* Gives up what was found before it is costed. */
void sw_mesh_search_reject(sw_mesh_search *m, sw_untried untried, double bound_s);
/* These three are thread-safe for different meshes, and beside the building of others. */
void sw_mesh_search_solve(sw_mesh_search *m, const sw_search *s);
void sw_mesh_search_apply(sw_mesh_search *m);
void sw_mesh_search_cost(sw_mesh_search *m, const sw_search *s);
/* Decides whether another attempt follows. */
void sw_mesh_search_judge(sw_mesh_search *m, sw_search *s);
/* Leaves the best attempt in `found` and in the sketch, and hands its solutions to the wave. */
void sw_mesh_search_end(sw_mesh_search *m, sw_search *s);
void sw_mesh_search_clear(sw_mesh_search *m);
/* A bound of the model's seconds, as a bound of steps: a step takes no less than its kernels plus
 * the collectives that nothing may run beside, and no less than all its collectives; with overlap
 * weight w the model's sum is at most 1 + w steps. */
double sw_model_step_bound_s(const sw_analysis *analysis, double model_s);

/* ---- costing.c ------------------------------------------------------------------------------- */

/* Costs the partitioned program of a plan, and counts that. Thread-safe. */
sw_status sw_cost_plan(const sw_plan_options *request, const sw_plan *plan, sw_program_cost *cost,
                       sw_error *err);

/* How a plan is made to fit. */
typedef struct sw_costing {
	const sw_plan_options *options;
	const sw_search_limits *limits;
	const sw_roles *roles;
	sw_path_store *paths;
	sw_plan *plan;
	int64_t memory_bytes;
	double deadline_s;   /* of sw_now_s; 0: none */
	double doubt;        /* plans counted to take more than so many times the memory are left */
	int64_t least_bytes; /* result: with all readers re-gathering, as counted or costed */
} sw_costing;
/* Costs a plan; where it exceeds the memory, lets readers re-gather, then streams operands. Gives
 * the cost of the plan as it then is, and `cached`, with everything cached. */
sw_status sw_costing_fit(sw_costing *c, sw_program_cost *cached, sw_program_cost *cost,
                         sw_error *err);

/* ---- regather.c ------------------------------------------------------------------------------ */

/* Of a plan that caches everything and was costed (*cost) to exceed the memory: lets as few readers
 * re-gather as make it fit by the arena of the partitioned program; all that free anything where
 * even that does not fit; none where it saves nothing. Costs at most max_regather_costings + 2
 * programs; none, and leaves the plan alone, where by the live ranges of values it would take more
 * than `doubt` times the memory. */
sw_status sw_regather(sw_costing *c, sw_program_cost *cost, sw_error *err);

/* ---- stream.c ---------------------------------------------------------------------------------
 */

/* Gives every dot a stream that then holds at least so many bytes less of its operands, where an
 * operand is materialised as that takes. Returns the most bytes that one of them saves; 0: none
 * does. The layouts of results stay as they are. */
int64_t sw_plan_stream(sw_plan *plan, int64_t least_bytes);

/* ---- candidates.c -----------------------------------------------------------------------------
 */

/* Enters what a mesh search found, unless another is quicker whatever overlaps. */
void sw_candidates_enter(sw_search *s, const sw_mesh_search *m);
/* Keeps a plan that does not fit if it is the smallest of its variant. */
void sw_candidates_note_least(sw_search *s, const sw_mesh_search *m);
/* Plays the candidates that may be quicker than the incumbent, those first that are quickest by the
 * model, and makes the quickest the incumbent. */
sw_status sw_candidates_select(sw_search *s);
void sw_candidate_clear(sw_candidate_plan *c);
/* No schedule of it is quicker. */
double sw_cost_step_bound_s(const sw_program_cost *cost);

/* ---- neighbours.c: which variants are next ----------------------------------------------------
 */

/* Opens the next wave, of a neighbour of what was searched; none: there is nothing more to try. */
sw_status sw_propose(sw_search *s);

/* ---- neighbours_memory.c -----------------------------------------------------------------------
 */

/* Opens a wave of the next variant that computes activations again, or in more microbatches. */
sw_status sw_propose_saving(sw_search *s);
void sw_grid_search_free(sw_grid_search *grid);

/* ---- neighbours_padding.c ----------------------------------------------------------------------
 */

void sw_padding_note_need(sw_search *s, const sw_mesh_search *m);
sw_status sw_propose_padding(sw_search *s);
sw_status sw_propose_part_padding(sw_search *s);

/* ---- answer.c ----------------------------------------------------------------------------------
 */

/* The incumbent as a plan, with its alternatives and bounds; SW_NO: nothing fits in memory. */
sw_status sw_search_answer(sw_search *s, sw_plan **plan);

#endif
