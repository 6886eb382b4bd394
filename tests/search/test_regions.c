/*
 * Loops and conditionals: carried values may be partial sums, loop-invariant conversions are moved
 * before the loop if memory allows, and branches work on shards. Bytes are per rank and step.
 */
#include "planned/planned.h"

#include <stdlib.h>
#include <string.h>

#define ADD                                                                                        \
	"add.f32 {\n  a.0 = f32[] parameter(0)\n  b.0 = f32[] parameter(1)\n"                      \
	"  ROOT s.0 = f32[] add(a.0, b.0)\n}\n"

static int64_t scattered(int64_t bytes, int64_t p)
{
	return sw_collective_payload_bytes(SW_OP_REDUCE_SCATTER, bytes, p);
}

static int64_t reduced(int64_t bytes, int64_t p)
{
	return sw_collective_payload_bytes(SW_OP_ALL_REDUCE, bytes, p);
}

/* Count collectives in the text of the partitioned program: in the entry, and everywhere else. */
static void count_collectives(const planned *p, int *outside, int *inside)
{
	sw_program *local;
	sw_error err = {0};
	*outside = *inside = 0;
	check(sw_partition(p->plan, &local, &err), &err);
	for (size_t i = 0; i < local->ops.len; i++) {
		const sw_op *op = &local->ops.data[i];
		if (sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE)
			++*(op->computation == local->entry ? outside : inside);
	}
	sw_program_free(local);
}

/* ---- partial sums in loops -------------------------------------------------------------- */

