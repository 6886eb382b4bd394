/* Shrinking a failing trial: edits are tried one by one, and kept where the trial still fails. */
#include "model/model.h"
#include "partition/shrink_edit.h"

#include <stdlib.h>
#include <string.h>

/* ---- the decisions ---------------------------------------------------------------------- */

static void drop_atom_of_layout(sw_layout *layout, int32_t atom)
{
	for (int32_t a = atom; a + 1 < layout->n; a++)
		layout->state[a] = layout->state[a + 1];
	layout->state[--layout->n] = (sw_state){.kind = SW_STATE_B};
}

static uint32_t layout_after(const trial *t, const edit *e, uint32_t number, bool dropped,
                             bool may_be_partial, sw_plan *plan)
{
	sw_layout layout = *sw_plan_layout(t->plan, number);
	for (int32_t a = 0; a < layout.n; a++)
		if ((dropped && a == e->atom) ||
		    (!may_be_partial && layout.state[a].kind == SW_STATE_P))
			layout.state[a] = (sw_state){.kind = SW_STATE_B};
	if (e->kind == DROP_ATOM)
		drop_atom_of_layout(&layout, e->atom);
	if (!sw_layout_partial_atoms(&layout))
		layout.monoid = SW_MONOID_NONE;
	return sw_layouts_id(&plan->layouts, &layout);
}

static void take_strategy(const trial *t, const edit *e, sw_id from, sw_strategy *to)
{
	*to = t->plan->strategies[from];
	if (e->kind == DROP_CHOICE && e->index == from)
		memset(&to->atom[e->atom], 0, sizeof(to->atom[0]));
	if (e->kind != DROP_ATOM)
		return;
	for (int32_t a = e->atom; a + 1 < to->n; a++)
		to->atom[a] = to->atom[a + 1];
	memset(&to->atom[--to->n], 0, sizeof(to->atom[0]));
}

static bool decide_op(const trial *t, const edit *e, const rebuilt *r, sw_id id, sw_plan *plan)
{
	const sw_op *op = sw_op_at(plan->program, id);
	bool input = op->opcode == SW_OP_PARAMETER && op->computation == plan->program->entry;
	if (r->op_from.data[id] != SW_NO_ID && !input)
		take_strategy(t, e, r->op_from.data[id], &plan->strategies[id]);
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_id v = op->first_result + k, from = r->value_from.data[v];
		bool dropped = e->kind == DROP_STATE && e->index == from;
		if (from != SW_NO_ID)
			plan->produced[v] =
				layout_after(t, e, t->plan->produced[from], dropped, !input, plan);
	}
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	bool ok = sw_plan_op_layouts(plan, id, layouts, layouts + op->n_operands);
	for (uint32_t k = 0; ok && k < op->n_results; k++)
		plan->produced[op->first_result + k] =
			sw_layouts_id(&plan->layouts, &layouts[op->n_operands + k]);
	free(layouts);
	return ok;
}

static void decide_kept(const trial *t, const edit *e, const rebuilt *r, sw_id v, sw_plan *plan)
{
	sw_id from = r->value_from.data[v];
	plan->materialised[v] = plan->produced[v];
	if (from == SW_NO_ID || t->plan->materialised[from] == t->plan->produced[from] ||
	    (e->kind == DROP_MATERIALISED && e->index == from))
		return;
	plan->materialised[v] = layout_after(t, e, t->plan->materialised[from], false, true, plan);
}

/* All values of a boundary have one layout, whichever of them the edit named. */
static void decide_boundaries(sw_plan *plan)
{
	sw_sidecar sidecar;
	sw_roles roles;
	sw_sidecar_default(plan->program, &sidecar);
	sw_roles_init(&roles, plan->program, &sidecar);
	for (size_t i = 0; i < roles.boundaries.len; i++) {
		const sw_boundary *boundary = &roles.boundaries.data[i];
		for (uint32_t k = 0; k + 1 < boundary->n_values; k++) /* the result comes last */
			plan->produced[boundary->values[k]] =
				plan->produced[boundary->values[boundary->n_values - 1]];
	}
	sw_roles_clear(&roles);
	sw_sidecar_clear(&sidecar);
}

