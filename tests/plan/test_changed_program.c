/*
 * Plans of a program, or for a cluster, that has changed since.
 */
#include "plan/plan_files.h"
#include "simulate/simulate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a program that has changed since --------------------------------------------------- */

/* Replace the first `max` occurrences of `from` by `to`. Freed by free(). */
static char *replace(const char *text, const char *from, const char *to, int max)
{
	sw_text result = {0};
	for (const char *c = text; *c;) {
		bool here = max > 0 && strncmp(c, from, strlen(from)) == 0;
		sw_text_add_n(&result, here ? to : c, here ? strlen(to) : 1);
		c += here ? strlen(from) : 1;
		max -= here;
	}
	return result.data;
}

/* The same program under other names. */
static char *rename_ops(const char *text)
{
	return replace(text, "%", "%other_", INT32_MAX);
}

/* The canonical text of gpt-tiny, with % in front of each name. Freed by free(). */
static char *tiny_text(void)
{
	planned p;
	sw_program *canonical;
	sw_text text = {0};
	sw_error err = {0};
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	check(sw_rewrite_canonical(p.program, &canonical, &err), &err);
	sw_program_print(canonical, &text);
	sw_program_free(canonical);
	close_planned(&p);
	return text.data;
}

/* Plan the text, replace the program file by the changed text, and read the plan again. */
static void carry(const char *text, const char *changed, const char *strategy, const char *cluster,
                  planned *p, sw_cluster *read, sw_plan **again)
{
	sw_error err = {0};
	open_text(text, cluster, p);
	snprintf(p->path, sizeof(p->path), "%s", scratch(1));
	make_plan(p, strategy);
	check(sw_plan_write(p->plan, scratch(0), &err), &err);
	check(sw_file_write(scratch(1), changed, strlen(changed), &err), &err);
	check(sw_plan_read(scratch(0), read, again, &err), &err);
}

/* A strategy that the file gives as an empty text is one that can't be kept. */
static void an_empty_strategy_is_replaced(void **state)
{
	char *two = write_blocks(2, 8, 16, 32, 4), *three = write_blocks(3, 8, 16, 32, 4);
	planned p;
	sw_cluster cluster;
	sw_plan *again;
	sw_error err = {0};
	const char *name;
	json_t *file, *strategies, *was;
	(void)state;
	open_text(two, "local-2x2.yaml", &p);
	snprintf(p.path, sizeof(p.path), "%s", scratch(1));
	make_plan(&p, "zero3");
	check(sw_plan_write(p.plan, scratch(0), &err), &err);
	file = json_load_file(scratch(0), 0, NULL);
	strategies = json_object_get(json_object_get(file, "decisions"), "strategies");
	json_object_foreach(strategies, name, was)
		json_string_set(was, "");
	assert_int_equal(json_dump_file(file, scratch(0), 0), 0);
	json_decref(file);
	check(sw_file_write(scratch(1), three, strlen(three), &err), &err);
	check(sw_plan_read(scratch(0), &cluster, &again, &err), &err);
	assert_true(again->changes->replaced > 0);
	sw_plan_free(again);
	sw_cluster_clear(&cluster);
	close_planned(&p);
	free(three);
	free(two);
}

/* Re-gathering readers are kept under other names, and with one layer more. */
static void regathering_readers_are_carried_over(void **state)
{
	char *tiny = tiny_text(), *renamed = rename_ops(tiny), *two = write_blocks(2, 8, 16, 32, 4),
	     *three = write_blocks(3, 8, 16, 32, 4);
	const char *const before[] = {tiny, two}, *const after[] = {renamed, three};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(after); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		open_text(before[i], "local-2x2.yaml", &p);
		snprintf(p.path, sizeof(p.path), "%s", scratch(1));
		make_plan(&p, "zero3");
		sw_plan_regather_all(p.plan);
		assert_true(p.plan->regathered.len > 1);
		check(sw_plan_write(p.plan, scratch(0), &err), &err);
		check(sw_file_write(scratch(1), after[i], strlen(after[i]), &err), &err);
		check(sw_plan_read(scratch(0), &cluster, &again, &err), &err);
		assert_true(again->regathered.len > p.plan->regathered.len / 2);
		if (after[i] == renamed)
			assert_same_decisions(p.plan, again);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
	free(tiny);
	free(renamed);
	free(two);
	free(three);
}

static const char *const all_kinds[] = {"dp", "zero1", "zero3", "megatron:tp=2"};

