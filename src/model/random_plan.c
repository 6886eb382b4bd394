/*
 * A plan by chance: nothing that a planner would choose, all of it allowed. What partitions every
 * such plan rightly partitions every plan.
 *
 * Each op draws for each atom a digit of a factor at any legal stride, a linearity, or nothing;
 * what sw_rule_layouts refuses is taken back. Inputs and boundaries (what loops carry, what
 * branches take and give) draw any layout. A value is kept in any layout that all its readers can
 * be served from: partial sums of one kind never become those of another.
 */
#include "model/internal.h"

#include <stdlib.h>

typedef struct dice {
	sw_rng rng;
	int eager; /* percent: how often an atom is used at all, of this plan */
} dice;

static bool chance(dice *d, int percent)
{
	return sw_rng_below(&d->rng, 100) < percent;
}

/* A divisor of n: often n itself or 1, so that blocks and the finest digits are there as well. */
static int64_t random_divisor(dice *d, int64_t n)
{
	int64_t divisor = 1;
	int64_t extreme = sw_rng_below(&d->rng, 4);
	if (extreme < 2)
		return extreme ? n : 1;
	for (int64_t p = 2; p <= 100 && n > 1; p++)
		for (; n % p == 0; n /= p)
			divisor *= chance(d, 50) ? p : 1;
	return chance(d, 50) ? divisor * n : divisor;
}

/* ---- layouts ---------------------------------------------------------------------------- */

static sw_state random_state(dice *d, sw_shape shape, int64_t p, sw_monoid monoid)
{
	sw_state state = {.kind = SW_STATE_B};
	if (monoid != SW_MONOID_NONE && chance(d, 40))
		return (sw_state){.kind = SW_STATE_P};
	if (shape.rank == 0 || !chance(d, d->eager))
		return state;
	int32_t dim = (int32_t)sw_rng_below(&d->rng, shape.rank);
	if (shape.dims[dim] == 0 || shape.dims[dim] % p != 0)
		return state;
	return (sw_state){.kind = SW_STATE_S,
	                  .dim = (int8_t)dim,
	                  .stride = random_divisor(d, shape.dims[dim] / p)};
}

/* monoid: of the atoms that may be partial; NONE: none may. */
static sw_layout random_layout(dice *d, const sw_atoms *atoms, sw_shape shape, sw_monoid monoid)
{
	sw_layout layout = sw_layout_replicated(atoms);
	for (int32_t a = 0; a < atoms->n; a++) {
		sw_layout before = layout;
		layout.state[a] = random_state(d, shape, atoms->size[a], monoid);
		if (layout.state[a].kind == SW_STATE_P)
			layout.monoid = monoid;
		if (!sw_layout_valid(atoms, shape, &layout))
			layout = before;
	}
	return layout;
}

/* One that values of the type can be partial under; often NONE. */
static sw_monoid random_monoid(dice *d, sw_type type)
{
	sw_monoid monoid = (sw_monoid)sw_rng_below(&d->rng, SW_MONOID_OR + 1);
	if (chance(d, 50))
		monoid = SW_MONOID_SUM;
	return chance(d, 50) && sw_rule_splittable(type, monoid) == monoid ? monoid
	                                                                   : SW_MONOID_NONE;
}

static uint32_t draw_layout(dice *d, sw_plan *plan, sw_id value, sw_monoid monoid)
{
	sw_layout layout = random_layout(d, &plan->cluster->atoms,
	                                 sw_value_shape(plan->program, value), monoid);
	return sw_layouts_id(&plan->layouts, &layout);
}

/* ---- strategies ------------------------------------------------------------------------- */

