/*
 * Fixed strategies move the bytes that the papers say.
 *
 * Closed forms, per rank and step, over p devices; an all-reduce of b bytes sends 2 (p-1)/p b from
 * each. The loss is one f32 that is all-reduced where the batch is split: 2 (p-1)/p * 4 bytes more.
 */
#include "planned/planned.h"
#include "search/runnable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t all_reduce_bytes(int64_t bytes, int64_t p)
{
	return sw_collective_payload_bytes(SW_OP_ALL_REDUCE, bytes, p);
}

static const struct {
	const char *devices, *megatron, *sequence;
	int64_t p;
} FLAT[] = {{"2", "megatron:tp=2", "megatron:tp=2,sp", 2},
            {"3", "megatron:tp=3", "megatron:tp=3,sp", 3},
            {"4", "megatron:tp=4", "megatron:tp=4,sp", 4},
            {"8", "megatron:tp=8", "megatron:tp=8,sp", 8}};

/* mlp-bf16 computes in bf16 on f32 weights: its gradients have half the bytes. */
static void data_parallelism_moves_the_gradients_once(void **state)
{
	static const char *const clusters[] = {"local-1x2.yaml", "local-1x4.yaml", "local-2x2.yaml",
	                                       "local-2x4.yaml"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(RUNNABLE); f++) {
		for (size_t c = 0; c < SW_COUNT(clusters); c++) {
			planned p;
			open_fixture(RUNNABLE[f], clusters[c], &p);
			make_plan(&p, "dp");
			int64_t weights = role_bytes(&p, SW_ROLE_PARAMETER),
				devices = p.cluster.n_devices;
			int64_t gradients = all_reduce_bytes(
				strstr(RUNNABLE[f], "bf16") ? weights / 2 : weights, devices);
			int64_t loss = all_reduce_bytes(4, devices),
				payload = p.plan->predicted.payload_bytes;
			if (payload != gradients + loss)
				fail_msg("%s on %s: %lld bytes, not %lld + %lld", RUNNABLE[f],
				         clusters[c], (long long)payload, (long long)gradients,
				         (long long)loss);
			close_planned(&p);
		}
	}
}

/* Each weight is gathered once and cached for the backward pass (memory is ample), each gradient
 * reduced and scattered: 2 (p-1)/p of the weights' bytes, as much as data parallelism. */
static void sharded_state_moves_as_many_bytes_as_data_parallelism(void **state)
{
	static const char *const strategies[] = {"zero1", "zero2", "zero3"};
	char *blocks = write_blocks(2, 48, 16, 96, 6);
	(void)state;
	for (size_t c = 0; c < SW_COUNT(FLAT); c++) {
		planned p;
		open_text(blocks, FLAT[c].devices, &p);
		for (size_t i = 0; i < SW_COUNT(strategies); i++) {
			make_plan(&p, strategies[i]);
			int64_t expected =
				all_reduce_bytes(role_bytes(&p, SW_ROLE_PARAMETER), FLAT[c].p) +
				all_reduce_bytes(4, FLAT[c].p);
			assert_int_equal(p.plan->predicted.payload_bytes, expected);
		}
		close_planned(&p);
	}
	free(blocks);
}

/* The gathers and reduce-scatters of zero3, one by one: each weight is an operand of one gather,
 * each gradient of one reduce-scatter, and nothing else moves but the loss. */
static void sharded_weights_are_gathered_and_their_gradients_scattered(void **state)
{
	char *blocks = write_blocks(2, 64, 16, 64, 4);
	planned p;
	sw_program *local;
	sw_error err = {0};
	int64_t gathered = 0, scattered = 0, reduced = 0, others = 0;
	(void)state;
	open_text(blocks, "4", &p);
	make_plan(&p, "zero3");
	check(sw_partition(p.plan, &local, &err), &err);
	for (size_t i = 0; i < local->ops.len; i++) {
		const sw_op *op = &local->ops.data[i];
		if (sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE)
			continue;
		int64_t bytes = sw_shape_bytes(sw_value_shape(local, op->operands[0]));
		gathered += op->opcode == SW_OP_ALL_GATHER ? bytes * 4 : 0;
		scattered += op->opcode == SW_OP_REDUCE_SCATTER ? bytes : 0;
		reduced += op->opcode == SW_OP_ALL_REDUCE ? bytes : 0;
		others += op->opcode != SW_OP_ALL_GATHER && op->opcode != SW_OP_REDUCE_SCATTER &&
		          op->opcode != SW_OP_ALL_REDUCE;
	}
	assert_int_equal(gathered, role_bytes(&p, SW_ROLE_PARAMETER));
	assert_int_equal(scattered, role_bytes(&p, SW_ROLE_PARAMETER));
	assert_int_equal(reduced, 4);
	assert_int_equal(others, 0);
	sw_program_free(local);
	close_planned(&p);
	free(blocks);
}

