/*
 * The verifier: the properties that every stage may rely on.
 *
 * It checks the structure first (indices, order, back references, calls without recursion), then
 * each op by the rules of inference, then aliases. Linear in the size of the program.
 */
#include <string.h>

#include "program/internal.h"

typedef struct verifier {
	const sw_program *program;
	sw_arena arena;
	int32_t *order;
	bool *listed;  /* per op: it stands in its computation's list */
	bool *defined; /* per value: its op came already */
	sw_error *err;
} verifier;

static sw_status broken(const verifier *v, const char *what, const char *name)
{
	return sw_fail_at(v->err, SW_ERR_INTERNAL, v->program->source, 0, 0, "%s '%s': %s",
	                  "broken program at", name ? name : "?", what);
}

/* ---- references ------------------------------------------------------------------------- */

static sw_status verify_results(verifier *v, sw_id id, const sw_op *op)
{
	const sw_program *p = v->program;
	if (op->first_result > p->values.len || op->n_results > p->values.len - op->first_result)
		return broken(v, "its results do not exist", op->name);
	for (uint32_t r = 0; r < op->n_results; r++) {
		const sw_value *value = &p->values.data[op->first_result + r];
		if (value->op != id || value->index != r)
			return broken(v, "a result names another op", op->name);
		if (value->shape.rank < 0 || value->shape.rank > SW_MAX_RANK ||
		    !sw_shape_fits(value->shape))
			return broken(v, "the shape of a result is out of range", op->name);
		v->defined[op->first_result + r] = true;
	}
	return SW_OK;
}

static sw_status verify_references(const verifier *v, const sw_op *op)
{
	const sw_program *p = v->program;
	for (uint32_t i = 0; i < op->n_operands; i++) {
		if (op->operands[i] >= p->values.len)
			return broken(v, "an operand does not exist", op->name);
		if (sw_op_at(p, p->values.data[op->operands[i]].op)->computation != op->computation)
			return broken(v, "an operand belongs to another computation", op->name);
		if (!v->defined[op->operands[i]])
			return broken(v, "an operand comes after its use", op->name);
	}
	for (uint16_t k = 0; k < op->n_called; k++) {
		if (op->called[k] < 0 || (size_t)op->called[k] >= p->computations.len)
			return broken(v, "a called computation does not exist", op->name);
	}
	for (const sw_id *c = op->control; c && *c != SW_NO_ID; c++) {
		if (*c >= p->ops.len || sw_op_at(p, *c)->computation != op->computation)
			return broken(v, "a control predecessor is not in its computation",
			              op->name);
	}
	return SW_OK;
}

static sw_status verify_op_structure(verifier *v, int32_t computation, sw_id id)
{
	if (id >= v->program->ops.len)
		return broken(v, "an op does not exist",
		              v->program->computations.data[computation].name);
	const sw_op *op = sw_op_at(v->program, id);
	if (op->opcode >= SW_OPCODE_COUNT || !op->name)
		return broken(v, "it has no opcode or no name", op->name);
	if (op->computation != computation || v->listed[id])
		return broken(v, "it stands in a list twice, or in another computation's",
		              op->name);
	v->listed[id] = true;
	sw_status status = verify_references(v, op);
	return status == SW_OK ? verify_results(v, id, op) : status;
}

static sw_status verify_parameters(const verifier *v, const sw_computation *c)
{
	for (size_t n = 0; n < c->parameters.len; n++) {
		sw_id id = c->parameters.data[n];
		if (id == SW_NO_ID)
			return sw_fail_at(v->err, SW_ERR_INPUT, v->program->source, 0, 0,
			                  "computation '%s': there is no parameter(%zu)", c->name,
			                  n);
		if (id >= v->program->ops.len || !v->listed[id] ||
		    sw_op_at(v->program, id)->opcode != SW_OP_PARAMETER ||
		    !sw_op_at(v->program, id)->attrs ||
		    sw_op_at(v->program, id)->attrs->parameter.number != (int64_t)n)
			return broken(v, "a parameter's number is not its place", c->name);
	}
	return SW_OK;
}

static sw_status verify_structure(verifier *v)
{
	const sw_program *p = v->program;
	for (size_t k = 0; k < p->computations.len; k++) {
		const sw_computation *c = &p->computations.data[k];
		if (!c->done || !c->name)
			return broken(v, "it has no results yet", c->name);
		sw_status status = SW_OK;
		for (size_t i = 0; i < c->ops.len && status == SW_OK; i++)
			status = verify_op_structure(v, (int32_t)k, c->ops.data[i]);
		if (status == SW_OK)
			status = verify_parameters(v, c);
		for (size_t i = 0; i < c->results.len && status == SW_OK; i++) {
			sw_id r = c->results.data[i];
			if (r >= p->values.len ||
			    sw_op_at(p, p->values.data[r].op)->computation != (int32_t)k)
				status = broken(v, "a result is not a value of it", c->name);
		}
		if (status == SW_OK && !c->root_tuple && c->results.len != 1)
			status = broken(v, "several results need a root tuple", c->name);
		if (status != SW_OK)
			return status;
	}
	for (size_t o = 0; o < p->ops.len; o++) {
		if (!v->listed[o])
			return broken(v, "it stands in no computation", p->ops.data[o].name);
	}
	return SW_OK;
}

