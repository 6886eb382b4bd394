/*
 * Strategy tables: the candidates of a decision under a mesh. Every axis has OPTIONS at the
 * decision: a split of one of its classes, a linearity that passes partial sums on, or nothing. The
 * roles of the classes and the use of the axis determine them. A CANDIDATE is one option per axis,
 * together accepted by the rule. Decisions of equal op, shapes and options share one table.
 */
#include "model/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
	int32_t max, n[SW_MAX_AXES];
	sw_option list[SW_MAX_AXES][SW_MAX_OPTIONS];
	int64_t left_out; /* options beyond max */
} options;

static int32_t max_options_of(const sw_memo *memo)
{
	return (int32_t)fmin(memo->analysis->limits->max_options, SW_MAX_OPTIONS);
}

static void add_option(options *o, int32_t axis, sw_option option)
{
	if (o->n[axis] < o->max)
		o->list[axis][o->n[axis]++] = option;
	else
		o->left_out++;
}

static void add_none(options *o, int32_t axis)
{
	add_option(o, axis, (sw_option){.kind = SW_CHOICE_NONE});
}

static void add_partials(options *o, int32_t axis, int32_t linearity, uint32_t monoids)
{
	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
		if (monoids >> m & 1)
			add_option(o, axis,
			           (sw_option){.kind = SW_CHOICE_PASS,
			                       .monoid = (uint8_t)m,
			                       .index = (int16_t)linearity});
}

static const sw_class_set DATA = {.any = SW_CLASS_DATA};
static const sw_class_set STATE = {.any = SW_CLASS_STATE, .none = SW_CLASS_DATA};

static bool is_in(const sw_classes *classes, int32_t class, sw_class_set set)
{
	return (classes->roles[class] & set.any) && !(classes->roles[class] & set.none);
}

/* Add the splits that are in the set and whose digit divides by the axis; return how many. */
static int32_t add_splits(const sw_analysis *analysis, const sw_mesh *mesh, options *o,
                          int32_t axis, sw_split_list splits, sw_class_set set)
{
	int32_t before = o->n[axis];
	for (uint32_t i = 0; i < splits.n; i++) {
		const sw_split *s = &splits.first[i];
		if (is_in(&analysis->classes, s->class, set) && s->top % mesh->axes[axis].size == 0)
			add_option(o, axis,
			           (sw_option){.kind = SW_CHOICE_SPLIT,
			                       .index = (int16_t)s->where,
			                       .top = s->top});
	}
	return o->n[axis] - before;
}

/* Add splits of state dimensions. A weight that its dots split over an inner axis may be split
 * further over an outer one at rest: by the digit below, so that an all-gather over the outer axis
 * gives the layout that the dot reads. */
static int32_t add_state_splits(const sw_analysis *analysis, const sw_mesh *mesh, options *o,
                                int32_t axis, sw_split_list splits)
{
	int32_t n = add_splits(analysis, mesh, o, axis, splits, STATE), first = o->n[axis] - n;
	for (int32_t inner = axis + 1; inner < mesh->n_axes; inner++)
		for (int32_t i = first; i < first + n && mesh->use[axis]->below; i++) {
			sw_option below = o->list[axis][i];
			if (below.top % (mesh->axes[inner].size * mesh->axes[axis].size) != 0)
				continue;
			below.top /= mesh->axes[inner].size;
			add_option(o, axis, below);
		}
	return n;
}

static bool has_class(const sw_analysis *analysis, sw_split_list splits, sw_class_set set)
{
	for (uint32_t i = 0; i < splits.n; i++)
		if (is_in(&analysis->classes, splits.first[i].class, set))
			return true;
	return false;
}

/* Partial sums may be passed on where some operand of a linearity may be partial. */
static void add_linearities(const sw_analysis *analysis, options *o, int32_t axis, sw_id op_id)
{
	const sw_op *op = sw_op_at(analysis->program, op_id);
	const sw_rule *rule = analysis->rules[op_id];
	for (int32_t s = 0; s < rule->n_linearities; s++) {
		uint32_t arriving = 0;
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (rule->linearities[s].operands[k])
				arriving |= analysis->classes.partial[op->operands[k]];
		add_partials(o, axis, s, arriving & rule->linearities[s].monoids);
	}
}

