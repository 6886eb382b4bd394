/*
 * The plans of blocks whose best strategy is known move as many bytes as the closed forms say.
 *
 * The cluster is flat and its memory so fast that only FLOPs and links cost time; sizes are chosen
 * so that the known strategy is the best. Bytes are per rank and step. An all-gather or
 * reduce-scatter of a tensor of b bytes over p devices moves (p-1)/p b, an all-reduce twice that,
 * an all-to-all (p-1)/p of the bytes that a device has.
 */
#include "planned/planned.h"
#include "search/search.h"
#include "search/known_programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F32 4

static int64_t gathered(int64_t bytes, int64_t p)
{
	return sw_collective_payload_bytes(SW_OP_REDUCE_SCATTER, bytes, p);
}

static int64_t reduced(int64_t bytes, int64_t p)
{
	return sw_collective_payload_bytes(SW_OP_ALL_REDUCE, bytes, p);
}

static int64_t exchanged(int64_t local_bytes, int64_t p)
{
	return sw_collective_payload_bytes(SW_OP_ALL_TO_ALL, local_bytes, p);
}

/* ---- what a plan moves ------------------------------------------------------------------ */

typedef struct moved { /* by the partitioned program, loops not counted */
	int64_t count[SW_OPCODE_COUNT];
	int64_t payload[SW_OPCODE_COUNT];
} moved;

static moved moved_by(const planned *p)
{
	moved m = {0};
	sw_program *local;
	sw_error err = {0};
	check(sw_partition(p->plan, &local, &err), &err);
	for (size_t i = 0; i < local->ops.len; i++) {
		const sw_op *op = &local->ops.data[i];
		if (sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE)
			continue;
		const sw_groups *groups = &op->attrs->collective.groups;
		int64_t members = groups->n_groups ? groups->group_size : p->cluster.n_devices;
		m.count[op->opcode]++;
		m.payload[op->opcode] += sw_collective_payload_bytes(
			(sw_opcode)op->opcode,
			sw_shape_bytes(sw_value_shape(local, op->operands[0])), members);
	}
	sw_program_free(local);
	return m;
}

static void print_moved(const planned *p)
{
	moved m = moved_by(p);
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		if (m.count[o] > 0)
			print_message("  %lld %s: %lld bytes\n", (long long)m.count[o],
			              sw_opcode_name((sw_opcode)o), (long long)m.payload[o]);
}

static void expect_payload(const planned *p, const char *what, int64_t expected)
{
	int64_t payload = p->plan->predicted.payload_bytes;
	print_message("%s: %lld bytes, planned by '%s' in %.2f s\n", what, (long long)payload,
	              p->plan->chosen, p->plan->planning_s);
	if (payload == expected)
		return;
	print_moved(p);
	fail_msg("%s: %lld bytes, not %lld", what, (long long)payload, (long long)expected);
}

/* ---- transformer blocks ----------------------------------------------------------------- */

/* Few tokens, large weights: two all-reduces of the residual stream per layer and direction, one
 * for attention and one for the MLP; the first block's input needs no gradient. The fused QKV
 * matrix, split by heads, moves nothing. Over four devices a better plan exists: each weight is
 * split along both dimensions, over two devices each. */
static void blocks_with_few_tokens_are_split_as_megatron_does(void **state)
{
	static const char *const devices[] = {"2", "4"};
	int batch = 1, length = 16, width = 8192, layers = 2;
	char *blocks = write_blocks(layers, batch, length, width, 8);
	(void)state;
	for (size_t i = 0; i < SW_COUNT(devices); i++) {
		planned p;
		open_text(blocks, devices[i], &p);
		make_plan(&p, "auto");
		int64_t megatron = (4 * layers - 1) * reduced((int64_t)batch * length * width * F32,
		                                              p.cluster.n_devices);
		if (i == 0)
			expect_payload(&p, "megatron", megatron);
		assert_true(p.plan->predicted.payload_bytes <= megatron);
		close_planned(&p);
	}
	free(blocks);
}

