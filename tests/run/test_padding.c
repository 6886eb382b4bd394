/* Plans with padding: they verify, train as one device does, split dimensions that are not
 * divisible, and are preserved by the plan file. */
#include "fixtures.h"

#include <math.h>
#include <string.h>
#include "explain/explain.h"

/* Its dimensions have hardly any divisors. */
#define ODD SW_SOURCE_DIR "/tests/run/programs/odd.hlo"

static void verify(const fixture *f, const char *what)
{
	sw_verify_result result;
	sw_error err = {0};
	if (sw_run_verify(f->plan, &f->sidecar, 1, &result, &err))
		fail_msg("%s: %s", what, err.message);
	for (size_t i = 0; i < result.rows.len; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s: %s differs by %g, allowed is %g", what,
			         result.rows.data[i].name, result.rows.data[i].relative,
			         result.rows.data[i].tolerance);
	assert_int_equal(result.rows.len, f->sidecar.n_outputs);
	assert_int_equal(result.payload_bytes, result.predicted_payload_bytes);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
}

static int64_t padded_size(const sw_plan *plan, int64_t size)
{
	for (size_t i = 0; i < plan->padded.len; i++)
		if (plan->padded.data[i].size == size)
			return plan->padded.data[i].padded;
	return size;
}

/* Return true if a dimension of this size is split in the result of some dot. */
static bool splits(const sw_plan *plan, int64_t size)
{
	for (sw_id id = 0; id < plan->program->ops.len; id++) {
		const sw_op *op = sw_op_at(plan->program, id);
		sw_shape shape = sw_value_shape(plan->program, op->first_result);
		for (int32_t d = 0; op->opcode == SW_OP_DOT && d < shape.rank; d++)
			if (shape.dims[d] == size &&
			    sw_layout_split_atoms(
				    sw_plan_layout(plan, plan->produced[op->first_result]), d))
				return true;
	}
	return false;
}

static double best_unpadded_s(const sw_plan *plan)
{
	double best = INFINITY;
	for (size_t i = 0; i < plan->alternatives.len; i++)
		if (!strstr(plan->alternatives.data[i].name, "padded") &&
		    plan->alternatives.data[i].feasible)
			best = fmin(best, plan->alternatives.data[i].step_time_s);
	return best;
}

static void padded_plans_verify_on_every_number_of_devices(void **state)
{
	(void)state;
	static const int sizes[] = {2, 3, 4, 8};
	int padded = 0;
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		char megatron[32], what[64];
		snprintf(megatron, sizeof(megatron), "megatron:tp=%d", sizes[i]);
		const char *const strategies[] = {"dp", "zero1", "zero3", megatron, "auto"};
		for (size_t s = 0; s < SW_COUNT(strategies); s++) {
			fixture f;
			fixture_init_slow(&f, ODD, sizes[i], strategies[s]);
			snprintf(what, sizeof(what), "odd on %d, %s", sizes[i], strategies[s]);
			verify(&f, what);
			padded += f.plan->original != NULL;
			assert_true(f.plan->predicted.step_time_s <= best_unpadded_s(f.plan));
			assert_true(f.plan->lower_bound_s <= f.plan->predicted.step_time_s);
			fixture_clear(&f);
		}
	}
	print_message("%d of 20 plans pad\n", padded);
	assert_true(padded >= 8);
}

static void a_batch_of_six_is_split_over_four_as_one_of_eight(void **state)
{
	(void)state;
	fixture f;
	fixture_init_slow(&f, ODD, 4, "dp");
	assert_int_equal(padded_size(f.plan, 6), 8);
	assert_true(splits(f.plan, 8));
	assert_true(f.plan->predicted.step_time_s < best_unpadded_s(f.plan));
	assert_non_null(strstr(f.plan->chosen, "dp, padded"));
	fixture_clear(&f);
}

/* Only the padding of the vocabulary grows the program by so few elements: the best plan of the
 * padded program was considered, and takes less time than without padding. */