/* Add the splits of a set whose factor satisfies `keep`; return how many. */
typedef bool keep_factor(const sw_rule *rule, int32_t factor, int32_t operand);
static int32_t add_dot_splits(const sw_analysis *analysis, const sw_mesh *mesh, options *o,
                              int32_t axis, sw_id op, sw_class_set set, keep_factor *keep,
                              int32_t operand)
{
	int32_t before = o->n[axis], n = before;
	add_splits(analysis, mesh, o, axis, sw_op_splits(analysis, op), set);
	for (int32_t i = before; i < o->n[axis]; i++)
		if (keep(analysis->rules[op], o->list[axis][i].index, operand))
			o->list[axis][n++] = o->list[axis][i];
	o->n[axis] = n;
	return n - before;
}

static bool in_operand(const sw_rule *rule, int32_t factor, int32_t operand)
{
	int64_t stride;
	return sw_rule_dim_with(rule, false, operand, factor, &stride) >= 0;
}

static bool is_contracted(const sw_rule *rule, int32_t factor, int32_t operand)
{
	(void)operand;
	return rule->factors[factor].kind == SW_FACTOR_REDUCED;
}

/* Add the splits that the axis demands of dots; return false if there are none that divide. */
static bool add_dot_demands(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                            sw_id op, options *o)
{
	static const sw_class_set any = {.any = SW_CLASS_HEAVY};
	const sw_axis_use *use = mesh->use[axis];
	int32_t weight = sw_roles_weight(&analysis->roles, op);
	if (use->contracts && sw_is_dot(sw_op_at(analysis->program, op)))
		return add_dot_splits(analysis, mesh, o, axis, op, any, is_contracted, 0) > 0;
	return weight >= 0 &&
	       add_dot_splits(analysis, mesh, o, axis, op, use->weights, in_operand, weight) > 0;
}

/* Does the axis split updates or gradients, so that values without a batch dimension may be split
 * too? */
static bool shares_state(const sw_axis_use *use)
{
	return use->parameters || use->moments || use->gradients;
}

/* Is the value a gradient or computed from gradients? Those have no batch dimension and are no
 * parameters seen through a convert. */
static bool is_update(const sw_analysis *analysis, sw_id value, sw_split_list splits)
{
	return !has_class(analysis, splits, DATA) && !analysis->roles.from_parameter[value];
}

static void op_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis, sw_id op,
                       options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	sw_split_list splits = sw_op_splits(analysis, op);
	if (add_dot_demands(analysis, mesh, axis, op, o))
		return;
	if (add_splits(analysis, mesh, o, axis, splits, use->must) > 0) {
		add_splits(analysis, mesh, o, axis, splits, use->may);
		return;
	}
	if (use->gradients &&
	    is_update(analysis, sw_op_at(analysis->program, op)->first_result, splits) &&
	    add_state_splits(analysis, mesh, o, axis, splits) > 0)
		return;
	if (has_class(analysis, splits, use->cut) &&
	    add_splits(analysis, mesh, o, axis, splits, use->may) > 0)
		return;
	add_none(o, axis);
	add_linearities(analysis, o, axis, op);
	add_splits(analysis, mesh, o, axis, splits, use->may);
	if (shares_state(use) && !has_class(analysis, splits, DATA))
		add_state_splits(analysis, mesh, o, axis, splits);
}

static void state_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                          sw_id value, sw_role role, options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	sw_split_list splits = sw_value_splits(analysis, value);
	bool split = (role == SW_ROLE_PARAMETER && use->parameters) ||
	             (role == SW_ROLE_MOMENT && use->moments);
	if (split && add_state_splits(analysis, mesh, o, axis, splits) > 0)
		return;
	add_none(o, axis);
	add_splits(analysis, mesh, o, axis, splits, use->may);
}

/* Data inputs are replicated over axes that are for weights: a slice costs almost nothing. */
static void data_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                         sw_id value, options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	sw_split_list splits = sw_value_splits(analysis, value);
	if (add_splits(analysis, mesh, o, axis, splits, use->must) > 0)
		return;
	add_none(o, axis);
	if (!use->weights.any)
		add_splits(analysis, mesh, o, axis, splits, use->may);
	if (shares_state(use))
		add_state_splits(analysis, mesh, o, axis, splits);
}