/* Sequence parallelism: each all-reduce becomes a reduce-scatter, work per element on a part of the
 * tokens, and an all-gather: equal bytes. */
static void work_between_layers_is_split_by_tokens(void **state)
{
	int layers = 3, tokens = 64, width = 2048;
	char *text = write_residual_layers(layers, tokens, width);
	int64_t stream = (int64_t)tokens * width * F32;
	planned p;
	(void)state;
	open_text(text, "2", &p);
	p.cluster.device.memory_bandwidth = 1e9;
	make_plan(&p, "auto");
	expect_payload(&p, "sequence", layers * reduced(stream, 2));
	moved m = moved_by(&p);
	assert_int_equal(m.count[SW_OP_REDUCE_SCATTER], layers);
	assert_int_equal(m.count[SW_OP_ALL_GATHER], layers);
	assert_int_equal(m.count[SW_OP_ALL_REDUCE], 0);
	for (int l = 1; l < layers; l++) {
		char name[8];
		snprintf(name, sizeof(name), "r%d", l);
		sw_id value = find_op(p.plan->program, name)->first_result;
		assert_int_equal(sw_layout_local_bytes(
					 &p.cluster.atoms, sw_value_shape(p.plan->program, value),
					 sw_plan_layout(p.plan, p.plan->materialised[value])),
		                 stream / 2);
	}
	close_planned(&p);
	free(text);
}

/* Many tokens, small weights: the gradients and the loss are reduced. */
static void blocks_with_many_tokens_are_split_by_the_batch(void **state)
{
	char *blocks = write_blocks(2, 64, 64, 32, 4);
	planned p;
	(void)state;
	open_text(blocks, "4", &p);
	make_plan(&p, "auto");
	expect_payload(&p, "data parallelism",
	               reduced(role_bytes(&p, SW_ROLE_PARAMETER), 4) + reduced(F32, 4));
	close_planned(&p);
	free(blocks);
}

/* ZeRO-3. With ample memory: two passes over the parameters, gathered once and their gradients
 * scattered. With half of it: up to three, gathered forwards and again backwards. The first matrix
 * has no backward pass to its input, and the weights that the last block reads last in the forward
 * and first in the backward pass may stay cached. */
static void sharded_weights_are_gathered_again_where_memory_is_short(void **state)
{
	int layers = 6, width = 128;
	char *blocks = write_blocks(layers, 16, 2, width, 4);
	planned p;
	sw_error err = {0};
	(void)state;
	open_text(blocks, "4", &p);
	make_plan(&p, "zero3");
	int64_t weights = role_bytes(&p, SW_ROLE_PARAMETER), peak = p.plan->predicted.peak_bytes;
	int64_t first = (int64_t)3 * width * width * F32, block = weights / layers;
	expect_payload(&p, "zero3", 2 * gathered(weights, 4) + reduced(F32, 4));
	assert_int_equal(p.plan->regathered.len, 0);
	check(try_plan(&p, "zero3", peak / 2, &err), &err);
	sw_program_cost cost;
	assert_true(p.plan->regathered.len > 0);
	assert_true(p.plan->predicted.peak_bytes <= peak / 2);
	sw_plan_regather_all(p.plan);
	check(sw_partition_measure(p.plan, &cost, &err), &err);
	int64_t payload = cost.payload_bytes;
	assert_true(payload >= p.plan->predicted.payload_bytes);
	assert_true(payload <= 3 * gathered(weights, 4) - gathered(first, 4) + reduced(F32, 4));
	assert_true(payload >= 3 * gathered(weights, 4) - gathered(first + block, 4));
	close_planned(&p);
	free(blocks);
}

/* ---- matmuls ---------------------------------------------------------------------------- */

/* Two square matrices, both state, a loss of their product, and SGD: over 2x2x2 devices each of six
 * matrices moves along one axis, in which quarters of its other two dimensions are whole. Both
 * operands are gathered and the product is scattered; its gradient is gathered, and both gradients
 * are scattered. In all 6 (1/2) n^2/4 numbers, with n^2/p^(2/3) for the faces of the cube. */
