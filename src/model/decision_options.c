/*
 * Options of a decision under a mesh: what each axis may do at it, a split of one of its classes, a
 * linearity that passes partial sums on, or nothing. The roles of the classes and the use of the
 * axis determine them.
 */
#include "model/internal.h"

#include <math.h>

static void add_option(sw_decision_options *o, int32_t axis, sw_option option)
{
	if (o->n[axis] < o->max)
		o->list[axis][o->n[axis]++] = option;
	else
		o->left_out++;
}

void sw_options_add_none(sw_decision_options *o, int32_t axis)
{
	add_option(o, axis, (sw_option){.kind = SW_CHOICE_NONE});
}

static void add_partials(sw_decision_options *o, int32_t axis, int32_t linearity, uint32_t monoids)
{
	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
		if (monoids >> m & 1)
			add_option(o, axis,
			           (sw_option){.kind = SW_CHOICE_PASS,
			                       .monoid = (uint8_t)m,
			                       .index = (int16_t)linearity});
}

static const sw_class_set DATA = {.any = SW_CLASS_DATA};
static const sw_class_set DATA_OR_ROWS = {.any = SW_CLASS_DATA | SW_CLASS_ROWS};
/* Rows of activations that are no rows of the batch any more, as the places of experts' buffers. Where an
 * axis splits the batch, they may be split in its stead. */
static const sw_class_set OTHER_ROWS = {.any = SW_CLASS_ROWS,
                                        .none = SW_CLASS_DATA | SW_CLASS_STATE};
static const sw_class_set STATE = {.any = SW_CLASS_STATE, .none = SW_CLASS_DATA};

static bool is_in(const sw_classes *classes, int32_t class, sw_class_set set)
{
	return (classes->roles[class] & set.any) && !(classes->roles[class] & set.none);
}

