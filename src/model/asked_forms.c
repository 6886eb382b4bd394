/*
 * Into which parts variables are divided: as the strategy's rule has it, or as a file of ways says.
 */
#include <fnmatch.h>

#include "model/ways.h"

/* AutoDist divides a dimension that is a large prime into as many parts; here such a variable stays
 * whole. */
#define MOST_RULE_PARTS 64

typedef struct asked_forms {
	const sw_forms_request *request;
	sw_arena *arena;
	const sw_id *inputs;
	sw_variable_map map;
	sw_variable_form *list; /* per variable; neither sizes nor a codec: it stays as it is */
	sw_error *err;
} asked_forms;

static sw_shape shape_of(const asked_forms *f, uint32_t variable)
{
	return sw_value_shape(f->request->program, f->inputs[f->map.input[variable]]);
}

/* The least number of parts that a rule allows; 1: the variable stays whole. */
static int64_t parts_by_rule(sw_parts_rule rule, int64_t size)
{
	for (int64_t n = 2; n <= SW_MIN(size, MOST_RULE_PARTS); n++)
		if ((size % n == 0) == (rule == SW_PARTS_EVEN))
			return n;
	return 1;
}

static void divide_by_rule(asked_forms *f)
{
	for (uint32_t i = 0; i < f->map.n && f->request->strategy->parts; i++) {
		int64_t size = shape_of(f, i).dims[0],
			parts = parts_by_rule(f->request->strategy->parts, size);
		if (parts > 1 && f->map.trained[i])
			f->list[i].sizes = sw_about_equal_parts(f->arena, size, parts);
	}
}

/* ---- the file --------------------------------------------------------------------------- */

static sw_status refuse(const asked_forms *f, const sw_sync_entry *entry, uint32_t variable,
                        sw_text *why)
{
	sw_status status = sw_fail_at(
		f->err, SW_ERR_INPUT, f->request->sync->file, entry->of_parts, 0, "'%s': %s",
		f->request->sidecar->inputs[f->map.input[variable]].name, why->data);
	sw_text_clear(why);
	return status;
}

static sw_status divide(asked_forms *f, const sw_sync_entry *entry, uint32_t variable)
{
	sw_shape shape = shape_of(f, variable);
	sw_text why = {0};
	int64_t sum = 0;
	f->list[variable].axis = entry->axis;
	f->list[variable].sizes = entry->sizes;
	if (entry->axis >= shape.rank) {
		sw_text_addf(&why, "axis: %d: it has dimensions 0 to %d", entry->axis,
		             shape.rank - 1);
		return refuse(f, entry, variable, &why);
	}
	int64_t size = shape.dims[entry->axis];
	for (int32_t i = 0; i < entry->sizes.n; i++)
		sum = entry->sizes.v[i] > INT64_MAX - sum ? INT64_MAX : sum + entry->sizes.v[i];
	if (entry->sizes.n > 0 && sum != size)
		sw_text_addf(&why, "parts: they add up to %lld, and dimension %d has %lld",
		             (long long)sum, entry->axis, (long long)size);
	else if (entry->parts > size)
		sw_text_addf(&why, "parts: %lld: dimension %d has %lld", (long long)entry->parts,
		             entry->axis, (long long)size);
	if (why.len > 0)
		return refuse(f, entry, variable, &why);
	if (entry->parts > 0)
		f->list[variable].sizes = sw_about_equal_parts(f->arena, size, entry->parts);
	return SW_OK;
}

/* Has the variable a gradient of floating-point numbers? */
static bool has_gradient(const asked_forms *f, uint32_t variable)
{
	sw_role role = f->request->sidecar->inputs[f->map.input[variable]].role;
	return role == SW_ROLE_PARAMETER && f->map.trained[variable] &&
	       sw_type_kind_of(shape_of(f, variable).type) == SW_KIND_FLOAT;
}

/* Of the entries that match a variable the last counts: return it, NULL: there is none. Patterns that
 * match parts alone match nothing here. */
