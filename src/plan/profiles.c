/*
 * Profiles: what a site may do under a mesh. Every axis has OPTIONS at the site (a split of one of its classes, a
 * passage of partial sums, or nothing); roles decide which. A CANDIDATE is an option per axis that the rule accepts.
 * Sites that are alike (same op, shapes and options) share one profile.
 */
#include "plan/internal.h"

#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"

#define MAX_OPTIONS 24

typedef struct options {
	int32_t n[SW_MAX_AXES];
	sw_option list[SW_MAX_AXES][MAX_OPTIONS];
	int64_t left_out; /* for want of room */
} options;

static void add_option(options *o, int32_t axis, sw_option option)
{
	if (o->n[axis] < MAX_OPTIONS)
		o->list[axis][o->n[axis]++] = option;
	else
		o->left_out++;
}

static void add_none(options *o, int32_t axis)
{
	add_option(o, axis, (sw_option){.kind = SW_CHOICE_NONE});
}

static void add_partials(options *o, int32_t axis, int32_t passage, uint32_t monoids)
{
	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
		if (monoids >> m & 1)
			add_option(o, axis,
			           (sw_option){.kind = SW_CHOICE_PASS,
			                       .monoid = (uint8_t)m,
			                       .index = (int16_t)passage});
}

/* Which classes an axis may take at a site. */
typedef bool class_filter(const sw_classes *classes, int32_t class);
static bool any_class(const sw_classes *c, int32_t class)
{
	return c->heavy[class];
}
static bool data_class(const sw_classes *c, int32_t class)
{
	return c->data[class];
}
static bool other_class(const sw_classes *c, int32_t class)
{
	return c->heavy[class] && !c->data[class];
}
static bool state_class(const sw_classes *c, int32_t class)
{
	return c->state[class] && !c->data[class];
}

typedef struct split_list {
	const sw_split *first;
	uint32_t n;
} split_list;

static split_list op_splits(const sw_planner *p, sw_id op)
{
	uint32_t start = p->classes.op_start[op];
	return (split_list){p->classes.op_splits + start, p->classes.op_start[op + 1] - start};
}

static split_list value_splits(const sw_planner *p, sw_id value)
{
	uint32_t start = p->classes.value_start[value];
	return (split_list){p->classes.value_splits + start, p->classes.value_start[value + 1] - start};
}

/* Adds those splits that pass the filter and divide by the axis; returns how many. */
static int32_t add_splits(const sw_planner *p, const sw_mesh *mesh, options *o, int32_t axis,
                          split_list splits, class_filter *filter)
{
	int32_t before = o->n[axis];
	for (uint32_t i = 0; i < splits.n; i++) {
		const sw_split *s = &splits.first[i];
		if (filter(&p->classes, s->class) && s->top % mesh->axes[axis].size == 0)
			add_option(o, axis,
			           (sw_option){.kind = SW_CHOICE_SPLIT,
			                       .index = (int16_t)s->where,
			                       .top = s->top});
	}
	return o->n[axis] - before;
}

static bool has_class(const sw_planner *p, split_list splits, class_filter *filter)
{
	for (uint32_t i = 0; i < splits.n; i++)
		if (filter(&p->classes, splits.first[i].class))
			return true;
	return false;
}

/* Partial sums may pass where some operand of a passage may be partial. */
static void add_passages(const sw_planner *p, options *o, int32_t axis, sw_id op_id)
{
	const sw_op *op = sw_op_at(p->program, op_id);
	const sw_rule *rule = p->rules[op_id];
	for (int32_t s = 0; s < rule->n_passages; s++) {
		uint32_t arriving = 0;
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (rule->passages[s].operands[k])
				arriving |= p->classes.partial[op->operands[k]];
		add_partials(o, axis, s, arriving & rule->passages[s].monoids);
	}
}

