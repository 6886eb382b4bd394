/*
 * stage_store: what the trials of one search share: the canonical program and its loops over
 * microbatches, the slices of the cluster, and the plans of stages, so that what several trials
 * need is made once.
 */
#ifndef SW_PIPELINED_STAGE_STORE_H
#define SW_PIPELINED_STAGE_STORE_H

#include "pipelined/internal.h"

/* A plan of a stage's step on a slice. */
typedef struct sw_stored_plan {
	/* Of all that the plan depends on; and of that without the names of ops, which its file has,
	 * but not its seconds. */
	uint64_t key, nameless;
	sw_plan *plan;
	sw_stage_times times;
	double *op_s; /* [ops of the step's program]: of one microbatch; of the entry's ops, a step */
	sw_status status; /* what planning came to, and why it failed */
	sw_error err;
} sw_stored_plan;

/* Everything in the store lives as long as the store. */
sw_status sw_stage_store_new(const sw_pipelined_request *request, sw_stage_store **store,
                             sw_error *err);
void sw_stage_store_free(sw_stage_store *store);
const sw_program *sw_stage_store_canonical(const sw_stage_store *store);
/* The program with its rematerialisation (NULL: none), in a loop over microbatches. Errors are
 * those of the rewrites. */
sw_status sw_stage_store_looped(sw_stage_store *store, int32_t microbatches, const char *remat,
                                const sw_program **looped, sw_error *err);
/* Cut one of these programs: sw_stages_init, with what holds for all of its cuts found once. */
sw_status sw_stage_store_cut(sw_stage_store *store, const sw_program *looped,
                             const sw_stage_options *options, sw_stages *cut, sw_error *err);
/* The n devices from `first` on, or an earlier slice that is like them. */
sw_status sw_stage_store_slice(sw_stage_store *store, int64_t first, int64_t n,
                               const sw_cluster **slice, sw_error *err);
/* Seconds of each op of one of these programs, fused, on as many devices. */
const double *sw_stage_store_seconds(sw_stage_store *store, const sw_program *looped,
                                     int64_t n_devices);
const sw_sidecar *sw_stage_store_sidecar(const sw_stage_store *store); /* of the whole program */
/* Seconds that are left of the time limit; INFINITY: there is none. */
double sw_stage_store_left_s(const sw_stage_store *store);

/* A stage's step, and how it is planned. All pointers are borrowed. */
typedef struct sw_stage_planning {
	const sw_stage_step *step;
	const sw_sidecar *sidecar; /* of the step */
	const sw_stages *cut;
	const sw_cluster *slice;
	int64_t memory_bytes; /* per device */
	const char *mesh;     /* only meshes whose name begins so; NULL: all */
	bool with_fixed;      /* and those of fixed strategies */
	bool any_names;       /* the plan of a step whose ops have other names does as well */
} sw_stage_planning;

/* Plan a stage's step, or find its plan of the same steps, slice, memory and meshes. SW_NO: nothing
 * fits. */
sw_status sw_stage_store_plan(sw_stage_store *store, const sw_stage_planning *how,
                              const sw_stored_plan **planned, sw_error *err);
/* Plan n steps side by side, so that they are found then: plans and failures are the same. Once one of
 * them alone takes as long as known_s, no further ones are begun. */
void sw_stage_store_plan_ahead(sw_stage_store *store, const sw_stage_planning *how, size_t n,
                               double known_s);

#endif
