/*
 * calibrate_kernel_run: kernels that calibration measures, as programs. Private to src/run.
 */
#ifndef SW_RUN_CALIBRATE_KERNEL_RUN_H
#define SW_RUN_CALIBRATE_KERNEL_RUN_H

#include "run/calibrate_parts.h"

#define MAX_SIZES 7
#define OPS_OF_SMALL 16 /* ops of a program with small tensors: they share the step's overhead */
#define MAX_OPERANDS 3

/* A kernel to measure: its op as HLO text, in which %T is the element type and %N the size. */
typedef struct kernel {
	sw_family family;
	const char *what;
	const char *operands[MAX_OPERANDS]; /* shapes */
	/* %0, %1, ... are the operands; %P is the result of the previous op, and operand 0 in the
	 * first op, for ops that may work in place, as in a step */
	const char *result, *op;
	int64_t sizes[MAX_SIZES]; /* terminated by 0 */
} kernel;

typedef struct kernel_run {
	sw_program *program;
	int ops;
	sw_placement *placement;
	sw_interpreter *interpreter;
	sw_tensor inputs[OPS_OF_SMALL * MAX_OPERANDS];
	uint32_t n_inputs;
} kernel_run;

/* Set the program up as the executor does: all tensors are in one arena, inputs in their places. */
sw_status kernel_run_init(const kernel *k, sw_type type, int64_t size, int blas_threads,
                          kernel_run *r, sw_error *err);
void kernel_run_clear(kernel_run *r);
/* Run the program once. context: a kernel_run. */
sw_status kernel_run_body(void *context, sw_error *err);

#endif
