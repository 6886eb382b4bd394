/*
 * Annotations of shardings in a program, taken as pins (docs/pins.md).
 *
 * An annotation numbers the devices as the cluster does, the last atom fastest, so that each of its
 * digits must be atoms of the cluster: then it is a layout. A parameter's layout is that of the
 * input at rest; a constraint is a copy, whose strategy is fixed, so that what it reads is moved
 * there and what reads it is moved from there.
 */
#include "model/internal.h"

#include "frontend/sharding.h"

#include <stdlib.h>
#include <string.h>

/* The layout of an array as annotated, and per atom the top of the run of digits that it is in. */
typedef struct annotated {
	sw_layout layout;
	int64_t top[SW_MAX_ATOMS];
} annotated;

typedef struct annotation {
	const sw_program *program;
	const sw_cluster *cluster;
	const sw_op *op;
	sw_sharding sharding;
	sw_shape shape;
	sw_error *err;
} annotation;

static sw_status refuse(const annotation *x, const char *format, ...) SW_PRINTF(2, 3);
static sw_status refuse(const annotation *x, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return sw_fail_at(x->err, SW_ERR_INPUT, x->program->source, x->op->line, 0,
	                  "'%s', annotated %s: %s, or leave annotations out with --annotations "
	                  "ignore",
	                  x->op->name, sw_op_sharding(x->op), text);
}

/* Give a digit's devices to the atoms that make up their numbers. */
static sw_status take_digit(const annotation *x, const sw_sharding_digit *digit, int64_t *left,
                            sw_layout *layout)
{
	const sw_atoms *atoms = &x->cluster->atoms;
	int64_t stride = x->cluster->n_devices, size = 1;
	if (digit->dim >= x->shape.rank || *left % digit->size != 0)
		return refuse(x, "%lld devices do not divide its dimension %d: pad it",
		              (long long)digit->size, digit->dim);
	for (int32_t a = 0; a < atoms->n; a++) {
		stride /= atoms->size[a];
		if (stride < digit->stride || stride * atoms->size[a] > digit->stride * digit->size)
			continue;
		if (layout->state[a].kind == SW_STATE_S)
			return refuse(x, "it names a device twice: mend it");
		size *= atoms->size[a];
		*left /= atoms->size[a];
		layout->state[a] = (sw_state){SW_STATE_S, (int8_t)digit->dim, *left};
	}
	if (size != digit->size)
		return refuse(x, "cluster '%s' has no %lld devices at that stride: plan for "
		              "another cluster",
		              x->cluster->name, (long long)digit->size);
	return SW_OK;
}

/* Atoms whose digits continue each other are one run. */
static void find_runs(const sw_atoms *atoms, annotated *at)
{
	for (int32_t a = 0; a < atoms->n; a++) {
		const sw_state *s = &at->layout.state[a], *above = a ? s - 1 : s;
		bool goes_on = a && s->kind == SW_STATE_S && above->kind == SW_STATE_S &&
		               s->dim == above->dim && above->stride == s->stride * atoms->size[a];
		at->top[a] = goes_on ? at->top[a - 1] : s->stride * atoms->size[a];
	}
}

static sw_status find_layout(const annotation *x, annotated *at)
{
	*at = (annotated){.layout = sw_layout_replicated(&x->cluster->atoms)};
	if (x->sharding.n && x->sharding.n_devices != x->cluster->n_devices)
		return refuse(x, "cluster '%s' has %lld devices, this is for %lld: plan for as many",
		              x->cluster->name, (long long)x->cluster->n_devices,
		              (long long)x->sharding.n_devices);
	int64_t left = 1;
	for (int32_t i = 0; i < x->sharding.n; i++) {
		const sw_sharding_digit *digit = &x->sharding.digits[i];
		if (i == 0 || digit->dim != digit[-1].dim)
			left = digit->dim < x->shape.rank ? x->shape.dims[digit->dim] : 1;
		SW_TRY(take_digit(x, digit, &left, &at->layout));
	}
	find_runs(&x->cluster->atoms, at);
	return SW_OK;
}

/* Return whether the op is annotated in a way that can be a pin; count it. */
static bool begin(annotation *x, const sw_op *op, sw_annotations *counts)
{
	const char *text = sw_op_sharding(op);
	if (!text)
		return false;
	x->op = op;
	x->shape = sw_value_shape(x->program, op->first_result);
	x->sharding = sw_sharding_parse(text, x->shape.rank);
	bool taken = x->sharding.kind == SW_SHARDING_TILED;
	counts->taken += taken;
	counts->open += !taken;
	return taken;
}

