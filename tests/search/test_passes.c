/*
 * Programs that run pass by pass: a later pass converts again what it needs in another layout than
 * that between passes, and the search counts it. Any cut of a program's order makes two passes.
 */
#include <math.h>

#include "planned/planned.h"

#include "rewrite/rewrite.h"

/* The first `part` of the entry's ops are of the earlier pass, all others of the later one. */
static sw_map cut_passes(const sw_program *program, double part)
{
	sw_program *canonical;
	sw_error err = {0};
	sw_map passes = {0};
	check(sw_rewrite_canonical(program, &canonical, &err), &err);
	const sw_computation *entry = sw_entry(canonical);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const char *name = sw_op_at(canonical, entry->ops.data[i])->name;
		bool later = (double)i >= part * (double)entry->ops.len;
		sw_map_put(&passes, name, strlen(name), later ? SW_LATER_PASS : SW_EARLIER_PASS);
	}
	sw_program_free(canonical);
	return passes;
}

/* Let passes convert again, whatever the search has counted; return the seconds that then are. */
static double seconds_by_pass(sw_plan *plan, const sw_map *passes, size_t *more)
{
	sw_program_cost cost;
	sw_error err = {0};
	size_t before = plan->regathered.len;
	plan->passes = passes;
	sw_plan_convert_between_passes(plan);
	plan->passes = NULL;
	*more = plan->regathered.len - before;
	check(sw_partition_measure(plan, &cost, &err), &err);
	return cost.step_time_s;
}

/* How much longer the step takes of a search that does not know the passes, and converts again
 * behind its choice. */
static double gain(planned *p, double part)
{
	sw_plan_options options = {.quiet = true, .remat = "none", .microbatches = 1, .no_overlap = true};
	sw_map passes = cut_passes(p->program, part);
	size_t more;
	plan_under(p, options, "auto");
	double unaware_s = seconds_by_pass(p->plan, &passes, &more);
	options.passes = &passes;
	double counted_s = plan_under(p, options, "auto"),
	       aware_s = seconds_by_pass(p->plan, &passes, &more);
	assert_null(p->plan->passes);
	if (more > 0 || fabs(aware_s - counted_s) > 1e-9 * counted_s)
		fail_msg("cut at %g: the search has counted %g s, %zu conversions less than the %g s "
		         "that its plan takes",
		         part, counted_s, more, aware_s);
	sw_map_clear(&passes);
	return unaware_s / aware_s;
}

/* The search is exact for its model, and takes the quickest of several plans: one that counts less
 * may be a little luckier. */
#define LUCK 0.98

static void what_passes_convert_is_counted(void **state)
{
	(void)state;
	static const int sizes[][3] = {{1, 512, 512}, {4, 64, 256}};
	double most = 0;
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		planned p;
		char *hlo = write_blocks(2, sizes[i][0], sizes[i][1], sizes[i][2], 4);
		open_text(hlo, "8", &p);
		for (int k = 1; k <= 3; k++) {
			double g = gain(&p, k / 4.0);
			if (g < LUCK)
				fail_msg("%d sequences of %d, width %d, cut at %d/4: a search that does "
				         "not know the passes is better, %g of the seconds",
				         sizes[i][0], sizes[i][1], sizes[i][2], k, g);
			most = fmax(most, g);
		}
		close_planned(&p);
		free(hlo);
	}
	if (most < 1.1)
		fail_msg("passes nowhere change what is best");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_passes_convert_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