/* Two all-reduces of the residual stream per layer and direction; the first block's input needs no
 * gradient, so one fewer. An all-reduce may be written as a reduce-scatter and a gather around the
 * additions: the bytes are equal. */
static void megatron_reduces_twice_per_layer_and_direction(void **state)
{
	(void)state;
	for (int layers = 1; layers <= 3; layers++) {
		for (size_t c = 0; c < SW_COUNT(FLAT); c++) {
			char *blocks = write_blocks(layers, 16, 96, 768, 24);
			planned p;
			open_text(blocks, FLAT[c].devices, &p);
			make_plan(&p, FLAT[c].megatron);
			int64_t stream = all_reduce_bytes((int64_t)16 * 96 * 768 * 4, FLAT[c].p);
			int64_t payload = p.plan->predicted.payload_bytes,
				expected = (4 * layers - 1) * stream;
			if (payload < expected ||
			    payload > expected + all_reduce_bytes(4, FLAT[c].p))
				fail_msg("%d layers on %s: %lld bytes, expected %lld (%d "
				         "all-reduces of "
				         "%lld)",
				         layers, FLAT[c].devices, (long long)payload,
				         (long long)expected, 4 * layers - 1, (long long)stream);
			close_planned(&p);
			free(blocks);
		}
	}
}

/* With sequence parallelism each all-reduce is a reduce-scatter and an all-gather: equal bytes, and
 * the residual stream is never whole. */
static void sequence_parallelism_moves_equal_bytes_and_splits_the_stream(void **state)
{
	(void)state;
	for (size_t c = 0; c < SW_COUNT(FLAT); c++) {
		char *blocks = write_blocks(2, 16, 96, 768, 24);
		planned p;
		open_text(blocks, FLAT[c].devices, &p);
		make_plan(&p, FLAT[c].sequence);
		int64_t stream = all_reduce_bytes((int64_t)16 * 96 * 768 * 4, FLAT[c].p);
		int64_t more = p.plan->predicted.payload_bytes - 7 * stream;
		assert_true(more >= 0 && more <= all_reduce_bytes(4, FLAT[c].p));
		for (int r = 1; r <= 3; r++) {
			char name[8];
			snprintf(name, sizeof(name), "r%d", r);
			const sw_op *op = find_op(p.plan->program, name);
			assert_true(
				splits(sw_plan_layout(p.plan, p.plan->produced[op->first_result])));
		}
		close_planned(&p);
		free(blocks);
	}
}

/* Two layers of m rows and square weights, trained: y = tanh(relu(x v) w). */
static char *write_layers(int m, int n)
{
	sw_text t = {0};
	sw_text_addf(
		&t,
		"HloModule layers, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, "
		"may-alias) "
		"}\n"
		"ENTRY main {\n  v = f32[%2$d,%2$d] parameter(0)\n  w = f32[%2$d,%2$d] "
		"parameter(1)\n"
		"  x = f32[%1$d,%2$d] parameter(2)\n  zero = f32[] constant(0)\n"
		"  none = f32[%1$d,%2$d] broadcast(zero), dimensions={}\n"
		"  a = f32[%1$d,%2$d] dot(x, v), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={0}\n"
		"  h = f32[%1$d,%2$d] maximum(a, none)\n"
		"  b = f32[%1$d,%2$d] dot(h, w), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={0}\n"
		"  d = f32[%1$d,%2$d] tanh(b)\n"
		"  gw = f32[%2$d,%2$d] dot(h, d), lhs_contracting_dims={0}, "
		"rhs_contracting_dims={0}\n"
		"  dh = f32[%1$d,%2$d] dot(d, w), lhs_contracting_dims={1}, "
		"rhs_contracting_dims={1}\n"
		"  on = pred[%1$d,%2$d] compare(a, none), direction=GT\n"
		"  da = f32[%1$d,%2$d] select(on, dh, none)\n"
		"  gv = f32[%2$d,%2$d] dot(x, da), lhs_contracting_dims={0}, "
		"rhs_contracting_dims={0}\n"
		"  newv = f32[%2$d,%2$d] subtract(v, gv)\n  neww = f32[%2$d,%2$d] subtract(w, gw)\n"
		"  ROOT out = (f32[%2$d,%2$d], f32[%2$d,%2$d]) tuple(newv, neww)\n}\n",
		m, n);
	return t.data;
}

