/*
 * The walk over the program, callees first: each computation that is scheduled (the entry, bodies
 * and conditions of loops, branches) becomes a graph of tasks, gets an order, and is written in
 * that order. Other computations are copied.
 */
#include <math.h>
#include <string.h>

#include "interpret/interpret.h"
#include "schedule/internal.h"

typedef struct scheduler {
	sw_task_source source;
	const sw_program *in;
	sw_program *out;
	sw_arena arena;
	int32_t *computation; /* of `in` -> of `out`, -1: not written yet */
	sw_id *value;         /* of `in` -> of `out` */
	sw_id *op;            /* of `in` -> the op of `out` after which it is complete */
	double spare_bytes;
	const sw_schedule_options *options;
	sw_error *err;
} scheduler;

static const sw_schedule_limits *limits_of(const sw_schedule_options *options)
{
	return options->limits ? options->limits : &sw_schedule_default_limits;
}

/* ---- writing ---------------------------------------------------------------------------- */

static const sw_id *map_operands(scheduler *s, const sw_op *op)
{
	sw_id *operands = SW_NEW_N(&s->arena, sw_id, op->n_operands + 1);
	for (uint32_t i = 0; i < op->n_operands; i++)
		operands[i] = s->value[op->operands[i]];
	return operands;
}

static const int32_t *map_called(scheduler *s, const sw_op *op)
{
	int32_t *called = SW_NEW_N(&s->arena, int32_t, op->n_called + 1);
	for (uint16_t k = 0; k < op->n_called; k++)
		called[k] = s->computation[op->called[k]];
	return called;
}

/* Ops of `in` that start together: merged collectives of one kind with one operand each, or one
 * collective with any number. */
typedef struct merged_start {
	const sw_id *ops;
	uint32_t n, n_operands;
} merged_start;

static merged_start merged_with(scheduler *s, const sw_tasks *graph, uint32_t start)
{
	merged_start all = {0};
	for (uint32_t t = start; t != SW_NO_TASK; t = graph->tasks[t].next_merged)
		all.n++;
	sw_id *ops = SW_NEW_N(&s->arena, sw_id, all.n);
	for (uint32_t t = start, i = 0; t != SW_NO_TASK; t = graph->tasks[t].next_merged) {
		ops[i++] = graph->tasks[t].op;
		all.n_operands += sw_op_at(s->in, graph->tasks[t].op)->n_operands;
	}
	all.ops = ops;
	return all;
}

static sw_status write_merged(scheduler *s, int32_t c, merged_start all, const sw_id *operands,
                              sw_id *first)
{
	const sw_op *op = sw_op_at(s->in, all.ops[0]);
	sw_op_spec spec = {.opcode = (sw_opcode)op->opcode,
	                   .name = op->name,
	                   .operands = operands,
	                   .n_operands = all.n_operands,
	                   .called = map_called(s, op),
	                   .n_called = op->n_called,
	                   .attrs = sw_build_copy_attrs(s->out, op),
	                   .tuple = true,
	                   .op_name = op->op_name,
	                   .line = op->line};
	return sw_build_op(s->out, c, &spec, first, s->err);
}

/* Write the computation that an async-start calls: parameters, and the collective on them. */
static sw_status write_async_computation(scheduler *s, merged_start all, int32_t *computation)
{
	const sw_op *op = sw_op_at(s->in, all.ops[0]);
	sw_id *parameters = SW_NEW_N(&s->arena, sw_id, all.n_operands), first, *results;
	int32_t c = *computation =
		sw_build_computation(s->out, sw_arena_printf(&s->arena, "async_%s", op->name));
	for (uint32_t i = 0, n = 0; i < all.n; i++) {
		const sw_op *one = sw_op_at(s->in, all.ops[i]);
		for (uint32_t k = 0; k < one->n_operands; k++)
			parameters[n++] = sw_emit_parameter(
				s->out, c, sw_value_shape(s->in, one->operands[k]), NULL);
	}
	sw_status status = SW_OK;
	if (all.n > 1)
		status = write_merged(s, c, all, parameters, &first);
	else
		first = sw_build_copy_op(s->out, c, s->in, all.ops[0], parameters,
		                         map_called(s, op));
	if (status != SW_OK)
		return status;
	uint32_t n_results = all.n > 1 ? all.n : op->n_results;
	results = SW_NEW_N(&s->arena, sw_id, n_results);
	for (uint32_t r = 0; r < n_results; r++)
		results[r] = first + r;
	sw_build_results(s->out, c, results, n_results, all.n > 1 || op->tuple);
	return SW_OK;
}

/* Write one half of a collective that is one op in the program. */
static sw_status build_half(scheduler *s, int32_t c, const sw_op *op, const char *name,
                            sw_op_spec *spec, sw_id *first)
{
	spec->name = sw_arena_printf(&s->arena, "%s.%s", op->name, name);
	spec->op_name = op->op_name;
	spec->line = op->line;
	return sw_build_op(s->out, c, spec, first, s->err);
}

