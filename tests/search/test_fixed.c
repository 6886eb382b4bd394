/*
 * Fixed strategies are honoured: where state, data and ops are split.
 */
#include "planned/planned.h"
#include "search/runnable.h"

#include <stdlib.h>

/* ---- layouts at rest -------------------------------------------------------------------- */

/* Check that every input of a role with a dimension that the devices divide is split over all of
 * them, or that all are whole. */
static void check_role(const planned *p, sw_role role, bool split)
{
	int64_t devices = p->cluster.n_devices, n = 0;
	for (uint32_t i = 0; i < p->sidecar.n_inputs; i++) {
		if (p->sidecar.inputs[i].role != role)
			continue;
		const sw_layout *layout = input_layout(p, i);
		sw_shape shape = input_shape(p, i);
		bool can = false;
		for (int32_t d = 0; d < shape.rank; d++)
			can = can || shape.dims[d] % devices == 0;
		if (split && can &&
		    sw_layout_local_bytes(&p->cluster.atoms, shape, layout) * devices !=
		            sw_shape_bytes(shape))
			fail_msg("%s: '%s' is not split over all devices", p->path,
			         p->sidecar.inputs[i].name);
		if (!split && splits(layout))
			fail_msg("%s: '%s' is split", p->path, p->sidecar.inputs[i].name);
		n++;
	}
	assert_true(n > 0);
}

static void state_is_split_as_the_strategy_says(void **state)
{
	static const struct {
		const char *strategy;
		bool parameters, moments;
	} cases[] = {{"dp", false, false},
	             {"horovod", false, false},
	             {"zero1", false, true},
	             {"zero2", false, true},
	             {"zero3", true, true},
	             {"megatron:tp=1,zero=1", false, true},
	             {"megatron:tp=1,zero=3", true, true}};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(RUNNABLE); f++) {
		planned p;
		open_fixture(RUNNABLE[f], "local-2x2.yaml", &p);
		for (size_t i = 0; i < SW_COUNT(cases); i++) {
			make_plan(&p, cases[i].strategy);
			assert_string_equal(p.plan->chosen, cases[i].strategy);
			check_role(&p, SW_ROLE_PARAMETER, cases[i].parameters);
			check_role(&p, SW_ROLE_MOMENT, cases[i].moments);
			check_role(&p, SW_ROLE_DATA, true);
		}
		close_planned(&p);
	}
}

/* Everything in these programs that has a batch computes with it, so every dot is shared among all
 * devices. */
static void data_parallelism_splits_every_dot_by_the_batch(void **state)
{
	static const char *const strategies[] = {"dp", "zero1", "zero2", "zero3"};
	char *blocks = write_blocks(2, 24, 10, 16, 2); /* no other dimension is 24 */
	planned p;
	int dots = 0;
	(void)state;
	open_text(blocks, "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		make_plan(&p, strategies[i]);
		for (sw_id id = 0; id < p.plan->program->ops.len; id++) {
			const sw_op *op = sw_op_at(p.plan->program, id);
			if (op->opcode != SW_OP_DOT)
				continue;
			const sw_strategy *s = &p.plan->strategies[id];
			for (int32_t a = 0; a < s->n; a++) {
				assert_int_equal(s->atom[a].kind, SW_CHOICE_SPLIT);
				assert_int_equal(p.plan->rules[id]->factors[s->atom[a].index].size,
				                 24);
			}
			dots++;
		}
	}
	assert_int_equal(
		dots,
		/* 18 per layer, forwards and backwards; the first input needs no gradient */
		4 * (2 * 18 - 1));
	close_planned(&p);
	free(blocks);
}

