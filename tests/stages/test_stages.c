/* Stages of recorded programs: what they compute, microbatch by microbatch in the order of
 * schedules, is what the loop computes, bit for bit; which programs are refused, and why; and what
 * holds of every cut. */
#include <math.h>
#include <string.h>

#include "stages/staged.h"
#include "test.h"

/* Fixtures with their microbatches, and what refuses them: NULL, nothing does. */
static const struct {
	const char *name;
	int32_t microbatches;
	const char *refusal;
} fixtures[] = {
	{"bert-tiny", 4, NULL},
	{"bert-tiny-clip", 2, NULL},
	{"dlrm-tiny", 4, NULL},
	{"dnabert-tiny", 2, NULL},
	{"forward-forward-tiny", 4, NULL},
	{"gpt", 2, NULL},
	{"gpt-dropout-tiny", 4, NULL},
	{"gpt-scan", 2, NULL},
	{"gpt-tiny", 8, NULL},
	{"gpt-tiny-clip", 4, NULL},
	{"gpt-tiny-scan", 2, NULL},
	{"gpt-tiny-scan-clip", 2, NULL},
	{"llama-gqa-tiny", 4, NULL},
	{"mamba-tiny", 2, NULL},
	{"mamba-tiny-associative", 2, NULL},
	{"mlp", 8, NULL},
	{"mlp-bf16", 4, NULL},
	{"mlp-clip", 4, NULL},
	{"moe-gshard-tiny", 2, NULL},
	{"moe-mixtral-tiny", 2, "rows of all microbatches in one order"},
	{"moe-mixtral-tiny-scan", 2, NULL},
	{"ncf-tiny", 4, NULL},
	{"odd-tiny", 3, NULL},
	{"resnet-tiny", 2, "the second needs the sum of reduce 'reduce_sum.1295' over all"},
	{"t5-tiny", 2, NULL},
	{"t5-tiny-clip", 4, NULL},
	{"unet-tiny", 2, NULL},
	{"vgg-tiny", 2, NULL},
	{"vit-tiny", 4, NULL},
};

/* Schedules whose virtual stages are `chunks` per rank. */
static const struct {
	sw_named_schedule which;
	int32_t chunks;
} schedules[] = {{SW_1F1B, 1},  {SW_ZB_V, 2},  {SW_GPIPE, 1}, {SW_EAGER_1F1B, 1},
                 {SW_V_MIN, 2}, {SW_ZB_H1, 1}, {SW_ZB_2P, 1}, {SW_INTERLEAVED_1F1B, 2},
                 {SW_V_HALF, 2}};

static sw_pipeline_schedule *make_schedule(const staged *t, size_t which)
{
	sw_pipeline_schedule *s;
	sw_error err;
	int32_t d = t->stages.n_stages, chunks = d % 2 ? 1 : schedules[which].chunks;
	sw_named_schedule name =
		d % 2 && schedules[which].chunks > 1 ? SW_1F1B : schedules[which].which;
	sw_pipeline_size size = {d / chunks, t->stages.n_microbatches, 0};
	assert_int_equal(sw_pipeline_make(name, size, &s, &err), SW_OK);
	return s;
}

/* Write the programs; weight gradients are apart where the schedule has them so. */
static void write_pieces(const staged *t, const sw_pipeline_schedule *s, sw_stages *split,
                         sw_stage_pieces *pieces)
{
	sw_error err;
	bool apart = sw_pipeline_has(s, SW_WEIGHT_GRADIENT);
	*split = (sw_stages){0};
	if (apart)
		sw_stages_split_weights(&t->stages, split);
	if (sw_stage_pieces_init(pieces, apart ? split : &t->stages, &err))
		fail_msg("%s: %s", t->name, err.message);
}

