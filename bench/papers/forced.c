/*
 * Rhino's way with memory (section 4.4), as a strategy to compare with: plans are made as if memory
 * had no end, but the k largest tensors of the state may not be whole on a device at rest; k is the
 * least for which the plan fits, where need be with what readers gather dropped behind each. It is
 * found by doubling and halving.
 */
#include "papers.h"

#include "simulate/simulate.h"

#include <stdlib.h>
#include <string.h>

#define ENDLESS_BYTES ((int64_t)1 << 60)

typedef struct state_tensor {
	const char *name;
	sw_shape shape;
} state_tensor;

typedef struct forcing {
	const subject *s;
	const sw_plan_options *options;
	int64_t memory_bytes;
	SW_VEC(state_tensor) tensors; /* the largest first; those that can be split */
} forcing;

static int by_size(const void *a, const void *b)
{
	const state_tensor *x = a, *y = b;
	int64_t left = sw_shape_bytes(x->shape), right = sw_shape_bytes(y->shape);
	return left != right ? (left < right ? 1 : -1) : strcmp(x->name, y->name);
}

/* The largest dimension that the devices divide; -1: none. */
static int32_t dimension_of(sw_shape shape, int64_t devices)
{
	int32_t best = -1;
	for (int32_t d = 0; d < shape.rank; d++)
		if (shape.dims[d] % devices == 0 && (best < 0 || shape.dims[d] > shape.dims[best]))
			best = d;
	return best;
}

static void list_state(forcing *f)
{
	const sw_id *inputs;
	sw_arena arena = {0};
	const sw_program *program = f->s->program;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n && i < f->s->sidecar.n_inputs; i++) {
		state_tensor t = {f->s->sidecar.inputs[i].name, sw_value_shape(program, inputs[i])};
		if (f->s->sidecar.inputs[i].role != SW_ROLE_DATA &&
		    dimension_of(t.shape, f->s->cluster.n_devices) >= 0)
			sw_vec_push(&f->tensors, t);
	}
	qsort(f->tensors.data, f->tensors.len, sizeof(state_tensor), by_size);
	sw_arena_clear(&arena);
}

/* Plan with the first k tensors split. */
static sw_status plan_forced(const forcing *f, size_t k, sw_plan **plan, sw_error *err)
{
	sw_pins pins = {.file = f->s->path, .n = k};
	sw_plan_options options = *f->options;
	pins.list = sw_alloc((k + 1) * sizeof(*pins.list));
	for (size_t i = 0; i < k; i++) {
		const state_tensor *t = &f->tensors.data[i];
		pins.list[i] = (sw_pin){.pattern = t->name,
		                        .n = 1,
		                        .dims = {dimension_of(t->shape, f->s->cluster.n_devices)},
		                        .parts = {f->s->cluster.n_devices},
		                        .contract = 1};
	}
	options.memory_bytes = ENDLESS_BYTES;
	options.pins = &pins;
	sw_status status = sw_plan_make(f->s->program, f->s->path, &f->s->sidecar, &f->s->cluster,
	                                &options, plan, err);
	free(pins.list);
	return status;
}

/* Plan with k, and keep the plan if it fits. */
static sw_status try_forced(const forcing *f, size_t k, sw_plan **best, bool *fits, sw_error *err)
{
	sw_plan *plan = NULL;
	SW_TRY(plan_forced(f, k, &plan, err));
	plan->memory_bytes = f->memory_bytes; /* its schedule has no more */
	if (plan->predicted.peak_bytes > f->memory_bytes)
		sw_plan_regather_all(plan);
	sw_status status = sw_simulate_recost(plan, true, err);
	if (status) {
		sw_plan_free(plan);
		return status;
	}
	*fits = plan->predicted.peak_bytes <= f->memory_bytes;
	if (*fits) {
		sw_plan_free(*best);
		*best = plan;
		snprintf(plan->chosen, sizeof(plan->chosen), "%zu tensors forced", k);
	} else {
		sw_plan_free(plan);
	}
	return SW_OK;
}

static sw_status find_least(const forcing *f, sw_plan **best, sw_error *err)
{
	size_t below = 0, k = 0, n = f->tensors.len;
	bool fits = false;
	SW_TRY(try_forced(f, 0, best, &fits, err));
	while (!fits && k < n) {
		below = k;
		k = SW_MIN(k ? 2 * k : 1, n);
		SW_TRY(try_forced(f, k, best, &fits, err));
	}
	while (fits && k - below > 1) {
		size_t middle = below + (k - below) / 2;
		bool middle_fits;
		SW_TRY(try_forced(f, middle, best, &middle_fits, err));
		if (middle_fits)
			k = middle;
		else
			below = middle;
	}
	return *best ? SW_OK : sw_fail(err, SW_NO, "it does not fit with all %zu tensors split", n);
}

sw_status forced_plan(const subject *s, const sw_plan_options *options, sw_plan **plan,
                      sw_error *err)
{
	forcing f = {.s = s,
	             .options = options,
	             .memory_bytes = options->memory_bytes > 0
	                                     ? options->memory_bytes
	                                     : sw_cost_memory_bytes(&s->cluster.device)};
	*plan = NULL;
	list_state(&f);
	sw_status status = find_least(&f, plan, err);
	sw_vec_clear(&f.tensors);
	if (status) {
		sw_plan_free(*plan);
		*plan = NULL;
	}
	return status;
}