static void a_vocabulary_is_padded_where_it_pays(void **state)
{
	(void)state;
	fixture f;
	double padded_s = INFINITY;
	fixture_init_slow(&f, ODD, 4, "auto");
	for (size_t i = 0; i < f.plan->alternatives.len; i++) {
		const sw_alternative *a = &f.plan->alternatives.data[i];
		if (strstr(a->name, "padded 1/16") && a->feasible)
			padded_s = fmin(padded_s, a->step_time_s);
	}
	assert_true(padded_s < 0.95 * best_unpadded_s(f.plan));
	assert_true(f.plan->predicted.step_time_s < best_unpadded_s(f.plan));
	fixture_clear(&f);
}

/* All dimensions that matter are split already; the batch, which is not, would only grow. */
static void padding_that_cannot_be_faster_is_not_searched(void **state)
{
	(void)state;
	static const char hlo[] =
		"HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n"
		"ENTRY e { w = f32[64,64] parameter(0)\n x = f32[6,64] parameter(1)\n"
		"  y = f32[64,64] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  z = f32[6,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  ROOT t = (f32[64,64], f32[6,64]) tuple(y, z) }\n";
	fixture f;
	fixture_init_slow(&f, scratch_file("a", hlo, strlen(hlo)), 4, "auto");
	assert_null(f.plan->original);
	assert_true(f.plan->alternatives.len > 0);
	for (size_t i = 0; i < f.plan->alternatives.len; i++)
		if (strstr(f.plan->alternatives.data[i].name, "padded"))
			assert_int_equal(f.plan->alternatives.data[i].untried, SW_UNTRIED_SLOWER);
	assert_true(f.plan->gap < 0.05);
	fixture_clear(&f);
	scratch_clear();
}

static void train(const fixture *f, const sw_data *data, sw_run_result *result)
{
	sw_error err = {0};
	sw_run_options options = {.steps = 5, .seed = 3, .quiet = true, .blas_threads = 1};
	if (sw_run_train_local(f->plan, &f->sidecar, data, &options, result, &err))
		fail_msg("%s", err.message);
}

static void train_both(const sw_data *data)
{
	static const char *const strategies[] = {"dp", "zero3", "auto"};
	fixture serial;
	sw_run_result wanted, got;
	fixture_init_slow(&serial, ODD, 1, "dp");
	assert_null(serial.plan->original);
	train(&serial, data, &wanted);
	for (size_t s = 0; s < SW_COUNT(strategies); s++) {
		fixture f;
		fixture_init_slow(&f, ODD, 4, strategies[s]);
		assert_non_null(f.plan->original);
		train(&f, data, &got);
		for (int64_t i = 0; i < wanted.steps; i++)
			if (!(fabs(got.losses[i] - wanted.losses[i]) <= 1e-5 * wanted.losses[i]))
				fail_msg("%s, step %d: loss %.9g, not %.9g", strategies[s], (int)i,
				         got.losses[i], wanted.losses[i]);
		assert_true(wanted.losses[4] != wanted.losses[0]);
		assert_int_equal(got.payload_bytes, f.plan->predicted.payload_bytes);
		sw_run_result_clear(&got);
		fixture_clear(&f);
	}
	sw_run_result_clear(&wanted);
	fixture_clear(&serial);
}

static void losses_equal_those_of_one_device(void **state)
{
	(void)state;
	char text[4000];
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i % 53);
	const char *path = scratch_file("a", text, sizeof(text));
	sw_data data;
	sw_error err;
	assert_int_equal(sw_data_open(&path, 1, 53, 16, &data, &err), SW_OK);
	train_both(NULL);
	train_both(&data);
	sw_data_close(&data);
	scratch_clear();
}

/* ---- the file --------------------------------------------------------------------------- */

static void explain_fixture(const fixture *f, sw_text *text)
{
	sw_program *local;
	sw_origins origins = {0};
	sw_error err = {0};
	if (sw_partition_with_origins(f->plan, &local, &origins, &err))
		fail_msg("%s", err.message);
	json_t *explained = sw_plan_explain(&(sw_explained){f->plan, local, &origins, &f->sidecar});
	sw_plan_explain_print(explained, true, text);
	json_decref(explained);
	sw_origins_clear(&origins);
	sw_program_free(local);
}

static json_t *written(const sw_plan *plan, const char *path)
{
	json_t *json;
	sw_error err = {0};
	if (sw_plan_write(plan, path, &err) || sw_json_read(path, &json, &err))
		fail_msg("%s", err.message);
	return json;
}

