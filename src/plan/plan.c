/*
 * The plan object: make, free, query and check it.
 */
#include "plan/carry.h"

#include <string.h>
#include <stdlib.h>

sw_plan *sw_plan_new(sw_program *canonical, const char *program_path, const sw_cluster *cluster)
{
	sw_plan *plan = sw_alloc(sizeof(*plan));
	sw_arena_init(&plan->arena);
	plan->program = canonical;
	plan->cluster = cluster;
	plan->program_path = sw_arena_text(&plan->arena, program_path ? program_path : "");
	size_t ops = canonical->ops.len, values = canonical->values.len;
	plan->rules = SW_NEW_N(&plan->arena, const sw_rule *, ops + 1);
	plan->strategies = SW_NEW_N(&plan->arena, sw_strategy, ops + 1);
	plan->produced = SW_NEW_N(&plan->arena, uint32_t, values + 1);
	plan->materialised = SW_NEW_N(&plan->arena, uint32_t, values + 1);
	plan->n_outputs = (uint32_t)sw_entry(canonical)->results.len;
	plan->outputs = SW_NEW_N(&plan->arena, uint32_t, plan->n_outputs + 1);
	for (size_t i = 0; i < ops; i++) {
		plan->rules[i] = sw_rule_make(canonical, (sw_id)i, &plan->arena);
		plan->strategies[i] = sw_strategy_none(&cluster->atoms);
	}
	sw_layout whole = sw_layout_replicated(&cluster->atoms);
	sw_layouts_id(&plan->layouts, &whole);
	return plan;
}

void sw_plan_free(sw_plan *plan)
{
	if (!plan)
		return;
	sw_program_free(plan->program);
	sw_program_free(plan->original);
	sw_program_free(plan->undivided);
	sw_vec_clear(&plan->padded);
	sw_vec_clear(&plan->regathered);
	sw_layouts_clear(&plan->layouts);
	sw_vec_clear(&plan->alternatives);
	sw_vec_clear(&plan->warnings);
	sw_arena_clear(&plan->arena);
	free(plan);
}

sw_plan *sw_plan_sketch(const sw_plan *plan)
{
	sw_plan *sketch = sw_alloc(sizeof(*sketch));
	*sketch = (sw_plan){.program = plan->program,
	                    .cluster = plan->cluster,
	                    .paths = plan->paths,
	                    .rules = plan->rules,
	                    .strategy = plan->strategy,
	                    .n_outputs = plan->n_outputs,
	                    .merge = plan->merge,
	                    .sending = plan->sending,
	                    .memory_bytes = plan->memory_bytes,
	                    .passes = plan->passes,
	                    .schedule_limits = plan->schedule_limits};
	sw_arena_init(&sketch->arena);
	size_t ops = plan->program->ops.len, values = plan->program->values.len;
	sketch->strategies =
		sw_arena_copy(&sketch->arena, plan->strategies, sizeof(sw_strategy) * (ops + 1));
	sketch->produced =
		sw_arena_copy(&sketch->arena, plan->produced, sizeof(uint32_t) * (values + 1));
	sketch->materialised =
		sw_arena_copy(&sketch->arena, plan->materialised, sizeof(uint32_t) * (values + 1));
	sketch->outputs = sw_arena_copy(&sketch->arena, plan->outputs,
	                                sizeof(uint32_t) * (plan->n_outputs + 1));
	sw_layouts_copy(&sketch->layouts, &plan->layouts);
	return sketch;
}

void sw_plan_sketch_free(sw_plan *sketch)
{
	if (!sketch)
		return;
	sw_layouts_clear(&sketch->layouts);
	sw_vec_clear(&sketch->regathered);
	sw_arena_clear(&sketch->arena);
	free(sketch);
}

static const sw_op *parameter_of(const sw_program *program, int32_t c)
{
	return sw_op_at(program, program->computations.data[c].parameters.data[0]);
}

