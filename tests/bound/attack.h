/*
 * attack: a plan that tries to be quicker than the bound says that any plan can be.
 *
 * An attack partitions a plan and compares with src/bound, each time in seconds:
 *   each op        the local ops that were written for it, without moves of its operands, where
 *                  each is a kernel of its own
 *   the ends       of kernels: that no two of them are in one, and none is in one with a product
 *   the kernels    of the whole step, as the device fuses them, against the bound of the program
 *   the step       as it is played, against the same bound
 * attack_strategies tries ops alone, which takes less time and gets nearer.
 * Nothing is clamped: whatever lies below the bound is printed with its seed, and counted.
 */
#ifndef SW_TESTS_BOUND_ATTACK_H
#define SW_TESTS_BOUND_ATTACK_H

#include "test.h"

#include "bound/bound.h"
#include "simulate/simulate.h"

#define N_WEIGHTS 4
extern const double WEIGHTS[N_WEIGHTS]; /* of kernels */

/* The bounds of a program on a cluster. */
typedef struct bounds {
	const sw_program *program; /* borrowed */
	sw_arena arena;
	const double *op_s;  /* per op: of one execution */
	const double *times; /* per op: executions per step, if each branch ran */
	sw_fuse_least least; /* sw_bound_least */
	double kernels_s, step_s;
	double weighted_s[N_WEIGHTS]; /* of kernels and collectives, as WEIGHTS say */
} bounds;
/* `rules`: of a plan of the program. */
void bounds_init(bounds *b, const sw_program *program, const sw_sidecar *sidecar,
                 const sw_rule *const *rules, const sw_cluster *cluster);
void bounds_clear(bounds *b);

/* The attack that came closest to a bound. */
typedef struct nearest {
	double ratio; /* to the bound; 0: none yet */
	char what[320];
} nearest;

typedef struct attacker {
	double factor; /* by which bounds are multiplied: 1, or more to see that attacks succeed */
	bool silent;   /* print no violations */
	int64_t strategies, attacks, played, violations, refused;
	nearest op, kernels, fused, step, weighted; /* kernels: of one op each; fused: of several */
	/* what is being attacked, for messages */
	uint64_t seed;
	const char *program, *cluster;
	char plan[SW_NAME_BYTES];
} attacker;

/* The seconds of a plan. */
typedef struct outcome {
	bool ok; /* it could be partitioned and, if asked for, played */
	double kernels_s, step_s;
	double sum_s; /* of kernels and collectives, weighted by the second of WEIGHTS */
} outcome;
/* `own`: the bounds of the plan's program; `asked`: those of the program before all rewrites, which
 * may be the same. */
outcome attack(attacker *a, const sw_plan *plan, const bounds *own, const bounds *asked,
               bool played);
/* Look for the cheapest strategy of each op by itself, by so many draws, and attack the bounds with
 * these and with their sum. No plan that moves anything gets so low; `plan` gives the rules. Nothing
 * is done on devices that fuse. */
void attack_strategies(attacker *a, const sw_plan *plan, const bounds *own, const bounds *asked,
                       int32_t draws);
/* Print how many attacks there were, and how near they came. */
void attacker_print(const attacker *a);

#endif
