/*
 * One computation as a graph of tasks. A task is preceded by
 *
 *     the makers of its operands, and the op's control predecessors;
 *     if it is a done: its start;
 *     if its op has effects (random states, feeds, foreign calls): the previous op that has;
 *     if it is the last reader of an operand whose buffer it may reuse: the other readers;
 *     if the plan says so, a start by the starts before it (said_order.c).
 *
 * The last rule keeps a loop's carried value, an updated slice and state in place, as the program
 * has them.
 *
 * A collective reads its operands until it is done.
 */
#include "base/heap.h"
#include "schedule/internal.h"

typedef struct graph_builder {
	const sw_task_source *source;
	const sw_program *program;
	const sw_computation *computation;
	sw_tasks *graph;
	SW_VEC(sw_schedule_task) tasks;
	SW_VEC(sw_task_edge) edges;
} graph_builder;

void sw_task_source_init(sw_task_source *source, const sw_cluster *cluster,
                         const sw_program *program, uint32_t overlap, sw_arena *arena)
{
	*source = (sw_task_source){
		.cluster = cluster,
		.program = program,
		.overlap = overlap,
		.users = sw_program_users(program, arena),
		.maker = SW_NEW_N(arena, uint32_t, program->values.len + 1),
		.task = SW_NEW_N(arena, uint32_t, program->ops.len + 1),
		.figures = SW_NEW_N(arena, sw_region_figures, program->computations.len + 1),
		.buffers = sw_buffers_of(program, arena),
	};
}

/* ---- kinds of ops ----------------------------------------------------------------------- */

static bool is_effect(const sw_op *op)
{
	switch ((sw_opcode)op->opcode) {
	case SW_OP_RNG:
	case SW_OP_RNG_GET_AND_UPDATE_STATE:
	case SW_OP_INFEED:
	case SW_OP_OUTFEED:
	case SW_OP_SEND:
	case SW_OP_SEND_DONE:
	case SW_OP_RECV:
	case SW_OP_RECV_DONE:
	case SW_OP_UNKNOWN:
		return true;
	case SW_OP_CUSTOM_CALL: /* a signature says all that the call does */
		return !op->attrs->custom.signature;
	default:
		return false;
	}
}

static bool has_effect(const graph_builder *b, const sw_op *op)
{
	bool effect = is_effect(op);
	for (uint16_t k = 0; k < op->n_called; k++)
		effect = effect || b->source->figures[op->called[k]].effects;
	return effect;
}

/* Add the computations that the op calls, whose figures are those of one run; of the branches of a
 * conditional the largest figures count. */
static void add_region(const graph_builder *b, const sw_op *op, sw_schedule_task *task)
{
	double trips = (double)sw_op_trips(op);
	for (uint16_t k = 0; k < op->n_called; k++) {
		const sw_region_figures *f = &b->source->figures[op->called[k]];
		double times = op->opcode != SW_OP_WHILE ? 1 : k == 0 ? trips + 1 : trips;
		bool either = op->opcode == SW_OP_CONDITIONAL;
		task->seconds = either ? SW_MAX(task->seconds, f->seconds)
		                       : task->seconds + times * f->seconds;
		task->collective_s = either ? SW_MAX(task->collective_s, f->collective_s)
		                            : task->collective_s + times * f->collective_s;
		task->bytes = SW_MAX(task->bytes, f->bytes);
	}
}

static bool is_whole_collective(const sw_op *op)
{
	switch ((sw_opcode)op->opcode) {
	case SW_OP_ALL_REDUCE:
	case SW_OP_ALL_GATHER:
	case SW_OP_REDUCE_SCATTER:
	case SW_OP_ALL_TO_ALL:
	case SW_OP_RAGGED_ALL_TO_ALL:
	case SW_OP_COLLECTIVE_BROADCAST:
	case SW_OP_COLLECTIVE_PERMUTE:
		return op->n_operands > 0;
	default:
		return false;
	}
}

