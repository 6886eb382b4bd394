/*
 * Ways and owners are decided together: the bound of the problem in which variables may have any way is
 * below all ways with all owners, and owners that nobody named are placed among what is owned.
 */
#include "planned/planned.h"

#include "model/model.h"

enum { DRAWS = 150, DEVICES = 4 };

/* The problem of one list of ways. */
typedef struct solved_ways {
	sw_memo memo;
	sw_model model;
	sw_solution solution;
} solved_ways;

typedef struct fixture {
	planned p;
	sw_plan *plan;
	sw_analysis analysis;
	sw_meshes meshes;
	const sw_mesh *mesh; /* on which each variable has its own way */
} fixture;

static void open_ways(const char *name, fixture *f)
{
	sw_error err = {0};
	sw_program *program;
	*f = (fixture){0};
	open_fixture(name, "local-2x2.yaml", &f->p);
	check(sw_rewrite_canonical(f->p.program, &program, &err), &err);
	f->plan = sw_plan_new(program, f->p.path, &f->p.cluster);
	check(sw_plan_strategy_parse("ways", &f->plan->strategy, &err), &err);
	sw_analysis_init(&f->analysis, f->plan, &f->p.sidecar, (sw_analysis_options){0});
	check(sw_meshes_of(&f->p.cluster, &f->plan->strategy, &sw_model_default_limits,
	                   &f->analysis.roles, 1, &f->meshes, &err),
	      &err);
	for (size_t i = 0; i < f->meshes.len; i++)
		if (f->meshes.data[i].use[0]->ways == SW_WAYS_OWN)
			f->mesh = &f->meshes.data[i];
	assert_non_null(f->mesh);
}

static void close_ways(fixture *f)
{
	sw_vec_clear(&f->meshes);
	sw_analysis_clear(&f->analysis);
	sw_plan_free(f->plan);
	close_planned(&f->p);
}

/* Solve the problem of the ways that the variables have now, and write the answer into the plan. */
static solved_ways solve_ways(fixture *f)
{
	solved_ways s = {0};
	sw_error err = {0};
	sw_memo_init(&s.memo, &f->analysis, f->plan, 1);
	assert_true(sw_model_init(&s.model, &s.memo, f->mesh, INT64_MAX));
	check(sw_solve(&s.model.problem, &(sw_solve_options){.quiet = true, .threads = 1}, &s.solution,
	               &err),
	      &err);
	assert_true(s.solution.answer == SW_SOLVED_OPTIMAL || s.solution.answer == SW_SOLVED_FEASIBLE);
	sw_model_apply(&s.model, s.solution.assignment, f->plan);
	check(sw_plan_verify(f->plan, &err), &err);
	return s;
}

static void clear_ways(solved_ways *s)
{
	sw_solution_clear(&s->solution);
	sw_model_clear(&s->model);
	sw_memo_clear(&s->memo);
}

static sw_way draw_way(const sw_variable *variable, sw_rng *rng)
{
	sw_way way = {.kind = (sw_way_kind)sw_rng_below(rng, SW_WAY_ANY)};
	bool splits = way.kind == SW_WAY_SPLIT || way.kind == SW_WAY_MOMENTS;
	if ((splits && !variable->divides) || (way.kind == SW_WAY_OWNED && !variable->trained))
		way.kind = SW_WAY_ALL_REDUCE;
	if (way.kind == SW_WAY_OWNED) {
		way.owner = sw_rng_below(rng, DEVICES);
		way.proxy = sw_rng_below(rng, 2) == 1;
	}
	return way;
}

