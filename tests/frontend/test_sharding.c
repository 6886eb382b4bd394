/* Annotations of shardings: the words of HLO text, and those of Shardy. */
#include "frontend/frontend.h"
#include "frontend/sharding.h"
#include "test.h"

#include <string.h>

/* Append what a sharding says: "0:4/1 1:2/4", per digit dimension:size/stride; "1?": open. */
static void describe(const sw_sharding *s, sw_text *text)
{
	text->len = 0;
	sw_text_addf(text, "%s",
	             s->kind == SW_SHARDING_OPEN     ? "open"
	             : s->kind == SW_SHARDING_MANUAL ? "manual"
	             : s->n                          ? ""
	                                             : "whole");
	for (int32_t i = 0; s->kind == SW_SHARDING_TILED && i < s->n; i++)
		sw_text_addf(text, "%s%d:%lld/%lld", i ? " " : "", s->digits[i].dim,
		             (long long)s->digits[i].size, (long long)s->digits[i].stride);
	for (int32_t d = 0; d < 32; d++)
		if (s->kind == SW_SHARDING_TILED && s->open >> d & 1)
			sw_text_addf(text, " %d?", d);
}

static void words_of_hlo_become_digits_of_devices(void **state)
{
	static const struct {
		int32_t rank;
		const char *text, *digits;
	} cases[] = {
		{2, "{replicated}", "whole"},
		{2, "{manual}", "manual"},
		{2, "{devices=[2,1,4]<=[8] last_tile_dims={manual}}", "manual"},
		{2, "{maximal device=0}", "open"},
		{2, "{unknown}", "open"},
		{2, "{devices=[2,4]<=[8]}", "0:2/4 1:4/1"},
		{2, "{devices=[8,1]<=[8]}", "0:8/1"},
		{2, "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", "1:4/1"},
		{2, "{devices=[2,1,4]<=[8] last_tile_dims={replicated}}", "0:2/4"},
		{1, "{devices=[8]<=[2,4]T(1,0)}", "0:4/1 0:2/4"},
		{2, "{devices=[2,2]0,1,2,3}", "0:2/2 1:2/1"},
		{2, "{devices=[2,2]0,2,1,3}", "0:2/1 1:2/2"},
		{2, "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}", "0:2/2"},
		{2, "{devices=[2,1,4]<=[8] last_tile_dim_replicate unspecified_dims=[1]}",
	         "0:2/4 1?"},
		{2, "{devices=[4,2]<=[8] unspecified_dims=[0,1]}", "0:4/2 1:2/1 0? 1?"},
		{2, "{devices=[4,2]<=[8] unspecified_dims=[2]}", "open"},
		{2, "{devices=[4,2]<=[8] unspecified_dims=[]}", "open"},
		{2, "{devices=[4,2]<=[8] unspecified_dims=[0]", "open"},
		{1, "{devices=[4]0,1,3,2}", "open"},
		{1, "{devices=[4]0,1,2}", "open"},
		{1, "{devices=[4]0,1,2,9}", "open"},
		{2, "{devices=[3,2]<=[2,3]}", "open"},
		{2, "{devices=[2,2]<=[8]}", "open"},
		{3, "{devices=[2,2]<=[4]}", "open"},
		{1, "{devices=[4]<=[2,2]T(0,0)}", "open"},
		{1, "{devices=[99999999999]<=[99999999999]}", "open"},
		{1, "{devices=[2]<=[2]", "open"},
		{1, "", "open"},
	};
	sw_text text = {0};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_sharding s = sw_sharding_parse(cases[i].text, cases[i].rank);
		describe(&s, &text);
		if (strcmp(text.data, cases[i].digits) != 0)
			fail_msg("'%s': %s, expected %s", cases[i].text, text.data,
			         cases[i].digits);
	}
	sw_text_clear(&text);
}