static sw_task_kind kind_of(const graph_builder *b, sw_id id, bool *split)
{
	const sw_op *op = sw_op_at(b->program, id), *start = NULL;
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
	*split = false;
	if (op->opcode == SW_OP_ASYNC_DONE)
		start = sw_async_start_of(b->program, op);
	if (start)
		return sw_async_collective(b->program, start) == SW_NO_ID ? SW_TASK_KERNEL
		                                                          : SW_TASK_DONE;
	if (!sw_cost_collective_op(b->source->cluster, b->program, id, &kind, &atoms, &bytes))
		return SW_TASK_KERNEL;
	*split = is_whole_collective(op) && (b->source->overlap >> kind & 1);
	return *split || op->opcode == SW_OP_ASYNC_START ? SW_TASK_START : SW_TASK_BLOCKING;
}

/* ---- tasks ------------------------------------------------------------------------------ */

static void add_done(graph_builder *b, sw_id id, uint32_t start, bool split)
{
	uint32_t done = (uint32_t)b->tasks.len;
	sw_vec_push(&b->tasks,
	            ((sw_schedule_task){
			    .op = id, .kind = SW_TASK_DONE, .split = split, .partner = start}));
	b->tasks.data[start].partner = done;
}

static void add_task(graph_builder *b, sw_id id)
{
	const sw_op *op = sw_op_at(b->program, id);
	bool split;
	sw_schedule_task task = {.op = id,
	                         .partner = SW_NO_TASK,
	                         .next_merged = SW_NO_TASK,
	                         .kind = kind_of(b, id, &split)};
	uint32_t number = (uint32_t)b->tasks.len;
	b->source->task[id] = number;
	if (task.kind == SW_TASK_DONE) {
		const sw_op *start = sw_async_start_of(b->program, op);
		add_done(b, id, b->source->task[start - b->program->ops.data], false);
		return;
	}
	task.split = split;
	if (task.kind == SW_TASK_KERNEL) {
		task.seconds = sw_cost_op(b->source->cluster, b->program, id);
		task.bytes = (double)b->source->buffers.workspace_bytes[id];
		add_region(b, op, &task);
	} else {
		task.seconds = sw_cost_collective_op_seconds(b->source->cluster, b->program, id);
	}
	sw_vec_push(&b->tasks, task);
	if (split)
		add_done(b, id, number, true);
}

/* Return the task at whose end the op is complete: of a collective in halves its done. */
static uint32_t end_of(const graph_builder *b, sw_id id)
{
	const sw_schedule_task *task = &b->tasks.data[b->source->task[id]];
	return task->kind == SW_TASK_START && task->split ? task->partner : b->source->task[id];
}

static void add_tasks(graph_builder *b)
{
	for (size_t i = 0; i < b->computation->ops.len; i++) {
		sw_id id = b->computation->ops.data[i];
		add_task(b, id);
		const sw_op *op = sw_op_at(b->program, id);
		for (uint32_t r = 0; r < op->n_results; r++)
			b->source->maker[op->first_result + r] = end_of(b, id);
	}
	/* A start whose done is in no task of this computation blocks. */
	for (size_t t = 0; t < b->tasks.len; t++)
		if (b->tasks.data[t].kind == SW_TASK_START &&
		    b->tasks.data[t].partner == SW_NO_TASK)
			b->tasks.data[t].kind = SW_TASK_BLOCKING;
}

/* ---- edges ------------------------------------------------------------------------------ */

static void add_edge(graph_builder *b, uint32_t from, uint32_t to)
{
	if (from != to)
		sw_vec_push(&b->edges, ((sw_task_edge){from, to}));
}

static bool has_result_like(const graph_builder *b, const sw_op *op, sw_id value)
{
	for (uint32_t r = 0; r < op->n_results; r++)
		if (sw_shape_equal(sw_value_shape(b->program, op->first_result + r),
		                   sw_value_shape(b->program, value)))
			return true;
	return false;
}

/* True if the op may write its result over the value: state, or an op that updates in place. */
static bool may_reuse_buffer(const graph_builder *b, const sw_op *op, sw_id value)
{
	bool state =
		sw_op_at(b->program, b->program->values.data[value].op)->opcode == SW_OP_PARAMETER;
	bool in_place = op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE || op->opcode == SW_OP_SCATTER ||
	                op->opcode == SW_OP_WHILE;
	return (state || in_place) && has_result_like(b, op, value);
}

