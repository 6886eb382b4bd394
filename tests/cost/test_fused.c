/* Seconds of matrix products in tiles, and of fused kernels: a device with 1 GB/s, 10 us per kernel,
 * 100 GFLOP/s in f32 and 400 in bf16, of which matmuls reach half. */
#include "cost/clusters.h"

#include <math.h>
#include <string.h>

static const char text[] =
	"HloModule kernels\n"
	"sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
	"chain { c = f32[1000] parameter(0)\n d = f32[1000] parameter(1)\n e = f32[1000] add(c, d)\n"
	"  f = f32[1000] multiply(e, c)\n ROOT g = f32[1000] tanh(f) }\n"
	"cut { h = f32[1000,1000] parameter(0)\n i = f32[1,1000] slice(h), slice={[5:6], [0:1000]}\n"
	"  ROOT k = f32[1,1000] negate(i) }\n"
	"columns { ba = f32[1000,1000] parameter(0)\n"
	"  bb = f32[1000,500] slice(ba), slice={[0:1000], [0:500]}\n"
	"  ROOT bc = f32[1000,500] negate(bb) }\n"
	"halves { aa = f32[1000] parameter(0)\n ab = f32[1000] parameter(1)\n"
	"  ac = f32[1000] add(aa, ab)\n ad = f32[1000] tanh(ac)\n"
	"  ae = f32[500] slice(ad), slice={[0:500]}\n ROOT af = f32[500] negate(ae) }\n"
	"write { l = f32[1000,1000] parameter(0)\n m = f32[10,1000] parameter(1)\n n = s32[] "
	"parameter(2)\n"
	"  o = f32[10,1000] negate(m)\n ROOT p = f32[1000,1000] dynamic-update-slice(l, o, n, n) }\n"
	"product { q = f32[1000,1000] parameter(0)\n r = f32[1000,1000] parameter(1)\n"
	"  t = f32[1000,1000] dot(q, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  ROOT u = f32[1000,1000] tanh(t) }\n"
	"attend { v = f32[4,512,64] parameter(0)\n w = f32[4,512,64] parameter(1)\n"
	"  x = f32[4,512,64] parameter(2)\n"
	"  y = f32[4,512,512] dot(v, w), lhs_batch_dims={0}, rhs_batch_dims={0}, "
	"lhs_contracting_dims={2}, rhs_contracting_dims={2}\n"
	"  ROOT z = f32[4,512,64] dot(y, x), lhs_batch_dims={0}, rhs_batch_dims={0}, "
	"lhs_contracting_dims={2}, rhs_contracting_dims={1} }\n"
	"causal { va = f32[4,512,64] parameter(0)\n wa = f32[4,512,64] parameter(1)\n"
	"  xa = f32[4,512,64] parameter(2)\n"
	"  ya = f32[4,512,512] dot(va, wa), lhs_batch_dims={0}, rhs_batch_dims={0}, "
	"lhs_contracting_dims={2}, rhs_contracting_dims={2}\n"
	"  rows = s32[4,512,512] iota(), iota_dimension=1\n"
	"  columns = s32[4,512,512] iota(), iota_dimension=2\n"
	"  mask = pred[4,512,512] compare(rows, columns), direction=GE\n"
	"  masked = f32[4,512,512] select(mask, ya, ya)\n"
	"  ROOT za = f32[4,512,64] dot(masked, xa), lhs_batch_dims={0}, rhs_batch_dims={0}, "
	"lhs_contracting_dims={2}, rhs_contracting_dims={1} }\n"
	"ENTRY main {\n"
	"  p0 = f32[1000] parameter(0)\n"
	"  p1 = f32[1000,1000] parameter(1)\n"
	"  p2 = f32[10,1000] parameter(2)\n"
	"  p3 = s32[] parameter(3)\n"
	"  p4 = f32[4,512,64] parameter(4)\n"
	"  small = f32[100,1000] parameter(5)\n"
	"  loop = f32[1000] fusion(p0, p0), kind=kLoop, kernel=loop, calls=chain\n"
	"  sliced = f32[1,1000] fusion(p1), kind=kLoop, kernel=loop, calls=cut\n"
	"  part_of_rows = f32[1000,500] fusion(p1), kind=kLoop, kernel=loop, calls=columns\n"
	"  right = f32[1000,500] slice(p1), slice={[0:1000], [500:1000]}\n"
	"  below = f32[500,1000] slice(p1), slice={[500:1000], [0:1000]}\n"
	"  half_read = f32[500] fusion(p0, p0), kind=kLoop, kernel=loop, calls=halves\n"
	"  written = f32[1000,1000] fusion(p1, p2, p3), kind=kInput, kernel=indexed, calls=write\n"
	"  matmul = f32[1000,1000] fusion(p1, p1), kind=kOutput, kernel=dot, calls=product\n"
	"  attention = f32[4,512,64] fusion(p4, p4, p4), kind=kCustom, kernel=attention, "
	"calls=attend\n"
	"  half = f32[4,512,64] fusion(p4, p4, p4), kind=kCustom, kernel=attention, calls=causal\n"
	"  gradient = f32[4,512,64] fusion(p4, p4, p4), kind=kCustom, kernel=attention_gradient, "
	"calls=attend\n"
	"  tiles = f32[100,1000] dot(small, p1), lhs_contracting_dims={1}, "
	"rhs_contracting_dims={0}\n"
	"  ROOT out = (f32[1000], f32[1000,1000]) tuple(loop, matmul)\n"
	"}\n";

