/*
 * Types and functions that the files of this folder share, in the order in which the search uses
 * them.
 *
 *   make_plan.c        the driver: one loop over a queue of (program variant, mesh)
 *   variants.c         the program as it is, and rewritten
 *   waves.c            enter the meshes of one variant into the queue; take their results out
 *   queue.c            choose the next meshes
 *   prune.c            decide what is given up: the only place
 *   batch.c            model, solve and cost a few meshes side by side
 *   solved.c           problems that were solved, each once
 *   mesh_search.c      search one mesh, one attempt per memory limit of the model
 *   costing.c          cost a plan; re-gather values or stream operands where memory is short
 *   regather.c         choose the readers that re-gather (live_versions.c counts the bytes)
 *   stream_operands.c  choose the operands that dots stream
 *   candidates.c       simulate the plans that may be the quickest
 *   held_state.c       what a device holds of the state under a plan
 *   hopeless.c         see whether nothing can fit by far
 *   neighbours.c       choose the next variant: neighbours_memory.c, neighbours_padding.c
 *   reprice.c          solve again at the prices of what the incumbent waits for
 *   variations.c       vary the quickest plans, by their played steps
 *   certify.c          the bound of all plans, searched or not
 *   answer.c           the plan that is returned, or why there is none
 *   cut_short.c        within a time limit: fixed strategies are searched alone, the best first
 */
#ifndef SW_SEARCH_INTERNAL_H
#define SW_SEARCH_INTERNAL_H

#include "search/limits.h"
#include "search/search.h"
#include "search/solved.h"

/* ---- candidates ------------------------------------------------------------------------- */

/* A candidate plan: one mesh of one variant, solved and costed. */
typedef struct sw_candidate_plan {
	size_t variant, entry;
	char name[SW_NAME_BYTES];
	size_t move;    /* of variations.c that made it; 0: none did */
	double model_s; /* by the solver's model, plus the cost of re-gathering */
	double scouted_s; /* a step by orders that merge nothing; 0: not played so */
	sw_program_cost
		cost; /* step_time_s: without overlap; of the schedule, once it was simulated */
	sw_snapshot snapshot; /* strategies NULL: there is no candidate */
} sw_candidate_plan;

/* ---- variants --------------------------------------------------------------------------- */

/* What a device holds of the state under a plan, in bytes. */
typedef struct sw_held_state {
	int64_t input_bytes;    /* of all inputs, at rest */
	int64_t gathered_bytes; /* of parameters as they are read, beyond what is held at rest */
	int64_t sum_bytes;      /* of the gradients of parameters, each as large as that is read */
} sw_held_state;

/* A set of a strategy's meshes, by number. */
typedef struct sw_mesh_set {
	bool rest; /* are the numbers beyond the list in the set? */
	SW_VEC(uint8_t) has;
} sw_mesh_set;
bool sw_mesh_set_has(const sw_mesh_set *set, size_t mesh);
bool sw_mesh_set_has_any(const sw_mesh_set *set);
void sw_mesh_set_put(sw_mesh_set *set, size_t mesh, bool has);
void sw_mesh_set_reset(sw_mesh_set *set, bool all); /* all meshes are in it, or none is */
/* Add the meshes of `more`. */
void sw_mesh_set_add(sw_mesh_set *set, const sw_mesh_set *more);

/* The result of a search on a mesh without a memory limit. */
typedef struct sw_unconstrained {
	double model_s;   /* the quickest plan's seconds by the model; INFINITY: there is no plan */
	double kernels_s; /* no step is shorter */
	double hidden_s;  /* its step by the model, if all that may hide does; 0: no plan */
	bool exceeds;     /* it was costed and does not fit */
	bool deferred;    /* it was not costed, since a quicker one does not fit */
	sw_program_cost cached, cost; /* before and after readers re-gather */
} sw_unconstrained;

/* A mesh of a variant: an entry of the queue, and then its result. */
typedef struct sw_mesh_entry {
	sw_mesh mesh;         /* its name tells the rewrites of the variant */
	size_t number;        /* of the strategy's meshes: the same in all variants */
	double kernels_s;     /* sw_model_kernels_s: where kernels fuse a step may be shorter */
	double model_bound_s; /* none of its plans takes less by the model */
	double best_s;        /* the quickest that fits, by the model; INFINITY: none */
	int64_t least_bytes;  /* its inputs take so much on a device; 0: unknown */
	bool timed_out;       /* its search was cut */
	sw_unconstrained unconstrained;
	sw_alternative line;
} sw_mesh_entry;

