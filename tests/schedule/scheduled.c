#include "schedule/scheduled.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s (%s)", err->file, err->line, err->column, err->message,
		         sw_status_name(status));
}

/* ---- opening ---------------------------------------------------------------------------- */

void open_local(const char *hlo, scheduled *s)
{
	static const char cluster[] =
		"version: 1\nname: four\nlevels:\n"
		"  - {name: device, count: 4, latency: 0 us, bandwidth: 1 GB/s}\n"
		"device:\n  name: even\n  memory: 1 GiB\n  memory_bandwidth: 100 GB/s\n"
		"  kernel_overhead: 10 us\n  matmul_efficiency: 1\n  flops: {f32: 100 TFLOP/s}\n";
	sw_error err = {0};
	*s = (scheduled){0};
	check(sw_cluster_parse(cluster, strlen(cluster), "four.yaml", &s->cluster, &err), &err);
	check(sw_read_hlo(hlo, strlen(hlo), "test.hlo", &s->local, &err), &err);
}

static bool open_planned(const char *name, const char *cluster, const char *strategy,
                         const char *remat, int32_t microbatches, bool op_by_op, scheduled *s)
{
	char path[512];
	sw_error err = {0};
	sw_plan_options options = {
		.no_overlap = true, .remat = remat, .microbatches = microbatches, .quiet = true};
	*s = (scheduled){.planned = true};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s.yaml", cluster);
	check(sw_cluster_read(path, &s->cluster, &err), &err);
	if (op_by_op)
		s->cluster.device.fusion = SW_FUSION_NONE;
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", name);
	check(sw_read_program(path, &s->program, &err), &err);
	check(sw_sidecar_find(path, s->program, &s->sidecar, &err), &err);
	check(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	sw_status status =
		sw_plan_make(s->program, path, &s->sidecar, &s->cluster, &options, &s->plan, &err);
	if (status == SW_NO)
		return false;
	check(status, &err);
	check(sw_partition(s->plan, &s->local, &err), &err);
	return true;
}

bool open_fixture(const char *name, const char *cluster, const char *strategy, scheduled *s)
{
	return open_planned(name, cluster, strategy, NULL, 0, false, s);
}

bool open_op_by_op(const char *name, const char *cluster, const char *strategy, const char *remat,
                   int32_t microbatches, scheduled *s)
{
	return open_planned(name, cluster, strategy, remat, microbatches, true, s);
}

void close_scheduled(scheduled *s)
{
	sw_program_free(s->scheduled);
	sw_program_free(s->local);
	sw_plan_free(s->plan);
	if (s->planned)
		sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	sw_cluster_clear(&s->cluster);
}

/* ---- checks of every schedule ----------------------------------------------------------- */

static void check_reads_back(const sw_program *program)
{
	sw_text text = {0};
	sw_program *again;
	sw_error err = {0};
	sw_program_print(program, &text);
	check(sw_read_hlo(text.data, text.len, "scheduled.hlo", &again, &err), &err);
	if (!sw_program_equal(program, again, &err))
		fail_msg("the printed schedule reads back as another program: %s", err.message);
	sw_program_free(again);
	sw_text_clear(&text);
}

static void check_costs(const scheduled *s, uint32_t overlap)
{
	sw_program_cost before, after;
	sw_cost_program(&s->cluster, s->local, &before);
	sw_cost_program(&s->cluster, s->scheduled, &after);
	assert_int_equal(before.payload_bytes, after.payload_bytes);
	assert_true(after.collectives <= before.collectives); /* small ones are merged */
	assert_true(fabs(before.compute_s - after.compute_s) <= 1e-9 * before.compute_s);
	assert_true(after.communication_s <= before.communication_s * (1 + 1e-9));
	double seconds = sw_schedule_seconds(&s->cluster, s->scheduled);
	assert_true(seconds <= sw_schedule_seconds(&s->cluster, s->local) * (1 + 1e-9));
	assert_true(seconds >= fmax(after.compute_s, after.communication_s) * (1 - 1e-9));
	if (after.collectives == before.collectives)
		assert_true(seconds >=
		            sw_schedule_bound_seconds(&s->cluster, s->local, overlap) * (1 - 1e-9));
}

void schedule(scheduled *s, const char *overlap, int64_t memory_bytes)
{
	sw_error err = {0};
	sw_schedule_options options = {.memory_bytes = memory_bytes};
	sw_program_free(s->scheduled);
	check(sw_overlap_parse(overlap, &options.overlap, &err), &err);
	check(sw_schedule(&s->cluster, s->local, &options, &s->scheduled, &err), &err);
	check(sw_program_verify(s->scheduled, &err), &err);
	check_reads_back(s->scheduled);
	check_costs(s, options.overlap);
}

/* ---- queries ---------------------------------------------------------------------------- */

void print_order(const sw_program *program, sw_text *text)
{
	const sw_computation *c = sw_entry(program);
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(program, c->ops.data[i]);
		if (op->opcode != SW_OP_PARAMETER && op->opcode != SW_OP_CONSTANT)
			sw_text_addf(text, "%s%s", text->len ? " " : "", op->name);
	}
}