static void boundary_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                             const sw_boundary *boundary, options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	if (boundary->is_predicate) {
		add_none(o, axis);
		return;
	}
	sw_id value = boundary->values[0];
	sw_split_list splits = sw_value_splits(analysis, value);
	if (add_splits(analysis, mesh, o, axis, splits, use->must) > 0)
		return;
	if (use->gradients && is_update(analysis, value, splits) &&
	    add_state_splits(analysis, mesh, o, axis, splits) > 0)
		return;
	add_none(o, axis);
	add_partials(o, axis, 0, analysis->classes.partial[value]);
	add_splits(analysis, mesh, o, axis, splits, use->may);
	if (shares_state(use))
		add_state_splits(analysis, mesh, o, axis, splits);
}

static void input_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                          uint32_t input, options *o)
{
	sw_role role = analysis->roles.input_role[input];
	if (role == SW_ROLE_DATA)
		data_options(analysis, mesh, axis, analysis->roles.inputs[input], o);
	else
		state_options(analysis, mesh, axis, analysis->roles.inputs[input], role, o);
}

static void output_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                           uint32_t output, options *o)
{
	int32_t input = analysis->roles.output_input[output];
	if (input >= 0) {
		input_options(analysis, mesh, axis, (uint32_t)input, o);
		return;
	}
	add_none(o, axis);
	add_splits(analysis, mesh, o, axis,
	           sw_value_splits(analysis, sw_entry(analysis->program)->results.data[output]),
	           mesh->use[axis]->may);
}

static void axis_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                         sw_decision_kind kind, uint32_t index, options *o)
{
	switch (kind) {
	case SW_DECISION_OP:
		op_options(analysis, mesh, axis, index, o);
		return;
	case SW_DECISION_INPUT:
		input_options(analysis, mesh, axis, index, o);
		return;
	case SW_DECISION_BOUNDARY:
		boundary_options(analysis, mesh, axis, &analysis->roles.boundaries.data[index], o);
		return;
	case SW_DECISION_OUTPUT:
		output_options(analysis, mesh, axis, index, o);
		return;
	}
}

static void decision_options(const sw_analysis *analysis, const sw_mesh *mesh,
                             sw_decision_kind kind, uint32_t index, options *o)
{
	const sw_option *decided = sw_pinned(analysis, kind, index);
	for (int32_t axis = 0; axis < mesh->n_axes; axis++)
		if (decided)
			add_option(o, axis, decided[__builtin_ctz(mesh->axes[axis].atoms)]);
		else
			axis_options(analysis, mesh, axis, kind, index, o);
	/* The axes that the mesh lacks have one device. */
	for (int32_t axis = mesh->n_axes; axis < SW_MAX_AXES; axis++)
		add_none(o, axis);
}

/* ---- candidates ------------------------------------------------------------------------- */

/* Call split() for the axes of a candidate as masks of atoms: axes that take the same split share
 * adjacent digits. Return false as soon as one call does. */
typedef bool split_fn(void *target, uint32_t mask, int32_t index, int64_t top);
static bool split_axes(const sw_mesh *mesh, const sw_candidate *c, split_fn *split, void *target)
{
	uint32_t done = 0;
	for (int32_t i = 0; i < mesh->n_axes; i++) {
		const sw_option *option = &c->axis[i];
		uint32_t mask = 0;
		if (option->kind != SW_CHOICE_SPLIT || (done & mesh->axes[i].atoms))
			continue;
		for (int32_t j = i; j < mesh->n_axes; j++)
			if (c->axis[j].kind == SW_CHOICE_SPLIT &&
			    c->axis[j].index == option->index && c->axis[j].top == option->top)
				mask |= mesh->axes[j].atoms;
		if (!split(target, mask, option->index, option->top))
			return false;
		done |= mask;
	}
	return true;
}

typedef struct strategy_target {
	const sw_atoms *atoms;
	const sw_rule *rule;
	sw_strategy *strategy;
} strategy_target;
static bool split_strategy(void *target, uint32_t mask, int32_t factor, int64_t top)
{
	strategy_target *p = target;
	return sw_strategy_split(p->atoms, p->rule, p->strategy, mask, factor, top);
}

typedef struct layout_target {
	const sw_atoms *atoms;
	sw_layout *layout;
} layout_target;
static bool split_layout(void *target, uint32_t mask, int32_t dim, int64_t top)
{
	layout_target *p = target;
	return sw_layout_split(p->atoms, p->layout, mask, dim, top);
}