static void renamed_ops_are_the_same_program(void **state)
{
	char *text = tiny_text(), *renamed = rename_ops(text);
	(void)state;
	for (size_t i = 0; i < SW_COUNT(all_kinds); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		sw_program_cost cost;
		carry(text, renamed, all_kinds[i], "local-2x2.yaml", &p, &cluster, &again);
		assert_string_not_equal(again->program->ops.data[0].name,
		                        p.plan->program->ops.data[0].name);
		assert_null(again->changes);
		assert_same_decisions(p.plan, again);
		check(sw_partition_measure(again, &cost, &err), &err);
		assert_int_equal(cost.payload_bytes, p.plan->predicted.payload_bytes);
		assert_int_equal(cost.peak_bytes, p.plan->predicted.peak_bytes);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
	free(text);
	free(renamed);
}

/* With another activation function the plan stays as good as it was. With other names besides, ops
 * are matched by structure alone. */
static void a_changed_op_leaves_the_rest_as_it_was(void **state)
{
	char *text = tiny_text(), *changed = replace(text, " tanh(", " sine(", 1),
	     *renamed = rename_ops(changed);
	(void)state;
	for (size_t i = 0; i < 2 * SW_COUNT(all_kinds); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		sw_text words = {0};
		carry(text, i % 2 ? renamed : changed, all_kinds[i / 2], "local-2x2.yaml", &p,
		      &cluster, &again);
		assert_non_null(again->changes);
		assert_true(again->changes->program);
		assert_int_equal(again->changes->changed + again->changes->added, 1);
		assert_int_equal(again->changes->was.payload_bytes,
		                 p.plan->predicted.payload_bytes);
		check(sw_simulate_recost(again, false, &err), &err);
		assert_int_equal(again->predicted.payload_bytes, p.plan->predicted.payload_bytes);
		assert_int_equal(again->predicted.peak_bytes, p.plan->predicted.peak_bytes);
		assert_true(again->lower_bound_s == 0);
		sw_plan_changes_print(again, &words);
		assert_non_null(strstr(words.data, again->changes->first));
		assert_null(strchr(words.data, '\n'));
		sw_text_clear(&words);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
	free(text);
	free(changed);
	free(renamed);
}

/* An added layer takes the decisions of the existing ones; a removed layer leaves the others
 * alone. */
static void layers_may_come_and_go(void **state)
{
	static const char *const strategies[] = {"dp", "megatron:tp=2", "zero3"};
	(void)state;
	for (size_t i = 0; i < 2 * SW_COUNT(strategies); i++) {
		int before = i % 2 ? 3 : 2, after = i % 2 ? 2 : 3;
		char *text = write_blocks(before, 8, 16, 32, 4),
		     *changed = write_blocks(after, 8, 16, 32, 4);
		planned p, fresh;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		carry(text, changed, strategies[i / 2], "local-2x2.yaml", &p, &cluster, &again);
		check(sw_simulate_recost(again, false, &err), &err);
		open_text(changed, "local-2x2.yaml", &fresh);
		make_plan(&fresh, strategies[i / 2]);
		assert_true(again->predicted.step_time_s <=
		            1.2 * fresh.plan->predicted.step_time_s);
		assert_true((after > before ? again->changes->added : again->changes->gone) > 0);
		close_planned(&fresh);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
		free(text);
		free(changed);
	}
}

/* Splits are scaled with the sizes: with twice the batch they are twice as large. A batch that does
 * not divide can't be split. */
static void sizes_may_change(void **state)
{
	static const int batches[] = {16, 4, 7};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(batches); i++) {
		char *text = write_blocks(2, 8, 16, 32, 4),
		     *changed = write_blocks(2, batches[i], 16, 32, 4);
		planned p, fresh;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		carry(text, changed, "megatron:tp=2", "local-2x2.yaml", &p, &cluster, &again);
		check(sw_simulate_recost(again, false, &err), &err);
		open_text(changed, "local-2x2.yaml", &fresh);
		make_plan(&fresh, batches[i] % 2 ? "megatron:tp=4" : "megatron:tp=2");
		if (batches[i] % 2 == 0) {
			assert_int_equal(again->predicted.payload_bytes,
			                 fresh.plan->predicted.payload_bytes);
			assert_int_equal(again->changes->replaced, 0);
		} else
			assert_true(again->changes->replaced > 0);
		close_planned(&fresh);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
		free(text);
		free(changed);
	}
}

/* ---- a cluster that has changed since --------------------------------------------------- */

static void a_plan_moves_to_clusters_with_the_same_atoms(void **state)
{
	planned p, slow, other;
	sw_error err = {0};
	sw_text words = {0};
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "zero1");
	check(sw_plan_move(p.plan, &p.cluster, &err), &err);
	assert_null(p.plan->changes);
	open_fixture("gpt-tiny", "local-2x2.yaml", &slow);
	slow.cluster.levels[0].bandwidth /= 100;
	slow.cluster.levels[0].flow_bandwidth /= 100;
	slow.cluster.hash++;
	double before_s = p.plan->predicted.step_time_s;
	check(sw_plan_move(p.plan, &slow.cluster, &err), &err);
	check(sw_simulate_recost(p.plan, false, &err), &err);
	assert_true(p.plan->changes->cluster);
	assert_true(p.plan->changes->was.step_time_s == before_s);
	assert_true(p.plan->predicted.step_time_s > before_s);
	sw_plan_changes_print(p.plan, &words);
	assert_non_null(strstr(words.data, "made for cluster"));
	open_fixture("gpt-tiny", "local-2x4.yaml", &other);
	assert_int_equal(sw_plan_move(p.plan, &other.cluster, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "--devices"));
	assert_ptr_equal(p.plan->cluster, &slow.cluster);
	sw_text_clear(&words);
	close_planned(&other);
	sw_plan_free(p.plan);
	p.plan = NULL;
	close_planned(&slow);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_strategy_is_replaced),
		cmocka_unit_test(regathering_readers_are_carried_over),
		cmocka_unit_test(renamed_ops_are_the_same_program),
		cmocka_unit_test(a_changed_op_leaves_the_rest_as_it_was),
		cmocka_unit_test(layers_may_come_and_go),
		cmocka_unit_test(sizes_may_change),
		cmocka_unit_test(a_plan_moves_to_clusters_with_the_same_atoms),
	};
	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
