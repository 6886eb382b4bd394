/* Layouts as text: "[S0 S1/4 B P(sum) O1]". */
#include "layout/digits.h"

#include <stdlib.h>
#include <string.h>

/* Return the stride of a plain block split, in which the digits of the dimension descend from N in
 * the order of the atoms; 0 where N is not divisible by their sizes. */
static int64_t plain_stride(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                            int32_t atom, int32_t dim)
{
	int64_t rest = shape.dims[dim];
	for (int32_t a = 0; a <= atom; a++) {
		if (layout->state[a].kind != SW_STATE_S || layout->state[a].dim != dim)
			continue;
		if (rest % atoms->size[a] != 0)
			return 0;
		rest /= atoms->size[a];
	}
	return rest;
}

static void print_split(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                        int32_t atom, sw_text *text)
{
	sw_state s = layout->state[atom];
	sw_text_addf(text, "S%d", s.dim);
	if (s.dim >= shape.rank || s.stride != plain_stride(atoms, shape, layout, atom, s.dim))
		sw_text_addf(text, "/%lld", (long long)s.stride);
}

void sw_layout_print(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, sw_text *text)
{
	sw_text_add(text, "[");
	for (int32_t a = 0; a < layout->n; a++) {
		sw_text_add(text, a ? " " : "");
		if (layout->state[a].kind == SW_STATE_S)
			print_split(atoms, shape, layout, a, text);
		else if (layout->state[a].kind == SW_STATE_P)
			sw_text_addf(text, "P(%s)", sw_monoid_name(layout->monoid));
		else if (layout->state[a].kind == SW_STATE_O)
			sw_text_addf(text, "O%lld", (long long)layout->state[a].stride);
		else
			sw_text_add(text, "B");
	}
	sw_text_add(text, "]");
}

/* ---- parsing ---------------------------------------------------------------------------- */

typedef struct parser {
	const char *text, *at;
	const sw_atoms *atoms;
	sw_shape shape;
	sw_layout *layout;
	sw_error *err;
} parser;

static void skip_blanks(parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

static int column(const parser *p)
{
	return (int)(p->at - p->text) + 1;
}

static sw_status bad(const parser *p, const char *message)
{
	return sw_fail_at(p->err, SW_ERR_INPUT, "", 1, column(p), "layout \"%s\": %s", p->text,
	                  message);
}

static bool read_number(parser *p, int64_t *number)
{
	if (*p->at < '0' || *p->at > '9')
		return false;
	*number = 0;
	for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
		if (*number > (INT64_MAX - 9) / 10)
			return false;
		*number = *number * 10 + (*p->at - '0');
	}
	return true;
}

static sw_status read_split(parser *p, int32_t atom)
{
	sw_state *state = &p->layout->state[atom];
	int64_t dim;
	p->at++;
	if (!read_number(p, &dim))
		return bad(p, "expected the number of a dimension after S");
	if (dim >= p->shape.rank)
		return bad(p, "the tensor has no such dimension");
	*state = (sw_state){.kind = SW_STATE_S, .dim = (int8_t)dim};
	if (*p->at != '/') {
		state->stride = plain_stride(p->atoms, p->shape, p->layout, atom, (int32_t)dim);
		return state->stride ? SW_OK
		                     : bad(p, "the dimension is not divisible by its atoms");
	}
	p->at++;
	if (!read_number(p, &state->stride) || state->stride == 0)
		return bad(p, "expected a stride of at least 1 after /");
	return SW_OK;
}

static bool find_monoid(const char *name, size_t length, sw_monoid *monoid)
{
	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++) {
		const char *name_of_m = sw_monoid_name((sw_monoid)m);
		if (strlen(name_of_m) == length && strncmp(name, name_of_m, length) == 0) {
			*monoid = (sw_monoid)m;
			return true;
		}
	}
	return false;
}

static sw_status read_partial(parser *p, int32_t atom)
{
	sw_monoid monoid;
	if (p->at[1] != '(')
		return bad(p, "expected ( after P, as in P(sum)");
	const char *name = p->at + 2, *end = strchr(name, ')');
	if (!end || !find_monoid(name, (size_t)(end - name), &monoid))
		return bad(p, "expected P(sum), P(product), P(max), P(min), P(and) or P(or)");
	if (p->layout->monoid != SW_MONOID_NONE && p->layout->monoid != monoid)
		return bad(p, "all P of a layout have the same monoid");
	p->layout->monoid = monoid;
	p->layout->state[atom].kind = SW_STATE_P;
	p->at = end + 1;
	return SW_OK;
}

static sw_status read_owned(parser *p, int32_t atom)
{
	sw_state *state = &p->layout->state[atom];
	p->at++;
	if (!read_number(p, &state->stride))
		return bad(p, "expected the owner's coordinate after O");
	if (state->stride >= p->atoms->size[atom])
		return bad(p, "the atom has no such coordinate");
	state->kind = SW_STATE_O;
	return SW_OK;
}

static sw_status read_state(parser *p, int32_t atom)
{
	sw_status status = SW_OK;
	if (*p->at == 'S')
		status = read_split(p, atom);
	else if (*p->at == 'P')
		status = read_partial(p, atom);
	else if (*p->at == 'O')
		status = read_owned(p, atom);
	else if (*p->at == 'B')
		p->at++;
	else
		return bad(
			p,
			*p->at == ']'
				? "fewer states than the cluster has atoms"
				: "expected B, P(...), S with a dimension or O with a coordinate");
	if (status == SW_OK && !strchr(" \t]", *p->at))
		return bad(p, "expected a blank or ] after a state");
	return status;
}

static sw_status read_layout(parser *p)
{
	sw_status status = SW_OK;
	skip_blanks(p);
	if (*p->at != '[')
		return bad(p, "expected [");
	p->at++;
	skip_blanks(p);
	for (int32_t a = 0; a < p->atoms->n && status == SW_OK; a++) {
		status = read_state(p, a);
		if (status == SW_OK)
			skip_blanks(p);
	}
	if (status != SW_OK)
		return status;
	if (*p->at != ']')
		return bad(p, *p->at ? "more states than the cluster has atoms"
		                     : "expected ] at the end");
	p->at++;
	skip_blanks(p);
	return *p->at ? bad(p, "expected nothing after ]") : SW_OK;
}

sw_status sw_layout_parse(const sw_atoms *atoms, sw_shape shape, const char *text,
                          sw_layout *layout, sw_error *err)
{
	sw_layout found = sw_layout_replicated(atoms);
	parser p = {.text = text,
	            .at = text,
	            .atoms = atoms,
	            .shape = shape,
	            .layout = &found,
	            .err = err};
	sw_status status = read_layout(&p);
	if (status == SW_OK && !sw_layout_valid(atoms, shape, &found)) {
		p.at = text;
		status = bad(&p, "the digits of a dimension overlap, or do not divide it");
	}
	if (status == SW_OK)
		*layout = found;
	return status;
}
