/*
 * Plans that send gradients in codes: ranks compute what one device computes that codes the same
 * terms, send the bytes that are predicted, and fewer than without; what a device keeps counts as
 * memory.
 */
#include "planned/planned.h"
#include "search/search.h"

#include <string.h>

#include "bound/bound.h"
#include "run/run.h"

static void make_coded(planned *p, const char *strategy, const char *codec, int32_t microbatches)
{
	sw_error err = {0};
	sw_plan_options options = {.quiet = true, .remat = "none", .microbatches = microbatches};
	check(sw_plan_strategy_parse(strategy, &options.strategy, &err), &err);
	assert_true(sw_codec_parse(codec, &options.codec));
	sw_plan_free(p->plan);
	p->plan = NULL;
	check(sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options, &p->plan, &err),
	      &err);
	check(sw_plan_verify(p->plan, &err), &err);
	assert_int_equal(p->plan->warnings.len, 0);
}

static void assert_coded(const planned *p, const char *strategy, const char *codec)
{
	sw_verify_result result;
	sw_sidecar own;
	sw_error err = {0};
	check(sw_plan_sidecar(p->plan, &p->sidecar, &own, &err), &err);
	check(sw_run_verify(p->plan, &own, 1, &result, &err), &err);
	for (size_t i = 0; i < result.rows.len; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s, %s, %s: %s differs by %g, allowed is %g", p->path, strategy,
			         codec, result.rows.data[i].name, result.rows.data[i].relative,
			         result.rows.data[i].tolerance);
	assert_true(result.n_coded > 0);
	if (result.payload_bytes != result.predicted_payload_bytes)
		fail_msg("%s, %s, %s: %lld bytes sent, %lld predicted", p->path, strategy, codec,
		         (long long)result.payload_bytes,
		         (long long)result.predicted_payload_bytes);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
	sw_sidecar_clear(&own);
}

static const char *const CODECS[] = {"bf16", "f16", "int8", "topk=0.05", "powersgd=2"};

static void verify_all(const char *fixture, const char *cluster, const char *strategy)
{
	planned p;
	open_fixture(fixture, cluster, &p);
	for (size_t c = 0; c < SW_COUNT(CODECS); c++) {
		make_coded(&p, strategy, CODECS[c], 1);
		assert_coded(&p, strategy, CODECS[c]);
	}
	close_planned(&p);
}

static void ranks_compute_what_one_device_does_with_their_terms(void **state)
{
	static const char *const fixtures[] = {"mlp",       "mlp-bf16",      "gpt-tiny-clip",
	                                       "dlrm-tiny", "gpt-tiny-scan", "odd-tiny",
	                                       "vgg-tiny"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++)
		verify_all(fixtures[f], "local-2x2.yaml", "dp");
	verify_all("mlp", "local-2x4.yaml", "dp");
}

static void codecs_go_with_every_way(void **state)
{
	static const char *const strategies[] = {
		"zero1",    "zero2",       "zero3",          "ps",
		"ps:proxy", "ps:balanced", "ps:partitioned", "ps:uneven",
		"parallax", "ways",        "megatron:tp=2",  "allreduce:partitioned"};
	(void)state;
	for (size_t s = 0; s < SW_COUNT(strategies); s++)
		verify_all("mlp", "local-2x2.yaml", strategies[s]);
}

/* Microbatches are summed before they are coded. */
static void microbatches_are_coded_once(void **state)
{
	planned p;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_coded(&p, "dp", "int8", 1);
	int64_t payload = p.plan->predicted.payload_bytes;
	make_coded(&p, "dp", "int8", 2);
	assert_coded(&p, "dp, 2 microbatches", "int8");
	assert_int_equal(p.plan->predicted.payload_bytes, payload);
	close_planned(&p);
}

