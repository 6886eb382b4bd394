/* No call blocks forever: the error of each rank when another one fails, leaves, or makes a
 * different call. */
#include "ranks.h"

#include <string.h>
#include <unistd.h>

static void assert_says(const outcome *result, int32_t rank, sw_status status, const char *part)
{
	assert_int_equal(result->status[rank], status);
	if (!strstr(result->error[rank].message, part))
		fail_msg("rank %d: \"%s\" lacks \"%s\"", rank, result->error[rank].message, part);
}

static sw_status reduce_some(sw_transport *t, int64_t elements, sw_error *err)
{
	int32_t ranks[MAX_RANKS], n, position;
	make_group(0, t->size, t->rank, ranks, &n, &position);
	float in[64] = {1}, out[64];
	return t->ops->all_reduce(t, ranks, n, SW_MONOID_SUM, SW_F32, in, out, elements, err);
}

static sw_status last_rank_fails(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	sw_status status = reduce_some(t, 4, err);
	if (status == SW_OK && t->rank == t->size - 1) {
		usleep(20000);
		return sw_fail(err, SW_ERR_INPUT, "the disk is on fire");
	}
	return status ? status : reduce_some(t, 4, err);
}

static void a_rank_that_fails_wakes_all_others(void **state)
{
	(void)state;
	static const int32_t sizes[] = {2, 3, 4, 7, 8};
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		outcome result;
		run_ranks(sizes[i], true, last_rank_fails, NULL, &result);
		char wanted[64];
		snprintf(wanted, sizeof(wanted), "rank %d: the disk is on fire", sizes[i] - 1);
		for (int32_t r = 0; r < sizes[i] - 1; r++)
			assert_says(&result, r, SW_ERR_IO, wanted);
		assert_says(&result, sizes[i] - 1, SW_ERR_INPUT, "the disk is on fire");
	}
}

static sw_status last_rank_says_no(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	sw_status status = reduce_some(t, 4, err);
	if (status == SW_OK && t->rank == t->size - 1)
		return sw_fail(err, SW_NO, "there is no answer");
	return status ? status : reduce_some(t, 4, err);
}

static void a_no_of_one_rank_is_the_no_of_all(void **state)
{
	(void)state;
	outcome result;
	run_ranks(4, true, last_rank_says_no, NULL, &result);
	for (int32_t r = 0; r < 3; r++)
		assert_says(&result, r, SW_NO, "rank 3: there is no answer");
	assert_says(&result, 3, SW_NO, "there is no answer");
}

static sw_status later_calls_fail_too(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	if (t->rank == 0)
		return sw_fail(err, SW_ERR_IO, "done for");
	while (reduce_some(t, 4, err) == SW_OK)
		;
	return t->ops->barrier(t, err);
}

static void after_a_failure_every_call_fails(void **state)
{
	(void)state;
	outcome result;
	run_ranks(3, true, later_calls_fail_too, NULL, &result);
	assert_says(&result, 1, SW_ERR_IO, "rank 0: done for");
	assert_says(&result, 2, SW_ERR_IO, "rank 0: done for");
}

static sw_status first_rank_leaves(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	sw_status status = reduce_some(t, 4, err);
	return status || t->rank == 0 ? status : reduce_some(t, 4, err);
}

static void a_rank_that_leaves_is_named(void **state)
{
	(void)state;
	outcome result;
	run_ranks(4, false, first_rank_leaves, NULL, &result);
	assert_int_equal(result.status[0], SW_OK);
	for (int32_t r = 1; r < 4; r++)
		assert_says(&result, r, SW_ERR_IO, "rank 0 has left");
}

static sw_status one_size_differs(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	return reduce_some(t, t->rank == 1 ? 5 : 4, err);
}

static void ranks_that_disagree_about_the_size_all_fail(void **state)
{
	(void)state;
	outcome result;
	run_ranks(3, false, one_size_differs, NULL, &result);
	for (int32_t r = 0; r < 3; r++)
		assert_says(&result, r, SW_ERR_IO, "disagree");
	assert_says(&result, 0, SW_ERR_IO, "in all-reduce (sum of 5 f32 among 3 ranks)");
}

