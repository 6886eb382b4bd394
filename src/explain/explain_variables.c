/* How each variable is synchronised, in words: what holds it at rest, and who updates it. */
#include "explain/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/even_placement.h"

/* Return the device that the O atoms of a layout name; -1: it has none. */
static int64_t owner_of(const sw_plan *plan, const sw_layout *layout)
{
	int64_t device = 0;
	if (!sw_layout_owned_atoms(layout))
		return -1;
	for (int32_t a = 0; a < layout->n; a++)
		if (layout->state[a].kind == SW_STATE_O)
			device +=
				layout->state[a].stride * sw_atoms_stride(&plan->cluster->atoms, a);
	return device;
}

/* Return the layout in which the op that gives an output leaves it: who updates the variable. */
static const sw_layout *updated_in(const sw_plan *plan, uint32_t output)
{
	sw_id value = sw_entry(plan->program)->results.data[output];
	return sw_plan_layout(plan, plan->produced[value]);
}

static bool is_split(const sw_layout *layout)
{
	return sw_layout_split_atoms(layout, -1) != 0;
}

static const sw_layout *rest_of(const sw_plan *plan, const sw_anatomy *a, uint32_t input)
{
	return sw_plan_layout(plan, plan->produced[a->roles.inputs[input]]);
}

static bool splits_moments(const sw_plan *plan, const sw_anatomy *a, uint32_t parameter)
{
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		if (a->parameter_of[i] == (int32_t)parameter && is_split(rest_of(plan, a, i)))
			return true;
	return false;
}

/* What of a device's gradient travels in its place: the indices and rows of a table's, or the operands
 * of the product. */
typedef struct gathered_bytes {
	int64_t rows, factors; /* 0: no such */
} gathered_bytes;

/* A variable of a plan, and how its gradient is sent. */
typedef struct explained_variable {
	uint32_t input, output;
	const sw_variable_form *form;
	gathered_bytes gathered;
} explained_variable;

/* Write the way in words; return its word in a file of ways. */
static const char *describe_way(const sw_plan *plan, const sw_anatomy *a,
                                const explained_variable *v, sw_text *words)
{
	const sw_layout *rest = rest_of(plan, a, v->input), *update = updated_in(plan, v->output);
	bool frozen = sw_entry(plan->program)->results.data[v->output] == a->roles.inputs[v->input],
	     coded = v->form && sw_codec_lacks(v->form->codec);
	int64_t holder = owner_of(plan, rest), updater = owner_of(plan, update);
	if (holder >= 0) {
		sw_text_addf(words,
		             "owned by device %lld, which gets the sum of the gradients and "
		             "sends it to its readers",
		             (long long)holder);
		return "ps";
	}
	if (updater >= 0) {
		sw_text_addf(words,
		             "updated by device %lld, which owns the moments; a copy on every "
		             "device",
		             (long long)updater);
		return "ps";
	}
	if (is_split(rest)) {
		sw_text_add(words, "split among the devices, gathered where it is read");
		return "zero3";
	}
	if (is_split(update)) {
		sw_text_add(words, "each device updates a part; a copy on every device");
		return "zero1";
	}
	if (splits_moments(plan, a, v->input)) {
		sw_text_add(words, "each device keeps a part of the moments; a copy on every device");
		return "zero1";
	}
	if (!frozen && v->gathered.rows + v->gathered.factors > 0) {
		sw_text_add(words, "on every device, each of which makes the gradient of all");
		return "gather";
	}
	sw_text_add(words, frozen  ? "on every device; the step does not change it"
	                   : coded ? "on every device"
	                           : "on every device; gradients are all-reduced");
	return "all-reduce";
}

/* Say how its gradient is sent; return how old its copies may be, NULL: nothing is said of that. */
static json_t *describe_form(const sw_variable_form *form, sw_text *codec, sw_text *words)
{
	bool lacks = form && sw_codec_lacks(form->codec);
	sw_codec_print(lacks ? form->codec : (sw_codec){.kind = SW_CODEC_NONE}, codec);
	if (lacks)
		sw_text_addf(words,
		             "; gradients are sent as %s, and what that lacks is added to the "
		             "next step's",
		             codec->data);
	if (!form || form->codec.kind != SW_CODEC_TERMS)
		return json_null();
	if (form->stale == SW_STALE_ANY) {
		sw_text_add(words, "; a device computes with whatever the owner last sent it, and "
		                   "each device's gradient is an update of its own");
		return json_string("any");
	}
	if (form->stale)
		sw_text_addf(words, "; a copy that a device computes with is at most %lld step%s old",
		             (long long)form->stale, form->stale == 1 ? "" : "s");
	return json_integer(form->stale);
}