static const sw_sync_entry *last_entry(const asked_forms *f, uint32_t variable)
{
	const char *name = f->request->sidecar->inputs[f->map.input[variable]].name;
	const sw_sync *sync = f->request->sync;
	for (size_t e = sync && name ? sync->n : 0; e-- > 0;)
		if (fnmatch(sync->list[e].pattern, name, 0) == 0)
			return &sync->list[e];
	return NULL;
}

static sw_status divide_by_file(asked_forms *f)
{
	for (uint32_t i = 0; i < f->map.n && f->request->sync; i++) {
		const char *name = f->request->sidecar->inputs[f->map.input[i]].name;
		const sw_sync_entry *last = last_entry(f, i);
		if (last && last->of_parts)
			SW_TRY(divide(f, last, i));
		if (last && last->has_codec)
			f->list[i].codec = last->codec;
		const char *said = !last || !f->list[i].codec.kind ? NULL
		                   : last->group                   ? "merge"
		                   : last->of_algorithm            ? "algorithm"
		                   : last->of_order                ? "order"
		                                                   : NULL;
		if (said)
			return sw_fail_at(f->err, SW_ERR_INPUT, f->request->sync->file, last->line, 0,
			                  "'%s': %s and --codec: codes are sent apart: add codec: none",
			                  name, said);
		if (last && (last->has_stale || last->way.kind != SW_WAY_OWNED))
			f->list[i].stale = last->stale;
	}
	return SW_OK;
}

/* Does the entry match a variable with a gradient? *first: the first that it matches, or map.n. */
static bool codes_some(const asked_forms *f, const sw_sync_entry *entry, uint32_t *first)
{
	*first = f->map.n;
	for (uint32_t i = 0; i < f->map.n; i++) {
		const char *name = f->request->sidecar->inputs[f->map.input[i]].name;
		if (!name || fnmatch(entry->pattern, name, 0) != 0)
			continue;
		if (has_gradient(f, i))
			return true;
		*first = SW_MIN(*first, i);
	}
	return false;
}

/* A codec of what has no gradient would go unnoticed. */
static sw_status check_codecs(const asked_forms *f)
{
	for (size_t e = 0; f->request->sync && e < f->request->sync->n; e++) {
		const sw_sync_entry *entry = &f->request->sync->list[e];
		sw_text codec = {0};
		uint32_t first;
		if (!entry->has_codec || !entry->codec.kind || codes_some(f, entry, &first) ||
		    first == f->map.n)
			continue;
		sw_codec_print(entry->codec, &codec);
		sw_status status = sw_fail_at(
			f->err, SW_ERR_INPUT, f->request->sync->file, entry->line, 0,
			"'%s': codec: %s: %s: leave the codec out",
			f->request->sidecar->inputs[f->map.input[first]].name, codec.data,
			f->map.trained[first] ? "it has no gradient of floating-point numbers"
					      : "the step does not change it");
		sw_text_clear(&codec);
		return status;
	}
	return SW_OK;
}

/* Return the first entry of the file that lets owners serve variables; NULL: none does. */
static const sw_sync_entry *serving_entry(const sw_sync *sync)
{
	for (size_t e = 0; sync && e < sync->n; e++)
		if (sw_sync_serves(&sync->list[e]))
			return &sync->list[e];
	return NULL;
}

/* Does a scatter give the variable's gradient, or a term of it? */
static bool is_sparse(const asked_forms *f, uint32_t variable)
{
	const sw_program *program = f->request->program;
	for (size_t i = 0; i < program->ops.len; i++)
		if (f->map.of_end[i] == (int32_t)variable &&
		    program->ops.data[i].opcode == SW_OP_SCATTER)
			return true;
	return false;
}

/* Does the file, or else the strategy, let one device own the variable, whatever the search finds? */
static bool is_owned(const asked_forms *f, uint32_t variable)
{
	const sw_sync_entry *last = last_entry(f, variable);
	if (last)
		return last->way.kind == SW_WAY_OWNED;
	switch (f->request->strategy->owners) {
	case SW_OWNERS_ONE:
	case SW_OWNERS_BALANCED:
	case SW_OWNERS_PARTITIONED:
		return true;
	case SW_OWNERS_PARALLAX:
		return is_sparse(f, variable);
	default:
		return false;
	}
}