/* A rewritten program, which several searches of one request share. */
typedef struct sw_written {
	sw_rewrites rewrites;
	sw_program *program; /* owned, unless it is the canonical program or a plan has taken it */
	sw_padded_list padded;
	bool taken;
	uint64_t hash;
	int64_t share_bytes; /* no plan of the program takes less per device */
	double kernels_s;    /* sw_bound_kernels_s of the program: no step is shorter */
} sw_written;

typedef struct sw_variant {
	sw_rewrites rewrites;
	sw_written *written; /* borrowed: it has the program of the plan; NULL: the plan owns that */
	/* owned, with its program; candidates are restored into it one after another */
	sw_plan *plan;
	sw_padded_list padded;
	sw_pad_map pad_map;  /* of programs that are padded in every class of dimensions */
	uint64_t hash;       /* of the program */
	int64_t share_bytes; /* no plan of the program takes less per device */
	double kernels_s;    /* sw_bound_kernels_s of the program: no step is shorter */
	struct {
		sw_mesh_set wanted; /* to be searched */
		sw_mesh_set behind; /* far slower than the best one */
		sw_mesh_set open;   /* not settled by the search without a memory limit */
	} meshes;
	SW_VEC(sw_mesh_entry) entries;
	struct {                      /* the quickest plan by the model, without a memory limit */
		sw_program_cost cost; /* step_time_s 0: unknown */
		double model_s;
		sw_held_state held;   /* zero where the plan fits */
		int64_t least_bytes;  /* no plan of its mesh takes less for inputs */
		/* it needs more than limits.far_too_large times the memory, and no plan of the
		 * variant is the incumbent */
		bool far;
	} unconstrained;
	sw_candidate_plan least; /* the smallest of the plans that do not fit */
	sw_alternative untried;  /* why no mesh was searched; name "": some were */
	int64_t left_out;        /* options of axes at decisions that exceeded the limits */
} sw_variant;

/* ---- waves: the meshes of one variant --------------------------------------------------- */

typedef enum sw_memory_mode {
	SW_MEMORY_UNCONSTRAINED, /* find the quickest plan, and see whether it fits */
	SW_MEMORY_LIMITED,       /* find a plan that fits */
	/* keep a part of the memory for the schedule; bounds stay as they are */
	SW_MEMORY_RESERVED,
	/* find a plan that fits at the prices of what the incumbent waits for (reprice.c); likewise */
	SW_MEMORY_REPRICED,
	SW_MEMORY_VARIED /* vary plans that were found (variations.c); bounds stay as they are */
} sw_memory_mode;
/* Does a wave of this mode look for other plans on meshes whose bounds and lines are known? */
static inline bool sw_mode_looks_again(sw_memory_mode mode)
{
	return mode >= SW_MEMORY_RESERVED;
}

/* What a solver gets at least, however late it is: a small problem then has a solution, also where
 * code is checked at run time. */
#define SW_LEAST_SOLVER_S 1e-2

/* The limits of the solver on one mesh. */
typedef struct sw_budget {
	double seconds;  /* 0: unlimited */
	double cutoff_s; /* by the model: slower plans are not searched */
	double accept_s; /* <= cutoff_s: slower plans are not costed */
} sw_budget;

/* The best figures of a wave so far. */
typedef struct sw_tally {
	double model_s; /* the quickest plan by the model, of this wave or before */
	double step_s;  /* the quickest that fits, costed or simulated, of this wave or before */
	double exceeding_s; /* the quickest by the model that was costed not to fit */
	/* Of all plans of the search that were costed the smallest parts that remain of the model's
	 * seconds: of collectives if all are merged that may be, and of kernels where several ops are
	 * one. 0: none was costed. */
	double merged_share, fused_share;
} sw_tally;

