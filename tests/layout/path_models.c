/*
 * Cost models, and layouts by chance, for the tests of paths; and what every path must satisfy.
 */
#include "layout/path_models.h"

#include "layout/references.h"

#include "test.h"

#include <math.h>

double random_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	const random_model *model = context;
	double alpha =
		1e-6 * (1 + 19 * sw_random_unit(model->seed, kind, 2 * atoms)) * model->alpha_scale;
	double beta = 1e-9 * (1 + 19 * sw_random_unit(model->seed, kind, 2 * atoms + 1)) *
	              model->beta_scale;
	return alpha + beta * (double)bytes;
}

double plain_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t bytes)
{
	const sw_atoms *all = context;
	static const sw_opcode opcodes[] = {[SW_MOVE_ALL_GATHER] = SW_OP_ALL_GATHER,
	                                    [SW_MOVE_ALL_REDUCE] = SW_OP_ALL_REDUCE,
	                                    [SW_MOVE_REDUCE_SCATTER] = SW_OP_REDUCE_SCATTER,
	                                    [SW_MOVE_ALL_TO_ALL] = SW_OP_ALL_TO_ALL,
	                                    [SW_MOVE_PERMUTE] = SW_OP_COLLECTIVE_PERMUTE};
	return 1e-6 + 1e-9 * (double)sw_collective_payload_bytes(opcodes[kind], bytes,
	                                                         sw_atoms_group_size(all, atoms));
}

sw_layout random_layout(sw_rng *rng, const sw_atoms *atoms, sw_shape shape)
{
	sw_layout layout = sw_layout_replicated(atoms);
	int64_t top[SW_MAX_RANK], choice = 0;
	for (int32_t dim = 0; dim < shape.rank; dim++)
		top[dim] = shape.dims[dim];
	for (int32_t a = 0; a < atoms->n; a++) {
		if (a == 0 || sw_rng_below(rng, 2) == 0)
			choice = sw_rng_below(rng, shape.rank + 2);
		if (choice == shape.rank)
			layout.state[a].kind = SW_STATE_P;
		else if (choice < shape.rank &&
		         sw_layout_split(atoms, &layout, 1u << a, (int32_t)choice, top[choice]))
			top[choice] /= atoms->size[a];
	}
	layout.monoid = sw_layout_partial_atoms(&layout) ? SW_MONOID_SUM : SW_MONOID_NONE;
	return layout;
}

/* ---- what every path must satisfy ------------------------------------------------------- */

static uint32_t partial_targets(const sw_layout *from, const sw_layout *to)
{
	return sw_layout_partial_atoms(to) & ~sw_layout_partial_atoms(from);
}

void check_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                const sw_layout *to, const sw_path *path)
{
	sw_layout at = *from;
	double ps = 0;
	int64_t peak = 0;
	for (int32_t i = 0; i < path->n; i++) {
		const sw_move *move = &path->moves[i];
		assert_true(sw_layout_valid(how->atoms, shape, &move->after));
		uint32_t mask = classify_move(how->atoms, shape, &at, &move->after, move->kind,
		                              partial_targets(from, to), NULL);
		assert_int_equal(mask, move->atoms);
		ps += step_ps(how, shape, &at, move);
		peak = SW_MAX(peak, local_touches(how->atoms, shape, &at, move).peak);
		peak = SW_MAX(peak, sw_layout_local_bytes(how->atoms, shape, &at) +
		                            sw_layout_local_bytes(how->atoms, shape, &move->after));
		at = move->after;
	}
	assert_true(sw_layout_equal(&at, to));
	assert_int_equal(path->peak_bytes, peak);
	assert_true(fabs(path->seconds * 1e12 - ps) <= 3 * path->n + 1e-9 * ps);
}

void check_against_references(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                              const sw_layout *to, const sw_path *path, int *compared)
{
	for (int which = 0; which < SW_REFERENCES; which++) {
		double ps = reference_ps(how, shape, from, to, which);
		if (!isfinite(ps))
			continue;
		++*compared;
		if (!(path->seconds * 1e12 <= ps * (1 + 1e-9) + 100))
			fail_msg("%s within %lld: %g ps, but reference %d takes %g",
			         describe(how->atoms, shape, from, to),
			         (long long)how->memory_bytes, path->seconds * 1e12, which, ps);
	}
}
