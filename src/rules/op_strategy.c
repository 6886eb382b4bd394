/* Strategies: the choice of each atom in an op, the layouts that follow, and the inverse. */
#include "rules/row.h"

#include <string.h>

sw_strategy sw_strategy_none(const sw_atoms *atoms)
{
	sw_strategy strategy;

	/* The padding is cleared too, because strategies may be hashed as bytes. */
	memset(&strategy, 0, sizeof(strategy));
	strategy.n = atoms->n;
	return strategy;
}

bool sw_strategy_equal(const sw_strategy *a, const sw_strategy *b)
{
	if (a->n != b->n)
		return false;
	for (int32_t i = 0; i < a->n; i++) {
		const sw_choice *x = &a->atom[i], *y = &b->atom[i];
		if (x->kind != y->kind || x->monoid != y->monoid || x->index != y->index ||
		    x->stride != y->stride || x->stream_stride != y->stream_stride ||
		    (x->stream_stride > 0 && x->stream != y->stream))
			return false;
	}
	return true;
}

bool sw_strategy_is_none(const sw_strategy *strategy)
{
	for (int32_t a = 0; a < strategy->n; a++)
		if (strategy->atom[a].kind != SW_CHOICE_NONE)
			return false;
	return true;
}

bool sw_strategy_has_owner(const sw_strategy *strategy)
{
	for (int32_t a = 0; a < strategy->n; a++)
		if (strategy->atom[a].kind == SW_CHOICE_OWN)
			return true;
	return false;
}

bool sw_strategy_split(const sw_atoms *atoms, const sw_rule *rule, sw_strategy *strategy,
                       uint32_t mask, int32_t factor, int64_t top)
{
	sw_strategy changed = *strategy;

	if (top < 1 || rule->factors[factor].size % top != 0)
		return false;
	for (int32_t a = 0; a < atoms->n; a++) {
		if (!(mask >> a & 1))
			continue;
		if (top % atoms->size[a] != 0)
			return false;
		top /= atoms->size[a];
		changed.atom[a] = (sw_choice){
			.kind = SW_CHOICE_SPLIT, .index = (int16_t)factor, .stride = top};
	}
	*strategy = changed;
	return true;
}

int64_t sw_strategy_share(const sw_atoms *atoms, const sw_strategy *strategy)
{
	int64_t share = 1;

	for (int32_t a = 0; a < strategy->n; a++)
		if (strategy->atom[a].kind == SW_CHOICE_SPLIT)
			share *= atoms->size[a];
	return share;
}

bool sw_strategy_exchanges(const sw_rule *rule, const sw_strategy *strategy)
{
	for (int32_t a = 0; a < strategy->n; a++)
		if (strategy->atom[a].kind == SW_CHOICE_SPLIT &&
		    (rule->factors[strategy->atom[a].index].exchange != SW_EXCHANGE_NONE ||
		     strategy->atom[a].stream_stride > 0))
			return true;
	return false;
}

/* ---- the layouts that follow ------------------------------------------------------------ */

/* Return whether the digits [t, t*p) and [u, u*q) of a factor nest: one lies above the other, and
 * the distance between them divides. */
static bool digits_nest(int64_t t, int64_t p, int64_t u, int64_t q)
{
	return t >= u ? t % (u * q) == 0 : u % (t * p) == 0;
}

static bool choice_possible(const sw_rule *rule, const sw_atoms *atoms, const sw_strategy *strategy,
                            int32_t a)
{
	const sw_choice *choice = &strategy->atom[a];
	int64_t p = atoms->size[a];

	if (choice->kind == SW_CHOICE_PASS)
		return choice->index >= 0 && choice->index < rule->n_linearities &&
		       (rule->linearities[choice->index].monoids >> choice->monoid & 1);
	if (choice->kind == SW_CHOICE_NONE)
		return true;
	if (choice->kind == SW_CHOICE_OWN)
		return choice->stride >= 0 && choice->stride < p;
	if (choice->index < 0 || choice->index >= rule->n_factors || choice->stride < 1 ||
	    rule->factors[choice->index].size % (choice->stride * p) != 0)
		return false;
	for (int32_t b = 0; b < a; b++) {
		const sw_choice *other = &strategy->atom[b];
		if (other->kind == SW_CHOICE_SPLIT && other->index == choice->index &&
		    !digits_nest(choice->stride, p, other->stride, atoms->size[b]))
			return false;
	}
	return true;
}