/* May a device have an old value of a variable? */
static bool is_stale(const asked_forms *f)
{
	for (uint32_t i = 0; i < f->map.n; i++)
		if (f->list[i].stale != 0 && f->map.trained[i])
			return true;
	return false;
}

/* Is that asked for, or may devices have old values of a variable? Then all that have owners are
 * served. Else the step is the synchronous one, of which owners need no terms. */
static bool is_served(const asked_forms *f)
{
	bool asked = f->request->strategy->served || is_stale(f);
	for (size_t e = 0; f->request->sync && e < f->request->sync->n; e++)
		asked = asked || f->request->sync->list[e].served;
	return asked;
}

static bool is_trained_parameter(const asked_forms *f, uint32_t variable)
{
	return f->map.trained[variable] &&
	       f->request->sidecar->inputs[f->map.input[variable]].role == SW_ROLE_PARAMETER;
}

/* Return the name of a variable that all ranks update together, at one step; NULL: there is none. */
static const char *find_together(const asked_forms *f)
{
	for (uint32_t i = 0; i < f->map.n; i++)
		if (is_trained_parameter(f, i) && !is_owned(f, i))
			return f->request->sidecar->inputs[f->map.input[i]].name;
	return NULL;
}

/* What is all-reduced needs all ranks at one step, where each waits for all others; terms that are
 * updates of their own are of ranks that wait for none. */
static sw_status check_any(const asked_forms *f, const char *together, const char *any)
{
	return together && any
	               ? sw_fail(f->err, SW_ERR_INPUT,
	                         "stale: any: '%s' has no owner to serve it: ranks are at one step "
	                         "where they sum its gradient together, and '%s' is to let them "
	                         "be at any: give this a number of steps, or all variables way: "
	                         "ps",
	                         together, any)
	               : SW_OK;
}

/* What goes with no parameter has no gradient. Every device makes it, as a batch norm's running statistics,
 * of all rows of the batch, if devices are at one step. */
static sw_status check_state(const asked_forms *f, const char *together, const char *key,
                             const char *name)
{
	return is_stale(f) && !together
	               ? sw_fail(f->err, SW_ERR_INPUT,
	                         "%s: '%s' is made of the batch and no part of a parameter's own "
	                         "state, as running statistics and factored moments are: take "
	                         "served in place of stale, or leave %s out",
	                         key, name, key)
	               : SW_OK;
}

/* Let owners get each device's term of the gradients of what they own; other variables all ranks
 * update together. `common`: how many devices divide the batch. */
static sw_status serve(asked_forms *f, int64_t common)
{
	sw_variable_forms forms = {f->map.n, f->list};
	const char *key = sw_served_key(&forms), *together = find_together(f), *any = NULL;
	for (uint32_t i = 0; i < f->map.n; i++) {
		sw_variable_form *form = &f->list[i];
		const char *name = f->request->sidecar->inputs[form->input].name;
		if (!f->map.trained[i])
			continue;
		if (f->request->sidecar->inputs[form->input].role != SW_ROLE_PARAMETER) {
			if (f->map.goes_with[i] < 0)
				SW_TRY(check_state(f, together, key, name));
			continue;
		}
		if (form->codec.kind)
			return sw_fail(f->err, SW_ERR_INPUT,
			               "%s and codec: the owner of '%s' adds up gradients as "
			               "they are: leave one out",
			               key, name);
		if (!is_owned(f, i))
			continue;
		any = form->stale == SW_STALE_ANY ? name : any;
		form->codec.kind = SW_CODEC_TERMS;
		if (!sw_codec_fits(form->codec, shape_of(f, i)))
			return sw_fail(f->err, SW_ERR_INPUT,
			               "%s: '%s' is no tensor of floating-point numbers of at "
			               "most %d dimensions: leave %s out",
			               key, name, SW_MAX_RANK - 1, key);
	}
	SW_TRY(check_any(f, together, any));
	if (f->request->devices < 2)
		return sw_fail(f->err, SW_ERR_INPUT,
		               "%s: one device waits for no other: leave %s out", key, key);
	if (common == f->request->devices)
		return SW_OK;
	return sw_fail(f->err, SW_ERR_INPUT,
	               "%s: each of the %lld devices has rows of its own of the batch, which "
	               "must divide by them: take another number of devices, or leave %s out",
	               key, (long long)f->request->devices, key);
}