/* Megatron's constraint: a dot with a parameter splits a dimension of the parameter. Returns how many options that gave. */
static int32_t add_parameter_splits(const sw_planner *p, const sw_mesh *mesh, options *o, int32_t axis,
                                    sw_id op_id)
{
	const sw_op *op = sw_op_at(p->program, op_id);
	if (op->opcode != SW_OP_DOT && op->opcode != SW_OP_CONVOLUTION)
		return 0;
	uint32_t parameter = p->roles.from_parameter[op->operands[1]] ? 1 : 0;
	if (!p->roles.from_parameter[op->operands[parameter]])
		return 0;
	add_splits(p, mesh, o, axis, op_splits(p, op_id), other_class);
	int32_t n = 0;
	int64_t stride;
	for (int32_t i = 0; i < o->n[axis]; i++)
		if (sw_rule_dim_with(p->rules[op_id], false, (int32_t)parameter, o->list[axis][i].index,
		                     &stride) >= 0)
			o->list[axis][n++] = o->list[axis][i];
	return o->n[axis] = n;
}

static void op_options(const sw_planner *p, const sw_mesh *mesh, int32_t axis, sw_id op, options *o)
{
	split_list splits = op_splits(p, op);
	switch (mesh->use[axis]) {
	case SW_AXIS_DATA:
	case SW_AXIS_STATE:
		if (mesh->use[axis] == SW_AXIS_DATA && add_splits(p, mesh, o, axis, splits, data_class) > 0)
			return;
		add_none(o, axis);
		add_passages(p, o, axis, op);
		if ((mesh->split_parameters || mesh->split_moments) && !has_class(p, splits, data_class))
			add_splits(p, mesh, o, axis, splits, state_class);
		return;
	case SW_AXIS_TENSOR:
		if (add_parameter_splits(p, mesh, o, axis, op) > 0)
			return;
		add_none(o, axis);
		add_passages(p, o, axis, op);
		add_splits(p, mesh, o, axis, splits, other_class);
		return;
	case SW_AXIS_FREE:
		add_none(o, axis);
		add_passages(p, o, axis, op);
		add_splits(p, mesh, o, axis, splits, any_class);
		return;
	}
}

static bool is_data_like(const sw_mesh *mesh, int32_t axis)
{
	return mesh->use[axis] == SW_AXIS_DATA || mesh->use[axis] == SW_AXIS_STATE;
}

/* What an axis that is searched may take beside "nothing". */
static void add_searched_splits(const sw_planner *p, const sw_mesh *mesh, options *o, int32_t axis,
                                split_list splits)
{
	if (mesh->use[axis] == SW_AXIS_FREE)
		add_splits(p, mesh, o, axis, splits, any_class);
	else if (mesh->use[axis] == SW_AXIS_TENSOR)
		add_splits(p, mesh, o, axis, splits, other_class);
}

static void state_options(const sw_planner *p, const sw_mesh *mesh, int32_t axis, sw_id value, bool at_rest,
                          options *o)
{
	split_list splits = value_splits(p, value);
	if (is_data_like(mesh, axis) && at_rest && add_splits(p, mesh, o, axis, splits, state_class) > 0)
		return;
	add_none(o, axis);
	add_searched_splits(p, mesh, o, axis, splits);
}

/* Values that are not state: data inputs, results, what goes through ports. monoids: in which it may be left partial. */
static void value_options(const sw_planner *p, const sw_mesh *mesh, int32_t axis, sw_id value,
                          bool must_split_data, uint32_t monoids, options *o)
{
	split_list splits = value_splits(p, value);
	if (mesh->use[axis] == SW_AXIS_DATA && must_split_data &&
	    add_splits(p, mesh, o, axis, splits, data_class) > 0)
		return;
	add_none(o, axis);
	add_partials(o, axis, 0, monoids);
	add_searched_splits(p, mesh, o, axis, splits);
	if (is_data_like(mesh, axis) && must_split_data && (mesh->split_parameters || mesh->split_moments))
		add_splits(p, mesh, o, axis, splits, state_class);
}

static void port_options(const sw_planner *p, const sw_mesh *mesh, int32_t axis, const sw_port *port,
                         options *o)
{
	if (port->decides)
		add_none(o, axis);
	else
		value_options(p, mesh, axis, port->values[0], true, p->classes.partial[port->values[0]], o);
}

static void input_options(const sw_planner *p, const sw_mesh *mesh, int32_t axis, uint32_t input,
                          options *o)
{
	sw_role role = p->roles.input_role[input];
	if (role == SW_ROLE_DATA) {
		if (mesh->use[axis] == SW_AXIS_TENSOR)
			add_none(o, axis);
		else
			value_options(p, mesh, axis, p->roles.inputs[input], true, 0, o);
		return;
	}
	bool at_rest = (role == SW_ROLE_PARAMETER && mesh->split_parameters) ||
	               (role == SW_ROLE_MOMENT && mesh->split_moments);
	state_options(p, mesh, axis, p->roles.inputs[input], at_rest, o);
}