typedef struct sw_mesh_search sw_mesh_search;
typedef struct sw_search_wave {
	size_t variant;
	sw_memory_mode mode;
	int64_t memory_bytes;         /* per device, for the search */
	double start_s, time_limit_s; /* of sw_now_s; 0: unlimited */
	double tolerance;             /* ratio to the incumbent up to which a mesh is searched */
	sw_analysis analysis;
	sw_memo memo;
	SW_VEC(sw_warm_start) starts; /* solutions of earlier meshes */
	sw_plan *incumbent;           /* from which meshes begin that refine its mesh; NULL: none */
	sw_plan *coarse;              /* the last one of a mesh of less than three axes; NULL: none */
	sw_near_plan near;            /* that: spare meshes that refine its mesh stay near it */
	sw_tally tally, before;       /* now; before this batch, for models that are built ahead */
	struct {
		sw_mesh_search *storage; /* [n], owned, as they were entered */
		sw_mesh_search **meshes; /* [n], in the order of the queue */
		size_t n;
		size_t next;     /* the first that is not taken yet */
		size_t n_sorted; /* how many positions are final */
		size_t batch;    /* how many before `next` are searched now */
	} queue;
	SW_VEC(sw_candidate_plan) candidates;
	sw_progress progress;
} sw_search_wave;

/* ---- what is asked for ------------------------------------------------------------------ */

/* All borrowed: as sw_plan_make takes it. */
typedef struct sw_plan_request {
	const sw_program *program;
	const char *path;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_plan_options *options;
} sw_plan_request;

/* ---- the search ------------------------------------------------------------------------- */

typedef struct sw_grid_search sw_grid_search;
typedef struct sw_saving_grid sw_saving_grid;
/* The classes of dimensions that a candidate of a wholly padded program needs padded. */
typedef struct sw_need {
	sw_pad_rule rule;
	size_t mesh;
	double model_s;
} sw_need;
typedef struct sw_search {
	struct { /* the request; all borrowed */
		const sw_plan_options *options;
		const sw_search_limits *limits;
		const sw_model_limits *model_limits;
		const sw_sidecar *sidecar;
		const sw_cluster *cluster;
		const char *program_path;
	} asked;
	sw_arena arena;
	sw_program *canonical; /* owned, unless it is lent or a plan that was returned has taken it */
	bool canonical_taken;
	/* Where variables have other forms than in the program that was given: that one, and the
	 * sidecar of `canonical`; likewise. */
	sw_program *undivided;
	sw_sidecar own_sidecar;
	sw_variable_forms forms;
	SW_VEC(sw_variant) variants;
	sw_candidate_plan incumbent;   /* the quickest plan that fits, by its simulated step */
	double merged_share, fused_share; /* as in sw_tally, of the waves that are closed */
	sw_strategy_set strategies;    /* of all snapshots */
	sw_search_wave *wave;          /* NULL: none is open */
	struct {                       /* which variant is searched next (neighbours.c) */
		int step;              /* number of the current proposer */
		bool widens;           /* meshes that are wide are searched now */
		bool refines;          /* meshes that refine the incumbent's are searched now */
		struct {               /* the last incumbent with a mesh of less than three axes */
			size_t variant;
			sw_mesh mesh;
			sw_snapshot snapshot; /* strategies NULL: there was none */
		} coarse;
		bool near_first;       /* the program as it is was searched within memory at once */
		sw_grid_search *grid;  /* of variants that save memory; NULL: not made yet */
		SW_VEC(sw_need) needs; /* of padding */
		struct {
			sw_rewrites base; /* the rewrites of the variant that is padded */
			double kernels_s; /* of that variant */
			sw_mesh of;       /* the mesh of the plan that is to be padded */
			size_t first;     /* of the variants that pad */
			size_t next;      /* variant to open next; 0: none was added yet */
			bool in_part;     /* the variants that pad some classes were added */
			/* 0, or the atoms of the part of the cluster whose meshes are searched */
			uint32_t part;
		} padding;
		double reserved_step_s; /* the incumbent's when memory was last reserved; 0: never */
		struct {
			int rounds;
			double step_s;    /* the incumbent's before the last round */
			sw_prices prices; /* of the incumbents before each round */
		} reprice;
	} proposals;
	/* owned, where there is a time limit: other searches may be begun that need them, too */
	SW_VEC(sw_written *) written;
	sw_saving_grid *saving_grid; /* owned; NULL: not made yet, or lent */
	sw_path_store *paths; /* borrowed */
	sw_solved *solved;
	double start_s, end_s; /* of sw_now_s, when its time is over; INFINITY: never */
	bool timed_out;
	double rival_s; /* the step of the rival; 0: it was not asked yet */
	/* fixed strategies are searched alone after this if it is cut: where nothing fits by then, they
	 * get all that is left of the time */
	bool yields;
	/* NULL, or another search that it is searched beside. That one lends the program, with the
	 * choices that save memory, and what it solved, and has found what can be found: once the time is
	 * over nothing more is begun. */
	struct sw_search *lender;
	/* where nothing fits by far: no choice of rewrites takes less per device; else 0 */
	int64_t hopeless_bytes;
	struct {
		double step_s, bound_s; /* a step that is below a bound; 0: there is none */
	} beaten;
	struct { /* the bound of all plans, found beside the search; beside NULL: it was not begun */
		sw_beside *beside;
		double bound_s;
	} certificate;
	bool tied;            /* repeated layers are planned alike on some mesh */
	char scope[192];      /* which meshes were dropped, in words; "": not known yet */
	int32_t afford_three; /* meshes of three free axes */
	sw_error *err;
} sw_search;

