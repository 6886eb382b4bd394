/* What the files about leaves share: leaves.c the driver, leaf.c one of them, leaves_padding.c and
 * leaves_memory.c which there are. */
#ifndef SW_PLAN_LEAVES_H
#define SW_PLAN_LEAVES_H

#include "search/internal.h"

#define SW_ALL_MESHES UINT64_MAX
/* A plan that needs so many times the memory that there is won't fit by splitting more alone. */
#define SW_FAR_TOO_LARGE 2

typedef struct sw_leaf {
	sw_rewrites rewrites;
	/* the list's own where nothing is rewritten; a plan's once there is one */
	sw_program *program;
	sw_padded_list padded;
	uint64_t hash;       /* of a rewritten program */
	int64_t share_bytes; /* no plan of the program takes less per device */
	uint64_t meshes;     /* of the strategy's meshes, by number: those to be searched */
	sw_pad_map map;      /* whole padded programs */
	sw_plan *plan;       /* NULL: nothing fits in memory, or it was not searched; */
	sw_plan *least;      /* then, if anything was found at all: what needs least */
	/* of the quickest plan by the model if memory were no matter; step_time_s 0: unknown */
	sw_program_cost free;
	double free_s;  /* and that by the model */
	bool unlimited; /* is searched as if memory were no matter */
	uint64_t slow;  /* of the meshes: those that are far from the best, */
	/* and those of which more may be had within memory than an unlimited search found */
	uint64_t open;
	sw_tried *tried;            /* per mesh, of an unlimited search, */
	bool far;                   /* which found nothing that fits, by far */
	size_t won;                 /* the mesh of the plan */
	int64_t spare_bytes;        /* of the memory that is not searched within, but scheduled */
	double roofline_s, bound_s; /* below the steps of all its plans */
	double model_bound_s;       /* what none of its plans is below by the model, */
	/* and the best that was found; 0: nothing was searched, INFINITY: nothing fits */
	double model_best_s;
	int64_t left_out; /* options of axes at sites, for want of room */
} sw_leaf;

/* The classes of dimensions that a contender of a whole padded program needs padded. */
typedef struct sw_need {
	sw_pad_rule rule;
	size_t mesh;
	double model_s;
} sw_need;

typedef struct sw_leaves {
	sw_arena arena;
	sw_program *canonical; /* NULL once a plan has it */
	uint64_t hash;         /* of it */
	SW_VEC(sw_leaf) items;
	SW_VEC(sw_need) needs;
	const char *program_path;
	const sw_sidecar *sidecar;
	const sw_cluster *cluster;
	const sw_plan_options *options;
	sw_path_store *paths;
	double start_s;
	bool timed_out;  /* some leaf was not searched at all */
	char scope[192]; /* what the meshes leave out */
} sw_leaves;

/* ---- leaf.c ----------------------------------------------------------------------------- */

/* A leaf more; its meshes go to an earlier one of the same program if there is one. *number: which,
 * of the list. SW_NO, and no leaf, if a rewrite is not possible or changes nothing, or the time is
 * up. */
sw_status sw_leaves_add(sw_leaves *list, const sw_rewrites *rewrites, uint64_t meshes,
                        size_t *number, sw_error *err);
/* Searches it, within `time_limit_s` (0: none). SW_NO if nothing fits in memory: then the leaf has
 * no plan; and no plan that needs least, if that is known beforehand and another leaf has one that
 * fits. */
sw_status sw_leaf_search(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err);
/* The same of what is quickest if memory were no matter: it may fit. */
sw_status sw_leaf_search_free(sw_leaves *list, sw_leaf *leaf, double time_limit_s, sw_error *err);
/* Of the mesh of its plan, within so much less memory, which is left to the schedule: the quicker
 * plan is kept. What bounds the leaf's plans stays. */
sw_status sw_leaf_search_with_room(sw_leaves *list, sw_leaf *leaf, int64_t spare_bytes,
                                   double time_limit_s, sw_error *err);
/* No plan of its program takes less: the kernels' time on one device, shared by all. */
double sw_leaf_roofline_s(const sw_leaves *list, const sw_leaf *leaf);
/* Time that is left of the whole search; INFINITY: there is no limit. */
double sw_leaves_left_s(const sw_leaves *list);
void sw_leaf_clear(const sw_leaves *list, sw_leaf *leaf);
/* Can no plan of its program fit in memory? */
bool sw_leaf_is_too_large(const sw_leaves *list, const sw_leaf *leaf);
/* The fastest so far, NULL: none has a plan. */
sw_leaf *sw_leaves_best(const sw_leaves *list);
int64_t sw_leaves_memory(const sw_leaves *list);

/* ---- leaves_padding.c ------------------------------------------------------------------- */

/* Is told of each contender of a whole padded program. `mesh` numbers the strategy's meshes. */
void sw_leaves_note_need(sw_leaves *list, const sw_leaf *leaf, size_t mesh, const sw_plan *plan,
                         double model_s);
/* Tries the program, rewritten as `base` otherwise, with padding; base_s: what no plan without
 * padding takes less than. */
sw_status sw_leaves_pad(sw_leaves *list, sw_rewrites base, double base_s, sw_error *err);
/* Contenders that take longer than the best by more are not made again. */
#define SW_FAR_BEHIND 2.0

/* ---- leaves_memory.c -------------------------------------------------------------------- */

/* Tries computing activations again and microbatches, from the first leaf's quickest plan on, which
 * memory is too small for. */
sw_status sw_leaves_save_memory(sw_leaves *list, sw_error *err);

#endif
