/* Microbatches: the looped program computes what the original does; which ops loop, and why a program can't. */
#include "rewrite/looped.h"

#include <string.h>

static void every_small_fixture(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int32_t counts[3];
	} cases[] = {
		{"mlp", {2, 4, 32}}, {"mlp-bf16", {2, 4}}, {"mlp-clip", {2, 4}}, {"gpt-tiny", {2, 4, 8}}, {"gpt-tiny-clip", {4}},
		{"gpt-tiny-scan", {2, 4}}, {"gpt-tiny-scan-clip", {4}}, {"gpt-dropout-tiny", {2, 4}}, {"llama-gqa-tiny", {2, 4}},
		{"bert-tiny", {2, 4}}, {"bert-tiny-clip", {4}}, {"dnabert-tiny", {2}}, {"t5-tiny", {2, 4}}, {"t5-tiny-clip", {4}},
		{"vit-tiny", {2, 4}}, {"lstm-lm-tiny", {2, 4}}, {"mamba-tiny", {2, 4}}, {"mamba-tiny-associative", {4}},
		{"moe-gshard-tiny", {2, 4}}, {"moe-mixtral-tiny-scan", {2, 4}}, {"dlrm-tiny", {2, 4}}, {"ncf-tiny", {2, 4}},
		{"odd-tiny", {2, 3, 6}}, {"resnet-tiny", {2, 4}}, {"vgg-tiny", {2, 4}}, {"unet-tiny", {2}},
		{"forward-forward-tiny", {2, 4}},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		for (size_t k = 0; k < SW_COUNT(cases[i].counts) && cases[i].counts[k]; k++) {
			looped l;
			looped_init(&l, cases[i].name, cases[i].counts[k]);
			double begin = sw_now_s();
			if (!l.after)
				fail_msg("%s: %s", l.name, l.refusal.message);
			assert_equal_results(&l);
			print_message("%s: %.2f s\n", l.name, sw_now_s() - begin);
			looped_clear(&l);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_small_fixture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
