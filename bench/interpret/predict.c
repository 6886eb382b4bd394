/*
 * The prediction of sw_cost_op for every op that a step executes, compared with the time that the
 * interpreter takes for it.
 *
 * The interpreter runs as `run` does: all tensors in one arena, inputs in their buffers before the
 * step begins, and as many BLAS threads as a rank alone would have, which are those that `calibrate
 * --ranks 1` measured with. The step is the median of several; each op (in a loop: all of its
 * iterations together) is the median over the same steps.
 */
#include "predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"
#define WORST 12
enum { STEPS = 15 };

typedef struct watch {
	size_t n_ops;
	int step;
	double *seconds; /* [op][STEPS] */
	int64_t *times;  /* [op]: in the last step */
} watch;

typedef struct subject {
	sw_program *program;
	sw_tensor_file file;
	sw_placement *placement;
	sw_interpreter *interpreter;
	watch watch;
	double step_s[STEPS];
	bool *counted; /* [op]: reached through regions, not applied by another op */
} subject;

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static double median(const double *values, int n)
{
	double sorted[STEPS > 128 ? STEPS : 128];
	memcpy(sorted, values, (size_t)n * sizeof(double));
	qsort(sorted, (size_t)n, sizeof(double), by_value);
	return n ? sorted[n / 2] : 0;
}

/* ---- measuring -------------------------------------------------------------------------- */

static void on_op(void *context, sw_id op, double begin_s, double end_s)
{
	watch *w = context;
	w->seconds[op * STEPS + (size_t)w->step] += end_s - begin_s;
	w->times[op]++;
}

static sw_status place_inputs(subject *s, uint32_t n, sw_tensor *inputs, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < n && status == SW_OK; i++) {
		char name[32];
		snprintf(name, sizeof name, "input.%u", i);
		const sw_tensor *recorded = sw_tensor_file_get(&s->file, name);
		status = sw_interpreter_input(s->interpreter, i, &inputs[i], err);
		if (status == SW_OK && recorded)
			memcpy(sw_tensor_data(inputs[i]), sw_tensor_data(*recorded),
			       recorded->buffer->bytes);
	}
	return status;
}

static sw_status step(subject *s, double *seconds, sw_error *err)
{
	sw_arena arena;
	const sw_id *values;
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(s->program, s->program->entry, &arena, &values),
		 n_outputs = (uint32_t)sw_entry(s->program)->results.len;
	sw_tensor *inputs = SW_NEW_N(&arena, sw_tensor, n + 1),
		  *outputs = SW_NEW_N(&arena, sw_tensor, n_outputs + 1);
	memset(s->watch.times, 0, s->watch.n_ops * sizeof(int64_t));
	sw_status status = place_inputs(s, n, inputs, err);
	double begin = sw_now_s();
	if (status == SW_OK)
		status = sw_interpret(s->interpreter, inputs, n, outputs, n_outputs, err);
	*seconds = sw_now_s() - begin;
	for (uint32_t i = 0; i < n_outputs && status == SW_OK; i++)
		sw_tensor_drop(&outputs[i]);
	sw_arena_clear(&arena);
	return status;
}

static sw_status measure(subject *s, sw_error *err)
{
	watch *w = &s->watch;
	sw_interpret_options options = {
		.blas_threads = sw_cpu_count(), .timing = on_op, .timing_context = w};
	w->n_ops = s->program->ops.len;
	w->seconds = calloc(w->n_ops * STEPS + 1, sizeof(double));
	w->times = calloc(w->n_ops + 1, sizeof(int64_t));
	options.placement = s->placement = sw_placement_new(s->program);
	sw_status status = sw_interpreter_new(s->program, &options, &s->interpreter, err);
	for (int i = -2; i < STEPS && status == SW_OK; i++) {
		w->step = SW_MAX(i, 0);
		if (i == 0)
			memset(w->seconds, 0, w->n_ops * STEPS * sizeof(double));
		status = step(s, &s->step_s[w->step], err);
	}
	return status;
}

static void mark(subject *s, int32_t computation)
{
	const sw_computation *c = &s->program->computations.data[computation];
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(s->program, c->ops.data[i]);
		s->counted[c->ops.data[i]] = true;
		bool is_region = op->opcode == SW_OP_WHILE || op->opcode == SW_OP_CONDITIONAL ||
		                 op->opcode == SW_OP_CALL || op->opcode == SW_OP_FUSION;
		for (uint32_t k = 0; is_region && k < op->n_called; k++)
			mark(s, op->called[k]);
	}
}

static sw_status open_subject(const char *name, subject *s, sw_error *err)
{
	char path[512];
	snprintf(path, sizeof path, PROGRAMS "%s.hlo.gz", name);
	sw_status status = sw_read_program(path, &s->program, err);
	snprintf(path, sizeof path, PROGRAMS "%s.recorded.safetensors.gz", name);
	if (status == SW_OK)
		status = sw_tensor_file_read(path, &s->file, err);
	if (status == SW_OK)
		status = measure(s, err);
	if (status == SW_OK) {
		s->counted = calloc(s->program->ops.len + 1, sizeof(bool));
		mark(s, s->program->entry);
	}
	return status;
}

static void close_subject(subject *s)
{
	sw_interpreter_free(s->interpreter);
	sw_placement_free(s->placement);
	sw_tensor_file_clear(&s->file);
	if (s->program)
		sw_program_free(s->program);
	free(s->watch.seconds);
	free(s->watch.times);
	free(s->counted);
}

/* ---- telling ---------------------------------------------------------------------------- */

static double measured_s(const subject *s, sw_id op)
{
	return median(s->watch.seconds + op * STEPS, STEPS);
}