/* On r by c devices: the panels of each weight are gathered over the rows, and its gradient reduced
 * and scattered there; between the layers activations of m / r rows are gathered, or scattered,
 * once in each direction. (The data are given whole.) */
static void summa_moves_panels_of_weights_and_of_activations(void **state)
{
	static const struct {
		const char *devices, *strategy;
		int64_t r, c;
	} cases[] = {{"4", "summa:2x2", 2, 2}, {"8", "summa:4x2", 4, 2}, {"16", "summa", 4, 4}};
	const int64_t m = 768, n = 384;
	char *layers = write_layers((int)m, (int)n);
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		planned p;
		open_text(layers, cases[i].devices, &p);
		make_plan(&p, cases[i].strategy);
		int64_t r = cases[i].r, c = cases[i].c;
		int64_t weights = 2 * 2 * (r - 1) * (n * n * 4 / (r * c));
		int64_t activations = 2 * (c - 1) * (m * n * 4 / (r * c));
		assert_int_equal(p.plan->predicted.payload_bytes, weights + activations);
		for (uint32_t k = 0; k < 2; k++) {
			assert_int_equal(sw_layout_local_bytes(&p.cluster.atoms, input_shape(&p, k),
			                                       input_layout(&p, k)),
			                 n * n * 4 / (r * c));
			assert_true(sw_layout_split_atoms(input_layout(&p, k), 0) &&
			            sw_layout_split_atoms(input_layout(&p, k), 1));
		}
		close_planned(&p);
	}
	free(layers);
}

/* AxoNN's equations 4 to 8; the first layer has no gradient of its input, so of (6) and (7) there
 * are three. In this chain the solver does what alternate transposes do. */
static void axonn_moves_the_bytes_of_its_equations(void **state)
{
	static const struct {
		const char *devices, *strategy;
		int64_t x, y, z, d;
	} cases[] = {{"4", "axonn:2,2,1,1", 2, 2, 1, 1},
	             {"4", "axonn:1,1,4,1", 1, 1, 4, 1},
	             {"8", "axonn:2,2,2,1", 2, 2, 2, 1},
	             {"16", "axonn:2,2,2,2", 2, 2, 2, 2}};
	const int64_t m = 96, n = 384;
	char *layers = write_layers((int)m, (int)n);
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		planned p;
		open_text(layers, cases[i].devices, &p);
		make_plan(&p, cases[i].strategy);
		int64_t x = cases[i].x, z = cases[i].z, d = cases[i].d,
			weight = n * n * 4 / (x * cases[i].y);
		int64_t gathers = 2 * (z - 1) * (weight / z),
			sums = 2 * all_reduce_bytes(weight / z, d);
		int64_t activations = 3 * all_reduce_bytes(m * n * 4 / (z * d * x), x);
		assert_int_equal(p.plan->predicted.payload_bytes, 2 * gathers + sums + activations);
		close_planned(&p);
	}
	free(layers);
}

/* Every copy has all of the state, and each dot's contraction is shared among them. */
static void copies_share_the_contraction_of_dots(void **state)
{
	char *layers = write_layers(768, 384);
	planned p;
	int dots = 0;
	(void)state;
	open_text(layers, "8", &p);
	make_plan(&p, "2.5d:2x2x2");
	for (uint32_t k = 0; k < 2; k++)
		assert_int_equal(sw_layout_split_atoms(input_layout(&p, k), -1), 3);
	for (sw_id id = 0; id < p.plan->program->ops.len; id++) {
		if (sw_op_at(p.plan->program, id)->opcode != SW_OP_DOT)
			continue;
		const sw_choice *inner = &p.plan->strategies[id].atom[2];
		assert_int_equal(inner->kind, SW_CHOICE_SPLIT);
		assert_int_equal(p.plan->rules[id]->factors[inner->index].kind, SW_FACTOR_REDUCED);
		dots++;
	}
	assert_int_equal(dots, 5);
	close_planned(&p);
	free(layers);
}