/* Say in which merge group the gradient is all-reduced; return its name, NULL: in none. */
static json_t *describe_group(const sw_plan *plan, uint32_t number, sw_text *words)
{
	if (number == 0)
		return json_null();
	const sw_merge_group *group = &plan->merge.groups[number - 1];
	if (group->bytes) {
		sw_text_add(words, " together, up to ");
		sw_text_add_bytes(words, (double)group->bytes);
	} else {
		sw_text_add(words, " together");
	}
	sw_text_addf(words, ", as group '%s'", group->name);
	return json_string(group->name);
}

static json_t *describe_algorithm(uint32_t number, sw_text *words)
{
	if (number == 0)
		return json_null();
	const char *name = sw_algorithm_name((sw_algorithm)(number - 1));
	sw_text_addf(words, "; sent by the algorithm '%s'", name);
	return json_string(name);
}

static json_t *describe_order(uint32_t order, sw_text *words)
{
	if (order == 0)
		return json_null();
	sw_text_addf(words, "; its gradient is summed as number %u", order);
	return json_integer(order);
}

static bool is_served(const explained_variable *v)
{
	return v->form && v->form->codec.kind == SW_CODEC_TERMS;
}

/* Return the bytes of indices and rows that a device sends its term of a table's gradient as, to
 * whoever serves it; 0: it sends the term. */
static int64_t rows_to_owner(const sw_served *served, uint32_t input)
{
	for (uint32_t p = 0; p < served->n_ports; p++)
		for (uint32_t k = 0; k < served->ports[p].n; k++)
			if (served->ports[p].inputs[k] == input)
				return served->ports[p].row_bytes[k];
	return 0;
}

/* Return the bytes of those operands of an op, from one on, of which each device has a part before the
 * op, of a device. */
static int64_t split_bytes(const sw_plan *plan, const sw_op *op, uint32_t first)
{
	int64_t bytes = 0;
	for (uint32_t k = first; k < op->n_operands; k++)
		if (is_split(sw_plan_layout(plan, plan->produced[op->operands[k]])))
			bytes += sw_shape_bytes(sw_value_shape(plan->program, op->operands[k])) /
			         plan->cluster->n_devices;
	return bytes;
}

/* Likewise in a program that all devices run together: they travel where the op that makes the
 * gradient of them gives no term, but the sum. */
static gathered_bytes gathered_of(const sw_plan *plan, const sw_variable_map *map, uint32_t input)
{
	const sw_program *program = plan->program;
	const sw_computation *entry = sw_entry(program);
	int32_t variable = map->of_input[input];
	gathered_bytes bytes = {0};
	for (size_t i = 0; i < entry->ops.len && variable >= 0; i++) {
		sw_id id = entry->ops.data[i],
		      maker = map->of_end[id] == variable ? sw_gradient_maker(program, id) : SW_NO_ID;
		if (maker == SW_NO_ID)
			continue;
		const sw_op *op = sw_op_at(program, maker);
		const sw_layout *made = sw_plan_layout(plan, plan->produced[op->first_result]);
		if (sw_layout_partial_atoms(made))
			continue;
		if (op->opcode == SW_OP_SCATTER)
			bytes.rows += split_bytes(plan, op, 1);
		else if (!is_split(made) && !sw_layout_owned_atoms(made))
			bytes.factors += split_bytes(plan, op, 0);
	}
	return bytes;
}

/* Say that a gradient of so many bytes travels as something else; return the bytes of that, NULL: it
 * does not. */
static json_t *describe_gathered(const char *as, int64_t bytes, int64_t dense, sw_text *words)
{
	if (bytes == 0)
		return json_null();
	sw_text_addf(words, "; its gradient travels as %s, ", as);
	sw_text_add_bytes(words, (double)bytes);
	sw_text_add(words, " of a device in place of ");
	sw_text_add_bytes(words, (double)dense);
	return json_integer(bytes);
}