#define OVERHEAD 10e-6
#define RATE 50e9

static void open(sw_cluster *c, sw_program **program)
{
	const level_text levels[] = {{"2", 1e-3, 1e6, 0}};
	make_cluster(c, levels, 1);
	*program = read_text(text);
}

static double seconds_of(const sw_cluster *c, const sw_program *program, const char *name)
{
	print_message("%s\n", name);
	return sw_cost_op(c, program, find_op(program, name));
}

/* Only what enters and leaves a kernel is moved. */
static void a_fused_kernel_moves_its_operands_and_results(void **state)
{
	sw_cluster c;
	sw_program *program;
	(void)state;
	open(&c, &program);
	assert_seconds(seconds_of(&c, program, "loop"), 12e3 / 1e9 + OVERHEAD);
	assert_seconds(seconds_of(&c, program, "sliced"), 8e3 / 1e9 + OVERHEAD);
	assert_seconds(seconds_of(&c, program, "half_read"), 6e3 / 1e9 + OVERHEAD);
	assert_seconds(seconds_of(&c, program, "written"), (80e3 + 4) / 1e9 + OVERHEAD);
	assert_seconds(seconds_of(&c, program, "matmul"), 2e9 / RATE + OVERHEAD);
	sw_program_cost cost;
	sw_cost_program(&c, program, &cost);
	double sum = 0;
	for (size_t i = 0; i < sw_entry(program)->ops.len; i++)
		sum += sw_cost_op(&c, program, sw_entry(program)->ops.data[i]);
	assert_seconds(cost.compute_s, sum); /* no op of a fusion counts by itself */
	sw_program_free(program);
	sw_cluster_clear(&c);
}

/* Of kernels of which the device has a bandwidth of their own: those that cut rows. */
static void kernels_that_cut_rows_reach_a_share_of_the_bandwidth(void **state)
{
	static const char *const strided[] = {"part_of_rows", "right"},
		*const contiguous[] = {"loop", "sliced", "half_read", "below", "written", "matmul"};
	sw_cluster c, slower;
	sw_program *program;
	(void)state;
	open(&c, &program);
	slower = c;
	slower.device.strided_share = 0.25;
	for (size_t i = 0; i < SW_COUNT(strided); i++) {
		assert_seconds(seconds_of(&c, program, strided[i]), 4e6 / 1e9 + OVERHEAD);
		assert_seconds(seconds_of(&slower, program, strided[i]), 16e6 / 1e9 + OVERHEAD);
	}
	for (size_t i = 0; i < SW_COUNT(contiguous); i++)
		assert_seconds(seconds_of(&slower, program, contiguous[i]),
		               seconds_of(&c, program, contiguous[i]));
	sw_program_free(program);
	sw_cluster_clear(&c);
}

/* Scores are not moved; a causal mask halves the products; a gradient has five of them. */
static void attention_costs_its_products_at_its_own_rate(void **state)
{
	sw_cluster c;
	sw_program *program;
	const double product = 2. * 4 * 512 * 512 * 64;
	(void)state;
	open(&c, &program);
	c.device.memory_bandwidth = 1e12;
	assert_seconds(seconds_of(&c, program, "attention"), 2 * product / RATE + OVERHEAD);
	c.device.attention_efficiency = 0.4;
	c.device.attention_gradient_efficiency = 0.2;
	assert_seconds(seconds_of(&c, program, "attention"), 2 * product / 40e9 + OVERHEAD);
	assert_seconds(seconds_of(&c, program, "half"), product / 40e9 + OVERHEAD);
	assert_seconds(seconds_of(&c, program, "gradient"), 5 * product / 20e9 + OVERHEAD);
	c.device.attention_depth = 64; /* as much as a head has */
	assert_seconds(seconds_of(&c, program, "half"), product / 20e9 + OVERHEAD);
	sw_program_free(program);
	sw_cluster_clear(&c);
}

/* The least that attention's products take is what its kernel takes of them under a causal mask, of heads
 * as long as these. */