/* Return whether a digit of a factor that has blocks only is one: above it lies the top, or another
 * digit. */
static bool digit_tiles(const sw_rule *rule, const sw_atoms *atoms, const sw_strategy *strategy,
                        int32_t a)
{
	const sw_choice *choice = &strategy->atom[a];
	int64_t above = choice->stride * atoms->size[a];

	if (choice->kind != SW_CHOICE_SPLIT)
		return true;
	const sw_factor *factor = &rule->factors[choice->index];
	if (factor->exchange == SW_EXCHANGE_NONE || factor->exchange == SW_EXCHANGE_FLIP ||
	    above == factor->size)
		return true;
	for (int32_t b = 0; b < strategy->n; b++)
		if (strategy->atom[b].kind == SW_CHOICE_SPLIT &&
		    strategy->atom[b].index == choice->index && strategy->atom[b].stride == above)
			return true;
	return false;
}

static bool find_factor(const sw_rule *rule, bool result, int32_t index, int32_t factor,
                        int64_t stride, sw_state *state)
{
	int64_t outer;
	int32_t dim = sw_rule_dim_with(rule, result, index, factor, &outer);

	if (dim < 0)
		return false;
	*state = (sw_state){.kind = SW_STATE_S, .dim = (int8_t)dim, .stride = stride * outer};
	return true;
}

/* Make the atom P; return false if the value has another monoid already. */
static bool make_partial(sw_layout *layout, int32_t a, sw_monoid monoid)
{
	if (layout->monoid != SW_MONOID_NONE && layout->monoid != monoid)
		return false;
	layout->monoid = monoid;
	layout->state[a] = (sw_state){.kind = SW_STATE_P};
	return true;
}

static bool split_operand(const sw_rule *rule, int32_t operand, const sw_choice *choice, int32_t a,
                          sw_layout *layout)
{
	const sw_factor *factor = &rule->factors[choice->index];

	if (find_factor(rule, false, operand, choice->index, choice->stride, &layout->state[a]) ||
	    (choice->stream_stride > 0 && find_factor(rule, false, operand, choice->stream,
	                                              choice->stream_stride, &layout->state[a])))
		return true;
	if (factor->kind == SW_FACTOR_REDUCED && sw_ints_has(factor->joins, operand))
		return make_partial(layout, a, factor->monoid);
	return true;
}

static bool split_result(const sw_rule *rule, int32_t result, const sw_choice *choice, int32_t a,
                         sw_layout *layout)
{
	const sw_factor *factor = &rule->factors[choice->index];

	if (find_factor(rule, true, result, choice->index, choice->stride, &layout->state[a]))
		return true;
	return factor->kind != SW_FACTOR_REDUCED || make_partial(layout, a, factor->monoid);
}

static bool operand_layout(const sw_rule *rule, const sw_strategy *strategy, int32_t operand,
                           sw_layout *layout)
{
	for (int32_t a = 0; a < strategy->n; a++) {
		const sw_choice *choice = &strategy->atom[a];
		if (choice->kind == SW_CHOICE_OWN)
			layout->state[a] = (sw_state){SW_STATE_O, .stride = choice->stride};
		if (choice->kind == SW_CHOICE_SPLIT &&
		    !split_operand(rule, operand, choice, a, layout))
			return false;
		if (choice->kind == SW_CHOICE_PASS &&
		    rule->linearities[choice->index].operands[operand] &&
		    !make_partial(layout, a, (sw_monoid)choice->monoid))
			return false;
	}
	return true;
}

