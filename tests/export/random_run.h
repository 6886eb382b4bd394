/* Running a program on random numbers, for tests that compare two of them. */
#ifndef TEST_EXPORT_RANDOM_RUN_H
#define TEST_EXPORT_RANDOM_RUN_H

#include "test.h"

#include "interpret/interpret.h"

/* Read a program in the canonical form, as it is if it is one of several devices. */
sw_program *read_canonical(const char *path);

/* Real inputs are drawn from [low, high), others are 0 or 1. */
typedef struct random_inputs {
	uint64_t seed;
	double low, high;
} random_inputs;

/* Return what the program gives, of as many outputs as its entry has; `what` stands in messages. */
sw_tensor *run_random(const sw_program *program, random_inputs inputs, const char *what);
/* Drop the outputs. */
void drop_outputs(const sw_program *program, sw_tensor *outputs);

#endif