/* The value whose layout a site that is not an op decides. */
static sw_id site_value(const sw_planner *p, sw_site_kind kind, uint32_t index)
{
	if (kind == SW_SITE_INPUT)
		return p->roles.inputs[index];
	if (kind == SW_SITE_PORT) {
		const sw_port *port = &p->roles.ports.data[index];
		return port->decides ? port->reads[0].value : port->values[0];
	}
	return sw_entry(p->program)->results.data[index];
}

static void site_options(const sw_planner *p, const sw_mesh *mesh, sw_site_kind kind, uint32_t index,
                         options *o)
{
	for (int32_t axis = 0; axis < mesh->n_axes; axis++) {
		if (kind == SW_SITE_OP)
			op_options(p, mesh, axis, index, o);
		else if (kind == SW_SITE_INPUT)
			input_options(p, mesh, axis, index, o);
		else if (kind == SW_SITE_OUTPUT && p->roles.output_input[index] >= 0)
			input_options(p, mesh, axis, (uint32_t)p->roles.output_input[index], o);
		else if (kind == SW_SITE_PORT)
			port_options(p, mesh, axis, &p->roles.ports.data[index], o);
		else
			value_options(p, mesh, axis, site_value(p, kind, index), false, 0, o);
	}
	for (int32_t axis = mesh->n_axes; axis < SW_MAX_AXES; axis++) /* an axis of one device */
		add_none(o, axis);
}

/* ---- candidates ------------------------------------------------------------------------------------------ */

/* The axes of a site as atoms: those that take the same split share adjacent digits. place() puts a mask of atoms there. */
typedef bool place_split(void *what, uint32_t mask, int32_t index, int64_t top);
static bool place_axes(const sw_mesh *mesh, const sw_candidate *c, place_split *place, void *what)
{
	uint32_t placed = 0;
	for (int32_t i = 0; i < mesh->n_axes; i++) {
		const sw_option *option = &c->axis[i];
		uint32_t mask = 0;
		if (option->kind != SW_CHOICE_SPLIT || (placed & mesh->axes[i].atoms))
			continue;
		for (int32_t j = i; j < mesh->n_axes; j++)
			if (c->axis[j].kind == SW_CHOICE_SPLIT && c->axis[j].index == option->index &&
			    c->axis[j].top == option->top)
				mask |= mesh->axes[j].atoms;
		if (!place(what, mask, option->index, option->top))
			return false;
		placed |= mask;
	}
	return true;
}

typedef struct strategy_place {
	const sw_atoms *atoms;
	const sw_rule *rule;
	sw_strategy *strategy;
} strategy_place;
static bool place_in_strategy(void *what, uint32_t mask, int32_t factor, int64_t top)
{
	strategy_place *p = what;
	return sw_strategy_split(p->atoms, p->rule, p->strategy, mask, factor, top);
}

typedef struct layout_place {
	const sw_atoms *atoms;
	sw_layout *layout;
} layout_place;
static bool place_in_layout(void *what, uint32_t mask, int32_t dim, int64_t top)
{
	layout_place *p = what;
	return sw_layout_split(p->atoms, p->layout, mask, dim, top);
}

bool sw_candidate_strategy(const sw_atoms *atoms, const sw_mesh *mesh, const sw_rule *rule,
                           const sw_candidate *candidate, sw_strategy *strategy)
{
	*strategy = sw_strategy_none(atoms);
	for (int32_t axis = 0; axis < mesh->n_axes; axis++)
		for (int32_t a = 0; a < atoms->n && candidate->axis[axis].kind == SW_CHOICE_PASS; a++)
			if (mesh->axes[axis].atoms >> a & 1)
				strategy->atom[a] = (sw_choice){.kind = SW_CHOICE_PASS,
				                                .monoid = candidate->axis[axis].monoid,
				                                .index = candidate->axis[axis].index};
	strategy_place place = {atoms, rule, strategy};
	return place_axes(mesh, candidate, place_in_strategy, &place);
}

