/*
 * state_pairs: which results of a step are the next values of which inputs. Private to
 * src/frontend.
 */
#ifndef SW_FRONTEND_STATE_PAIRS_H
#define SW_FRONTEND_STATE_PAIRS_H

#include "frontend/frontend.h"

/* Result `output` is made element by element from input `input`, `distance` ops back; both are
 * leaves of the entry, of the same shape and type. Or it holds integers that are made of this input
 * alone, which has a distance of its own. */
typedef struct sw_state_use {
	uint32_t output, input, distance;
} sw_state_use;
typedef SW_VEC(sw_state_use) sw_state_uses;

/* Append the uses of all results in order, those of one result by ascending distance. Linear in the
 * results, as the way back of each is bounded. */
void sw_state_find_uses(const sw_program *program, sw_state_uses *uses);

/* Which pairs are possible, and which are made. */
typedef struct sw_state_pairing {
	sw_program *program;
	sw_arena arena;
	uint32_t n_inputs, n_outputs;
	const sw_id *inputs, *outputs; /* values */
	bool *may_input, *may_output;  /* may be paired */
	int32_t *of_output;            /* the input that the result replaces, -1: none */
	bool *taken;                   /* per input */
	sw_state_uses uses;
} sw_state_pairing;

/* Return whether a result and an input have one shape and type. */
bool sw_state_alike(const sw_state_pairing *x, uint32_t output, uint32_t input);
/* Make a pair. */
void sw_state_take(sw_state_pairing *x, uint32_t output, uint32_t input);
/* Make all pairs that uses speak for (state_runs.c). O(uses * runs). */
void sw_state_pair_by_use(sw_state_pairing *x);
/* Undo the pair of the only real scalar among the results, if it stands alone among other pairs: a
 * step returns its loss, which may be made from a scalar input, such as a factor of weight decay.
 */
void sw_state_free_loss(sw_state_pairing *x);

#endif
