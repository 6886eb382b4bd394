/*
 * state_pairs: which results of a step are the next values of which inputs. Private to
 * src/frontend.
 */
#ifndef SW_FRONTEND_STATE_PAIRS_H
#define SW_FRONTEND_STATE_PAIRS_H

#include "frontend/frontend.h"

/* Result `output` is made element by element from input `input`, `distance` ops back; both are
 * leaves of the entry, of the same shape and type. */
typedef struct sw_state_use {
	uint32_t output, input, distance;
} sw_state_use;
typedef SW_VEC(sw_state_use) sw_state_uses;

/* Append the uses of all results, those of one result by ascending distance. Linear in the results,
 * as the way back of each is bounded. */
void sw_state_find_uses(const sw_program *program, sw_state_uses *uses);

#endif