/* Axes end where a run of digits does. */
static void add_cuts(const sw_atoms *atoms, const annotated *at, sw_annotations *found)
{
	for (int32_t a = 0; a < atoms->n; a++) {
		const sw_state *s = &at->layout.state[a];
		if (s->kind == SW_STATE_S)
			found->pinned |= 1u << a;
		if (a > 0 && (s->kind != s[-1].kind || s->dim != s[-1].dim ||
		              at->top[a] != at->top[a - 1]) &&
		    (s->kind == SW_STATE_S || s[-1].kind == SW_STATE_S))
			found->cuts |= 1u << a;
	}
}

sw_status sw_pins_annotate(sw_pins *pins, const sw_program *program, const sw_cluster *cluster,
                           sw_error *err)
{
	annotation x = {.program = program, .cluster = cluster, .err = err};
	annotated at;
	pins->annotations = (sw_annotations){.lost = program->lost_annotations};
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		if (op->opcode == SW_OP_PARAMETER && op->computation != program->entry)
			continue;
		if (!begin(&x, op, &pins->annotations))
			continue;
		SW_TRY(find_layout(&x, &at));
		add_cuts(&cluster->atoms, &at, &pins->annotations);
	}
	if (!pins->file)
		pins->file = program->source;
	return SW_OK;
}

/* ---- decisions -------------------------------------------------------------------------- */

/* The factors of a copy that its open dimensions are. */
static uint32_t open_factors(const annotation *x, const sw_rule *rule)
{
	uint32_t open = 0;
	for (int32_t d = 0; d < x->shape.rank; d++) {
		int32_t factor;
		int64_t top;
		if (x->sharding.open >> d & 1 &&
		    sw_rule_factor_at(rule, true, 0, d, x->shape.dims[d], &factor, &top))
			open |= 1u << factor;
	}
	return open;
}

/* Set *options to the pinned options of the copy. */
static sw_status pin_copy(const annotation *x, sw_analysis *analysis, const annotated *at,
                          sw_id id, sw_option *options)
{
	const sw_atoms *atoms = &x->cluster->atoms;
	const sw_rule *rule = analysis->rules[id];
	sw_strategy strategy = sw_strategy_none(atoms);
	uint32_t open = open_factors(x, rule);
	for (int32_t a = 0; a < atoms->n; a++) {
		const sw_state *s = &at->layout.state[a];
		uint32_t mask = 1u << a;
		int32_t factor, from = a;
		int64_t top;
		options[a].open = s->kind == SW_STATE_S ? 0 : open;
		if (s->kind != SW_STATE_S)
			continue;
		while (a + 1 < atoms->n && at->layout.state[a + 1].kind == SW_STATE_S &&
		       at->layout.state[a + 1].dim == s->dim && at->top[a + 1] == at->top[a])
			mask |= 1u << ++a;
		if (!sw_rule_factor_at(rule, true, 0, s->dim, at->top[from], &factor, &top) ||
		    !sw_strategy_split(atoms, rule, &strategy, mask, factor, top))
			return refuse(x, "it can't be split so: mend it");
		for (int32_t b = from; b <= a; b++)
			options[b] = (sw_option){
				.kind = SW_CHOICE_SPLIT, .index = (int16_t)factor, .top = top};
	}
	return SW_OK;
}

static void pin_parameter(const sw_atoms *atoms, const annotated *at, uint32_t open,
                          sw_option *options)
{
	for (int32_t a = 0; a < atoms->n; a++)
		if (at->layout.state[a].kind != SW_STATE_S)
			options[a].open = open;
		else
			options[a] = (sw_option){.kind = SW_CHOICE_SPLIT,
			                         .index = at->layout.state[a].dim,
			                         .top = at->top[a]};
}

/* Return the leaf of an entry parameter of one result. */
static uint32_t input_of(const sw_analysis *analysis, const sw_op *op)
{
	uint32_t input = 0;
	while (analysis->roles.inputs[input] != op->first_result)
		input++;
	return input;
}

sw_status sw_pins_take_annotations(sw_analysis *analysis, sw_error *err)
{
	const sw_program *program = analysis->program;
	annotation x = {.program = program, .cluster = analysis->cluster, .err = err};
	sw_annotations ignored = {0};
	annotated at;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		bool input = op->opcode == SW_OP_PARAMETER;
		bool planned = input ? op->computation == program->entry
		                     : analysis->roles.planned[op->computation];
		if (!planned || !begin(&x, op, &ignored))
			continue;
		sw_option *options = SW_NEW_N(&analysis->arena, sw_option, SW_MAX_ATOMS);
		SW_TRY(find_layout(&x, &at));
		if (input) {
			pin_parameter(&analysis->cluster->atoms, &at, x.sharding.open, options);
			analysis->pinned_inputs[input_of(analysis, op)] = options;
		} else {
			SW_TRY(pin_copy(&x, analysis, &at, id, options));
			analysis->pinned_ops[id] = options;
		}
	}
	return SW_OK;
}
