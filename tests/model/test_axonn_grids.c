/* How AxoNN's grids are ranked for a program: which axis sums what, convolutions, and what the
 * solver does where the paper transposes every second weight. */
#include "planned/planned.h"

#include "model/axonn_grids.h"

#include <math.h>
#include <string.h>

typedef struct ranked {
	planned p;
	sw_program *program; /* canonical */
	sw_roles roles;
	sw_arena arena;
	sw_grids grids;
} ranked;

static void rank_opened(ranked *r, sw_axonn_seconds by)
{
	sw_error err = {0};
	check(sw_rewrite_canonical(r->p.program, &r->program, &err), &err);
	sw_roles_init(&r->roles, r->program, &r->p.sidecar);
	sw_arena_init(&r->arena);
	r->grids = sw_grids_rank(&r->p.cluster, &r->roles, r->roles.batch, by,
	                         &r->arena);
}

static void close_ranked(ranked *r)
{
	sw_arena_clear(&r->arena);
	sw_roles_clear(&r->roles);
	sw_program_free(r->program);
	close_planned(&r->p);
}

/* Return the grid with these sizes, and the number of grids before it. */
static const sw_grid *grid_of(const ranked *r, const char *name, int *rank)
{
	sw_plan_strategy wanted;
	sw_error err = {0};
	check(sw_plan_strategy_parse(name, &wanted, &err), &err);
	for (int32_t i = 0; i < r->grids.n; i++)
		if (!memcmp(r->grids.list[i].grid.size, wanted.size, sizeof(wanted.size))) {
			if (rank)
				*rank = i;
			return &r->grids.list[i];
		}
	fail_msg("no grid %s", name);
	return NULL;
}

static double seconds_of(const ranked *r, const char *name, sw_axonn_seconds by)
{
	return grid_of(r, name, NULL)->seconds[by];
}

#define WIDE "f32[64,512]"
#define NARROW "f32[64,128]"
#define WEIGHT "f32[512,128]"
/* One layer of m = 64, k = 512 and n = 128. */
static const char one_layer[] =
	"HloModule one, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	"ENTRY main { w = " WEIGHT " parameter(0)\n x = " WIDE " parameter(1)\n"
	"  y = " NARROW " dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	"  d = " NARROW " tanh(y)\n"
	"  g = " WEIGHT " dot(x, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
	"  next = " WEIGHT " subtract(w, g)\n"
	"  ROOT out = (" WEIGHT ", " NARROW ") tuple(next, d) }\n";

/* Equation 6: the result is summed over y; equation 7: the gradient of the input over x. */
static void results_are_summed_over_y(void **state)
{
	ranked r;
	(void)state;
	open_text(one_layer, "4", &r.p);
	rank_opened(&r, SW_AXONN_PAPER);
	double bandwidth = r.p.cluster.levels[0].bandwidth, m = 64, k = 512, n = 128;
	double over_y = seconds_of(&r, "axonn:1,4,1,1", SW_AXONN_PAPER),
	       over_x = seconds_of(&r, "axonn:4,1,1,1", SW_AXONN_PAPER);
	assert_true(fabs(over_y * bandwidth - 2 * 3. / 4 * m * n * 4) < 1);
	assert_true(fabs(over_x * bandwidth - 2 * 3. / 4 * m * k * 4) < 1);
	close_ranked(&r);
}

/* A layer may be transposed from the first on, so both grids have one plan, and one rank. */
static void grids_with_equal_plans_have_equal_seconds(void **state)
{
	static const char *const names[] = {"axonn:1,4,1,1", "axonn:4,1,1,1"};
	double step_s[2];
	ranked r;
	(void)state;
	open_text(one_layer, "4", &r.p);
	for (int i = 0; i < 2; i++) {
		make_plan(&r.p, names[i]);
		step_s[i] = r.p.plan->predicted.step_time_s;
	}
	rank_opened(&r, SW_AXONN_OURS);
	assert_true(step_s[0] == step_s[1]);
	assert_true(seconds_of(&r, names[0], SW_AXONN_OURS) ==
	            seconds_of(&r, names[1], SW_AXONN_OURS));
	close_ranked(&r);
}

/* Section III-B: convolutions count, k and n are channels. */
static void convolutions_are_ranked(void **state)
{
	static const sw_axonn_seconds by[] = {SW_AXONN_OURS, SW_AXONN_PAPER};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(by); i++) {
		ranked r;
		int rank, convolutions = 0;
		open_fixture("resnet-tiny", "local-2x4.yaml", &r.p);
		rank_opened(&r, by[i]);
		sw_grid_layers layers = {0};
		sw_grid_layers_find(&r.roles, &layers);
		for (size_t k = 0; k < layers.len; k++) {
			const sw_grid_layer *l = &layers.data[k];
			convolutions += l->convolution;
			assert_true(l->layer.results == 1 && l->layer.inputs <= 1);
			/* Only the first has no gradient of its input. */
			assert_true(l->layer.inputs == 1 || k == 0);
		}
		assert_true(convolutions > 3);
		grid_of(&r, "axonn:1,1,1,8", &rank);
		assert_true(rank < 5);
		assert_true(seconds_of(&r, "axonn:8,1,1,1", by[i]) >
		            seconds_of(&r, "axonn:1,1,1,8", by[i]));
		sw_vec_clear(&layers);
		close_ranked(&r);
	}
}

