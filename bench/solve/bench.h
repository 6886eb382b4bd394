/*
 * The interface of this bench's files, in the order in which they are used:
 *
 *   published.c  the published results of an instance
 *   ours.c       the solver on one instance
 *   peers.c      another solver on the same instance: CBC, as the library calls it, and toulbar2,
 * to which toulbar2.c translates planner.c    the problems that the planner makes report.c     the
 * tables
 *
 * Instances are loaded in child processes only, so that this process stays small and a child's peak
 * memory is its own.
 */
#ifndef BENCH_SOLVE_H
#define BENCH_SOLVE_H

#include "solve/solve.h"

#include "common/child.h"

typedef struct settings {
	/* seconds per solver; 0: the contest's limit for its instances, DEFAULT_TIME_S for
	 * others */
	double time_s;
	double early_s; /* seconds of an additional run of ours with a shorter limit; 0: none */
	int threads;    /* of ours; 0: all cores */
	/* of ours; 0: the default, or none if there is a time limit */
	int64_t work_limit;
	/* run the peers; and once more on the problem after our exact reductions */
	bool peers, reduced;
	bool planner;        /* solve the planner's problems of all programs of tests/programs */
	int64_t peer_bytes;  /* memory limit of each peer */
	const char *cluster; /* cluster file for the planner's problems */
} settings;
#define DEFAULT_TIME_S 60

/* ---- published.c ------------------------------------------------------------------------ */

/* A line of published.tsv; -1: not published. */
typedef struct published_result {
	char name[64];
	double limit_s;
	int64_t contest, best, bound, xla;
} published_result;

typedef SW_VEC(published_result) published_list;

sw_status published_read(const char *path, published_list *list, sw_error *err);
/* Find the line of a file by its name without folder and endings: the line's name or the end of it
 * ("A"). NULL: there is none. */
const published_result *published_find(const published_list *list, const char *stem);

/* ---- instances -------------------------------------------------------------------------- */

typedef struct instance {
	char name[64];
	const char *path; /* of the problem, or of the program of which the planner makes one */
	const published_result *published; /* NULL: nothing is published */
	sw_status (*load)(const struct instance *what, sw_problem *problem, sw_error *err);
	/* For the planner's problems only: */
	const char *cluster; /* NULL: it is not the planner's */
	size_t mesh;
	int64_t capacity; /* INT64_MAX: none */
} instance;

/* The result of one solver on one instance. */
typedef struct outcome {
	int64_t nodes, edges, nodes_left, edges_left; /* -1: not known */
	bool has_cost, has_bound, optimal, infeasible;
	bool wrong; /* the evaluator contradicts the solver */
	int64_t cost, bound;
	int64_t peak_usage, least_usage; /* of the assignment, and the least of any assignment */
	double read_s, seconds;
	int64_t peak_bytes;
	/* memory of the process after reading plus the tables that the reductions leave; 0: not
	 * known */
	int64_t least_bytes;
	char note[96]; /* the reason why there is no answer */
} outcome;

/* ---- ours.c, peers.c, planner.c --------------------------------------------------------- */

void solve_ours(const instance *what, const settings *how, double time_s, outcome *o);
double time_for(const instance *what, const settings *how);

typedef struct external_solver peer;
extern const peer *const all_peers[]; /* NULL ends it */
const char *peer_name(const peer *p);
/* Solve the problem, or what our exact reductions leave of it, by a peer. */
void solve_peer(const peer *p, const instance *what, bool reduced, const settings *how,
                double time_s, outcome *o);

/* Call `each` for the meshes that the planner searches freely for a program. */
typedef void planner_visit(void *context, const instance *what, int64_t device_bytes);
sw_status planner_each(const char *program, const char *cluster, planner_visit *each, void *context,
                       sw_error *err);

/* ---- report.c --------------------------------------------------------------------------- */

void report_heading(double early_s);
/* `early` may be NULL. */
void report_ours(const instance *what, double time_s, const outcome *o, const outcome *early);
/* The line of a peer is printed below ours. */
void report_peer(const char *name, const instance *what, const outcome *o);
/* The second table: our cost beside the published ones. */
void report_published_init(sw_table *table);
void report_published(sw_table *table, const instance *what, const outcome *o);

#endif