static void parts_of_attention_cost_what_its_kernel_takes(void **state)
{
	sw_cluster c;
	sw_program *program;
	const double product = 2. * 4 * 512 * 512 * 64;
	(void)state;
	open(&c, &program);
	c.device.memory_bandwidth = 1e12;
	c.device.fusion = SW_FUSION_XLA_GPU;
	c.device.attention_efficiency = 0.9;
	c.device.attention_depth = 64;
	double parts_s = sw_cost_part(&c, program, find_op(program, "y"), true, product, 0) +
			 sw_cost_part(&c, program, find_op(program, "z"), true, product, 0);
	assert_seconds(parts_s + OVERHEAD, seconds_of(&c, program, "half"));
	c.device.attention_efficiency = 0.1; /* then products alone are quicker */
	parts_s = sw_cost_part(&c, program, find_op(program, "y"), true, product, 0);
	assert_seconds(parts_s, product / RATE);
	sw_program_free(program);
	sw_cluster_clear(&c);
}

/* 100 x 1000 is a row of 8 tiles of 128: half of 16 processors, or all of them with the contraction
 * in two parts. */
static void a_product_costs_whole_tiles_in_whole_rounds(void **state)
{
	sw_cluster c;
	sw_program *program;
	const double tile = 2. * 128 * 128;
	(void)state;
	open(&c, &program);
	c.device.memory_bandwidth = 1e12;
	assert_seconds(seconds_of(&c, program, "tiles"), 2e8 / RATE + OVERHEAD);
	c.device.tile = 128;
	assert_seconds(seconds_of(&c, program, "tiles"), 8 * tile * 1000 / RATE + OVERHEAD);
	c.device.processors = 16;
	assert_seconds(seconds_of(&c, program, "tiles"), 16 * tile * 500 / RATE + OVERHEAD);
	c.device.tile_depth = 100;
	assert_seconds(seconds_of(&c, program, "tiles"), 16 * tile * 600 / RATE + OVERHEAD);
	sw_program_free(program);
	sw_cluster_clear(&c);
}

/* Finer sizes never cost less than coarser ones, and no product less than its operations. */
static void more_of_a_product_is_never_cheaper(void **state)
{
	sw_rng rng = {.seed = 20261124};
	(void)state;
	print_message("seed %llu\n", (unsigned long long)rng.seed);
	for (int i = 0; i < 300; i++) {
		sw_text t = {0};
		int m = 1 + (int)sw_rng_below(&rng, 600), n = 1 + (int)sw_rng_below(&rng, 600),
		    k = 1 + (int)sw_rng_below(&rng, 600);
		sw_text_addf(&t,
		             "HloModule d\nENTRY main {\n a = f32[%1$d,%3$d] parameter(0)\n"
		             " b = f32[%3$d,%2$d] parameter(1)\n c = f32[%4$d,%3$d] parameter(2)\n"
		             " less = f32[%1$d,%2$d] dot(a, b), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n"
		             " ROOT more = f32[%4$d,%2$d] dot(c, b), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n}\n",
		             m, n, k, m + 1 + (int)sw_rng_below(&rng, 300));
		sw_program *program = read_text(t.data);
		const level_text levels[] = {{"2", 1e-3, 1e6, 0}};
		sw_cluster c;
		make_cluster(&c, levels, 1);
		c.device.tile = 128;
		c.device.processors = 13;
		c.device.tile_depth = 20;
		c.device.memory_bandwidth = 1e15;
		double less = sw_cost_op(&c, program, find_op(program, "less")),
		       more = sw_cost_op(&c, program, find_op(program, "more"));
		assert_true(less >= 2. * m * n * k / RATE);
		assert_true(more >= less * (1 - 1e-12));
		sw_program_free(program);
		sw_cluster_clear(&c);
		sw_text_clear(&t);
	}
}

static void the_interval_is_shown_where_there_is_an_error(void **state)
{
	sw_device device = {0};
	sw_text t = {0};
	(void)state;
	sw_cost_add_interval(&device, 3, &t);
	assert_int_equal(t.len, 0);
	device.prediction_error = 0.5;
	sw_cost_add_interval(&device, 3, &t);
	assert_string_equal(t.data, " (90 %: 2.0 s to 4.5 s)");
	sw_text_clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fused_kernel_moves_its_operands_and_results),
		cmocka_unit_test(kernels_that_cut_rows_reach_a_share_of_the_bandwidth),
		cmocka_unit_test(attention_costs_its_products_at_its_own_rate),
		cmocka_unit_test(parts_of_attention_cost_what_its_kernel_takes),
		cmocka_unit_test(a_product_costs_whole_tiles_in_whole_rounds),
		cmocka_unit_test(more_of_a_product_is_never_cheaper),
		cmocka_unit_test(the_interval_is_shown_where_there_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