static void matmuls_have_three_dimensions(void **state)
{
	int64_t n = 1024;
	sw_text t = {0};
	planned p;
	(void)state;
	sw_text_add(&t, "HloModule cube, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, "
	                "{}, may-alias) }\n"
	                "add.f32 {\n  a.1 = f32[] parameter(0)\n  b.1 = f32[] parameter(1)\n"
	                "  ROOT s.1 = f32[] add(a.1, b.1)\n}\nENTRY main {\n");
	const char *const lines[] = {
		"a = f32[N,N] parameter(0)",
		"b = f32[N,N] parameter(1)",
		"c = f32[N,N] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
		"dc = f32[N,N] tanh(c)",
		"zero = f32[] constant(0)",
		"loss = f32[] reduce(dc, zero), dimensions={0,1}, to_apply=add.f32",
		"da = f32[N,N] dot(dc, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
		"db = f32[N,N] dot(a, dc), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
		"new_a = f32[N,N] subtract(a, da)",
		"new_b = f32[N,N] subtract(b, db)",
		"ROOT result = (f32[N,N], f32[N,N], f32[]) tuple(new_a, new_b, loss)"};
	for (size_t i = 0; i < SW_COUNT(lines); i++) {
		for (const char *c = lines[i]; *c; c++)
			if (*c == 'N')
				sw_text_addf(&t, "%d", (int)n);
			else
				sw_text_add_n(&t, c, 1);
		sw_text_add(&t, "\n");
	}
	sw_text_add(&t, "}\n");
	open_text(t.data, "8", &p);
	make_plan(&p, "auto");
	/* where a matrix is whole along its axis at rest, scattering and gathering are one
	 * all-reduce; each device sums its own part of the loss */
	expect_payload(&p, "cube", 6 * gathered(n * n / 4 * F32, 2) + reduced(F32, 8));
	assert_int_equal(p.plan->n_axes, 3);
	assert_non_null(strstr(p.plan->searched, "three axes"));
	close_planned(&p);
	sw_text_clear(&t);
}

/* ---- experts ---------------------------------------------------------------------------- */

/* Four all-to-alls of the tensors sent to experts (twice the tokens), none of which is gathered;
 * the scale's gradient and the loss. */
static void tokens_go_to_experts_and_back_in_all_to_alls(void **state)
{
	int groups = 8, tokens = 2048, experts = 8, width = 256;
	char *text = write_experts(groups, tokens, experts, width, 4096);
	planned p;
	(void)state;
	open_text(text, "4", &p);
	make_plan(&p, "auto");
	int64_t sent = (int64_t)2 * groups * tokens * width * F32;
	expect_payload(&p, "experts",
	               4 * exchanged(sent / 4, 4) + reduced(width * F32, 4) + reduced(F32, 4));
	moved m = moved_by(&p);
	assert_int_equal(m.count[SW_OP_ALL_TO_ALL], 4);
	/* no tokens are gathered; the scale may be, after each device has updated a part of it */
	assert_true(m.payload[SW_OP_ALL_GATHER] <= gathered(width * F32, 4));
	close_planned(&p);
	free(text);
}

/* ---- vocabulary ------------------------------------------------------------------------- */

/* The table is split by words: rows that a device lacks are masked and added up, forwards and
 * backwards; of the softmax the maxima and sums are combined, and of the targets' logits only the
 * loss. */
static void logits_are_never_gathered(void **state)
{
	int tokens = 64, words = 16384, width = 256;
	char *text = write_vocabulary(tokens, words, width);
	planned p;
	(void)state;
	open_text(text, "2", &p);
	make_plan(&p, "auto");
	expect_payload(&p, "vocabulary",
	               2 * reduced((int64_t)tokens * width * F32, 2) +
	                       2 * reduced(tokens * F32, 2) + reduced(F32, 2));
	assert_int_equal(sw_layout_split_atoms(input_layout(&p, 0), 0), 1);
	close_planned(&p);
	free(text);
}

