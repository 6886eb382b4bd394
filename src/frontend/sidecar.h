/*
 * sidecar: what reading a sidecar shares with making one. Private to src/frontend.
 */
#ifndef SW_FRONTEND_SIDECAR_H
#define SW_FRONTEND_SIDECAR_H

#include "frontend/frontend.h"

/* A sidecar being filled in, and the program's leaves in order. */
typedef struct sw_sidecar_reader {
	const sw_program *program;
	sw_sidecar *sidecar;
	const sw_id *inputs; /* values */
	uint32_t n_inputs, n_outputs;
	const sw_id *outputs; /* values */
	int32_t *aliases;     /* per output: its input, -1: none */
	sw_error *err;
} sw_sidecar_reader;
/* Make room for the inputs and outputs of the program. */
void sw_sidecar_begin(sw_sidecar_reader *x, const sw_program *program, sw_sidecar *sidecar,
                      sw_error *err);
/* A fill as an object, in the form that is read. */
json_t *sw_fill_json(const sw_fill *fill);

static inline sw_shape sw_sidecar_input_shape(const sw_sidecar_reader *x, uint32_t input)
{
	return sw_value_shape(x->program, x->inputs[input]);
}

/* Set *number to that of a real constant, or of one that is repeated. False: it is none
 * (state_roots.c). */
bool sw_state_real_constant(const sw_program *program, sw_id value, double *number);
/* Set rooted[i] for each real input that must not be negative, as a root is taken of it or of its
 * next value (state_roots.c). */
void sw_state_find_roots(const sw_program *program, const sw_id *inputs, uint32_t n_inputs,
                         bool *rooted);
/* Set kept[i] for each real input that is state, and stays non-negative if it begins so; of those
 * that are never changed only for scalars. next[i]: the result that replaces input i, SW_NO_ID:
 * none (state_signs.c). O(ops * rounds), which is bounded by a number of ops. */
void sw_state_find_signs(const sw_program *program, const sw_id *inputs, uint32_t n_inputs,
                         const sw_id *next, bool *kept);

#endif