bool sw_candidate_strategy(const sw_atoms *atoms, const sw_mesh *mesh, const sw_rule *rule,
                           const sw_candidate *candidate, sw_strategy *strategy)
{
	*strategy = sw_strategy_none(atoms);
	for (int32_t axis = 0; axis < mesh->n_axes; axis++)
		for (int32_t a = 0; a < atoms->n && candidate->axis[axis].kind == SW_CHOICE_PASS;
		     a++)
			if (mesh->axes[axis].atoms >> a & 1)
				strategy->atom[a] =
					(sw_choice){.kind = SW_CHOICE_PASS,
				                    .monoid = candidate->axis[axis].monoid,
				                    .index = candidate->axis[axis].index};
	strategy_target target = {atoms, rule, strategy};
	return split_axes(mesh, candidate, split_strategy, &target);
}

typedef struct table_builder {
	SW_VEC(sw_candidate) candidates;
	SW_VEC(uint32_t) in, out;
	SW_VEC(double) seconds;
	SW_VEC(int64_t) temporary_bytes;
	sw_layout *layouts;
} table_builder;

/* Return the local bytes of operands and results. */
static int64_t held_bytes(const sw_analysis *analysis, const sw_op *op, const sw_layout *layouts)
{
	const sw_atoms *atoms = &analysis->cluster->atoms;
	int64_t bytes = 0;
	for (uint32_t k = 0; k < op->n_operands + op->n_results; k++) {
		sw_id value = k < op->n_operands ? op->operands[k]
		                                 : op->first_result + (k - op->n_operands);
		bytes += sw_layout_local_bytes(atoms, sw_value_shape(analysis->program, value),
		                               &layouts[k]);
	}
	return bytes;
}

static sw_priced price_op(sw_memo *memo, sw_id op_id, const sw_strategy *strategy,
                          sw_layout *layouts)
{
	const sw_op *op = sw_op_at(memo->analysis->program, op_id);
	const uint32_t n = op->n_operands + op->n_results;
	sw_program_cost cost;
	if (!sw_rule_layouts(memo->analysis->program, op_id, memo->analysis->rules[op_id],
	                     &memo->analysis->cluster->atoms, strategy, layouts,
	                     layouts + op->n_operands) ||
	    !sw_price_local(memo->analysis, op_id, strategy, layouts, &cost))
		return (sw_priced){.possible = false};
	uint32_t *numbers = SW_NEW_N(&memo->arena, uint32_t, n);
	for (uint32_t k = 0; k < n; k++)
		numbers[k] = sw_layouts_id(&memo->layouts, &layouts[k]);
	return (sw_priced){.possible = true,
	                   .seconds = cost.step_time_s,
	                   .temporary_bytes =
	                           SW_MAX(cost.peak_bytes - held_bytes(memo->analysis, op, layouts),
	                                  INT64_C(0)),
	                   .layouts = numbers};
}

/* Cost each strategy of an op class once. */
static sw_priced price_cached(sw_memo *memo, sw_id op_id, const sw_strategy *strategy,
                              sw_layout *layouts)
{
	int64_t key[1 + 2 * SW_MAX_ATOMS];
	size_t n = 0;
	key[n++] = sw_op_equivalence(memo, op_id);
	for (int32_t a = 0; a < strategy->n; a++) { /* strategies do not stream yet */
		const sw_choice *c = &strategy->atom[a];
		key[n++] = (int64_t)c->kind << 32 | (int64_t)c->monoid << 16 | (uint16_t)c->index;
		key[n++] = c->stride;
	}
	uint32_t fresh = (uint32_t)memo->priced.len;
	uint32_t number = sw_map_intern(&memo->priced_index, key, n * sizeof(*key), fresh);
	if (number == fresh)
		sw_vec_push(&memo->priced, price_op(memo, op_id, strategy, layouts));
	return memo->priced.data[number];
}

static bool try_op(sw_memo *memo, const sw_mesh *mesh, sw_id op_id, const sw_candidate *c,
                   table_builder *g)
{
	const sw_op *op = sw_op_at(memo->analysis->program, op_id);
	sw_strategy strategy;
	if (!sw_candidate_strategy(&memo->analysis->cluster->atoms, mesh,
	                           memo->analysis->rules[op_id], c, &strategy))
		return false;
	sw_priced priced = price_cached(memo, op_id, &strategy, g->layouts);
	if (!priced.possible)
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_vec_push(&g->in, priced.layouts[k]);
	for (uint32_t k = 0; k < op->n_results; k++)
		sw_vec_push(&g->out, priced.layouts[op->n_operands + k]);
	sw_vec_push(&g->seconds, priced.seconds);
	sw_vec_push(&g->temporary_bytes, priced.temporary_bytes);
	return true;
}