/* ---- convolutions ----------------------------------------------------------------------- */

/* Many small images: the batch is split, and only the kernel's gradient moves. */
static void images_are_split_by_the_batch(void **state)
{
	static const char text[] =
		"HloModule images, input_output_alias={ {0}: (0, {}, may-alias) }\n"
		"add.f32 {\n  a.1 = f32[] parameter(0)\n  b.1 = f32[] parameter(1)\n"
		"  ROOT s.1 = f32[] add(a.1, b.1)\n}\n"
		"ENTRY main {\n"
		"  kernel = f32[3,3,3,5] parameter(0)\n"
		"  x = f32[64,32,32,3] parameter(1)\n"
		"  y = f32[64,32,32,5] convolution(x, kernel), window={size=3x3 pad=1_1x1_1}, "
		"dim_labels=b01f_01io->b01f\n"
		"  dy = f32[64,32,32,5] tanh(y)\n"
		"  zero = f32[] constant(0)\n"
		"  loss = f32[] reduce(dy, zero), dimensions={0,1,2,3}, to_apply=add.f32\n"
		"  g = f32[3,3,3,5] convolution(x, dy), window={size=32x32 pad=1_1x1_1}, "
		"dim_labels=f01b_i01o->01bf\n"
		"  new = f32[3,3,3,5] subtract(kernel, g)\n"
		"  ROOT result = (f32[3,3,3,5], f32[]) tuple(new, loss)\n"
		"}\n";
	planned p;
	(void)state;
	open_text(text, "4", &p);
	make_plan(&p, "auto");
	expect_payload(&p, "images", reduced(3 * 3 * 3 * 5 * F32, 4) + reduced(F32, 4));
	close_planned(&p);
}

static bool has_halos(const sw_plan *plan)
{
	for (size_t i = 0; i < plan->program->ops.len; i++)
		for (int32_t f = 0; f < plan->rules[i]->n_factors; f++)
			if (plan->rules[i]->factors[f].exchange == SW_EXCHANGE_HALO)
				return true;
	return false;
}

/* One large image: it is split by rows, and each convolution needs one row from the neighbour on
 * each side. */
static void an_image_is_split_by_rows(void **state)
{
	static const char text[] =
		"HloModule image\n"
		"ENTRY main {\n"
		"  kernel = f32[3,3,3,3] parameter(0)\n"
		"  x = f32[1,1024,1024,3] parameter(1)\n"
		"  y = f32[1,1024,1024,3] convolution(x, kernel), window={size=3x3 pad=1_1x1_1}, "
		"dim_labels=b01f_01io->b01f\n"
		"  t = f32[1,1024,1024,3] tanh(y)\n"
		"  ROOT z = f32[1,1024,1024,3] convolution(t, kernel), window={size=3x3 "
		"pad=1_1x1_1}, "
		"dim_labels=b01f_01io->b01f\n"
		"}\n";
	planned p;
	sw_text words = {0};
	(void)state;
	open_text(text, "2", &p);
	make_plan(&p, "auto");
	assert_true(has_halos(p.plan));
	expect_payload(&p, "image", 2 * 1024 * 3 * F32);
	explain_plan(&p, true, &words);
	assert_non_null(strstr(words.data, "collective-permute"));
	assert_non_null(strstr(words.data, "exchanged inside the op: halo"));
	sw_text_clear(&words);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_with_few_tokens_are_split_as_megatron_does),
		cmocka_unit_test(work_between_layers_is_split_by_tokens),
		cmocka_unit_test(blocks_with_many_tokens_are_split_by_the_batch),
		cmocka_unit_test(sharded_weights_are_gathered_again_where_memory_is_short),
		cmocka_unit_test(matmuls_have_three_dimensions),
		cmocka_unit_test(tokens_go_to_experts_and_back_in_all_to_alls),
		cmocka_unit_test(logits_are_never_gathered),
		cmocka_unit_test(images_are_split_by_the_batch),
		cmocka_unit_test(an_image_is_split_by_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