static bool result_layout(const sw_rule *rule, const sw_strategy *strategy, int32_t result,
                          sw_layout *layout)
{
	for (int32_t a = 0; a < strategy->n; a++) {
		const sw_choice *choice = &strategy->atom[a];
		if (choice->kind == SW_CHOICE_OWN)
			layout->state[a] = (sw_state){SW_STATE_O, .stride = choice->stride};
		if (choice->kind == SW_CHOICE_SPLIT &&
		    !split_result(rule, result, choice, a, layout))
			return false;
		if (choice->kind == SW_CHOICE_PASS &&
		    !make_partial(
			    layout, a,
			    (sw_monoid)rule->linearities[choice->index].becomes[choice->monoid]))
			return false;
	}
	return true;
}

/* Return whether devices hold a digit of the factor in an operand, by choice or to be streamed, and
 * its stride. */
static bool operand_digit(const sw_rule *rule, const sw_choice *choice, int32_t operand,
                          int32_t factor, int64_t *stride)
{
	if (choice->kind != SW_CHOICE_SPLIT || !sw_rule_has_factor(rule, false, operand, factor))
		return false;
	*stride = choice->index == factor ? choice->stride : choice->stream_stride;
	return choice->index == factor ||
	       (choice->stream_stride > 0 && choice->stream == factor &&
	        !sw_rule_has_factor(rule, false, operand, choice->index));
}

bool sw_strategy_panels(const sw_rule *rule, const sw_atoms *atoms, const sw_strategy *strategy,
                        int32_t factor, sw_panels *panels)
{
	int64_t lowest = rule->factors[factor].size;

	*panels = (sw_panels){.factor = factor, .count = 1};
	for (int32_t o = 0; o < rule->n_operands; o++) {
		int64_t devices = 1, stride, other;
		for (int32_t a = 0; a < strategy->n; a++) {
			if (!operand_digit(rule, &strategy->atom[a], o, factor, &stride))
				continue;
			if (rule->factors[factor].size % (stride * atoms->size[a]) != 0)
				return false;
			for (int32_t b = 0; b < a; b++)
				if (operand_digit(rule, &strategy->atom[b], o, factor, &other) &&
				    !digits_nest(stride, atoms->size[a], other, atoms->size[b]))
					return false;
			lowest = sw_gcd(lowest, stride);
			devices *= strategy->atom[a].index == factor ? 1 : atoms->size[a];
		}
		panels->count = SW_MAX(panels->count, devices);
	}
	panels->stride = lowest / panels->count;
	return lowest % panels->count == 0;
}

/* Return whether the streaming is possible: everything streamed is streamed over one factor, by an
 * operand that lacks the chosen factor. */
static bool streams_possible(const sw_rule *rule, const sw_atoms *atoms,
                             const sw_strategy *strategy)
{
	sw_panels panels;
	int32_t factor = -1;

	for (int32_t a = 0; a < strategy->n; a++) {
		const sw_choice *choice = &strategy->atom[a];
		bool any = false;
		if (choice->kind != SW_CHOICE_SPLIT || choice->stream_stride == 0)
			continue;
		if (choice->stream_stride < 0 || choice->stream < 0 ||
		    choice->stream >= rule->n_factors || !rule->factors[choice->stream].streams ||
		    choice->stream == choice->index || (factor >= 0 && factor != choice->stream))
			return false;
		factor = choice->stream;
		for (int32_t o = 0; o < rule->n_operands; o++)
			any |= sw_rule_has_factor(rule, false, o, factor) &&
			       !sw_rule_has_factor(rule, false, o, choice->index);
		if (!any)
			return false;
	}
	return factor < 0 || sw_strategy_panels(rule, atoms, strategy, factor, &panels);
}

