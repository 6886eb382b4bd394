/*
 * tune: AutoDist's optimiser (section 2.4, algorithm 1): which way suits each variable is found by
 * trials, and a simulator that learns from them says what to try.
 *
 * Takes a program, a cluster and a budget of trials. Rounds of these steps give the best ways that
 * were tried, the plan of them, and all trials:
 *
 *   sw_ways_seeds        the builders' ways are tried first
 *   sw_ways_draw         ways are drawn, or (sw_ways_change) made of the best tried
 *   sw_ways_features     what the simulator sees of them
 *   sw_ranker_score      the simulator's scores; those below its fidelity are rejected
 *   sw_tune              the highest and most diverse are tried: planned and simulated, or run
 *   sw_ranker_learn      the simulator learns the order of all trials
 *
 * WAYS are a way for each variable, or for each of its parts, with its codec, and how many
 * all-reduces are merged: what a file of ways says (docs/sync.md), so that the planner plans them.
 * All of it computes the same as one device does, unless codecs are allowed.
 */
#ifndef SW_TUNE_H
#define SW_TUNE_H

#include <stdatomic.h>

#include "search/search.h"
#include "tune/limits.h"

/* ---- ways_space.c: what there is to choose ---------------------------------------------- */

typedef struct sw_tuned_variable {
	const char *name;
	bool named;           /* by its sidecar, so that it may be divided into parts */
	uint32_t input, kind; /* the parameter's leaf */
	sw_shape shape;
	int64_t bytes, gradient_bytes; /* of the parameter with its moments, and alone */
	bool sparse;                   /* its gradient is scattered rows */
	int64_t row_bytes;             /* of those that a device scatters; 0: it is dense */
	/* of a device's part of what its gradient is made of, where that may be gathered (way: gather); 0:
	 * it may not */
	int64_t made_of_bytes;
	/* shares of the kernels' seconds of a step, in the order of the program: before the
	 * parameter is first read, before its gradient is there, and of the kernels that read it */
	double read_at, ready_at, work;
} sw_tuned_variable;

/* The variables of a program on a cluster. Variables whose names differ in numbers only are of one
 * KIND, as those of repeated layers are. */
typedef struct sw_ways_space {
	sw_arena arena;
	sw_program *program;       /* canonical; owned */
	const sw_sidecar *sidecar; /* borrowed, as is the cluster */
	const sw_cluster *cluster;
	/* of the program; of the cluster, and of all else that trials have in common: `sw_tune`
	 * adds memory, microbatches and rematerialisation */
	uint64_t program_hash, setting;
	int32_t n_codecs; /* that ways may have; without one they compute what one device does */
	const sw_codec *codecs;
	bool gathers; /* what gradients are made of may be gathered: nothing sums them up in a loop */
	uint32_t n, n_kinds;
	const sw_tuned_variable *variables;
	const char **kinds; /* globs of names, with characters escaped that mean something in one */
	int64_t gradient_bytes; /* of all variables */
	double kernels_s;       /* of a step, with the batch divided evenly */
	/* variables in the order in which they are read, and their gradients are there */
	const uint32_t *by_read, *by_ready;
	const struct move_prices *prices; /* of collectives over all devices (ways_features.c) */
} sw_ways_space;
/* The program is as read, and the codecs those that are allowed, which are borrowed. Clear only
 * after success. O(ops). */
sw_status sw_ways_space_init(sw_ways_space *space, const sw_program *program,
                             const sw_sidecar *sidecar, const sw_cluster *cluster, int32_t n_codecs,
                             const sw_codec *codecs, sw_error *err);
void sw_ways_space_clear(sw_ways_space *space);

/* ---- ways_text.c: ways as an object, and as a file of ways ------------------------------ */

