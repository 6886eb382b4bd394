/* The steps of a simulation: whether devices may differ, the program as instructions, and its
 * play. */
#include "simulate/internal.h"

#include <stdlib.h>

#include "interpret/interpret.h"

/* Iterations of a loop that are played. Where one device stands for all: one iteration in which
 * collectives from before the loop end, and one to measure. Else enough for the devices to settle
 * into a steady state. */
#define ITERATIONS_OF_ONE 2
#define ITERATIONS_OF_MANY 16

static sw_breakdown mean_of(const sw_breakdown *ranks, int64_t n)
{
	sw_breakdown mean = {0};
	for (int64_t r = 0; r < n; r++) {
		mean.compute_s += ranks[r].compute_s / (double)n;
		mean.exposed_comm_s += ranks[r].exposed_comm_s / (double)n;
		mean.idle_s += ranks[r].idle_s / (double)n;
		mean.hidden_comm_s += ranks[r].hidden_comm_s / (double)n;
	}
	return mean;
}

/* ---- devices that differ ---------------------------------------------------------------- */

/* The codes of a program: one for each class of devices. */
typedef struct code_set {
	sw_arena arena;
	sw_device_classes classes;
	code *codes;
} code_set;

static sw_status compile_codes(code_set *s, const sw_cluster *cluster, const sw_program *program,
                               bool detailed, int64_t iterations, sw_error *err)
{
	sw_status status = SW_OK;
	s->codes = SW_NEW_N(&s->arena, code, s->classes.n);
	for (int32_t k = 0; k < s->classes.n && status == SW_OK; k++)
		status = code_compile(&s->codes[k], cluster, &s->classes.list[k], program,
		                      detailed, iterations, err);
	return status;
}

static void clear_codes(code_set *s)
{
	for (int32_t k = 0; k < s->classes.n; k++)
		code_clear(&s->codes[k]);
	sw_arena_clear(&s->arena);
}

/* ---- a step ----------------------------------------------------------------------------- */

/* Simulate all but the memory. */
static sw_status simulate(const sw_cluster *cluster, const sw_program *scheduled, sw_trace *trace,
                          int32_t trace_ranks, sw_simulation *result, sw_error *err)
{
	code_set codes = {0};
	sw_arena_init(&codes.arena);
	codes.classes = sw_device_classes_of(cluster, scheduled, &codes.arena);
	bool differ = devices_differ(cluster) || sw_program_has_owners(scheduled) ||
	              codes.classes.n > 1;
	int32_t n_played = differ ? (int32_t)cluster->n_devices : 1;
	*result = (sw_simulation){.n_ranks = cluster->n_devices};
	result->ranks = sw_alloc((size_t)cluster->n_devices * sizeof(*result->ranks));
	sw_status status = compile_codes(&codes, cluster, scheduled, trace != NULL,
	                                 differ ? ITERATIONS_OF_MANY : ITERATIONS_OF_ONE, err);
	if (status == SW_OK)
		status = play(codes.codes, codes.classes.of, n_played, trace,
		              (int32_t)SW_MIN(trace_ranks, cluster->n_devices), result->ranks,
		              &result->step_time_s, err);
	for (int64_t r = n_played; r < result->n_ranks; r++)
		result->ranks[r] = result->ranks[0];
	result->mean = differ ? mean_of(result->ranks, result->n_ranks) : result->ranks[0];
	clear_codes(&codes);
	if (status != SW_OK)
		sw_simulation_clear(result);
	return status;
}

sw_status sw_simulate(const sw_cluster *cluster, const sw_program *scheduled, sw_trace *trace,
                      int32_t trace_ranks, sw_simulation *result, sw_error *err)
{
	sw_status status = simulate(cluster, scheduled, trace, trace_ranks, result, err);
	if (status == SW_OK)
		result->peak_bytes = sw_placement_bytes(scheduled);
	return status;
}

void sw_simulation_clear(sw_simulation *result)
{
	free(result->ranks);
	*result = (sw_simulation){0};
}

sw_status sw_simulate_seconds(const sw_cluster *cluster, const sw_program *scheduled,
                              double *step_time_s, sw_error *err)
{
	sw_simulation played;
	sw_status status = simulate(cluster, scheduled, NULL, 0, &played, err);
	if (status != SW_OK)
		return status;
	*step_time_s = played.step_time_s;
	sw_simulation_clear(&played);
	return SW_OK;
}

sw_status sw_simulate_plan_ranks(const sw_plan *plan, const sw_program_cost *measured,
                                 sw_simulation *result, sw_error *err)
{
	sw_schedule_options how = {.overlap = SW_OVERLAP_ALL,
	                           .memory_bytes = plan->memory_bytes,
	                           .merge = plan->merge,
	                           .limits = plan->schedule_limits,
	                           .beaten_s = plan->beaten_s,
	                           .unmerged_s = plan->unmerged_s,
	                           .arena_bytes = measured ? measured->peak_bytes : 0};
	sw_program *local = NULL, *scheduled = NULL;
	sw_status status = sw_partition(plan, &local, err);
	if (status == SW_OK)
		status = sw_schedule(plan->cluster, local, &how, &scheduled, err);
	sw_program_free(local);
	if (status == SW_OK)
		status = simulate(plan->cluster, scheduled, NULL, 0, result, err);
	sw_program_free(scheduled);
	return status;
}

sw_status sw_simulate_plan(const sw_plan *plan, const sw_program_cost *measured,
                           double *step_time_s, sw_error *err)
{
	sw_simulation played;
	SW_TRY(sw_simulate_plan_ranks(plan, measured, &played, err));
	*step_time_s = played.step_time_s;
	sw_simulation_clear(&played);
	return SW_OK;
}

sw_status sw_simulate_recost(sw_plan *plan, bool overlap, sw_error *err)
{
	sw_program_cost *cost = &plan->predicted;
	sw_status status = sw_partition_measure(plan, cost, err);
	if (status == SW_OK && overlap)
		status = sw_simulate_plan(plan, cost, &cost->step_time_s, err);
	plan->model_s = plan->model_best_s = plan->model_bound_s = plan->lower_bound_s = 0;
	plan->gap = plan->stale_step_s = 0;
	plan->alternatives.len = 0;
	plan->searched[0] = '\0';
	snprintf(plan->scope, sizeof(plan->scope),
	         "none for this program and cluster: plan again for a bound and alternatives");
	return status;
}