/* The operands of a loop have the layouts of its results; those of a conditional, the layouts of
 * the parameters of its branches, one branch after the other. */
static void region_operands(const sw_plan *plan, const sw_op *op, sw_layout *operands)
{
	uint32_t n = 0;
	while (op->opcode == SW_OP_WHILE && n < op->n_operands) {
		operands[n] = *sw_plan_layout(plan, plan->produced[op->first_result + n]);
		n++;
	}
	if (op->opcode == SW_OP_WHILE)
		return;
	operands[n++] = sw_layout_replicated(&plan->cluster->atoms);
	for (uint32_t k = 0; k < op->n_called; k++) {
		const sw_op *parameter = parameter_of(plan->program, op->called[k]);
		for (uint32_t i = 0; i < parameter->n_results; i++)
			operands[n++] =
				*sw_plan_layout(plan, plan->produced[parameter->first_result + i]);
	}
}

const uint32_t *sw_plan_called_results(const sw_plan *plan, const sw_op *op, uint32_t k)
{
	static const uint32_t whole = 0;
	bool decides = op->opcode == SW_OP_WHILE && k == 0;
	return decides ? &whole : &plan->produced[op->first_result];
}

bool sw_plan_op_layouts(const sw_plan *plan, sw_id op_id, sw_layout *operands, sw_layout *results)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	if (!sw_is_region(op) && op->opcode != SW_OP_PARAMETER)
		return sw_rule_layouts(plan->program, op_id, plan->rules[op_id],
		                       &plan->cluster->atoms, &plan->strategies[op_id], operands,
		                       results);
	for (uint32_t k = 0; k < op->n_results; k++)
		results[k] = *sw_plan_layout(plan, plan->produced[op->first_result + k]);
	if (sw_is_region(op))
		region_operands(plan, op, operands);
	return true;
}

/* ---- checking --------------------------------------------------------------------------- */

bool sw_plan_can_become(const sw_plan *plan, sw_id value, const sw_layout *from,
                        const sw_layout *to)
{
	sw_shape shape = sw_value_shape(plan->program, value);
	return sw_layout_valid(&plan->cluster->atoms, shape, to) &&
	       (to->monoid == SW_MONOID_NONE || to->monoid == from->monoid ||
	        (from->monoid == SW_MONOID_NONE &&
	         sw_rule_splittable(shape.type, to->monoid) == to->monoid));
}

static bool can_read(const sw_plan *plan, sw_id value, const sw_layout *as)
{
	return sw_plan_can_become(plan, value, sw_plan_layout(plan, plan->materialised[value]), as);
}

static bool fits_op(const sw_plan *plan, sw_id op_id, sw_layout *operands, sw_layout *results)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	bool ok = sw_plan_op_layouts(plan, op_id, operands, results);
	for (uint32_t k = 0; ok && k < op->n_operands; k++)
		ok = can_read(plan, op->operands[k], &operands[k]);
	for (uint32_t k = 0; ok && k < op->n_results; k++) {
		const sw_layout *planned =
			sw_plan_layout(plan, plan->produced[op->first_result + k]);
		ok = sw_layout_equal(planned, &results[k]) &&
		     sw_layout_valid(&plan->cluster->atoms,
		                     sw_value_shape(plan->program, op->first_result + k), planned);
	}
	return ok;
}

/* Do the values that a loop carries have the same layouts in its condition, in its body and after
 * it? */
static bool loop_layouts_agree(const sw_plan *plan, const sw_op *loop)
{
	for (uint32_t c = 0; c < loop->n_called; c++) {
		sw_id inside = parameter_of(plan->program, loop->called[c])->first_result;
		for (uint32_t k = 0; k < loop->n_results; k++)
			if (plan->produced[inside + k] != plan->produced[loop->first_result + k])
				return false;
	}
	return true;
}

