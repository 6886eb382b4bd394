/*
 * Unequal shares: the microbatches of a step, divided among parts of the cluster.
 *
 * Under a plan of one part, with all of the batch in microbatches, the parts would do the same. Of
 * the iterations of each loop of microbatches a part executes a run of its own instead; so what a
 * loop sums up is, after it, a partial sum over the parts, and what it stores is one of arrays that
 * are zero elsewhere. All else is as it was. The atoms of the parts are the outermost ones, and no
 * layout of the plan has a state but B on them.
 */
#include <string.h>

#include "plan/plan.h"

/* ---- the parts -------------------------------------------------------------------------- */

/* Return how many of the outermost atoms have n combinations; -1: none do. */
static int32_t count_atoms(const sw_atoms *atoms, int64_t n)
{
	int64_t parts = 1;
	int32_t a = 0;
	while (a < atoms->n && parts < n)
		parts *= atoms->size[a++];
	return parts == n ? a : -1;
}

uint32_t sw_plan_share_atoms(const sw_plan *plan)
{
	int32_t n = plan->shares.n ? count_atoms(&plan->cluster->atoms, plan->shares.n) : 0;
	return n > 0 ? (UINT32_C(1) << n) - 1 : 0;
}

void sw_plan_iterations(const sw_plan *plan, int64_t device, int64_t *first, int64_t *end)
{
	*first = 0;
	*end = plan->rewrites.microbatches;
	if (!plan->shares.n)
		return;
	int64_t part = device / (plan->cluster->n_devices / plan->shares.n);
	for (int64_t p = 0; p < part; p++)
		*first += plan->shares.v[p];
	*end = *first + plan->shares.v[part];
}

/* ---- loops ------------------------------------------------------------------------------ */

bool sw_plan_changes_loop(const sw_plan *plan, sw_id id)
{
	const sw_op *op = sw_op_at(plan->program, id);
	return (plan->shares.n || plan->last_apart) && op->computation == plan->program->entry &&
	       sw_is_microbatch_loop(op);
}

sw_monoid sw_loop_sum(const sw_program *program, const sw_op *loop, uint32_t k)
{
	const sw_computation *body = &program->computations.data[loop->called[1]];
	sw_id value = body->results.data[k],
	      carried = sw_op_at(program, body->parameters.data[0])->first_result + k;
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	bool is_pred = sw_value_shape(program, value).type == SW_PRED, reads = false;
	if (value == carried)
		return SW_MONOID_NONE;
	for (uint32_t i = 0; i < op->n_operands; i++)
		reads = reads || op->operands[i] == carried;
	if (!reads)
		return SW_MONOID_PRODUCT;
	switch (op->opcode) {
	case SW_OP_ADD:
	case SW_OP_DYNAMIC_UPDATE_SLICE:
		return is_pred ? SW_MONOID_OR : SW_MONOID_SUM;
	case SW_OP_SCATTER:
		return sw_computation_monoid(program, op->called[0]) == SW_MONOID_SUM
		               ? SW_MONOID_SUM
		               : SW_MONOID_PRODUCT;
	case SW_OP_MAXIMUM:
		return is_pred ? SW_MONOID_OR : SW_MONOID_MAX;
	case SW_OP_MINIMUM:
		return is_pred ? SW_MONOID_AND : SW_MONOID_MIN;
	case SW_OP_AND:
		return SW_MONOID_AND;
	case SW_OP_OR:
		return SW_MONOID_OR;
	default:
		return SW_MONOID_PRODUCT;
	}
}

/* ---- checking --------------------------------------------------------------------------- */

static bool is_apart(const sw_layout *layout, uint32_t atoms)
{
	return !((sw_layout_partial_atoms(layout) | sw_layout_split_atoms(layout, -1) |
	          sw_layout_owned_atoms(layout)) &
	         atoms);
}

/* Has no layout of the plan, and no strategy, anything on the atoms of the parts? */
static bool all_apart(const sw_plan *plan, uint32_t atoms)
{
	for (size_t i = 0; i < plan->layouts.items.len; i++)
		if (!is_apart(&plan->layouts.items.data[i], atoms))
			return false;
	for (size_t i = 0; i < plan->program->ops.len; i++)
		for (int32_t a = 0; a < plan->strategies[i].n; a++)
			if ((atoms >> a & 1) && plan->strategies[i].atom[a].kind)
				return false;
	return true;
}

static sw_status check_loops(const sw_plan *plan, sw_error *err)
{
	const sw_program *program = plan->program;
	const sw_computation *entry = sw_entry(program);
	bool any = false;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(program, entry->ops.data[i]);
		if (!sw_plan_changes_loop(plan, entry->ops.data[i]))
			continue;
		any = true;
		for (uint32_t k = 1; k < op->n_results; k++)
			if (sw_loop_sum(program, op, k) == SW_MONOID_PRODUCT)
				return sw_fail(err, SW_ERR_INPUT,
				               "shares: result %u of '%s' is no sum over the "
				               "microbatches",
				               k, op->name);
	}
	return any ? SW_OK
	           : sw_fail(err, SW_ERR_INPUT,
	                     "shares: the program has no loop over microbatches");
}

/* A loop without its last iteration has one at least. */
static sw_status check_apart(const sw_plan *plan, sw_error *err)
{
	int64_t least = plan->shares.n ? plan->shares.v[0] : plan->rewrites.microbatches;
	for (int32_t p = 1; p < plan->shares.n; p++)
		least = SW_MIN(least, plan->shares.v[p]);
	return !plan->last_apart || least >= 2
	               ? SW_OK
	               : sw_fail(err, SW_ERR_INPUT,
	                         "last_apart: each device needs at least two microbatches");
}