typedef struct sw_variable_ways {
	int32_t axis, n; /* along the axis are n about equal parts; 1: it is whole */
	sw_way *parts;   /* [n]; an owner below 0: whoever has fewest bytes */
	sw_codec codec;
	uint32_t group; /* its gradient is all-reduced with those of this merge group; 0: in none */
	uint32_t algorithm, order; /* by which its gradient is summed, and when: as in sw_sending */
} sw_variable_ways;
typedef struct sw_ways {
	sw_merge merge;             /* 0: as is quickest */
	const sw_variable_ways *of; /* per variable of the space */
	uint64_t hash;              /* equal iff the ways are */
} sw_ways;
/* The sizes of the parts differ by 1 at most, the larger ones first. */
int64_t sw_part_size(int64_t size, int32_t parts, int32_t part);
/* May the part have this way: does some dimension of it divide by the devices? */
bool sw_ways_possible(const sw_ways_space *space, uint32_t variable, int32_t axis, int32_t parts,
                      int32_t part, sw_way_kind kind);
/* Return in how much ways differ: 0, the same; 1, in every variable. Large variables count more. */
double sw_ways_distance(const sw_ways_space *space, const sw_ways *a, const sw_ways *b);
/* May all parts of the variable be sent by that algorithm? */
bool sw_ways_has_algorithm(const sw_ways_space *space, const sw_variable_ways *ways,
                           sw_algorithm algorithm);
/* Take out of its group what is not all-reduced as it is, give a group one algorithm and order, and none to
 * what is not summed as it is; number the groups in the order of the variables, so that ways that say the
 * same are the same. `of`: per variable. O(variables). */
void sw_ways_settle(const sw_ways_space *space, sw_variable_ways *of);
/* Set the hash of ways whose other members are filled. */
void sw_ways_seal(const sw_ways_space *space, sw_ways *ways);
/* Write the entries of a file of ways that says the same, in few lines: a kind whose variables are
 * alike has one. The caller clears it. O(kinds * variables). */
void sw_ways_to_sync(const sw_ways_space *space, const sw_ways *ways, sw_sync *sync);
/* The reverse; the ways lie in the arena. SW_ERR_INPUT: an entry matches no variable, its parts are
 * not about equal, or a variable is open (way: any). */
sw_status sw_ways_of_sync(const sw_ways_space *space, const sw_sync *sync, sw_arena *arena,
                          sw_ways *ways, sw_error *err);

/* ---- ways_seeds.c ----------------------------------------------------------------------- */

/* The i-th builder by the name of its strategy, from 0; NULL: there are no more. */
const char *sw_ways_seed_name(size_t i);
/* Let that builder give the variables their ways, in the arena. */
sw_status sw_ways_seed(const sw_ways_space *space, size_t i, sw_arena *arena, sw_ways *ways,
                       sw_error *err);

/* ---- ways_sampler.c --------------------------------------------------------------------- */

/* Draw ways; change some of `ways`, or take a part of `other`'s. Both are guided by the paper's
 * constraints: small variables stay whole and large ones are divided, owners have about as many
 * bytes each, and merged all-reduces and merge groups too. The same state of `rng` gives the same
 * ways. */
sw_ways sw_ways_draw(const sw_ways_space *space, const sw_tune_limits *limits, sw_rng *rng,
                     sw_arena *arena);
sw_ways sw_ways_change(const sw_ways_space *space, const sw_tune_limits *limits,
                       const sw_ways *ways, const sw_ways *other, sw_rng *rng, sw_arena *arena);

/* ---- ways_features.c -------------------------------------------------------------------- */

/* What the simulator sees: logarithms of seconds of a communication model, and shares of bytes, so
 * that what is learned of one program and cluster says something about another. */
#define SW_WAYS_FEATURES 37
typedef struct sw_ways_features {
	double seconds; /* of a step, by the predefined model */
	double x[SW_WAYS_FEATURES];
} sw_ways_features;
const char *sw_ways_feature_name(size_t i);
sw_ways_features sw_ways_features_of(const sw_ways_space *space, const sw_ways *ways);

