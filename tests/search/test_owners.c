/*
 * Strategies with owners: parameter servers. What each device owns, what is sent, what is held, and
 * that the program of ranks that own different things computes what one device computes.
 */
#include "planned/planned.h"
#include "search/runnable.h"
#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound/bound.h"
#include "interpret/interpret.h"
#include "run/run.h"

static const char *const STRATEGIES[] = {"ps",
                                         "ps:proxy",
                                         "ps:balanced",
                                         "ps:balanced,proxy",
                                         "ps:partitioned",
                                         "parallax",
                                         "random",
                                         "ways",
                                         "ps:uneven",
                                         "ps:uneven,proxy",
                                         "allreduce:partitioned"};

/* ---- they compute the same -------------------------------------------------------------- */

static void assert_verified(const planned *p, const char *strategy)
{
	sw_verify_result result;
	sw_sidecar own = {0};
	sw_error err = {0};
	if (p->plan->undivided)
		check(sw_plan_sidecar(p->plan, &p->sidecar, &own, &err), &err);
	check(sw_run_verify(p->plan, p->plan->undivided ? &own : &p->sidecar, 1, &result, &err),
	      &err);
	sw_sidecar_clear(&own);
	for (size_t i = 0; i < result.rows.len; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s, %s: %s differs by %g, allowed is %g", p->path, strategy,
			         result.rows.data[i].name, result.rows.data[i].relative,
			         result.rows.data[i].tolerance);
	if (result.payload_bytes != result.predicted_payload_bytes)
		fail_msg("%s, %s: %lld bytes sent, %lld predicted", p->path, strategy,
		         (long long)result.payload_bytes,
		         (long long)result.predicted_payload_bytes);
	assert_true(result.ok);
	sw_verify_result_clear(&result);
}

/* What a device holds is known without its program, but for a few single numbers. */
static void check_device_bytes(const planned *p, const char *strategy)
{
	sw_program *local;
	sw_arena arena;
	sw_error err = {0};
	sw_arena_init(&arena);
	check(sw_partition(p->plan, &local, &err), &err);
	sw_owners owners = sw_program_owners(local, &arena);
	for (int64_t d = 0; d < p->cluster.n_devices; d++) {
		sw_program *own = sw_program_of_device(local, d, NULL);
		int64_t bytes = sw_program_device_bytes(local, &owners, d),
			peak = sw_program_peak_bytes(own, own->entry);
		if (llabs(bytes - peak) > 64)
			fail_msg("%s, %s: device %d holds %lld bytes, and its program %lld",
			         p->path, strategy, (int)d, (long long)bytes, (long long)peak);
		sw_program_free(own);
	}
	sw_program_free(local);
	sw_arena_clear(&arena);
}

/* Check a fixture under all strategies; `runs`: run its plans, too. */
static void check_fixture(const char *fixture, const char *cluster, bool runs)
{
	planned p;
	open_fixture(fixture, cluster, &p);
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++) {
		make_plan(&p, STRATEGIES[i]);
		assert_int_equal(p.plan->warnings.len, 0);
		if (runs)
			assert_verified(&p, STRATEGIES[i]);
		check_device_bytes(&p, STRATEGIES[i]);
	}
	close_planned(&p);
}

/* What each device holds is known without its program, too. */
static void ranks_that_own_different_things_compute_what_one_device_does(void **state)
{
	(void)state;
	for (size_t f = 0; f < SW_COUNT(RUNNABLE); f++)
		check_fixture(RUNNABLE[f], "local-2x2.yaml", true);
	check_fixture("dlrm-tiny", "local-2x2.yaml", true);
	check_fixture("mlp", "local-2x4.yaml", true);
	check_fixture("bert-tiny", "local-2x2.yaml", false);
}

/* ---- who owns what ---------------------------------------------------------------------- */

static bool is_variable(const planned *p, uint32_t input)
{
	sw_role role = p->sidecar.inputs[input].role;
	return (role == SW_ROLE_PARAMETER || role == SW_ROLE_MOMENT) &&
	       input_shape(p, input).rank > 0;
}