void entry_init(entry *e, const sw_program *program)
{
	const sw_computation *c = sw_entry(program);
	*e = (entry){.program = program};
	sw_arena_init(&e->arena);
	e->place = SW_NEW_N(&e->arena, int32_t, program->ops.len);
	memset(e->place, -1, sizeof(int32_t) * program->ops.len);
	for (size_t i = 0; i < c->ops.len; i++)
		e->place[c->ops.data[i]] = (int32_t)i;
	e->users = sw_program_users(program, &e->arena);
}

void entry_clear(entry *e)
{
	sw_arena_clear(&e->arena);
}

static bool hands_on(const sw_op *op)
{
	return op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_TRANSPOSE ||
	       op->opcode == SW_OP_CONVERT || op->opcode == SW_OP_COPY ||
	       op->opcode == SW_OP_ASYNC_DONE || op->opcode == SW_OP_ASYNC_START ||
	       op->opcode == SW_OP_BITCAST;
}

sw_id maker_of(const entry *e, sw_id start)
{
	sw_id id = start;
	do
		id = e->program->values.data[sw_op_at(e->program, id)->operands[0]].op;
	while (hands_on(sw_op_at(e->program, id)));
	return id;
}

sw_id done_of(const entry *e, sw_id start)
{
	return e->users.ops[e->users.start[sw_op_at(e->program, start)->first_result]];
}

sw_opcode begun_by(const entry *e, sw_id op)
{
	sw_id begun = sw_async_collective(e->program, sw_op_at(e->program, op));
	return begun == SW_NO_ID ? SW_OP_UNKNOWN : (sw_opcode)sw_op_at(e->program, begun)->opcode;
}

double kernels_between_s(const scheduled *s, const entry *e, sw_id from, sw_id to)
{
	const sw_computation *c = sw_entry(e->program);
	double seconds = 0;
	for (int32_t i = e->place[from] + 1; i < e->place[to]; i++)
		seconds += sw_cost_op(&s->cluster, e->program, c->ops.data[i]);
	return seconds;
}

bool leads_to(const entry *e, sw_id op, sw_opcode opcode)
{
	const sw_computation *c = sw_entry(e->program);
	bool *reached = sw_alloc(e->program->ops.len), found = false;
	reached[op] = true;
	for (size_t i = (size_t)e->place[op]; i < c->ops.len && !found; i++) {
		const sw_op *at = sw_op_at(e->program, c->ops.data[i]);
		for (uint32_t r = 0; reached[c->ops.data[i]] && r < at->n_results; r++)
			for (uint32_t u = e->users.start[at->first_result + r];
			     u < e->users.start[at->first_result + r + 1]; u++)
				reached[e->users.ops[u]] = true;
		found = reached[c->ops.data[i]] && c->ops.data[i] != op && at->opcode == opcode;
	}
	free(reached);
	return found;
}
