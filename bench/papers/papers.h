/*
 * The interface between the files of this bench, in the order in which they are used:
 *
 *   autoddl.c autodist.c axonn.c rhino.c users.c   the experiments: tables, with the papers'
 * findings run.c       run an experiment: its plans one after the other, then the comparison
 *   apart.c     work in a process of its own, which is ended when its time is over
 *   plan.c      make one plan: from a program's file to figures
 *   stages.c    make one plan with stages of a pipeline
 *   flow.c      find the values that depend on data, and those that the loss depends on
 *   traffic.c   count the bytes that a partitioned program sends, by use
 *   layers.c    list the contractions with weights
 *   grids.c     evaluate AxoNN's equations over all of its grids
 *   dense.c     cost Megatron's two dimensions for dense layers behind convolutions
 *   segments.c  find Rhino's critical nodes
 *   report.c    print the tables
 *   claims.c    hold what docs/papers.md says came out against what comes out
 *
 * Figures are JSON objects, from a child to its parent, and into the output of --json.
 */
#ifndef BENCH_PAPERS_H
#define BENCH_PAPERS_H

#include "partition/partition.h"
#include "search/search.h"

#define MAX_WORDS 16

typedef struct settings {
	/* groups of experiments, or words of their titles; none: all */
	const char *only[MAX_WORDS];
	int n_only;
	/* separated by blanks: of rows that plan, these alone are planned; NULL: the row's and ours
	 */
	const char *strategies;
	/* of the search for a plan; the rest of planning has as much again, and a minute */
	double time_limit_s;
	/* Plan what has stages of a pipeline too: strategies with pp=, and rows that are about
	 * stages. Takes several times as long. */
	bool stages;
	bool json, quiet;
	int part, parts; /* of the rows that have claims: which one is checked, from 1, of how many */
} settings;

typedef struct experiment experiment;
typedef json_t *run_fn(const settings *how, const experiment *e);

/* A row of the papers' tables. Texts are NULL where there is nothing to print. */
struct experiment {
	const char *group, *where; /* "autoddl", "figure 3" */
	run_fn *run;
	const char *program;           /* in bench/papers/programs, else in tests/programs */
	const char *cluster, *devices; /* of clusters/; devices NULL: all */
	const char *beside;   /* strategies that ours is compared with, separated by blanks */
	int32_t microbatches; /* number of microbatches of the step; 0: the program as it is */
	bool checkpointed;    /* the backward pass recomputes the activations of each block */
	/* The planner chooses the number of microbatches and the rematerialisation. What ours is
	 * compared with is the best of three: so chosen; nothing computed again; and this with
	 * `microbatches`, if they are given. */
	bool planner_chooses;
	/* Ours is the quicker one of the plan without stages and of that with, where settings ask
	 * for stages; the row is left out where they do not, if it is about stages alone. */
	bool stages, about_stages;
	bool ways; /* ours is the quicker one of `auto` and of a way per variable (`ways`) */
	/* collectives block, as in AutoDDL's model; else they run beside kernels */
	bool blocking;
	double memory_bytes; /* per device; 0: that of the cluster file */
	/* of grids: how many of the first ones by rank are planned, besides the first one with one
	 * bandwidth */
	int32_t planned;
	/* of grids: memory of a device for state; 0: the cluster file's memory */
	double fitting_bytes;
	int32_t layers; /* number of layers whose activations are counted; 0: not counted */
	/* FLOPs of a step, by the paper's formula, and peak of a device: utilization is printed; 0:
	 * it is not */

	double model_flops, peak_flops;
	/* reduction against the best compared strategy, by the paper; 0: not printed */
	double communication, step;
	const char *finding; /* other findings of the paper */
	const char
		*assumed; /* assumptions where the paper is silent, and differences of this row */
};

/* ---- the tables ------------------------------------------------------------------------- */

extern const experiment autoddl_experiments[], autodist_experiments[], axonn_experiments[],
	rhino_experiments[], users_experiments[];
extern const size_t n_autoddl, n_autodist, n_axonn, n_rhino, n_users;

/* ---- main.c: the experiments by name ---------------------------------------------------- */

const experiment *experiment_named(const char *where); /* NULL: there is none */
/* Is it among those of --only? */
bool is_asked_for(const settings *how, const char *where);

