/*
 * search: choose the program variants and the meshes to plan, and the plan to return.
 *
 * This stage takes a program, the roles of its inputs, a cluster and a request. It gives the plan
 * with the shortest simulated step of those that fit in memory, with bounds and alternatives.
 */
#ifndef SW_SEARCH_SEARCH_H
#define SW_SEARCH_SEARCH_H

#include "model/model.h"
#include "search/limits.h"
#include "simulate/simulate.h"

/* The work of a search, for benchmarks and tests: the partitioned programs that were costed, and
 * their ops before partitioning. */
typedef struct sw_search_effort {
	_Atomic int64_t programs, ops;
} sw_search_effort;

#define SW_TIME_LIMIT_WARNING                                                                      \
	"the time limit cut the search short: another run may plan differently"

#define SW_MAX_ALLOWED_CODECS 8

/* A plan of another kind, such as one with stages, with which that of a search competes. */
typedef struct sw_plan_rival {
	/* Called as soon as a plan is known that fits, with its step and its rematerialisation (NULL:
	 * none), and mostly once. Return the rival's step; INFINITY: there is none. From then on the
	 * search leaves out what can't be quicker than that: its own plan may be slower than without
	 * a rival, but only where the rival is quicker than both. */
	double (*step_s)(void *context, double step_s, const char *remat);
	void *context;
} sw_plan_rival;

/* A request. All pointers are borrowed. */
#define SW_MAX_LISTED_SHARES 64
typedef enum sw_sharing {
	SW_SHARES_DEFAULT, /* AUTO under the strategy AUTO, else EQUAL */
	SW_SHARES_EQUAL,
	SW_SHARES_AUTO, /* unequal ones where devices are of several kinds and it is quicker */
	SW_SHARES_LISTED
} sw_sharing;

typedef enum sw_apart {
	SW_APART_DEFAULT, /* AUTO under the strategy AUTO, else NEVER */
	SW_APART_NEVER,
	SW_APART_AUTO
} sw_apart;