int64_t sw_search_memory(const sw_search *s); /* bytes per device */
double sw_search_left_s(const sw_search *s);  /* INFINITY: there is no time limit */
/* Return the seconds that a wave may take: a share of those that are left, or all where this search is
 * one of several that others interrupt between its waves. */
double sw_search_share_s(const sw_search *s, double share);
/* Return when the whole search must end, even without a plan; of sw_now_s, 0: never. */
double sw_search_last_s(const sw_search *s);
bool sw_search_has_incumbent(const sw_search *s);
const sw_mesh *sw_search_incumbent_mesh(const sw_search *s); /* of a search that has one */
sw_search *sw_search_owner(sw_search *s); /* of what is lent */
double sw_search_best_s(const sw_search *s); /* the incumbent's step; INFINITY: there is none */
/* The step that is to be beaten: the incumbent's, or that of the rival if it is quicker. */
double sw_search_limit_s(const sw_search *s);
/* Ask the rival for its step, once some plan is known, if that was not done. */
void sw_search_ask_rival(sw_search *s);
/* Can no plan of this variant be quicker than the rival, however it is made to fit in memory? */
bool sw_variant_loses(const sw_search *s, const sw_variant *v);
sw_variant *sw_search_variant(const sw_search *s, size_t number);

/* ---- variants.c ------------------------------------------------------------------------- */

/* Write the program of a variant that has its rewrites, with its plan, hash and bounds. SW_NO: a
 * rewrite is impossible. The caller clears it in either case. */
sw_status sw_variant_write(sw_search *s, sw_variant *v, sw_error *err);
/* Add a variant, or its meshes to a variant that has the same program. SW_NO, and no variant, if a
 * rewrite is impossible or changes nothing, or if time is up. */
sw_status sw_variant_add(sw_search *s, const sw_rewrites *rewrites, const sw_mesh_set *wanted,
                         size_t *number, sw_error *err);
void sw_variant_clear(const sw_search *s, sw_variant *v);
/* Do both compute the same again, in as many microbatches? */
bool sw_rewrites_save_alike(const sw_rewrites *a, const sw_rewrites *b);
/* Free the programs that were written, except those that plans have taken. */
void sw_variants_free_written(sw_search *s);
bool sw_variant_is_too_large(const sw_search *s, const sw_variant *v);
bool sw_variant_was_searched(const sw_variant *v);
/* Does some plan of the variant fit? */
bool sw_variant_fits(const sw_variant *v);
/* Is one of the first n meshes wanted whose plan takes as long as this one's, for it is the same? */
bool sw_variant_wants_equal(const sw_variant *v, size_t n, const sw_mesh_entry *e);
/* Return the variant with the smallest plan of those that do not fit; NULL: there is none. */
sw_variant *sw_variant_least(const sw_search *s);
/* Note in its alternatives that no mesh of the variant was searched, and why. */
void sw_variant_note_untried(sw_variant *v, sw_untried untried, double bound_s);

/* ---- waves.c ---------------------------------------------------------------------------- */

/* Enter the wanted meshes of a variant into the queue: none where the rewritten program lacks what
 * is pinned. */
