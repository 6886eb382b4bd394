/*
 * Pins: users fix the layout of a tensor or the strategy of an op (docs/pins.md); the planner
 * decides everything else.
 *
 * A pin fixes the options of a decision before any mesh is modelled. Meshes are cut where a pin's
 * devices begin or end, so that pins go with any strategy. A pin that is impossible is refused when
 * pins are resolved, with the reason.
 */
#include "model/internal.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file --------------------------------------------------------------------------- */

static sw_status fail_at(sw_error *err, const sw_yaml *at, const char *what)
{
	return sw_fail_at(err, SW_ERR_INPUT, "", at->line, at->column, "%s", what);
}

static sw_status read_count(const sw_yaml *node, int64_t least, int64_t *count, sw_error *err)
{
	char *end;
	if (node->kind != SW_YAML_SCALAR)
		return fail_at(err, node, "expected a whole number");
	*count = strtoll(node->text, &end, 10);
	if (*end || end == node->text || *count < least || *count > INT32_MAX)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "'%s': expected a whole number, %lld or more", node->text,
		                  (long long)least);
	return SW_OK;
}

static sw_status read_split(const sw_yaml *node, sw_pin *pin, sw_error *err)
{
	if (node->kind != SW_YAML_MAPPING || node->count == 0 || node->count > SW_MAX_RANK)
		return fail_at(err, node,
		               "split: expected {DIMENSION: DEVICES, ...}, such as {0: 4}");
	for (size_t i = 0; i < node->count; i++) {
		int64_t dim;
		sw_status status = read_count(node->keys[i], 0, &dim, err);
		if (status == SW_OK)
			status = read_count(node->items[i], 1, &pin->parts[i], err);
		if (status != SW_OK)
			return status;
		pin->dims[i] = (int32_t)SW_MIN(dim, SW_MAX_RANK);
	}
	pin->n = (int32_t)node->count;
	return SW_OK;
}

static sw_status read_key(const sw_yaml *key, const sw_yaml *value, sw_pin *pin, sw_error *err)
{
	if (!strcmp(key->text, "split"))
		return read_split(value, pin, err);
	if (!strcmp(key->text, "contract"))
		return read_count(value, 1, &pin->contract, err);
	if (value->kind != SW_YAML_SCALAR)
		return fail_at(err, value, "expected a single word");
	if (!strcmp(key->text, "tensor") || !strcmp(key->text, "op")) {
		pin->is_op = key->text[0] == 'o';
		pin->pattern = value->text;
		return SW_OK;
	}
	if (!strcmp(key->text, "whole") && !strcmp(value->text, "true")) {
		pin->whole = true;
		return SW_OK;
	}
	if (!strcmp(key->text, "on") &&
	    (!strcmp(value->text, "inner") || !strcmp(value->text, "outer"))) {
		pin->outer = value->text[0] == 'o';
		return SW_OK;
	}
	return sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
	                  "'%s: %s': a pin has tensor or op, then split: {...} or whole: true; an "
	                  "op's may have "
	                  "contract: N; on: inner or outer",
	                  key->text, value->text);
}

static sw_status read_pin(const sw_yaml *node, sw_pin *pin, sw_error *err)
{
	sw_status status = SW_OK;
	*pin = (sw_pin){.line = node->line, .contract = 1};
	if (node->kind != SW_YAML_MAPPING)
		return fail_at(err, node,
		               "expected a pin, such as {tensor: \"*.w\", split: {0: 2}}");
	for (size_t i = 0; i < node->count && status == SW_OK; i++)
		status = read_key(node->keys[i], node->items[i], pin, err);
	if (status != SW_OK)
		return status;
	if (!pin->pattern || (sw_yaml_get(node, "tensor") && sw_yaml_get(node, "op")))
		return fail_at(err, node, "a pin names a tensor, or an op");
	if (pin->whole == (pin->n > 0 || pin->contract > 1))
		return fail_at(err, node, "a pin says either whole: true, or what is split");
	if (pin->contract > 1 && !pin->is_op)
		return fail_at(err, node,
		               "contract: only of an op; a tensor at rest is no partial sum");
	return SW_OK;
}