static bool fits_region(const sw_plan *plan, const sw_op *op)
{
	bool ok = op->opcode != SW_OP_WHILE || loop_layouts_agree(plan, op);
	for (uint32_t c = 0; c < op->n_called; c++) {
		const sw_computation *called = &plan->program->computations.data[op->called[c]];
		const uint32_t *layouts = sw_plan_called_results(plan, op, c);
		for (size_t i = 0; ok && i < called->results.len; i++)
			ok = can_read(plan, called->results.data[i],
			              sw_plan_layout(plan, layouts[i]));
	}
	return ok;
}

bool sw_plan_op_may_be_owned(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	bool tokens = false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		tokens = tokens || sw_value_shape(program, op->operands[k]).type == SW_TOKEN;
	for (uint32_t k = 0; k < op->n_results; k++)
		tokens = tokens || sw_value_shape(program, op->first_result + k).type == SW_TOKEN;
	return op->computation == program->entry && op->n_operands > 0 && !tokens &&
	       !sw_is_region(op);
}

bool sw_plan_op_fits(const sw_plan *plan, sw_id op_id)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	if (sw_strategy_has_owner(&plan->strategies[op_id]) && !sw_plan_op_may_be_owned(plan->program, op_id))
		return false;
	sw_layout *layouts = sw_alloc(sizeof(sw_layout) * (op->n_operands + op->n_results + 1));
	bool ok = fits_op(plan, op_id, layouts, layouts + op->n_operands) &&
	          (!sw_is_region(op) || fits_region(plan, op));
	free(layouts);
	return ok;
}

static sw_status check_op(const sw_plan *plan, sw_id op_id, sw_error *err)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	return sw_plan_op_fits(plan, op_id)
	               ? SW_OK
	               : sw_fail(err, SW_ERR_INTERNAL, "plan: op '%s' has an impossible strategy",
	                         op->name);
}

/* A redistribution may leave partial sums, but only under a monoid that the element type
 * supports. */
static sw_status check_materialised(const sw_plan *plan, sw_error *err)
{
	const sw_program *program = plan->program;
	for (sw_id v = 0; v < program->values.len; v++)
		if (!sw_plan_can_become(plan, v, sw_plan_layout(plan, plan->produced[v]),
		                        sw_plan_layout(plan, plan->materialised[v])))
			return sw_fail(
				err, SW_ERR_INTERNAL,
				"plan: a result of '%s' can't be moved to its materialised layout",
				sw_op_at(program, program->values.data[v].op)->name);
	return SW_OK;
}

static sw_status check_entry_layouts(const sw_plan *plan, const sw_id *inputs, uint32_t n_inputs,
                                     sw_error *err)
{
	for (uint32_t i = 0; i < n_inputs; i++)
		if (sw_plan_layout(plan, plan->produced[inputs[i]])->monoid != SW_MONOID_NONE)
			return sw_fail(err, SW_ERR_INTERNAL, "plan: input %u is a partial sum", i);
	for (uint32_t i = 0; i < plan->n_outputs; i++)
		if (sw_plan_layout(plan, plan->outputs[i])->monoid != SW_MONOID_NONE)
			return sw_fail(err, SW_ERR_INTERNAL, "plan: output %u is a partial sum", i);
	return SW_OK;
}

static bool is_owned(const sw_plan *plan, uint32_t layout)
{
	return sw_layout_owned_atoms(sw_plan_layout(plan, layout)) != 0;
}

/* Owners are known in the entry alone: what regions carry or compute is on all devices. */
static sw_status check_regions(const sw_plan *plan, sw_error *err)
{
	const sw_program *program = plan->program;
	for (sw_id v = 0; v < program->values.len; v++) {
		const sw_op *op = sw_op_at(program, program->values.data[v].op);
		bool inside = op->computation != program->entry;
		if (((inside || sw_is_region(op)) && is_owned(plan, plan->produced[v])) ||
		    (inside && is_owned(plan, plan->materialised[v])))
			return sw_fail(
				err, SW_ERR_INTERNAL,
				"plan: '%s', a loop's or in one, has a result that only some "
				"devices own",
				op->name);
	}
	return SW_OK;
}