static int count_ops(const planned *p, sw_opcode opcode)
{
	sw_program *local;
	sw_error err = {0};
	int n = 0;
	check(sw_partition(p->plan, &local, &err), &err);
	for (size_t i = 0; i < local->ops.len; i++)
		n += local->ops.data[i].opcode == opcode;
	sw_program_free(local);
	return n;
}

/* The experts' weights and moments are split by expert, all other parameters are whole; tokens go
 * to their experts and back. */
static void experts_are_split_and_the_rest_is_data_parallel(void **state)
{
	static const char *const clusters[] = {"local-1x4.yaml", "local-2x4.yaml"};
	(void)state;
	for (size_t c = 0; c < SW_COUNT(clusters); c++) {
		planned p;
		int experts = 0;
		open_fixture("moe-gshard-tiny", clusters[c], &p);
		make_plan(&p, "expert");
		for (uint32_t i = 0; i < p.sidecar.n_inputs; i++) {
			const char *name = p.sidecar.inputs[i].name;
			bool expert = strstr(name, "experts.up") || strstr(name, "experts.down");
			int64_t parts = sw_atoms_group_size(
				&p.cluster.atoms, sw_layout_split_atoms(input_layout(&p, i), 0));
			if (expert && parts != 4)
				fail_msg("'%s' is split among %lld", name, (long long)parts);
			if (p.sidecar.inputs[i].role == SW_ROLE_PARAMETER && !expert &&
			    !strstr(name, "router"))
				assert_false(splits(input_layout(&p, i)));
			experts += expert;
		}
		assert_int_equal(experts, 3 * 2);
		assert_true(count_ops(&p, SW_OP_ALL_TO_ALL) > 0);
		close_planned(&p);
	}
}

/* Where the gathered matrix does not fit, it is streamed in panels: equal bytes over the network,
 * and never more than a panel at once. */
static void matrices_too_large_to_gather_are_streamed(void **state)
{
	static const char hlo[] =
		"HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }\n"
		"ENTRY main { w = f32[1024,1024] parameter(0)\n x = f32[8,1024] parameter(1)\n"
		"  half = f32[] constant(0.5)\n halves = f32[1024,1024] broadcast(half), "
		"dimensions={}\n"
		"  next = f32[1024,1024] multiply(w, halves)\n"
		"  y = f32[8,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
		"  ROOT out = (f32[1024,1024], f32[8,1024]) tuple(next, y) }\n";
	const int64_t matrix = INT64_C(4) << 20;
	planned p;
	sw_error err = {0};
	(void)state;
	open_text(hlo, "local-1x4.yaml", &p);
	make_plan(&p, "zero3");
	sw_program_cost free = p.plan->predicted;
	assert_true(free.peak_bytes >=
	            matrix + 2 * matrix / 4); /* shards before and after the step, and the whole */
	assert_int_equal(try_plan(&p, "zero3", matrix, &err), SW_OK);
	assert_true(p.plan->predicted.peak_bytes <= matrix);
	assert_int_equal(p.plan->predicted.payload_bytes, free.payload_bytes);
	/* the result stays split by its rows */
	assert_int_equal(free.payload_bytes, 3 * matrix / 4);
	for (sw_id id = 0; id < p.plan->program->ops.len; id++)
		if (sw_op_at(p.plan->program, id)->opcode == SW_OP_DOT)
			assert_true(p.plan->strategies[id].atom[0].stream_stride > 0);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_parallelism_moves_the_gradients_once),
		cmocka_unit_test(sharded_state_moves_as_many_bytes_as_data_parallelism),
		cmocka_unit_test(sharded_weights_are_gathered_and_their_gradients_scattered),
		cmocka_unit_test(megatron_reduces_twice_per_layer_and_direction),
		cmocka_unit_test(sequence_parallelism_moves_equal_bytes_and_splits_the_stream),
		cmocka_unit_test(summa_moves_panels_of_weights_and_of_activations),
		cmocka_unit_test(axonn_moves_the_bytes_of_its_equations),
		cmocka_unit_test(copies_share_the_contraction_of_dots),
		cmocka_unit_test(experts_are_split_and_the_rest_is_data_parallel),
		cmocka_unit_test(matrices_too_large_to_gather_are_streamed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
