/*
 * batch_norm: batch normalisation written out. Private to src/rewrite.
 */
#ifndef SW_REWRITE_BATCH_NORM_H
#define SW_REWRITE_BATCH_NORM_H

#include "program/program.h"

/* Return whether the op is one of the three batch normalisations, on floats. */
bool sw_is_batch_norm(const sw_program *in, const sw_op *op);
/* Append to computation c of `out` ops that compute the results of `op` of `in` from these operands
 * (values of `out`). results: op->n_results values. */
void sw_write_batch_norm(sw_program *out, int32_t c, const sw_program *in, const sw_op *op,
                         const sw_id *operands, sw_id *results);

#endif
