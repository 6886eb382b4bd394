/* The times of a program in its present order, by the model of two streams; and the lower bound of
 * all its orders. */
#include "schedule/internal.h"

typedef struct program_timer {
	sw_task_source source;
	sw_arena arena;
	bool *seen;    /* per computation */
	bool bound;    /* bound every order instead of timing this one */
	sw_text *text; /* NULL: nothing is printed */
} program_timer;

static const char *stream_of(const sw_schedule_task *task)
{
	static const char *const names[] = {
		[SW_TASK_KERNEL] = "kernels",
		[SW_TASK_BLOCKING] = "both",
		[SW_TASK_START] = "collectives",
		[SW_TASK_DONE] = "waits",
	};
	return names[task->kind];
}

static void add_time(sw_table *table, double seconds)
{
	sw_table_cell(table, "%.3f", seconds * 1e6);
}

/* Print a line per task; kernels that take no time are left out. */
static void print_spans(const program_timer *w, const sw_tasks *graph, const sw_stream_span *spans)
{
	static const char *const headings[] = {"op", "stream", "begin us", "end us"};
	const sw_program *program = w->source.program;
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_schedule_task *task = &graph->tasks[t];
		if (task->kind == SW_TASK_KERNEL && spans[t].end_s <= spans[t].begin_s)
			continue;
		sw_table_cell(&table, "%s", sw_op_at(program, task->op)->name);
		sw_table_cell(&table, "%s", stream_of(task));
		add_time(&table, spans[t].begin_s);
		add_time(&table, spans[t].end_s);
	}
	sw_text_addf(w->text, "%s:\n", program->computations.data[graph->computation].name);
	sw_table_add_to(&table, w->text);
	sw_text_add(w->text, "\n");
	sw_table_clear(&table);
}

static double play_as_it_stands(const program_timer *w, const sw_tasks *graph, sw_arena *arena)
{
	uint32_t *order = SW_NEW_N(arena, uint32_t, graph->n + 1);
	for (uint32_t t = 0; t < graph->n; t++)
		order[t] = t;
	sw_stream_span *spans = SW_NEW_N(arena, sw_stream_span, graph->n + 1);
	double seconds = sw_streams_play(graph, order, 1, spans);
	if (w->text)
		print_spans(w, graph, spans);
	return seconds;
}

static double play(program_timer *w, int32_t computation)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_tasks graph;
	sw_tasks_make(&w->source, computation, &arena, &graph);
	double seconds =
		w->bound ? sw_order_bound(&graph, &arena) : play_as_it_stands(w, &graph, &arena);
	sw_tasks_figure(&w->source, &graph, seconds, 0, &w->source.figures[computation]);
	sw_arena_clear(&arena);
	return seconds;
}

/* Time the callees, then the computation itself. */
static double visit(program_timer *w, int32_t computation)
{
	const sw_computation *c = &w->source.program->computations.data[computation];
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(w->source.program, c->ops.data[i]);
		for (uint16_t k = 0; sw_runs_computations(op) && k < op->n_called; k++)
			if (!w->seen[op->called[k]])
				visit(w, op->called[k]);
	}
	w->seen[computation] = true;
	return play(w, computation);
}

static double time_program(const sw_cluster *cluster, const sw_program *program, uint32_t overlap,
                           program_timer w)
{
	sw_arena_init(&w.arena);
	sw_task_source_init(&w.source, cluster, program, overlap, &w.arena);
	w.seen = SW_NEW_N(&w.arena, bool, program->computations.len + 1);
	double seconds = visit(&w, program->entry);
	sw_arena_clear(&w.arena);
	return seconds;
}

double sw_schedule_seconds(const sw_cluster *cluster, const sw_program *scheduled)
{
	return time_program(cluster, scheduled, 0, (program_timer){0});
}

double sw_schedule_bound_seconds(const sw_cluster *cluster, const sw_program *local,
                                 uint32_t overlap)
{
	return time_program(cluster, local, overlap, (program_timer){.bound = true});
}

void sw_schedule_print_times(const sw_cluster *cluster, const sw_program *scheduled, sw_text *text)
{
	time_program(cluster, scheduled, 0, (program_timer){.text = text});
}