/* Return the task at whose end the op no longer reads its operands: of a collective its done. */
static uint32_t read_end(const graph_builder *b, sw_id op)
{
	uint32_t task = b->source->task[op];
	const sw_schedule_task *t = &b->tasks.data[task];
	return t->kind == SW_TASK_START ? t->partner : task;
}

/* If the last reader of the value may reuse its buffer, make the others precede it. */
static void add_readers(graph_builder *b, sw_id value)
{
	const sw_users *users = &b->source->users;
	uint32_t begin = users->start[value], end = users->start[value + 1];
	if (end < begin + 2)
		return;
	uint32_t last = b->source->task[users->ops[begin]];
	for (uint32_t i = begin; i < end; i++)
		last = SW_MAX(last, b->source->task[users->ops[i]]);
	if (!may_reuse_buffer(b, sw_op_at(b->program, b->tasks.data[last].op), value))
		return;
	for (uint32_t i = begin; i < end; i++)
		if (b->source->task[users->ops[i]] != last && read_end(b, users->ops[i]) < last)
			add_edge(b, read_end(b, users->ops[i]), last);
}

static void add_op_edges(graph_builder *b, sw_id id, uint32_t *effect)
{
	const sw_op *op = sw_op_at(b->program, id);
	uint32_t task = b->source->task[id];
	for (uint32_t i = 0; i < op->n_operands; i++)
		add_edge(b, b->source->maker[op->operands[i]], task);
	for (const sw_id *c = op->control; c && *c != SW_NO_ID; c++)
		add_edge(b, end_of(b, *c), task);
	for (uint32_t r = 0; r < op->n_results; r++)
		add_readers(b, op->first_result + r);
	if (!has_effect(b, op))
		return;
	if (*effect != SW_NO_TASK)
		add_edge(b, *effect, task);
	*effect = task;
}

static void add_edges(graph_builder *b)
{
	uint32_t effect = SW_NO_TASK;
	for (size_t i = 0; i < b->computation->ops.len; i++)
		add_op_edges(b, b->computation->ops.data[i], &effect);
	for (uint32_t t = 0; t < b->tasks.len; t++)
		if (b->tasks.data[t].kind == SW_TASK_DONE)
			add_edge(b, b->tasks.data[t].partner, t);
}

static sw_task_list list_by(const sw_task_edge *edges, size_t n_edges, uint32_t n, bool forward,
                            sw_arena *arena)
{
	uint32_t *start = SW_NEW_N(arena, uint32_t, n + 2),
		 *tasks = SW_NEW_N(arena, uint32_t, n_edges + 1);
	for (size_t e = 0; e < n_edges; e++)
		start[(forward ? edges[e].from : edges[e].to) + 2]++;
	for (uint32_t t = 2; t < n + 2; t++)
		start[t] += start[t - 1];
	for (size_t e = 0; e < n_edges; e++)
		tasks[start[(forward ? edges[e].from : edges[e].to) + 1]++] =
			forward ? edges[e].to : edges[e].from;
	return (sw_task_list){start, tasks};
}

static void link_by(sw_tasks *graph, const sw_task_edge *edges, size_t n_edges, sw_arena *arena)
{
	graph->before = list_by(edges, n_edges, graph->n, false, arena);
	graph->after = list_by(edges, n_edges, graph->n, true, arena);
}

/* Number the tasks in topological order: of the ready tasks always the one with the smallest old
 * number. */
static const uint32_t *renumber(const sw_tasks *graph, sw_arena *arena)
{
	uint32_t *number = SW_NEW_N(arena, uint32_t, graph->n + 1),
		 *n_unplaced = SW_NEW_N(arena, uint32_t, graph->n + 1);
	sw_heap ready = {0};
	for (uint32_t t = 0; t < graph->n; t++) {
		n_unplaced[t] = graph->before.start[t + 1] - graph->before.start[t];
		if (n_unplaced[t] == 0)
			sw_heap_push(&ready, t, (int32_t)t);
	}
	for (uint32_t next = 0; ready.len; next++) {
		uint32_t t = (uint32_t)sw_heap_pop(&ready).node;
		number[t] = next;
		for (uint32_t i = graph->after.start[t]; i < graph->after.start[t + 1]; i++)
			if (--n_unplaced[graph->after.tasks[i]] == 0)
				sw_heap_push(&ready, graph->after.tasks[i],
				             (int32_t)graph->after.tasks[i]);
	}
	sw_vec_clear(&ready);
	return number;
}

