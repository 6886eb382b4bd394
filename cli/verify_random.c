/* verify PROGRAM --ranks N --random K: random assignments of layouts, each verified as a plan
 * is. */
#include "cli.h"

#include <math.h>
#include <string.h>
#include "model/model.h"

#define MAX_RANKS 256 /* each rank is a thread */

/* Make a cluster of N equal devices on one level. Its figures decide which of several
 * redistribution paths is taken. */
static sw_status make_cluster(int64_t devices, sw_cluster *cluster, sw_error *err)
{
	sw_text text = {0};
	sw_text_addf(&text,
	             "version: 1\n"
	             "name: %lld-ranks\n"
	             "levels:\n"
	             "  - {name: device, count: %lld, latency: 10 us, bandwidth: 10 GB/s}\n"
	             "device:\n"
	             "  name: thread\n"
	             "  memory: 1 TiB\n"
	             "  memory_bandwidth: 10 GB/s\n"
	             "  kernel_overhead: 1 us\n"
	             "  matmul_efficiency: 1\n"
	             "  flops: {f32: 100 GFLOP/s}\n",
	             (long long)devices, (long long)devices);
	sw_status status = sw_cluster_parse(text.data, text.len, "--ranks", cluster, err);
	sw_text_clear(&text);
	return status;
}

typedef struct verify_tally {
	int64_t done, failed, payload_bytes;
	double max_rel_error;
	sw_table table;
	json_t *failures;
} verify_tally;

static void tally_init(verify_tally *t)
{
	static const char *const headings[] = {"seed", "what is wrong"};
	*t = (verify_tally){.failures = json_array()};
	sw_table_init(&t->table, SW_COUNT(headings), headings);
}

/* Describe the worst output, or the payload. */
static void describe_failure(const sw_verify_result *result, sw_text *text)
{
	const sw_verify_row *worst = NULL;
	int64_t wrong = 0;
	for (size_t i = 0; i < result->rows.len; i++) {
		const sw_verify_row *row = &result->rows.data[i];
		wrong += !row->ok;
		if (!row->ok && (!worst || row->relative > worst->relative))
			worst = row;
	}
	if (worst && worst->relative <= worst->tolerance)
		sw_text_addf(text,
		             "%lld elements are NaN or infinite in the serial run too, and were "
		             "not compared",
		             (long long)result->not_compared);
	else if (worst)
		sw_text_addf(text, "%lld of %zu outputs; '%s' is off by %.1e %s, allowed are %.1e",
		             (long long)wrong, result->rows.len, worst->name, worst->relative,
		             worst->in_lr_units ? "lr" : "in norm", worst->tolerance);
	else
		sw_text_addf(text, "%lld bytes sent, %lld predicted",
		             (long long)result->payload_bytes,
		             (long long)result->predicted_payload_bytes);
}

static void add_failure(verify_tally *t, int64_t seed, const char *what)
{
	t->failed++;
	sw_table_cell(&t->table, "%lld", (long long)seed);
	sw_table_cell(&t->table, "%s", what);
	json_array_append_new(t->failures,
	                      json_pack("{s:I, s:s}", "seed", (json_int_t)seed, "what", what));
}

static void add_result(verify_tally *t, int64_t seed, const sw_verify_result *result)
{
	sw_text what = {0};
	t->max_rel_error = fmax(t->max_rel_error, result->max_rel_error);
	t->payload_bytes = SW_MAX(t->payload_bytes, result->payload_bytes);
	if (!result->ok) {
		describe_failure(result, &what);
		add_failure(t, seed, what.data);
	}
	sw_text_clear(&what);
}

/* Write the plan to DIR/SEED.plan, if --save names DIR. */
static sw_status save_plan(cli *c, const sw_plan *plan, int64_t seed, sw_error *err)
{
	if (!c->values.save)
		return SW_OK;
	const char *path =
		sw_arena_printf(&c->arena, "%s/%lld.plan", c->values.save, (long long)seed);
	return sw_plan_write(plan, path, err);
}

/* An assignment that can't be partitioned or run counts as a failure, as one that gives other
 * results does; other errors end the command. */
