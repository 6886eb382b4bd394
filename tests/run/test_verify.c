/* Verifying: plans of the fixtures verify, and errors are found. */
#include "fixtures.h"

#include <string.h>

static void verify(const char *program, int devices, const char *strategy)
{
	fixture f;
	sw_verify_result result;
	sw_error err = {0};
	fixture_init(&f, program, devices, strategy);
	if (sw_run_verify(f.plan, &f.sidecar, 1, &result, &err))
		fail_msg("%s on %d, %s: %s", program, devices, strategy, err.message);
	for (size_t i = 0; i < result.rows.len; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s on %d, %s: %s differs by %g, allowed is %g", program, devices,
			         strategy, result.rows.data[i].name, result.rows.data[i].relative,
			         result.rows.data[i].tolerance);
	assert_int_equal(result.rows.len, f.sidecar.n_outputs);
	assert_int_equal(result.payload_bytes, result.predicted_payload_bytes);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
	fixture_clear(&f);
}

static void small_programs_verify_under_every_strategy(void **state)
{
	(void)state;
	static const char *const programs[] = {"mlp-clip", "gpt-tiny"};
	static const char *const strategies[] = {"dp", "zero1", "zero3", "megatron:tp=2"};
	for (size_t p = 0; p < SW_COUNT(programs); p++)
		for (size_t s = 0; s < SW_COUNT(strategies); s++)
			verify(programs[p], 4, strategies[s]);
}

static void programs_verify_on_every_number_of_devices(void **state)
{
	(void)state;
	static const int sizes[] = {1, 2, 3, 4, 7, 8};
	for (size_t i = 0; i < SW_COUNT(sizes); i++)
		verify("mlp", sizes[i], "dp");
}

static void bf16_verifies_within_its_roundings(void **state)
{
	(void)state;
	verify("mlp-bf16", 4, "dp");
	verify("mlp-bf16", 2, "megatron:tp=2");
}

/* Verification includes the plan's prediction of the payload. */
static void a_wrong_prediction_is_found(void **state)
{
	(void)state;
	fixture f;
	sw_verify_result result;
	sw_error err;
	fixture_init(&f, "mlp", 2, "dp");
	f.plan->predicted.payload_bytes += 4;
	assert_int_equal(sw_run_verify(f.plan, &f.sidecar, 1, &result, &err), SW_OK);
	assert_false(result.ok);
	assert_int_equal(result.payload_bytes + 4, result.predicted_payload_bytes);
	sw_verify_result_clear(&result);
	fixture_clear(&f);
}

/* The norm that ends the loop is summed over the devices once per iteration. */
static void the_bytes_of_a_data_dependent_loop_are_not_compared(void **state)
{
	(void)state;
	static const char hlo[] =
		"HloModule halve\n"
		"add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
		"body {\n"
		"  p = (f32[8,16]) parameter(0)\n"
		"  x = f32[8,16] get-tuple-element(p), index=0\n"
		"  half = f32[] constant(0.5)\n"
		"  h = f32[8,16] broadcast(half), dimensions={}\n"
		"  y = f32[8,16] multiply(x, h)\n"
		"  ROOT r = (f32[8,16]) tuple(y)\n"
		"}\n"
		"large {\n"
		"  p = (f32[8,16]) parameter(0)\n"
		"  x = f32[8,16] get-tuple-element(p), index=0\n"
		"  zero = f32[] constant(0)\n"
		"  xx = f32[8,16] multiply(x, x)\n"
		"  norm = f32[] reduce(xx, zero), dimensions={0,1}, to_apply=add\n"
		"  one = f32[] constant(1)\n"
		"  ROOT c = pred[] compare(norm, one), direction=GT\n"
		"}\n"
		"ENTRY e {\n"
		"  x = f32[8,16] parameter(0)\n"
		"  t = (f32[8,16]) tuple(x)\n"
		"  w = (f32[8,16]) while(t), condition=large, body=body\n"
		"  ROOT y = f32[8,16] get-tuple-element(w), index=0\n"
		"}\n";
	fixture f;
	sw_verify_result result;
	sw_error err;
	fixture_init_text(&f, hlo, 4, "dp");
	assert_int_equal(sw_run_verify(f.plan, &f.sidecar, 1, &result, &err), SW_OK);
	assert_true(result.payload_by_data);
	assert_int_not_equal(result.payload_bytes, result.predicted_payload_bytes);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
	fixture_clear(&f);
}