static sw_choice random_choice(dice *d, const sw_rule *rule, int64_t p)
{
	sw_choice none = {.kind = SW_CHOICE_NONE};
	bool pass = rule->n_linearities > 0 && chance(d, rule->n_factors > 0 ? 25 : 100);
	if (pass) {
		int32_t index = (int32_t)sw_rng_below(&d->rng, rule->n_linearities);
		uint32_t monoid = (uint32_t)sw_rng_below(&d->rng, SW_MONOID_OR + 1);
		while (!(rule->linearities[index].monoids >> monoid & 1))
			monoid = (monoid + 1) % (SW_MONOID_OR + 1);
		return (sw_choice){
			.kind = SW_CHOICE_PASS, .index = (int16_t)index, .monoid = (uint8_t)monoid};
	}
	if (rule->n_factors == 0)
		return none;
	int32_t index = (int32_t)sw_rng_below(&d->rng, rule->n_factors);
	int64_t size = rule->factors[index].size;
	if (size % p != 0)
		return none;
	sw_choice choice = {.kind = SW_CHOICE_SPLIT,
	                    .index = (int16_t)index,
	                    .stride = random_divisor(d, size / p)};
	int32_t stream = (int32_t)sw_rng_below(&d->rng, rule->n_factors);
	if (rule->factors[stream].streams && stream != index &&
	    rule->factors[stream].size % p == 0) {
		choice.stream = (int16_t)stream;
		choice.stream_stride = random_divisor(d, rule->factors[stream].size / p);
	}
	return choice;
}

/* Atoms one after another, as long as the whole stays possible. */
static void draw_strategy(dice *d, sw_plan *plan, sw_id op_id, sw_layout *layouts)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	const sw_rule *rule = plan->rules[op_id];
	const sw_atoms *atoms = &plan->cluster->atoms;
	sw_strategy *strategy = &plan->strategies[op_id];
	for (int32_t a = 0; a < atoms->n; a++)
		for (int attempt = 0; attempt < 3 && strategy->atom[a].kind == SW_CHOICE_NONE;
		     attempt++) {
			if (!chance(d, d->eager))
				continue;
			strategy->atom[a] = random_choice(d, rule, atoms->size[a]);
			if (!sw_rule_layouts(plan->program, op_id, rule, atoms, strategy, layouts,
			                     layouts + op->n_operands))
				strategy->atom[a] = (sw_choice){.kind = SW_CHOICE_NONE};
		}
}

/* ---- the program ------------------------------------------------------------------------ */

typedef struct walk {
	dice dice;
	sw_plan *plan;
	const sw_roles *roles;
	uint32_t *needed;   /* per value: monoids (bit) that readers want it partial under */
	sw_layout *layouts; /* room for one op's */
} walk;

static void draw_inputs(walk *w)
{
	for (uint32_t i = 0; i < w->roles->n_inputs; i++)
		w->plan->produced[w->roles->inputs[i]] =
			draw_layout(&w->dice, w->plan, w->roles->inputs[i], SW_MONOID_NONE);
}

/* The values of a boundary lie in one way. */
static void draw_boundaries(walk *w)
{
	for (size_t i = 0; i < w->roles->boundaries.len; i++) {
		const sw_boundary *boundary = &w->roles->boundaries.data[i];
		if (boundary->n_values == 0)
			continue;
		sw_type type = sw_value_shape(w->plan->program, boundary->values[0]).type;
		uint32_t layout = draw_layout(&w->dice, w->plan, boundary->values[0],
		                              random_monoid(&w->dice, type));
		for (uint32_t k = 0; k < boundary->n_values; k++)
			w->plan->produced[boundary->values[k]] = layout;
	}
}

static void draw_ops(walk *w)
{
	const sw_program *program = w->plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (!w->roles->planned[op->computation])
			continue;
		draw_strategy(&w->dice, w->plan, id, w->layouts);
		sw_layout *results = w->layouts + op->n_operands;
		sw_plan_op_layouts(w->plan, id, w->layouts, results);
		for (uint32_t k = 0; k < op->n_results; k++)
			w->plan->produced[op->first_result + k] =
				sw_layouts_id(&w->plan->layouts, &results[k]);
	}
}

static void need(walk *w, sw_id value, const sw_layout *layout)
{
	w->needed[value] |= 1u << layout->monoid;
}

static void find_needed(walk *w)
{
	const sw_program *program = w->plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (!w->roles->planned[op->computation])
			continue;
		sw_plan_op_layouts(w->plan, id, w->layouts, w->layouts + op->n_operands);
		for (uint32_t k = 0; k < op->n_operands; k++)
			need(w, op->operands[k], &w->layouts[k]);
	}
	for (size_t i = 0; i < w->roles->boundaries.len; i++) {
		const sw_boundary *boundary = &w->roles->boundaries.data[i];
		for (uint32_t k = 0; k < boundary->n_reads && boundary->n_values > 0; k++)
			need(w, boundary->reads[k].value,
			     sw_plan_layout(w->plan, w->plan->produced[boundary->values[0]]));
	}
}