/* Add the splits that are in the set and whose digit divides by the axis; return how many. */
static int32_t add_splits(const sw_analysis *analysis, const sw_mesh *mesh, sw_decision_options *o,
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

static bool has_split(const sw_decision_options *o, int32_t axis, sw_option option)
{
	for (int32_t i = 0; i < o->n[axis]; i++) {
		const sw_option *other = &o->list[axis][i];
		if (other->kind == SW_CHOICE_SPLIT && other->index == option.index &&
		    other->top == option.top)
			return true;
	}
	return false;
}

/* Add splits of state dimensions. A weight that its dots split over an inner axis may be split
 * further over an outer one at rest: by the digit below, so that an all-gather over the outer axis
 * gives the layout that the dot reads. Inner axes of one size leave the same digit. */
static int32_t add_state_splits(const sw_analysis *analysis, const sw_mesh *mesh,
                                sw_decision_options *o, int32_t axis, sw_split_list splits)
{
	int32_t n = add_splits(analysis, mesh, o, axis, splits, STATE), first = o->n[axis] - n;
	for (int32_t inner = axis + 1; inner < mesh->n_axes; inner++)
		for (int32_t i = first; i < first + n && mesh->use[axis]->below; i++) {
			sw_option below = o->list[axis][i];
			if (below.top % (mesh->axes[inner].size * mesh->axes[axis].size) != 0)
				continue;
			below.top /= mesh->axes[inner].size;
			if (!has_split(o, axis, below))
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
static void add_linearities(const sw_analysis *analysis, sw_decision_options *o, int32_t axis,
                            sw_id op_id)
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
static int32_t add_dot_splits(const sw_analysis *analysis, const sw_mesh *mesh,
                              sw_decision_options *o, int32_t axis, sw_id op, sw_class_set set,
                              keep_factor *keep, int32_t operand)
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
	return sw_rule_has_factor(rule, false, operand, factor);
}

static bool is_contracted(const sw_rule *rule, int32_t factor, int32_t operand)
{
	(void)operand;
	return rule->factors[factor].kind == SW_FACTOR_REDUCED;
}

/* What is looked up in a table for all pairs of positions is larger than all state. */
static bool is_larger_than_state(const sw_analysis *analysis, sw_id value)
{
	sw_shape shape = sw_value_shape(analysis->program, value);
	return sw_shape_elements(shape) > analysis->roles.most_elements;
}

/* Is the value a gradient or computed from gradients? Those have no batch dimension, are no
 * parameters seen through a convert, and no larger than all state. */
static bool is_update(const sw_analysis *analysis, sw_id value, sw_split_list splits)
{
	return !has_class(analysis, splits, DATA) && !analysis->roles.from_parameter[value] &&
	       !is_larger_than_state(analysis, value);
}

/* Is it a dot of rows that gives a gradient which has none? */
static bool sums_gradient(const sw_analysis *analysis, sw_id id)
{
	const sw_op *op = sw_op_at(analysis->program, id);
	sw_split_list sums = sw_value_splits(analysis, op->first_result);
	return sw_is_dot(op) && has_class(analysis, sw_op_splits(analysis, id), DATA_OR_ROWS) &&
	       !has_class(analysis, sums, DATA_OR_ROWS) &&
	       is_update(analysis, op->first_result, sums);
}

/* Add the splits that the axis demands of dots; return false if there are none that divide. */
static bool add_dot_demands(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                            sw_id op, sw_decision_options *o)
{
	static const sw_class_set any = {.any = SW_CLASS_HEAVY};
	const sw_axis_use *use = mesh->use[axis];
	int32_t weight = sw_roles_weight(&analysis->roles, op);
	if (use->gradient_dots.any && sums_gradient(analysis, op) &&
	    add_splits(analysis, mesh, o, axis, sw_op_splits(analysis, op), use->gradient_dots) > 0)
		return true;
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

/* Does the op give an update? What adds one up from more than all state may pass terms on instead,
 * since these are fewer behind it. */
static bool gives_update(const sw_analysis *analysis, sw_id id, sw_split_list splits)
{
	const sw_op *op = sw_op_at(analysis->program, id);
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (is_larger_than_state(analysis, op->operands[k]) &&
		    analysis->classes.partial[op->operands[k]] &&
		    !has_class(analysis, sw_value_splits(analysis, op->operands[k]), DATA))
			return false;
	return is_update(analysis, op->first_result, splits);
}

/* Return the way of the variable that an op updates, an input is of, or whose gradient an op
 * scatters; SW_WAY_COUNT: the axis has no ways, or it is of no variable. Some axes leave less open
 * than the variable. */
static sw_way way_of(const sw_analysis *analysis, const sw_axis_use *use, const int32_t *of,
                     uint32_t index)
{
	const sw_variables *v = &analysis->variables;
	if (!use->ways || v->n == 0 || of[index] < 0)
		return (sw_way){.kind = SW_WAY_COUNT};
	const sw_variable *variable = &v->list[of[index]];
	sw_way way = variable->way;
	if (way.kind != SW_WAY_ANY || use->ways == SW_WAYS_OWN)
		return way;
	sw_way_kind owned = variable->trained ? SW_WAY_OWNED : SW_WAY_ALL_REDUCE;
	switch (use->ways) {
	case SW_WAYS_MOMENTS:
		way.kind = variable->divides ? SW_WAY_MOMENTS : SW_WAY_ALL_REDUCE;
		return way;
	case SW_WAYS_SPLIT:
		way.kind = variable->divides ? SW_WAY_SPLIT : SW_WAY_ALL_REDUCE;
		return way;
	case SW_WAYS_PARTITIONED:
		way.kind = variable->divides ? SW_WAY_SPLIT : owned;
		return way;
	case SW_WAYS_OWNED:
	case SW_WAYS_PROXY:
		way.kind = owned;
		way.proxy = use->ways == SW_WAYS_PROXY;
		return way;
	case SW_WAYS_SPARSE:
		way.kind = variable->sparse ? owned : SW_WAY_ALL_REDUCE;
		return way;
	default:
		way.kind = SW_WAY_ALL_REDUCE;
		return way;
	}
}

/* Likewise, is the gradient that an op makes gathered? */
static sw_gathering gathering_of(const sw_analysis *analysis, const sw_axis_use *use, sw_id op)
{
	const uint8_t *gathers = analysis->variables.gathers;
	sw_gathering gathering = gathers && use->ways ? (sw_gathering)gathers[op] : SW_GATHERS_NOT;
	bool rows = sw_op_at(analysis->program, op)->opcode == SW_OP_SCATTER;
	if (gathering != SW_GATHERS_MAYBE || use->ways == SW_WAYS_OWN)
		return gathering;
	return use->ways == SW_WAYS_GATHERED || (use->ways == SW_WAYS_GATHERED_ROWS && rows)
	               ? SW_GATHERS_SURELY
	               : SW_GATHERS_NOT;
}

/* May the variable's state, or (update) what updates it, be split? */
static bool may_split(sw_way way, bool update)
{
	return way.kind == SW_WAY_SPLIT || way.kind == SW_WAY_ANY ||
	       (update && way.kind == SW_WAY_MOMENTS);
}

/* Let the axis leave it to the owner: to the device with its coordinate on the axis. */
static void add_owner(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis, sw_way way,
                      sw_decision_options *o)
{
	const sw_atoms *atoms = &analysis->cluster->atoms;
	int64_t coordinate = 0;
	for (int32_t a = 0; a < atoms->n; a++)
		if (mesh->axes[axis].atoms >> a & 1)
			coordinate = coordinate * atoms->size[a] +
			             sw_atoms_coordinate(atoms, way.owner, a);
	add_option(o, axis, (sw_option){.kind = SW_CHOICE_OWN, .top = coordinate});
}

/* Does a scatter put rows of the batch in places that are none, or a gather take them from there? Split by
 * features in place of rows, it has all rows and places, and rows and features change places before and
 * behind it; split by rows, each device would have a term of all places, or all places. */
static bool changes_rows(const sw_analysis *analysis, sw_id id)
{
	const sw_op *op = sw_op_at(analysis->program, id);
	return (op->opcode == SW_OP_SCATTER || op->opcode == SW_OP_GATHER) &&
	       has_class(analysis, sw_value_splits(analysis, op->operands[0]), OTHER_ROWS);
}

static void op_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis, sw_id op,
                       sw_decision_options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	sw_split_list splits = sw_op_splits(analysis, op);
	sw_way way = way_of(analysis, use, analysis->variables.of_op, op),
	       scattered = way_of(analysis, use, analysis->variables.of_scatter, op);
	sw_gathering gathers = gathering_of(analysis, use, op);
	if ((analysis->variables.whole_ops && analysis->variables.whole_ops[op]) ||
	    gathers == SW_GATHERS_SURELY) {
		sw_options_add_none(o, axis);
		return;
	}
	if (analysis->variables.decodes && analysis->variables.decodes[op]) {
		sw_options_add_none(o, axis);
		add_state_splits(analysis, mesh, o, axis, splits);
		return;
	}
	if (way.kind == SW_WAY_OWNED) {
		add_owner(analysis, mesh, axis, way, o);
		return;
	}
	if (scattered.kind == SW_WAY_OWNED || scattered.kind == SW_WAY_ANY)
		add_owner(analysis, mesh, axis, scattered, o);
	if (add_dot_demands(analysis, mesh, axis, op, o))
		return;
	if (add_splits(analysis, mesh, o, axis, splits, use->must) > 0) {
		add_splits(analysis, mesh, o, axis, splits, use->may);
		if (changes_rows(analysis, op))
			add_splits(analysis, mesh, o, axis, splits, STATE);
		if (gathers == SW_GATHERS_MAYBE)
			sw_options_add_none(o, axis);
		return;
	}
	if (use->must.any & SW_CLASS_DATA)
		add_splits(analysis, mesh, o, axis, splits, OTHER_ROWS);
	if (use->gradients && gives_update(analysis, op, splits) &&
	    add_state_splits(analysis, mesh, o, axis, splits) > 0)
		return;
	if (has_class(analysis, splits, use->cut) &&
	    add_splits(analysis, mesh, o, axis, splits, use->may) > 0)
		return;
	if (analysis->variables.cuts_part && analysis->variables.cuts_part[op]) {
		int32_t before = o->n[axis];
		add_linearities(analysis, o, axis, op);
		if (o->n[axis] > before)
			return;
	}
	sw_options_add_none(o, axis);
	add_linearities(analysis, o, axis, op);
	add_splits(analysis, mesh, o, axis, splits, use->may);
	bool sums = use->whole_sums && analysis->roles.trips[op] > 1;
	if (way.kind == SW_WAY_ANY)
		add_owner(analysis, mesh, axis, way, o);
	bool shared = shares_state(use) || may_split(way, true) ||
	              (analysis->variables.after_sum && analysis->variables.after_sum[op]);
	if (shared && !sums && !has_class(analysis, splits, DATA))
		add_state_splits(analysis, mesh, o, axis, splits);
}

/* What a step carries on of each row of the batch, such as memories of earlier segments, lies where
 * the row does. */
static void state_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                          uint32_t input, sw_role role, sw_decision_options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	sw_class_set batch = {.any = use->must.any & SW_CLASS_DATA, .none = use->must.none};
	sw_split_list splits = sw_value_splits(analysis, analysis->roles.inputs[input]);
	sw_way way = way_of(analysis, use, analysis->variables.of_input, input);
	if (add_splits(analysis, mesh, o, axis, splits, batch) > 0)
		return;
	if (way.kind == SW_WAY_OWNED && !(way.proxy && role == SW_ROLE_PARAMETER)) {
		add_owner(analysis, mesh, axis, way, o);
		return;
	}
	if (way.kind == SW_WAY_ANY) {
		sw_options_add_none(o, axis);
		add_owner(analysis, mesh, axis, way, o);
		add_state_splits(analysis, mesh, o, axis, splits);
		return;
	}
	bool split = (role == SW_ROLE_PARAMETER && use->parameters) ||
	             (role == SW_ROLE_MOMENT && use->moments) ||
	             may_split(way, role == SW_ROLE_MOMENT);
	if (split && add_state_splits(analysis, mesh, o, axis, splits) > 0)
		return;
	sw_options_add_none(o, axis);
	add_splits(analysis, mesh, o, axis, splits, use->may);
}

/* Data inputs are replicated over axes that are for weights: a slice costs almost nothing. What
 * arrives takes as long as its bytes, and may be split. */
static void data_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                         uint32_t input, sw_decision_options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	sw_id value = analysis->roles.inputs[input];
	sw_split_list splits = sw_value_splits(analysis, value);
	bool whole = analysis->variables.whole_values && analysis->variables.whole_values[value];
	if (!whole && add_splits(analysis, mesh, o, axis, splits, use->must) > 0)
		return;
	sw_options_add_none(o, axis);
	if (whole)
		return;
	if (!use->weights.any || analysis->roles.arrives[input])
		add_splits(analysis, mesh, o, axis, splits, use->may);
	if (shares_state(use))
		add_state_splits(analysis, mesh, o, axis, splits);
}