/* Add the bytes of parameters and moments that each device owns; return those of the largest. */
static int64_t add_owned(const planned *p, int64_t *owned)
{
	int64_t largest = 0;
	for (uint32_t i = 0; i < p->sidecar.n_inputs; i++) {
		const sw_layout *layout = input_layout(p, i);
		int64_t bytes = sw_shape_bytes(input_shape(p, i)), owners = 0;
		if (!is_variable(p, i))
			continue;
		assert_true(sw_layout_owned_atoms(layout) != 0);
		for (int64_t d = 0; d < p->cluster.n_devices; d++) {
			bool own = sw_layout_has_part(&p->cluster.atoms, layout, d);
			owned[d] += own ? bytes : 0;
			owners += own;
		}
		assert_int_equal(owners, 1);
		largest = SW_MAX(largest, bytes);
	}
	return largest;
}

static void one_server_owns_all_variables(void **state)
{
	planned p;
	int64_t owned[4] = {0};
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "ps");
	add_owned(&p, owned);
	assert_true(owned[0] > 0 && owned[1] + owned[2] + owned[3] == 0);
	close_planned(&p);
}

/* A greedy assignment exceeds the mean by one variable, with its two moments, at most. */
static void balanced_servers_own_about_as_many_bytes_each(void **state)
{
	planned p;
	int64_t owned[4] = {0}, sum = 0, most = 0;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "ps:balanced");
	int64_t largest = add_owned(&p, owned);
	for (int d = 0; d < 4; d++) {
		sum += owned[d];
		most = SW_MAX(most, owned[d]);
	}
	assert_true(most <= sum / 4 + 3 * largest);
	assert_true(most < sum / 2);
	close_planned(&p);
}

/* What divides is split as ZeRO-3 splits it, the rest is owned. */
static void partitioned_servers_own_parts(void **state)
{
	planned p;
	int64_t split = 0, owned = 0;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "ps:partitioned");
	for (uint32_t i = 0; i < p.sidecar.n_inputs; i++) {
		sw_shape shape = input_shape(&p, i);
		bool divides = false;
		for (int32_t d = 0; d < shape.rank; d++)
			divides = divides || shape.dims[d] % 4 == 0;
		if (!is_variable(&p, i))
			continue;
		assert_int_equal(splits(input_layout(&p, i)), divides);
		assert_int_equal(sw_layout_owned_atoms(input_layout(&p, i)) != 0, !divides);
		split += divides;
		owned += !divides;
	}
	assert_true(split > 0);
	close_planned(&p);
}

/* Of DLRM the tables of embeddings have servers, and the perceptrons are all-reduced. */
static void parallax_gives_sparse_variables_to_servers(void **state)
{
	planned p;
	int tables = 0, others = 0;
	(void)state;
	open_fixture("dlrm-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "parallax");
	for (uint32_t i = 0; i < p.sidecar.n_inputs; i++) {
		bool owned = sw_layout_owned_atoms(input_layout(&p, i)) != 0;
		bool table = strstr(p.sidecar.inputs[i].name, "tables") != NULL;
		if (!is_variable(&p, i))
			continue;
		if (owned != table)
			fail_msg("'%s' is %s", p.sidecar.inputs[i].name, owned ? "owned" : "whole");
		tables += table;
		others += !table;
	}
	assert_true(tables > 0 && others > 0);
	close_planned(&p);
}

/* Each part has one owner, and those of one variable have several; parts are so small that the
 * owner of most owns hardly more than the mean. */
static void uneven_parts_have_owners_of_their_own(void **state)
{
	planned p;
	sw_sidecar own;
	sw_error err = {0};
	int64_t owned[4] = {0}, sum = 0, most = 0;
	int apart = 0;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "ps:uneven");
	check(sw_plan_sidecar(p.plan, &p.sidecar, &own, &err), &err);
	sw_sidecar_clear(&p.sidecar);
	p.sidecar = own;
	int64_t largest = add_owned(&p, owned);
	for (uint32_t i = 0; i < own.n_inputs; i++) {
		const sw_fill_part *part = own.inputs[i].init.part;
		int64_t size = part->axis < 0 ? 0 : input_shape(&p, i).dims[0];
		if (part->axis >= 0 && part->start == 0) {
			assert_int_equal(part->axis, 0);
			assert_true(size < part->size && part->size % size != 0);
		}
		if (part->axis >= 0 && part->start > 0)
			apart += !sw_layout_equal(input_layout(&p, i), input_layout(&p, i - 1));
	}
	assert_true(apart > 10);
	for (int d = 0; d < 4; d++) {
		sum += owned[d];
		most = SW_MAX(most, owned[d]);
	}
	assert_true(most <= sum / 4 + 3 * largest);
	close_planned(&p);
}

