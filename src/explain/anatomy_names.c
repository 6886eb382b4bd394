/*
 * Names of an anatomy: short names of the inputs, well-known names of dimensions, and a label for
 * each value.
 */
#include "explain/internal.h"

#include <ctype.h>
#include <string.h>

/* ---- names of inputs -------------------------------------------------------------------- */

static bool separates(char c)
{
	return c == '.' || c == '/' || c == '[' || c == ']' || c == '\'' || c == '"';
}

/* Turn "params['blocks'][0]['w']" and "params__blocks___0___w__.1" into "params.blocks.0.w". */
static const char *plain_name(sw_arena *arena, const char *name)
{
	char *plain = sw_arena_text(arena, name), *to = plain;
	bool mangled = strstr(name, "__") != NULL;
	for (const char *c = name; *c; c++) {
		bool run = *c == '_' && (c[1] == '_' || (c > name && c[-1] == '_'));
		if (!separates(*c) && !run)
			*to++ = *c;
		else if (to > plain && to[-1] != '.')
			*to++ = '.';
	}
	while (to > plain && (to[-1] == '.' || (mangled && isdigit((unsigned char)to[-1]))))
		to--;
	*to = 0;
	return plain[0] ? plain : name;
}

/* Return the length of the prefix that all parameter names share, up to a separator. */
static size_t common_prefix(const sw_anatomy *a)
{
	const char *first = NULL;
	size_t common = 0;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		if (a->roles.input_role[i] != SW_ROLE_PARAMETER)
			continue;
		const char *name = a->input_name[i];
		size_t n = 0;
		common = first ? common : strlen(name);
		first = first ? first : name;
		while (n < common && name[n] == first[n])
			n++;
		common = n;
	}
	while (common > 0 && first[common - 1] != '.')
		common--;
	/* the remaining names must not begin with the number of a layer */
	while (common > 0 && first && isdigit((unsigned char)first[common])) {
		common--;
		while (common > 0 && first[common - 1] != '.')
			common--;
	}
	return common;
}

void sw_anatomy_name_inputs(sw_anatomy *a)
{
	a->input_name = SW_NEW_N(&a->arena, const char *, a->roles.n_inputs + 1);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		a->input_name[i] = plain_name(
			&a->arena,
			a->sidecar && i < a->sidecar->n_inputs
				? a->sidecar->inputs[i].name
				: sw_op_at(a->program,
		                           a->program->values.data[a->roles.inputs[i]].op)
					  ->name);
	size_t skip = common_prefix(a);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		if (a->roles.input_role[i] == SW_ROLE_PARAMETER)
			a->input_name[i] += skip;
}

/* ---- names of dimensions --------------------------------------------------------------- */

static int32_t class_at(const sw_anatomy *a, sw_id value, int32_t dim, int64_t top)
{
	for (uint32_t s = a->classes.value_start[value]; s < a->classes.value_start[value + 1]; s++)
		if (a->classes.value_splits[s].where == dim &&
		    a->classes.value_splits[s].top == top)
			return a->classes.value_splits[s].class;
	return -1;
}

static void name_class(sw_anatomy *a, sw_id value, int32_t dim, const char *name)
{
	sw_shape shape = sw_value_shape(a->program, value);
	int32_t class = dim < shape.rank ? class_at(a, value, dim, shape.dims[dim]) : -1;
	if (class >= 0 && !a->class_name[class])
		a->class_name[class] = name;
}

/* A class that has two dimensions of one parameter is too broad for a name. */
static void clear_broad_names(sw_anatomy *a)
{
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		sw_shape shape = sw_value_shape(a->program, a->roles.inputs[i]);
		for (int32_t d = 0; d < shape.rank && a->roles.input_role[i] == SW_ROLE_PARAMETER;
		     d++)
			for (int32_t e = 0; e < d; e++) {
				int32_t class = class_at(a, a->roles.inputs[i], d, shape.dims[d]);
				if (class >= 0 &&
				    class == class_at(a, a->roles.inputs[i], e, shape.dims[e]))
					a->class_name[class] = NULL;
			}
	}
}