static sw_status verify_one(cli *c, const sw_program *program, const sw_sidecar *sidecar,
                            const sw_cluster *cluster, int64_t seed, verify_tally *t, sw_error *err)
{
	sw_plan *plan;
	sw_verify_result result = {0};
	sw_status status =
		sw_plan_random(program, c->argument, cluster, (uint64_t)seed, false, &plan, err);
	if (status == SW_OK)
		status = sw_partition_measure(plan, &plan->predicted, err);
	if (status == SW_OK)
		status = save_plan(c, plan, seed, err);
	if (status == SW_OK)
		status = sw_run_verify(plan, sidecar, (uint64_t)seed, &result, err);
	if (status == SW_OK)
		status = sw_verify_allow_noise(sw_plan_serial(plan), sidecar, (uint64_t)seed, &result,
		                               err);
	if (status == SW_OK && c->values.allow_nan)
		sw_verify_allow_nan(&result);
	if (status == SW_OK)
		add_result(t, seed, &result);
	else if (status == SW_ERR_INTERNAL)
		add_failure(t, seed, err->message);
	sw_verify_result_clear(&result);
	sw_plan_free(plan);
	t->done++;
	return status == SW_ERR_INTERNAL ? SW_OK : status;
}

static sw_status report_totals(cli *c, verify_tally *t, sw_error *err)
{
	sw_text text = {0};
	if (t->failed) {
		sw_table_add_to(&t->table, &text);
		sw_text_add(&text, "\n");
	}
	sw_text_addf(&text,
	             "%lld random assignments on %lld ranks: %lld equal, %lld not; largest "
	             "relative error %.1e\n",
	             (long long)t->done, (long long)c->values.ranks,
	             (long long)(t->done - t->failed), (long long)t->failed, t->max_rel_error);
	c->result = json_pack("{s:b, s:I, s:I, s:o, s:I, s:O}", "ok", t->failed == 0, "assignments",
	                      (json_int_t)t->done, "failed", (json_int_t)t->failed, "max_rel_error",
	                      cli_json_real(t->max_rel_error), "payload_bytes",
	                      (json_int_t)t->payload_bytes, "failures", t->failures);
	cli_print(c, &text);
	if (!t->failed)
		return SW_OK;
	return sw_fail_at(err, SW_NO, c->argument, 0, 0,
	                  "%lld of %lld random assignments do not give what one device gives",
	                  (long long)t->failed, (long long)t->done);
}

static sw_status verify_all(cli *c, const sw_program *program, const sw_sidecar *sidecar,
                            const sw_cluster *cluster, sw_error *err)
{
	verify_tally t;
	sw_progress progress;
	sw_status status = SW_OK;
	tally_init(&t);
	sw_progress_start(&progress, "verifying", c->values.quiet);
	for (int64_t i = 0; i < c->values.random && status == SW_OK; i++) {
		status = verify_one(c, program, sidecar, cluster, c->values.seed + i, &t, err);
		sw_progress_update(&progress, (double)(i + 1) / (double)c->values.random,
		                   "%lld not equal", (long long)t.failed);
	}
	sw_progress_end(&progress);
	if (status == SW_OK)
		status = report_totals(c, &t, err);
	sw_table_clear(&t.table);
	json_decref(t.failures);
	return status;
}

static sw_status check_options(const cli *c, sw_error *err)
{
	if (c->values.ranks < 1 || c->values.ranks > MAX_RANKS)
		return sw_fail(err, SW_ERR_INPUT, "--random K: add --ranks N, 1 to %d", MAX_RANKS);
	return SW_OK;
}

sw_status cli_verify_random(cli *c, sw_error *err)
{
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_status status = check_options(c, err);
	if (status == SW_OK)
		status = cli_load_program(c->argument, &program, &sidecar, err);
	if (status != SW_OK)
		return status;
	status = make_cluster(c->values.ranks, &cluster, err);
	if (status == SW_OK) {
		status = verify_all(c, program, &sidecar, &cluster, err);
		sw_cluster_clear(&cluster);
	}
	sw_program_free(program);
	sw_sidecar_clear(&sidecar);
	return status;
}