/* ---- ranker.c: the simulator that learns ------------------------------------------------- */

/* How ways are ranked: not at all; by the predefined model; by what was learned from trials, with
 * that model as its prior, by a linear function or by trees; by our analytic model, which plays the
 * plan; by a learned function that has our model as its prior and among its features. */
#define SW_RANKERS(X)                                                                              \
	X(NONE, "none")                                                                            \
	X(PREDEFINED, "predefined")                                                                \
	X(LINEAR, "linear")                                                                        \
	X(TREES, "trees")                                                                          \
	X(ANALYTIC, "analytic")                                                                    \
	X(BOTH, "both")
typedef enum sw_ranker_kind {
#define SW_RANKER_ENUM(name, word) SW_RANKER_##name,
	SW_RANKERS(SW_RANKER_ENUM)
#undef SW_RANKER_ENUM
		SW_RANKER_COUNT
} sw_ranker_kind;
const char *sw_ranker_word(sw_ranker_kind kind);
sw_status sw_ranker_parse(const char *word, sw_ranker_kind *kind, sw_error *err);
/* Does it need the seconds that our model predicts? */
bool sw_ranker_asks_model(sw_ranker_kind kind);

/* What is ranked. */
typedef struct sw_example {
	sw_ways_features features;
	double model_s; /* our model's seconds; 0: not known */
	/* of a trial: its seconds, INFINITY if no plan of it fits; those of one group compare */
	double seconds;
	uint64_t group;
} sw_example;
typedef struct sw_ranker sw_ranker;
/* Train on the order of the examples in each group, by a logistic loss of pairs (RankNet); `group`
 * is the one to rank, and others count less. Deterministic. O(n^2 + trees * n * features). The
 * caller frees it. */
sw_ranker *sw_ranker_learn(sw_ranker_kind kind, const sw_example *examples, size_t n,
                           uint64_t group, const sw_tune_limits *limits);
/* Return a score: of two, the higher one is expected to be faster; their difference is the logit.
 */
double sw_ranker_score(const sw_ranker *ranker, const sw_example *example);
void sw_ranker_free(sw_ranker *ranker);

/* Return the share of the pairs (a from `of`, b from `of` or `beside`) that the scores order as the
 * seconds do, and their number; pairs that differ by less than `apart` are none. */
typedef struct sw_ranking_accuracy {
	double right;
	int64_t pairs;
} sw_ranking_accuracy;
void sw_ranking_count(const double *scores, const double *seconds, size_t n, double apart,
                      sw_ranking_accuracy *sum);

/* ---- picks.c ---------------------------------------------------------------------------- */

/* Return which trial has the highest score below which (itself included) the scores order at least
 * `wanted` of the pairs as the seconds do; n: no trial has. scores, seconds: [n]. O(n^2 log n). */
size_t sw_fidelity_trial(const double *scores, const double *seconds, size_t n, double wanted,
                         double apart);

/* ---- trials_file.c ---------------------------------------------------------------------- */

/* A trial as the file has it. */
typedef struct sw_trial {
	uint64_t program, cluster; /* their hashes: sw_ways_space.setting */
	bool measured;             /* the plan was run; else it was simulated */
	sw_example example;
	const char *builder;  /* by whose ways it is; "": they were sampled */
	const sw_sync *sync;  /* the entries of its ways; NULL: of a trial that was made just now */
	sw_ways ways;         /* of trials of this program and cluster */
	bool old;             /* of an earlier run */
	sw_program_cost cost; /* of its plan, by our model, if it is none */
} sw_trial;
typedef struct sw_trials {
	sw_arena arena;
	SW_VEC(sw_trial) list;   /* that compare with each other: see sw_tune_group */
	SW_VEC(sw_trial) others; /* of other programs, clusters or kinds */
} sw_trials;
/* Which trials compare: those of one program and cluster, all simulated or all measured. */
uint64_t sw_tune_group(uint64_t program, uint64_t cluster, bool measured);
void sw_trials_init(sw_trials *trials);
void sw_trials_clear(sw_trials *trials);
/* Read a file of trials (docs/tune.md) into initialised ones; a file that is not there has none.
 * SW_ERR_INPUT, with file and line: it is no such file, it was written by another version, or ways
 * are none of the variables that the program has. */