static void pieces_compute_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++)
		for (int32_t d = 2; d <= 4 && !fixtures[i].refusal; d++) {
			staged t;
			sw_stage_pieces pieces;
			sw_stages split;
			staged_init(&t, fixtures[i].name, fixtures[i].microbatches, d);
			if (!t.found)
				fail_msg("%s, %d stages: %s", t.name, d, t.refusal.message);
			size_t which = (2 * i + (size_t)d) % SW_COUNT(schedules);
			sw_pipeline_schedule *s = make_schedule(&t, which);
			write_pieces(&t, s, &split, &pieces);
			sw_tensor *expected = staged_run_whole(&t),
				  *actual = staged_run_pieces(&t, &pieces, s);
			staged_assert_same(&t, expected, actual,
			                   sw_pipeline_name(schedules[which].which));
			staged_drop(&t, expected);
			staged_drop(&t, actual);
			sw_pipeline_free(s);
			sw_stage_pieces_clear(&pieces);
			sw_stages_clear(&split);
			staged_clear(&t);
		}
}

static void all_schedules_compute_the_same(void **state)
{
	(void)state;
	staged t;
	staged_init(&t, "gpt-tiny-clip", 8, 4);
	assert_true(t.found);
	sw_tensor *expected = staged_run_whole(&t);
	for (size_t which = 0; which < SW_COUNT(schedules); which++) {
		sw_stage_pieces pieces;
		sw_stages split;
		sw_pipeline_schedule *s = make_schedule(&t, which);
		write_pieces(&t, s, &split, &pieces);
		sw_tensor *actual = staged_run_pieces(&t, &pieces, s);
		staged_assert_same(&t, expected, actual, sw_pipeline_name(schedules[which].which));
		staged_drop(&t, actual);
		sw_pipeline_free(s);
		sw_stage_pieces_clear(&pieces);
		sw_stages_clear(&split);
	}
	staged_drop(&t, expected);
	staged_clear(&t);
}

/* Turn the order of a rank's actions of one kind round. */
static void turn_round(sw_action_list *list, sw_action_kind kind)
{
	size_t to = list->len;
	for (size_t i = 0; i < list->len; i++) {
		if (list->data[i].kind != kind)
			continue;
		do
			to--;
		while (list->data[to].kind != kind);
		if (to <= i)
			return;
		sw_action kept = list->data[i];
		list->data[i] = list->data[to];
		list->data[to] = kept;
	}
}

/* Each rank takes the last microbatch first, in backward passes or in all. Sums are rounded
 * otherwise then. */
static void any_order_of_microbatches_computes_the_same(void **state)
{
	static const char *const names[] = {"gpt-dropout-tiny", "t5-tiny-clip", "vit-tiny",
	                                    "mlp-clip"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++)
		for (int forward = 0; forward < 2; forward++) {
			staged t;
			sw_stage_pieces pieces;
			sw_pipeline_schedule *s;
			sw_error err;
			staged_init(&t, names[i], 4, 2);
			assert_true(t.found);
			assert_int_equal(
				sw_pipeline_make(SW_GPIPE, (sw_pipeline_size){2, 4, 0}, &s, &err),
				SW_OK);
			for (int32_t r = 0; r < s->n_ranks; r++) {
				turn_round(&s->lists[r], SW_BACKWARD);
				if (forward)
					turn_round(&s->lists[r], SW_FORWARD);
			}
			assert_int_equal(sw_stage_pieces_init(&pieces, &t.stages, &err), SW_OK);
			sw_tensor *expected = staged_run_whole(&t),
				  *actual = staged_run_pieces(&t, &pieces, s);
			for (size_t k = 0; k < sw_entry(t.looped)->results.len; k++) {
				double off = sw_tensor_compare(actual[k], expected[k]).relative;
				if (!(off < 1e-5))
					fail_msg("%s: result %zu is off by %g", t.name, k, off);
			}
			staged_drop(&t, expected);
			staged_drop(&t, actual);
			sw_pipeline_free(s);
			sw_stage_pieces_clear(&pieces);
			staged_clear(&t);
		}
}

/* With weight gradients apart, the backward pass of a stage computes no sum of a gradient, and what
 * it hands back needs none of the others' work. */