/* ---- shapes ----------------------------------------------------------------------------- */

static sw_status verify_op_shapes(verifier *v, const sw_op *op)
{
	sw_shape few[4], *shapes = few;
	if (op->n_results > SW_COUNT(few))
		shapes = SW_NEW_N(&v->arena, sw_shape, op->n_results);
	for (uint32_t r = 0; r < op->n_results; r++)
		shapes[r] = sw_value_shape(v->program, op->first_result + r);
	sw_op_spec spec = {
		.opcode = (sw_opcode)op->opcode,
		.name = op->name,
		.operands = op->operands,
		.n_operands = op->n_operands,
		.called = op->called,
		.n_called = op->n_called,
		.attrs = op->attrs,
		.shapes = shapes,
		.n_results = op->n_results,
		.line = op->line,
	};
	const sw_shape *out;
	uint32_t n;
	return sw_op_check(v->program, &v->arena, &spec, &out, &n, v->err);
}

static sw_status verify_shapes(verifier *v)
{
	for (size_t o = 0; o < v->program->ops.len; o++) {
		sw_status status = verify_op_shapes(v, &v->program->ops.data[o]);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

/* ---- names ------------------------------------------------------------------------------ */

static sw_status verify_names(const verifier *v)
{
	sw_map seen = {0};
	sw_status status = SW_OK;
	for (size_t o = 0; o < v->program->ops.len && status == SW_OK; o++) {
		const char *name = v->program->ops.data[o].name;
		if (sw_map_put(&seen, name, strlen(name), 1) != SW_ABSENT)
			status = broken(v, "another op has the same name", name);
	}
	sw_map_clear(&seen);
	return status;
}

/* ---- aliases ---------------------------------------------------------------------------- */

static sw_status bad_alias(const verifier *v, const sw_alias *alias, const char *what)
{
	return sw_fail_at(v->err, SW_ERR_INPUT, v->program->source, 0, 0,
	                  "input_output_alias: output %u and input %u: %s", alias->output,
	                  alias->input, what);
}

static sw_status verify_alias(const verifier *v, const sw_alias *alias, const sw_id *inputs,
                              bool *used_inputs, bool *used_outputs)
{
	const sw_program *p = v->program;
	if (used_inputs[alias->input])
		return bad_alias(v, alias, "the input has another alias already");
	if (used_outputs[alias->output])
		return bad_alias(v, alias, "the output has another alias already");
	used_inputs[alias->input] = used_outputs[alias->output] = true;
	if (!sw_shape_same(sw_value_shape(p, inputs[alias->input]),
	                   sw_value_shape(p, sw_entry(p)->results.data[alias->output])))
		return bad_alias(v, alias, "their shapes differ");
	return SW_OK;
}

static sw_status verify_aliases(verifier *v)
{
	const sw_program *p = v->program;
	const sw_id *inputs;
	uint32_t n_inputs = sw_program_inputs(p, p->entry, &v->arena, &inputs);
	size_t n_outputs = sw_entry(p)->results.len;
	bool *used_inputs = SW_NEW_N(&v->arena, bool, n_inputs + 1);
	bool *used_outputs = SW_NEW_N(&v->arena, bool, n_outputs + 1);
	for (size_t i = 0; i < p->aliases.len; i++) {
		const sw_alias *alias = &p->aliases.data[i];
		if (alias->input >= n_inputs || alias->output >= n_outputs)
			return bad_alias(v, alias, "there is no such input or output");
		sw_status status = verify_alias(v, alias, inputs, used_inputs, used_outputs);
		if (status != SW_OK)
			return status;
	}
	for (size_t i = 0; i < p->donors.len; i++) {
		if (p->donors.data[i] >= n_inputs)
			return sw_fail_at(v->err, SW_ERR_INPUT, p->source, 0, 0,
			                  "buffer_donor: there is no input %u", p->donors.data[i]);
	}
	return SW_OK;
}

/* ---- all -------------------------------------------------------------------------------- */

static sw_status verify_entry(const verifier *v)
{
	const sw_program *p = v->program;
	if (p->entry < 0 || (size_t)p->entry >= p->computations.len)
		return broken(v, "it has no entry computation", p->name);
	if (p->num_partitions < 1 || p->replica_count < 1)
		return sw_fail_at(v->err, SW_ERR_INPUT, p->source, 0, 0,
		                  "expected num_partitions and replica_count of at least 1");
	return SW_OK;
}

static sw_status verify_calls(verifier *v)
{
	if (sw_program_order(v->program, &v->arena, &v->order))
		return SW_OK;
	return broken(v, "a computation calls itself", v->program->name);
}

sw_status sw_program_verify(const sw_program *program, sw_error *err)
{
	verifier v = {.program = program, .err = err};
	sw_arena_init(&v.arena);
	v.listed = SW_NEW_N(&v.arena, bool, program->ops.len + 1);
	v.defined = SW_NEW_N(&v.arena, bool, program->values.len + 1);
	sw_status status = verify_entry(&v);
	if (status == SW_OK)
		status = verify_structure(&v);
	if (status == SW_OK)
		status = verify_calls(&v);
	if (status == SW_OK)
		status = verify_shapes(&v);
	if (status == SW_OK)
		status = verify_names(&v);
	if (status == SW_OK)
		status = verify_aliases(&v);
	sw_arena_clear(&v.arena);
	return status;
}