/* Terms are taken of the wide sum, and rounded then: devices don't add up the gradient before. */
static void narrow_gradients_of_microbatches_are_coded_once(void **state)
{
	planned p;
	(void)state;
	open_fixture("mlp-bf16", "local-2x2.yaml", &p);
	for (size_t c = 0; c < SW_COUNT(CODECS); c++) {
		make_coded(&p, "dp", CODECS[c], 1);
		int64_t payload = p.plan->predicted.payload_bytes;
		make_coded(&p, "dp", CODECS[c], 2);
		assert_coded(&p, "dp, 2 microbatches", CODECS[c]);
		/* (the wide sums of vectors, which have no codec, are sent) */
		assert_true(p.plan->predicted.payload_bytes < payload + 2048);
	}
	close_planned(&p);
}

/* Of the bytes that data parallelism sends, most are matrices'. */
static void codes_are_smaller_than_gradients(void **state)
{
	static const double most[] = {0.6, 0.6, 0.35, 0.3, 0.1};
	planned p;
	(void)state;
	open_fixture_op_by_op("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	double whole = (double)p.plan->predicted.payload_bytes;
	for (size_t c = 0; c < SW_COUNT(CODECS); c++) {
		make_coded(&p, "dp", CODECS[c], 1);
		double share = (double)p.plan->predicted.payload_bytes / whole;
		if (share > most[c])
			fail_msg("%s: %g of the bytes", CODECS[c], share);
	}
	close_planned(&p);
}

/* Each device keeps what its own gradients lacked, as large as the matrices. */
static void residuals_count_as_memory(void **state)
{
	planned p;
	int64_t matrices = 0;
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	int64_t without = p.plan->predicted.peak_bytes;
	for (uint32_t i = 0; i < p.sidecar.n_inputs; i++)
		if (p.sidecar.inputs[i].role == SW_ROLE_PARAMETER && input_shape(&p, i).rank > 1)
			matrices += sw_shape_bytes(input_shape(&p, i));
	make_coded(&p, "dp", "topk=0.05", 1);
	assert_true(p.plan->predicted.peak_bytes >= without + matrices * 9 / 10);
	close_planned(&p);
}

/* The bound of plans that send gradients as they are does not hold for others, and says so. */
static void certificates_say_which_gradients_are_sent(void **state)
{
	planned p;
	(void)state;
	open_fixture("gpt-tiny", "lab-2x4.yaml", &p);
	make_plan(&p, "dp");
	assert_non_null(strstr(p.plan->scope, "without pipeline stages, codecs and owners"));
	for (size_t c = 0; c < SW_COUNT(CODECS); c++) {
		make_coded(&p, "dp", CODECS[c], 1);
		assert_null(strstr(p.plan->scope, "codecs"));
		assert_non_null(strstr(p.plan->scope, "with its variables in these forms"));
		assert_false(
			sw_bound_is_beaten(p.plan->lower_bound_s, p.plan->predicted.step_time_s));
	}
	close_planned(&p);
}

/* Nothing is coded unless it is asked for. */
static void no_search_takes_a_codec_by_itself(void **state)
{
	static const char *const strategies[] = {"auto", "ways", "random"};
	planned p;
	(void)state;
	open_fixture("mlp", "lab-2x4.yaml", &p);
	for (size_t s = 0; s < SW_COUNT(strategies); s++) {
		make_plan(&p, strategies[s]);
		assert_int_equal(p.plan->forms.n, 0);
		assert_null(p.plan->undivided);
	}
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_compute_what_one_device_does_with_their_terms),
		cmocka_unit_test(codecs_go_with_every_way),
		cmocka_unit_test(microbatches_are_coded_once),
		cmocka_unit_test(narrow_gradients_of_microbatches_are_coded_once),
		cmocka_unit_test(codes_are_smaller_than_gradients),
		cmocka_unit_test(residuals_count_as_memory),
		cmocka_unit_test(certificates_say_which_gradients_are_sent),
		cmocka_unit_test(no_search_takes_a_codec_by_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