/* log of numbers around 0 is NaN for half of them, on one device and on four. */
static void nan_beside_nan_is_not_called_equal(void **state)
{
	(void)state;
	static const char hlo[] = "HloModule m\nENTRY e {\n  x = f32[8,16] parameter(0)\n"
				  "  ROOT y = f32[8,16] log(x)\n}\n";
	fixture f;
	sw_verify_result result;
	sw_error err;
	fixture_init_text(&f, hlo, 4, "dp");
	assert_int_equal(sw_run_verify(f.plan, &f.sidecar, 1, &result, &err), SW_OK);
	assert_false(result.ok);
	assert_in_range(result.not_compared, 32, 96); /* each device has its rows */
	assert_int_equal(result.rows.data[0].not_compared, result.not_compared);
	assert_true(result.rows.data[0].relative == 0);
	sw_verify_allow_nan(&result);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
	fixture_clear(&f);
}

/* Replace the serial program by another one, as if the partitioning rules were wrong. */
static bool is_found(const char *hlo, const char *whole)
{
	fixture f;
	sw_verify_result result;
	sw_error err;
	fixture_init_text(&f, hlo, 2, "dp");
	assert_int_equal(sw_read_hlo(whole, strlen(whole), "whole", &f.plan->original, &err),
	                 SW_OK);
	assert_int_equal(sw_run_verify(f.plan, &f.sidecar, 1, &result, &err), SW_OK);
	bool found = !result.ok;
	sw_verify_result_clear(&result);
	fixture_clear(&f);
	return found;
}

#define COMPLEX(part)                                                                              \
	"HloModule m\nENTRY e { x = f32[8] parameter(0)\n z = f32[8] negate(x)\n"                  \
	" ROOT y = c64[8] complex(x, " part ") }\n"
/* In norm, this error is half of the tolerance of bf16. */
#define ONE_ELEMENT(value)                                                                         \
	"HloModule m\nENTRY e { x = bf16[16384] parameter(0)\n i = s32[16384] iota(), "            \
	"iota_dimension=0\n"                                                                       \
	" k = s32[] constant(17)\n ks = s32[16384] broadcast(k), dimensions={}\n"                  \
	" is = pred[16384] compare(i, ks), direction=EQ\n v = bf16[] constant(" value ")\n"        \
	" vs = bf16[16384] broadcast(v), dimensions={}\n ROOT y = bf16[16384] select(is, vs, x) "  \
	"}\n"

static void wrong_imaginary_parts_and_single_elements_are_found(void **state)
{
	(void)state;
	assert_false(is_found(COMPLEX("z"), COMPLEX("z")));
	assert_true(is_found(COMPLEX("z"), COMPLEX("x")));
	assert_false(is_found(ONE_ELEMENT("0"), ONE_ELEMENT("0")));
	assert_true(is_found(ONE_ELEMENT("0"), ONE_ELEMENT("0.02")));
}

/* Variances of numbers near 10, as differences of sums: rounding leaves few of their digits. With
 * them stands a sum that it hardly moves, times `factor`. */
#define VARIANCES(factor)                                                                          \
	"HloModule m\n"                                                                            \
	"add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"         \
	"ENTRY e { x = f32[64,64] parameter(0)\n far = f32[] constant(10)\n"                      \
	" fars = f32[64,64] broadcast(far), dimensions={}\n y = f32[64,64] add(x, fars)\n"         \
	" yy = f32[64,64] multiply(y, y)\n zero = f32[] constant(0)\n"                             \
	" squares = f32[64] reduce(yy, zero), dimensions={0}, to_apply=add\n"                      \
	" sum = f32[64] reduce(y, zero), dimensions={0}, to_apply=add\n"                           \
	" part = f32[] constant(0.015625)\n parts = f32[64] broadcast(part), dimensions={}\n"      \
	" mean = f32[64] multiply(sum, parts)\n both = f32[64] multiply(sum, mean)\n"              \
	" variance = f32[64] subtract(squares, both)\n xx = f32[64,64] multiply(x, x)\n"           \
	" small = f32[] reduce(xx, zero), dimensions={0,1}, to_apply=add\n"                        \
	" f = f32[] constant(" factor ")\n scaled = f32[] multiply(small, f)\n"                    \
	" ROOT r = (f32[64], f32[]) tuple(variance, scaled) }\n"

