/* Layouts, strategies and moves in words: dimensions by their well-known names, atoms by the names
 * of the mesh's axes. */
#include "explain/internal.h"

void sw_describe_axes(const sw_plan *plan, uint32_t atoms, sw_text *text)
{
	bool any = false;
	for (int32_t i = 0; i < plan->n_axes; i++) {
		uint32_t both = plan->axes[i].atoms & atoms;
		if (!both)
			continue;
		sw_text_addf(text, "%s%s%s", any ? " and " : "",
		             both != plan->axes[i].atoms ? "part of " : "", plan->axes[i].name);
		atoms &= ~both;
		any = true;
	}
	for (int32_t a = 0; a < plan->cluster->atoms.n; a++)
		if (atoms >> a & 1) {
			sw_text_addf(text, "%satom %d", any ? " and " : "", a);
			any = true;
		}
	if (!any)
		sw_text_add(text, "nothing");
}

static int32_t class_of_split(const sw_split *splits, uint32_t from, uint32_t to, int32_t where,
                              int64_t top)
{
	for (uint32_t s = from; s < to; s++)
		if (splits[s].where == where && splits[s].top == top)
			return splits[s].class;
	return -1;
}

/* Return the name of the class of a digit of a value's dimension; NULL if it has none. */
static const char *digit_name(const sw_anatomy *a, sw_id value, int32_t dim, int64_t top)
{
	int32_t class = class_of_split(a->classes.value_splits, a->classes.value_start[value],
	                               a->classes.value_start[value + 1], dim, top);
	return class < 0 ? NULL : a->class_name[class];
}

/* ---- layouts ---------------------------------------------------------------------------- */

static bool same_state(const sw_state *x, const sw_state *y)
{
	return x->kind == y->kind && x->dim == y->dim;
}

/* Write "owned by 3 over ": the owner's coordinate on the axes that have one. */
static void describe_owner(const sw_plan *plan, const sw_layout *layout, sw_text *text)
{
	int64_t coordinate = 0;
	for (int32_t a = 0; a < layout->n; a++)
		if (layout->state[a].kind == SW_STATE_O)
			coordinate =
				coordinate * plan->cluster->atoms.size[a] + layout->state[a].stride;
	sw_text_addf(text, "owned by number %lld of ", (long long)coordinate);
}

void sw_describe_layout(const sw_anatomy *a, const sw_plan *plan, sw_id value,
                        const sw_layout *layout, sw_text *text)
{
	const sw_atoms *atoms = &plan->cluster->atoms;
	bool any = false;
	for (int32_t first = 0; first < layout->n; first++) {
		const sw_state *s = &layout->state[first];
		uint32_t alike = 0;
		bool shown = s->kind == SW_STATE_B;
		for (int32_t b = 0; b < layout->n; b++)
			if (same_state(s, &layout->state[b])) {
				shown = shown || b < first;
				alike |= 1u << b;
			}
		if (shown)
			continue;
		sw_text_add(text, any ? ", " : "");
		if (s->kind == SW_STATE_P)
			sw_text_addf(text, "partial %s over ", sw_monoid_name(layout->monoid));
		else if (s->kind == SW_STATE_O)
			describe_owner(plan, layout, text);
		else {
			const char *name =
				digit_name(a, value, s->dim, s->stride * atoms->size[first]);
			bool numbered = a->input[value] >= 0 || a->gradient[value] >= 0;
			if (name && numbered)
				sw_text_addf(text, "dimension %d (%s) split over ", s->dim, name);
			else if (name)
				sw_text_addf(text, "%s split over ", name);
			else
				sw_text_addf(text, "dimension %d split over ", s->dim);
		}
		sw_describe_axes(plan, alike, text);
		any = true;
	}
	if (!any)
		sw_text_add(text, "whole");
}

/* ---- strategies ------------------------------------------------------------------------- */

static const char *factor_name(const sw_anatomy *a, sw_id op, int32_t factor, int64_t top)
{
	int32_t class = class_of_split(a->classes.op_splits, a->classes.op_start[op],
	                               a->classes.op_start[op + 1], factor, top);
	return class < 0 ? NULL : a->class_name[class];
}

static const sw_choice *choice_on(const sw_plan *plan, sw_id op, int32_t axis, int32_t *atom)
{
	for (int32_t a = 0; a < plan->cluster->atoms.n; a++)
		if (plan->axes[axis].atoms >> a & 1) {
			*atom = a;
			return &plan->strategies[op].atom[a];
		}
	return NULL;
}

static const char *name_on(const sw_anatomy *a, const sw_plan *plan, sw_id op, int32_t axis)
{
	int32_t atom = 0;
	const sw_choice *c = choice_on(plan, op, axis, &atom);
	return factor_name(a, op, c->index, c->stride * plan->cluster->atoms.size[atom]);
}

