/*
 * All strategies of a sample: which are accepted, what layouts they give, and what is executed.
 */
#include "rules/brute_trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>

/* ---- one strategy ----------------------------------------------------------------------- */

/* Check that from the layout of any value a strategy is found that gives this value the same
 * layout. */
static void check_match(const brute_trial *t, bool result, int32_t index, const sw_layout *layout)
{
	sw_layout operands[BRUTE_MAX_VALUES], results[BRUTE_MAX_VALUES];
	uint32_t all = (1u << t->atoms->n) - 1, mask = all;
	sw_strategy strategy;

	sw_rule_match(t->rule, t->atoms, result, index, layout, &mask, &strategy);
	if (!sw_rule_layouts(t->sample->program, t->sample->op, t->rule, t->atoms, &strategy,
	                     operands, results))
		brute_fail(t, "a matched strategy is impossible");
	const sw_layout *again = result ? &results[index] : &operands[index];
	for (int32_t a = 0; a < t->atoms->n; a++) {
		const sw_state *x = &layout->state[a], *y = &again->state[a];
		if (!(mask >> a & 1)) {
			if (strategy.atom[a].kind != SW_CHOICE_NONE || x->kind != SW_STATE_P)
				brute_fail(t, "a state that the rule gives is not matched");
			continue;
		}
		if (x->kind != y->kind || x->dim != y->dim || x->stride != y->stride ||
		    (x->kind == SW_STATE_P && layout->monoid != again->monoid))
			brute_fail(t, "matching gives another layout");
	}
}

static void check_layouts(const brute_trial *t)
{
	const sw_op *op = sw_op_at(t->sample->program, t->sample->op);

	for (uint32_t i = 0; i < op->n_operands; i++) {
		if (!sw_layout_valid(t->atoms, sw_value_shape(t->sample->program, op->operands[i]),
		                     &t->operands[i]))
			brute_fail(t, "an operand's layout is not valid");
		check_match(t, false, (int32_t)i, &t->operands[i]);
	}
	for (uint32_t i = 0; i < op->n_results; i++) {
		if (!sw_layout_valid(t->atoms,
		                     sw_value_shape(t->sample->program, op->first_result + i),
		                     &t->results[i]))
			brute_fail(t, "a result's layout is not valid");
		check_match(t, true, (int32_t)i, &t->results[i]);
	}
}

/* Return whether two atoms on one factor have digits that overlap or do not nest. */
static bool digits_clash(const brute_trial *t, const sw_strategy *strategy)
{
	for (int32_t a = 0; a < strategy->n; a++)
		for (int32_t b = 0; b < strategy->n; b++) {
			const sw_choice *x = &strategy->atom[a], *y = &strategy->atom[b];
			if (a == b || x->kind != SW_CHOICE_SPLIT || y->kind != SW_CHOICE_SPLIT ||
			    x->index != y->index)
				continue;
			if (x->stride == y->stride ||
			    (x->stride < y->stride &&
			     y->stride % (x->stride * t->atoms->size[a]) != 0))
				return true;
		}
	return false;
}

/* Return whether a digit lies inside a factor that has blocks only: nothing undivided may lie above
 * its digits. */
static bool inside_blocks(const brute_trial *t, const sw_strategy *strategy)
{
	for (int32_t f = 0; f < t->rule->n_factors; f++) {
		sw_exchange exchange = t->rule->factors[f].exchange;
		int64_t divided = 1, lowest = t->rule->factors[f].size;
		for (int32_t a = 0; a < strategy->n; a++)
			if (strategy->atom[a].kind == SW_CHOICE_SPLIT &&
			    strategy->atom[a].index == f) {
				divided *= t->atoms->size[a];
				lowest = SW_MIN(lowest, strategy->atom[a].stride);
			}
		if (exchange != SW_EXCHANGE_NONE && exchange != SW_EXCHANGE_FLIP &&
		    divided * lowest != t->rule->factors[f].size)
			return true;
	}
	return false;
}

/* Return the mask of monoids that a choice brings to an operand (-1: the results). */
static uint32_t monoids_brought(const sw_rule *rule, const sw_choice *c, int32_t operand)
{
	if (c->kind == SW_CHOICE_PASS && operand < 0)
		return 1u << rule->linearities[c->index].becomes[c->monoid];
	if (c->kind == SW_CHOICE_PASS)
		return rule->linearities[c->index].operands[operand] ? 1u << c->monoid : 0;
	if (c->kind != SW_CHOICE_SPLIT || rule->factors[c->index].kind != SW_FACTOR_REDUCED)
		return 0;
	const sw_factor *factor = &rule->factors[c->index];
	return operand < 0 || sw_ints_has(factor->joins, operand) ? 1u << factor->monoid : 0;
}

/* Return whether some value would have two monoids, for which a layout has no place. */
static bool monoids_clash(const brute_trial *t, const sw_strategy *strategy)
{
	for (int32_t i = -1; i < t->rule->n_operands; i++) {
		uint32_t monoids = 0;
		for (int32_t a = 0; a < strategy->n; a++)
			monoids |= monoids_brought(t->rule, &strategy->atom[a], i);
		if (monoids & (monoids - 1))
			return true;
	}
	return false;
}