static uint32_t renumbered(const uint32_t *number, uint32_t t)
{
	return t == SW_NO_TASK ? SW_NO_TASK : number[t];
}

static sw_schedule_task *permute(const sw_tasks *graph, const uint32_t *number, sw_arena *arena)
{
	sw_schedule_task *tasks = SW_NEW_N(arena, sw_schedule_task, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++) {
		sw_schedule_task *task = &tasks[number[t]];
		*task = graph->tasks[t];
		task->partner = renumbered(number, task->partner);
		task->next_merged = renumbered(number, task->next_merged);
	}
	return tasks;
}

const uint32_t *sw_tasks_link(sw_tasks *graph, const sw_task_edge *more, size_t n_more,
                              sw_arena *arena)
{
	SW_VEC(sw_task_edge) edges = {0};
	for (uint32_t t = 0; t < graph->n; t++)
		for (uint32_t i = graph->before.start[t]; i < graph->before.start[t + 1]; i++)
			sw_vec_push(&edges, ((sw_task_edge){graph->before.tasks[i], t}));
	for (size_t i = 0; i < n_more; i++)
		sw_vec_push(&edges, more[i]);
	link_by(graph, edges.data, edges.len, arena);
	const uint32_t *number = renumber(graph, arena);
	for (size_t e = 0; e < edges.len; e++)
		edges.data[e] =
			(sw_task_edge){number[edges.data[e].from], number[edges.data[e].to]};
	link_by(graph, edges.data, edges.len, arena);
	graph->tasks = permute(graph, number, arena);
	sw_vec_clear(&edges);
	return number;
}

/* ---- the whole -------------------------------------------------------------------------- */

void sw_tasks_make(const sw_task_source *source, int32_t computation, sw_arena *arena,
                   sw_tasks *graph)
{
	graph_builder b = {.source = source,
	                   .program = source->program,
	                   .computation = &source->program->computations.data[computation],
	                   .graph = graph};
	add_tasks(&b);
	add_edges(&b);
	*graph = (sw_tasks){.program = source->program,
	                    .computation = computation,
	                    .n = (uint32_t)b.tasks.len,
	                    .transfer_share = source->cluster->device.transfer_share,
	                    .buffers = &source->buffers};
	graph->tasks = sw_arena_copy(arena, b.tasks.data, sizeof(sw_schedule_task) * b.tasks.len);
	link_by(graph, b.edges.data, b.edges.len, arena);
	for (uint32_t t = 0; t < graph->n; t++)
		graph->n_starts += graph->tasks[t].kind == SW_TASK_START;
	sw_vec_clear(&b.tasks);
	sw_vec_clear(&b.edges);
}

void sw_tasks_figure(const sw_task_source *source, const sw_tasks *graph, double seconds,
                     double bytes, sw_region_figures *figures)
{
	graph_builder b = {.source = source, .program = source->program};
	double held = 0;
	*figures = (sw_region_figures){.seconds = seconds};
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_schedule_task *task = &graph->tasks[t];
		const sw_op *op = sw_op_at(graph->program, task->op);
		bool collective = task->kind == SW_TASK_START || task->kind == SW_TASK_BLOCKING;
		figures->collective_s += collective ? task->seconds : task->collective_s;
		figures->effects = figures->effects || has_effect(&b, op);
		for (uint32_t r = 0; op->opcode == SW_OP_PARAMETER && r < op->n_results; r++)
			held += (double)sw_shape_bytes(
				sw_value_shape(graph->program, op->first_result + r));
	}
	figures->bytes = SW_MAX(bytes - held, 0);
}
