#include "bound/draw.h"

drawer drawer_new(const sw_plan *plan, uint64_t seed, sw_arena *arena)
{
	uint32_t most = 0;
	for (size_t i = 0; i < plan->program->ops.len; i++) {
		const sw_op *op = &plan->program->ops.data[i];
		most = SW_MAX(most, op->n_operands + op->n_results);
	}
	return (drawer){
		.rng = {seed, 0}, .plan = plan, .layouts = SW_NEW_N(arena, sw_layout, most + 1)};
}

bool draw_chance(drawer *d, int percent)
{
	return sw_rng_below(&d->rng, 100) < percent;
}

bool draw_possible(drawer *d, sw_id id, const sw_strategy *strategy)
{
	const sw_op *op = sw_op_at(d->plan->program, id);
	return sw_rule_layouts(d->plan->program, id, d->plan->rules[id], &d->plan->cluster->atoms,
	                       strategy, d->layouts, d->layouts + op->n_operands);
}

sw_strategy draw_grid(drawer *d, sw_id op)
{
	const sw_atoms *atoms = &d->plan->cluster->atoms;
	const sw_rule *rule = d->plan->rules[op];
	sw_strategy strategy = sw_strategy_none(atoms);
	uint32_t masks[SW_MAX_ATOMS] = {0};
	int32_t n = (int32_t)SW_MIN(rule->n_factors, SW_MAX_ATOMS);
	for (int32_t a = 0; n > 0 && a < atoms->n; a++)
		if (draw_chance(d, 92))
			masks[sw_rng_below(&d->rng, n)] |= 1u << a;
	for (int32_t i = 0; i < n; i++) {
		sw_strategy before = strategy;
		int64_t size = rule->factors[i].size;
		if (masks[i] && !sw_strategy_split(atoms, rule, &strategy, masks[i], i, size))
			strategy = before;
	}
	return strategy;
}

/* Draw a divisor: often 1 or n itself, so that blocks and the finest digits occur. */
static int64_t draw_divisor(drawer *d, int64_t n)
{
	int64_t divisor = n;
	if (draw_chance(d, 40))
		return n;
	for (int64_t q = 2; q < 8; q++)
		while (divisor % q == 0 && draw_chance(d, 50))
			divisor /= q;
	return draw_chance(d, 20) ? 1 : divisor;
}

static sw_choice draw_split(drawer *d, const sw_rule *rule, int64_t p)
{
	sw_choice choice = {.kind = SW_CHOICE_NONE};
	int32_t index = (int32_t)sw_rng_below(&d->rng, rule->n_factors);
	int32_t stream = (int32_t)sw_rng_below(&d->rng, rule->n_factors);
	int64_t size = rule->factors[index].size, panels = rule->factors[stream].size;
	if (size == 0 || size % p != 0)
		return choice;
	choice = (sw_choice){.kind = SW_CHOICE_SPLIT,
	                     .index = (int16_t)index,
	                     .stride = draw_divisor(d, size / p)};
	if (rule->factors[stream].streams && stream != index && panels % p == 0) {
		choice.stream = (int16_t)stream;
		choice.stream_stride = draw_divisor(d, panels / p);
	}
	return choice;
}

static sw_choice draw_choice(drawer *d, const sw_rule *rule, int64_t p)
{
	if (rule->n_linearities > 0 && draw_chance(d, 20))
		return (sw_choice){
			.kind = SW_CHOICE_PASS,
			.index = (int16_t)sw_rng_below(&d->rng, rule->n_linearities),
			.monoid = (uint8_t)sw_rng_below(&d->rng, SW_MONOID_OR + 1),
		};
	return rule->n_factors > 0 ? draw_split(d, rule, p) : (sw_choice){.kind = SW_CHOICE_NONE};
}

sw_strategy draw_atoms(drawer *d, sw_id op, sw_strategy strategy)
{
	const sw_atoms *atoms = &d->plan->cluster->atoms;
	for (int32_t a = 0; a < atoms->n; a++) {
		sw_strategy before = strategy;
		if (!draw_chance(d, 60))
			continue;
		strategy.atom[a] = draw_choice(d, d->plan->rules[op], atoms->size[a]);
		if (!draw_possible(d, op, &strategy))
			strategy = before;
	}
	return strategy;
}