static void weight_gradients_are_apart(void **state)
{
	(void)state;
	staged t;
	sw_stages split;
	sw_stage_pieces pieces;
	sw_error err;
	enum { STAGES = 3 };
	staged_init(&t, "gpt-tiny", 4, STAGES);
	assert_true(t.found);
	sw_stages_split_weights(&t.stages, &split);
	assert_int_equal(split.n_virtual, 3 * STAGES);
	assert_int_equal(sw_stage_pieces_init(&pieces, &split, &err), SW_OK);
	for (int32_t s = 0; s < STAGES; s++) {
		const sw_stage_piece *weights = &pieces.passes[2 * STAGES + s];
		assert_int_equal(weights->stage, s);
		/* All that it results in are sums, which the loop carries on. */
		assert_int_equal(weights->n_results, pieces.carried[2 * STAGES + s].n);
		assert_true(weights->n_results > pieces.carried[2 * STAGES - 1 - s].n);
	}
	sw_stage_pieces_clear(&pieces);
	sw_stages_clear(&split);
	staged_clear(&t);
}

static void refusals_say_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++) {
		if (!fixtures[i].refusal)
			continue;
		staged t;
		staged_init(&t, fixtures[i].name, fixtures[i].microbatches, 2);
		assert_false(t.found);
		if (!strstr(t.refusal.message, fixtures[i].refusal))
			fail_msg("%s is refused with: %s", t.name, t.refusal.message);
		staged_clear(&t);
	}
}

/* No op reads what a later stage computes, and no stage exceeds its load by more than the
 * tolerance. */
static void check_cut(const staged *t)
{
	const sw_stages *s = &t->stages;
	const sw_computation *body = &s->program->computations.data[s->body];
	double most_s = 0;
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(s->program, body->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id maker = s->program->values.data[op->operands[k]].op;
			if (s->stage[maker] > s->stage[body->ops.data[i]])
				fail_msg("%s: %s of stage %d reads %s of stage %d", t->name,
				         op->name, s->stage[body->ops.data[i]],
				         sw_op_at(s->program, maker)->name, s->stage[maker]);
		}
	}
	for (int32_t v = 0; v < s->n_stages; v++)
		most_s = SW_MAX(most_s, s->loads[v].forward_s + s->loads[v].backward_s);
	assert_true(most_s <= s->least_max_s * 1.05 * (1 + 1e-9));
	/* Tied embeddings are shared, and what a cut within a layer has on both sides; layers' own
	 * are not. */
	if (6 * s->n_shared > s->n_parameters || s->n_parameters < 10)
		fail_msg("%s, %d stages: %d of %d parameters are shared", t->name, s->n_stages,
		         s->n_shared, s->n_parameters);
}

static void large_programs_are_cut(void **state)
{
	static const char *const large[] = {"gpt-124m",   "llama3-8b",  "gpt-175b", "unet", "vit",
	                                    "moe-gshard", "mamba-130m", "dnabert",  "vgg19"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(large); i++)
		for (int32_t d = 2; d <= 8; d += 3) {
			staged t;
			staged_init(&t, large[i], 2, d);
			if (!t.found)
				fail_msg("%s: %s", large[i], t.refusal.message);
			check_cut(&t);
			staged_clear(&t);
		}
}

/* The same model on both sides of a pair is cut once: no parameter is in two stages. The heads of
 * two losses, one of which reads the first layer's weights again, are in the last stage. Sums over
 * the data alone are no gradients, also those that a loss in chunks counts beside its own,
 * chunks of each sequence or of all tokens. */
static void models_of_several_parts_are_cut(void **state)
{
	static const struct {
		const char *name;
		int32_t n_shared;
	} of[] = {{"pairs", 0}, {"heads", 2}, {"moments", 0}, {"chunks", 0}, {"rows", 0}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(of); i++) {
		char path[64];
		staged t;
		double most_s = 0, sum_s = 0;
		enum { STAGES = 3 };
		snprintf(path, sizeof(path), "../stages/%s", of[i].name);
		staged_init(&t, path, 4, STAGES);
		assert_true(t.found);
		for (int32_t s = 0; s < STAGES; s++) {
			const sw_stage_load *load = &t.stages.loads[s];
			most_s = SW_MAX(most_s, load->forward_s + load->backward_s);
			sum_s += load->forward_s + load->backward_s;
			assert_true(load->forward_bytes >= 0 && load->backward_bytes >= 0);
		}
		if (most_s > 0.45 * sum_s || t.stages.n_shared > of[i].n_shared)
			fail_msg("%s: a stage has %.2f of the work; %d parameters are shared", path,
			         most_s / sum_s, t.stages.n_shared);
		staged_clear(&t);
	}
}