sw_status sw_pins_read(const char *path, sw_pins *pins, sw_error *err)
{
	const sw_yaml *root;
	*pins = (sw_pins){.file = path};
	sw_arena_init(&pins->arena);
	sw_status status = sw_yaml_read(path, &pins->arena, &root, err);
	if (status == SW_OK && root->kind != SW_YAML_SEQUENCE)
		status = fail_at(err, root, "expected a list of pins, a line with '- ' each");
	if (status == SW_OK) {
		pins->list = SW_NEW_N(&pins->arena, sw_pin, root->count + 1);
		pins->n = root->count;
	}
	for (size_t i = 0; i < pins->n && status == SW_OK; i++)
		status = read_pin(root->items[i], &pins->list[i], err);
	if (status != SW_OK)
		sw_pins_clear(pins);
	return sw_error_in_file(err, status, path);
}

void sw_pins_clear(sw_pins *pins)
{
	sw_arena_clear(&pins->arena);
	*pins = (sw_pins){0};
}

/* ---- devices ---------------------------------------------------------------------------- */

/* Take the atoms next to those already taken, from the end that the pin says, until they have
 * `parts` devices. Return false if no number of atoms has exactly that product. */
static bool take_atoms(const sw_atoms *atoms, const sw_pin *pin, int64_t parts, int32_t *taken,
                       uint32_t *mask)
{
	int64_t size = 1;
	*mask = 0;
	while (size < parts && *taken < atoms->n) {
		int32_t a = pin->outer ? *taken : atoms->n - 1 - *taken;
		size *= atoms->size[a];
		*mask |= 1u << a;
		++*taken;
	}
	return size == parts;
}

/* The atoms of each pinned dimension, and those of the contraction, of one pin. */
typedef struct pin_devices {
	uint32_t dims[SW_MAX_RANK], contract;
} pin_devices;

static sw_status assign_devices(const sw_pins *pins, const sw_pin *pin, const sw_cluster *cluster,
                                pin_devices *at, sw_error *err)
{
	int32_t taken = 0;
	bool ok = true;
	for (int32_t i = 0; i < pin->n && ok; i++)
		ok = take_atoms(&cluster->atoms, pin, pin->parts[i], &taken, &at->dims[i]);
	if (ok && take_atoms(&cluster->atoms, pin, pin->contract, &taken, &at->contract))
		return SW_OK;
	sw_text factors = {0};
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		sw_text_addf(&factors, "%s%d", a ? " x " : "", cluster->atoms.size[a]);
	sw_status status = sw_fail_at(
		err, SW_ERR_INPUT, pins->file, pin->line, 0,
		"'%s': cluster '%s' has %s devices: numbers must be products of its "
		"%s factors, one after the other",
		pin->pattern, cluster->name, factors.data, pin->outer ? "outermost" : "innermost");
	sw_text_clear(&factors);
	return status;
}

/* ---- decisions -------------------------------------------------------------------------- */

typedef struct resolving {
	const sw_pins *pins;
	const sw_pin *pin;
	sw_analysis *analysis;
	pin_devices at;
	sw_error *err;
} resolving;

static sw_status refuse(const resolving *r, const char *name, const char *why, int64_t number)
{
	char text[256];
	snprintf(text, sizeof(text), why, (long long)number);
	return sw_fail_at(r->err, SW_ERR_INPUT, r->pins->file, r->pin->line, 0, "'%s': %s", name,
	                  text);
}

static void set_options(const resolving *r, uint32_t mask, int32_t index, int64_t top,
                        sw_option *options)
{
	for (int32_t a = 0; a < r->analysis->cluster->atoms.n; a++)
		if (mask >> a & 1)
			options[a] = (sw_option){
				.kind = SW_CHOICE_SPLIT, .index = (int16_t)index, .top = top};
}

static sw_status check_dim(const resolving *r, const char *name, sw_shape shape, int32_t i)
{
	int32_t dim = r->pin->dims[i];
	if (dim >= shape.rank)
		return refuse(r, name, "it has %lld dimensions, numbered from 0", shape.rank);
	if (shape.dims[dim] % r->pin->parts[i] != 0)
		return refuse(r, name,
		              "the size of that dimension is %lld, which its devices do not divide",
		              shape.dims[dim]);
	return SW_OK;
}

