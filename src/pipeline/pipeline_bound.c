/* Seconds that no order of a pipeline's actions is below. */
#include <math.h>

#include "pipeline/internal.h"

typedef struct bound_frame {
	const sw_pipeline_schedule *s;
	const sw_pipeline_costs *c;
	bool splits, updates; /* the schedule has such actions */
	/* [n_stages]: from the beginning of the step to its first forward; from the beginning of a
	 * microbatch's forward to the end of its input gradient, there and back; from the end of
	 * that to the end of the chain's first one */
	double *head_s, *trip_s, *tail_s;
} bound_frame;

static bool any_split(const sw_pipeline_schedule *s)
{
	for (int32_t r = 0; r < s->n_ranks; r++)
		for (size_t i = 0; i < s->lists[r].len; i++)
			if (s->lists[r].data[i].kind == SW_INPUT_GRADIENT)
				return true;
	return false;
}

/* What the gradient of the stage behind waits for. */
static double backward_s(const bound_frame *b, int32_t stage)
{
	return b->c->input_gradient_s[stage] + (b->splits ? 0 : b->c->weight_gradient_s[stage]);
}

static double hop_s(const bound_frame *b, int32_t from, int32_t to)
{
	if (b->s->rank_of_stage[from] == b->s->rank_of_stage[to])
		return 0;
	return to > from ? b->c->send_forward_s[from] : b->c->send_backward_s[from];
}

static void fill_frame(bound_frame *b)
{
	const sw_pipeline_schedule *s = b->s;
	for (int32_t v = 0; v < s->n_stages; v++) {
		bool first = sw_stage_is_first(s, v);
		b->head_s[v] =
			first ? 0 : b->head_s[v - 1] + b->c->forward_s[v - 1] + hop_s(b, v - 1, v);
		b->tail_s[v] =
			first ? 0 : b->tail_s[v - 1] + backward_s(b, v - 1) + hop_s(b, v, v - 1);
	}
	for (int32_t v = s->n_stages - 1; v >= 0; v--) {
		b->trip_s[v] = b->c->forward_s[v] + backward_s(b, v);
		if (!sw_stage_is_last(s, v))
			b->trip_s[v] += hop_s(b, v, v + 1) + b->trip_s[v + 1] + hop_s(b, v + 1, v);
	}
}

static int32_t microbatches_of(const sw_pipeline_schedule *s, int32_t stage)
{
	int32_t chain = stage / (s->n_stages / s->n_chains), m = s->n_microbatches;
	return m / s->n_chains + (chain < m % s->n_chains);
}

static void keep_larger(sw_pipeline_bound *bound, double seconds, sw_pipeline_limit by,
                        int32_t rank)
{
	if (seconds > bound->seconds)
		*bound = (sw_pipeline_bound){seconds, by, rank};
}

static void bound_rank(const bound_frame *b, int32_t rank, sw_pipeline_bound *bound)
{
	const sw_pipeline_costs *c = b->c;
	double head_s = INFINITY, tail_s = INFINITY, work_s = 0, update_s = 0, held = 0;
	for (int32_t v = 0; v < b->s->n_stages; v++) {
		if (b->s->rank_of_stage[v] != rank)
			continue;
		double n = microbatches_of(b->s, v);
		head_s = SW_MIN(head_s, b->head_s[v]);
		/* A weight gradient may be the last of all. */
		tail_s = SW_MIN(tail_s, b->splits ? 0 : b->tail_s[v]);
		work_s += n * (c->forward_s[v] + c->input_gradient_s[v] + c->weight_gradient_s[v]);
		update_s += b->updates ? c->update_s[v] : 0;
		held += n * c->activation_bytes[v] * b->trip_s[v];
		if (b->splits)
			held += n * SW_MIN(c->gradient_bytes[v], c->activation_bytes[v]) *
			        c->weight_gradient_s[v];
	}
	if (work_s > 0)
		keep_larger(bound, head_s + work_s + SW_MAX(tail_s, update_s), SW_LIMIT_RANK, rank);
	double room = c->limit_bytes[rank] - c->fixed_bytes[rank];
	if (room > 0 && held > 0)
		keep_larger(bound, head_s + held / room, SW_LIMIT_MEMORY, rank);
}

sw_pipeline_bound sw_pipeline_bound_of(const sw_pipeline_schedule *schedule,
                                       const sw_pipeline_costs *costs)
{
	size_t n = (size_t)schedule->n_stages;
	double *values = sw_alloc(3 * n * sizeof(double));
	bound_frame b = {
		schedule, costs,      any_split(schedule), sw_pipeline_has(schedule, SW_UPDATE),
		values,   values + n, values + 2 * n};
	sw_pipeline_bound bound = {0};
	fill_frame(&b);
	for (int32_t v = 0; v < schedule->n_stages; v++)
		if (sw_stage_is_first(schedule, v) && microbatches_of(schedule, v) > 0)
			keep_larger(&bound,
			            b.trip_s[v] + (b.splits ? costs->weight_gradient_s[v] : 0) +
			                    (b.updates ? costs->update_s[v] : 0),
			            SW_LIMIT_CHAIN, 0);
	for (int32_t r = 0; r < schedule->n_ranks; r++)
		bound_rank(&b, r, &bound);
	free(values);
	return bound;
}
