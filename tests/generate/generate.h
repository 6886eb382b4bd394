/*
 * generate: random programs, well formed and tame.
 *
 * Writes a program of a few dozen ops, through the build API, and says how its inputs are to be
 * filled. Every opcode that the interpreter computes and the reader knows may occur, except what
 * communicates: elementwise ops of all types, contractions, reductions, windows, sorts, gathers and
 * scatters, slices and pads, loops and conditionals, and patterns that programs are made of
 * (softmax, attention, dropout by integer arithmetic, top-k, running sums).
 *
 * Tame: for every value an interval and an ERROR are known, of the size that another order of
 * summation (or another rounding of a function) may have. An error of 0 says that the value was
 * computed without rounding: it is an input, or made of inputs by moves, by choices, or by
 * arithmetic on small integers. Only such values are compared, rounded to integers, sorted or
 * turned into indices: no branch hangs on a rounding. Magnitudes are brought back where they grow.
 */
#ifndef SW_TESTS_GENERATE_H
#define SW_TESTS_GENERATE_H

#include "frontend/frontend.h"
#include "interpret/interpret.h"

typedef struct generate_options {
	/* about how many steps; one may write several ops. 0: 3 to 14 at random */
	int32_t ops;
	int64_t max_elements; /* of a value; 0: 1500 */
	bool undefined;       /* ops too whose numbers XLA does not define: rng and its state */
	/* the makers whose names contain this, beside what they need; NULL: all */
	const char *only;
	/* Only what XLA defines, and computes so on CPU: integers are not divided by 0, their
	 * exponents are below 64; what a reduction begins with is neutral (XLA may apply it more
	 * than once, or not at all); two arrays at once are not overwritten in one place twice; of
	 * equal elements in a window of several dimensions none is chosen (the first is that of the
	 * layout); random bits are unsigned. */
	bool portable;
} generate_options;

typedef struct generated {
	sw_program *program;
	sw_sidecar sidecar; /* inputs[i].random fills input i */
	/* per output: an element may be off by so much; 0: not at all. In the sidecar's arena */
	double *errors;
} generated;

/* The same seed and options give the same program. */
void generate_program(uint64_t seed, const generate_options *options, generated *g);
/* Fills the inputs as the sidecar says; their shapes belong to the program. */
void generated_fill(const generated *g, uint64_t seed, sw_tensor *inputs);
/* Runs a program that has the same inputs, such as g->program, on one device; outputs are new. */
sw_status generated_run(const generated *g, const sw_program *program, uint64_t seed,
                        sw_tensor *outputs, sw_error *err);
void generated_clear(generated *g);
/* Does the interpreter compute the opcode, for some types? */
bool generate_can_compute(sw_opcode opcode);

#endif