/* Each device updates its part of parameters that are whole before and after. */
static void zero2_updates_parts_of_parameters_that_are_whole_at_rest(void **state)
{
	static const char *const updates[] = {"newqkv0", "newout0", "newup0", "newdown0"};
	char *blocks = write_blocks(1, 24, 10, 16, 2);
	planned p;
	(void)state;
	open_text(blocks, "local-2x2.yaml", &p);
	for (int zero2 = 0; zero2 < 2; zero2++) {
		make_plan(&p, zero2 ? "zero2" : "dp");
		check_role(&p, SW_ROLE_PARAMETER, false);
		for (size_t i = 0; i < SW_COUNT(updates); i++) {
			const sw_op *op = find_op(p.plan->program, updates[i]);
			const sw_strategy *s = &p.plan->strategies[op - p.plan->program->ops.data];
			assert_int_equal(sw_strategy_share(&p.cluster.atoms, s), zero2 ? 4 : 1);
		}
	}
	close_planned(&p);
	free(blocks);
}

static bool holds(const sw_layout *layout, uint32_t atoms)
{
	return (sw_layout_split_atoms(layout, -1) & atoms) == atoms;
}

/* Inner atoms split a dimension of the weight in each dot that has one, and never the batch; outer
 * atoms split the batch. */
static void megatron_splits_weights_inside_and_the_batch_outside(void **state)
{
	char *blocks = write_blocks(2, 24, 10, 16, 2);
	planned p;
	int with_weight = 0;
	(void)state;
	open_text(blocks, "local-2x2.yaml", &p);
	make_plan(&p, "megatron:tp=2");
	for (sw_id id = 0; id < p.plan->program->ops.len; id++) {
		const sw_op *op = sw_op_at(p.plan->program, id);
		sw_layout layouts[3];
		if (op->opcode != SW_OP_DOT)
			continue;
		const sw_op *rhs =
			sw_op_at(p.plan->program, p.plan->program->values.data[op->operands[1]].op);
		const sw_strategy *s = &p.plan->strategies[id];
		assert_true(sw_plan_op_layouts(p.plan, id, layouts, layouts + 2));
		assert_int_equal(p.plan->rules[id]->factors[s->atom[0].index].size, 24);
		if (s->atom[1].kind == SW_CHOICE_SPLIT)
			assert_int_not_equal(p.plan->rules[id]->factors[s->atom[1].index].size, 24);
		if (rhs->opcode != SW_OP_PARAMETER)
			continue;
		assert_true(holds(&layouts[1], 2));
		with_weight++;
	}
	assert_int_equal(with_weight, 2 * 8 - 1);
	for (uint32_t i = 0; i + 1 < p.sidecar.n_inputs; i++)
		assert_false(holds(input_layout(&p, i), 1));
	close_planned(&p);
	free(blocks);
}

/* q, k and v by heads: of the 3 * width columns each device has those of its heads, three times. */
static void heads_give_the_fused_matrix_a_strided_split(void **state)
{
	char *blocks = write_blocks(1, 24, 10, 16, 4);
	planned p;
	(void)state;
	open_text(blocks, "local-1x2.yaml", &p);
	make_plan(&p, "megatron:tp=2");
	const sw_op *qkv = find_op(p.plan->program, "qkv0");
	const sw_layout *layout = sw_plan_layout(p.plan, p.plan->produced[qkv->first_result]);
	assert_int_equal(layout->state[0].kind, SW_STATE_S);
	assert_int_equal(layout->state[0].dim, 2);
	/* 48 columns: blocks of 8, dealt out cyclically */
	assert_int_equal(layout->state[0].stride, 8);
	assert_int_equal(input_layout(&p, 0)->state[0].dim, 1);
	assert_int_equal(input_layout(&p, 0)->state[0].stride, 8);
	close_planned(&p);
	free(blocks);
}

