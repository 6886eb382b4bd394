/*
 * What the files of this bench share, in the order in which they are used:
 *
 *   autoddl.c axonn.c rhino.c users.c   the experiments: tables, and what the paper found
 *   run.c       an experiment: its plans one after the other, then what they say
 *   apart.c     work in a process of its own, which ends when its time is over
 *   plan.c      one plan: from a program's file to figures
 *   flow.c      what depends on data, and what the loss depends on
 *   traffic.c   what a partitioned program sends, and for what
 *   layers.c    the contractions with weights
 *   grids.c     AxoNN's equations over all of its grids
 *   dense.c     Megatron's two dimensions for dense layers behind convolutions
 *   segments.c  Rhino's critical nodes
 *   report.c    the tables
 *
 * Figures travel as JSON objects, from a child to its parent, and into the output of --json.
 */
#ifndef BENCH_PAPERS_H
#define BENCH_PAPERS_H

#include "partition/partition.h"

#define WORDS_ROOM 16

typedef struct settings {
	/* groups of experiments, or words of their titles; none: all */
	const char *only[WORDS_ROOM];
	int n_only;
	/* of the search for a plan; whatever else planning does has as much again, and a minute */
	double time_limit_s;
	bool json, quiet;
} settings;

typedef struct experiment experiment;
typedef json_t *run_fn(const settings *how, const experiment *e);

/* A row of the papers' tables. Texts are NULL where there is nothing to say. */
struct experiment {
	const char *group, *where; /* "autoddl", "figure 3" */
	run_fn *run;
	const char *program;           /* in bench/papers/programs, else in tests/programs */
	const char *cluster, *devices; /* of clusters/; devices NULL: all */
	const char *beside;   /* strategies that ours is compared with, by spaces between */
	int32_t microbatches; /* the step is planned in so many turns; 0: as it is */
	bool checkpointed;    /* blocks are computed again in the backward pass */
	/* in how many turns, and what is computed again, is the planner's choice */
	bool decides;
	/* collectives are waited for where they stand, as AutoDDL's model has it; else they run
	 * beside kernels */
	bool waits;
	double memory_bytes; /* per device; 0: the cluster file's */
	/* of grids, how many of the first ones by place are planned; the first with one bandwidth
	 * is as well */
	int32_t planned;
	/* of grids: what a device has for state; 0: the cluster file's memory */
	double fitting_bytes;
	int32_t layers; /* for how many layers' activations are sent; 0: not asked */
	/* of a step, by the paper's formula, and of a device: utilization is printed; 0: not asked
	 */
	double model_flops, peak_flops;
	/* how much less than the best beside, by the paper; 0: not printed */
	double communication, step;
	const char *finding; /* what else the paper found */
	const char *assumed; /* what it leaves open, and how this row differs */
};

/* ---- the tables ------------------------------------------------------------------------- */

extern const experiment autoddl_experiments[], axonn_experiments[], rhino_experiments[],
	users_experiments[];
extern const size_t n_autoddl, n_axonn, n_rhino, n_users;

/* ---- run.c: each returns a JSON object, with what its kind of table needs --------------- */

run_fn run_plans; /* plans of ours and beside */
/* The same, beside other strategies than the experiment's. */
json_t *run_beside(const settings *how, const experiment *e, const char *beside);
run_fn run_dense;    /* the same, and Megatron for the dense layers alone */
run_fn run_grids;    /* AxoNN's ranking of its grids, with one bandwidth and by place */
run_fn run_segments; /* critical nodes */
json_t *plan_one(const settings *how, const experiment *e, const char *strategy);
run_fn run_picks; /* ours, and fixed strategies planned for themselves */

/* ---- apart.c ---------------------------------------------------------------------------- */

/* Prints JSON objects, one per line, on `to`. */
typedef void figures_fn(const void *task, FILE *to);
/* The last object that the child printed, with "wall_s" and "cpu_s"; with "status": "time limit" if
 * it had to be ended and printed none. */
json_t *figures_apart(figures_fn *work, const void *task, double limit_s);

/* ---- plan.c ----------------------------------------------------------------------------- */

typedef struct plan_task {
	const settings *how;
	const experiment *experiment;
	const char *strategy;
	bool brief; /* the plan's figures alone: not what it sends, and for what */
} plan_task;
/* A figures_fn: the plan's figures; then once more, with those of the simulator. "status" is "ok",
 * "does not fit", "not there yet" (the strategy), or "failed"; "message" says more. */
void plan_work(const void *task, FILE *to);

/* What was read of an experiment: its program as it is planned, and the cluster. */
typedef struct subject {
	char path[512];
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
} subject;
sw_status subject_read(subject *s, const experiment *e, sw_error *err);
/* The same with the program canonical, neither checkpointed nor in microbatches. */
sw_status subject_read_plain(subject *s, const experiment *e, sw_error *err);
void subject_clear(subject *s);

/* ---- flow.c ----------------------------------------------------------------------------- */

bool contracts(const sw_op *op); /* a dot or a convolution */
/* What a value depends on, and what depends on it, per value; in `arena`. Through loops and
 * branches as well. */
enum { FLOW_FROM_DATA = 1, FLOW_TO_LOSS = 2, FLOW_TO_CONTRACTION = 4 };
const uint8_t *flow_marks(const sw_program *program, sw_arena *arena);

/* ---- traffic.c -------------------------------------------------------------------------- */

/* Payload bytes per rank and step, by what is sent. */
typedef enum traffic_kind {
	TRAFFIC_WEIGHTS, /* depends on state alone: gathered parameters */
	/* depends on data, and the loss (or another result that is no state) depends on it */
	TRAFFIC_FORWARD,
	TRAFFIC_BACKWARD,  /* else, if a contraction needs it */
	TRAFFIC_GRADIENTS, /* else: gradients of parameters, new parameters */
	TRAFFIC_KINDS
} traffic_kind;
extern const char *const traffic_names[TRAFFIC_KINDS];
void traffic_count(const sw_cluster *cluster, const sw_program *local, double bytes[TRAFFIC_KINDS]);

/* ---- layers.c --------------------------------------------------------------------------- */

/* A contraction m x k by k x n with a weight, in bytes of its operands and result. */
typedef struct layer {
	double mk, kn, mn;
	bool convolution;
} layer;
typedef SW_VEC(layer) layer_list;
/* Of the forward pass of a canonical program, in its order. */
void find_layers(const sw_program *program, layer_list *layers);

/* ---- report.c --------------------------------------------------------------------------- */

void report_text(const experiment *e, const json_t *result);
/* How many experiments were planned, and in how many ours is slower than a fixed strategy, or does
 * not fit where one does. Returns the latter. */
int count_slower(const json_t *results, bool print);

#endif