/* Return false where two axes are partial under different monoids. */
static bool set_partial(const sw_mesh *mesh, const sw_candidate *c, sw_layout *layout)
{
	for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
		if (c->axis[axis].kind != SW_CHOICE_PASS)
			continue;
		if (layout->monoid != SW_MONOID_NONE && layout->monoid != c->axis[axis].monoid)
			return false;
		layout->monoid = c->axis[axis].monoid;
		for (int32_t a = 0; a < layout->n; a++)
			if (mesh->axes[axis].atoms >> a & 1)
				layout->state[a].kind = SW_STATE_P;
	}
	return true;
}

static bool try_layout(sw_memo *memo, const sw_mesh *mesh, sw_shape shape, const sw_candidate *c,
                       table_builder *g)
{
	sw_layout layout = sw_layout_replicated(&memo->analysis->cluster->atoms);
	layout_target target = {&memo->analysis->cluster->atoms, &layout};
	if (!set_partial(mesh, c, &layout) || !split_axes(mesh, c, split_layout, &target) ||
	    !sw_layout_valid(&memo->analysis->cluster->atoms, shape, &layout))
		return false;
	uint32_t id = sw_layouts_id(&memo->layouts, &layout);
	sw_vec_push(&g->in, id);
	sw_vec_push(&g->out, id);
	sw_vec_push(&g->seconds, 0.0);
	return true;
}

static void try_candidate(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind, uint32_t index,
                          sw_candidate c, table_builder *g)
{
	bool ok =
		kind == SW_DECISION_OP
			? try_op(memo, mesh, index, &c, g)
			: try_layout(memo, mesh,
	                             sw_value_shape(memo->analysis->program,
	                                            sw_decision_value(memo->analysis, kind, index)),
	                             &c, g);
	if (ok)
		sw_vec_push(&g->candidates, c);
}

/* Do two of the axes with the flag `apart` split one factor? */
static bool splits_twice(const sw_mesh *mesh, const sw_candidate *c)
{
	for (int32_t i = 0; i < mesh->n_axes; i++)
		for (int32_t k = 0; k < i; k++)
			if (mesh->use[i]->apart && mesh->use[k]->apart &&
			    c->axis[i].kind == SW_CHOICE_SPLIT &&
			    c->axis[k].kind == SW_CHOICE_SPLIT &&
			    c->axis[i].index == c->axis[k].index)
				return true;
	return false;
}

/* Does the flag `apart` hold for this decision? It does for weight dots that are not pinned. */
static bool keeps_apart(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index)
{
	return kind == SW_DECISION_OP && !analysis->pinned_ops[index] &&
	       sw_roles_weight(&analysis->roles, index) >= 0;
}

/* Try all combinations of one option per axis; the last axis varies fastest. */
static void try_all(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind, uint32_t index,
                    const options *o, table_builder *g)
{
	bool apart = keeps_apart(memo->analysis, kind, index);
	int64_t n = 1;
	for (int32_t axis = 0; axis < SW_MAX_AXES; axis++)
		n *= o->n[axis];
	for (int64_t i = 0; i < n; i++) {
		sw_candidate c;
		int64_t rest = i;
		for (int32_t axis = SW_MAX_AXES - 1; axis >= 0; axis--) {
			c.axis[axis] = o->list[axis][rest % o->n[axis]];
			rest /= o->n[axis];
		}
		if (!apart || !splits_twice(mesh, &c))
			try_candidate(memo, mesh, kind, index, c, g);
	}
}

/* Let each axis also do nothing: the demanded splits divide by each axis alone, but not by all
 * together. */
static options with_none(const options *o)
{
	options looser = *o;
	for (int32_t axis = 0; axis < SW_MAX_AXES; axis++)
		if (looser.n[axis] == 0 || looser.list[axis][0].kind != SW_CHOICE_NONE)
			add_none(&looser, axis);
	return looser;
}

