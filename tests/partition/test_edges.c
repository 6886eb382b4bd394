/*
 * Programs at the edges of what types and shapes can hold, which random programs seldom reach.
 * Under random plans they give exactly the results of one device, bit by bit.
 */
#include "partition/subject.h"

#include "plan/plan.h"
#include "model/model.h"

#define SEEDS 30

static const struct {
	const char *name, *text;
} programs[] = {
	{"random numbers for an empty array, of which a dimension can be split",
         "HloModule m\n"
         "ENTRY main {\n"
         "  p = u64[2] parameter(0)\n"
         "  r = (u64[2], u32[0,4]) rng-bit-generator(p), algorithm=rng_three_fry\n"
         "  s = (u64[2], u32[4,0]) rng-bit-generator(p), algorithm=rng_philox\n"
         "  a = u64[2] get-tuple-element(r), index=0\n"
         "  b = u32[0,4] get-tuple-element(r), index=1\n"
         "  c = u32[4,0] get-tuple-element(s), index=1\n"
         "  ROOT t = (u64[2], u32[0,4], u32[4,0]) tuple(a, b, c)\n"
         "}\n"},
	{"partial extremes of an f8 without infinity: what is too large becomes NaN",
         "HloModule m\n"
         "max {\n"
         "  x = f32[] parameter(0)\n"
         "  y = f32[] parameter(1)\n"
         "  ROOT m = f32[] maximum(x, y)\n"
         "}\n"
         "min {\n"
         "  x = f32[] parameter(0)\n"
         "  y = f32[] parameter(1)\n"
         "  ROOT m = f32[] minimum(x, y)\n"
         "}\n"
         "ENTRY main {\n"
         "  p = f32[24,12] parameter(0)\n"
         "  k = f32[] constant(300)\n"
         "  ks = f32[24,12] broadcast(k), dimensions={}\n"
         "  x = f32[24,12] multiply(p, ks)\n"
         "  low = f32[] constant(-inf)\n"
         "  high = f32[] constant(inf)\n"
         "  a = f32[12] reduce(x, low), dimensions={0}, to_apply=max\n"
         "  b = f32[12] reduce(x, high), dimensions={0}, to_apply=min\n"
         "  c = f8e4m3fn[12] convert(a)\n"
         "  d = f8e4m3fn[12] convert(b)\n"
         "  ROOT t = (f8e4m3fn[12], f8e4m3fn[12]) tuple(c, d)\n"
         "}\n"},
	{"parts of scales, a type without zero",
         "HloModule m\n"
         "ENTRY main {\n"
         "  p = f32[24,12] parameter(0)\n"
         "  x = f32[24,12] abs(p)\n"
         "  s = f8e8m0fnu[24,12] convert(x)\n"
         "  i = s32[6,1] iota(), iota_dimension=0\n"
         "  g = f8e8m0fnu[6,12] gather(s, i), offset_dims={1}, collapsed_slice_dims={0}, "
         "start_index_map={0}, index_vector_dim=1, slice_sizes={1,12}\n"
         "  three = s32[] constant(3)\n"
         "  zero = s32[] constant(0)\n"
         "  d = f8e8m0fnu[2,12] dynamic-slice(s, three, zero), dynamic_slice_sizes={2,12}\n"
         "  a = f32[6,12] convert(g)\n"
         "  b = f32[2,12] convert(d)\n"
         "  ROOT t = (f32[6,12], f32[2,12]) tuple(a, b)\n"
         "}\n"},
	{"sums and bits of integers shorter than a byte",
         "HloModule m\n"
         "sum.s4 {\n"
         "  x = s4[] parameter(0)\n"
         "  y = s4[] parameter(1)\n"
         "  ROOT m = s4[] add(x, y)\n"
         "}\n"
         "sum.u4 {\n"
         "  x = u4[] parameter(0)\n"
         "  y = u4[] parameter(1)\n"
         "  ROOT m = u4[] add(x, y)\n"
         "}\n"
         "or.u4 {\n"
         "  x = u4[] parameter(0)\n"
         "  y = u4[] parameter(1)\n"
         "  ROOT m = u4[] or(x, y)\n"
         "}\n"
         "ENTRY main {\n"
         "  p = s32[24,12] parameter(0)\n"
         "  x = s4[24,12] convert(p)\n"
         "  y = u4[24,12] convert(p)\n"
         "  three = s4[] constant(3)\n"
         "  five = u4[] constant(5)\n"
         "  a = s4[12] reduce(x, three), dimensions={0}, to_apply=sum.s4\n"
         "  b = u4[12] reduce(y, five), dimensions={0}, to_apply=sum.u4\n"
         "  c = u4[24] reduce(y, five), dimensions={1}, to_apply=or.u4\n"
         "  ROOT t = (s4[12], u4[12], u4[24]) tuple(a, b, c)\n"
         "}\n"},
	{"a start of each type",
         "HloModule m\n"
         "ENTRY main {\n"
         "  p = f32[24,12] parameter(0)\n"
         "  a = s64[] constant(3)\n"
         "  b = s32[] constant(100)\n"
         "  d = f32[5,4] dynamic-slice(p, a, b), dynamic_slice_sizes={5,4}\n"
         "  u = f32[24,12] dynamic-update-slice(p, d, b, a)\n"
         "  ROOT t = (f32[5,4], f32[24,12]) tuple(d, u)\n"
         "}\n"},
	{"the sign of zero, kept as partial sums and in gathered rows",
         "HloModule m\n"
         "ENTRY main {\n"
         "  p = s32[24,12] parameter(0)\n"
         "  k = s32[] constant(31)\n"
         "  ks = s32[24,12] broadcast(k), dimensions={}\n"
         "  sign = s32[24,12] shift-left(p, ks)\n"
         "  z = f32[24,12] bitcast-convert(sign)\n"
         "  i = s32[6,1] iota(), iota_dimension=0\n"
         "  g = f32[6,12] gather(z, i), offset_dims={1}, collapsed_slice_dims={0}, "
         "start_index_map={0}, index_vector_dim=1, slice_sizes={1,12}\n"
         "  a = s32[24,12] bitcast-convert(z)\n"
         "  b = s32[6,12] bitcast-convert(g)\n"
         "  ROOT t = (s32[24,12], s32[6,12]) tuple(a, b)\n"
         "}\n"},
};

static void edge_cases_give_the_same_bits_on_one_device_and_on_many(void **state)
{
	static const char *const clusters[] = {"2", "2,3", "8"};
	(void)state;

	for (size_t i = 0; i < SW_COUNT(programs); i++)
		for (size_t c = 0; c < SW_COUNT(clusters); c++) {
			subject s;
			sw_cluster cluster;
			subject_from_text(programs[i].name, programs[i].text, &s);
			make_cluster(clusters[c], &cluster);
			for (uint64_t seed = 0; seed < SEEDS; seed++) {
				sw_plan *plan;
				sw_error err = {0};
				check(sw_plan_random(s.program, "", &cluster, seed, false, &plan,
				                     &err),
				      &err);
				compare_with_serial(&s, plan, 0, "a plan made by chance");
				sw_plan_free(plan);
			}
			sw_cluster_clear(&cluster);
			subject_clear(&s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edge_cases_give_the_same_bits_on_one_device_and_on_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
