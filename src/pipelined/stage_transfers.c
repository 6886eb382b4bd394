/* What a microbatch takes between two stages: each value that crosses is resharded from the layout
 * in which one stage's plan leaves it to that in which the other's expects it. */
#include <stdlib.h>

#include "pipelined/internal.h"

/* A hop is between stage `below` and the next one. */
typedef struct stage_hop {
	sw_pipelined *plan;
	int32_t below;
	bool up;    /* from `below` to the next; else back */
	bool *seen; /* per value of the looped program */
	double seconds;
	int64_t bytes;
	sw_error *err;
} stage_hop;

static const sw_plan *plan_of(const sw_pipelined *p, int32_t stage)
{
	return p->stages[p->stages[stage].like].plan;
}

/* The stage that computes a value of a microbatch. */
static int32_t maker_stage(const sw_pipelined *p, sw_id value)
{
	sw_id maker = p->looped->values.data[value].op;
	return sw_stage_physical(&p->cut, p->cut.stage[maker]);
}

static uint32_t find_port(const sw_stage_port *ports, uint32_t n, sw_id value)
{
	uint32_t i = 0;
	while (i < n && (ports[i].kind != SW_PORT_MICROBATCHES || ports[i].value != value))
		i++;
	return i;
}

sw_crossmesh_side sw_pipelined_side(const sw_pipelined *p, int32_t rank, const sw_layout *layout,
                                    sw_arena *arena)
{
	int64_t n = p->slices[rank]->n_devices, *devices = SW_NEW_N(arena, int64_t, n);
	for (int64_t i = 0; i < n; i++)
		devices[i] = p->first_device[rank] + i;
	return (sw_crossmesh_side){
		.axes = p->slices[rank]->atoms, .devices = devices, .layout = *layout};
}

static void fill_side(const sw_pipelined *p, int32_t rank, const sw_layout *layout,
                      sw_shape padded, sw_arena *arena, sw_crossmesh_side *side)
{
	*side = sw_pipelined_side(p, rank, layout, arena);
	for (int32_t d = 0; d < padded.rank; d++)
		side->dims[d] = padded.dims[d];
}

static int64_t elements_of(const int64_t *dims, int32_t rank)
{
	int64_t n = 1;
	for (int32_t d = 0; d < rank; d++)
		n *= dims[d];
	return n;
}

/* Between stages of one slice a value, padded as both plans have it, is converted where it lies, by
 * collectives. Where they pad it otherwise, each device is supposed to get its new part from another
 * one. */
static void convert(stage_hop *h, int32_t rank, sw_shape shape, const sw_layout *from,
                    const sw_layout *to)
{
	const sw_cluster *slice = h->plan->slices[rank];
	sw_redistribution how = sw_plan_redistribution(slice);
	sw_path *path = sw_alloc(sizeof(*path));
	sw_error ignored;
	bool found = sw_layout_valid(&slice->atoms, shape, from) &&
	             sw_layout_valid(&slice->atoms, shape, to) &&
	             sw_redistribute(&how, shape, from, to, path, &ignored) == SW_OK;
	double seconds = found ? path->seconds
	                 : slice->n_devices > 1
	                         ? sw_cost_pair(slice, 0, slice->n_devices - 1,
	                                        sw_layout_local_bytes(&slice->atoms, shape, to))
	                         : 0;
	h->seconds += seconds / h->plan->microbatches;
	free(path);
}

/* The shape with the larger of two others' dimensions. */
static sw_shape larger(sw_shape shape, sw_shape a, sw_shape b, sw_arena *arena)
{
	int64_t *dims = SW_NEW_N(arena, int64_t, shape.rank + 1);
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = SW_MAX(a.dims[d], b.dims[d]);
	shape.dims = dims;
	return shape;
}

/* The rank of a stage of the hop, where its slice is like that of a stage whose value is handed on;
 * else the rank of that one: a layout is of its own slice. */
static int32_t rank_like(const sw_pipelined *p, int32_t stage, int32_t other)
{
	bool alike = sw_pipelined_slice_of(p, stage) == sw_pipelined_slice_of(p, other);
	return p->stages[alike ? stage : other].rank;
}