static sw_plan *plan_after(const trial *t, const edit *e, const rebuilt *r,
                           const sw_cluster *cluster)
{
	sw_plan *plan = sw_plan_new(r->out, "", cluster);
	bool *planned = sw_alloc(r->out->computations.len + 1);
	bool ok = true;
	sw_mark_planned(r->out, r->out->entry, planned);
	for (sw_id id = 0; id < r->out->ops.len && ok; id++)
		if (planned[sw_op_at(r->out, id)->computation])
			ok = decide_op(t, e, r, id, plan);
	decide_boundaries(plan);
	for (sw_id v = 0; v < r->out->values.len && ok; v++)
		if (planned[sw_op_at(r->out, r->out->values.data[v].op)->computation])
			decide_kept(t, e, r, v, plan);
	for (uint32_t i = 0; i < plan->n_outputs; i++) {
		uint32_t from = r->outputs.data[i];
		bool dropped = e->kind == DROP_STATE && e->index == r->in->values.len + from;
		plan->outputs[i] = layout_after(t, e, t->plan->outputs[from], dropped, false, plan);
	}
	free(planned);
	if (ok)
		return plan;
	sw_plan_free(plan);
	return NULL;
}

#define MAX_SECONDS 40 /* seconds after which the trial is printed as small as it is by then */

/* ---- the trial -------------------------------------------------------------------------- */

typedef struct shrinker {
	trial *trial;
	outcome *outcome;
	sw_tensor *values; /* per value of the program: its value on one device */
	size_t n_values;
	double begin_s;
} shrinker;

static void clear_values(shrinker *s)
{
	for (size_t v = 0; v < s->n_values; v++)
		if (s->values[v].buffer)
			sw_tensor_drop(&s->values[v]);
	free(s->values);
	s->values = NULL;
	s->n_values = 0;
}

/* Record the values of the entry, inputs included. */
static bool record_values(shrinker *s)
{
	const sw_program *p = s->trial->plan->program;
	sw_arena arena;
	const sw_id *inputs;
	sw_error err;
	clear_values(s);
	s->n_values = p->values.len;
	s->values = sw_alloc(sizeof(sw_tensor) * (s->n_values + 1));
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * (sw_entry(p)->results.len + 1));
	bool ok = trial_serial(s->trial, outputs, s->values, &err) == SW_OK;
	for (size_t i = 0; i < sw_entry(p)->results.len; i++)
		if (outputs[i].buffer)
			sw_tensor_drop(&outputs[i]);
	free(outputs);
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(p, p->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n; i++)
		if (!s->values[inputs[i]].buffer)
			s->values[inputs[i]] = sw_tensor_keep(s->trial->inputs[i]);
	sw_arena_clear(&arena);
	return ok;
}

/* Make a cluster in which each remaining atom is a level of its own. */
static void make_smaller_cluster(const sw_atoms *atoms, int32_t dropped, trial *t)
{
	sw_text text = {0};
	for (int32_t a = 0; a < atoms->n; a++)
		if (a != dropped)
			sw_text_addf(&text, "%s%d", text.len ? "," : "", (int)atoms->size[a]);
	t->own_cluster = sw_alloc(sizeof(*t->own_cluster));
	make_cluster(text.data, t->own_cluster);
	t->paths = sw_plan_paths(t->own_cluster, NULL, 0);
	sw_text_clear(&text);
}

static bool take_inputs(const shrinker *s, const rebuilt *r, trial *t)
{
	t->n_inputs = (uint32_t)r->inputs.len;
	t->inputs = sw_alloc(sizeof(sw_tensor) * (t->n_inputs + 1));
	for (uint32_t i = 0; i < t->n_inputs; i++) {
		if (!s->values[r->inputs.data[i]].buffer) {
			t->n_inputs = i;
			return false;
		}
		t->inputs[i] = sw_tensor_keep(s->values[r->inputs.data[i]]);
		t->inputs[i].shape = sw_value_shape(r->out, r->value[r->inputs.data[i]]);
	}
	t->errors = sw_alloc(sizeof(double) * (r->outputs.len + 1));
	for (size_t i = 0; i < r->outputs.len; i++)
		t->errors[i] = s->trial->errors[r->outputs.data[i]];
	return true;
}

static bool make_edited(const shrinker *s, const edit *e, trial *t)
{
	rebuilt r;
	sw_error err;
	const sw_cluster *cluster = s->trial->plan->cluster;
	rebuild(&r, s->trial->plan->program, e);
	if (e->kind == DROP_ATOM) {
		make_smaller_cluster(&cluster->atoms, e->atom, t);
		cluster = t->own_cluster;
	}
	if (sw_program_verify(r.out, &err) == SW_OK)
		t->plan = plan_after(s->trial, e, &r, cluster);
	else
		sw_program_free(r.out);
	bool made = t->plan && take_inputs(s, &r, t);
	rebuilt_clear(&r);
	return made;
}