/* Whole values serve all readers; partial ones those that want them so, or whole. */
static void draw_kept(walk *w)
{
	for (sw_id v = 0; v < w->plan->program->values.len; v++) {
		uint32_t produced = w->plan->produced[v];
		sw_monoid made = sw_plan_layout(w->plan, produced)->monoid;
		uint32_t wanted = w->needed[v] & ~(1u << SW_MONOID_NONE);
		sw_type type = sw_value_shape(w->plan->program, v).type;
		bool planned = w->roles->planned[sw_op_at(w->plan->program,
		                                          w->plan->program->values.data[v].op)
		                                         ->computation];
		w->plan->materialised[v] = produced;
		if (!planned || ((wanted & ~(1u << made)) == 0 && chance(&w->dice, 60)))
			continue;
		sw_monoid monoid = made != SW_MONOID_NONE ? made : random_monoid(&w->dice, type);
		bool fits = (wanted & ~(1u << monoid)) == 0;
		w->plan->materialised[v] =
			draw_layout(&w->dice, w->plan, v, fits ? monoid : SW_MONOID_NONE);
	}
}

static void draw_outputs(walk *w)
{
	for (uint32_t i = 0; i < w->plan->n_outputs; i++) {
		sw_id value = sw_entry(w->plan->program)->results.data[i];
		int32_t input = w->roles->output_input[i];
		w->plan->outputs[i] =
			input >= 0 ? w->plan->produced[w->roles->inputs[input]]
				   : draw_layout(&w->dice, w->plan, value, SW_MONOID_NONE);
	}
}

static uint32_t most_values(const sw_program *program)
{
	uint32_t most = 0;
	for (size_t i = 0; i < program->ops.len; i++)
		most = SW_MAX(most,
		              program->ops.data[i].n_operands + program->ops.data[i].n_results);
	return most;
}

/* Half of the plans share all that is moved; of the others some readers move it again. */
static void draw_anew(walk *w)
{
	const sw_program *program = w->plan->program;
	bool some = chance(&w->dice, 50);
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t k = 0;
		     some && w->roles->planned[op->computation] && k < op->n_operands; k++)
			if (chance(&w->dice, 50))
				sw_vec_push(&w->plan->regathered, ((sw_read){op->operands[k], id}));
	}
	sw_reads_sort(&w->plan->regathered);
}

sw_status sw_plan_random(const sw_program *program, const char *program_path,
                         const sw_cluster *cluster, uint64_t seed, sw_plan **plan, sw_error *err)
{
	sw_program *canonical;
	sw_sidecar sidecar;
	sw_roles roles;
	*plan = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	if (status != SW_OK)
		return status;
	*plan = sw_plan_new(canonical, program_path, cluster);
	(*plan)->program_hash = sw_program_hash(canonical);
	snprintf((*plan)->chosen, sizeof((*plan)->chosen), "random %llu", (unsigned long long)seed);
	sw_sidecar_default(canonical, &sidecar);
	sw_roles_init(&roles, canonical, &sidecar);
	walk w = {.dice = {.rng = {seed, 0}}, .plan = *plan, .roles = &roles};
	w.dice.eager = (int)(30 + sw_rng_below(&w.dice.rng, 66));
	w.needed = sw_alloc(sizeof(*w.needed) * (canonical->values.len + 1));
	w.layouts = sw_alloc(sizeof(*w.layouts) * (most_values(canonical) + 1));
	draw_inputs(&w);
	draw_boundaries(&w);
	draw_ops(&w);
	find_needed(&w);
	draw_kept(&w);
	draw_outputs(&w);
	draw_anew(&w);
	free(w.layouts);
	free(w.needed);
	sw_roles_clear(&roles);
	sw_sidecar_clear(&sidecar);
	status = sw_plan_verify(*plan, err);
	if (status != SW_OK) {
		sw_plan_free(*plan);
		*plan = NULL;
	}
	return status;
}
