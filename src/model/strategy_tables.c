/*
 * Strategy tables: the candidates of a decision under a mesh. A CANDIDATE is one option per axis,
 * together accepted by the rule. Decisions of equal op, shapes and options share one table.
 */
#include "model/internal.h"

#include <stdlib.h>

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

/* Return the owner's coordinate on an atom of an axis that it is the coordinate `on_axis` of. */
static int64_t owner_on(const sw_atoms *atoms, uint32_t axis, int32_t atom, int64_t on_axis)
{
	for (int32_t a = atoms->n - 1; a > atom; a--)
		if (axis >> a & 1)
			on_axis /= atoms->size[a];
	return on_axis % atoms->size[atom];
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
	for (int32_t axis = 0; axis < mesh->n_axes; axis++)
		for (int32_t a = 0; a < atoms->n && candidate->axis[axis].kind == SW_CHOICE_OWN;
		     a++)
			if (mesh->axes[axis].atoms >> a & 1)
				strategy->atom[a] = (sw_choice){
					.kind = SW_CHOICE_OWN,
					.stride = owner_on(atoms, mesh->axes[axis].atoms, a,
				                           candidate->axis[axis].top)};
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

static void set_owners(const sw_atoms *atoms, const sw_mesh *mesh, const sw_candidate *c,
                       sw_layout *layout)
{
	for (int32_t axis = 0; axis < mesh->n_axes; axis++)
		for (int32_t a = 0; a < layout->n && c->axis[axis].kind == SW_CHOICE_OWN; a++)
			if (mesh->axes[axis].atoms >> a & 1)
				layout->state[a] =
					(sw_state){.kind = SW_STATE_O,
				                   .stride = owner_on(atoms, mesh->axes[axis].atoms,
				                                      a, c->axis[axis].top)};
}

/* An input that arrives takes what its bytes take on the quickest link of a device, at least. */
static double arrival_s(const sw_cluster *cluster, sw_shape shape, const sw_layout *layout)
{
	return (double)sw_layout_local_bytes(&cluster->atoms, shape, layout) /
	       cluster->levels[cluster->n_levels - 1].bandwidth;
}

static bool arrives(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index)
{
	return kind == SW_DECISION_INPUT && analysis->roles.arrives[index];
}

static bool try_layout(sw_memo *memo, const sw_mesh *mesh, sw_shape shape, bool arriving,
                       const sw_candidate *c, table_builder *g)
{
	sw_layout layout = sw_layout_replicated(&memo->analysis->cluster->atoms);
	layout_target target = {&memo->analysis->cluster->atoms, &layout};
	set_owners(target.atoms, mesh, c, &layout);
	if (!set_partial(mesh, c, &layout) || !split_axes(mesh, c, split_layout, &target) ||
	    !sw_layout_valid(&memo->analysis->cluster->atoms, shape, &layout))
		return false;
	uint32_t id = sw_layouts_id(&memo->layouts, &layout);
	sw_vec_push(&g->in, id);
	sw_vec_push(&g->out, id);
	sw_vec_push(&g->seconds,
	            arriving ? arrival_s(memo->analysis->cluster, shape, &layout) : 0.0);
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
	                             arrives(memo->analysis, kind, index), &c, g);
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

/* Try all combinations of one option per axis that are near; the last axis varies fastest. near:
 * NULL: all are. */
static void try_all(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind, uint32_t index,
                    const sw_decision_options *o, const sw_near *near, table_builder *g)
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
		if ((!apart || !splits_twice(mesh, &c)) && (!near || sw_near_has(near, mesh, &c)))
			try_candidate(memo, mesh, kind, index, c, g);
	}
}

/* Let each axis also do nothing: the demanded splits divide by each axis alone, but not by all
 * together. */
static sw_decision_options with_none(const sw_decision_options *o)
{
	sw_decision_options looser = *o;
	for (int32_t axis = 0; axis < SW_MAX_AXES; axis++)
		if (looser.n[axis] == 0 || looser.list[axis][0].kind != SW_CHOICE_NONE)
			sw_options_add_none(&looser, axis);
	return looser;
}

static sw_strategy_table make_table(sw_memo *memo, const sw_mesh *mesh, sw_decision_kind kind,
                                    uint32_t index, const sw_decision_options *o,
                                    const sw_near *near)
{
	table_builder g = {0};
	sw_strategy_table table = {.n_in = 1, .n_out = 1};
	if (kind == SW_DECISION_OP) {
		table.n_in = sw_op_at(memo->analysis->program, index)->n_operands;
		table.n_out = sw_op_at(memo->analysis->program, index)->n_results;
		g.layouts = sw_alloc(sizeof(sw_layout) * (table.n_in + table.n_out + 1));
	}
	try_all(memo, mesh, kind, index, o, near, &g);
	if (g.candidates.len == 0 && near) /* a pin is not near the plan */
		try_all(memo, mesh, kind, index, o, NULL, &g);
	if (g.candidates.len == 0) {
		sw_decision_options looser = with_none(o);
		try_all(memo, mesh, kind, index, &looser, NULL, &g);
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
	sw_decision_options o = sw_options_of(memo->analysis, mesh, SW_DECISION_OP, op);
	double n = 1;
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

int32_t sw_strategy_table_of(sw_memo *memo, const sw_mesh *mesh, const sw_near_plan *plan,
                             sw_decision_kind kind, uint32_t index)
{
	sw_decision_options o = sw_options_of(memo->analysis, mesh, kind, index);
	sw_near near = {0};
	sw_text key = {0};
	char first[] = {kind == SW_DECISION_OP ? 'o' : 'v', (char)mesh->n_axes,
	                keeps_apart(memo->analysis, kind, index),
	                arrives(memo->analysis, kind, index)};
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
	if (plan) {
		near = sw_near_decision(memo->analysis, mesh, plan, kind, index);
		sw_text_add_n(&key, (const char *)&near, sizeof(near));
	}
	uint32_t next = (uint32_t)memo->tables.len;
	uint32_t number = sw_map_intern(&memo->table_index, key.data, key.len, next);
	if (number == next) {
		sw_strategy_table table = make_table(memo, mesh, kind, index, &o, plan ? &near : NULL);
		memo->left_out += o.left_out;
		sw_vec_push(&memo->tables, table);
	}
	sw_text_clear(&key);
	return (int32_t)number;
}