/* `memory` is of each row of the batch what the step saw of it last; `w` is a parameter. */
static void what_a_step_carries_on_of_each_row_is_split_as_the_batch(void **state)
{
	static const char *const strategies[] = {"dp", "zero1", "zero3"};
	planned p;
	(void)state;
	open_text("HloModule carried, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }\n"
	          "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
	          "ENTRY step {\n"
	          "  w = f32[8,8] parameter(0)\n"
	          "  memory = f32[16,8] parameter(1)\n"
	          "  x = f32[16,8] parameter(2)\n"
	          "  both = f32[16,8] add(memory, x)\n"
	          "  next = f32[16,8] dot(both, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	          "  slope = f32[8,8] dot(both, next), lhs_contracting_dims={0}, "
	          "rhs_contracting_dims={0}\n"
	          "  neww = f32[8,8] subtract(w, slope)\n"
	          "  ROOT t = (f32[8,8], f32[16,8]) tuple(neww, next)\n"
	          "}\n",
	          "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		make_plan(&p, strategies[i]);
		const sw_layout *memory = input_layout(&p, 1);
		assert_int_equal(splits(input_layout(&p, 0)), i == 2);
		assert_int_equal(sw_layout_split_atoms(memory, 0), 3);
	}
	close_planned(&p);
}

/* What is looked up in a table for all pairs of positions is no gradient, and larger than all state: it
 * is not split as gradients are, and its own gradient is sent where the table's is summed up. */
static void a_table_of_positions_is_looked_up_whole(void **state)
{
	static const char *const strategies[] = {"zero2", "zero3"};
	planned p;
	(void)state;
	open_text("HloModule positions, input_output_alias={ {0}: (0, {}) }\n"
	          "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
	          "ENTRY step {\n"
	          "  table = f32[12,4] parameter(0)\n"
	          "  x = f32[16,512,4] parameter(1)\n"
	          "  zero = f32[] constant(0)\n"
	          "  places = s32[512,512,1] iota(), iota_dimension=0\n"
	          "  rows = f32[512,512,4] gather(table, places), offset_dims={2}, "
	          "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,4}\n"
	          "  scores = f32[512,16,512] dot(x, rows), lhs_batch_dims={1}, rhs_batch_dims={0}, "
	          "lhs_contracting_dims={2}, rhs_contracting_dims={2}\n"
	          "  terms = f32[512,512,4] dot(scores, x), lhs_batch_dims={0}, rhs_batch_dims={1}, "
	          "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	          "  none = f32[12,4] broadcast(zero), dimensions={}\n"
	          "  slope = f32[12,4] scatter(none, places, terms), update_window_dims={2}, "
	          "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, "
	          "to_apply=add\n"
	          "  next = f32[12,4] subtract(table, slope)\n"
	          "  ROOT t = (f32[12,4]) tuple(next)\n"
	          "}\n",
	          "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		make_plan(&p, strategies[i]);
		const sw_op *op = find_op(p.plan->program, "rows");
		const sw_strategy *s = &p.plan->strategies[op - p.plan->program->ops.data];
		assert_int_equal(sw_strategy_share(&p.cluster.atoms, s), 1);
		/* the table's gradient is reduced, and the table gathered, which is 12 x 4 numbers */
		assert_true(p.plan->predicted.payload_bytes <= 3 * 12 * 4 * 4);
	}
	close_planned(&p);
}

/* Rows that are scattered to places of a buffer, as tokens are to those of experts, are no rows of the
 * batch any more: where the buffer meets weights, its places are split in their stead, and
 * rows come there by features. */
