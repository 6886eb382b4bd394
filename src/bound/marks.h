/* marks: what the bounds of a program's ops depend on beside the ops. Private to src/bound. */
#ifndef SW_BOUND_MARKS_H
#define SW_BOUND_MARKS_H

#include "bound/bound.h"

typedef struct sw_bound_marks {
	const sw_id *twins;                    /* per op: sw_bound_twins */
	const bool *looped;                    /* per op: it may run in a loop over microbatches */
	const bool *attention, *shares_kernel; /* per op: sw_fuse_mark_softmaxes */
	int64_t batch;                         /* the most microbatches */
} sw_bound_marks;

/* A program with its marks. */
typedef struct sw_bound_marked {
	const sw_program *program;
	const sw_sidecar *sidecar;
	const sw_rule *const *rules;
	const sw_cluster *cluster;
	sw_bound_marks marks;
	double kernels_s; /* the bound of all kernels */
} sw_bound_marked;

/* ---- joint.c: where messages are not bounded, these are of the kernels alone ------------- */

/* Return what no plan's weight K + (1 - weight) C is below. */
double sw_bound_joint_weighted_s(const sw_bound_marked *m, double weight);
/* Return what no step is below, by the best of several weights. */
double sw_bound_joint_step_s(const sw_bound_marked *m, int threads);

#endif