/* Every gradient is all-reduced in parts, each by itself where nothing is merged. */
static void partitioned_all_reduces_are_of_parts(void **state)
{
	planned p;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	int64_t whole = p.plan->predicted.payload_bytes,
		collectives = p.plan->predicted.collectives;
	make_plan(&p, "allreduce:partitioned,chunk=1");
	assert_true(p.plan->forms.n > 20);
	assert_int_equal(p.plan->predicted.payload_bytes, whole);
	assert_true(p.plan->predicted.collectives >= collectives + (int64_t)p.plan->forms.n);
	assert_non_null(strstr(p.plan->scope, "with its variables in these forms"));
	close_planned(&p);
}

/* ---- what is sent and held --------------------------------------------------------------- */

/* Each rank hands on its gradient to the server, and the server's parameter: V bytes each of a
 * chain, where a ring's all-reduce sends 2 (g - 1) / g V. The weights are so large that the sum to
 * all is no quicker than the one to the server. */
static void a_server_gets_gradients_and_gives_parameters(void **state)
{
	planned p;
	int64_t reduced = 0, given = 0;
	(void)state;
	char *blocks = write_blocks(1, 8, 4, 512, 2);
	open_text(blocks, "4", &p);
	make_plan(&p, "dp");
	int64_t without = p.plan->predicted.payload_bytes;
	make_plan(&p, "ps");
	for (uint32_t i = 0; i < p.sidecar.n_inputs; i++) {
		if (p.sidecar.inputs[i].role != SW_ROLE_PARAMETER)
			continue;
		int64_t bytes = sw_shape_bytes(input_shape(&p, i));
		reduced += sw_collective_payload_bytes(SW_OP_ALL_REDUCE, bytes, 4);
		given += 2 * bytes;
	}
	assert_int_equal(p.plan->predicted.payload_bytes - given, without - reduced);
	close_planned(&p);
	free(blocks);
}

static int64_t bytes_of_device(const planned *p, int64_t device)
{
	sw_program *local, *own;
	sw_error err = {0};
	check(sw_partition(p->plan, &local, &err), &err);
	own = sw_program_of_device(local, device, NULL);
	assert_false(sw_program_has_owners(own));
	check(sw_program_verify(own, &err), &err);
	int64_t bytes = sw_placement_bytes(own);
	sw_program_free(own);
	sw_program_free(local);
	return bytes;
}

/* The peak is that of the device that needs most; who owns nothing holds less. */
static void only_owners_hold_what_they_own(void **state)
{
	planned p;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "ps");
	int64_t server = bytes_of_device(&p, 0), worker = bytes_of_device(&p, 3),
		one = p.plan->predicted.peak_bytes;
	assert_int_equal(one, server);
	int64_t state_bytes = role_bytes(&p, SW_ROLE_MOMENT);
	assert_true(worker + state_bytes / 2 < server);
	make_plan(&p, "ps:balanced");
	int64_t most = 0;
	for (int64_t d = 0; d < 4; d++)
		most = SW_MAX(most, bytes_of_device(&p, d));
	assert_int_equal(p.plan->predicted.peak_bytes, most);
	assert_true(most < one);
	close_planned(&p);
}

