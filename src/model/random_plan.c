/*
 * Random plans: nothing that a planner would choose, but all valid. A partitioner that handles
 * every random plan handles every plan.
 *
 * Each op draws for each atom a digit of a factor at any legal stride, a linearity, or nothing; a
 * draw that sw_rule_layouts refuses is undone. Inputs and boundaries draw any layout. A value is
 * materialised in any layout from which all its readers can be served: partial sums under one
 * monoid never become partial sums under another.
 */
#include "model/internal.h"

#include <stdlib.h>

typedef struct draw_state {
	sw_rng rng;
	int use_percent; /* percent of the atoms that are used at all, in this plan */
	bool owned;      /* what is drawn may have an owner */
} draw_state;

static bool chance(draw_state *d, int percent)
{
	return sw_rng_below(&d->rng, 100) < percent;
}

/* Draw a divisor of n, often n itself or 1, so that blocks and the finest digits occur too. */
static int64_t random_divisor(draw_state *d, int64_t n)
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

static sw_state random_state(draw_state *d, sw_shape shape, int64_t p, sw_monoid monoid)
{
	sw_state state = {.kind = SW_STATE_B};
	if (d->owned && chance(d, 25))
		return (sw_state){.kind = SW_STATE_O, .stride = sw_rng_below(&d->rng, p)};
	if (monoid != SW_MONOID_NONE && chance(d, 40))
		return (sw_state){.kind = SW_STATE_P};
	if (shape.rank == 0 || !chance(d, d->use_percent))
		return state;
	int32_t dim = (int32_t)sw_rng_below(&d->rng, shape.rank);
	if (shape.dims[dim] == 0 || shape.dims[dim] % p != 0)
		return state;
	return (sw_state){.kind = SW_STATE_S,
	                  .dim = (int8_t)dim,
	                  .stride = random_divisor(d, shape.dims[dim] / p)};
}

/* Draw a layout whose partial atoms have `monoid`; NONE: no atom is partial. */
static sw_layout random_layout(draw_state *d, const sw_atoms *atoms, sw_shape shape,
                               sw_monoid monoid)
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

/* Draw a monoid under which values of the type can be partial; often NONE. */
static sw_monoid random_monoid(draw_state *d, sw_type type)
{
	sw_monoid monoid = (sw_monoid)sw_rng_below(&d->rng, SW_MONOID_OR + 1);
	if (chance(d, 50))
		monoid = SW_MONOID_SUM;
	return chance(d, 50) && sw_rule_splittable(type, monoid) == monoid ? monoid
	                                                                   : SW_MONOID_NONE;
}

static uint32_t draw_layout(draw_state *d, sw_plan *plan, sw_id value, sw_monoid monoid)
{
	sw_layout layout = random_layout(d, &plan->cluster->atoms,
	                                 sw_value_shape(plan->program, value), monoid);
	return sw_layouts_id(&plan->layouts, &layout);
}

/* ---- strategies ------------------------------------------------------------------------- */

static sw_choice random_choice(draw_state *d, const sw_rule *rule, int64_t p)
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

/* Draw a choice per atom, one after another; keep those with which the strategy stays possible. */
static void draw_strategy(draw_state *d, sw_plan *plan, sw_id op_id, sw_layout *layouts)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	const sw_rule *rule = plan->rules[op_id];
	const sw_atoms *atoms = &plan->cluster->atoms;
	sw_strategy *strategy = &plan->strategies[op_id];
	for (int32_t a = 0; a < atoms->n; a++)
		for (int attempt = 0; attempt < 3 && strategy->atom[a].kind == SW_CHOICE_NONE;
		     attempt++) {
			if (!chance(d, d->use_percent))
				continue;
			strategy->atom[a] = d->owned && chance(d, 25)
			                            ? (sw_choice){.kind = SW_CHOICE_OWN,
			                                          .stride = sw_rng_below(
									  &d->rng, atoms->size[a])}
			                            : random_choice(d, rule, atoms->size[a]);
			if (!sw_rule_layouts(plan->program, op_id, rule, atoms, strategy, layouts,
			                     layouts + op->n_operands))
				strategy->atom[a] = (sw_choice){.kind = SW_CHOICE_NONE};
		}
}

/* ---- the program ------------------------------------------------------------------------ */

typedef struct random_draw {
	draw_state draw_state;
	sw_plan *plan;
	const sw_roles *roles;
	uint32_t *needed;   /* per value: monoids (bit) under which readers take it as partial */
	sw_layout *layouts; /* scratch, of one op */
	bool owners;
} random_draw;

static void draw_inputs(random_draw *w)
{
	const sw_program *program = w->plan->program;
	for (uint32_t i = 0; i < w->roles->n_inputs; i++) {
		sw_id value = w->roles->inputs[i];
		w->draw_state.owned =
			w->owners && sw_value_shape(program, value).rank > 0 &&
			sw_op_at(program, program->values.data[value].op)->n_results == 1;
		w->plan->produced[value] =
			draw_layout(&w->draw_state, w->plan, value, SW_MONOID_NONE);
	}
	w->draw_state.owned = false;
}

