/* Seconds by the model. */
#include "bench_crossmesh.h"

static sw_status plan_way(const sw_cluster *cluster, const transfer_way *way, sw_shape shape,
                          const sw_crossmesh_side *from, const sw_crossmesh_side *to,
                          double *seconds, double *bound_s, sw_error *err)
{
	sw_crossmesh_options options = sw_crossmesh_defaults();
	sw_crossmesh_plan *plan = NULL;
	options.strategy = way->strategy;
	options.order = way->order;
	options.pieces = way->pieces;
	sw_status status = sw_crossmesh_plan_make(cluster, from, to, shape, &options, &plan, err);
	if (status)
		return status;
	*seconds = plan->seconds;
	*bound_s = plan->bound.seconds;
	sw_crossmesh_plan_free(plan);
	return SW_OK;
}

sw_status model_case(const sw_cluster *cluster, const experiment *e, const transfer_case *c,
                     const char *text, case_times *times, sw_error *err)
{
	sw_arena arena;
	sw_shape shape;
	sw_crossmesh_side from, to;
	sw_arena_init(&arena);
	sw_status status = sw_crossmesh_parse_shape(text, &arena, &shape, err);
	if (status == SW_OK)
		status = sw_crossmesh_parse_side(c->from, shape, cluster, &arena, &from, err);
	if (status == SW_OK)
		status = sw_crossmesh_parse_side(c->to, shape, cluster, &arena, &to, err);
	for (int32_t w = 0; w < e->n_ways && status == SW_OK; w++)
		status = plan_way(cluster, e->ways[w], shape, &from, &to, &times->ways_s[w],
		                  &times->bound_s, err);
	sw_arena_clear(&arena);
	return status;
}