static sw_strategy_table make_table(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind,
                                    uint32_t index, const options *o)
{
	table_builder g = {0};
	sw_strategy_table table = {.n_in = 1, .n_out = 1};
	if (kind == SW_DECISION_OP) {
		table.n_in = sw_op_at(memo->analysis->program, index)->n_operands;
		table.n_out = sw_op_at(memo->analysis->program, index)->n_results;
		g.layouts = sw_alloc(sizeof(sw_layout) * (table.n_in + table.n_out + 1));
	}
	try_all(memo, mesh, kind, index, o, &g);
	if (g.candidates.len == 0) {
		options looser = with_none(o);
		try_all(memo, mesh, kind, index, &looser, &g);
	}
	table.n = (int32_t)g.candidates.len;
	table.candidates = sw_arena_copy(&memo->arena, g.candidates.data,
	                                 sizeof(sw_candidate) * g.candidates.len);
	table.in = sw_arena_copy(&memo->arena, g.in.data, sizeof(uint32_t) * g.in.len);
	table.out = sw_arena_copy(&memo->arena, g.out.data, sizeof(uint32_t) * g.out.len);
	table.seconds = sw_arena_copy(&memo->arena, g.seconds.data, sizeof(double) * g.seconds.len);
	if (kind == SW_DECISION_OP)
		table.temporary_bytes = sw_arena_copy(&memo->arena, g.temporary_bytes.data,
		                                      sizeof(int64_t) * g.temporary_bytes.len);
	sw_vec_clear(&g.candidates);
	sw_vec_clear(&g.in);
	sw_vec_clear(&g.out);
	sw_vec_clear(&g.seconds);
	sw_vec_clear(&g.temporary_bytes);
	free(g.layouts);
	return table;
}

static double count_candidates(const sw_memo *memo, const sw_mesh *mesh, sw_id op)
{
	options o = {.max = max_options_of(memo)};
	double n = 1;
	decision_options(memo->analysis, mesh, SW_DECISION_OP, op, &o);
	for (int32_t axis = 0; axis < mesh->n_axes; axis++)
		n *= o.n[axis];
	return n;
}

double sw_mesh_candidates(sw_memo *memo, const sw_mesh *mesh)
{
	const sw_program *program = memo->analysis->program;
	bool *seen = sw_alloc(memo->decision_class_index.len + program->ops.len + 1);
	double sum = 0;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (!memo->analysis->roles.planned[op->computation] ||
		    op->opcode == SW_OP_PARAMETER || sw_is_region(op))
			continue;
		uint32_t class = sw_decision_equivalence(memo, SW_DECISION_OP, id);
		sum += seen[class] ? 0 : count_candidates(memo, mesh, id);
		seen[class] = true;
	}
	free(seen);
	return sum;
}

int32_t sw_strategy_table_of(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind,
                             uint32_t index)
{
	options o = {.max = max_options_of(memo)};
	sw_text key = {0};
	decision_options(memo->analysis, mesh, kind, index, &o);
	char first[] = {kind == SW_DECISION_OP ? 'o' : 'v', (char)mesh->n_axes,
	                keeps_apart(memo->analysis, kind, index)};
	sw_text_add_n(&key, first, sizeof(first));
	for (int32_t axis = 0; axis < SW_MAX_AXES; axis++) {
		bool apart = axis < mesh->n_axes && mesh->use[axis]->apart;
		sw_text_add_n(&key, (const char *)&apart, sizeof(apart));
		sw_text_add_n(&key, (const char *)&mesh->axes[axis].atoms,
		              sizeof(mesh->axes[axis].atoms));
		sw_text_add_n(&key, (const char *)&o.n[axis], sizeof(o.n[axis]));
		for (int32_t i = 0; i < o.n[axis]; i++) {
			const int64_t numbers[] = {o.list[axis][i].kind, o.list[axis][i].monoid,
			                           o.list[axis][i].index, o.list[axis][i].top};
			sw_text_add_n(&key, (const char *)numbers, sizeof(numbers));
		}
	}
	if (kind == SW_DECISION_OP) {
		const uint32_t class = sw_op_equivalence(memo, index);
		sw_text_add_n(&key, (const char *)&class, sizeof(class));
	} else {
		sw_key_shape(&key, sw_value_shape(memo->analysis->program,
		                                  sw_decision_value(memo->analysis, kind, index)));
	}
	uint32_t next = (uint32_t)memo->tables.len;
	uint32_t number = sw_map_intern(&memo->table_index, key.data, key.len, next);
	if (number == next) {
		sw_strategy_table table = make_table(memo, mesh, kind, index, &o);
		memo->left_out += o.left_out;
		sw_vec_push(&memo->tables, table);
	}
	sw_text_clear(&key);
	return (int32_t)number;
}