static sw_status write_start(scheduler *s, int32_t c, merged_start all)
{
	int32_t computation;
	sw_id *operands = SW_NEW_N(&s->arena, sw_id, all.n_operands + 1), first;
	for (uint32_t i = 0, n = 0; i < all.n; i++) {
		const sw_op *op = sw_op_at(s->in, all.ops[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			operands[n++] = s->value[op->operands[k]];
	}
	sw_status status = write_async_computation(s, all, &computation);
	if (status != SW_OK)
		return status;
	sw_op_spec spec = {.opcode = SW_OP_ASYNC_START,
	                   .operands = operands,
	                   .n_operands = all.n_operands,
	                   .called = &computation,
	                   .n_called = 1,
	                   .tuple = true};
	status = build_half(s, c, sw_op_at(s->in, all.ops[0]), "start", &spec, &first);
	for (uint32_t i = 0; status == SW_OK && i < all.n; i++)
		s->op[all.ops[i]] = s->out->values.data[first].op; /* until its done is written */
	return status;
}

static sw_status write_done(scheduler *s, int32_t c, merged_start all)
{
	const sw_op *op = sw_op_at(s->in, all.ops[0]), *start = sw_op_at(s->out, s->op[all.ops[0]]);
	sw_id *operands = SW_NEW_N(&s->arena, sw_id, start->n_results), first;
	for (uint32_t i = 0; i < start->n_results; i++)
		operands[i] = start->first_result + i;
	sw_op_spec spec = {.opcode = SW_OP_ASYNC_DONE,
	                   .operands = operands,
	                   .n_operands = start->n_results,
	                   .tuple = all.n > 1 || op->tuple};
	sw_status status = build_half(s, c, op, "done", &spec, &first);
	for (uint32_t i = 0; status == SW_OK && i < all.n; i++) {
		const sw_op *one = sw_op_at(s->in, all.ops[i]);
		s->op[all.ops[i]] = s->out->values.data[first].op;
		for (uint32_t r = 0; r < one->n_results; r++)
			s->value[one->first_result + r] = first++;
	}
	return status;
}

static sw_status write_op(scheduler *s, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(s->in, id);
	sw_id first =
		sw_build_copy_op(s->out, c, s->in, id, map_operands(s, op), map_called(s, op));
	if (first == SW_NO_ID)
		return sw_fail(s->err, SW_ERR_INTERNAL, "schedule: op '%s' can't be copied",
		               op->name);
	for (uint32_t r = 0; r < op->n_results; r++)
		s->value[op->first_result + r] = first + r;
	s->op[id] = (sw_id)(s->out->ops.len - 1);
	return SW_OK;
}

/* Copy the control predecessors of an op to the op that was written last. */
static void copy_control(scheduler *s, const sw_op *op)
{
	uint32_t n = 0;
	while (op->control && op->control[n] != SW_NO_ID)
		n++;
	if (n == 0)
		return;
	sw_id *control = SW_NEW_N(&s->out->arena, sw_id, n + 1);
	for (uint32_t i = 0; i < n; i++)
		control[i] = s->op[op->control[i]];
	control[n] = SW_NO_ID;
	s->out->ops.data[s->out->ops.len - 1].control = control;
}

/* Write one half of a collective; of merged ones the first writes it for all. */
static sw_status write_half(scheduler *s, int32_t c, const sw_tasks *graph, uint32_t t)
{
	bool starts = graph->tasks[t].kind == SW_TASK_START;
	uint32_t start = starts ? t : graph->tasks[t].partner;
	merged_start all = merged_with(s, graph, start);
	if (!starts)
		return write_done(s, c, all);
	sw_status status = write_start(s, c, all);
	if (status == SW_OK)
		copy_control(s, sw_op_at(s->in, all.ops[0]));
	return status;
}

static sw_status write_task(scheduler *s, int32_t c, const sw_tasks *graph, uint32_t t)
{
	const sw_schedule_task *task = &graph->tasks[t];
	if (task->absorbed)
		return SW_OK;
	if (task->split && task->kind != SW_TASK_BLOCKING)
		return write_half(s, c, graph, t);
	sw_status status = write_op(s, c, task->op);
	if (status == SW_OK)
		copy_control(s, sw_op_at(s->in, task->op));
	return status;
}

static sw_status write_tasks(scheduler *s, const sw_tasks *graph, const uint32_t *order)
{
	const sw_computation *from = &s->in->computations.data[graph->computation];
	int32_t c = sw_build_computation(s->out, from->name);
	sw_status status = SW_OK;
	for (uint32_t t = 0; t < graph->n && status == SW_OK; t++)
		status = write_task(s, c, graph, order[t]);
	if (status != SW_OK)
		return status;
	sw_id *results = SW_NEW_N(&s->arena, sw_id, from->results.len + 1);
	for (size_t i = 0; i < from->results.len; i++)
		results[i] = s->value[from->results.data[i]];
	sw_build_results(s->out, c, results, (uint32_t)from->results.len, from->root_tuple);
	s->out->computations.data[c].extras = sw_build_copy_extras(s->out, from->extras);
	s->computation[graph->computation] = c;
	return SW_OK;
}

/* ---- the walk --------------------------------------------------------------------------- */

static double or_none(double seconds)
{
	return seconds > 0 ? seconds : INFINITY;
}

/* A program that takes longer is not scheduled again to fit into the memory. */
static double lost_s(const sw_schedule_options *options)
{
	return SW_MIN(or_none(options->beaten_s), or_none(options->unmerged_s));
}

static sw_order_rivals rivals_of(const sw_schedule_options *options, double times)
{
	return (sw_order_rivals){or_none(options->beaten_s) / times, or_none(options->unmerged_s) / times};
}

static double trips_of(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE ? (double)SW_MAX(sw_op_trips(op), 1) : 1;
}

static sw_status schedule_computation(scheduler *s, int32_t computation, double times);

/* times: how often the computation that calls them runs. */
static sw_status schedule_callees(scheduler *s, const sw_computation *c, double times)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < c->ops.len && status == SW_OK; i++) {
		const sw_op *op = sw_op_at(s->in, c->ops.data[i]);
		for (uint16_t k = 0; k < op->n_called && status == SW_OK; k++) {
			if (s->computation[op->called[k]] >= 0)
				continue;
			if (sw_runs_computations(op))
				status = schedule_computation(s, op->called[k],
				                              times * trips_of(op));
			else
				sw_build_copy_computation(s->out, s->in, op->called[k],
				                          s->computation);
		}
	}
	return status;
}