static void boundary_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                             const sw_boundary *boundary, sw_decision_options *o)
{
	const sw_axis_use *use = mesh->use[axis];
	if (boundary->is_predicate) {
		sw_options_add_none(o, axis);
		return;
	}
	sw_id value = boundary->values[0];
	sw_split_list splits = sw_value_splits(analysis, value);
	if (add_splits(analysis, mesh, o, axis, splits, use->must) > 0)
		return;
	if (use->gradients && is_update(analysis, value, splits) &&
	    add_state_splits(analysis, mesh, o, axis, splits) > 0)
		return;
	sw_options_add_none(o, axis);
	add_partials(o, axis, 0, analysis->classes.partial[value]);
	add_splits(analysis, mesh, o, axis, splits, use->may);
	if (shares_state(use) && !(use->whole_sums && is_update(analysis, value, splits)))
		add_state_splits(analysis, mesh, o, axis, splits);
}

/* Each device keeps what its own gradient lacked; what the sum lacked is kept by all, by the owner,
 * or in parts. */
static void residual_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                             uint32_t input, sw_decision_options *o)
{
	sw_split_list splits = sw_value_splits(analysis, analysis->roles.inputs[input]);
	sw_way way = way_of(analysis, mesh->use[axis], analysis->variables.of_input, input);
	if (add_splits(analysis, mesh, o, axis, splits, mesh->use[axis]->must) > 0)
		return;
	if (way.kind == SW_WAY_OWNED) {
		add_owner(analysis, mesh, axis, way, o);
		return;
	}
	sw_options_add_none(o, axis);
	if (analysis->roles.input_role[input] == SW_ROLE_SUM_RESIDUAL)
		add_state_splits(analysis, mesh, o, axis, splits);
}

