/* The lower bound of a device's memory over all partitionings, on examples whose bound is known.
 * Another test checks that no partitioned program takes less (tests/partition). */
#include "test.h"

#include <string.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"

/* Return the bound for 4 devices; `lines` are those of the entry, after x = f32[1024], which has
 * 4096 bytes. */
static int64_t share_of(const char *before, const char *lines)
{
	sw_error err = {0};
	sw_text text = {0};
	sw_program *program;
	sw_text_addf(&text, "HloModule shared\n%s\nENTRY e {\n  x = f32[1024] parameter(0)\n%s}\n",
	             before, lines);
	sw_status status = sw_read_hlo(text.data, text.len, "shared.hlo", &program, &err);
	if (status != SW_OK)
		fail_msg("%d: %s", err.line, err.message);
	int64_t bytes = sw_least_share_bytes(program, 4);
	sw_program_free(program);
	sw_text_clear(&text);
	return bytes;
}

static void overwritten_buffers_count_once(void **state)
{
	(void)state;
	assert_int_equal(share_of("", "  y = f32[1024] parameter(1)\n"
	                              "  a = f32[1024] add(x, y)\n"
	                              "  ROOT b = f32[1024] multiply(a, a)\n"),
	                 2048);
	assert_int_equal(share_of("", "  a = f32[1024] add(x, x)\n"
	                              "  b = f32[1024] multiply(a, a)\n"
	                              "  ROOT c = f32[1024] add(b, a)\n"),
	                 2048);
}

/* u is t in layouts that leave nothing to transpose. */
static void values_that_may_share_a_buffer_count_once(void **state)
{
	(void)state;
	static const char rest[] = "  y = f32[32,32] multiply(u, u)\n"
				   "  z = f32[32,32] add(y, u)\n"
				   "  ROOT w = f32[32,32] add(z, t)\n";
	sw_text text = {0};
	sw_text_addf(
		&text,
		"  t = f32[32,32] reshape(x)\n  u = f32[32,32] transpose(t), dimensions={1,0}\n%s",
		rest);
	assert_int_equal(share_of("", text.data), 2048);
	sw_text_clear(&text);
	sw_text_addf(&text, "  t = f32[32,32] reshape(x)\n  u = f32[32,32] negate(t)\n%s", rest);
	assert_int_equal(share_of("", text.data), 3072);
	sw_text_clear(&text);
}

/* While all of y is live, its second part counts too, but not its first; then all three parts
 * count. */
static void slices_count_separately(void **state)
{
	(void)state;
	assert_int_equal(share_of("", "  y = f32[3072] concatenate(x, x, x), dimensions={0}\n"
	                              "  q = f32[1024] slice(y), slice={[0:1024]}\n"
	                              "  k = f32[1024] slice(y), slice={[1024:2048]}\n"
	                              "  v = f32[1024] slice(y), slice={[2048:3072]}\n"
	                              "  s = f32[1024] multiply(q, k)\n"
	                              "  ROOT r = f32[1024] add(s, v)\n"),
	                 4096);
	assert_int_equal(share_of("", "  q = f32[512] slice(x), slice={[0:512]}\n"
	                              "  k = f32[512] slice(x), slice={[512:1024]}\n"
	                              "  ROOT s = f32[512] multiply(q, k)\n"),
	                 1024);
}

static void values_that_may_be_splats_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(share_of("", "  one = f32[] constant(1)\n"
	                              "  ones = f32[1024] broadcast(one), dimensions={}\n"
	                              "  twos = f32[1024] add(ones, ones)\n"
	                              "  ROOT r = f32[1024] add(x, twos)\n"),
	                 1024);
	assert_int_equal(share_of("", "  few = f32[4] constant({1, 2, 3, 4})\n"
	                              "  many = f32[4,256] broadcast(few), dimensions={0}\n"
	                              "  y = f32[4,256] reshape(x)\n"
	                              "  ROOT r = f32[4,256] add(y, many)\n"),
	                 1024);
	assert_int_equal(share_of("", "  some = f32[8] iota(), iota_dimension=0\n"
	                              "  many = f32[8,128] broadcast(some), dimensions={0}\n"
	                              "  y = f32[8,128] reshape(x)\n"
	                              "  ROOT r = f32[8,128] add(y, many)\n"),
	                 2048);
}

static const char loop[] = "condition {\n"
			   "  p = (s32[], f32[1024], f32[1024]) parameter(0)\n"
			   "  i = s32[] get-tuple-element(p), index=0\n"
			   "  n = s32[] constant(3)\n"
			   "  ROOT l = pred[] compare(i, n), direction=LT\n"
			   "}\n"
			   "body {\n"
			   "  p = (s32[], f32[1024], f32[1024]) parameter(0)\n"
			   "  i = s32[] get-tuple-element(p), index=0\n"
			   "  a = f32[1024] get-tuple-element(p), index=1\n"
			   "  b = f32[1024] get-tuple-element(p), index=2\n"
			   "  one = s32[] constant(1)\n"
			   "  next = s32[] add(i, one)\n"
			   "  t = f32[1024] negate(a)\n"
			   "  u = f32[1024] multiply(t, a)\n"
			   "  v = f32[1024] add(u, b)\n"
			   "  ROOT r = (s32[], f32[1024], f32[1024]) tuple(next, v, u)\n"
			   "}\n";

/* t, a and b are live in the body, and z outside. */
static void a_loop_counts_the_values_of_its_body(void **state)
{
	(void)state;
	static const char lines[] =
		"  y = f32[1024] parameter(1)\n"
		"  z = f32[1024] parameter(2)\n"
		"  zero = s32[] constant(0)\n"
		"  c = (s32[], f32[1024], f32[1024]) tuple(zero, x, %s)\n"
		"  w = (s32[], f32[1024], f32[1024]) while(c), condition=condition, "
		"body=body\n"
		"  e = f32[1024] get-tuple-element(w), index=1\n"
		"  f = f32[1024] add(e, z)\n"
		"  ROOT g = f32[1024] add(f, y)\n";
	sw_text text = {0};
	sw_text_addf(&text, lines, "y");
	assert_int_equal(share_of(loop, text.data), 4096);
	sw_text_clear(&text);
	sw_text_addf(&text, lines, "x");
	assert_int_equal(share_of(loop, text.data), 4096);
	sw_text_clear(&text);
}

static void more_devices_lower_the_bound(void **state)
{
	(void)state;
	sw_error err = {0};
	sw_program *program;
	static const char text[] = "HloModule m\nENTRY e {\n  x = f32[1000,1000] parameter(0)\n"
				   "  ROOT y = f32[1000,1000] negate(x)\n}\n";
	assert_int_equal(sw_read_hlo(text, strlen(text), "m.hlo", &program, &err), SW_OK);
	assert_int_equal(sw_least_share_bytes(program, 1), 4000000);
	assert_int_equal(sw_least_share_bytes(program, 1000), 4000);
	assert_int_equal(sw_least_share_bytes(program, 1000000), 0);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overwritten_buffers_count_once),
		cmocka_unit_test(values_that_may_share_a_buffer_count_once),
		cmocka_unit_test(slices_count_separately),
		cmocka_unit_test(values_that_may_be_splats_do_not_count),
		cmocka_unit_test(a_loop_counts_the_values_of_its_body),
		cmocka_unit_test(more_devices_lower_the_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