/* times: how often a step runs it. */
static sw_status schedule_computation(scheduler *s, int32_t computation, double times)
{
	sw_status status =
		schedule_callees(s, &s->in->computations.data[computation], times);
	if (status != SW_OK)
		return status;
	sw_arena arena;
	sw_arena_init(&arena);
	sw_tasks graph;
	sw_tasks_make(&s->source, computation, &arena, &graph);
	sw_order chosen =
		sw_order_best(s->source.cluster, &graph, s->spare_bytes,
	                      rivals_of(s->options, times), s->options->merge,
	                      limits_of(s->options), &arena);
	sw_tasks_figure(&s->source, chosen.graph, chosen.seconds, chosen.bytes,
	                &s->source.figures[computation]);
	status = write_tasks(s, chosen.graph, chosen.order);
	sw_arena_clear(&arena);
	return status;
}

static void scheduler_init(scheduler *s, const sw_cluster *cluster, uint32_t overlap,
                           int64_t spare_bytes)
{
	sw_arena_init(&s->arena);
	sw_task_source_init(&s->source, cluster, s->in, overlap, &s->arena);
	s->out = sw_program_new(s->in->name);
	s->spare_bytes = (double)spare_bytes;
	s->computation = SW_NEW_N(&s->arena, int32_t, s->in->computations.len + 1);
	memset(s->computation, -1, sizeof(int32_t) * s->in->computations.len);
	s->value = SW_NEW_N(&s->arena, sw_id, s->in->values.len + 1);
	s->op = SW_NEW_N(&s->arena, sw_id, s->in->ops.len + 1);
	sw_build_copy_frame(s->out, s->in);
}

static sw_status schedule_with(const sw_cluster *cluster, const sw_program *local,
                               const sw_schedule_options *options, uint32_t overlap,
                               int64_t spare_bytes, sw_program **scheduled, sw_error *err)
{
	scheduler s = {.in = local, .options = options, .err = err};
	*scheduled = NULL;
	scheduler_init(&s, cluster, overlap, spare_bytes);
	sw_status status = schedule_computation(&s, local->entry, 1);
	s.out->entry = s.computation[local->entry];
#ifdef SW_VERIFY_STAGES
	if (status == SW_OK)
		status = sw_program_verify(s.out, err);
#endif
	sw_arena_clear(&s.arena);
	if (status == SW_OK)
		*scheduled = s.out;
	else
		sw_program_free(s.out);
	return status;
}

/* The spare bytes that a schedule was given, and the bytes that its arena took beyond the
 * program's. */
typedef struct fitting_attempt {
	int64_t spare, taken;
} fitting_attempt;

/* Return the spare bytes of the next attempt. They are interpolated: first in proportion to what
 * was available of what was taken, then along a line through the last two attempts, each time less
 * a safety margin. An arena takes more than it was given, because no buffer is cut in pieces; how
 * much more changes from order to order, so the next attempt gets at least refit_min_share of the
 * last. */
