/* Attention is recognised however it is written, once per layer and way, and stores no scores; what
 * only looks like it is left alone, with a note that says why. */
#include "fuse/softmaxes.h"

#include "interpret/interpret.h"

static const softmax_case styles[] = {
	{"jax_causal", 1, 1, NULL},
	{"jax_grouped", 1, 1, NULL},
	{"jax_bf16_bias", 1, 1, NULL},
	{"jax_window", 1, 1, NULL},
	{"jax_lengths", 1, 1, NULL},
	{"flax_mask", 1, 1, NULL},
	{"flax_dropout", 1, 1, NULL},
	{"dropout_input", 1, 1, NULL},
	{"soft_cap", 1, 1, NULL},
	{"sliding_window", 1, 1, NULL},
	{"alibi", 1, 1, NULL},
	{"normalised_late", 1, 1, NULL},
	{"no_maximum", 1, 1, NULL},
	{"log_sum", 1, 1, NULL},
	{"one_key_head", 1, 1, NULL},
	{"no_batch", 1, 1, NULL},
	{"tied", 1, 1, NULL},
	{"cross", 1, 1, NULL},
	{"learned_bias", 1, 1, NULL},
	{"pair_bias", 1, 1, NULL},
	{"windows", 1, 1, NULL},
	{"two_scores", 1, 1, NULL},
	{"shared_part", 1, 1, NULL},
	{"sink_column", 1, 1, NULL},
	{"learned_queries", 1, 1, NULL},
	{"learned_queries_one_head", 1, 1, NULL},
	{"gated", 1, 1, NULL},
	{"temperature", 1, 1, NULL},
	{"relative_positions", 1, 1, NULL},
	{"relative_values", 1, 1, NULL},
	{"shifted_positions", 1, 1, NULL},
	{"shifted_memory", 1, 1, NULL},
	{"differential", 1, 1, NULL},
	{"differential_values", 2, 2, NULL},
	/* the forward pass of each layer is computed twice */
	{"checkpointed", 4, 2, NULL},
	{"kept_products", 4, 2, NULL},
	{"scanned", 2, 1, NULL},
	/* two layers, keys on two devices: of each a maximum, a sum and a product, and two parts of
         * the derivative, with an all-reduce between them */
	{"split_keys", 6, 4, NULL},
	/* one layer of that, where statistics are scattered and gathered again */
	{"split_rows", 3, 2, NULL},
};

static const softmax_case near_misses[] = {
	{"weights_returned", 0, 0, "its scores are returned as %"},
	{"over_queries", 0, 0, "would wait for one another"},
	{"over_heads", 0, 0, "over other dimensions than those of one of its operands"},
	{"linear", 0, 0, NULL},
	{"unnormalised", 0, 0, "no softmax is between"},
	{"talking_heads", 0, 0, "its scores are read by %dot_general"},
	{"large_head", 0, 0, "its heads have 512 dimensions, and 256 is the most"},
	{"shared_bias", 0, 0, "its scores are read by %add_any"},
	{"scanned_stored", 0, 0, "its scores are read by %dynamic_update_slice"},
};

static const softmax_case models[] = {
	{"bert-tiny", 2, 2, NULL},
	{"bert-tiny-clip", 2, 2, NULL},
	{"dnabert-tiny", 1, 1, NULL},
	{"dnabert", 12, 12, NULL},
	{"gpt", 2, 2, NULL},
	{"gpt-124m", 12, 12, NULL},
	{"gpt-175b", 96, 96, NULL},
	{"gpt-dropout-tiny", 2, 2, NULL},
	{"gpt-tiny", 2, 2, NULL},
	{"gpt-tiny-clip", 2, 2, NULL},
	{"llama-gqa-tiny", 2, 2, NULL},
	{"llama3-8b", 32, 32, NULL},
	{"moe-gshard-tiny", 2, 2, NULL},
	{"moe-gshard", 16, 16, NULL},
	{"moe-mixtral-tiny", 2, 2, NULL},
	{"odd-tiny", 1, 1, NULL},
	{"t5-tiny", 6, 6, NULL},
	{"t5-tiny-clip", 6, 6, NULL},
	{"unet-tiny", 4, 4, NULL},
	{"unet", 15, 15, NULL},
	{"vit-tiny", 2, 2, NULL},
	{"vit", 24, 24, NULL},
	{"gpt-124m-scan", 12, 12, NULL},
	{"gpt-scan", 2, 2, NULL},
	{"gpt-tiny-scan", 2, 2, NULL},
	{"gpt-tiny-scan-clip", 2, 2, NULL},
	{"moe-mixtral-tiny-scan", 2, 2, NULL},
	{"moe-mixtral", 32, 32, NULL},
	{"dlrm-tiny", 0, 0, NULL},
	{"lstm-lm-tiny", 0, 0, NULL},
	{"mamba-tiny", 0, 0, NULL},
};

#define TABLE(folder, cases)                                                                       \
	{                                                                                          \
		folder, SW_FUSION_XLA_GPU, SW_FUSED_ATTENTION, SW_FUSED_ATTENTION_GRADIENT, cases, \
			SW_COUNT(cases)                                                            \
	}
static const softmax_table style_table = TABLE("tests/fuse/programs", styles),
			   miss_table = TABLE("tests/fuse/programs", near_misses),
			   model_table = TABLE("tests/programs", models);

