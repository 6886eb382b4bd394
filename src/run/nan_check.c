/* Which op of a step made the first NaN: every op's results are looked through. */
#include "run/nan_check.h"

#include <math.h>
#include <stdlib.h>

int64_t sw_count_nans(sw_tensor tensor)
{
	sw_type type = tensor.shape.type;
	sw_type_kind kind = sw_type_kind_of(type);
	int64_t nans = 0, elements = sw_shape_elements(tensor.shape);
	if (kind == SW_KIND_COMPLEX) { /* pairs of floats */
		type = type == SW_C64 ? SW_F32 : SW_F64;
		elements *= 2;
	} else if (kind != SW_KIND_FLOAT) {
		return 0;
	}
	const void *data = elements ? sw_tensor_data(tensor) : NULL;
	for (int64_t e = 0; e < elements; e++)
		nans += isnan(sw_element_get(type, data, e));
	return nans;
}

void sw_nan_check_begin(sw_nan_check *check)
{
	*check = (sw_nan_check){
		.program = check->program, .constant = check->constant, .found = -1};
}

void sw_nan_check_clear(sw_nan_check *check)
{
	free(check->constant);
	*check = (sw_nan_check){0};
}

void sw_nan_check_program(sw_nan_check *check, const sw_program *program)
{
	if (check->program == program)
		return;
	free(check->constant);
	check->program = program;
	check->constant = sw_alloc((program->ops.len + 1) * sizeof(*check->constant));
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		bool constant = op->n_operands > 0 || op->opcode == SW_OP_CONSTANT;
		for (uint32_t k = 0; k < op->n_operands; k++)
			constant = constant &&
			           check->constant[program->values.data[op->operands[k]].op];
		check->constant[id] = constant;
	}
}

/* Note the first tensor that has NaN. */
static bool look(sw_nan_check *check, sw_tensor tensor, int64_t place)
{
	/* tokens, and the results of what is in flight, have no elements to read */
	int64_t nans = check->found < 0 && tensor.buffer ? sw_count_nans(tensor) : 0;
	if (!nans)
		return false;
	check->found = place;
	check->nans = nans;
	check->elements = sw_shape_elements(tensor.shape);
	return true;
}

void sw_nan_check_op(void *context, sw_id op, const sw_tensor *results)
{
	sw_nan_check *check = context;
	const sw_op *o = sw_op_at(check->program, op);
	int64_t place = check->order++;
	for (uint32_t i = 0; i < o->n_results && !check->constant[op]; i++)
		if (look(check, results[i], place))
			check->op = o;
}

void sw_nan_check_input(sw_nan_check *check, const char *name, sw_tensor tensor)
{
	if (look(check, tensor, check->order++))
		check->input = name;
}

void sw_nan_check_name_input(sw_nan_check *check, const sw_parts *parts, const sw_sidecar *sidecar)
{
	for (uint32_t i = 0; i < parts->n_inputs && check->op; i++)
		if (parts->local_inputs[i] == check->op->first_result)
			check->input = sidecar->inputs[i].name;
}

static sw_status report(const sw_nan_check *check, int64_t step, sw_error *err)
{
	const sw_op *op = check->op;
	if (check->input)
		return sw_fail(err, SW_NO,
		               "step %lld begins with NaN: %lld of %lld elements of input '%s'",
		               (long long)step, (long long)check->nans, (long long)check->elements,
		               check->input);
	const char *from = op->op_name ? op->op_name : "";
	return sw_fail(err, SW_NO,
	               "the first NaN is made in step %lld by %s '%s'%s%s%s: %lld of "
	               "%lld elements",
	               (long long)step, sw_opcode_name((sw_opcode)op->opcode), op->name,
	               *from ? " (" : "", from, *from ? ")" : "", (long long)check->nans,
	               (long long)check->elements);
}

sw_status sw_nan_check_end(const sw_nan_check *check, sw_transport *transport, int64_t step,
                           sw_error *seen, sw_error *err)
{
	int32_t size = transport->size, first = -1;
	sw_traffic traffic = transport->traffic;
	int64_t *places = sw_alloc((size_t)size * sizeof(*places));
	sw_status status = transport->ops->all_gather(transport, transport->everyone, size,
	                                              &check->found, places, sizeof(*places), err);
	transport->traffic = traffic;
	for (int32_t r = 0; r < size && status == SW_OK; r++)
		if (places[r] >= 0 && (first < 0 || places[r] < places[first]))
			first = r;
	free(places);
	if (status || first < 0)
		return status;
	*seen = (sw_error){0};
	status = transport->rank == first ? report(check, step, seen) : SW_OK;
	status = transport->ops->agree(transport, status, seen);
	if (status == SW_NO)
		return SW_OK;
	*err = *seen;
	return status;
}