static const char accumulation[] =
	"HloModule accumulation, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	"condition {\n"
	"  p.1 = (s32[], f32[64,32], f32[64,32], f32[4,48,64]) parameter(0)\n"
	"  i.1 = s32[] get-tuple-element(p.1), index=0\n"
	"  n.1 = s32[] constant(4)\n"
	"  ROOT less.1 = pred[] compare(i.1, n.1), direction=LT\n"
	"}\n"
	"body {\n"
	"  p.2 = (s32[], f32[64,32], f32[64,32], f32[4,48,64]) parameter(0)\n"
	"  i.2 = s32[] get-tuple-element(p.2), index=0\n"
	"  sum.2 = f32[64,32] get-tuple-element(p.2), index=1\n"
	"  w.2 = f32[64,32] get-tuple-element(p.2), index=2\n"
	"  all.2 = f32[4,48,64] get-tuple-element(p.2), index=3\n"
	"  zero.2 = s32[] constant(0)\n"
	"  slab.2 = f32[1,48,64] dynamic-slice(all.2, i.2, zero.2, zero.2), "
	"dynamic_slice_sizes={1,48,64}\n"
	"  x.2 = f32[48,64] reshape(slab.2)\n"
	"  y.2 = f32[48,32] dot(x.2, w.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  dy.2 = f32[48,32] tanh(y.2)\n"
	"  g.2 = f32[64,32] dot(x.2, dy.2), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	"  more.2 = f32[64,32] add(sum.2, g.2)\n"
	"  one.2 = s32[] constant(1)\n"
	"  j.2 = s32[] add(i.2, one.2)\n"
	"  ROOT r.2 = (s32[], f32[64,32], f32[64,32], f32[4,48,64]) tuple(j.2, more.2, w.2, "
	"all.2)\n"
	"}\n"
	"ENTRY main {\n"
	"  w = f32[64,32] parameter(0)\n"
	"  batch = f32[192,64] parameter(1)\n"
	"  x = f32[4,48,64] reshape(batch)\n"
	"  i = s32[] constant(0)\n"
	"  zero = f32[] constant(0)\n"
	"  none = f32[64,32] broadcast(zero), dimensions={}\n"
	"  t = (s32[], f32[64,32], f32[64,32], f32[4,48,64]) tuple(i, none, w, x)\n"
	"  done = (s32[], f32[64,32], f32[64,32], f32[4,48,64]) while(t), condition=condition, "
	"body=body\n"
	"  g = f32[64,32] get-tuple-element(done), index=1\n"
	"  new_w = f32[64,32] subtract(w, g)\n"
	"  ROOT result = (f32[64,32]) tuple(new_w)\n"
	"}\n";

/* The batch is split within each microbatch; the gradients add up as partial sums, and are reduced
 * once, after the loop. */
static void gradients_of_microbatches_are_reduced_once(void **state)
{
	static const char *const devices[] = {"2", "3", "4"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(devices); i++) {
		planned p;
		int outside, inside;
		open_text(accumulation, devices[i], &p);
		make_plan(&p, "dp");
		count_collectives(&p, &outside, &inside);
		assert_int_equal(outside, 1);
		assert_int_equal(inside, 0);
		assert_int_equal(p.plan->predicted.payload_bytes,
		                 reduced(64 * 32 * 4, p.cluster.n_devices));
		close_planned(&p);
	}
}

/* Each layer's gradient is written into its place of the stack as a partial sum. */
static void gradients_of_stacked_layers_are_reduced_after_the_loop(void **state)
{
	planned p;
	int outside, inside;
	(void)state;
	open_fixture("lstm-lm-tiny", "4", &p);
	make_plan(&p, "dp");
	count_collectives(&p, &outside, &inside);
	assert_true(outside > 0);
	assert_int_equal(inside, 0);
	close_planned(&p);
}

/* ---- what does not change in a loop ----------------------------------------------------- */

#define LAYERS 4
#define TRIPS 8

/* A loop that applies the same layers, each of n x n, in each iteration. */
static char *write_loop(int n)
{
	sw_text t = {0}, leaves = {0}, names = {0};
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&leaves, ", f32[%d,%d]", n, n);
	sw_text_add(&t, "HloModule iterations, input_output_alias={");
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&t, "%s {%d}: (%d, {}, may-alias)", l ? "," : "", l + 1, l);
	sw_text_addf(&t, " }\ncondition {\n  p.1 = (s32[], f32[32,%d]%s) parameter(0)\n", n,
	             leaves.data);
	sw_text_add(&t, "  i.1 = s32[] get-tuple-element(p.1), index=0\n");
	sw_text_addf(&t, "  n.1 = s32[] constant(%d)\n", TRIPS);
	sw_text_add(&t, "  ROOT less.1 = pred[] compare(i.1, n.1), direction=LT\n}\nbody {\n");
	sw_text_addf(&t, "  p.2 = (s32[], f32[32,%d]%s) parameter(0)\n", n, leaves.data);
	sw_text_add(&t, "  i.2 = s32[] get-tuple-element(p.2), index=0\n");
	sw_text_addf(&t, "  x0.2 = f32[32,%d] get-tuple-element(p.2), index=1\n", n);
	for (int l = 0; l < LAYERS; l++) {
		sw_text_addf(&t, "  w%d.2 = f32[%d,%d] get-tuple-element(p.2), index=%d\n", l, n, n,
		             l + 2);
		sw_text_addf(&t,
		             "  y%d.2 = f32[32,%d] dot(x%d.2, w%d.2), lhs_contracting_dims={1}, "
		             "rhs_contracting_dims={0}\n",
		             l, n, l, l);
		sw_text_addf(&t, "  x%d.2 = f32[32,%d] tanh(y%d.2)\n", l + 1, n, l);
		sw_text_addf(&names, ", w%d.2", l);
	}
	sw_text_add(&t, "  one.2 = s32[] constant(1)\n  j.2 = s32[] add(i.2, one.2)\n");
	sw_text_addf(&t,
	             "  ROOT r.2 = (s32[], f32[32,%d]%s) tuple(j.2, x%d.2%s)\n}\nENTRY main {\n", n,
	             leaves.data, LAYERS, names.data);
	names.len = 0;
	for (int l = 0; l < LAYERS; l++) {
		sw_text_addf(&t, "  w%d = f32[%d,%d] parameter(%d)\n", l, n, n, l);
		sw_text_addf(&names, ", w%d", l);
	}
	sw_text_addf(&t, "  x = f32[32,%d] parameter(%d)\n  i = s32[] constant(0)\n", n, LAYERS);
	sw_text_addf(&t, "  t = (s32[], f32[32,%d]%s) tuple(i, x%s)\n", n, leaves.data, names.data);
	sw_text_addf(&t,
	             "  done = (s32[], f32[32,%d]%s) while(t), condition=condition, body=body\n", n,
	             leaves.data);
	sw_text_addf(&t, "  y = f32[32,%d] get-tuple-element(done), index=1\n", n);
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&t, "  new%d = f32[%d,%d] negate(w%d)\n", l, n, n, l);
	sw_text_addf(&t, "  ROOT result = (f32[32,%d]", n);
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&t, ", f32[%d,%d]", n, n);
	sw_text_add(&t, ") tuple(y");
	for (int l = 0; l < LAYERS; l++)
		sw_text_addf(&t, ", new%d", l);
	sw_text_add(&t, ")\n}\n");
	sw_text_clear(&leaves);
	sw_text_clear(&names);
	return t.data;
}

/* Sharded weights are gathered before the loop; where memory is too small for all of them at once,
 * in each of its iterations. */