/* Apply the edit; the new trial replaces this one if it fails in the same way. */
static bool try_edit(shrinker *s, edit e)
{
	trial t = {.paths = s->trial->paths};
	outcome o = {.verdict = EQUAL};
	if (make_edited(s, &e, &t))
		trial_run(&t, &o);
	if (o.verdict != s->outcome->verdict) {
		trial_clear(&t);
		return false;
	}
	/* pass ownership on */
	if (!t.own_cluster) {
		t.own_cluster = s->trial->own_cluster;
		s->trial->own_cluster = NULL;
	}
	trial_clear(s->trial);
	*s->trial = t;
	*s->outcome = o;
	record_values(s);
	return true;
}

/* Return the number of indices that an edit of this kind has now. */
static uint32_t count_places(const shrinker *s, edit_kind kind)
{
	const sw_program *p = s->trial->plan->program;
	switch (kind) {
	case DROP_OUTPUT:
		return sw_entry(p)->results.len > 1 ? (uint32_t)sw_entry(p)->results.len : 0;
	case CUT_OP:
	case CUT_INNER:
	case UNROLL_ONCE:
	case DROP_CHOICE:
		return (uint32_t)p->ops.len;
	case DROP_MATERIALISED:
		return (uint32_t)p->values.len;
	case DROP_STATE:
		return (uint32_t)(p->values.len + sw_entry(p)->results.len);
	default:
		return s->trial->plan->cluster->atoms.n > 1 ? 1 : 0;
	}
}

/* Ops of reducers and comparators stay, since they define the op that calls them. */
static bool may_be_cut(const sw_program *p, const sw_op *op, bool of_entry)
{
	if (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_CONSTANT)
		return false;
	if (of_entry || op->computation == p->entry)
		return of_entry && op->computation == p->entry;
	bool *planned = sw_alloc(p->computations.len + 1);
	sw_mark_planned(p, p->entry, planned);
	bool inside = planned[op->computation];
	free(planned);
	return inside;
}

static bool is_applicable(const shrinker *s, const edit *e)
{
	const sw_plan *plan = s->trial->plan;
	const sw_program *p = plan->program;
	if (e->kind == CUT_OP || e->kind == CUT_INNER)
		return may_be_cut(p, sw_op_at(p, e->index), e->kind == CUT_OP);
	if (e->kind == UNROLL_ONCE)
		return sw_op_at(p, e->index)->opcode == SW_OP_WHILE ||
		       sw_op_at(p, e->index)->opcode == SW_OP_CONDITIONAL;
	if (e->kind == DROP_CHOICE)
		return plan->strategies[e->index].atom[e->atom].kind != SW_CHOICE_NONE;
	if (e->kind == DROP_MATERIALISED)
		return plan->materialised[e->index] != plan->produced[e->index];
	if (e->kind == DROP_STATE) {
		uint32_t layout = e->index < p->values.len
		                          ? plan->produced[e->index]
		                          : plan->outputs[e->index - p->values.len];
		return sw_plan_layout(plan, layout)->state[e->atom].kind != SW_STATE_B;
	}
	return true;
}

static bool try_kind(shrinker *s, edit_kind kind)
{
	bool any = false;
	bool by_atom = kind == DROP_CHOICE || kind == DROP_STATE || kind == DROP_ATOM;
	for (uint32_t back = 0; back < count_places(s, kind); back++)
		for (int32_t a = 0; a < (by_atom ? s->trial->plan->cluster->atoms.n : 1); a++) {
			uint32_t n = count_places(s, kind);
			if (back >= n || sw_now_s() - s->begin_s > MAX_SECONDS)
				break;
			edit e = {.kind = kind, .index = n - 1 - back, .atom = a};
			any |= is_applicable(s, &e) && try_edit(s, e);
		}
	return any;
}

/* Drop the unpadded program if the padded one fails when it is compared with itself, too; otherwise
 * the trial can't be made smaller. */
static bool drop_padding(trial *t, outcome *o)
{
	outcome after;
	sw_program *unpadded = t->plan->original;
	if (!unpadded)
		return true;
	t->plan->original = NULL;
	trial_run(t, &after);
	if (after.verdict != o->verdict) {
		t->plan->original = unpadded;
		return false;
	}
	sw_program_free(unpadded);
	*o = after;
	return true;
}

void shrink(trial *t, outcome *o)
{
	shrinker s = {.trial = t, .outcome = o, .begin_s = sw_now_s()};
	bool any = o->verdict != UNPLANNED && drop_padding(t, o) && record_values(&s);
	for (int round = 0; any && round < 8; round++) {
		any = false;
		for (int kind = 0; kind < EDIT_KIND_COUNT; kind++)
			any |= try_kind(&s, (edit_kind)kind);
	}
	clear_values(&s);
}