sw_status sw_wave_open(sw_search *s, size_t variant, sw_memory_mode mode, double time_limit_s);
/* Begin the time of the open wave, which may have been left alone since. */
void sw_wave_start(sw_search *s);
double sw_wave_left_s(const sw_search_wave *w); /* INFINITY: it has no time limit */
/* Take the results: alternatives, bounds, and which meshes are far behind. */
void sw_wave_close(sw_search *s);
void sw_wave_free(sw_search *s);

/* ---- queue.c: which meshes are next; the only place that prunes ------------------------- */

/* The figures by which it is decided whether a mesh, a variant or a candidate gets more work. */
typedef struct sw_estimate {
	double step_s;   /* no step of it is shorter */
	double model_s;  /* its seconds by the model, or a bound of them; INFINITY: unknown */
	bool by_model;   /* drop it only if it is slower by the model, too */
	bool deferrable; /* it may wait until there is a memory limit */
	bool too_large;  /* no plan of it fits in memory */
	bool laborious;  /* its problem is too large for the work that it may take */
	bool late;       /* the time is up */
} sw_estimate;
/* Return why an estimate gets no more work, given the best figures so far and how many times the
 * best a step may take; SW_UNTRIED_NOT: it does. prune.c: nothing else gives anything up. */
sw_untried sw_prune(const sw_tally *best, double tolerance, const sw_estimate *estimate);
/* Is a variant, no step of which is shorter than bound_s, given up? Its alternatives say why. */
bool sw_variant_prune(sw_search *s, sw_variant *variant, double bound_s);

/* Is a mesh costed even if the seconds of its ops exceed a step that is known? Where kernels fuse those
 * are an estimate, and parts of the cluster save launches and latencies. */
bool sw_mesh_is_costed_anyway(const sw_search *s, const sw_mesh *mesh);
/* Return the part of the model's kernels that a step takes at least, as far as plans were costed. */
double sw_tally_kernels_share(const sw_search *s, const sw_tally *tally);
/* Return the part of the model's seconds that a plan takes at least, likewise. */
double sw_tally_share(const sw_search *s, const sw_tally *tally);
/* Take the next meshes of the wave, to be searched side by side; return false if none is left. */
bool sw_queue_take(sw_search *s);
/* Prune a mesh whose model is not built yet, or not solved yet. */
void sw_queue_prune(const sw_search *s, const sw_tally *tally, sw_mesh_search *m);
/* Build models for the next batch beside the searches of this one. */
void sw_queue_prefetch(void *search);
/* Build the model of the next attempt of a mesh, if it is not pruned. Not thread-safe. */
void sw_queue_build(sw_search *s, size_t position);

/* ---- batch.c ---------------------------------------------------------------------------- */

/* Search the meshes that were taken, attempt by attempt, and enter the results. */
sw_status sw_batch_search(sw_search *s);

/* ---- mesh_search.c: one mesh ------------------------------------------------------------ */

/* The memory limit of the model, and how it was set. */
typedef enum sw_capacity {
	SW_CAPACITY_NONE,
	SW_CAPACITY_GUESSED, /* loosened by limits.memory_doubt */
	/* in proportion to the bytes that a plan was costed to take; no tighter than the memory */
	SW_CAPACITY_CALIBRATED,
	SW_CAPACITY_TIGHTENED /* excludes a plan that did not fit: its result is no bound */
} sw_capacity;

/* The result of one attempt. */
typedef struct sw_found {
	/* a plan was found; after judging: and it fits */
	bool feasible;
	bool applied;            /* the sketch has its decisions */
	bool regathers;          /* some of its readers re-gather for want of memory */
	sw_untried untried;      /* why it was not costed */
	double untried_s;        /* and its bound */
	double model_s, bound_s; /* by the model */
	double cached_s;         /* model_s before any reader re-gathers */
	double kernels_s;        /* no schedule takes less */
	bool lost;               /* it was costed not to fit, and no schedule of it wins */
	sw_program_cost cost, cached;
	int64_t costed_bytes; /* the smallest peak that was costed; INT64_MAX: none */
} sw_found;