static void a_padded_plan_is_read_back(void **state)
{
	(void)state;
	fixture f, read;
	sw_error err = {0};
	char path[256];
	snprintf(path, sizeof(path), "%s", scratch_file("a", "", 0));
	fixture_init_slow(&f, ODD, 4, "auto");
	json_t *before = written(f.plan, path);
	read = f;
	if (sw_plan_read(path, &read.cluster, &read.plan, &err))
		fail_msg("%s", err.message);
	assert_true(sw_program_equal(read.plan->program, f.plan->program, &err));
	assert_true(sw_program_equal(read.plan->original, f.plan->original, &err));
	assert_int_equal(read.plan->program_hash, f.plan->program_hash);
	verify(&read, "read");
	json_t *after = written(read.plan, path);
	assert_true(json_equal(before, after));
	sw_text a = {0}, b = {0};
	explain_fixture(&f, &a);
	explain_fixture(&read, &b);
	assert_string_equal(a.data, b.data);
	assert_true(f.plan->padded.len > 0);
	for (size_t i = 0; i < f.plan->padded.len; i++) {
		char line[64];
		snprintf(line, sizeof(line), "%lld -> %lld in ",
		         (long long)f.plan->padded.data[i].size,
		         (long long)f.plan->padded.data[i].padded);
		assert_non_null(strstr(a.data, line));
	}
	sw_text_clear(&a);
	sw_text_clear(&b);
	json_decref(before);
	json_decref(after);
	sw_plan_free(read.plan);
	sw_cluster_clear(&read.cluster);
	fixture_clear(&f);
	scratch_clear();
}

static void a_wrong_rule_is_refused(void **state)
{
	(void)state;
	static const char *const rules[] = {
		"{\"multiple\": 1, \"share\": 2, \"classes\": []}",
		"{\"multiple\": 4, \"share\": 0, \"classes\": []}",
		"{\"multiple\": 4, \"classes\": []}",
		"{\"multiple\": \"4\", \"share\": 2, \"classes\": []}",
		"[4, 2]",
		"null",
		"{\"multiple\": 7, \"share\": 2, \"classes\": []}",
		"{\"multiple\": 4, \"share\": 1000000, \"classes\": []}",
		"{\"multiple\": 9223372036854775807, \"share\": 1, \"classes\": []}",
		"{\"multiple\": 4, \"share\": 2}",
		"{\"multiple\": 4, \"share\": 2, \"classes\": [-1]}",
		"{\"multiple\": 4, \"share\": 2, \"classes\": [1, 0]}",
		"{\"multiple\": 4, \"share\": 2, \"classes\": [\"0\"]}",
		"{\"multiple\": 4, \"share\": 2, \"classes\": [1000000]}",
	};
	fixture f;
	char path[256];
	snprintf(path, sizeof(path), "%s", scratch_file("a", "", 0));
	fixture_init_slow(&f, ODD, 4, "auto");
	assert_non_null(f.plan->original);
	json_t *json = written(f.plan, path);
	for (size_t i = 0; i < SW_COUNT(rules); i++) {
		sw_cluster cluster;
		sw_plan *plan;
		sw_error err = {0};
		json_object_set_new(
			json, "rewrites",
			json_pack("[{s:o}]", "pad", json_loads(rules[i], JSON_DECODE_ANY, NULL)));
		assert_int_equal(json_dump_file(json, path, 0), 0);
		if (sw_plan_read(path, &cluster, &plan, &err) != SW_ERR_INPUT)
			fail_msg("%s is read (%s)", rules[i], err.message);
		assert_true(err.message[0] && !strchr(err.message, '\n'));
	}
	json_decref(json);
	fixture_clear(&f);
	scratch_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(padded_plans_verify_on_every_number_of_devices),
		cmocka_unit_test(a_batch_of_six_is_split_over_four_as_one_of_eight),
		cmocka_unit_test(a_vocabulary_is_padded_where_it_pays),
		cmocka_unit_test(padding_that_cannot_be_faster_is_not_searched),
		cmocka_unit_test(losses_equal_those_of_one_device),
		cmocka_unit_test(a_padded_plan_is_read_back),
		cmocka_unit_test(a_wrong_rule_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
