/* predict: the step that a calibrated cluster file predicts, beside the one that is measured. */
#ifndef SW_BENCH_INTERPRET_PREDICT_H
#define SW_BENCH_INTERPRET_PREDICT_H

#include "cost/cost.h"
#include "interpret/interpret.h"

/* Prints what was found of every fixture, by family of kernels (by_opcode: by opcode and shape,
 * those that are furthest off first), and the errors of all. */
sw_status predict_fixtures(const char *cluster_file, const char *const *names, int n_names,
                           bool by_opcode, sw_error *err);

#endif