/* Updates run on their owners only, beside each other where there are several. */
static void owners_share_the_updates(void **state)
{
	planned p;
	(void)state;
	open_fixture_op_by_op("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	double everywhere = p.plan->predicted.compute_s;
	make_plan(&p, "ps");
	double one = p.plan->predicted.compute_s;
	make_plan(&p, "ps:balanced");
	double shared = p.plan->predicted.compute_s;
	assert_true(one <= everywhere * 1.01);
	assert_true(shared < 0.9 * one);
	close_planned(&p);
}

/* Kernels' overheads are paid once per owner, and not on each device: the bound of plans without
 * owners is beaten, the one of plans with them is not. */
static void plans_with_owners_have_a_bound_of_their_own(void **state)
{
	planned p;
	(void)state;
	open_fixture_op_by_op("gpt-tiny", "lab-2x4.yaml", &p);
	make_plan(&p, "dp");
	double bound = p.plan->lower_bound_s;
	assert_non_null(strstr(p.plan->scope, "and owners"));
	make_plan(&p, "ps:balanced");
	assert_true(sw_bound_is_beaten(bound, p.plan->predicted.compute_s));
	assert_null(strstr(p.plan->scope, "and owners"));
	assert_false(sw_bound_is_beaten(p.plan->lower_bound_s, p.plan->predicted.compute_s));
	assert_int_equal(p.plan->warnings.len, 0);
	close_planned(&p);
}

/* ---- the search for ways ----------------------------------------------------------------- */

static double step_under(planned *p, const char *strategy)
{
	make_plan(p, strategy);
	return p->plan->predicted.step_time_s;
}

/* Return the seconds of a step in which the search chooses each variable's way, by those of the
 * quickest strategy that has one way for all. */
static double ways_by_best(const char *fixture, const char *cluster, bool op_by_op)
{
	static const char *const single[] = {"dp",          "zero1",          "zero3",
	                                     "ps:balanced", "ps:partitioned", "parallax"};
	double best = INFINITY;
	planned p;
	(op_by_op ? open_fixture_op_by_op : open_fixture)(fixture, cluster, &p);
	for (size_t i = 0; i < SW_COUNT(single); i++)
		best = SW_MIN(best, step_under(&p, single[i]));
	double ways = step_under(&p, "ways");
	assert_int_equal(p.plan->warnings.len, 0);
	close_planned(&p);
	return ways / best;
}

static void ways_are_no_slower_than_any_single_way(void **state)
{
	(void)state;
	for (size_t f = 0; f < SW_COUNT(RUNNABLE); f++)
		assert_true(ways_by_best(RUNNABLE[f], "local-2x2.yaml", f % 2) < 1 + 1e-9);
	assert_true(ways_by_best("ncf-tiny", "lab-2x4.yaml", false) < 1 + 1e-9);
}

/* As the command plans: collectives run beside kernels. */
static double overlapped_step_under(planned *p, const char *strategy)
{
	sw_plan_options options = {.quiet = true, .remat = "none", .microbatches = 1};
	return plan_under(p, options, strategy);
}

/* With owners auto is no slower than without, nor than any way of synchronising variables. */
static void auto_with_owners_is_no_slower(const char *fixture, const char *cluster, bool wins)
{
	static const char *const others[] = {"ways",           "ps",       "ps:balanced",
	                                     "ps:partitioned", "parallax", "zero1"};
	planned p;
	/* owners win where updates take long, as they do op by op */
	(wins ? open_fixture_op_by_op : open_fixture)(fixture, cluster, &p);
	double without = overlapped_step_under(&p, "auto"), best = without;
	for (size_t i = 0; i < SW_COUNT(others); i++)
		best = SW_MIN(best, overlapped_step_under(&p, others[i]));
	double both = overlapped_step_under(&p, "auto:owners");
	/* that nothing is quicker than the whole step on every device */
	assert_int_equal(p.plan->warnings.len, p.plan->predicted.collectives == 0);
	assert_false(sw_bound_is_beaten(p.plan->lower_bound_s, both));
	if (both > best * (1 + 1e-9))
		fail_msg("%s on %s: %g s with owners, %g s found", fixture, cluster, both, best);
	if (wins && both > without * 0.95)
		fail_msg("%s on %s: %g s with owners, %g s without", fixture, cluster, both,
		         without);
	assert_verified(&p, "auto:owners");
	close_planned(&p);
}

static void owners_are_taken_where_they_are_quicker(void **state)
{
	(void)state;
	auto_with_owners_is_no_slower("mlp", "local-2x2.yaml", false);
	auto_with_owners_is_no_slower("dlrm-tiny", "local-2x4.yaml", false);
	auto_with_owners_is_no_slower("ncf-tiny", "lab-2x4.yaml", false);
	auto_with_owners_is_no_slower("gpt-tiny", "lab-2x4.yaml", true);
}

/* Vectors all-reduced, some matrices owned, others split: no single way does it. */
static void ways_are_mixed_where_that_is_quicker(void **state)
{
	(void)state;
	assert_true(ways_by_best("gpt-tiny", "lab-2x4.yaml", true) < 0.97);
	assert_true(ways_by_best("gpt-tiny-clip", "lab-4x1.yaml", true) < 0.97);
	assert_true(ways_by_best("mlp", "lab-2x4.yaml", true) < 0.98);
}

/* ---- the file, and refusals ---------------------------------------------------------------- */

static void plan_files_keep_owners(void **state)
{
	char path[] = "/tmp/owners-XXXXXX";
	planned p, again;
	sw_error err = {0};
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "ps:balanced,proxy");
	int file = mkstemp(path);
	assert_true(file >= 0);
	close(file);
	check(sw_plan_write(p.plan, path, &err), &err);
	check(sw_plan_read(path, &again.cluster, &again.plan, &err), &err);
	assert_null(again.plan->changes);
	for (size_t v = 0; v < p.plan->program->values.len; v++)
		assert_true(sw_layout_equal(sw_plan_layout(p.plan, p.plan->produced[v]),
		                            sw_plan_layout(again.plan, again.plan->produced[v])));
	check(sw_plan_verify(again.plan, &err), &err);
	sw_plan_free(again.plan);
	sw_cluster_clear(&again.cluster);
	unlink(path);
	close_planned(&p);
}