typedef struct sw_mesh_search {
	size_t entry; /* of the variant */
	size_t move;  /* as in sw_candidate_plan */
	const sw_mesh *mesh;
	sw_plan *sketch; /* decisions of the last attempt; NULL outside of a batch */
	sw_budget budget;
	sw_capacity capacity;
	int attempt, first_attempt;
	bool pending; /* another attempt is to be made */
	bool timed_out;
	sw_status status;
	sw_error err;
	struct { /* the model, from listing its decisions to judging */
		sw_model model;
		bool listed, built;           /* its decisions are listed; it is complete */
		SW_VEC(int32_t *) begins;     /* assignments at which the solver begins */
		SW_VEC(sw_warm_start) starts; /* its solutions, for later meshes */
		sw_solution solution;
		double deadline_s; /* 0: none */
	} work;
	struct {                           /* over all attempts */
		double kernels_s, model_s; /* bounds of steps, and of the model's seconds */
		double best_s; /* the quickest that fits, by the model; INFINITY: none */
		int64_t least_bytes; /* of the peaks that were costed */
		int64_t input_bytes; /* no plan needs less; 0: unknown */
		double pairs; /* of candidates of its decisions (sw_model_pairs) */
	} bounds;
	sw_found found; /* of the last attempt */
	struct {        /* the attempt whose plan fits and is quickest */
		sw_found found;
		sw_snapshot snapshot;
	} best;
} sw_mesh_search;

bool sw_mesh_is_free(
	const sw_mesh *mesh); /* has it only free axes, of which no split is demanded? */
void sw_mesh_search_init(sw_mesh_search *m, const sw_search *s, size_t entry);
/* List the decisions of the first attempt's model, which gives a bound of the kernels. */
void sw_mesh_search_list(sw_mesh_search *m, sw_search_wave *wave, const sw_watch *watch);
/* Build the model of the next attempt. */
void sw_mesh_search_build(sw_mesh_search *m, sw_search *s, const sw_watch *watch);
/* Does the mesh get a part of the solver's work? */
bool sw_mesh_search_hurries(const sw_mesh_search *m, const sw_search *s);
/* Return the work of the solver in each attempt. */
double sw_mesh_search_work(const sw_mesh_search *m, const sw_search *s);
/* Let the solver begin where those of earlier meshes ended. */
void sw_mesh_search_warm_start(sw_mesh_search *m, const sw_search *s);
/* Give the mesh up before it is solved; bound_s: of its steps. */
void sw_mesh_search_drop(sw_mesh_search *m, sw_untried untried, double bound_s);
/* Give a solution up before it is costed. */
void sw_mesh_search_reject(sw_mesh_search *m, sw_untried untried, double bound_s);
/* Solve, write the decisions into the sketch, and cost it. These three are thread-safe for
 * different meshes, and while models of others are built. */
void sw_mesh_search_solve(sw_mesh_search *m, const sw_search *s);
void sw_mesh_search_apply(sw_mesh_search *m);
void sw_mesh_search_cost(sw_mesh_search *m, const sw_search *s);
/* Decide whether another attempt follows. */
void sw_mesh_search_judge(sw_mesh_search *m, sw_search *s);
/* Leave the best attempt in `found` and in the sketch, and give its solutions to the wave. */
void sw_mesh_search_end(sw_mesh_search *m, sw_search *s);
void sw_mesh_search_clear(sw_mesh_search *m);
/* Turn a bound of the model's seconds into a bound of steps. A step takes no less than its kernels
 * plus the collectives that nothing may run beside, and no less than all its collectives; so with
 * overlap weight w the model's sum is at most 1 + w steps. */
double sw_model_step_bound_s(const sw_analysis *analysis, double model_s);

/* ---- costing.c -------------------------------------------------------------------------- */

/* Cost the partitioned program of a plan, and count that in options->effort. Thread-safe. */
sw_status sw_cost_plan(const sw_plan_options *request, const sw_plan *plan, sw_program_cost *cost,
                       sw_error *err);

/* The plan to be made to fit in memory, with its limits. */
typedef struct sw_costing {
	const sw_plan_options *options;
	const sw_search_limits *limits;
	const sw_roles *roles;
	sw_path_store *paths;
	sw_plan *plan;
	int64_t memory_bytes;
	double deadline_s; /* of sw_now_s; 0: none */
	double doubt; /* leave plans alone that are counted to take more than this many times the
	                 memory */
	bool regathers; /* result: some readers re-gather for want of memory */
	double lost_s; /* a step that is known; plans that can't be quicker are not made to fit; 0: none */
	int64_t least_bytes; /* result: with all readers re-gathering, as counted or costed */
} sw_costing;
/* Does a plan that costs this exceed the memory, without a chance to be quicker if it is made to fit?
 * What makes it fit adds kernels and messages. */