/* All microbatches at once, in as many parts: each takes the latency again. */
static sw_status reshard(stage_hop *h, int32_t from, int32_t to, uint32_t result, uint32_t input)
{
	sw_pipelined *p = h->plan;
	const sw_plan *a = plan_of(p, from), *b = plan_of(p, to);
	sw_arena arena = {0};
	const sw_id *leaves, *inputs;
	sw_crossmesh_side source, target;
	sw_crossmesh_options options = sw_crossmesh_defaults();
	sw_crossmesh_plan *made = NULL;
	sw_status status = SW_OK;
	const sw_stage_step *step = &p->stages[to].step;
	sw_program_inputs(step->program, step->program->entry, &arena, &leaves);
	sw_program_inputs(b->program, b->program->entry, &arena, &inputs);
	sw_shape shape = sw_value_shape(step->program, leaves[input]);
	int32_t low = h->below, high = h->below + 1, near = rank_like(p, h->up ? low : high, from),
		far = rank_like(p, h->up ? high : low, to);
	if (near == far) {
		convert(h, near,
		        larger(shape,
		               sw_value_shape(a->program,
		                              sw_entry(a->program)->results.data[result]),
		               sw_value_shape(b->program, inputs[input]), &arena),
		        sw_plan_layout(a, a->outputs[result]),
		        sw_plan_layout(b, b->produced[inputs[input]]));
		goto done;
	}
	fill_side(p, near, sw_plan_layout(a, a->outputs[result]),
	          sw_value_shape(a->program, sw_entry(a->program)->results.data[result]), &arena,
	          &source);
	fill_side(p, far, sw_plan_layout(b, b->produced[inputs[input]]),
	          sw_value_shape(b->program, inputs[input]), &arena, &target);
	options.order = SW_CROSSMESH_GREEDY;
	options.pieces = 1;
	status = sw_crossmesh_check(p->cluster, &source, &target, shape, h->err);
	if (status == SW_OK)
		status = sw_crossmesh_plan_make(p->cluster, &source, &target, shape, &options,
		                                &made, h->err);
	if (status == SW_OK) {
		double latency_s =
			sw_cost_pair(p->cluster, source.devices[0], target.devices[0], 0);
		h->seconds += SW_MAX(made->seconds - latency_s, 0) / p->microbatches + latency_s;
		h->bytes += elements_of(shape.dims, shape.rank) / p->microbatches *
		            sw_type_bytes(shape.type);
	}
done:
	sw_crossmesh_plan_free(made);
	sw_arena_clear(&arena);
	return status;
}

/* What the stages beyond the hop read of those on this side of it. */
static sw_status add_reader(stage_hop *h, int32_t reader)
{
	sw_pipelined *p = h->plan;
	const sw_stage_step *step = &p->stages[reader].step;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < step->n_inputs && status == SW_OK; i++) {
		sw_id value = step->inputs[i].value;
		if (step->inputs[i].kind != SW_PORT_MICROBATCHES || h->seen[value])
			continue;
		int32_t from = maker_stage(p, value);
		if (h->up ? from > h->below : from <= h->below)
			continue;
		h->seen[value] = true;
		const sw_stage_step *maker = &p->stages[from].step;
		uint32_t result = find_port(maker->results, maker->n_results, value);
		status = result == maker->n_results
		                 ? sw_fail(h->err, SW_ERR_INTERNAL,
		                           "stage %d: input %u is sent by no stage", reader, i)
		                 : reshard(h, from, reader, result, i);
	}
	return status;
}

static sw_status cross(stage_hop *h)
{
	sw_status status = SW_OK;
	int32_t first = h->up ? h->below + 1 : 0, last = h->up ? h->plan->n_stages - 1 : h->below;
	h->seen = sw_alloc(h->plan->looped->values.len + 1);
	for (int32_t s = first; s <= last && status == SW_OK; s++)
		status = add_reader(h, s);
	free(h->seen);
	return status;
}

sw_status sw_stage_transfers(sw_pipelined *plan, int32_t stage, sw_error *err)
{
	sw_planned_stage *s = &plan->stages[stage];
	stage_hop up = {.plan = plan, .below = stage, .up = true, .err = err},
		  down = {.plan = plan, .below = stage, .err = err};
	if (stage + 1 == plan->n_stages)
		return SW_OK;
	sw_status status = cross(&up);
	if (status == SW_OK)
		status = cross(&down);
	s->send_forward_s = up.seconds;
	s->forward_bytes = up.bytes;
	s->send_backward_s = down.seconds;
	s->backward_bytes = down.bytes;
	return status;
}