static double predicted_s(const subject *s, const sw_cluster *cluster, sw_id op)
{
	return (double)s->watch.times[op] * sw_cost_op(cluster, s->program, op);
}

static void tell_families(const subject *s, const sw_cluster *cluster, sw_table *table)
{
	double measured[SW_FAMILY_COUNT + 1] = {0}, predicted[SW_FAMILY_COUNT + 1] = {0};
	for (sw_id op = 0; op < s->program->ops.len; op++) {
		if (!s->counted[op])
			continue;
		sw_family family = sw_cost_family(s->program, op);
		measured[family] += measured_s(s, op);
		predicted[family] += predicted_s(s, cluster, op);
	}
	for (int f = 0; f <= SW_FAMILY_COUNT; f++) {
		if (measured[f] > 0.5e-6)
			sw_table_cell(table, "%.3f/%.3f", predicted[f] * 1e3, measured[f] * 1e3);
		else
			sw_table_cell(table, "-");
	}
}

typedef struct kind {
	sw_opcode opcode;
	char what[160];
	int64_t times;
	double measured, predicted;
} kind;
typedef SW_VEC(kind) kind_list;

static void describe(const sw_program *program, const sw_op *op, char *what, size_t size)
{
	sw_text text = {0};
	sw_text_addf(&text, "%s", sw_opcode_name((sw_opcode)op->opcode));
	for (uint32_t i = 0; i <= op->n_operands && i < 4; i++) {
		sw_shape shape =
			sw_value_shape(program, i == SW_MIN(op->n_operands, 3) ? op->first_result
		                                                               : op->operands[i]);
		sw_text_addf(&text, " %s[", sw_type_name(shape.type));
		for (int d = 0; d < shape.rank; d++)
			sw_text_addf(&text, "%s%lld", d ? "," : "", (long long)shape.dims[d]);
		sw_text_addf(&text, "]");
	}
	snprintf(what, size, "%s", text.data);
	sw_text_clear(&text);
}

static int furthest_first(const void *x, const void *y)
{
	const kind *a = x, *b = y;
	double da = fabs(a->measured - a->predicted), db = fabs(b->measured - b->predicted);
	return (da < db) - (da > db);
}

static void tell_opcodes(const subject *s, const sw_cluster *cluster)
{
	kind_list kinds = {0};
	for (sw_id id = 0; id < s->program->ops.len; id++) {
		kind new = {.times = s->watch.times[id]};
		size_t k = 0;
		if (!s->counted[id] || !new.times)
			continue;
		describe(s->program, sw_op_at(s->program, id), new.what, sizeof new.what);
		while (k < kinds.len && strcmp(kinds.data[k].what, new.what) != 0)
			k++;
		if (k == kinds.len)
			sw_vec_push(&kinds, new);
		else
			kinds.data[k].times += new.times;
		kinds.data[k].measured += measured_s(s, id);
		kinds.data[k].predicted += predicted_s(s, cluster, id);
	}
	qsort(kinds.data, kinds.len, sizeof(kind), furthest_first);
	for (size_t k = 0; k < SW_MIN(kinds.len, (size_t)WORST); k++)
		printf("    %9.1f us predicted, %9.1f measured, %4lld times  %s\n",
		       kinds.data[k].predicted * 1e6, kinds.data[k].measured * 1e6,
		       (long long)kinds.data[k].times, kinds.data[k].what);
	sw_vec_clear(&kinds);
}

static double tell(const char *name, const subject *s, const sw_cluster *cluster, bool by_opcode,
                   sw_table *table)
{
	double measured = median(s->step_s, STEPS), predicted = 0;
	for (sw_id op = 0; op < s->program->ops.len; op++)
		predicted += s->counted[op] ? predicted_s(s, cluster, op) : 0;
	sw_table_cell(table, "%s", name);
	sw_table_cell(table, "%.3f", predicted * 1e3);
	sw_table_cell(table, "%.3f", measured * 1e3);
	sw_table_cell(table, "%.2f", predicted / measured);
	tell_families(s, cluster, table);
	if (by_opcode) {
		printf("%s: %.3f ms predicted, %.3f measured\n", name, predicted * 1e3,
		       measured * 1e3);
		tell_opcodes(s, cluster);
	}
	return predicted / measured;
}

sw_status predict_fixtures(const char *cluster_file, const char *const *names, int n_names,
                           bool by_opcode, sw_error *err)
{
	static const char *const headings[] = {
		"fixture",     "predicted",      "measured ms", "ratio", "matmul",  "convolution",
		"elementwise", "transcendental", "reduce",      "move",  "indexed", "none"};
	double *errors = calloc((size_t)n_names + 1, sizeof(double)), worst = 1;
	sw_cluster cluster;
	sw_table table;
	sw_text text = {0};
	sw_status status = sw_cluster_read(cluster_file, &cluster, err);
	bool has_cluster = status == SW_OK;
	sw_table_init(&table, (int)SW_COUNT(headings), headings);
	for (int i = 0; i < n_names && status == SW_OK; i++) {
		subject s = {0};
		status = open_subject(names[i], &s, err);
		if (status == SW_OK) {
			double ratio = tell(names[i], &s, &cluster, by_opcode, &table);
			errors[i] = fabs(ratio - 1);
			worst = fmax(worst, fmax(ratio, 1 / ratio));
		}
		close_subject(&s);
	}
	if (status == SW_OK) {
		qsort(errors, (size_t)n_names, sizeof(double), by_value);
		sw_table_add_to(&table, &text);
		printf("%smedian error %.1f %%; furthest off by %.2f times\n", text.data,
		       100 * errors[n_names / 2], worst);
	}
	if (has_cluster)
		sw_cluster_clear(&cluster);
	sw_text_clear(&text);
	sw_table_clear(&table);
	free(errors);
	return status;
}