/* Return the bytes that a device sends in a step if every second weight is transposed. */
static double bytes_of_alternation(const ranked *r, const sw_axonn_grid *g)
{
	sw_grid_layers layers = {0};
	double sum = 0;
	sw_grid_layers_find(&r->roles, &layers);
	for (size_t i = 0; i < layers.len; i++) {
		sw_axonn_step steps[SW_AXONN_STEPS];
		sw_axonn_steps(g, &layers.data[i].layer, steps);
		for (int s = 0; s < SW_AXONN_STEPS; s++) {
			double n = (double)g->size[steps[s].axis], m = steps[s].operand_bytes;
			sum += steps[s].times *
			       (steps[s].kind == SW_COLLECTIVE_ALL_GATHER ? (n - 1) * m
			        : steps[s].kind == SW_COLLECTIVE_REDUCE_SCATTER
			                ? (n - 1) / n * m
			                : 2 * (n - 1) / n * m);
		}
	}
	sw_vec_clear(&layers);
	return sum;
}

/* Queries, keys and values read one input. Alternation transposes the keys alone, whose input would
 * have to be laid out anew; the solver splits all three alike. */
static void the_solver_sends_no_more_than_alternate_transposes(void **state)
{
	static const char *const names[] = {"axonn:2,2,1,1", "axonn:2,2,2,1", "axonn:2,4,1,1"};
	char *blocks = write_blocks(2, 16, 32, 64, 4);
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		ranked r;
		open_text(blocks, i == 0 ? "4" : "8", &r.p);
		make_plan(&r.p, names[i]);
		rank_opened(&r, SW_AXONN_OURS);
		sw_axonn_grid g = {0};
		memcpy(g.size, grid_of(&r, names[i], NULL)->grid.size, sizeof(g.size));
		double ours = (double)r.p.plan->predicted.payload_bytes,
		       alternating = bytes_of_alternation(&r, &g);
		if (!(ours <= alternating))
			fail_msg("%s: the solver sends %.0f bytes, alternation %.0f", names[i],
			         ours, alternating);
		print_message("%s: %.0f bytes; with alternate transposes %.0f\n", names[i], ours,
		              alternating);
		close_ranked(&r);
	}
	free(blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_summed_over_y),
		cmocka_unit_test(grids_with_equal_plans_have_equal_seconds),
		cmocka_unit_test(convolutions_are_ranked),
		cmocka_unit_test(the_solver_sends_no_more_than_alternate_transposes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
