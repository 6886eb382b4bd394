/* What the tests of attention and of cross-entropy share. */
#ifndef TEST_FUSE_SOFTMAXES_H
#define TEST_FUSE_SOFTMAXES_H

#include "test.h"

#include "fuse/fuse.h"

typedef struct softmax_case {
	const char *program; /* in tests/fuse/programs or tests/programs, without .hlo.gz */
	int forward, gradient;
	const char *note; /* part of the only note; NULL: there is none */
} softmax_case;

/* Read a fixture, in the canonical form if it has one. */
sw_program *read_fixture(const char *folder, const char *name);
sw_program *read_hlo(const char *text);
int count_kernels(const sw_kernels *kernels, sw_fused_kernel kind);
/* Check that a kernel of `kind` stores nothing as large as the largest value within it, and that
 * there is one of that size that it doesn't store. */
void assert_stores_no_scores(const sw_kernels *kernels, sw_fused_kernel kind);
/* Check the numbers of kernels of both kinds, what they store, and the notes. */
void check_softmaxes(const char *folder, const softmax_case *c, sw_fused_kernel forward,
                     sw_fused_kernel gradient);

#endif
