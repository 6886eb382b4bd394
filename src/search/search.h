/*
 * search: which variants of the program, and which meshes, are tried; what is taken.
 */
#ifndef SW_SEARCH_SEARCH_H
#define SW_SEARCH_SEARCH_H

#include "model/model.h"
#include "search/limits.h"
#include "simulate/simulate.h"

/* How much was done, for benchmarks and tests: partitioned programs that were costed, and their
 * ops. */
typedef struct sw_search_effort {
	_Atomic int64_t programs, ops;
} sw_search_effort;

#define SW_TIME_LIMIT_WARNING                                                                      \
	"the time limit cut the search short: another run may plan differently"

typedef struct sw_plan_options {
	sw_plan_strategy strategy;
	int64_t memory_bytes; /* per device; 0: the cluster file's */
	/* 0: none. Of the whole search; what it cut short is a warning of the plan */
	double time_limit_s;
	bool untied; /* repeated layers of a large program may differ */
	/* what solves the problems; none but `exact` is for use: they are there to be compared */
	sw_method method;
	uint64_t seed; /* of methods that draw by chance */
	/* a rematerialisation policy, "none"; NULL: whichever is fastest */
	const char *remat;
	int32_t microbatches; /* 1: the batch is one; 0: whichever number is fastest */
	bool quiet;
	int threads;                    /* 0: all processors. The plan is the same for any number */
	const sw_pins *pins;            /* NULL: none. What can't be pinned so is SW_ERR_INPUT */
	bool no_overlap;                /* collectives are waited for where they stand */
	sw_search_effort *effort;       /* NULL; or is added to */
	const sw_search_limits *limits; /* NULL: the default ones; so are these two */
	const sw_model_limits *model_limits;
	const sw_schedule_limits *schedule_limits; /* of the schedules that are played */
	/* NULL; or gets, where nothing fits in memory, the plan that needs least */
	struct sw_plan **least;
} sw_plan_options;

/* `program` is as read; the plan makes its own canonical copy. `sidecar` gives roles. SW_NO when
 * nothing fits in memory (the message says by how much, and where). */
sw_status sw_plan_make(const sw_program *program, const char *program_path,
                       const sw_sidecar *sidecar, const sw_cluster *cluster,
                       const sw_plan_options *options, sw_plan **plan, sw_error *err);
/* Lets every reader re-gather where that frees memory between it and the one before. */
void sw_plan_regather_all(sw_plan *plan);

#endif
