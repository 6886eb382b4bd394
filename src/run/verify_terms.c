/*
 * A plan that codes gradients computes something else than the serial program: each rank codes its
 * own term of the sum. So the terms that the ranks had are compared with the serial gradient, which
 * they must add up to, and the serial step goes on with them: it is the emulation of the codecs on
 * one device, to which all outputs must be equal within the tolerance of any plan.
 */
#include "run/verify_terms.h"

#include <stdlib.h>
#include <string.h>

void verify_terms_init(verify_terms *t, const sw_plan *plan)
{
	*t = (verify_terms){.plan = plan,
	                    .serial = sw_plan_serial(plan),
	                    .n_devices = plan->cluster->n_devices};
	sw_arena_init(&t->arena);
	const sw_computation *entry = sw_entry(t->serial);
	sw_id *ops = SW_NEW_N(&t->arena, sw_id, entry->ops.len + 1);
	for (size_t i = 0; i < entry->ops.len; i++)
		if (sw_op_at(t->serial, entry->ops.data[i])->opcode == SW_OP_TERMS)
			ops[t->n++] = entry->ops.data[i];
	t->ops = ops;
	t->parts = SW_NEW_N(&t->arena, sw_tensor, (int64_t)t->n * t->n_devices + 1);
	t->sums = SW_NEW_N(&t->arena, verify_sums, t->n + 1);
}

void verify_terms_clear(verify_terms *t)
{
	for (int64_t i = 0; i < (int64_t)t->n * t->n_devices; i++)
		if (t->parts[i].buffer)
			sw_tensor_drop(&t->parts[i]);
	sw_arena_clear(&t->arena);
}

static uint32_t number_by_name(const verify_terms *t, const char *name)
{
	uint32_t k = 0;
	while (k < t->n && strcmp(sw_op_at(t->serial, t->ops[k])->name, name) != 0)
		k++;
	return k;
}

void verify_terms_keep(void *context, sw_id id, const sw_tensor *results)
{
	verify_terms_rank *r = context;
	const sw_op *op = sw_op_at(r->program, id);
	if (op->opcode != SW_OP_TERMS && op->opcode != SW_OP_OPT_BARRIER)
		return;
	uint32_t k = number_by_name(r->terms, op->name);
	if (k == r->terms->n || r->status != SW_OK)
		return;
	sw_tensor *part = &r->terms->parts[r->device * r->terms->n + k];
	r->status = sw_tensor_new(results[0].shape, false, part, &r->error);
	if (r->status == SW_OK)
		memcpy(sw_tensor_data(*part), sw_tensor_data(results[0]),
		       (size_t)sw_shape_bytes(results[0].shape));
}

/* Return the value of the plan's program that a coded gradient is taken apart to. */
static sw_id value_in_plan(const verify_terms *t, uint32_t k)
{
	const sw_computation *entry = sw_entry(t->plan->program);
	const char *name = sw_op_at(t->serial, t->ops[k])->name;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(t->plan->program, entry->ops.data[i]);
		if (op->opcode == SW_OP_TERMS && strcmp(op->name, name) == 0)
			return op->first_result;
	}
	return SW_NO_ID;
}

/* Join the parts of all ranks; NULL: one is missing, or there is no memory. */
static void *join(const verify_terms *t, uint32_t k, sw_shape shape, const sw_layout *layout)
{
	const sw_atoms *atoms = &t->plan->cluster->atoms;
	char *whole = sw_try_alloc((size_t)SW_MAX(sw_shape_bytes(shape), 1));
	int64_t bytes = sw_layout_local_bytes(atoms, shape, layout);
	for (int64_t d = 0; whole && d < t->n_devices; d++) {
		sw_tensor part = t->parts[d * t->n + k];
		bool has = part.buffer && sw_shape_bytes(part.shape) == bytes;
		if (!has) {
			free(whole);
			return NULL;
		}
		sw_layout_paste(atoms, shape, layout, d, sw_type_bytes(shape.type),
		                sw_tensor_data(part), whole);
	}
	return whole;
}

/* Compare the sum of the rows with the gradient, the first row of `serial`. */
static void compare_sum(sw_shape shape, const void *rows, const void *serial, verify_sums *s)
{
	int64_t n = sw_shape_elements(shape) / shape.dims[0];
	double *sum = sw_alloc(sizeof(double) * (size_t)(n + 1)),
	       *wanted = sw_alloc(sizeof(double) * (size_t)(n + 1));
	uint8_t *is_true = sw_alloc((size_t)n + 1);
	for (int64_t i = 0; i < n; i++) {
		is_true[i] = 1;
		wanted[i] = sw_element_get(shape.type, serial, i);
		for (int64_t d = 0; d < shape.dims[0]; d++)
			sum[i] += sw_element_get(shape.type, rows, d * n + i);
	}
	verify_elements(SW_F64, sum, wanted, is_true, n, s);
	free(sum);
	free(wanted);
	free(is_true);
}

/* Return the rows that all ranks had of a value of the plan, cropped to the serial shape and rounded to
 * its type: loops add up terms in a wider one. NULL: one is missing, or there is no memory. */
static void *rows_of(const verify_terms *t, uint32_t k, sw_id value, sw_shape shape)
{
	sw_shape large = sw_value_shape(t->plan->program, value), wide = shape;
	wide.type = large.type;
	void *padded = join(t, k, large, sw_plan_layout(t->plan, t->plan->produced[value])),
	     *rows = sw_try_alloc((size_t)SW_MAX(sw_shape_bytes(wide), 1));
	if (padded && rows)
		sw_shape_crop(large, padded, wide, rows);
	for (int64_t i = 0; padded && rows && wide.type != shape.type && i < sw_shape_elements(shape); i++)
		sw_element_set(shape.type, rows, i, sw_element_get(wide.type, rows, i));
	if (!padded) {
		free(rows);
		rows = NULL;
	}
	free(padded);
	return rows;
}

void verify_terms_give(void *context, sw_id id, const sw_tensor *results)
{
	verify_terms *t = context;
	uint32_t k = 0;
	while (k < t->n && t->ops[k] != id)
		k++;
	if (k == t->n || t->status != SW_OK)
		return;
	sw_shape shape = results[0].shape;
	sw_id value = value_in_plan(t, k);
	void *rows = value == SW_NO_ID ? NULL : rows_of(t, k, value, shape);
	if (rows) {
		compare_sum(shape, rows, sw_tensor_data(results[0]), &t->sums[k]);
		memcpy(sw_tensor_data(results[0]), rows, (size_t)sw_shape_bytes(shape));
	} else {
		t->status = sw_fail(&t->error, SW_ERR_INTERNAL,
		                    "verify: the ranks' terms of '%s' are not known",
		                    sw_op_at(t->serial, id)->name);
	}
	free(rows);
}
