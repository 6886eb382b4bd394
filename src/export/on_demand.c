/* Writing a program again, each value when it is needed first. */
#include "export/on_demand.h"

#include <stdlib.h>
#include <string.h>

void sw_on_demand_open(sw_on_demand *w, const sw_program *in, sw_give *give)
{
	w->in = in;
	w->give = give;
	w->out = sw_program_new(in->name);
	sw_build_copy_frame(w->out, in);
	w->computation = sw_alloc(sizeof(int32_t) * (in->computations.len + 1));
	w->value = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	w->begun = sw_alloc(in->values.len + 1);
	memset(w->computation, -1, sizeof(int32_t) * (in->computations.len + 1));
	for (size_t v = 0; v <= in->values.len; v++)
		w->value[v] = SW_NO_ID;
}

bool sw_on_demand_have(sw_on_demand *w, const sw_id *values, uint32_t n)
{
	size_t before = w->stack.len;
	for (uint32_t i = 0; i < n; i++)
		if (w->value[values[i]] == SW_NO_ID)
			sw_vec_push(&w->stack, values[i]);
	return w->stack.len == before;
}

static bool copy_op(sw_on_demand *w, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(w->in, id);
	sw_id first = sw_build_copy_mapped(w->out, c, w->in, id, w->value, w->computation);
	for (uint32_t r = 0; r < op->n_results && first != SW_NO_ID; r++)
		w->value[op->first_result + r] = first + r;
	return first != SW_NO_ID || op->n_results == 0;
}

sw_giving sw_on_demand_copy(sw_on_demand *w, int32_t c, sw_id value)
{
	sw_id id = w->in->values.data[value].op;
	const sw_op *op = sw_op_at(w->in, id);
	if (!sw_on_demand_have(w, op->operands, op->n_operands))
		return SW_GIVE_LATER;
	return copy_op(w, c, id) ? SW_GIVEN : SW_GIVE_FAILED;
}

static bool write_value(sw_on_demand *w, int32_t c, sw_id value)
{
	w->stack.len = 0;
	sw_vec_push(&w->stack, value);
	while (w->stack.len > 0) {
		sw_id next = w->stack.data[w->stack.len - 1];
		if (w->value[next] != SW_NO_ID) {
			w->stack.len--;
			continue;
		}
		sw_giving giving = w->give(w, c, next);
		/* what waits a second time waits for itself */
		if (giving == SW_GIVE_FAILED || (giving == SW_GIVE_LATER && w->begun[next]))
			return false;
		w->begun[next] = true;
	}
	return true;
}

static bool write_op(sw_on_demand *w, int32_t c, sw_id id)
{
	const sw_op *op = sw_op_at(w->in, id);
	if (op->opcode == SW_OP_PARAMETER)
		return true;
	if (op->n_results > 0)
		return write_value(w, c, op->first_result);
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (!write_value(w, c, op->operands[k]))
			return false;
	return copy_op(w, c, id);
}

/* Write a computation after those that it calls. */
static bool write_computation(sw_on_demand *w, int32_t computation)
{
	const sw_computation *from = &w->in->computations.data[computation];
	bool done = true;
	for (size_t i = 0; i < from->ops.len; i++) {
		const sw_op *op = sw_op_at(w->in, from->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called && done; k++)
			if (w->computation[op->called[k]] < 0)
				done = write_computation(w, op->called[k]);
	}
	int32_t c = sw_build_computation(w->out, from->name);
	w->computation[computation] = c;
	for (size_t i = 0; i < from->parameters.len && done; i++)
		done = copy_op(w, c, from->parameters.data[i]);
	for (size_t i = 0; i < from->ops.len && done; i++)
		done = write_op(w, c, from->ops.data[i]);
	if (!done)
		return false;
	sw_id *results = sw_alloc(sizeof(sw_id) * (from->results.len + 1));
	for (size_t i = 0; i < from->results.len; i++)
		results[i] = w->value[from->results.data[i]];
	sw_build_results(w->out, c, results, (uint32_t)from->results.len, from->root_tuple);
	free(results);
	return true;
}

sw_status sw_on_demand_close(sw_on_demand *w, sw_program **out, const char *what, sw_error *err)
{
	bool done = write_computation(w, w->in->entry);
	*out = w->out;
	w->out->entry = done ? w->computation[w->in->entry] : -1;
	sw_vec_clear(&w->stack);
	free(w->computation);
	free(w->value);
	free(w->begun);
	if (done)
		return SW_OK;
	sw_program_free(*out);
	*out = NULL;
	return sw_fail(err, SW_ERR_INTERNAL, "the %s can't be written: they wait for one another",
	               what);
}

bool sw_needs_given(const sw_program *program, const sw_id *values, uint32_t n, const sw_id *given,
                    uint32_t n_given)
{
	SW_VEC(sw_id) left = {0};
	sw_map seen = {0};
	sw_id first = SW_NO_ID;
	bool needs = false;
	for (uint32_t k = 0; k < n_given; k++)
		first = SW_MIN(first, given[k]);
	for (uint32_t i = 0; i < n; i++)
		sw_vec_push(&left, values[i]);
	while (left.len > 0 && !needs) {
		sw_id value = left.data[--left.len];
		for (uint32_t k = 0; k < n_given; k++)
			needs |= value == given[k];
		/* operands stand before their users, so that what is made of `first` is behind it
		 */
		if (value < first || sw_map_get(&seen, &value, sizeof(value)) != SW_ABSENT)
			continue;
		sw_map_put(&seen, &value, sizeof(value), 0);
		const sw_op *op = sw_op_at(program, program->values.data[value].op);
		for (uint32_t k = 0; k < op->n_operands; k++)
			sw_vec_push(&left, op->operands[k]);
	}
	sw_vec_clear(&left);
	sw_map_clear(&seen);
	return needs;
}
