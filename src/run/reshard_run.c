/* Carries out a transfer on ranks. */
#include "run/ranks.h"
#include "run/reshard_parts.h"

#include "transport/carrier.h"

#include <string.h>

/* One rank's transfer. */
typedef struct reshard_job {
	const sw_crossmesh_plan *plan;
	sw_transport *transport;
	const sw_reshard_options *options;
	reshard_rank rank;
	int64_t source, target; /* index of the device in the meshes; -1: it is not there */
	void *source_part, *target_part;
	int64_t checked;
} reshard_job;

static sw_status agree(const reshard_job *j, sw_status status, sw_error *err)
{
	return j->transport->ops->agree(j->transport, status, err);
}

static sw_status take_part(const sw_crossmesh_side *side, sw_shape shape, void **part,
                           sw_error *err)
{
	int64_t bytes = sw_crossmesh_local_bytes(side, shape);
	*part = sw_try_alloc((size_t)SW_MAX(bytes, 1));
	return *part ? SW_OK
	             : sw_fail(err, SW_ERR_IO, "no memory for a part of %lld bytes",
	                       (long long)bytes);
}

static sw_status prepare(reshard_job *j, sw_error *err)
{
	const sw_crossmesh_plan *plan = j->plan;
	int64_t device = j->transport->rank;
	sw_status status = reshard_rank_init(&j->rank, plan, device, err);
	j->source = sw_crossmesh_index_of(&plan->from, device);
	j->target = sw_crossmesh_index_of(&plan->to, device);
	if (status == SW_OK && j->source >= 0)
		status = take_part(&plan->from, plan->shape, &j->source_part, err);
	if (status == SW_OK && j->target >= 0)
		status = take_part(&plan->to, plan->shape, &j->target_part, err);
	if (status == SW_OK && j->source >= 0)
		reshard_fill(plan, j->source, j->options->seed, j->source_part);
	return status;
}

/* ---- timing ----------------------------------------------------------------------------- */

/* Return in *seconds what the slowest rank took from a common beginning. */
static sw_status time_once(reshard_job *j, double *seconds, sw_error *err)
{
	sw_transport *t = j->transport;
	double slowest = 0;
	reshard_pack(&j->rank, j->source_part);
	sw_status status = t->ops->barrier(t, err);
	double begin = sw_now_s();
	if (status == SW_OK)
		status = sw_transport_steps(t, j->rank.steps.data, j->rank.steps.len,
		                            j->plan->from.layout.monoid, j->plan->shape.type, err);
	double took = sw_now_s() - begin;
	if (status == SW_OK)
		status = t->ops->all_reduce(t, t->everyone, t->size, SW_MONOID_MAX, SW_F64, &took,
		                            &slowest, 1, err);
	*seconds = slowest;
	return status;
}

static sw_status time_all(reshard_job *j, sw_reshard_result *result, sw_error *err)
{
	int64_t n = SW_MAX(j->options->repeat, 1);
	double *times = sw_alloc((size_t)n * sizeof(*times));
	sw_status status = SW_OK;
	for (int64_t i = 0; i < n && status == SW_OK; i++)
		status = time_once(j, &times[i], err);
	result->least_s = result->most_s = times[0];
	for (int64_t i = 1; i < n; i++) {
		result->least_s = SW_MIN(result->least_s, times[i]);
		result->most_s = SW_MAX(result->most_s, times[i]);
	}
	result->seconds = sw_median(times, (size_t)n);
	free(times);
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static sw_status check_input(const sw_cluster *cluster, const sw_crossmesh_plan *plan, int32_t size,
                             sw_error *err)
{
	sw_monoid monoid = plan->from.layout.monoid;
	if (cluster->n_devices != size)
		return sw_fail(err, SW_ERR_INPUT,
		               "the cluster has %lld devices and there are %d ranks: mpirun -n "
		               "%lld, or --devices for a part of the cluster",
		               (long long)cluster->n_devices, size, (long long)cluster->n_devices);
	if (monoid != SW_MONOID_NONE && !sw_can_reduce(monoid, plan->shape.type))
		return sw_fail(err, SW_ERR_INPUT, "%s of %s can't be combined",
		               sw_monoid_name(monoid), sw_type_name(plan->shape.type));
	return SW_OK;
}

static sw_status sum_up(reshard_job *j, sw_reshard_result *result, sw_error *err)
{
	sw_transport *t = j->transport;
	int64_t mine[2] = {j->checked, 0}, all[2];
	for (size_t i = 0; i < j->rank.steps.len; i++)
		if (j->rank.steps.data[i].kind == SW_STEP_SEND)
			mine[1] += j->rank.steps.data[i].bytes;
	sw_status status = t->ops->all_reduce(t, t->everyone, t->size, SW_MONOID_SUM, SW_S64, mine,
	                                      all, 2, err);
	result->checked = all[0];
	result->wire_bytes = all[1];
	return status;
}

sw_status sw_run_reshard(const sw_cluster *cluster, const sw_crossmesh_plan *plan,
                         sw_transport *transport, const sw_reshard_options *options,
                         sw_reshard_result *result, sw_error *err)
{
	reshard_job j = {.plan = plan, .transport = transport, .options = options};
	*result = (sw_reshard_result){0};
	sw_status status = check_input(cluster, plan, transport->size, err);
	if (status)
		return status;
	status = agree(&j, prepare(&j, err), err);
	if (status == SW_OK)
		status = time_all(&j, result, err);
	if (status == SW_OK) {
		if (j.target >= 0)
			reshard_unpack(&j.rank, j.target_part);
		if (j.target >= 0)
			status = reshard_check(plan, j.target, options->seed, j.target_part,
			                       &j.checked, err);
		status = agree(&j, status, err);
	}
	if (status == SW_OK)
		status = sum_up(&j, result, err);
	reshard_rank_clear(&j.rank);
	free(j.source_part);
	free(j.target_part);
	return status;
}

/* ---- threads ---------------------------------------------------------------------------- */

typedef struct local_reshard {
	const sw_cluster *cluster;
	const sw_crossmesh_plan *plan;
	const sw_reshard_options *options;
	sw_reshard_result *result; /* of rank 0 */
} local_reshard;

static sw_status run_rank(void *context, sw_transport *transport, sw_error *err)
{
	const local_reshard *l = context;
	sw_reshard_result result;
	sw_status status = sw_run_reshard(l->cluster, l->plan, transport, l->options, &result, err);
	if (transport->rank == 0)
		*l->result = result;
	return status;
}

sw_status sw_run_reshard_local(const sw_cluster *cluster, const sw_crossmesh_plan *plan,
                               const sw_reshard_options *options, sw_reshard_result *result,
                               sw_error *err)
{
	local_reshard l = {cluster, plan, options, result};
	return sw_ranks_run((int32_t)cluster->n_devices, run_rank, &l, err);
}