void sw_anatomy_name_classes(sw_anatomy *a)
{
	const sw_program *p = a->program;
	uint32_t operand;
	a->class_name = SW_NEW_N(&a->arena, const char *, a->classes.n + 1);
	for (int32_t c = 0; c < a->classes.n; c++)
		a->class_name[c] = a->classes.roles[c] & SW_CLASS_DATA ? "batch" : NULL;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		sw_shape shape = sw_value_shape(p, a->roles.inputs[i]);
		bool ids = sw_type_kind_of(shape.type) != SW_KIND_FLOAT;
		if (a->roles.input_role[i] == SW_ROLE_DATA && ids && shape.rank == 2)
			name_class(a, a->roles.inputs[i], 1, "sequence");
		for (int32_t d = 0;
		     a->sidecar && d < shape.rank && a->roles.input_role[i] == SW_ROLE_PARAMETER;
		     d++)
			if (shape.rank > 1 && a->sidecar->vocabulary > 1 &&
			    shape.dims[d] == a->sidecar->vocabulary)
				name_class(a, a->roles.inputs[i], d, "vocabulary");
	}
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		bool batched = op->opcode == SW_OP_DOT && a->phase[id] == SW_PASS_FORWARD;
		const char *name =
			batched && sw_anatomy_parameter(a, id, &operand) >= 0 ? "experts" : "heads";
		for (int32_t i = 0; batched && i < op->attrs->dot.lhs_batch.n; i++)
			name_class(a, op->operands[0], (int32_t)op->attrs->dot.lhs_batch.v[i],
			           name);
	}
	clear_broad_names(a);
}

/* ---- labels ----------------------------------------------------------------------------- */

/* Shorten "jit(step)/jvp(gpt)/layer_3/attn/dot_general" to "layer_3/attn/dot_general": scopes that
 * transformations add are no part of the model. */
static void add_scope(const char *name, sw_text *text)
{
	for (const char *c = name; *c;) {
		size_t length = strcspn(c, "/");
		if (!memchr(c, '(', length) || !c[length])
			sw_text_add_n(text, c, length + (c[length] == '/'));
		c += length + (c[length] == '/');
	}
}

void sw_anatomy_label(const sw_anatomy *a, sw_id value, sw_text *text)
{
	const sw_value *v = &a->program->values.data[value];
	const sw_op *op = sw_op_at(a->program, v->op);
	uint32_t operand;
	int32_t input = a->input[value], section = a->section[v->op];
	int32_t parameter = sw_is_contraction(op) ? sw_anatomy_parameter(a, v->op, &operand) : -1;
	if (input >= 0)
		sw_text_add(text, a->input_name[input]);
	else if (a->gradient[value] >= 0)
		sw_text_addf(text, "%s of %s", a->is_update[value] ? "update" : "gradient",
		             a->input_name[a->gradient[value]]);
	else if (a->code_of[v->op] >= 0)
		sw_text_addf(text, "coded gradient of %s", a->input_name[a->code_of[v->op]]);
	else if (parameter >= 0 && a->phase[v->op] == SW_PASS_FORWARD)
		sw_text_addf(text, "output of %s", a->input_name[parameter]);
	else if (parameter >= 0)
		sw_text_addf(text, "gradient to the input of %s", a->input_name[parameter]);
	else if (op->op_name && op->op_name[0])
		add_scope(op->op_name, text);
	else
		sw_text_addf(text, "%s%s%s%s", section >= 0 ? a->sections.data[section].name : "",
		             section >= 0 ? " " : "", sw_op_opcode_name(op),
		             a->phase[v->op] == SW_PASS_BACKWARD ? ", backward" : "");
}

const char *sw_anatomy_fold(sw_anatomy *a, const char *label)
{
	char *folded = sw_arena_text(&a->arena, label), *to = folded;
	for (const char *c = label; *c;) {
		size_t digits = strspn(c, "0123456789");
		bool alone = digits > 0 && (c == label || c[-1] == '.' || c[-1] == ' ') &&
		             (c[digits] == 0 || c[digits] == '.' || c[digits] == ' ' ||
		              c[digits] == ':');
		size_t n = alone ? digits : SW_MAX(digits, 1);
		if (alone)
			*to++ = '*';
		else
			memmove(to, c, n), to += n;
		c += n;
	}
	*to = 0;
	return folded;
}