typedef struct sw_plan_options {
	/* The meshes to search, and the splits that are demanded on them. */
	sw_plan_strategy strategy;
	/* Bytes of each device; 0: those of the cluster file. */
	int64_t memory_bytes;
	/* Time of the whole search; 0: no limit. A plan whose search was cut short has the warning
	 * SW_TIME_LIMIT_WARNING. */
	double time_limit_s;
	/* Search only meshes whose name begins so, and no neighbours of other meshes; NULL: all. */
	const char *mesh;
	/* Beside these meshes search fixed strategies, but for grids of AxoNN and SUMMA, in whose plans
	 * the search of a free mesh then begins. */
	bool with_fixed;
	/* Let the repeated layers of a large program differ; else they are planned alike. */
	bool untied;
	/* The solver. Use `exact`; the other methods exist to be compared with it. */
	sw_method method;
	/* Plan by trials of ways of synchronising variables, as many as `trials` says (0: the default):
	 * tune/tune.h does it, and sw_plan_make does not read these. */
	bool autodist;
	int64_t trials;
	/* Seed of the solver methods that draw random numbers, and of trials. */
	uint64_t seed;
	/* Name of a rematerialisation policy, or "none"; NULL: the search takes the fastest one. */
	const char *remat;
	/* Number of microbatches; 1: the batch is whole; 0: the search takes the fastest number. */
	int32_t microbatches;
	/* Whether parts of the cluster may have unequal shares of the batch (plan/shares.c), or
	 * which. */
	sw_sharing sharing;
	int32_t n_shares;
	int64_t shares[SW_MAX_LISTED_SHARES];
	/* Whether the last microbatch may be computed apart (plan->last_apart), where that is
	 * quicker. */
	sw_apart last_apart;
	/* Show no progress on the terminal. */
	bool quiet;
	/* Threads of the search; 0: one per processor. The plan does not depend on the number. */
	int threads;
	/* Decisions of the user; NULL: none. An impossible pin is SW_ERR_INPUT. */
	const sw_pins *pins;
	/* How variables are synchronised; NULL: nothing is said. Only under a strategy with ways
	 * (sw_plan_strategy.owners); SW_ERR_INPUT under another one. */
	const sw_sync *sync;
	/* How gradients are sent, where `sync` says nothing of it. A lossy codec changes what is
	 * computed. */
	sw_codec codec;
	/* By name, the sw_pass_order in which an op runs (plan/plan.h), if passes are programs of their own: a
	 * later one converts again what it needs in another layout than that between passes. NULL: all
	 * ops run in one. Names that are not there are of the whole program. */
	const sw_map *passes;
	/* Under AUTO: take a plan whose variables may be so many steps old if its steps follow each
	 * other more quickly in the long run. That changes what is computed, and is done only where it
	 * is allowed. */
	bool allows_stale;
	int64_t allowed_stale;
	/* Of autodist: codecs that it may choose, likewise. */
	int32_t n_allowed_codecs;
	sw_codec allowed_codecs[SW_MAX_ALLOWED_CODECS];
	/* Plan for collectives that block: no kernel runs beside them. */
	bool no_overlap;
	/* The search adds its work to this; NULL: it does not count. */
	sw_search_effort *effort;
	/* Constants of the stages; NULL: the default ones. */
	struct {
		const sw_search_limits *search;
		const sw_model_limits *model;
		const sw_schedule_limits *schedule; /* of schedules that are simulated */
	} limits;
	/* Where nothing fits in memory, receives the smallest plan that was found, which the caller
	 * frees; NULL: it is dropped. */
	struct sw_plan **least;
	/* Where nothing fits in memory, receives the bytes per device that the program takes at
	 * least, however it is split; NULL: they are only said. */
	int64_t *least_share;
	/* Where it is not NULL the plan may come without the bound of all plans, which can take as
	 * long as the search: it is what sw_plan_certify needs to add it. -1: the plan has it. */
	double *uncertified;
	/* NULL: there is none. Not asked within a time limit. */
	const sw_plan_rival *rival;
	/* Paths of the cluster that earlier searches found, to which this one adds: nothing else may use
	 * them meanwhile. NULL: it begins with none. The plan does not depend on them. */
	sw_path_store *paths;
	/* End the search once some plan fits: whether one does is all that is asked. */
	bool any;
} sw_plan_options;

/* Set an option by its name, with or without --, and its value as the command has them: strategy,
 * method, effort, microbatches, shares, last-apart, remat, memory, time-limit, seed, threads,
 * codec, allow, trials, and untied (yes or no). The options borrow the value. SW_ERR_INPUT: there
 * is no such option, or the value is none. */
sw_status sw_plan_options_set(sw_plan_options *options, const char *name, const char *value,
                              sw_error *err);
/* Let a file of ways (docs/sync.md) say how variables are synchronised: alone, or under the strategy that
 * was asked for in these words (NULL: in none) and set. Reads it into `sync`, which the options borrow
 * and the caller clears. path NULL: there is no file. Messages have the dashes before names of options.
 * SW_ERR_INPUT: the strategy has no ways. */
sw_status sw_plan_options_sync(sw_plan_options *options, const char *dashes, const char *strategy,
                               const char *path, sw_sync *sync, sw_error *err);
/* Return the names one after the other, from 0; NULL: there are no more. */
const char *sw_plan_option_name(size_t i);

/* Search for the quickest plan. `program` is as read; the plan makes a canonical copy of its own.
 * `sidecar` gives the roles of the inputs. SW_NO: nothing fits in memory, and the message says by
 * how much. The caller frees the plan. */
sw_status sw_plan_make(const sw_program *program, const char *program_path,
                       const sw_sidecar *sidecar, const sw_cluster *cluster,
                       const sw_plan_options *options, sw_plan **plan, sw_error *err);
/* Add the bound of all plans to a plan that came without it. `options` are those of its search, and
 * `sidecar` is that of its program. */
void sw_plan_certify(sw_plan *plan, const sw_sidecar *sidecar, const sw_plan_options *options);
/* Let every reader re-gather that frees memory between it and the reader before. */
void sw_plan_regather_all(sw_plan *plan);

#endif
