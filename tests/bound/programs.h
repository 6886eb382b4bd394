/* programs: small programs, written from random numbers, that are awkward to divide. */
#ifndef SW_TESTS_BOUND_PROGRAMS_H
#define SW_TESTS_BOUND_PROGRAMS_H

#include "base/base.h"

typedef struct written_kind {
	const char *name;
	void (*write)(sw_rng *rng, sw_text *text); /* HLO text */
} written_kind;
extern const written_kind WRITTEN_KINDS[];
extern const int32_t N_WRITTEN_KINDS;

/* Write `n` dots, one after the other, of [rows, size] x [size, size]; all weights are results. */
void write_chain(sw_text *text, int n, int rows, const int *sizes);
/* Write a training step of small kernels (normed.c). */
void write_normed(sw_rng *rng, sw_text *text);

#endif