/* A device that does not own an input has one without elements, and so has the
 * output that is its next value. */
static sw_status check_owned(const sw_plan *plan, const sw_id *inputs, uint32_t n_inputs,
                             sw_error *err)
{
	const sw_program *program = plan->program;
	for (uint32_t i = 0; i < n_inputs; i++) {
		const sw_value *value = &program->values.data[inputs[i]];
		bool may = value->shape.rank > 0 && sw_op_at(program, value->op)->n_results == 1;
		if (!may && is_owned(plan, plan->produced[inputs[i]]))
			return sw_fail(err, SW_ERR_INTERNAL,
			               "plan: some devices own input %u, which has no dimension or "
			               "no parameter of its own",
			               i);
	}
	bool *state = sw_alloc(plan->n_outputs + 1);
	for (size_t i = 0; i < program->aliases.len; i++)
		state[program->aliases.data[i].output] = true;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < plan->n_outputs && status == SW_OK; i++)
		if (!state[i] && is_owned(plan, plan->outputs[i]))
			status = sw_fail(err, SW_ERR_INTERNAL,
			                 "plan: some devices own output %u, which is no state", i);
	free(state);
	return status == SW_OK ? check_regions(plan, err) : status;
}

static sw_status check_aliases(const sw_plan *plan, sw_error *err)
{
	sw_arena arena;
	sw_arena_init(&arena);
	const sw_id *inputs;
	uint32_t n_inputs = sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	sw_status status = check_entry_layouts(plan, inputs, n_inputs, err);
	if (status == SW_OK)
		status = check_owned(plan, inputs, n_inputs, err);
	for (size_t i = 0; i < plan->program->aliases.len && status == SW_OK; i++) {
		sw_alias alias = plan->program->aliases.data[i];
		if (plan->outputs[alias.output] != plan->produced[inputs[alias.input]])
			status = sw_fail(
				err, SW_ERR_INTERNAL,
				"plan: state %u has different layouts before and after a step",
				alias.input);
	}
	sw_arena_clear(&arena);
	return status;
}

sw_status sw_plan_verify(const sw_plan *plan, sw_error *err)
{
	const sw_program *program = plan->program;
	bool *planned = sw_alloc(program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	sw_status status = SW_OK;
	for (size_t i = 0; i < program->ops.len && status == SW_OK; i++)
		if (planned[program->ops.data[i].computation])
			status = check_op(plan, (sw_id)i, err);
	free(planned);
	if (status == SW_OK)
		status = check_materialised(plan, err);
	if (status == SW_OK)
		status = sw_plan_check_shares(plan, err);
	return status == SW_OK ? check_aliases(plan, err) : status;
}

sw_status sw_plan_replicated(const sw_program *program, const sw_cluster *cluster, sw_plan **result,
                             sw_error *err)
{
	sw_program *canonical;
	*result = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	if (status != SW_OK)
		return status;
	sw_plan *plan = sw_plan_new(canonical, program->source, cluster);
	plan->program_hash = sw_program_hash(canonical);
	plan->strategy.kind = SW_PLAN_SERIAL;
	snprintf(plan->chosen, sizeof(plan->chosen), "serial");
	*result = plan;
	return SW_OK;
}

static const char *const untried_words[SW_UNTRIED_COUNT] = {
	"", "slower", "slower by the model", "deferred", "behind", "too large", "out of time",
	"too much work", "cut short"};

const char *sw_untried_word(sw_untried untried)
{
	return untried_words[untried];
}

bool sw_alternative_is_at_most(const sw_alternative *row)
{
	return row->feasible && (row->bound_s > 0 || row->untried == SW_UNTRIED_CUT);
}

sw_untried sw_untried_of(const char *word)
{
	for (int u = 0; word && u < SW_UNTRIED_COUNT; u++)
		if (!strcmp(word, untried_words[u]))
			return (sw_untried)u;
	return SW_UNTRIED_NOT;
}