static void check_strategy(brute_trial *t, const sw_strategy *strategy)
{
	t->strategy = strategy;
	t->counts->strategies++;
	bool streamed = false;
	for (int32_t a = 0; a < strategy->n; a++)
		streamed |= strategy->atom[a].stream_stride > 0;
	bool possible = !digits_clash(t, strategy) && !monoids_clash(t, strategy) &&
	                !inside_blocks(t, strategy);
	bool accepted = sw_rule_layouts(t->sample->program, t->sample->op, t->rule, t->atoms,
	                                strategy, t->operands, t->results);
	/* The panels of a streamed strategy have additional requirements. */
	if (possible != accepted && !(streamed && possible))
		brute_fail(t, possible ? "a possible strategy is refused"
		                       : "an impossible strategy is accepted");
	if (!accepted)
		return;
	t->counts->accepted++;
	t->counts->streamed += streamed;
	check_layouts(t);
	if (t->counts->unsupported)
		return;
	bool partial = false;
	for (uint32_t i = 0; i < t->sample->n; i++)
		partial |= sw_layout_partial_atoms(&t->operands[i]) != 0;
	brute_execute(t, true);
	if (partial)
		brute_execute(t, false);
}

/* ---- all strategies --------------------------------------------------------------------- */

typedef struct options {
	int32_t n;
	sw_choice choice[256];
} options;

/* Add every digit again, with every digit of a factor that streams. */
static void add_streamed(options *o, const sw_rule *rule, int64_t p)
{
	int32_t n = o->n;

	for (int32_t g = 0; g < rule->n_factors; g++)
		for (int64_t u = 1; rule->factors[g].streams && u * p <= rule->factors[g].size; u++)
			for (int32_t k = 1; k < n && o->n < 256; k++) {
				if (rule->factors[g].size % (u * p) != 0 || o->choice[k].index == g)
					continue;
				o->choice[o->n] = o->choice[k];
				o->choice[o->n].stream = (int16_t)g;
				o->choice[o->n++].stream_stride = u;
			}
}

/* List NONE first, then each digit of each factor, then these streamed, then each linearity with
 * each of its monoids. */
static options options_of(const sw_rule *rule, int64_t p)
{
	options o = {.n = 1};

	for (int32_t f = 0; f < rule->n_factors; f++)
		for (int64_t t = 1; t * p <= rule->factors[f].size; t++)
			if (rule->factors[f].size % (t * p) == 0 && o.n < 256)
				o.choice[o.n++] = (sw_choice){
					.kind = SW_CHOICE_SPLIT, .index = (int16_t)f, .stride = t};
	add_streamed(&o, rule, p);
	for (int32_t k = 0; k < rule->n_linearities; k++)
		for (int32_t m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
			if ((rule->linearities[k].monoids >> m & 1) && o.n < 256)
				o.choice[o.n++] = (sw_choice){.kind = SW_CHOICE_PASS,
				                              .monoid = (uint8_t)m,
				                              .index = (int16_t)k};
	return o;
}

static void check_all(brute_trial *t, const options *o)
{
	int32_t at[SW_MAX_ATOMS] = {0}, a;

	do {
		sw_strategy strategy = sw_strategy_none(t->atoms);
		for (a = 0; a < t->atoms->n; a++)
			strategy.atom[a] = o[a].choice[at[a]];
		check_strategy(t, &strategy);
		for (a = 0; a < t->atoms->n && ++at[a] == o[a].n; a++)
			at[a] = 0;
	} while (a < t->atoms->n);
}

/* With a negative budget only random strategies are checked. */
static void check_some(brute_trial *t, const options *o, int64_t budget)
{
	for (int32_t a = 0; a < t->atoms->n && budget >= 0; a++)
		for (int32_t k = 1; k < o[a].n; k++) {
			sw_strategy strategy = sw_strategy_none(t->atoms);
			strategy.atom[a] = o[a].choice[k];
			check_strategy(t, &strategy);
		}
	for (int64_t i = 0; i < llabs(budget); i++) {
		sw_strategy strategy = sw_strategy_none(t->atoms);
		for (int32_t a = 0; a < t->atoms->n; a++)
			strategy.atom[a] = o[a].choice[sw_rng_below(t->rng, o[a].n)];
		check_strategy(t, &strategy);
	}
}

void brute_check(brute_sample *sample, const sw_atoms *atoms, int64_t budget, uint64_t seed,
                 brute_counts *counts)
{
	sw_rng rng = {.seed = seed};
	sw_arena arena;
	options o[SW_MAX_ATOMS];
	int64_t all = 1;

	sw_arena_init(&arena);
	brute_trial t = {.sample = sample,
	                 .atoms = atoms,
	                 .rng = &rng,
	                 .counts = counts,
	                 .rule = sw_rule_make(sample->program, sample->op, &arena)};
	uint32_t n_results = sw_op_at(sample->program, sample->op)->n_results;
	brute_random_operands(&t);
	counts->unsupported = !brute_expect(sample, t.whole, t.expected, n_results);
	for (int32_t a = 0; a < atoms->n; a++) {
		o[a] = options_of(t.rule, atoms->size[a]);
		all *= o[a].n;
	}
	if (all <= budget)
		check_all(&t, o);
	else
		check_some(&t, o, budget);
	for (uint32_t i = 0; i < sample->n; i++)
		sw_tensor_drop(&t.whole[i]);
	for (uint32_t i = 0; i < n_results && !counts->unsupported; i++)
		sw_tensor_drop(&t.expected[i]);
	sw_arena_clear(&arena);
}