typedef struct growing {
	SW_VEC(sw_candidate) candidates;
	SW_VEC(uint32_t) in, out;
	SW_VEC(double) seconds;
	SW_VEC(int64_t) temporary_bytes;
	sw_layout *layouts;
} growing;

/* Local bytes of operands and results. */
static int64_t held_bytes(const sw_planner *p, const sw_op *op, const sw_layout *layouts)
{
	const sw_atoms *atoms = &p->cluster->atoms;
	int64_t bytes = 0;
	for (uint32_t k = 0; k < op->n_operands + op->n_results; k++) {
		sw_id value =
			k < op->n_operands ? op->operands[k] : op->first_result + (k - op->n_operands);
		bytes += sw_layout_local_bytes(atoms, sw_value_shape(p->program, value), &layouts[k]);
	}
	return bytes;
}

static bool try_op(sw_planner *p, const sw_mesh *mesh, sw_id op_id, const sw_candidate *c, growing *g)
{
	const sw_op *op = sw_op_at(p->program, op_id);
	const sw_atoms *atoms = &p->cluster->atoms;
	sw_strategy strategy;
	sw_program_cost cost;
	sw_layout *results = g->layouts + op->n_operands;
	if (!sw_candidate_strategy(atoms, mesh, p->rules[op_id], c, &strategy) ||
	    !sw_rule_layouts(p->program, op_id, p->rules[op_id], atoms, &strategy, g->layouts, results) ||
	    !sw_price_local(p, op_id, &strategy, g->layouts, &cost))
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_vec_push(&g->in, sw_layouts_id(&p->layouts, &g->layouts[k]));
	for (uint32_t k = 0; k < op->n_results; k++)
		sw_vec_push(&g->out, sw_layouts_id(&p->layouts, &results[k]));
	sw_vec_push(&g->seconds, cost.step_time_s);
	sw_vec_push(&g->temporary_bytes,
	            SW_MAX(cost.peak_bytes - held_bytes(p, op, g->layouts), INT64_C(0)));
	return true;
}

/* False where axes are partial in two ways. */
static bool place_partial(const sw_mesh *mesh, const sw_candidate *c, sw_layout *layout)
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

static bool try_layout(sw_planner *p, const sw_mesh *mesh, sw_shape shape, const sw_candidate *c,
                       growing *g)
{
	sw_layout layout = sw_layout_replicated(&p->cluster->atoms);
	layout_place place = {&p->cluster->atoms, &layout};
	if (!place_partial(mesh, c, &layout) || !place_axes(mesh, c, place_in_layout, &place) ||
	    !sw_layout_valid(&p->cluster->atoms, shape, &layout))
		return false;
	uint32_t id = sw_layouts_id(&p->layouts, &layout);
	sw_vec_push(&g->in, id);
	sw_vec_push(&g->out, id);
	sw_vec_push(&g->seconds, 0.0);
	return true;
}

static void try_candidate(sw_planner *p, const sw_mesh *mesh, sw_site_kind kind, uint32_t index,
                          sw_candidate c, growing *g)
{
	bool ok = kind == SW_SITE_OP
	                  ? try_op(p, mesh, index, &c, g)
	                  : try_layout(p, mesh, sw_value_shape(p->program, site_value(p, kind, index)), &c,
	                               g);
	if (ok)
		sw_vec_push(&g->candidates, c);
}

