/* A search that competes with a plan of another kind: it asks for that one's step once it knows a
 * plan, and leaves out what can't be quicker, but nothing that can. */
#include "planned/planned.h"
#include "search/search.h"

#include <math.h>

typedef struct rival {
	double own_s;   /* what it answers */
	double known_s; /* what it was told */
	int asked;
	sw_search_effort effort;
} rival;

static double answer(void *context, double step_s, const char *remat)
{
	rival *r = context;
	(void)remat;
	r->asked++;
	r->known_s = step_s;
	return r->own_s;
}

/* Plan beside a rival; its step, or INFINITY where nothing fits. */
static double plan_beside(planned *p, int64_t memory_bytes, double time_limit_s, rival *r)
{
	sw_error err = {0};
	const sw_plan_rival asks = {answer, r};
	sw_plan_options options = {.quiet = true,
	                           .memory_bytes = memory_bytes,
	                           .time_limit_s = time_limit_s,
	                           .effort = &r->effort,
	                           .rival = &asks};
	sw_plan_free(p->plan);
	p->plan = NULL;
	check(sw_plan_strategy_parse("auto", &options.strategy, &err), &err);
	sw_status status = sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options,
	                                &p->plan, &err);
	assert_true(status == SW_OK || status == SW_NO);
	return status == SW_OK ? p->plan->predicted.step_time_s : INFINITY;
}

/* Two thirds of what its quickest plan takes: then the search looks for plans that save memory. */
static int64_t scarce_bytes(planned *p)
{
	rival none = {.own_s = INFINITY};
	plan_beside(p, 0, 0, &none);
	return p->plan->predicted.peak_bytes * 2 / 3;
}

static void a_slower_rival_changes_nothing(void **state)
{
	planned p;
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	rival none = {.own_s = INFINITY};
	double step_s = plan_beside(&p, 0, 0, &none);
	assert_int_equal(none.asked, 1);
	assert_true(isfinite(step_s) && none.known_s >= step_s);
	rival slower = {.own_s = 1.001 * step_s};
	assert_true(fabs(plan_beside(&p, 0, 0, &slower) - step_s) <= 1e-9 * step_s);
	close_planned(&p);
}

static void a_quicker_rival_saves_work(void **state)
{
	planned p;
	(void)state;
	open_fixture("mlp", "lab-2x4.yaml", &p);
	int64_t bytes = scarce_bytes(&p);
	rival none = {.own_s = INFINITY};
	double step_s = plan_beside(&p, bytes, 0, &none);
	rival far = {.own_s = step_s / 100};
	double beside_s = plan_beside(&p, bytes, 0, &far);
	assert_int_equal(far.asked, 1);
	assert_true(isfinite(beside_s) && beside_s >= step_s * (1 - 1e-9));
	assert_true(p.plan->predicted.peak_bytes <= bytes);
	assert_true(2 * far.effort.ops <= none.effort.ops);
	close_planned(&p);
}

/* Within a time limit each of the two plans has its part of it. */
static void a_limited_search_asks_none(void **state)
{
	planned p;
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	rival r = {.own_s = 1e-9};
	assert_true(isfinite(plan_beside(&p, 0, 3600, &r)));
	assert_int_equal(r.asked, 0);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slower_rival_changes_nothing),
		cmocka_unit_test(a_quicker_rival_saves_work),
		cmocka_unit_test(a_limited_search_asks_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