static void weights_are_gathered_before_the_loop_if_memory_allows(void **state)
{
	int n = 128;
	char *text = write_loop(n);
	planned p;
	sw_error err = {0};
	int outside, inside;
	int64_t bytes = (int64_t)n * n * 4, once = LAYERS * scattered(bytes, 4);
	(void)state;
	open_text(text, "4", &p);
	make_plan(&p, "zero3");
	count_collectives(&p, &outside, &inside);
	assert_int_equal(inside, 0);
	assert_int_equal(p.plan->predicted.payload_bytes, once);
	assert_true(p.plan->predicted.peak_bytes >= (LAYERS + LAYERS / 4) * bytes);
	/* shards, which the loop passes on, and which are overwritten after it; one matrix, and
	 * activations */
	check(try_plan(&p, "zero3", (LAYERS / 4 + 1) * bytes + bytes / 2, &err), &err);
	count_collectives(&p, &outside, &inside);
	assert_true(p.plan->predicted.peak_bytes >= (LAYERS / 4 + 1) * bytes);
	assert_int_equal(outside, 0);
	assert_int_equal(inside, LAYERS);
	assert_int_equal(p.plan->predicted.payload_bytes, TRIPS * once);
	/* with memory for one matrix more, that one is gathered before the loop */
	check(try_plan(&p, "zero3", (LAYERS / 4 + 2) * bytes, &err), &err);
	count_collectives(&p, &outside, &inside);
	assert_int_equal(outside, 1);
	assert_int_equal(inside, LAYERS - 1);
	assert_int_equal(p.plan->predicted.payload_bytes,
	                 (TRIPS * (LAYERS - 1) + 1) * once / LAYERS);
	close_planned(&p);
	free(text);
}

/* ---- conditionals ----------------------------------------------------------------------- */

/* A gradient is scaled where its norm is too large. */
static const char clipping[] =
	"HloModule clipping, input_output_alias={ {0}: (0, {}, may-alias) }\n" ADD "shrink {\n"
	"  p.1 = (f32[64,32], f32[]) parameter(0)\n"
	"  g.1 = f32[64,32] get-tuple-element(p.1), index=0\n"
	"  norm.1 = f32[] get-tuple-element(p.1), index=1\n"
	"  norms.1 = f32[64,32] broadcast(norm.1), dimensions={}\n"
	"  ROOT shrunk.1 = f32[64,32] divide(g.1, norms.1)\n"
	"}\n"
	"keep { ROOT g.2 = f32[64,32] parameter(0) }\n"
	"ENTRY main {\n"
	"  w = f32[64,32] parameter(0)\n"
	"  x = f32[48,64] parameter(1)\n"
	"  y = f32[48,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  dy = f32[48,32] tanh(y)\n"
	"  g = f32[64,32] dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	"  squares = f32[64,32] multiply(g, g)\n"
	"  zero = f32[] constant(0)\n"
	"  norm = f32[] reduce(squares, zero), dimensions={0,1}, to_apply=add.f32\n"
	"  one = f32[] constant(1)\n"
	"  large = pred[] compare(norm, one), direction=GT\n"
	"  given = (f32[64,32], f32[]) tuple(g, norm)\n"
	"  clipped = f32[64,32] conditional(large, given, g), true_computation=shrink, "
	"false_computation=keep\n"
	"  new_w = f32[64,32] subtract(w, clipped)\n"
	"  ROOT result = (f32[64,32]) tuple(new_w)\n"
	"}\n";

/* The gradient is scattered, its norm added up, and the branch scales the shard of each device. */
static void a_branch_works_on_shards(void **state)
{
	planned p;
	int outside, inside;
	(void)state;
	open_text(clipping, "4", &p);
	make_plan(&p, "zero3");
	count_collectives(&p, &outside, &inside);
	assert_int_equal(inside, 0);
	assert_int_equal(p.plan->predicted.payload_bytes,
	                 2 * scattered(64 * 32 * 4, 4) + reduced(4, 4));
	sw_id shrunk = (sw_id)(find_op(p.plan->program, "shrunk.1") - p.plan->program->ops.data);
	assert_int_equal(sw_strategy_share(&p.cluster.atoms, &p.plan->strategies[shrunk]), 4);
	assert_int_equal(p.plan->warnings.len, 0);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_of_microbatches_are_reduced_once),
		cmocka_unit_test(gradients_of_stacked_layers_are_reduced_after_the_loop),
		cmocka_unit_test(weights_are_gathered_before_the_loop_if_memory_allows),
		cmocka_unit_test(a_branch_works_on_shards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