/* The next random number below n. */
static uint64_t below(uint64_t *at, uint64_t n)
{
	return sw_random_bits(11, 0, (*at)++) % n;
}

/* The longest stage, of its speed. */
static double longest_s(const sw_stages *s, const double *speed)
{
	double most_s = 0;
	for (int32_t v = 0; v < s->n_stages; v++)
		most_s = SW_MAX(most_s, (s->loads[v].forward_s + s->loads[v].backward_s) / speed[v]);
	return most_s;
}

/* A random op of the loop that has a position. */
static sw_id random_flow_op(const sw_stages *s, uint64_t *at)
{
	const sw_computation *body = &s->program->computations.data[s->body];
	sw_id op;
	do
		op = body->ops.data[below(at, body->ops.len)];
	while (s->position[op] < 0);
	return op;
}

/* Among stages of any speeds, with ops that are decided, no cut that somebody else makes is shorter:
 * pins are taken from random cuts, which then keep them. */
static void decided_ops_are_where_they_should_be(void **state)
{
	static const char *const names[] = {"gpt-tiny", "unet-tiny", "t5-tiny", "gpt-124m"};
	enum { CUTS = 40, MOST = 5, PINS = 6 };
	uint64_t random = 0;
	(void)state;
	for (size_t f = 0; f < SW_COUNT(names); f++) {
		staged t;
		staged_init(&t, names[f], 2, 2);
		for (int c = 0; c < CUTS; c++) {
			int32_t d = 2 + (int32_t)below(&random, MOST - 1), cuts[MOST];
			double speed[MOST];
			sw_stage_pin pins[PINS];
			sw_stages by_hand, found;
			sw_error err = {0};
			for (int32_t v = 0; v < d; v++)
				speed[v] = 1 + (double)below(&random, 4);
			for (int32_t v = 0, last = -1; v + 1 < d; v++) {
				int32_t left = t.stages.n_positions - (d - 1 - v) - (last + 1);
				last += 1 + (int32_t)below(&random, (uint64_t)left);
				cuts[v] = last;
			}
			sw_stage_options how = {.n_stages = d,
			                        .device = {1e12, 1e12},
			                        .cuts = cuts,
			                        .speed = speed};
			assert_int_equal(sw_stages_init(&by_hand, t.looped, &how, &err), SW_OK);
			for (int i = 0; i < PINS; i++) {
				sw_id op = random_flow_op(&by_hand, &random);
				pins[i] = (sw_stage_pin){
					.stage = sw_stage_physical(&by_hand, by_hand.stage[op]),
					.op = op,
					.name = sw_op_at(t.looped, op)->name,
					.pattern = sw_op_at(t.looped, op)->name};
			}
			how.cuts = NULL;
			how.pins = pins;
			how.n_pins = below(&random, PINS + 1);
			if (sw_stages_init(&found, t.looped, &how, &err))
				fail_msg("%s: %s", t.name, err.message);
			for (size_t i = 0; i < how.n_pins; i++)
				assert_int_equal(
					sw_stage_physical(&found, found.stage[pins[i].op]),
					pins[i].stage);
			assert_true(found.least_max_s <= longest_s(&by_hand, speed) * (1 + 1e-9));
			assert_true(longest_s(&found, speed) <=
			            longest_s(&by_hand, speed) * (1 + 1e-6));
			sw_stages_clear(&by_hand);
			sw_stages_clear(&found);
		}
		staged_clear(&t);
	}
}

/* Pieces of which one is planned to estimate stages may be smaller than a loop: only where cuts are
 * looked for does a loop stand against stages. */