/* The values of a boundary have one layout. */
static void draw_boundaries(random_draw *w)
{
	for (size_t i = 0; i < w->roles->boundaries.len; i++) {
		const sw_boundary *boundary = &w->roles->boundaries.data[i];
		if (boundary->n_values == 0)
			continue;
		sw_type type = sw_value_shape(w->plan->program, boundary->values[0]).type;
		uint32_t layout = draw_layout(&w->draw_state, w->plan, boundary->values[0],
		                              random_monoid(&w->draw_state, type));
		for (uint32_t k = 0; k < boundary->n_values; k++)
			w->plan->produced[boundary->values[k]] = layout;
	}
}

static void draw_ops(random_draw *w)
{
	const sw_program *program = w->plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (!w->roles->planned[op->computation])
			continue;
		w->draw_state.owned = w->owners && sw_plan_op_may_be_owned(program, id);
		draw_strategy(&w->draw_state, w->plan, id, w->layouts);
		w->draw_state.owned = false;
		sw_layout *results = w->layouts + op->n_operands;
		sw_plan_op_layouts(w->plan, id, w->layouts, results);
		for (uint32_t k = 0; k < op->n_results; k++)
			w->plan->produced[op->first_result + k] =
				sw_layouts_id(&w->plan->layouts, &results[k]);
	}
}

static void mark_needed(random_draw *w, sw_id value, const sw_layout *layout)
{
	w->needed[value] |= 1u << layout->monoid;
}

static void find_needed(random_draw *w)
{
	const sw_program *program = w->plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (!w->roles->planned[op->computation])
			continue;
		sw_plan_op_layouts(w->plan, id, w->layouts, w->layouts + op->n_operands);
		for (uint32_t k = 0; k < op->n_operands; k++)
			mark_needed(w, op->operands[k], &w->layouts[k]);
	}
	for (size_t i = 0; i < w->roles->boundaries.len; i++) {
		const sw_boundary *boundary = &w->roles->boundaries.data[i];
		for (uint32_t k = 0; k < boundary->n_reads && boundary->n_values > 0; k++)
			mark_needed(
				w, boundary->reads[k].value,
				sw_plan_layout(w->plan, w->plan->produced[boundary->values[0]]));
	}
}

/* Draw materialised layouts. A whole value serves all readers; a partial one only those that take
 * it as partial under the same monoid, or whole. */
static void draw_materialised(random_draw *w)
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
		if (!planned || ((wanted & ~(1u << made)) == 0 && chance(&w->draw_state, 60)))
			continue;
		sw_monoid monoid =
			made != SW_MONOID_NONE ? made : random_monoid(&w->draw_state, type);
		bool fits = (wanted & ~(1u << monoid)) == 0;
		w->draw_state.owned =
			w->owners && sw_op_at(w->plan->program, w->plan->program->values.data[v].op)
						     ->computation == w->plan->program->entry;
		w->plan->materialised[v] =
			draw_layout(&w->draw_state, w->plan, v, fits ? monoid : SW_MONOID_NONE);
		w->draw_state.owned = false;
	}
}

static void draw_outputs(random_draw *w)
{
	for (uint32_t i = 0; i < w->plan->n_outputs; i++) {
		sw_id value = sw_entry(w->plan->program)->results.data[i];
		int32_t input = w->roles->output_input[i];
		w->plan->outputs[i] =
			input >= 0 ? w->plan->produced[w->roles->inputs[input]]
				   : draw_layout(&w->draw_state, w->plan, value, SW_MONOID_NONE);
	}
}

static uint32_t max_values_of_op(const sw_program *program)
{
	uint32_t most = 0;
	for (size_t i = 0; i < program->ops.len; i++)
		most = SW_MAX(most,
		              program->ops.data[i].n_operands + program->ops.data[i].n_results);
	return most;
}

/* In half of the plans readers share all conversions; in the others about half of the reads
 * re-gather. */
static void draw_regathered(random_draw *w)
{
	const sw_program *program = w->plan->program;
	bool some = chance(&w->draw_state, 50);
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t k = 0;
		     some && w->roles->planned[op->computation] && k < op->n_operands; k++)
			if (chance(&w->draw_state, 50))
				sw_vec_push(&w->plan->regathered, ((sw_read){op->operands[k], id}));
	}
	sw_reads_sort(&w->plan->regathered);
}

sw_status sw_plan_random(const sw_program *program, const char *program_path,
                         const sw_cluster *cluster, uint64_t seed, bool owners, sw_plan **plan,
                         sw_error *err)
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
	random_draw w = {
		.draw_state = {.rng = {seed, 0}}, .plan = *plan, .roles = &roles, .owners = owners};
	w.draw_state.use_percent = (int)(30 + sw_rng_below(&w.draw_state.rng, 66));
	w.needed = sw_alloc(sizeof(*w.needed) * (canonical->values.len + 1));
	w.layouts = sw_alloc(sizeof(*w.layouts) * (max_values_of_op(canonical) + 1));
	draw_inputs(&w);
	draw_boundaries(&w);
	draw_ops(&w);
	find_needed(&w);
	draw_materialised(&w);
	draw_outputs(&w);
	draw_regathered(&w);
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