static void places_of_a_buffer_are_split_where_no_batch_is_left(void **state)
{
	static const char *const strategies[] = {"dp", "zero1"};
	planned p;
	(void)state;
	open_text("HloModule places, input_output_alias={ {0}: (0, {}) }\n"
	          "add {\n"
	          "  a = f32[] parameter(0)\n"
	          "  b = f32[] parameter(1)\n"
	          "  ROOT c = f32[] add(a, b)\n"
	          "}\n"
	          "ENTRY step {\n"
	          "  w = f32[2048,1536] parameter(0)\n"
	          "  x = f32[4096,2048] parameter(1)\n"
	          "  place = s32[4096,1] parameter(2)\n"
	          "  zero = f32[] constant(0)\n"
	          "  none = f32[8192,2048] broadcast(zero), dimensions={}\n"
	          "  buffer = f32[8192,2048] scatter(none, place, x), update_window_dims={1}, "
	          "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
	          "to_apply=add\n"
	          "  y = f32[8192,1536] dot(buffer, w), lhs_contracting_dims={1}, "
	          "rhs_contracting_dims={0}\n"
	          "  z = f32[8192,1536] tanh(y)\n"
	          "  slope = f32[2048,1536] dot(buffer, z), lhs_contracting_dims={0}, "
	          "rhs_contracting_dims={0}\n"
	          "  next = f32[2048,1536] subtract(w, slope)\n"
	          "  ROOT t = (f32[2048,1536]) tuple(next)\n"
	          "}\n",
	          "4", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		make_plan(&p, strategies[i]);
		for (int k = 0; k < 2; k++) {
			const sw_op *op = find_op(p.plan->program, k ? "slope" : "y");
			const sw_strategy *s =
				&p.plan->strategies[op - p.plan->program->ops.data];
			assert_int_equal(sw_strategy_share(&p.cluster.atoms, s), 4);
		}
		/* of 12 MiB the slope is all-reduced; 8 MiB of rows become features, and 16 MiB of features
		 * places, where a term of all places from each device would be 64 MiB */
		assert_true(p.plan->predicted.payload_bytes <= (int64_t)(18 + 6 + 12 + 1) << 20);
	}
	close_planned(&p);
}

/* Neither the words of a key nor a mask for all rows says how large the batch is. */
static void what_comes_with_the_batch_does_not_limit_it(void **state)
{
	planned p;
	(void)state;
	open_text("HloModule keyed, input_output_alias={ {0}: (0, {}) }\n"
	          "ENTRY step {\n"
	          "  w = f32[8,8] parameter(0)\n"
	          "  x = f32[16,8] parameter(1)\n"
	          "  key = u32[2] parameter(2)\n"
	          "  mask = f32[1,8] parameter(3)\n"
	          "  word = u32[1] slice(key), slice={[1:2]}\n"
	          "  number = f32[1] convert(word)\n"
	          "  scale = f32[] reshape(number)\n"
	          "  scales = f32[16,8] broadcast(scale), dimensions={}\n"
	          "  row = f32[8] reshape(mask)\n"
	          "  rows = f32[16,8] broadcast(row), dimensions={1}\n"
	          "  kept = f32[16,8] multiply(x, rows)\n"
	          "  scaled = f32[16,8] multiply(kept, scales)\n"
	          "  y = f32[16,8] dot(scaled, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	          "  slope = f32[8,8] dot(scaled, y), lhs_contracting_dims={0}, "
	          "rhs_contracting_dims={0}\n"
	          "  neww = f32[8,8] subtract(w, slope)\n"
	          "  ROOT t = (f32[8,8]) tuple(neww)\n"
	          "}\n",
	          "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	assert_int_equal(sw_layout_split_atoms(input_layout(&p, 1), 0), 3);
	assert_false(splits(input_layout(&p, 2)));
	assert_false(splits(input_layout(&p, 3)));
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_is_split_as_the_strategy_says),
		cmocka_unit_test(data_parallelism_splits_every_dot_by_the_batch),
		cmocka_unit_test(megatron_splits_weights_inside_and_the_batch_outside),
		cmocka_unit_test(heads_give_the_fused_matrix_a_strided_split),
		cmocka_unit_test(zero2_updates_parts_of_parameters_that_are_whole_at_rest),
		cmocka_unit_test(what_a_step_carries_on_of_each_row_is_split_as_the_batch),
		cmocka_unit_test(what_comes_with_the_batch_does_not_limit_it),
		cmocka_unit_test(a_table_of_positions_is_looked_up_whole),
		cmocka_unit_test(places_of_a_buffer_are_split_where_no_batch_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