/* Verify the program beside another one on a device, and allow for noise. */
static void verify_noisy(const char *whole, sw_verify_result *result)
{
	fixture f;
	sw_error err;
	fixture_init_text(&f, VARIANCES("1"), 4, "dp");
	assert_int_equal(sw_read_hlo(whole, strlen(whole), "whole", &f.plan->original, &err),
	                 SW_OK);
	assert_int_equal(sw_run_verify(f.plan, &f.sidecar, 1, result, &err), SW_OK);
	assert_true(result->rows.data[0].relative > result->rows.data[0].tolerance);
	assert_false(result->ok);
	assert_int_equal(
		sw_verify_allow_noise(sw_plan_serial(f.plan), &f.sidecar, 1, result, &err),
		SW_OK);
	fixture_clear(&f);
}

static void what_rounding_does_is_no_fault_and_hides_none(void **state)
{
	(void)state;
	sw_verify_result result;
	verify_noisy(VARIANCES("1"), &result);
	assert_true(result.ok);
	assert_true(result.rows.data[0].noisy);
	assert_true(result.rows.data[0].relative <= result.rows.data[0].tolerance);
	assert_false(result.rows.data[1].noisy);
	sw_verify_result_clear(&result);
	verify_noisy(VARIANCES("1.001"), &result);
	assert_false(result.ok);
	assert_false(result.rows.data[1].ok);
	assert_false(result.rows.data[1].noisy);
	sw_verify_result_clear(&result);
}

/* A number that planning does not know takes the branch that sends nothing; the plan predicts the
 * bytes of the other branch. */
static void a_branch_may_send_less_than_the_most_expensive(void **state)
{
	(void)state;
	const char *hlo =
		"HloModule m\n"
		"add {\n"
		"  a = f32[] parameter(0)\n"
		"  b = f32[] parameter(1)\n"
		"  ROOT c = f32[] add(a, b)\n"
		"}\n"
		"sums {\n"
		"  x = f32[8,16] parameter(0)\n"
		"  zero = f32[] constant(0)\n"
		"  ROOT r = f32[16] reduce(x, zero), dimensions={0}, to_apply=add\n"
		"}\n"
		"nothing {\n"
		"  x = f32[8,16] parameter(0)\n"
		"  zero = f32[] constant(0)\n"
		"  ROOT r = f32[16] broadcast(zero), dimensions={}\n"
		"}\n"
		"ENTRY e {\n"
		"  x = f32[8,16] parameter(0)\n"
		"  ways = s32[2] iota(), iota_dimension=0\n"
		"  second = s32[1] slice(ways), slice={[1:2]}\n"
		"  way = s32[] reshape(second)\n"
		"  ROOT y = f32[16] conditional(way, x, x), branch_computations={sums, nothing}\n"
		"}\n";
	fixture f;
	sw_verify_result result;
	sw_error err;
	fixture_init_text(&f, hlo, 4, "dp");
	assert_int_equal(sw_run_verify(f.plan, &f.sidecar, 1, &result, &err), SW_OK);
	assert_true(result.payload_bytes < result.predicted_payload_bytes);
	assert_true(result.payload_by_data);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_programs_verify_under_every_strategy),
		cmocka_unit_test(programs_verify_on_every_number_of_devices),
		cmocka_unit_test(bf16_verifies_within_its_roundings),
		cmocka_unit_test(nan_beside_nan_is_not_called_equal),
		cmocka_unit_test(a_wrong_prediction_is_found),
		cmocka_unit_test(wrong_imaginary_parts_and_single_elements_are_found),
		cmocka_unit_test(what_rounding_does_is_no_fault_and_hides_none),
		cmocka_unit_test(a_branch_may_send_less_than_the_most_expensive),
		cmocka_unit_test(the_bytes_of_a_data_dependent_loop_are_not_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