static sw_status pin_input(const resolving *r, uint32_t input, const char *name)
{
	sw_analysis *analysis = r->analysis;
	sw_shape shape = sw_value_shape(analysis->program, analysis->roles.inputs[input]);
	sw_option *options = SW_NEW_N(&analysis->arena, sw_option, SW_MAX_ATOMS);
	sw_layout layout = sw_layout_replicated(&analysis->cluster->atoms);
	sw_status status = SW_OK;
	for (int32_t i = 0; i < r->pin->n && status == SW_OK; i++) {
		status = check_dim(r, name, shape, i);
		if (status == SW_OK &&
		    !sw_layout_split(&analysis->cluster->atoms, &layout, r->at.dims[i],
		                     r->pin->dims[i], shape.dims[r->pin->dims[i]]))
			status = refuse(r, name, "dimension %lld is split twice", r->pin->dims[i]);
		if (status == SW_OK)
			set_options(r, r->at.dims[i], r->pin->dims[i], shape.dims[r->pin->dims[i]],
			            options);
	}
	analysis->pinned_inputs[input] = options;
	return status;
}

/* Return a factor that the op sums over and whose size divides by `parts`; -1: none. */
static int32_t contracted(const sw_rule *rule, int64_t parts)
{
	for (int32_t f = 0; f < rule->n_factors; f++)
		if (rule->factors[f].kind == SW_FACTOR_REDUCED &&
		    rule->factors[f].monoid == SW_MONOID_SUM && rule->factors[f].size % parts == 0)
			return f;
	return -1;
}

static sw_status split_result(const resolving *r, sw_id id, int32_t i, sw_strategy *strategy,
                              sw_option *options)
{
	const sw_op *op = sw_op_at(r->analysis->program, id);
	const sw_rule *rule = r->analysis->rules[id];
	sw_shape shape = sw_value_shape(r->analysis->program, op->first_result);
	int32_t factor, dim = r->pin->dims[i];
	int64_t top;
	sw_status status = check_dim(r, op->name, shape, i);
	if (status != SW_OK || r->pin->parts[i] == 1)
		return status;
	if (!sw_rule_factor_at(rule, true, 0, dim, shape.dims[dim], &factor, &top) ||
	    !sw_strategy_split(&r->analysis->cluster->atoms, rule, strategy, r->at.dims[i], factor,
	                       top))
		return refuse(r, op->name,
		              "the op can't be split along dimension %lld of its result", dim);
	set_options(r, r->at.dims[i], factor, top, options);
	return SW_OK;
}

static sw_status split_contraction(const resolving *r, sw_id id, sw_strategy *strategy,
                                   sw_option *options)
{
	const sw_op *op = sw_op_at(r->analysis->program, id);
	const sw_rule *rule = r->analysis->rules[id];
	int32_t factor = contracted(rule, r->pin->contract);
	if (r->pin->contract == 1)
		return SW_OK;
	if (factor < 0 || !sw_strategy_split(&r->analysis->cluster->atoms, rule, strategy,
	                                     r->at.contract, factor, rule->factors[factor].size))
		return refuse(r, op->name, "the op sums over nothing that %lld devices divide",
		              r->pin->contract);
	set_options(r, r->at.contract, factor, rule->factors[factor].size, options);
	return SW_OK;
}

/* Some ops can be split along each of two dimensions, but not along both. */
static bool is_possible(sw_analysis *analysis, sw_id id, const sw_strategy *strategy)
{
	const sw_op *op = sw_op_at(analysis->program, id);
	sw_program_cost cost;
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
	bool possible = sw_rule_layouts(analysis->program, id, analysis->rules[id],
	                                &analysis->cluster->atoms, strategy, layouts,
	                                layouts + op->n_operands) &&
	                sw_price_local(analysis, id, strategy, layouts, &cost);
	free(layouts);
	return possible;
}

static sw_status pin_op(const resolving *r, sw_id id)
{
	sw_analysis *analysis = r->analysis;
	sw_option *options = SW_NEW_N(&analysis->arena, sw_option, SW_MAX_ATOMS);
	sw_strategy strategy = sw_strategy_none(&analysis->cluster->atoms);
	sw_status status = SW_OK;
	for (int32_t i = 0; i < r->pin->n && status == SW_OK; i++)
		status = split_result(r, id, i, &strategy, options);
	if (status == SW_OK)
		status = split_contraction(r, id, &strategy, options);
	if (status == SW_OK && !is_possible(analysis, id, &strategy))
		status = refuse(r, sw_op_at(analysis->program, id)->name,
		                "the op can't be split in all these ways at once, on %lld devices",
		                analysis->cluster->n_devices);
	analysis->pinned_ops[id] = options;
	return status;
}

