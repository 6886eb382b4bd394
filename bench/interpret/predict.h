/* predict: compare the step that a calibrated cluster file predicts with the measured one. */
#ifndef SW_BENCH_INTERPRET_PREDICT_H
#define SW_BENCH_INTERPRET_PREDICT_H

#include "cost/cost.h"
#include "interpret/interpret.h"

/* Print the comparison for every fixture, by family of kernels (by_opcode: by opcode and shape, the
 * largest errors first), and the errors of all. */
sw_status predict_fixtures(const char *cluster_file, const char *const *names, int n_names,
                           bool by_opcode, sw_error *err);

#endif