static void every_style_is_recognised(void **state)
{
	(void)state;
	check_softmaxes(&style_table);
}

static void near_misses_are_refused_with_a_reason(void **state)
{
	(void)state;
	check_softmaxes(&miss_table);
}

static void every_layer_of_the_models_is_recognised(void **state)
{
	(void)state;
	check_softmaxes(&model_table);
}

static void fused_programs_compute_the_same_bits(void **state)
{
	(void)state;
	check_fused_programs(&style_table, 1);
	check_fused_programs(&miss_table, 2);
}

static void devices_that_fuse_no_attention_have_none(void **state)
{
	(void)state;
	static const sw_fusion devices[] = {SW_FUSION_NONE, SW_FUSION_XLA_CPU};
	for (size_t i = 0; i < SW_COUNT(devices); i++) {
		sw_program *program = read_fixture("tests/programs", "gpt-tiny");
		sw_kernels kernels;
		sw_kernels_find(&kernels, program, devices[i]);
		assert_int_equal(count_kernels(&kernels, SW_FUSED_ATTENTION), 0);
		assert_int_equal(count_kernels(&kernels, SW_FUSED_ATTENTION_GRADIENT), 0);
		sw_kernels_clear(&kernels);
		sw_program_free(program);
	}
}

/* Kernels of libraries keep no scores and take no workspace: what a device is said to need is less
 * than what the interpreter takes for the same program, which it runs all the same. */
static void library_kernels_take_no_workspace(void **state)
{
	(void)state;
	static const sw_fusion devices[] = {SW_FUSION_XLA_CPU, SW_FUSION_XLA_GPU};
	for (size_t i = 0; i < SW_COUNT(devices); i++) {
		bool library = devices[i] == SW_FUSION_XLA_GPU;
		sw_program *program = read_fixture("tests/programs", "gpt-124m"), *fused;
		assert_int_equal(sw_fuse(program, devices[i], &fused, NULL), SW_OK);
		assert_int_equal(fused->library_kernels, library);
		sw_placement *run = sw_placement_new(fused);
		int64_t predicted = sw_placement_bytes(fused);
		if (library)
			assert_true(predicted < run->arena_bytes);
		else
			assert_int_equal(predicted, run->arena_bytes);
		sw_arena arena;
		sw_arena_init(&arena);
		sw_buffers buffers = sw_buffers_of(fused, &arena);
		int64_t workspace = 0;
		for (sw_id id = 0; id < fused->ops.len; id++)
			workspace += buffers.workspace_bytes[id];
		assert_true((workspace == 0) == library);
		sw_arena_clear(&arena);
		sw_placement_free(run);
		sw_program_free(fused);
		sw_program_free(program);
	}
}

/* Dimensions of equal size are told apart: here queries, keys, heads and batch are all 4. */
static void axes_are_not_mistaken_for_others_of_the_same_size(void **state)
{
	(void)state;
	static const char *const text =
		"HloModule m\n"
		"max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, "
		"b) }\n"
		"sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) "
		"}\n"
		"ENTRY e {\n"
		"  q = f32[4,4,4,4] parameter(0)\n  k = f32[4,4,4,4] parameter(1)\n"
		"  v = f32[4,4,4,4] parameter(2)\n"
		"  s = f32[4,4,4,4] dot(q, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
		"lhs_contracting_dims={3}, rhs_contracting_dims={3}\n"
		"  none = f32[] constant(-inf)\n  zero = f32[] constant(0)\n"
		"  m = f32[4,4,4] reduce(s, none), dimensions={3}, to_apply=max\n"
		"  mm = f32[4,4,4,4] broadcast(m), dimensions={%s}\n"
		"  d = f32[4,4,4,4] subtract(s, mm)\n  x = f32[4,4,4,4] exponential(d)\n"
		"  l = f32[4,4,4] reduce(x, zero), dimensions={3}, to_apply=sum\n"
		"  ll = f32[4,4,4,4] broadcast(l), dimensions={0,1,2}\n"
		"  p = f32[4,4,4,4] divide(x, ll)\n"
		"  ROOT o = f32[4,4,4,4] dot(p, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
		"lhs_contracting_dims={%d}, rhs_contracting_dims={2}\n}\n";
	static const struct {
		const char *maximum;
		int contracted, kernels;
	} cases[] = {{"0,1,2", 3, 1}, {"0,1,3", 3, 0}, {"0,1,2", 2, 0}};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		char hlo[2048];
		snprintf(hlo, sizeof(hlo), text, cases[i].maximum, cases[i].contracted);
		sw_program *program = read_hlo(hlo);
		sw_kernels kernels;
		sw_kernels_find(&kernels, program, SW_FUSION_XLA_GPU);
		assert_int_equal(count_kernels(&kernels, SW_FUSED_ATTENTION), cases[i].kernels);
		sw_kernels_clear(&kernels);
		sw_program_free(program);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_style_is_recognised),
		cmocka_unit_test(near_misses_are_refused_with_a_reason),
		cmocka_unit_test(every_layer_of_the_models_is_recognised),
		cmocka_unit_test(fused_programs_compute_the_same_bits),
		cmocka_unit_test(devices_that_fuse_no_attention_have_none),
		cmocka_unit_test(library_kernels_take_no_workspace),
		cmocka_unit_test(axes_are_not_mistaken_for_others_of_the_same_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