/* ---- claims.c --------------------------------------------------------------------------- */

/* Run the rows whose figures docs/papers.md prints, and compare. Return the exit code: 1 if one
 * differs by more than 2 %. slow: those that take minutes. */
int check_claims(const settings *how, bool slow);

/* ---- run.c: each returns a JSON object, with what its kind of table needs --------------- */

run_fn run_plans; /* our plan and those compared with it */
/* The same, with other strategies than the experiment's to compare with. */
json_t *run_beside(const settings *how, const experiment *e, const char *beside);
run_fn run_dense;    /* the same, and Megatron for the dense layers alone */
run_fn run_grids;    /* AxoNN's ranking of its grids, with one bandwidth and with placement */
run_fn run_segments; /* critical nodes */
/* Is it our plan, with stages or ways or without? */
bool is_ours(const json_t *plan);
json_t *plan_one(const settings *how, const experiment *e, const char *strategy);
run_fn run_picks; /* our plan, and fixed strategies planned by themselves */

/* ---- apart.c ---------------------------------------------------------------------------- */

/* Print JSON objects to `to`, one per line. */
typedef void figures_fn(const void *task, FILE *to);
/* Return the last object that the child printed, with "wall_s" and "cpu_s" added; with "status":
 * "time limit" if the child was ended and printed none. */
json_t *figures_apart(figures_fn *work, const void *task, double limit_s);

/* ---- plan.c ----------------------------------------------------------------------------- */

typedef struct plan_task {
	const settings *how;
	const experiment *experiment;
	const char *strategy;
	const char *remat;    /* NULL: the planner chooses */
	int32_t microbatches; /* 0: the planner chooses */
	bool brief; /* only the plan's figures: not its traffic by kind */
} plan_task;
/* A figures_fn: prints the plan's figures, then again with those of the simulator. "status" is
 * "ok", "does not fit", "not there yet" (the strategy), or "failed"; "message" says more. */
void plan_work(const void *task, FILE *to);

/* The inputs of an experiment: its program as it was exported, and the cluster. */
typedef struct subject {
	char path[512];
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
} subject;
sw_status subject_read(subject *s, const experiment *e, sw_error *err);
/* The same, with the program canonical. */
sw_status subject_read_plain(subject *s, const experiment *e, sw_error *err);
void subject_clear(subject *s);

/* ---- forced.c --------------------------------------------------------------------------- */

/* The strategy "forced", Rhino's of section 4.4: with no limit of memory, but the k largest tensors
 * of the state split among all devices, by the least k that doubling and halving finds. SW_NO: none
 * fits. */
sw_status forced_plan(const subject *s, const sw_plan_options *options, sw_plan **plan,
                      sw_error *err);

/* ---- stages.c --------------------------------------------------------------------------- */

/* Plan under a strategy with stages. Of fixed strategies the schedule is 1F1B. SW_NO: nothing
 * fits. */
sw_status stages_plan(const subject *s, const sw_plan_options *options, json_t **figures,
                      sw_error *err);

/* ---- flow.c ----------------------------------------------------------------------------- */

bool contracts(const sw_op *op); /* a dot or a convolution */
/* Return marks per value, in `arena`: does it depend on data, does the loss depend on it, does a
 * contraction? Dependences pass through loops and branches. */
enum { FLOW_FROM_DATA = 1, FLOW_TO_LOSS = 2, FLOW_TO_CONTRACTION = 4 };
const uint8_t *flow_marks(const sw_program *program, sw_arena *arena);

/* ---- traffic.c -------------------------------------------------------------------------- */

/* Payload bytes per rank and step, by use. */
typedef enum traffic_kind {
	TRAFFIC_WEIGHTS, /* gathered parameters: depend on state alone */
	/* depend on data, and the loss (or another result that is no state) depends on them */
	TRAFFIC_FORWARD,
	TRAFFIC_BACKWARD,  /* else, if a contraction needs them */
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
/* Find the layers of the forward pass of a canonical program, in its order. */
void find_layers(const sw_program *program, layer_list *layers);

/* ---- report.c -------------------------------------------------------------------------- */

void report_text(const experiment *e, const json_t *result);
/* Count the experiments that were planned, and those in which ours is slower than a fixed strategy,
 * or does not fit where one does. Return the latter. */
int count_slower(const json_t *results, bool print);

#endif
