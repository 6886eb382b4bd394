/* The builders' ways: what algorithm 1 is to beat, and what its samples are made of. */
#include <string.h>

#include "tune/tune.h"

static const char *const SEEDS[] = {"allreduce",      "allreduce:chunk=1",
                                    "horovod",        "allreduce:partitioned",
                                    "ps:balanced",    "ps:balanced,proxy",
                                    "ps:partitioned", "ps:uneven",
                                    "parallax",       "zero1",
                                    "zero3",          "gather",
                                    "gather rows"};

const char *sw_ways_seed_name(size_t i)
{
	return i < SW_COUNT(SEEDS) ? SEEDS[i] : NULL;
}

/* Divide the variables as the strategy does. */
static sw_status divide(const sw_ways_space *space, const sw_plan_strategy *strategy,
                        sw_arena *arena, sw_variable_ways *of, sw_error *err)
{
	sw_variable_forms forms;
	const sw_forms_request request = {.program = space->program,
	                                  .sidecar = space->sidecar,
	                                  .strategy = strategy,
	                                  .devices = space->cluster->n_devices};
	for (uint32_t i = 0; i < space->n; i++)
		of[i].n = 1;
	SW_TRY(sw_forms_asked(&request, arena, &forms, err));
	for (size_t f = 0; f < forms.n; f++)
		for (uint32_t i = 0; i < space->n; i++)
			if (space->variables[i].input == forms.list[f].input &&
			    space->variables[i].named) {
				of[i].axis = forms.list[f].axis;
				of[i].n = forms.list[f].sizes.n;
			}
	return SW_OK;
}

static bool divides(const sw_ways_space *space, const sw_variable_ways *of, uint32_t i, int32_t k)
{
	return sw_ways_possible(space, i, of[i].axis, of[i].n, k, SW_WAY_SPLIT);
}

/* Give the parts of variables the ways that the strategy's builder does; ZeRO, which splits what
 * divides, has none. */
static void build(const sw_ways_space *space, const sw_plan_strategy *strategy, sw_arena *arena,
                  sw_variable_ways *of)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < space->n; i++)
		n += (uint32_t)of[i].n;
	sw_variable *list = SW_NEW_N(arena, sw_variable, n + 1);
	n = 0;
	for (uint32_t i = 0; i < space->n; i++) {
		const sw_tuned_variable *v = &space->variables[i];
		int64_t size = v->shape.dims[of[i].axis];
		for (int32_t k = 0; k < of[i].n; k++)
			list[n++] = (sw_variable){.bytes = v->bytes / SW_MAX(size, 1) *
			                                   sw_part_size(size, of[i].n, k),
			                          .trained = true,
			                          .sparse = v->sparse && of[i].n == 1,
			                          .part = of[i].n > 1,
			                          .divides = divides(space, of, i, k)};
	}
	sw_ways_build(strategy, list, n, space->cluster->n_devices);
	n = 0;
	for (uint32_t i = 0; i < space->n; i++) {
		of[i].parts = SW_NEW_N(arena, sw_way, of[i].n);
		for (int32_t k = 0; k < of[i].n; k++, n++) {
			sw_way way = list[n].way;
			if (list[n].divides && strategy->kind == SW_PLAN_ZERO1)
				way.kind = SW_WAY_MOMENTS;
			if (list[n].divides && strategy->kind == SW_PLAN_ZERO3)
				way.kind = SW_WAY_SPLIT;
			way.proxy = way.proxy && way.kind == SW_WAY_OWNED;
			way.owner = way.kind == SW_WAY_OWNED && strategy->owners != SW_OWNERS_ONE
			                    ? -1
			                    : way.owner;
			of[i].parts[k] = way;
		}
	}
}

/* Gather what gradients are made of, where they are no sums; or only that of scattered rows. */
static void gather(const sw_ways_space *space, bool rows, sw_variable_ways *of)
{
	for (uint32_t i = 0; i < space->n; i++)
		if ((!rows || space->variables[i].sparse) &&
		    sw_ways_possible(space, i, 0, of[i].n, 0, SW_WAY_GATHER))
			of[i].parts[0].kind = SW_WAY_GATHER;
}

sw_status sw_ways_seed(const sw_ways_space *space, size_t i, sw_arena *arena, sw_ways *ways,
                       sw_error *err)
{
	sw_plan_strategy strategy;
	sw_variable_ways *of = SW_NEW_N(arena, sw_variable_ways, space->n + 1);
	bool gathers = strncmp(SEEDS[i], "gather", 6) == 0;
	SW_TRY(sw_plan_strategy_parse(gathers ? "allreduce" : SEEDS[i], &strategy, err));
	SW_TRY(divide(space, &strategy, arena, of, err));
	build(space, &strategy, arena, of);
	if (gathers)
		gather(space, strcmp(SEEDS[i], "gather rows") == 0, of);
	*ways = (sw_ways){.merge = strategy.merge, .of = of};
	sw_ways_seal(space, ways);
	return SW_OK;
}
