/* marks: what the bounds of a program's ops depend on beside the ops. Private to src/bound. */
#ifndef SW_BOUND_MARKS_H
#define SW_BOUND_MARKS_H

#include "bound/division.h"
#include "fuse/fuse.h"

/* What is known of the ops of a step without a loop over microbatches, or of any step with one. */
typedef struct sw_bound_loop {
	int64_t microbatches;       /* at most */
	const int8_t *split;        /* per op: the factor that they split, -1: none (sw_phases) */
	const int32_t *runs;        /* per op: how often a step runs it at least */
	const sw_id *twins;         /* per op: sw_bound_twins */
	sw_fuse_least least;        /* what kernels move and launch */
} sw_bound_loop;

typedef struct sw_bound_marks {
	const bool *attention, *shares_kernel; /* per op: sw_fuse_mark_softmaxes */
	int32_t n_loops;
	sw_bound_loop loops[2]; /* a step without a loop; with one, if that is possible */
	/* Of both together: as with a loop, but ops run once. */
	sw_bound_loop any;
} sw_bound_marks;

/* A program with its marks. */
typedef struct sw_bound_marked {
	const sw_program *program;
	const sw_sidecar *sidecar;
	const sw_rule *const *rules;
	const sw_cluster *cluster;
	sw_bound_marks marks;
	double kernels_s; /* the bound of all kernels */
	/* The same, but each product counts as `marks.any` says; set where joint_bound.c bounds, too. */
	double with_any_products_s;
} sw_bound_marked;

/* Set the division to what is known of the op. */
static inline void sw_bound_loop_apply(const sw_bound_loop *loop, const sw_bound_marks *marks,
                                       sw_id id, division *d)
{
	d->microbatches = loop->microbatches;
	d->split = loop->split[id];
	d->runs = loop->runs[id];
	d->attention = marks->attention[id];
	d->shares_kernel = marks->shares_kernel[id];
}

/* ---- joint_bound.c: where messages are not bounded, these are of the kernels alone -------- */

/* Return what no plan's weight K + (1 - weight) C is below. */
double sw_bound_joint_weighted_s(const sw_bound_marked *m, double weight);
/* Return what no step is below, by the best of several weights. */
double sw_bound_joint_step_s(const sw_bound_marked *m, int threads);

#endif