static void shardy_is_said_in_the_words_of_hlo(void **state)
{
	static const char *const mesh = "<[\"x\"=2, \"y\"=4]>";
	static const struct {
		const char *text, *digits;
		int32_t rank;
	} cases[] = {
		{"#sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>", "0:2/4 1:4/1", 2},
		{"<@mesh, [{}, {\"y\"}]>", "1:4/1", 2},
		{"<@mesh, [{\"y\", \"x\"}]>", "0:4/1 0:2/4", 1},
		{"<@mesh, [{\"x\", \"y\"}]>", "0:8/1", 1},
		{"<@mesh, [{\"y\":(1)2}, {\"y\":(2)2}]>", "0:2/2 1:2/1", 2},
		{"<@mesh, [{\"y\":(2)2}p1, {}]>", "0:2/1", 2},
		{"<@mesh, [{}, {}], replicated={\"x\"}>", "whole", 2},
		{"#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>", "0:2/4", 1},
		{"<@mesh, []>", "whole", 0},
		{"<@mesh, [{\"x\", ?}, {}]>", "0:2/4 0?", 2},
		{"<@mesh, [{\"x\"}, {?}]>", "0:2/4 1?", 2},
		{"<@mesh, [{\"x\", ?}p1, {\"y\", ?}]>", "0:2/4 1:4/1 0? 1?", 2},
		{"<@mesh, [{?, \"x\"}]>", "open", 1},
		{"<@mesh, [{?}, {?}]>", "open", 2},
		{"<@mesh, [{?}, {}]>", "open", 2},
		{"<@mesh, [{\"x\"}, {\"x\"}]>", "open", 2},
		{"<@mesh, [{\"z\"}]>", "open", 1},
		{"<@mesh, [{\"y\":(3)2}]>", "open", 1},
		{"<@mesh, [{\"y\":(0)2}]>", "open", 1},
		{"<@mesh, [{}], unreduced={\"x\"}>", "open", 1},
		{"<@mesh", "open", 1},
		{"#alias", "open", 1},
	};
	sw_text text = {0}, words = {0};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		words.len = 0;
		sw_sharding_of_sdy((sw_span){mesh, strlen(mesh)},
		                   (sw_span){cases[i].text, strlen(cases[i].text)}, &words);
		sw_sharding s = sw_sharding_parse(words.data, cases[i].rank);
		describe(&s, &text);
		if (strcmp(text.data, cases[i].digits) != 0)
			fail_msg("'%s' is %s: %s, expected %s", cases[i].text, words.data,
			         text.data, cases[i].digits);
	}
	sw_text_clear(&text);
	sw_text_clear(&words);
}

/* What can't stand in HLO text is said to be unknown: a printed program is read again. */
static void words_of_mhlo_that_are_no_value_are_unknown(void **state)
{
	static const struct {
		const char *words, *kept;
	} cases[] = {
		{"{devices=[2,1]<=[2]}", "sharding={devices=[2,1]<=[2]}"},
		{"{devices=[2,1]<=[2U}", "sharding={unknown}"},
		{"{devices=[2,1]<=[2]}}", "sharding={unknown}"},
		{"{devices=(2,1]}", "sharding={unknown}"},
		{"replicated", "sharding={unknown}"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_text text = {0}, printed = {0};
		sw_program *program, *again;
		sw_error err;
		sw_text_addf(&text,
		             "func.func public @main(%%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
		             "  %%0 = stablehlo.custom_call @Sharding(%%a) {mhlo.sharding = "
		             "\"%s\"} : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
		             "  return %%0 : tensor<4x4xf32>\n}\n",
		             cases[i].words);
		assert_int_equal(sw_read_stablehlo(text.data, text.len, "s", &program, &err),
		                 SW_OK);
		sw_program_print(program, &printed);
		if (!strstr(printed.data, cases[i].kept))
			fail_msg("%s: %s", cases[i].words, printed.data);
		assert_int_equal(sw_read_hlo(printed.data, printed.len, "p", &again, &err), SW_OK);
		sw_program_free(again);
		sw_program_free(program);
		sw_text_clear(&printed);
		sw_text_clear(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_hlo_become_digits_of_devices),
		cmocka_unit_test(shardy_is_said_in_the_words_of_hlo),
		cmocka_unit_test(words_of_mhlo_that_are_no_value_are_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