bool sw_costing_is_lost(const sw_costing *c, const sw_program_cost *cost);
/* Cost a plan. Where it exceeds the memory, let readers re-gather, then let dots stream operands.
 * Give the cost of the plan as it then is, and `cached`, its cost with everything cached. */
sw_status sw_costing_fit(sw_costing *c, sw_program_cost *cached, sw_program_cost *cost,
                         sw_error *err);

/* ---- regather.c ------------------------------------------------------------------------- */

/* Let readers re-gather, in a plan that caches everything and was costed (*cost) to exceed the
 * memory: as few readers as make the plan fit by the arena of its partitioned program; all that
 * free anything if even that does not fit; none if that frees nothing. Cost at most
 * max_regather_costings + 2 programs; cost none and leave the plan alone where by live ranges it
 * would take more than `doubt` times the memory. */
sw_status sw_regather(sw_costing *c, sw_program_cost *cost, sw_error *err);

/* ---- stream.c --------------------------------------------------------------------------- */

/* Give every dot a stream if it then holds at least least_bytes less of its operands and an operand
 * is materialised as the stream takes it. Return the most bytes that one of them saves; 0: none
 * does. The layouts of results stay as they are. */
int64_t sw_plan_stream(sw_plan *plan, int64_t least_bytes);

/* ---- candidates.c ----------------------------------------------------------------------- */

/* Enter the result of a mesh search as a candidate, unless some plan is quicker even if all of this
 * one's communication is hidden. */
void sw_candidates_enter(sw_search *s, const sw_mesh_search *m);
/* Keep a plan that does not fit if it is the smallest of its variant. */
void sw_candidates_note_least(sw_search *s, const sw_mesh_search *m);
/* Simulate the candidates that may be quicker than the incumbent, the quickest by the model first,
 * and make the quickest the incumbent. */
sw_status sw_candidates_select(sw_search *s);
void sw_candidate_clear(sw_candidate_plan *c);
/* Return a bound of the step of every schedule. */
double sw_cost_step_bound_s(const sw_program_cost *cost);

/* ---- neighbours.c: which variants are next ---------------------------------------------- */

/* Open the next wave, of a neighbour of the variants searched so far; open none if there is nothing
 * more to try. */
sw_status sw_propose(sw_search *s);
/* Keep the incumbent as the plan near which spare meshes stay, if its mesh has less than three axes. */
void sw_search_keep_coarse(sw_search *s);
/* Is there such a plan of the incumbent's variant? */
bool sw_search_has_coarse(const sw_search *s);
/* Do the incumbent's kernels take longer than they need, by more than refine_gap of its step? */
bool sw_search_kernels_lack(const sw_search *s);

/* ---- reprice.c -------------------------------------------------------------------------- */

/* Open a wave of the meshes with the quickest plans, at the prices of what the incumbent waits for. */
sw_status sw_propose_repriced(sw_search *s);

/* ---- variations.c ----------------------------------------------------------------------- */

/* Play variations of the plans that are quickest, and take the quickest; opens no wave. */
sw_status sw_propose_variations(sw_search *s);

/* ---- neighbours_memory.c ---------------------------------------------------------------- */

/* May the search choose what is computed again, or the number of microbatches? */
bool sw_saving_is_open(const sw_search *s);
/* Open a wave of the next variant that recomputes activations or runs in more microbatches. */
sw_status sw_propose_saving(sw_search *s);
/* Begin, list the choices with predictions by the first variant's plan, if it has one; and forget
 * all, if it was begun. */
sw_status sw_saving_begin(sw_search *s);
void sw_saving_end(sw_search *s);
void sw_saving_grid_free(sw_saving_grid *grid);
/* The number of choices. They are in rows by policy and in columns by microbatches: later ones of
 * both take less memory. */
size_t sw_saving_choices(const sw_search *s, size_t *columns);
/* Give the rewrites, the even share and the bound of a choice: of its variant, or of its program,
 * which is written for that. SW_NO: the rewrite is impossible. */
sw_status sw_saving_bound(sw_search *s, size_t i, sw_rewrites *rewrites, int64_t *share_bytes,
                          double *kernels_s);

/* ---- held_state.c ----------------------------------------------------------------------- */