sw_status sw_plan_check_shares(const sw_plan *plan, sw_error *err)
{
	int64_t sum = 0;
	SW_TRY(check_apart(plan, err));
	if (!plan->shares.n)
		return SW_OK;
	for (int32_t p = 0; p < plan->shares.n; p++) {
		if (plan->shares.v[p] < 1)
			return sw_fail(err, SW_ERR_INPUT,
			               "shares: each part takes at least one microbatch");
		sum += plan->shares.v[p];
	}
	if (sum != plan->rewrites.microbatches)
		return sw_fail(err, SW_ERR_INPUT,
		               "shares: they add up to %lld microbatches, and the plan has %d",
		               (long long)sum, SW_MAX(plan->rewrites.microbatches, 1));
	if (!sw_plan_share_atoms(plan))
		return sw_fail(err, SW_ERR_INPUT,
		               "shares: the cluster does not divide into %d equal parts from "
		               "outside",
		               plan->shares.n);
	if (plan->forms.n)
		return sw_fail(err, SW_ERR_INPUT,
		               "shares: not with variables in parts, with owners or with codecs");
	if (!all_apart(plan, sw_plan_share_atoms(plan)))
		return sw_fail(err, SW_ERR_INPUT,
		               "shares: a layout is split over the parts that share the batch");
	return check_loops(plan, err);
}

/* ---- from one part to the whole --------------------------------------------------------- */

static void lift_layouts(sw_plan *plan, const sw_atoms *atoms, int32_t shift)
{
	size_t n = plan->layouts.items.len;
	sw_layout *items = sw_alloc((n + 1) * sizeof(*items));
	for (size_t i = 0; i < n; i++) {
		const sw_layout *from = &plan->layouts.items.data[i];
		items[i] = sw_layout_replicated(atoms);
		items[i].monoid = from->monoid;
		for (int32_t a = 0; a < from->n; a++)
			items[i].state[a + shift] = from->state[a];
	}
	sw_layouts_set(&plan->layouts, items, n);
	free(items);
}

static void lift_strategies(sw_plan *plan, const sw_atoms *atoms, int32_t shift)
{
	for (size_t i = 0; i < plan->program->ops.len; i++) {
		sw_strategy from = plan->strategies[i];
		plan->strategies[i] = sw_strategy_none(atoms);
		for (int32_t a = 0; a < from.n; a++)
			plan->strategies[i].atom[a + shift] = from.atom[a];
	}
}

/* The parts are an axis, too, so that what is sent between them is planned with the rest. */
static void lift_axes(sw_plan *plan, int32_t shift, int64_t parts)
{
	for (int32_t i = plan->n_axes++; i > 0; i--) {
		plan->axes[i] = plan->axes[i - 1];
		plan->axes[i].atoms <<= shift;
	}
	plan->axes[0] =
		(sw_axis){.atoms = (UINT32_C(1) << shift) - 1, .size = parts, .name = "share"};
}

sw_status sw_plan_share(sw_plan *plan, const sw_cluster *whole, sw_ints shares, sw_error *err)
{
	const sw_atoms *atoms = &plan->cluster->atoms;
	int32_t shift = whole->atoms.n - atoms->n;
	if (shift < 1 || count_atoms(&whole->atoms, shares.n) != shift ||
	    memcmp(atoms->size, whole->atoms.size + shift, sizeof(*atoms->size) * (size_t)atoms->n))
		return sw_fail(err, SW_ERR_INTERNAL, "shares: the plan is not of a part");
	if (plan->n_axes == SW_MAX_AXES)
		return sw_fail(err, SW_ERR_INPUT, "shares: the plan has %d axes already",
		               plan->n_axes);
	lift_layouts(plan, &whole->atoms, shift);
	lift_strategies(plan, &whole->atoms, shift);
	lift_axes(plan, shift, shares.n);
	plan->cluster = whole;
	plan->shares = (sw_ints){shares.n, sw_arena_copy(&plan->arena, shares.v,
	                                                 sizeof(*shares.v) * (size_t)shares.n)};
	return sw_plan_check_shares(plan, err);
}

void sw_shares_print(const sw_plan *plan, sw_text *text)
{
	for (int32_t p = 0; p < plan->shares.n; p++)
		sw_text_addf(text, "%s%lld", p ? ":" : "shares ", (long long)plan->shares.v[p]);
}

/* ---- the file --------------------------------------------------------------------------- */

json_t *sw_shares_json(const sw_plan *plan)
{
	json_t *list = plan->shares.n ? json_array() : NULL;
	for (int32_t p = 0; p < plan->shares.n; p++)
		json_array_append_new(list, json_integer(plan->shares.v[p]));
	return list;
}

sw_status sw_shares_read(const json_t *list, sw_arena *arena, sw_ints *shares, sw_error *err)
{
	size_t n = json_array_size(list);
	*shares = (sw_ints){0};
	if (!list)
		return SW_OK;
	int64_t *v = SW_NEW_N(arena, int64_t, n + 1);
	bool good = json_is_array(list) && n > 0 && n <= INT32_MAX;
	for (size_t p = 0; good && p < n; p++) {
		v[p] = json_integer_value(json_array_get(list, p));
		good = v[p] >= 1 && v[p] <= INT32_MAX;
	}
	if (!good)
		return sw_fail(err, SW_ERR_INPUT,
		               "shares: expected a list of numbers of microbatches, of at least 1");
	*shares = (sw_ints){(int32_t)n, v};
	return SW_OK;
}