static sw_status one_op_differs(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	int32_t ranks[MAX_RANKS], n, position;
	make_group(0, t->size, t->rank, ranks, &n, &position);
	float in[4] = {0}, out[64];
	if (t->rank == t->size - 1)
		return t->ops->all_gather(t, ranks, n, in, out, sizeof(in), err);
	return t->ops->all_reduce(t, ranks, n, SW_MONOID_SUM, SW_F32, in, out, 4, err);
}

static void ranks_that_disagree_about_the_collective_all_fail(void **state)
{
	(void)state;
	outcome result;
	run_ranks(4, false, one_op_differs, NULL, &result);
	for (int32_t r = 0; r < 4; r++)
		assert_says(&result, r, SW_ERR_IO, "disagree");
	assert_says(&result, 0, SW_ERR_IO, "rank 3 in all-gather (16 bytes among 4 ranks)");
}

/* Rank r calls with the group r and r + 1, so no two ranks ever mean the same group. */
static sw_status circle(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	int32_t next = (t->rank + 1) % t->size;
	float in = 1, out[2];
	if (t->rank % 2 == 0)
		usleep(1000);
	return t->ops->permute(t, -1, next, &in, out, sizeof(in), err);
}

static void ranks_that_wait_for_each_other_all_fail(void **state)
{
	(void)state;
	outcome result;
	run_ranks(4, false, circle, NULL, &result);
	for (int32_t r = 0; r < 4; r++)
		assert_says(&result, r, SW_ERR_IO,
		            "ranks wait for each other: rank 0 is in permute");
}

static sw_status wrong_group(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	int32_t other = (t->rank + 1) % t->size;
	float in = 1, out = 0;
	return t->ops->all_reduce(t, &other, 1, SW_MONOID_SUM, SW_F32, &in, &out, 1, err);
}

static void a_group_without_the_caller_is_refused(void **state)
{
	(void)state;
	outcome result;
	run_ranks(2, false, wrong_group, NULL, &result);
	assert_says(&result, 0, SW_ERR_INTERNAL,
	            "rank 0 calls a collective of a group that it is not in");
}

static sw_status add_preds_of_tokens(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	int32_t self = t->rank;
	float in = 1, out = 0;
	return t->ops->all_reduce(t, &self, 1, SW_MONOID_AND, SW_F32, &in, &out, 1, err);
}

static void a_type_without_the_operation_is_refused(void **state)
{
	(void)state;
	outcome result;
	run_ranks(1, false, add_preds_of_tokens, NULL, &result);
	assert_says(&result, 0, SW_ERR_INPUT, "can't combine f32 by 'and'");
}

static void no_ranks_are_refused(void **state)
{
	(void)state;
	sw_error err;
	assert_int_equal(sw_transport_local(0, NULL, &err), SW_ERR_INPUT);
}

/* ---- the same under mpirun: one case per process, named by the argument ----------------- */

static const rank_case cases_of_one[] = {
	{"fails", last_rank_fails},
	{"no", last_rank_says_no},
	{"leaves", first_rank_leaves},
	{"size", one_size_differs},
	{"op", one_op_differs},
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_fails_wakes_all_others),
		cmocka_unit_test(a_no_of_one_rank_is_the_no_of_all),
		cmocka_unit_test(after_a_failure_every_call_fails),
		cmocka_unit_test(a_rank_that_leaves_is_named),
		cmocka_unit_test(ranks_that_disagree_about_the_size_all_fail),
		cmocka_unit_test(ranks_that_disagree_about_the_collective_all_fail),
		cmocka_unit_test(ranks_that_wait_for_each_other_all_fail),
		cmocka_unit_test(a_group_without_the_caller_is_refused),
		cmocka_unit_test(a_type_without_the_operation_is_refused),
		cmocka_unit_test(no_ranks_are_refused),
	};
	return argc > 1 ? run_case(cases_of_one, SW_COUNT(cases_of_one), argv[1])
	                : cmocka_run_group_tests(tests, NULL, NULL);
}