/* Count what a device holds of the state; means over the devices where they differ. O(ops). */
sw_held_state sw_held_state_of(const sw_plan *plan, const sw_roles *roles);

/* ---- hopeless.c ------------------------------------------------------------------------- */

/* Where the even share of every choice of rewrites is limits.far_too_large times the memory, set
 * hopeless_bytes to the least, and *number to that choice, as a variant. Costs one program, and two
 * of each policy where all are so large. */
sw_status sw_search_probe_memory(sw_search *s, size_t *number);

/* ---- neighbours_padding.c --------------------------------------------------------------- */

void sw_padding_note_need(sw_search *s, const sw_mesh_search *m);
sw_status sw_propose_padding(sw_search *s);
sw_status sw_propose_part_padding(sw_search *s);
/* Begin anew with a part of the cluster, where the plan to be padded leaves devices as copies. */
sw_status sw_propose_padding_of_part(sw_search *s);

/* Return seconds that no step of a plan is shorter than which fits in memory with a policy and
 * microbatches of the grid, whether it was searched or not; 0: not known. */
double sw_saving_bound_s(sw_search *s);

/* ---- certify.c -------------------------------------------------------------------------- */

/* Begin to bound all plans beside the search, once, where a plan that fits is known and no time limit,
 * owner or codec makes the bound another one. */
void sw_certify_begin(sw_search *s);
/* Wait until that is over. */
void sw_certify_end(sw_search *s);
/* Set the plan's lower bound, gap and scope; warn if the plan beats the bound. */
void sw_certify(sw_search *s, sw_plan *plan);

/* ---- answer.c --------------------------------------------------------------------------- */

/* Give the incumbent as a plan, with its alternatives and bounds; SW_NO: nothing fits in memory. */
sw_status sw_search_answer(sw_search *s, sw_plan **plan);
/* Say in plan->searched which plans this search looked at. */
void sw_search_say_searched(const sw_search *s, sw_plan *plan);
/* Add the alternatives of this search that the plan does not list yet. */
void sw_search_add_rows(const sw_search *s, sw_plan *plan);

/* ---- make_plan.c ------------------------------------------------------------------------ */

const sw_search_limits *sw_search_limits_of(const sw_plan_options *options);
/* Return when the time limit, from now on, is over; of sw_now_s. */
double sw_search_end_s(const sw_plan_options *options);

/* Begin a search, which may be left alone between its waves. The request's options must outlive it;
 * *s must stay where it is; the caller clears it in any case. end_s: sw_search_end_s. lender: NULL,
 * or a search for another strategy, else of the same request, which outlives this one. */
sw_status sw_search_begin(sw_search *s, const sw_plan_request *r, double end_s,
                          sw_search *lender, sw_error *err);
/* Search the open wave to its end, and open the next: there is none (s->wave NULL) if the search is
 * over. */
sw_status sw_search_advance(sw_search *s);
/* Give what was found, as sw_plan_make does. */
sw_status sw_search_finish(sw_search *s, sw_plan **plan);
void sw_search_clear(sw_search *s);

/* Add words to the plan's name, behind a comma. */
void sw_plan_add_to_name(sw_plan *plan, const char *words);
/* Add the plan to its own alternatives, first. */
void sw_plan_list_itself(sw_plan *plan);
/* Add a row to the alternatives, unless one has its name. */
void sw_plan_add_row(sw_plan *plan, const sw_alternative *row);

/* ---- cut_short.c ------------------------------------------------------------------------ */

/* sw_plan_make within a time limit, under the strategy AUTO. */
sw_status sw_search_in_time(const sw_plan_request *r, sw_plan **plan, sw_error *err);

/* ---- last_apart.c ----------------------------------------------------------------------- */

/* Compute the last microbatch of the plan apart, if that is asked for, fits, and is quicker; not
 * after end_s, of sw_now_s. */
void sw_search_try_apart(sw_plan *plan, const sw_plan_options *options, double end_s);

/* ---- unequal_shares.c ------------------------------------------------------------------- */

/* Search for the quickest plan with unequal shares of the batch; *plan is NULL if none is found. It
 * has no bound yet. The caller frees it. limit_s: plans that surely take longer are not looked
 * for. */
sw_status sw_search_shares(const sw_plan_request *r, double limit_s, sw_plan **plan, sw_error *err);

#endif
