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
/* Check that no kernel of `kind` stores a value that it computes with and that is as large as the
 * largest one within it. */
void assert_stores_no_scores(const sw_kernels *kernels, sw_fused_kernel kind);
/* What a table of cases is about. */
typedef struct softmax_table {
	const char *folder;
	sw_fusion device;
	sw_fused_kernel forward, gradient;
	const softmax_case *cases;
	size_t n;
} softmax_table;
/* Check the numbers of kernels of both kinds, what they store, and the notes. */
void check_softmaxes(const softmax_table *table);
/* Check that each program with its kernels written as fusions verifies, and gives the same outputs
 * for random inputs, bit for bit. */
void check_fused_programs(const softmax_table *table, uint64_t seed);

#endif
