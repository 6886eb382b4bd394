/*
 * Every row of the table is tested by brute force: under each strategy each device computes the
 * results that the definition demands. SW_RULES_BUDGET (strategies per sample and atoms),
 * SW_RULES_SEED and SW_RULES_FAMILY come from the environment.
 */
#include "rules/brute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const struct {
	const char *family;
	brute_variant *variants;
} sources[] = {
	{"elementwise", brute_elementwise},
	{"contract", brute_contract},
	{"reduce", brute_reduce},
	{"window", brute_window},
	{"shape", brute_shapes},
	{"affine", brute_affine},
	{"index", brute_index},
	{"source", brute_source},
	{"random", brute_random},
	{"linalg", brute_linalg},
	{"dots", brute_dots},
};

/* Rows with rules that the interpreter cannot run: their layouts are checked, their default local
 * op is not run. */
static const sw_opcode not_executable[] = {SW_OP_SET_DIMENSION_SIZE, SW_OP_DYNAMIC_RESHAPE};

static brute_variant *variants_of(const char *family)
{
	for (size_t i = 0; i < SW_COUNT(sources); i++)
		if (strcmp(sources[i].family, family) == 0)
			return sources[i].variants;
	return NULL;
}

static int64_t from_environment(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoll(text, NULL, 10) : otherwise;
}

static void check_row(const sw_rule_row *row, brute_variant *variants, int64_t usual_budget,
                      brute_counts *total)
{
	static const sw_atoms clusters[] = {{3, {2, 2, 3}}, {3, {2, 2, 2}}};
	int64_t budget = from_environment("SW_RULES_BUDGET", usual_budget),
		seed = from_environment("SW_RULES_SEED", 1);
	brute_counts counts = {0};
	int variant = 0;

	for (;; variant++) {
		brute_sample sample;
		brute_init(&sample);
		bool there = variants(&sample, row->opcode, variant);
		for (size_t i = 0; there && i < SW_COUNT(clusters); i++)
			brute_check(&sample, &clusters[i], budget,
			            (uint64_t)(seed * 1000 + variant), &counts);
		brute_clear(&sample);
		if (!there)
			break;
	}
	bool excused = false;
	for (size_t i = 0; i < SW_COUNT(not_executable); i++)
		excused |= not_executable[i] == row->opcode;
	if (variant == 0 || counts.accepted == 0 || (counts.executed == 0 && !excused))
		fail_msg("the row of %s is not exercised (%d samples)", sw_opcode_name(row->opcode),
		         variant);
	if (row->opcode == SW_OP_DOT && counts.streamed == 0)
		fail_msg("no dot was streamed");
	total->strategies += counts.strategies;
	total->accepted += counts.accepted;
	total->executed += counts.executed;
	total->devices += counts.devices;
}

/* Return whether the row has factors; regions are never split. Of `terms` what a device gets is its
 * own, and not a part of what one device gets: tests/rules/test_terms.c. */
static bool has_rule(const sw_rule_row *row)
{
	return row->opcode != SW_OP_TERMS && row->describe != sw_rule_describe_nothing &&
	       row->describe != sw_rule_describe_replicated;
}

typedef struct family_test {
	const sw_rule_family *family;
	int64_t budget;
} family_test;

static void test_family(void **state)
{
	const family_test *test = *state;
	const sw_rule_family *family = test->family;
	brute_variant *variants = variants_of(family->name);
	brute_counts total = {0};
	int rows = 0;

	for (size_t i = 0; i < family->n; i++) {
		if (!has_rule(&family->rows[i]) || family == &sw_rules_region)
			continue;
		assert_non_null(variants);
		check_row(&family->rows[i], variants, test->budget, &total);
		rows++;
	}
	printf("%s: %d rows, %lld strategies, %lld accepted, %lld runs, %lld devices\n",
	       family->name, rows, (long long)total.strategies, (long long)total.accepted,
	       (long long)total.executed, (long long)total.devices);
}

int brute_run_families(int64_t budget)
{
	family_test families[32];
	struct CMUnitTest tests[32];
	const char *only = getenv("SW_RULES_FAMILY");
	size_t n = 0;

	memset(tests, 0, sizeof(tests));
	for (const sw_rule_family *const *f = sw_rule_families(); *f; f++) {
		if (only && strcmp(only, (*f)->name) != 0)
			continue;
		families[n] = (family_test){*f, budget};
		tests[n].name = (*f)->name;
		tests[n].test_func = test_family;
		tests[n].initial_state = &families[n];
		n++;
	}
	return _cmocka_run_group_tests("rules against brute force", tests, n, NULL, NULL);
}