static void a_loop_may_be_a_piece_of_given_cuts(void **state)
{
	staged t;
	int32_t cuts[3];
	(void)state;
	staged_init(&t, "lstm-lm-tiny", 2, 2);
	for (int32_t k = 0; k < 3; k++)
		cuts[k] = (k + 1) * t.stages.n_positions / 4;
	for (int given = 0; given < 2; given++) {
		sw_stages stages;
		sw_error err = {0};
		sw_stage_options how = {
			.n_stages = 4, .device = {1e12, 1e12}, .cuts = given ? cuts : NULL};
		assert_int_equal(sw_stages_init(&stages, t.looped, &how, &err),
		                 given ? SW_OK : SW_NO);
		if (given)
			sw_stages_clear(&stages);
	}
	staged_clear(&t);
}

/* Layers that are alike are divided evenly: a stage boundary of a transformer is one activation
 * there and its gradient back. */
static void transformers_are_cut_between_layers(void **state)
{
	(void)state;
	staged t;
	staged_init(&t, "gpt-175b", 2, 8);
	assert_true(t.found);
	assert_int_equal(t.stages.n_shared, 0);
	int64_t least = INT64_MAX;
	for (int32_t v = 0; v < 7; v++)
		least = SW_MIN(least, t.stages.loads[v].forward_bytes);
	for (int32_t v = 0; v < 7; v++)
		assert_true(t.stages.loads[v].forward_bytes < 2 * least);
	staged_clear(&t);
}

/* A layer's backward pass is no forward op, also of the last layers, whose gradients need little
 * beside the forward ops: each stage has about twice as much backward as forward work. */
static void last_layers_have_backward_passes(void **state)
{
	static const char *const large[] = {"llama3-8b", "gpt-175b"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(large); i++) {
		staged t;
		staged_init(&t, large[i], 2, 8);
		assert_true(t.found);
		for (int32_t v = 0; v < 8; v++) {
			const sw_stage_load *load = &t.stages.loads[v];
			if (load->backward_s < 1.3 * load->forward_s)
				fail_msg("%s: stage %d of 8 has %g s forward, %g s back", large[i],
				         v, load->forward_s, load->backward_s);
		}
		staged_clear(&t);
	}
}

/* Where layers are computed again, that is done in their own stage: the gradient of one activation
 * crosses back, whichever layer's parameters are also read elsewhere, and forward ops are those of
 * the program that computes nothing again. */
static void layers_are_computed_again_in_their_stage(void **state)
{
	static const char *const policies[] = {"blocks", "elementwise"};
	(void)state;
	staged plain;
	staged_init(&plain, "gpt-124m", 8, 4);
	assert_true(plain.found);
	for (size_t i = 0; i < SW_COUNT(policies); i++) {
		staged t;
		staged_init_remat(&t, "gpt-124m", policies[i], 8, 4);
		assert_true(t.found);
		if (t.stages.n_positions > plain.stages.n_positions + 10)
			fail_msg("%s: %d forward ops, %d where nothing is computed again",
			         policies[i], t.stages.n_positions, plain.stages.n_positions);
		for (int32_t v = 0; v < 3; v++) {
			const sw_stage_load *load = &t.stages.loads[v];
			if (load->backward_bytes > 3 * load->forward_bytes)
				fail_msg("%s: %lld bytes to stage %d, %lld back", policies[i],
				         (long long)load->forward_bytes, v + 1,
				         (long long)load->backward_bytes);
		}
		staged_clear(&t);
	}
	staged_clear(&plain);
}

/* The results are near the expected ones: terms are added in another order. */
static void assert_near(const staged *t, const sw_tensor *expected, const sw_tensor *actual)
{
	for (size_t i = 0; i < sw_entry(t->looped)->results.len; i++) {
		const float *x = sw_tensor_data(expected[i]), *y = sw_tensor_data(actual[i]);
		/* the shapes of the expected ones are of a program that was replaced */
		int64_t n = actual[i].shape.type == SW_F32 ? sw_shape_elements(actual[i].shape) : 0;
		for (int64_t k = 0; k < n; k++)
			if (!(fabsf(x[k] - y[k]) <= 1e-5f + 1e-4f * fabsf(x[k])))
				fail_msg("%s: result %zu, element %lld: %g, not %g", t->name, i,
				         (long long)k, (double)y[k], (double)x[k]);
	}
}

/* A table of tokens that is read first and last has a gradient for each use, so that what crosses is
 * activations; other programs are left as they are. */