json_t *sw_explain_variables(const sw_anatomy *a, const sw_explained *what,
                             const sw_served *served)
{
	const sw_plan *plan = what->plan;
	json_t *list = json_array();
	sw_arena arena;
	if (plan->strategy.owners == SW_OWNERS_NONE && plan->forms.n == 0)
		return list;
	sw_arena_init(&arena);
	sw_state_view state = sw_state_view_of(plan->program, what->sidecar, &arena);
	sw_variable_map map = sw_variables_map(&state, &arena);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		sw_shape shape = sw_value_shape(plan->program, a->roles.inputs[i]);
		int64_t output = sw_output_of_input(plan->program, i);
		if (a->roles.input_role[i] != SW_ROLE_PARAMETER || shape.rank == 0 || output < 0)
			continue;
		explained_variable v = {i, (uint32_t)output,
		                        sw_form_of(&plan->forms, what->sidecar, i),
		                        gathered_of(plan, &map, i)};
		if (served && is_served(&v))
			v.gathered = (gathered_bytes){.rows = rows_to_owner(served, i)};
		int64_t owner = owner_of(plan, rest_of(plan, a, i));
		owner = owner >= 0 ? owner : owner_of(plan, updated_in(plan, v.output));
		sw_text words = {0}, codec = {0};
		const char *way = describe_way(plan, a, &v, &words),
			   *name = what->sidecar->inputs[i].name;
		int64_t dense = sw_shape_bytes(shape);
		sw_sending sending = map.of_input[i] < 0 ? (sw_sending){0}
		                                         : sw_sending_of(plan, &map, (uint32_t)map.of_input[i]);
		json_t *group = describe_group(plan, sending.merge_group, &words),
		       *algorithm = describe_algorithm(sending.algorithm, &words),
		       *order = describe_order(sending.order, &words),
		       *rows = describe_gathered("indices and rows", v.gathered.rows, dense, &words),
		       *factors = describe_gathered("the operands of its product",
		                                    v.gathered.factors, dense, &words),
		       *stale = describe_form(v.form, &codec, &words);
		json_array_append_new(
			list,
			json_pack(
				"{s:s, s:I, s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
				name ? name : "", "bytes", (json_int_t)dense, "way", way, "owner",
				owner >= 0 ? json_integer(owner) : json_null(),
				"words", words.data, "codec", codec.data, "stale", stale,
				"merge", group, "algorithm", algorithm, "order", order, "row_bytes",
				rows, "factor_bytes", factors));
		sw_text_clear(&words);
		sw_text_clear(&codec);
	}
	sw_arena_clear(&arena);
	return list;
}

/* Return the bytes of a variable's state, with its moments. */
static int64_t state_bytes(const sw_plan *plan, const sw_anatomy *a, uint32_t parameter)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		if (i == parameter || a->parameter_of[i] == (int32_t)parameter)
			bytes += sw_shape_bytes(sw_value_shape(plan->program, a->roles.inputs[i]));
	return bytes;
}

json_t *sw_explain_owners(const sw_anatomy *a, const sw_plan *plan)
{
	int64_t devices = plan->cluster->n_devices, fullest = 0;
	size_t n = 0;
	int64_t *sizes = sw_alloc(sizeof(*sizes) * (a->roles.n_inputs + 1)),
		*anywhere = sw_alloc(sizeof(*anywhere) * (a->roles.n_inputs + 1)),
		*owned = sw_alloc(sizeof(*owned) * (size_t)devices),
		*load = sw_alloc(sizeof(*load) * (size_t)devices);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		int64_t output = sw_output_of_input(plan->program, i);
		if (a->roles.input_role[i] != SW_ROLE_PARAMETER || output < 0)
			continue;
		int64_t owner = owner_of(plan, rest_of(plan, a, i));
		owner = owner >= 0 ? owner : owner_of(plan, updated_in(plan, (uint32_t)output));
		if (owner < 0)
			continue;
		sizes[n++] = state_bytes(plan, a, i);
		owned[owner] += sizes[n - 1];
	}
	for (int64_t d = 1; d < devices; d++)
		fullest = owned[d] > owned[fullest] ? d : fullest;
	json_t *owners = n == 0 ? json_null()
	                        : json_pack("{s:I, s:I, s:I}", "device", (json_int_t)fullest,
	                                    "most_bytes", (json_int_t)owned[fullest], "least_bytes",
	                                    (json_int_t)sw_place_evenly(sizes, n, load, devices,
	                                                                anywhere));
	free(sizes);
	free(anywhere);
	free(owned);
	free(load);
	return owners;
}

void sw_explain_owners_print(const json_t *owners, sw_text *text)
{
	double most = sw_field_number(owners, "most_bytes"), least = sw_field_number(owners, "least_bytes");
	if (!json_is_object(owners))
		return;
	sw_text_addf(text, "owners: device %.0f owns most, ", sw_field_number(owners, "device"));
	sw_text_add_bytes(text, most);
	sw_text_add(text, " with moments; wherever these variables were, one would own ");
	sw_text_add_bytes(text, least);
	sw_text_addf(text, " at least, %.1f %% less\n\n", most > 0 ? 100 * (1 - least / most) : 0);
}

void sw_explain_variables_print(const json_t *list, bool whole, sw_text *text)
{
	static const char *const headings[] = {"variable", "bytes", "how it is synchronised"};
	size_t shown = sw_count_shown(list, whole);
	sw_table table;
	if (json_array_size(list) == 0)
		return;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (size_t i = 0; i < shown; i++) {
		const json_t *v = json_array_get(list, i);
		sw_table_cell(&table, "%s", sw_field_text(v, "name"));
		sw_table_cell_number(&table, sw_text_add_bytes, sw_field_number(v, "bytes"));
		sw_table_cell(&table, "%s", sw_field_text(v, "words"));
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	sw_print_more(list, shown, text);
	sw_text_add(text, "\n");
}