static void input_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                          uint32_t input, sw_decision_options *o)
{
	sw_role role = analysis->roles.input_role[input];
	if (role == SW_ROLE_RESIDUAL || role == SW_ROLE_SUM_RESIDUAL)
		residual_options(analysis, mesh, axis, input, o);
	else if (role == SW_ROLE_DATA)
		data_options(analysis, mesh, axis, input, o);
	else
		state_options(analysis, mesh, axis, input, role, o);
}

/* A result that replaces no input lies as it is computed, or whole. */
static void output_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                           uint32_t output, sw_decision_options *o)
{
	int32_t input = analysis->roles.output_input[output];
	if (input >= 0) {
		input_options(analysis, mesh, axis, (uint32_t)input, o);
		return;
	}
	sw_split_list splits =
		sw_value_splits(analysis, sw_entry(analysis->program)->results.data[output]);
	sw_options_add_none(o, axis);
	add_splits(analysis, mesh, o, axis, splits, mesh->use[axis]->must);
	add_splits(analysis, mesh, o, axis, splits, mesh->use[axis]->may);
}

static void axis_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                         sw_decision_kind kind, uint32_t index, sw_decision_options *o)
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

/* Of what the axis may do keep what a pin that leaves dimensions open allows. */
static void open_options(const sw_analysis *analysis, const sw_mesh *mesh, int32_t axis,
                         sw_decision_kind kind, uint32_t index, uint32_t open,
                         sw_decision_options *o)
{
	int32_t n = 0;
	bool none = false;
	axis_options(analysis, mesh, axis, kind, index, o);
	for (int32_t i = 0; i < o->n[axis]; i++) {
		sw_option option = o->list[axis][i];
		bool split = option.kind == SW_CHOICE_SPLIT && open >> option.index & 1;
		none |= option.kind == SW_CHOICE_NONE;
		if (split || option.kind == SW_CHOICE_NONE)
			o->list[axis][n++] = option;
	}
	o->n[axis] = n;
	if (!none)
		sw_options_add_none(o, axis);
}

sw_decision_options sw_options_of(const sw_analysis *analysis, const sw_mesh *mesh,
                                  sw_decision_kind kind, uint32_t index)
{
	sw_decision_options o = {
		.max = (int32_t)fmin(analysis->limits->max_options, SW_MAX_OPTIONS)};
	const sw_option *decided = sw_pinned(analysis, kind, index);
	for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
		const sw_option *pin =
			decided ? &decided[__builtin_ctz(mesh->axes[axis].atoms)] : NULL;
		if (pin && pin->open)
			open_options(analysis, mesh, axis, kind, index, pin->open, &o);
		else if (pin)
			add_option(&o, axis, *pin);
		else
			axis_options(analysis, mesh, axis, kind, index, &o);
	}
	/* The axes that the mesh lacks have one device. */
	for (int32_t axis = mesh->n_axes; axis < SW_MAX_AXES; axis++)
		sw_options_add_none(&o, axis);
	return o;
}