const char *sw_split_kind_word(sw_split_kind kind)
{
	static const char *const words[SW_SPLIT_KIND_COUNT] = {"nothing",
	                                                       "batch",
	                                                       "rows",
	                                                       "output",
	                                                       "contraction",
	                                                       "experts",
	                                                       "partial sums passed on",
	                                                       "owned"};
	return words[kind];
}

sw_split_kind sw_split_kind_of(const sw_anatomy *a, const sw_plan *plan, sw_id op, uint32_t weight,
                               int32_t axis, int32_t *factor)
{
	const sw_rule *rule = plan->rules[op];
	int32_t atom = 0, data = weight == 0;
	const sw_choice *c = choice_on(plan, op, axis, &atom);
	*factor = -1;
	if (!c || c->kind == SW_CHOICE_NONE)
		return SW_SPLITS_NOTHING;
	if (c->kind == SW_CHOICE_PASS)
		return SW_PASSES_PARTIAL_SUMS;
	if (c->kind == SW_CHOICE_OWN)
		return SW_HAS_OWNER;
	*factor = c->index;
	const char *name = name_on(a, plan, op, axis);
	bool in_data = sw_rule_has_factor(rule, false, data, c->index),
	     in_weight = rule->n_operands > 1 &&
	                 sw_rule_has_factor(rule, false, (int32_t)weight, c->index);
	if (name && name[0] == 'b' &&
	    !(in_data && in_weight && rule->factors[c->index].kind == SW_FACTOR_REDUCED))
		return SW_SPLITS_BATCH;
	if (rule->factors[c->index].kind == SW_FACTOR_REDUCED)
		return SW_SPLITS_CONTRACTION;
	return in_data && in_weight ? SW_SPLITS_GROUP
	       : in_weight          ? SW_SPLITS_OUTPUT
	                            : SW_SPLITS_ROWS;
}

void sw_describe_strategy(const sw_anatomy *a, const sw_plan *plan, sw_id op, uint32_t weight,
                          sw_text *text)
{
	static const char *const KIND_NAMES[SW_SPLIT_KIND_COUNT] = {"",
	                                                            "batch",
	                                                            "rows",
	                                                            "output",
	                                                            "contraction",
	                                                            "group",
	                                                            "partial sums passed on",
	                                                            "done by its owner"};
	bool any = false;
	int32_t last_factor = -2;
	for (int32_t i = 0; i < plan->n_axes; i++) {
		int32_t factor;
		sw_split_kind kind = sw_split_kind_of(a, plan, op, weight, i, &factor);
		if (kind == SW_SPLITS_NOTHING)
			continue;
		const char *name = factor >= 0 ? name_on(a, plan, op, i) : NULL;
		bool joins = any && factor >= 0 && factor == last_factor;
		if (joins)
			sw_text_addf(text, " and %s", plan->axes[i].name);
		else if (kind == SW_SPLITS_BATCH ||
		         ((kind == SW_SPLITS_ROWS || kind == SW_SPLITS_GROUP) && name))
			sw_text_addf(text, "%s%s split over %s", any ? ", " : "", name,
			             plan->axes[i].name);
		else if (kind == SW_PASSES_PARTIAL_SUMS || kind == SW_HAS_OWNER)
			sw_text_addf(text, "%s%s over %s", any ? ", " : "", KIND_NAMES[kind],
			             plan->axes[i].name);
		else
			sw_text_addf(text, "%s%s%s%s%s split over %s", any ? ", " : "",
			             KIND_NAMES[kind], name ? " (" : "", name ? name : "",
			             name ? ")" : "", plan->axes[i].name);
		last_factor = factor;
		any = true;
	}
	if (!any)
		sw_text_add(text, sw_strategy_is_none(&plan->strategies[op])
		                          ? "whole on every device"
		                          : "split");
}

/* ---- moves ------------------------------------------------------------------------------ */

const char *sw_collective_word(const sw_op *op)
{
	if (!sw_op_has_root(op))
		return sw_op_opcode_name(op);
	return op->opcode == SW_OP_ALL_REDUCE ? "reduce to the owner" : "broadcast by the owner";
}

bool sw_describe_move(const sw_explained *what, size_t origin, sw_text *text)
{
	const sw_origins *origins = what->origins;
	sw_id end = origin + 1 < origins->items.len ? origins->items.data[origin + 1].first
	                                            : (sw_id)what->local->ops.len;
	bool any = false;
	for (sw_id id = origins->items.data[origin].first; id < end; id++) {
		sw_collective_kind kind;
		uint32_t atoms;
		int64_t bytes;
		if (!sw_cost_collective_op(what->plan->cluster, what->local, id, &kind, &atoms,
		                           &bytes))
			continue;
		sw_text_addf(text, "%s%s over ", any ? ", then " : "",
		             sw_collective_word(sw_op_at(what->local, id)));
		sw_describe_axes(what->plan, atoms, text);
		any = true;
	}
	return any;
}