static bool matches(const sw_pin *pin, const char *name)
{
	return name && fnmatch(pin->pattern, name, 0) == 0;
}

static sw_status pin_inputs(const resolving *r, const sw_sidecar *sidecar, int64_t *found)
{
	const sw_roles *roles = &r->analysis->roles;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < roles->n_inputs && status == SW_OK; i++) {
		const char *name = sidecar->inputs[i].name;
		const sw_op *op =
			sw_op_at(roles->program, roles->program->values.data[roles->inputs[i]].op);
		if (!matches(r->pin, name) && !(op->n_results == 1 && matches(r->pin, op->name)))
			continue;
		++*found;
		status = pin_input(r, i, name ? name : op->name);
	}
	return status;
}

static sw_status pin_ops(const resolving *r, int64_t *found)
{
	const sw_analysis *analysis = r->analysis;
	sw_status status = SW_OK;
	for (sw_id id = 0; id < analysis->program->ops.len && status == SW_OK; id++) {
		const sw_op *op = sw_op_at(analysis->program, id);
		bool named = matches(r->pin, op->name) ||
		             (r->pin->is_op && matches(r->pin, op->op_name));
		if (!named || !analysis->roles.planned[op->computation] ||
		    op->opcode == SW_OP_PARAMETER || sw_is_region(op))
			continue;
		++*found;
		status = pin_op(r, id);
	}
	return status;
}

sw_status sw_pins_resolve(const sw_pins *pins, sw_analysis *analysis, const sw_sidecar *sidecar,
                          sw_error *err)
{
	sw_status status = SW_OK;
	if (pins && pins->annotations.taken)
		status = sw_pins_take_annotations(analysis, err);
	for (size_t i = 0; pins && i < pins->n && status == SW_OK; i++) {
		resolving r = {
			.pins = pins, .pin = &pins->list[i], .analysis = analysis, .err = err};
		int64_t found = 0;
		status = assign_devices(pins, r.pin, analysis->cluster, &r.at, err);
		if (status == SW_OK && !r.pin->is_op)
			status = pin_inputs(&r, sidecar, &found);
		if (status == SW_OK)
			status = pin_ops(&r, &found);
		if (status == SW_OK && found == 0 && !pins->of_parts)
			status = refuse(&r, r.pin->pattern,
			                r.pin->is_op ? "no op of the program has such a name"
			                             : "no tensor of the program has such a name",
			                0);
	}
	return status;
}

/* ---- meshes ----------------------------------------------------------------------------- */

/* Set bit a of `cuts` where no axis may contain both atom a - 1 and atom a, and bit a of `pinned`
 * where a pin splits something over atom a. */
static sw_status find_cuts(const sw_pins *pins, const sw_cluster *cluster, uint32_t *cuts,
                           uint32_t *pinned, sw_error *err)
{
	*cuts = pins->annotations.cuts;
	*pinned = pins->annotations.pinned;
	for (size_t i = 0; i < pins->n; i++) {
		pin_devices at = {0};
		sw_status status = assign_devices(pins, &pins->list[i], cluster, &at, err);
		if (status != SW_OK)
			return status;
		for (int32_t k = 0; k < pins->list[i].n; k++) {
			*cuts |= at.dims[k] ^ at.dims[k] << 1;
			*pinned |= at.dims[k];
		}
		*cuts |= at.contract ^ at.contract << 1;
		*pinned |= at.contract;
	}
	return SW_OK;
}