static void uses_of_tied_embeddings_are_summed_apart(void **state)
{
	static const struct {
		const char *name;
		uint32_t more; /* sums than before */
	} programs[] = {{"mamba-tiny", 1}, {"t5-tiny", 1}, {"gpt-tiny", 0}};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(programs); i++) {
		staged t;
		sw_error err;
		sw_stage_options options = {
			.n_stages = 2, .device = {1e12, 1e11}, .tolerance = 0.05};
		staged_init(&t, programs[i].name, 4, 2);
		assert_true(t.found);
		sw_tensor *before = staged_run_whole(&t);
		uint32_t n = sw_op_at(t.looped, t.stages.loop)->n_operands;
		sw_stages_clear(&t.stages);
		t.found = false;
		assert_int_equal(sw_stages_part_sums(&t.looped, &err), SW_OK);
		assert_int_equal(sw_program_verify(t.looped, &err), SW_OK);
		sw_tensor *after = staged_run_whole(&t);
		assert_near(&t, before, after);
		staged_drop(&t, before);
		staged_drop(&t, after);
		t.found = sw_stages_init(&t.stages, t.looped, &options, &err) == SW_OK;
		assert_true(t.found);
		assert_int_equal(sw_op_at(t.looped, t.stages.loop)->n_operands, n + programs[i].more);
		const sw_stage_load *load = &t.stages.loads[0];
		if (load->backward_bytes > 3 * load->forward_bytes)
			fail_msg("%s: %lld bytes cross, %lld back", programs[i].name,
			         (long long)load->forward_bytes, (long long)load->backward_bytes);
		staged_clear(&t);
	}
}

static double largest_share(const staged *t, double byte_s, double split_byte_s)
{
	double sum_s = 0, most_s = 0;
	sw_stages cut;
	sw_error err;
	sw_stage_options options = {.n_stages = 2,
	                            .device = {1e12, 1e11},
	                            .tolerance = 0.05,
	                            .byte_s = &byte_s,
	                            .split_byte_s = &split_byte_s};
	if (sw_stages_init(&cut, t->looped, &options, &err) != SW_OK)
		fail_msg("%s: %s", t->name, err.message);
	for (int32_t v = 0; v < 2; v++) {
		double load_s = cut.loads[v].forward_s + cut.loads[v].backward_s;
		sum_s += load_s;
		most_s = SW_MAX(most_s, load_s);
	}
	sw_stages_clear(&cut);
	return most_s / sum_s;
}

/* The skips of a U-Net, of which each cut through the middle is crossed by all, drive it into one
 * stage where a byte is dear. They do not where it is so only if each device gets all of them. */
static void dear_skips_that_devices_share_leave_stages_balanced(void **state)
{
	(void)state;
	staged t;
	staged_init(&t, "unet", 8, 2);
	assert_true(t.found);
	const sw_stage_load *load = t.stages.loads;
	double work_s = load[0].forward_s + load[0].backward_s + load[1].forward_s +
	                load[1].backward_s,
	       byte_s = work_s / 2 / (double)(load[0].forward_bytes + load[0].backward_bytes);
	assert_true(largest_share(&t, 0, 0) < 0.55);
	assert_true(largest_share(&t, byte_s, byte_s) > 0.9);
	assert_true(largest_share(&t, byte_s, byte_s / 16) < 0.6);
	staged_clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_compute_the_same),
		cmocka_unit_test(all_schedules_compute_the_same),
		cmocka_unit_test(any_order_of_microbatches_computes_the_same),
		cmocka_unit_test(weight_gradients_are_apart),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(large_programs_are_cut),
		cmocka_unit_test(models_of_several_parts_are_cut),
		cmocka_unit_test(decided_ops_are_where_they_should_be),
		cmocka_unit_test(a_loop_may_be_a_piece_of_given_cuts),
		cmocka_unit_test(transformers_are_cut_between_layers),
		cmocka_unit_test(last_layers_have_backward_passes),
		cmocka_unit_test(layers_are_computed_again_in_their_stage),
		cmocka_unit_test(uses_of_tied_embeddings_are_summed_apart),
		cmocka_unit_test(dear_skips_that_devices_share_leave_stages_balanced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