static int64_t next_spare(const sw_schedule_limits *limits, fitting_attempt last,
                          fitting_attempt before, int64_t available, int times)
{
	double spare = (double)last.spare, over = (double)(last.taken - available);
	double slope =
		times > 0 && before.spare > last.spare
			? (double)(before.taken - last.taken) / (double)(before.spare - last.spare)
			: 0;
	double max = limits->refit_share * spare;
	double next = slope > 0 ? spare - over / (limits->refit_share * slope)
	                        : max * (double)available / (double)last.taken;
	return (int64_t)(times < (int64_t)limits->max_refits
	                         ? SW_MIN(SW_MAX(next, limits->refit_min_share * spare), max)
	                         : limits->refit_last_share * spare);
}

/* Between the spare bytes of the first schedule that fits and those of the last that did not lie
 * others that may fit and be quicker: an attempt at half of the way, and another half of what is
 * left. *scheduled is replaced where that is so. */
static sw_status refit_between(const sw_cluster *cluster, const sw_program *local,
                               const sw_schedule_options *options, int64_t limit, int64_t fits,
                               int64_t exceeds, sw_program **scheduled, sw_error *err)
{
	double best_s = sw_schedule_seconds(cluster, *scheduled);
	for (int k = 0; k < 2 && exceeds > fits + 1; k++) {
		sw_program *other;
		int64_t spare = fits + (exceeds - fits) / 2;
		SW_TRY(schedule_with(cluster, local, options, options->overlap, spare, &other, err));
		bool within = sw_placement_bytes_near(other, limit) <= limit;
		double seconds = within ? sw_schedule_seconds(cluster, other) : INFINITY;
		*(within ? &fits : &exceeds) = spare;
		sw_program_free(seconds < best_s ? *scheduled : other);
		*scheduled = seconds < best_s ? other : *scheduled;
		best_s = fmin(seconds, best_s);
	}
	return SW_OK;
}

/* What an order may take beyond the program's own memory: what there is. An eager framework has no more
 * than the buffer of one collective that runs beside kernels. */
static int64_t spare_bytes_of(const sw_cluster *cluster, const sw_program *local, int64_t available)
{
	int64_t most = 0, bytes;
	sw_collective_kind kind;
	uint32_t atoms;
	if (!sw_library_is_eager(cluster->device.collectives))
		return available;
	for (sw_id id = 0; id < local->ops.len; id++) {
		const sw_op *op = sw_op_at(local, id);
		if (!sw_cost_collective_op(cluster, local, id, &kind, &atoms, &bytes))
			continue;
		for (uint32_t r = 0; r < op->n_results; r++)
			bytes = SW_MAX(bytes, sw_shape_bytes(sw_value_shape(local, op->first_result + r)));
		most = SW_MAX(most, bytes);
	}
	return SW_MIN(most, available);
}

/* The order search counts the bytes of live values, but the arena is what must fit. A program that
 * fits keeps fitting: schedule again with less spare memory; then with orders that must hold less
 * than the program's own; in the end without overlap. */
sw_status sw_schedule(const sw_cluster *cluster, const sw_program *local,
                      const sw_schedule_options *options, sw_program **scheduled, sw_error *err)
{
	int64_t limit =
		options->memory_bytes ? options->memory_bytes : sw_cost_memory_bytes(&cluster->device);
	int64_t needed = options->arena_bytes ? options->arena_bytes : sw_placement_bytes(local);
	int64_t available = spare_bytes_of(cluster, local, SW_MAX(limit - needed, 0)),
		spare = available;
	fitting_attempt last = {0}, before;
	uint32_t overlap = options->overlap;
	sw_status status = schedule_with(cluster, local, options, overlap, spare, scheduled, err);
	if (status == SW_OK && sw_schedule_seconds(cluster, *scheduled) > lost_s(options))
		return SW_OK;
	for (int times = 0; status == SW_OK && overlap && needed <= limit; times++) {
		int64_t bytes = sw_placement_bytes_near(*scheduled, limit);
		if (bytes <= limit)
			break;
		overlap = spare >= 0 ? overlap : 0;
		before = last;
		last = (fitting_attempt){spare, bytes - needed};
		spare = spare > 0 ? next_spare(limits_of(options), last, before, available, times)
		                  : -1;
		sw_program_free(*scheduled);
		status = schedule_with(cluster, local, options, overlap, spare, scheduled, err);
	}
	if (status == SW_OK && overlap && spare >= 0 && last.spare > spare)
		status = refit_between(cluster, local, options, limit, spare, last.spare, scheduled,
		                       err);
	if (status != SW_OK && *scheduled) {
		sw_program_free(*scheduled);
		*scheduled = NULL;
	}
	return status;
}
