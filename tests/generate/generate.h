/*
 * generate: random programs, well formed and tame.
 *
 * Writes a program of a few dozen ops, through the build API, and says how its inputs are to be
 * filled. Every opcode that the interpreter computes and the reader knows may occur, except those
 * that communicate: elementwise ops of all types, contractions, reductions, windows, sorts, gathers
 * and scatters, slices and pads, loops and conditionals, and the patterns that programs are made of
 * (softmax, attention, dropout by integer arithmetic, top-k, running sums).
 *
 * Tame: every value has a known interval and a known ERROR, the largest difference that another
 * order of summation (or another rounding of a function) may make. An error of 0 means that the
 * value is computed without rounding: it is an input, or made of inputs by moves, by choices, or by
 * arithmetic on small integers. Only exact values are compared, rounded to integers, sorted or
 * turned into indices, so no branch depends on a rounding. Magnitudes are scaled back where they
 * grow.
 */
#ifndef SW_TESTS_GENERATE_H
#define SW_TESTS_GENERATE_H

#include "frontend/frontend.h"
#include "interpret/interpret.h"

typedef struct generate_options {
	/* number of steps, about; one step may write several ops. 0: 3 to 14 at random */
	int32_t ops;
	int64_t max_elements; /* of a value; 0: 1500 */
	bool undefined; /* also use ops whose numbers XLA does not define: rng and its state */
	/* use only makers whose names contain this, and those they need; NULL: all */
	const char *only;
	/* Use only what XLA defines and computes in the same way on CPU: integers are not divided
	 * by 0, and their exponents are below 64; the init value of a reduction is neutral (XLA may
	 * apply it more than once, or not at all); a scatter of two arrays does not write one
	 * element twice; no maximum is selected among equal elements in a window of several
	 * dimensions (XLA takes the first in the layout's order); random bits are unsigned. */
	bool portable;
} generate_options;

typedef struct generated {
	sw_program *program;
	sw_sidecar sidecar; /* inputs[i].random fills input i */
	/* per output: the largest error of an element; 0: it must be exact. In the sidecar's
	 * arena */
	double *errors;
} generated;

/* The same seed and options give the same program. */
void generate_program(uint64_t seed, const generate_options *options, generated *g);
/* Fill the inputs as the sidecar says; their shapes belong to the program. */
void generated_fill(const generated *g, uint64_t seed, sw_tensor *inputs);
/* Run a program that has the same inputs, such as g->program, on one device; the outputs are
 * new. */
sw_status generated_run(const generated *g, const sw_program *program, uint64_t seed,
                        sw_tensor *outputs, sw_error *err);
void generated_clear(generated *g);
/* Does the interpreter compute this opcode, for at least some types? Not `terms`: what devices get of
 * it is their own, and no part of what one device gets (tests/search/test_coded.c). */
bool generate_can_compute(sw_opcode opcode);

#endif
