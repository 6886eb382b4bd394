/*
 * path_models: cost models, and layouts by chance, for the tests of paths; and what every path must
 * satisfy.
 */
#ifndef SW_TESTS_LAYOUT_PATH_MODELS_H
#define SW_TESTS_LAYOUT_PATH_MODELS_H

#include "layout/layout.h"

/* A cost model with its own latency and bandwidth for every kind and set of atoms. */
typedef struct random_model {
	uint64_t seed;
	double alpha_scale, beta_scale;
} random_model;

/* Of sw_redistribution; context: a random_model. */
double random_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes);
/* Bytes over 1 GB/s and a latency of 1 us, whatever the atoms. */
double plain_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes);
/* Neighbouring atoms mostly have the same state, as in plans. */
sw_layout random_layout(sw_rng *rng, const sw_atoms *atoms, sw_shape shape);

/* Check that the moves of a path are moves by their definition, lead from one end to the other, and
 * cost as much as the path states. */
void check_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                const sw_layout *to, const sw_path *path);
void check_against_references(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                              const sw_layout *to, const sw_path *path, int *compared);

#endif