static bool cut_mesh(const sw_atoms *atoms, uint32_t cuts, sw_mesh *mesh)
{
	sw_mesh fine = *mesh;
	fine.n_axes = 0;
	memset(fine.axes, 0, sizeof(fine.axes));
	for (int32_t i = 0; i < mesh->n_axes; i++) {
		sw_axis *axis = NULL;
		for (int32_t a = 0; a < atoms->n; a++) {
			if (!(mesh->axes[i].atoms >> a & 1))
				continue;
			if (!axis || cuts >> a & 1) {
				if (fine.n_axes == SW_MAX_AXES)
					return false;
				snprintf(fine.axes[fine.n_axes].name, sizeof(axis->name),
				         axis ? "%.6s'" : "%.7s", mesh->axes[i].name);
				fine.use[fine.n_axes] = mesh->use[i];
				axis = &fine.axes[fine.n_axes++];
				axis->coalesced = mesh->axes[i].coalesced;
			}
			axis->atoms |= 1u << a;
			axis->size = sw_atoms_group_size(atoms, axis->atoms);
		}
	}
	*mesh = fine;
	return true;
}

/* Return whether the mesh leaves out atoms that a pin needs: devices beyond them are copies. */
static bool leaves_out(const sw_mesh *mesh, uint32_t pinned)
{
	return mesh->wide && (pinned & ~sw_mesh_atoms(mesh)) != 0;
}

sw_status sw_pins_cut(const sw_pins *pins, const sw_cluster *cluster, sw_meshes *meshes,
                      sw_error *err)
{
	uint32_t cuts, pinned;
	size_t n = 0;
	if (!pins)
		return SW_OK;
	sw_status status = find_cuts(pins, cluster, &cuts, &pinned, err);
	for (size_t i = 0; i < meshes->len && status == SW_OK; i++)
		if (!leaves_out(&meshes->data[i], pinned) &&
		    cut_mesh(&cluster->atoms, cuts, &meshes->data[i]))
			meshes->data[n++] = meshes->data[i];
	if (status == SW_OK && n == 0)
		status = sw_fail(err, SW_ERR_INPUT,
		                 "%s: with these pins the strategy needs more than %d axes: pin "
		                 "fewer numbers of "
		                 "devices",
		                 pins->file, SW_MAX_AXES);
	meshes->len = n;
	return status;
}

/* ---- checking --------------------------------------------------------------------------- */

static bool input_is_as_pinned(const sw_analysis *analysis, const sw_plan *plan, uint32_t input)
{
	const sw_layout *layout =
		sw_plan_layout(plan, plan->produced[analysis->roles.inputs[input]]);
	for (int32_t a = 0; a < layout->n; a++) {
		const sw_option *option = &analysis->pinned_inputs[input][a];
		bool split = option->kind == SW_CHOICE_SPLIT;
		if (option->open && layout->state[a].kind == SW_STATE_S &&
		    !(option->open >> layout->state[a].dim & 1))
			return false;
		if (option->open)
			continue;
		if ((layout->state[a].kind == SW_STATE_S) != split ||
		    (split && layout->state[a].dim != option->index))
			return false;
	}
	return true;
}

static bool op_is_as_pinned(const sw_analysis *analysis, const sw_plan *plan, sw_id op)
{
	for (int32_t a = 0; a < analysis->cluster->atoms.n; a++) {
		const sw_choice *choice = &plan->strategies[op].atom[a];
		const sw_option *option = &analysis->pinned_ops[op][a];
		bool open = choice->kind == SW_CHOICE_NONE ||
		            (choice->kind == SW_CHOICE_SPLIT && option->open >> choice->index & 1);
		if (option->open && open)
			continue;
		if (option->open || choice->kind != option->kind ||
		    (option->kind == SW_CHOICE_SPLIT && choice->index != option->index))
			return false;
	}
	return true;
}

sw_status sw_pins_check(const sw_analysis *analysis, const sw_plan *plan, sw_error *err)
{
	for (uint32_t i = 0; i < analysis->roles.n_inputs; i++)
		if (analysis->pinned_inputs[i] && !input_is_as_pinned(analysis, plan, i))
			return sw_fail(err, SW_ERR_INTERNAL,
			               "the plan does not hold to the pin of input %u", i);
	for (sw_id id = 0; id < analysis->program->ops.len; id++)
		if (analysis->pinned_ops[id] && !op_is_as_pinned(analysis, plan, id))
			return sw_fail(err, SW_ERR_INTERNAL,
			               "the plan does not hold to the pin of op '%s'",
			               sw_op_at(analysis->program, id)->name);
	return SW_OK;
}