static void no_ways_with_any_owners_are_below_the_bound(void **state)
{
	(void)state;
	static const char *const programs[] = {"mlp", "ncf-tiny"};
	for (size_t k = 0; k < SW_COUNT(programs); k++) {
		fixture f;
		sw_rng rng = {.seed = 11 + k};
		open_ways(programs[k], &f);
		solved_ways any = solve_ways(&f);
		for (int draw = 0; draw < DRAWS; draw++) {
			for (uint32_t i = 0; i < f.analysis.variables.n; i++)
				f.analysis.variables.list[i].way =
					draw_way(&f.analysis.variables.list[i], &rng);
			solved_ways drawn = solve_ways(&f);
			if (drawn.solution.cost < any.solution.lower_bound)
				fail_msg("%s, draw %d: %lld ps is below %lld", programs[k], draw,
				         (long long)drawn.solution.cost,
				         (long long)any.solution.lower_bound);
			clear_ways(&drawn);
		}
		clear_ways(&any);
		close_ways(&f);
	}
}

/* Another device in the place of each costs the same: devices are alike to collectives. */
static void it_costs_nothing_to_exchange_devices(void **state)
{
	(void)state;
	fixture f;
	sw_rng rng = {.seed = 5};
	open_ways("gpt-tiny", &f);
	for (int draw = 0; draw < 10; draw++) {
		for (uint32_t i = 0; i < f.analysis.variables.n; i++)
			f.analysis.variables.list[i].way =
				draw_way(&f.analysis.variables.list[i], &rng);
		solved_ways before = solve_ways(&f);
		for (uint32_t i = 0; i < f.analysis.variables.n; i++) {
			sw_way *way = &f.analysis.variables.list[i].way;
			way->owner = (way->owner + 1) % DEVICES;
		}
		solved_ways after = solve_ways(&f);
		assert_true(after.solution.cost == before.solution.cost);
		clear_ways(&before);
		clear_ways(&after);
	}
	close_ways(&f);
}

/* Return the bytes of the state that the device owns which owns most. */
static int64_t most_owned(const fixture *f)
{
	int64_t owned[DEVICES] = {0}, most = 0;
	const sw_roles *roles = &f->analysis.roles;
	for (uint32_t i = 0; i < roles->n_inputs; i++) {
		const sw_layout *layout =
			&f->plan->layouts.items.data[f->plan->produced[roles->inputs[i]]];
		for (int64_t d = 0; d < DEVICES && sw_layout_owned_atoms(layout); d++)
			if (sw_layout_has_part(&f->p.cluster.atoms, layout, d))
				owned[d] += sw_shape_bytes(
					sw_value_shape(f->plan->program, roles->inputs[i]));
	}
	for (int64_t d = 0; d < DEVICES; d++)
		most = SW_MAX(most, owned[d]);
	return most;
}

/* Of variables that all might have been owned, only some are: with the owners that they had, one device
 * may own all of them. */
static void owners_are_placed_among_what_is_owned(void **state)
{
	(void)state;
	fixture f;
	open_ways("gpt-tiny", &f);
	int64_t largest = 0, all = 0;
	for (uint32_t i = 0; i < f.analysis.variables.n; i++) {
		sw_variable *variable = &f.analysis.variables.list[i];
		bool owned = variable->trained && variable->way.owner == 1;
		if (!owned)
			variable->way = (sw_way){.kind = SW_WAY_ALL_REDUCE};
		else
			variable->way.kind = SW_WAY_OWNED;
		largest = SW_MAX(largest, owned ? variable->bytes : 0);
		all += owned ? variable->bytes : 0;
	}
	solved_ways open = solve_ways(&f);
	assert_true(largest < all && most_owned(&f) < all);
	assert_true(most_owned(&f) <= SW_MAX(largest, (all + DEVICES - 1) / DEVICES * 4 / 3));
	for (uint32_t i = 0; i < f.analysis.variables.n; i++)
		f.analysis.variables.list[i].way.open = false;
	solved_ways named = solve_ways(&f);
	assert_true(most_owned(&f) == all);
	assert_true(named.solution.cost == open.solution.cost);
	clear_ways(&open);
	clear_ways(&named);
	close_ways(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_ways_with_any_owners_are_below_the_bound),
		cmocka_unit_test(it_costs_nothing_to_exchange_devices),
		cmocka_unit_test(owners_are_placed_among_what_is_owned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