static sw_profile profile_make(sw_planner *p, const sw_mesh *mesh, sw_site_kind kind, uint32_t index,
                               const options *o)
{
	growing g = {0};
	sw_profile profile = {.n_in = 1, .n_out = 1};
	if (kind == SW_SITE_OP) {
		profile.n_in = sw_op_at(p->program, index)->n_operands;
		profile.n_out = sw_op_at(p->program, index)->n_results;
		g.layouts = sw_alloc(sizeof(sw_layout) * (profile.n_in + profile.n_out + 1));
	}
	for (int32_t i = 0; i < o->n[0]; i++)
		for (int32_t j = 0; j < o->n[1]; j++)
			for (int32_t k = 0; k < o->n[2]; k++)
				try_candidate(p, mesh, kind, index,
				              (sw_candidate){{o->list[0][i], o->list[1][j], o->list[2][k]}},
				              &g);
	if (g.candidates.len == 0) /* what the role asks for does not divide here */
		try_candidate(p, mesh, kind, index, (sw_candidate){0}, &g);
	profile.n = (int32_t)g.candidates.len;
	profile.candidates =
		sw_arena_copy(&p->arena, g.candidates.data, sizeof(sw_candidate) * g.candidates.len);
	profile.in = sw_arena_copy(&p->arena, g.in.data, sizeof(uint32_t) * g.in.len);
	profile.out = sw_arena_copy(&p->arena, g.out.data, sizeof(uint32_t) * g.out.len);
	profile.seconds = sw_arena_copy(&p->arena, g.seconds.data, sizeof(double) * g.seconds.len);
	if (kind == SW_SITE_OP)
		profile.temporary_bytes = sw_arena_copy(&p->arena, g.temporary_bytes.data,
		                                        sizeof(int64_t) * g.temporary_bytes.len);
	sw_vec_clear(&g.candidates);
	sw_vec_clear(&g.in);
	sw_vec_clear(&g.out);
	sw_vec_clear(&g.seconds);
	sw_vec_clear(&g.temporary_bytes);
	free(g.layouts);
	return profile;
}

void sw_key_shape(sw_text *key, sw_shape shape)
{
	sw_text_add_n(key, (const char *)&shape.type, sizeof(shape.type));
	sw_text_add_n(key, (const char *)&shape.rank, sizeof(shape.rank));
	if (shape.rank > 0)
		sw_text_add_n(key, (const char *)shape.dims, sizeof(int64_t) * (size_t)shape.rank);
}

/* Computations that reduce alike are alike; any other is like itself alone, for it has its own price. */
static void key_op(const sw_planner *p, sw_id op_id, sw_text *key)
{
	const sw_op *op = sw_op_at(p->program, op_id);
	const uint32_t numbers[] = {op->opcode, op->n_operands, op->n_results, op->n_called};
	sw_text_add_n(key, (const char *)numbers, sizeof(numbers));
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_key_shape(key, sw_value_shape(p->program, op->operands[k]));
	for (uint32_t k = 0; k < op->n_results; k++)
		sw_key_shape(key, sw_value_shape(p->program, op->first_result + k));
	for (uint32_t k = 0; k < op->n_called; k++) {
		sw_monoid monoid = sw_computation_monoid(p->program, op->called[k]);
		const int32_t like[] = {(int32_t)monoid, monoid == SW_MONOID_NONE ? op->called[k] : 0};
		sw_text_add_n(key, (const char *)like, sizeof(like));
	}
	if (op->opcode != SW_OP_CONSTANT) /* all constants of a shape are alike */
		sw_attributes_key((sw_opcode)op->opcode, op->attrs, key);
}

int32_t sw_profile_of(sw_planner *p, const sw_mesh *mesh, sw_site_kind kind, uint32_t index)
{
	options o = {0};
	sw_text key = {0};
	site_options(p, mesh, kind, index, &o);
	char first[2] = {kind == SW_SITE_OP ? 'o' : 'v', (char)mesh->n_axes};
	sw_text_add_n(&key, first, sizeof(first));
	for (int32_t axis = 0; axis < SW_MAX_AXES; axis++) {
		sw_text_add_n(&key, (const char *)&mesh->axes[axis].atoms, sizeof(mesh->axes[axis].atoms));
		sw_text_add_n(&key, (const char *)&o.n[axis], sizeof(o.n[axis]));
		for (int32_t i = 0; i < o.n[axis]; i++) {
			const int64_t numbers[] = {o.list[axis][i].kind, o.list[axis][i].monoid,
			                           o.list[axis][i].index, o.list[axis][i].top};
			sw_text_add_n(&key, (const char *)numbers, sizeof(numbers));
		}
	}
	if (kind == SW_SITE_OP)
		key_op(p, index, &key);
	else
		sw_key_shape(&key, sw_value_shape(p->program, site_value(p, kind, index)));
	uint32_t next = (uint32_t)p->profiles.len;
	uint32_t number = sw_map_intern(&p->profile_index, key.data, key.len, next);
	if (number == next) {
		sw_profile profile = profile_make(p, mesh, kind, index, &o);
		p->left_out += o.left_out;
		sw_vec_push(&p->profiles, profile);
	}
	sw_text_clear(&key);
	return (int32_t)number;
}