sw_status sw_trials_read(const char *path, const sw_ways_space *space, bool measured,
                         sw_trials *trials, sw_error *err);
/* Write all of them. A file is read up to SW_MAX_YAML_BYTES: where they are more, the oldest of
 * others are left out, and then the slowest. */
sw_status sw_trials_write(const char *path, const sw_ways_space *space, const sw_trials *trials,
                          sw_error *err);

/* ---- tune.c: algorithm 1 ----------------------------------------------------------------- */

/* Run the plan, and return the seconds of a step. SW_NO: it can't run; the trial counts as slowest.
 */
typedef sw_status sw_measure_fn(void *context, const sw_plan *plan, double *seconds, sw_error *err);
typedef struct sw_tune_options {
	/* Of each trial, and the seed, the time and the codecs that are allowed; strategy, sync and
	 * codec are not read. */
	sw_plan_options plan;
	int64_t trials; /* budget */
	sw_ranker_kind ranker;
	sw_measure_fn *measure; /* NULL: trials are simulated */
	void *context;
	const char *file;             /* of trials, which earlier runs began; NULL: none */
	const atomic_bool *stop;      /* once it is set no trial begins; NULL: nothing is */
	bool no_seeds;                /* the builders are not tried: for benchmarks */
	const sw_tune_limits *limits; /* NULL: the default ones */
} sw_tune_options;
/* What came of it. */
typedef struct sw_tuned {
	sw_ways_space space;
	sw_trials trials;   /* in the order of the trials, those of the file first */
	size_t n_new, best; /* number of trials that were made; the best of all, in trials.list */
	sw_plan *plan;      /* of the best */
	int64_t rejected;   /* ways that the fidelity filter left out */
} sw_tuned;
/* SW_NO: no ways that were tried fit in memory. An interrupted run leaves the file with all rounds
 * that it finished. Clear only after success. */
sw_status sw_tune(const sw_program *program, const char *program_path, const sw_sidecar *sidecar,
                  const sw_cluster *cluster, const sw_tune_options *options, sw_tuned *tuned,
                  sw_error *err);
void sw_tuned_clear(sw_tuned *tuned);
/* What planning takes where nothing is said. */
#define SW_TUNE_TRIALS 64
#define SW_TUNE_RANKER SW_RANKER_LINEAR
/* Plan as the options say: by trials where the method is autodist, else as sw_plan_make. */
sw_status sw_plan_make_any(const sw_program *program, const char *program_path,
                           const sw_sidecar *sidecar, const sw_cluster *cluster,
                           const sw_plan_options *options, sw_plan **plan, sw_error *err);

/* ---- tune_report.c: how well trials were ranked ------------------------------------------- */

/* Figure 4: the share of pairs of trials whose order a simulator knows, that has learned from the
 * first trials up to a phase, in BUCKETS of seconds, the slowest first; by cross-validation, so
 * that it is asked about trials from which it did not learn. */
#define SW_TUNE_PHASES 5
#define SW_TUNE_BUCKETS 4
typedef struct sw_tune_accuracy {
	sw_ranking_accuracy of[SW_TUNE_PHASES][SW_TUNE_BUCKETS], all[SW_TUNE_PHASES];
} sw_tune_accuracy;
/* O(phases * folds) times that of learning. */
sw_tune_accuracy sw_tune_accuracy_of(const sw_trials *trials, sw_ranker_kind kind, uint64_t group,
                                     const sw_tune_limits *limits);

#endif