static void a_program_without_parameters_is_refused(void **state)
{
	planned p;
	sw_error err = {0};
	(void)state;
	open_text("HloModule m\nENTRY main {\n  x = f32[8,4] parameter(0)\n"
	          "  ROOT y = f32[8,4] add(x, x)\n}\n",
	          "4", &p);
	assert_int_equal(try_plan(&p, "ps:balanced", 0, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "the program has none"));
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_that_own_different_things_compute_what_one_device_does),
		cmocka_unit_test(one_server_owns_all_variables),
		cmocka_unit_test(balanced_servers_own_about_as_many_bytes_each),
		cmocka_unit_test(partitioned_servers_own_parts),
		cmocka_unit_test(uneven_parts_have_owners_of_their_own),
		cmocka_unit_test(partitioned_all_reduces_are_of_parts),
		cmocka_unit_test(parallax_gives_sparse_variables_to_servers),
		cmocka_unit_test(a_server_gets_gradients_and_gives_parameters),
		cmocka_unit_test(only_owners_hold_what_they_own),
		cmocka_unit_test(owners_share_the_updates),
		cmocka_unit_test(plans_with_owners_have_a_bound_of_their_own),
		cmocka_unit_test(ways_are_no_slower_than_any_single_way),
		cmocka_unit_test(owners_are_taken_where_they_are_quicker),
		cmocka_unit_test(ways_are_mixed_where_that_is_quicker),
		cmocka_unit_test(plan_files_keep_owners),
		cmocka_unit_test(a_program_without_parameters_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
