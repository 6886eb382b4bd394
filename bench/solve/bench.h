/*
 * What the files of this bench share, in the order in which they are used:
 *
 *   known.c      what is publicly known of an instance
 *   ours.c       the solver on one instance
 *   peers.c      another solver on the same instance: CBC, as the library calls it, and toulbar2,
 * to which toulbar2.c translates planner.c    the problems that the planner makes report.c     the
 * tables
 *
 * An instance is only ever loaded in a child, so that this process stays small and a child's peak
 * is its own.
 */
#ifndef BENCH_SOLVE_H
#define BENCH_SOLVE_H

#include "solve/solve.h"

#include "common/child.h"

typedef struct settings {
	/* of every solver; 0: the contest's for its instances, DEFAULT_TIME_S for others */
	double time_s;
	double early_s; /* our answer after so long is shown as well; 0: no */
	int threads;    /* ours; 0: all */
	/* ours; 0: the default, which goes with a limit of time as the solver sees fit */
	int64_t work_limit;
	bool peers, reduced; /* the peers; and once more on what our exact reductions leave */
	bool planner;        /* the planner's problems of all programs of tests/programs */
	int64_t peer_bytes;  /* the peers may take no more memory than that */
	const char *cluster; /* of the planner's problems */
} settings;
#define DEFAULT_TIME_S 60

/* ---- known.c ---------------------------------------------------------------------------- */

/* A line of known.tsv; -1: unknown. */
typedef struct known {
	char name[64];
	double limit_s;
	int64_t contest, best, bound, xla;
} known;

typedef SW_VEC(known) known_list;

sw_status known_read(const char *path, known_list *list, sw_error *err);
/* By the name of a file, without its folder and endings: the line's name or the end of it ("A").
 * NULL: none. */
const known *known_find(const known_list *list, const char *stem);

/* ---- instances -------------------------------------------------------------------------- */

typedef struct instance {
	char name[64];
	const char *path;   /* the problem's; or the program's, of which the planner makes one */
	const known *known; /* NULL: nothing is known of it */
	sw_status (*load)(const struct instance *what, sw_problem *problem, sw_error *err);
	/* The planner's only. */
	const char *cluster; /* NULL: not the planner's */
	size_t mesh;
	int64_t capacity; /* INT64_MAX: none */
} instance;

/* What one solver made of one instance. */
typedef struct outcome {
	int64_t nodes, edges, nodes_left, edges_left; /* -1: not known */
	bool has_cost, has_bound, optimal, infeasible;
	bool wrong; /* the evaluator contradicts the solver */
	int64_t cost, bound;
	int64_t peak_usage, least_usage; /* of the assignment, and what any assignment needs */
	double read_s, seconds;
	int64_t peak_bytes;
	/* the process after reading, and the tables that the reductions leave; 0: not known */
	int64_t least_bytes;
	char note[96]; /* why there is no answer */
} outcome;

/* ---- ours.c, peers.c, planner.c --------------------------------------------------------- */

void solve_ours(const instance *what, const settings *how, double time_s, outcome *o);
double time_for(const instance *what, const settings *how);

typedef struct external_solver peer;
extern const peer *const all_peers[]; /* NULL ends it */
const char *peer_name(const peer *p);
/* The peer's answer on the problem itself or on what our exact reductions leave of it. */
void solve_peer(const peer *p, const instance *what, bool reduced, const settings *how,
                double time_s, outcome *o);

/* Calls `each` for the meshes that the planner searches freely for a program. */
typedef void planner_visit(void *context, const instance *what, int64_t device_bytes);
sw_status planner_each(const char *program, const char *cluster, planner_visit *each, void *context,
                       sw_error *err);

/* ---- report.c --------------------------------------------------------------------------- */

void report_heading(double early_s);
/* `early` may be NULL. */
void report_ours(const instance *what, double time_s, const outcome *o, const outcome *early);
/* A peer's line stands below ours. */
void report_peer(const char *name, const instance *what, const outcome *o);
/* The second table: our cost beside what is known. */
void report_known_init(sw_table *table);
void report_known(sw_table *table, const instance *what, const outcome *o);

#endif
