/* Losses over a vocabulary are recognised, with their derivative, and store no scores. */
#include "fuse/softmaxes.h"

static const softmax_case styles[] = {
	{"loss_labels", 1, 0, NULL},
	{"loss_picked", 1, 0, NULL},
	{"loss_weighted", 1, 0, NULL},
	{"loss_smoothed", 1, 0, NULL},
	{"loss_z", 1, 0, NULL},
	{"loss_indexed", 1, 0, NULL},
	{"loss_mapped", 1, 0, NULL},
	{"loss_shifted", 1, 0, NULL},
	{"loss_accuracy", 1, 0, NULL},
	{"loss_rounded", 1, 0, NULL},
	{"loss_distilled", 1, 0, NULL},
	/* the derivative of a logarithm waits for it */
	{"loss_mixed", 1, 1, NULL},
	{"loss_pooled", 1, 0, NULL},
	{"loss_ensemble", 1, 0, NULL},
	{"loss_ensemble_apart", 1, 0, NULL},
	{"loss_frozen", 1, 0, NULL},
	/* scores have tangents, products with the same weight and with its own */
	{"loss_tangent", 1, 0, NULL},
	/* the derivative waits for the loss, so scores are computed twice */
	{"loss_scaled", 1, 1, NULL},
	/* likewise of two texts, under two models each */
	{"loss_preferred", 4, 2, NULL},
	/* a vocabulary on two devices: a maximum, a sum and the rest, with an all-reduce between */
	{"split_vocabulary", 3, 0, NULL},
};

static const softmax_case near_misses[] = {
	{"loss_and_logits", 0, 0, "its scores are returned as %"},
	{"loss_both_ways", 0, 0,
         "it sums exponentials over other dimensions than an earlier softmax"},
	{"loss_scaled_wide", 0, 0,
         "2 kernels would compute its scores, each a sum of 512 products"},
};

static const softmax_case models[] = {
	{"bert-tiny", 2, 0, NULL},
	{"dnabert", 1, 0, NULL},
	{"gpt-124m", 1, 0, NULL},
	{"gpt-175b", 1, 0, NULL},
	{"gpt-dropout-tiny", 1, 0, NULL},
	{"gpt-tiny-clip", 1, 0, NULL},
	{"llama-gqa-tiny", 1, 0, NULL},
	{"lstm-lm-tiny", 1, 0, NULL},
	{"mamba-tiny", 1, 0, NULL},
	/* the softmaxes of routers are read by a sort, and are none of a vocabulary */
	{"moe-gshard-tiny", 1, 0, NULL},
	{"moe-mixtral-tiny", 1, 0, NULL},
	{"odd-tiny", 1, 0, NULL},
	{"resnet-tiny", 1, 0, NULL},
	{"t5-tiny", 1, 0, NULL},
	{"vit-tiny", 1, 0, NULL},
	{"mlp", 0, 0, NULL},
	{"dlrm-tiny", 0, 0, NULL},
	{"unet-tiny", 0, 0, NULL},
};

#define TABLE(folder, cases)                                                                       \
	{                                                                                          \
		folder, SW_FUSION_LOOPS, SW_FUSED_CROSS_ENTROPY, SW_FUSED_CROSS_ENTROPY_GRADIENT,  \
			cases, SW_COUNT(cases)                                                     \
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

static void the_losses_of_the_models_are_recognised(void **state)
{
	(void)state;
	check_softmaxes(&model_table);
}

static void fused_programs_compute_the_same_bits(void **state)
{
	(void)state;
	check_fused_programs(&style_table, 3);
	check_fused_programs(&miss_table, 4);
}

static void xla_fuses_no_loss_with_its_products(void **state)
{
	(void)state;
	sw_program *program = read_fixture("tests/fuse/programs", "loss_labels");
	sw_kernels kernels;
	sw_kernels_find(&kernels, program, SW_FUSION_XLA_GPU);
	assert_int_equal(count_kernels(&kernels, SW_FUSED_CROSS_ENTROPY), 0);
	sw_kernels_clear(&kernels);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_style_is_recognised),
		cmocka_unit_test(near_misses_are_refused_with_a_reason),
		cmocka_unit_test(the_losses_of_the_models_are_recognised),
		cmocka_unit_test(fused_programs_compute_the_same_bits),
		cmocka_unit_test(xla_fuses_no_loss_with_its_products),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