bool sw_rule_layouts(const sw_program *program, sw_id op, const sw_rule *rule,
                     const sw_atoms *atoms, const sw_strategy *strategy, sw_layout *operands,
                     sw_layout *results)
{
	(void)program;
	(void)op;
	for (int32_t a = 0; a < strategy->n; a++)
		if (!choice_possible(rule, atoms, strategy, a) ||
		    !digit_tiles(rule, atoms, strategy, a))
			return false;
	if (!streams_possible(rule, atoms, strategy))
		return false;
	for (int32_t i = 0; i < rule->n_operands; i++) {
		operands[i] = sw_layout_replicated(atoms);
		if (!operand_layout(rule, strategy, i, &operands[i]))
			return false;
	}
	for (int32_t i = 0; i < rule->n_results; i++) {
		results[i] = sw_layout_replicated(atoms);
		if (!result_layout(rule, strategy, i, &results[i]))
			return false;
	}
	return true;
}

/* ---- back: the strategy that gives a layout --------------------------------------------- */

static bool match_split(const sw_rule *rule, const sw_dim_map *map, sw_state state, int64_t p,
                        sw_choice *choice)
{
	for (int32_t i = 0; i < map->n; i++) {
		sw_ref ref = map->refs[i];
		int64_t stride = state.stride / ref.stride;
		if (state.stride % ref.stride != 0 ||
		    rule->factors[ref.factor].size % (stride * p) != 0)
			continue;
		*choice = (sw_choice){
			.kind = SW_CHOICE_SPLIT, .index = (int16_t)ref.factor, .stride = stride};
		return true;
	}
	return false;
}

/* Choose the first linearity that makes the results P(monoid); operand >= 0: the first that has the
 * operand and takes P(monoid) of it. */
static bool match_linearity(const sw_rule *rule, int32_t operand, sw_monoid monoid,
                            sw_choice *choice)
{
	for (int32_t i = 0; i < rule->n_linearities; i++) {
		const sw_linearity *linearity = &rule->linearities[i];
		for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++) {
			if (!(linearity->monoids >> m & 1))
				continue;
			if (operand < 0 ? linearity->becomes[m] != monoid
			                : (sw_monoid)m != monoid || !linearity->operands[operand])
				continue;
			*choice = (sw_choice){
				.kind = SW_CHOICE_PASS, .monoid = (uint8_t)m, .index = (int16_t)i};
			return true;
		}
	}
	return false;
}

/* Return the only factor reduced by the monoid, -1 if there is none or more than one. */
static int32_t only_reduced(const sw_rule *rule, sw_monoid monoid)
{
	int32_t found = -1;

	for (int32_t i = 0; i < rule->n_factors; i++) {
		if (rule->factors[i].kind != SW_FACTOR_REDUCED || rule->factors[i].monoid != monoid)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

void sw_rule_match(const sw_rule *rule, const sw_atoms *atoms, bool result, int32_t index,
                   const sw_layout *layout, uint32_t *mask, sw_strategy *strategy)
{
	const sw_dim_map *maps = result ? rule->results[index] : rule->operands[index];
	int32_t reduced = result ? only_reduced(rule, layout->monoid) : -1;
	/* the stride below which digits of the reduced factor are still free */
	int64_t free_below = reduced >= 0 ? rule->factors[reduced].size : 1;

	*strategy = sw_strategy_none(atoms);
	for (int32_t a = 0; a < atoms->n; a++) {
		sw_state state = layout->state[a];
		int64_t p = atoms->size[a];
		bool possible = true;
		if (!(*mask >> a & 1))
			continue;
		if (state.kind == SW_STATE_S) {
			possible =
				match_split(rule, &maps[state.dim], state, p, &strategy->atom[a]);
		} else if (state.kind == SW_STATE_O) {
			strategy->atom[a] =
				(sw_choice){.kind = SW_CHOICE_OWN, .stride = state.stride};
		} else if (state.kind == SW_STATE_P && reduced >= 0 && free_below % p == 0) {
			free_below /= p;
			strategy->atom[a] = (sw_choice){.kind = SW_CHOICE_SPLIT,
			                                .index = (int16_t)reduced,
			                                .stride = free_below};
		} else if (state.kind == SW_STATE_P) {
			possible = match_linearity(rule, result ? -1 : index, layout->monoid,
			                           &strategy->atom[a]);
		}
		if (!possible)
			*mask &= ~(1u << a);
	}
}
