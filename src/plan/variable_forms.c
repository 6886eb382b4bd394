/*
 * Variables in other forms than the program has them (sw_rewrite_variables): in the plan file, and
 * the sidecar of the program that the plan is of.
 */
#include "plan/plan.h"

sw_status sw_plan_sidecar(const sw_plan *plan, const sw_sidecar *read, sw_sidecar *sidecar,
                          sw_error *err)
{
	sw_program *program = NULL;
	sw_status status =
		sw_rewrite_variables(plan->undivided, read, &plan->forms, &program, sidecar, err);
	sw_program_free(program);
	return status;
}

sw_status sw_plan_find_sidecar(const sw_plan *plan, const char *path, sw_sidecar *sidecar,
                               sw_error *err)
{
	sw_sidecar read;
	if (!plan->undivided)
		return sw_sidecar_find(path, sw_plan_serial(plan), sidecar, err);
	SW_TRY(sw_sidecar_find(path, plan->undivided, &read, err));
	sw_status status = sw_plan_sidecar(plan, &read, sidecar, err);
	sw_sidecar_clear(&read);
	return status;
}

bool sw_forms_code(const sw_variable_forms *forms)
{
	for (size_t i = 0; i < forms->n; i++)
		if (forms->list[i].codec.kind)
			return true;
	return false;
}

bool sw_forms_served(const sw_variable_forms *forms)
{
	for (size_t i = 0; i < forms->n; i++)
		if (forms->list[i].codec.kind == SW_CODEC_TERMS)
			return true;
	return false;
}

bool sw_forms_stale(const sw_variable_forms *forms)
{
	for (size_t i = 0; i < forms->n; i++)
		if (forms->list[i].codec.kind == SW_CODEC_TERMS && forms->list[i].stale)
			return true;
	return false;
}

bool sw_forms_lack(const sw_variable_forms *forms)
{
	for (size_t i = 0; i < forms->n; i++)
		if (sw_codec_lacks(forms->list[i].codec))
			return true;
	return false;
}

sw_variable_forms sw_forms_copy(const sw_variable_forms *forms, sw_arena *arena)
{
	sw_variable_form *list = SW_NEW_N(arena, sw_variable_form, forms->n + 1);
	for (size_t i = 0; i < forms->n; i++) {
		list[i] = forms->list[i];
		list[i].sizes.v = sw_arena_copy(arena, list[i].sizes.v,
		                                sizeof(int64_t) * (size_t)list[i].sizes.n);
	}
	return (sw_variable_forms){forms->n, list};
}

/* ---- the plan file ---------------------------------------------------------------------- */

static json_t *form_json(const sw_variable_form *form)
{
	json_t *sizes = json_array();
	for (int32_t i = 0; i < form->sizes.n; i++)
		json_array_append_new(sizes, json_integer(form->sizes.v[i]));
	json_t *json = json_pack("{s:I, s:i, s:o}", "input", (json_int_t)form->input, "axis",
	                         (int)form->axis, "parts", sizes);
	if (form->codec.kind)
		json_object_set_new(json, "devices", json_integer(form->devices));
	if (form->codec.kind == SW_CODEC_TERMS) {
		json_object_set_new(json, "stale", json_integer(form->stale));
	} else if (form->codec.kind) {
		sw_text codec = {0};
		sw_codec_print(form->codec, &codec);
		json_object_set_new(json, "codec", json_string(codec.data));
		sw_text_clear(&codec);
	}
	return json;
}

json_t *sw_forms_json(const sw_variable_forms *forms)
{
	json_t *list = forms->n ? json_array() : NULL;
	for (size_t i = 0; i < forms->n; i++)
		json_array_append_new(list, form_json(&forms->list[i]));
	return list;
}

static bool read_form(const json_t *json, sw_arena *arena, sw_variable_form *form)
{
	const json_t *input = json_object_get(json, "input"), *axis = json_object_get(json, "axis"),
		     *sizes = json_object_get(json, "parts");
	const json_t *codec = json_object_get(json, "codec"),
		     *stale = json_object_get(json, "stale"),
		     *devices = json_object_get(json, "devices");
	size_t n = json_array_size(sizes);
	json_int_t leaf = json_integer_value(input), dim = json_integer_value(axis);
	bool ok = json_object_size(json) == (codec || stale ? 5 : 3) && json_is_integer(input) &&
	          json_is_integer(axis) && json_is_array(sizes) && n <= SW_MAX_VARIABLE_PARTS &&
	          leaf >= 0 && leaf <= INT32_MAX && dim >= 0 && dim < SW_MAX_RANK;
	int64_t *list = SW_NEW_N(arena, int64_t, n + 1);
	for (size_t i = 0; ok && i < n; i++) {
		list[i] = json_integer_value(json_array_get(sizes, i));
		ok = json_is_integer(json_array_get(sizes, i));
	}
	*form = (sw_variable_form){
		.input = (uint32_t)leaf, .axis = (int32_t)dim, .sizes = {(int32_t)n, list}};
	if (!codec && !stale)
		return ok && n > 0;
	form->devices = json_integer_value(devices);
	ok = ok && form->devices >= 2 && form->devices <= SW_MAX_CODED_DEVICES;
	if (!stale)
		return ok && json_is_string(codec) &&
		       sw_codec_parse(json_string_value(codec), &form->codec) && form->codec.kind;
	form->codec.kind = SW_CODEC_TERMS;
	form->stale = json_integer_value(stale);
	return ok && !codec && json_is_integer(stale) &&
	       (form->stale == SW_STALE_ANY || (form->stale >= 0 && form->stale <= SW_MAX_STALE));
}

sw_status sw_forms_read(const json_t *json, sw_arena *arena, sw_variable_forms *forms,
                        sw_error *err)
{
	size_t n = json_array_size(json);
	sw_variable_form *list = SW_NEW_N(arena, sw_variable_form, n + 1);
	bool ok = !json || (json_is_array(json) && n > 0);
	for (size_t i = 0; ok && i < n; i++) {
		ok = read_form(json_array_get(json, i), arena, &list[i]);
		ok = ok && (i == 0 || list[i].input > list[i - 1].input);
	}
	*forms = (sw_variable_forms){n, list};
	return ok ? SW_OK
	          : sw_fail(err, SW_ERR_INPUT,
	                    "variables: expected a list of {\"input\", \"axis\", \"parts\"}, by "
	                    "rising input");
}
