/*
 * Rewrites of a plan's program: in words, in the plan file (docs/plan-file.md), in `explain`.
 */
#include "plan/plan.h"

#include <string.h>

/* The element type of most of the contractions' floating-point operations. */
static sw_type main_type(const sw_program *program)
{
	double flops[SW_TYPE_COUNT] = {0};
	sw_type most = SW_F32;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		if (op->opcode != SW_OP_DOT && op->opcode != SW_OP_CONVOLUTION)
			continue;
		sw_type type = sw_value_shape(program, op->operands[0]).type;
		flops[type] += sw_op_flops(program, id);
		most = flops[type] > flops[most] ? type : most;
	}
	return most;
}

sw_remat_device sw_plan_remat_device(const sw_cluster *cluster, const sw_program *program)
{
	const sw_device *device = &cluster->device;
	double peak = device->flops[main_type(program)];
	return (sw_remat_device){.flops_per_s = (peak > 0 ? peak : device->flops[SW_F32]) *
	                                        device->matmul_efficiency,
	                         .bytes_per_s = device->memory_bandwidth};
}

sw_rewrites sw_rewrites_copy(const sw_rewrites *rewrites, sw_arena *arena)
{
	sw_rewrites copy = *rewrites;
	sw_ints *classes = &copy.padding.classes;
	classes->v = sw_arena_copy(arena, classes->v, sizeof(int64_t) * (size_t)classes->n);
	copy.remat = copy.remat ? sw_arena_text(arena, copy.remat) : NULL;
	return copy;
}

/* ---- words ------------------------------------------------------------------------------ */

void sw_rewrites_add_words(const sw_rewrites *rewrites, sw_text *text)
{
	if (rewrites->padding.multiple > 0)
		sw_text_addf(text, ", padded 1/%lld%s", (long long)rewrites->padding.share,
		             rewrites->padding.classes.n > 0 ? " in part" : "");
	if (rewrites->remat)
		sw_text_addf(text, ", remat %s", rewrites->remat);
	if (rewrites->microbatches > 1)
		sw_text_addf(text, ", %d microbatches", rewrites->microbatches);
}

/* ---- the plan file ---------------------------------------------------------------------- */

static json_t *padding_json(sw_pad_rule rule)
{
	json_t *json = json_pack("{s:I, s:I}", "multiple", (json_int_t)rule.multiple, "share",
	                         (json_int_t)rule.share);
	json_t *classes = json_array();
	for (int32_t i = 0; i < rule.classes.n; i++)
		json_array_append_new(classes, json_integer(rule.classes.v[i]));
	json_object_set_new(json, "classes", classes);
	return json;
}

json_t *sw_rewrites_json(const sw_rewrites *rewrites)
{
	json_t *list = json_array();
	if (rewrites->padding.multiple > 0)
		json_array_append_new(list,
		                      json_pack("{s:o}", "pad", padding_json(rewrites->padding)));
	if (rewrites->remat)
		json_array_append_new(list, json_pack("{s:s}", "rematerialise", rewrites->remat));
	if (rewrites->microbatches > 1)
		json_array_append_new(list,
		                      json_pack("{s:i}", "microbatches", rewrites->microbatches));
	if (json_array_size(list) > 0)
		return list;
	json_decref(list);
	return NULL;
}

static bool read_classes(const json_t *list, sw_arena *arena, sw_ints *classes)
{
	size_t n = json_array_size(list);
	int64_t *numbers = SW_NEW_N(arena, int64_t, n + 1);
	bool rising = json_is_array(list);
	for (size_t i = 0; i < n; i++) {
		const json_t *number = json_array_get(list, i);
		numbers[i] = json_integer_value(number);
		rising = rising && json_is_integer(number) && numbers[i] >= 0 &&
		         (i == 0 || numbers[i] > numbers[i - 1]);
	}
	*classes = (sw_ints){(int32_t)n, numbers};
	return rising;
}

static bool read_padding(const json_t *json, sw_arena *arena, sw_pad_rule *rule)
{
	const json_t *multiple = json_object_get(json, "multiple"),
		     *share = json_object_get(json, "share");
	rule->multiple = json_integer_value(multiple);
	rule->share = json_integer_value(share);
	return rule->multiple >= 2 && rule->share >= 1 &&
	       read_classes(json_object_get(json, "classes"), arena, &rule->classes);
}

/* Read one entry of the list: an object with one key. */
static bool read_rewrite(const json_t *entry, sw_arena *arena, sw_rewrites *rewrites)
{
	const json_t *pad = json_object_get(entry, "pad"),
		     *remat = json_object_get(entry, "rematerialise"),
		     *microbatches = json_object_get(entry, "microbatches");
	json_int_t n = json_integer_value(microbatches);
	if (json_object_size(entry) != 1)
		return false;
	if (pad)
		return read_padding(pad, arena, &rewrites->padding);
	if (remat)
		rewrites->remat =
			sw_arena_text(arena, json_is_string(remat) ? json_string_value(remat) : "");
	if (microbatches)
		rewrites->microbatches = n <= INT32_MAX ? (int32_t)n : 0;
	return remat ? json_is_string(remat) : rewrites->microbatches >= 2;
}

/* Writing the rewrites again must give the same list: this checks that they stand in the order in
 * which they are applied, and that none occurs twice. */
sw_status sw_rewrites_read(const json_t *list, sw_arena *arena, sw_rewrites *rewrites,
                           sw_error *err)
{
	*rewrites = (sw_rewrites){0};
	bool ok = !list || json_is_array(list);
	for (size_t i = 0; ok && i < json_array_size(list); i++)
		ok = read_rewrite(json_array_get(list, i), arena, rewrites);
	json_t *again = ok ? sw_rewrites_json(rewrites) : NULL;
	ok = ok && (list ? json_equal(list, again) != 0 : true);
	json_decref(again);
	if (ok)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT,
	               "rewrites: expected a list of \"pad\", \"rematerialise\", \"microbatches\", "
	               "in this order: make the plan again");
}