/* Let a refusal name the first line of the file that lets values be old, if the file does. */
static sw_status place_stale(const asked_forms *f, sw_status status)
{
	const sw_sync_entry *entry = serving_entry(f->request->sync);
	if (status == SW_OK || !entry || !f->err || sw_strategy_serves(f->request->strategy) ||
	    f->err->file[0])
		return status;
	f->err->line = entry->line;
	return sw_error_in_file(f->err, status, f->request->sync->file);
}

static bool asks(const sw_forms_request *request)
{
	const sw_sync *sync = request->sync;
	bool any = request->strategy->parts != SW_PARTS_NONE || request->codec.kind ||
	           sw_strategy_serves(request->strategy) || serving_entry(sync);
	for (size_t e = 0; sync && e < sync->n; e++)
		any = any || sync->list[e].of_parts || sync->list[e].has_codec;
	return any;
}

static void find_variables(asked_forms *f)
{
	sw_state_view state = sw_state_view_of(f->request->program, f->request->sidecar, f->arena);
	f->inputs = state.inputs;
	f->map = sw_variables_map(&state, f->arena);
	f->list = SW_NEW_N(f->arena, sw_variable_form, f->map.n + 1);
	for (uint32_t i = 0; i < f->map.n; i++)
		f->list[i].input = f->map.input[i];
}

/* Return the largest divisor of the devices by which the batch divides. */
static int64_t devices_of_batch(const asked_forms *f)
{
	uint32_t n = f->request->sidecar->n_inputs;
	int32_t *dim = SW_NEW_N(f->arena, int32_t, n + 1);
	for (uint32_t i = 0; i < n; i++)
		dim[i] = f->request->sidecar->inputs[i].role == SW_ROLE_DATA ? 0 : -1;
	return sw_gcd(f->request->devices,
	              sw_find_batch(f->request->program, f->inputs, n, dim));
}

/* Leave the codec out where it can't be. */
static void fit_codec(const asked_forms *f, uint32_t variable, int64_t devices)
{
	sw_variable_form *form = &f->list[variable];
	if (!has_gradient(f, variable) || !form->codec.kind ||
	    !sw_codec_fits(form->codec, shape_of(f, variable)))
		form->codec.kind = SW_CODEC_NONE;
	form->devices = form->codec.kind ? devices : 0;
}

sw_status sw_forms_asked(const sw_forms_request *request, sw_arena *arena, sw_variable_forms *forms,
                         sw_error *err)
{
	asked_forms f = {.request = request, .arena = arena, .err = err};
	*forms = (sw_variable_forms){0};
	if (!asks(request))
		return SW_OK;
	find_variables(&f);
	for (uint32_t i = 0; i < f.map.n; i++) {
		if (shape_of(&f, i).rank > 1) /* vectors are few bytes */
			f.list[i].codec = request->codec;
		f.list[i].stale = request->strategy->stale;
	}
	divide_by_rule(&f);
	SW_TRY(divide_by_file(&f));
	SW_TRY(check_codecs(&f));
	/* as many devices have terms as divide the batch; if none does, it may be padded */
	int64_t common = devices_of_batch(&f), devices = common > 1 ? common : request->devices;
	if (is_served(&f))
		SW_TRY(place_stale(&f, serve(&f, common)));
	for (uint32_t i = 0; i < f.map.n; i++) {
		fit_codec(&f, i, devices);
		if (f.list[i].codec.kind && request->devices < 2)
			return sw_fail(err, SW_ERR_INPUT,
			               "codec: one device sends no gradients: leave it out");
		if (f.list[i].sizes.n > 1 || f.list[i].codec.kind)
			f.list[forms->n++] = f.list[i];
	}
	forms->list = f.list;
	sw_forms_sort(f.list, forms->n);
	return SW_OK;
}
