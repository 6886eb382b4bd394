/*
 * The interface between the files of this bench, in the order in which they are used:
 *
 *     cases.c    the paper's experiments as transfers, and the ways in which each is done
 *     model.c    their seconds by the model, on the paper's cluster and on the lab's
 *     measure.c  the lab: build it, carry out transfers there, remove it
 *     report.c   the tables, and the JSON object
 */
#ifndef BENCH_CROSSMESH_H
#define BENCH_CROSSMESH_H

#include "crossmesh/crossmesh.h"

/* ---- cases.c ---------------------------------------------------------------------------- */

/* How a transfer is done. */
typedef struct transfer_way {
	const char *key, *label; /* in the JSON object: KEY_s; in tables */
	sw_crossmesh_strategy strategy;
	sw_crossmesh_order order;
	int32_t pieces;
} transfer_way;
#define MAX_WAYS 7
#define WAY_OURS 0 /* every table begins with it */

typedef struct transfer_case {
	const char *name, *from, *to;
} transfer_case;

/* One of the paper's tables or figures. */
typedef struct experiment {
	const char *key, *title;
	/* the tensor on the paper's cluster, and the one in the lab, a 128th of it or so */
	const char *shape, *lab_shape;
	int32_t n_ways, n_cases;
	const transfer_way *ways[MAX_WAYS];
	const transfer_case *cases;
} experiment;
extern const experiment experiments[];
extern const size_t n_experiments;

/* Seconds of one case by each way. */
typedef struct case_times {
	double bound_s, ways_s[MAX_WAYS];
} case_times;
typedef struct case_row {
	const experiment *of;
	const transfer_case *which;
	case_times paper; /* modelled, on the paper's cluster */
	case_times lab;   /* modelled, on the lab's */
	bool measured;
	case_times
		lab_measured; /* bound_s is that of the model; 0: this way could not be measured */
} case_row;
typedef struct case_rows { /* a vector */
	case_row *data;
	size_t len, cap;
} case_rows;

/* ---- model.c ---------------------------------------------------------------------------- */

/* SW_ERR_INPUT: a case does not fit the cluster. */
sw_status model_case(const sw_cluster *cluster, const experiment *e, const transfer_case *c,
                     const char *shape, case_times *times, sw_error *err);

/* ---- measure.c -------------------------------------------------------------------------- */

/* Build the lab. Return false, with a reason on standard error, where that can't be done. */
bool lab_build(void);
void lab_remove(void);
/* Carry out a case in each way, `repeat` times in each of `turns` turns, of which the quicker
 * counts. */
void lab_measure(case_row *row, int64_t repeat, int64_t turns, bool quiet);

/* ---- report.c --------------------------------------------------------------------------- */

void report_text(const case_rows *rows);
void report_json(const case_rows *rows, double load);

#define PAPER_CLUSTER SW_SOURCE_DIR "/clusters/aws-p3-8xlarge.yaml"
#define PAPER_DEVICES "5x4"
#define LAB_CLUSTER SW_SOURCE_DIR "/clusters/lab-5x4.yaml"

#endif
