/* Read the signature of a custom call (call_signature.h). */
#include "program/call_signature.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 32 /* of parentheses in an expression */

typedef struct signature_reader {
	const char *text, *at;
	sw_call_signature *s;
	const sw_shape *shapes; /* operands, then results */
	uint32_t n_operands, n_shapes;
	sw_arena *arena;
	sw_error *err;
	int32_t dots; /* names that `...` stands for so far */
	int depth;
} signature_reader;

/* ---- words ------------------------------------------------------------------------------ */

static sw_status SW_PRINTF(2, 3) fail(signature_reader *r, const char *format, ...)
{
	char what[160];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	return sw_fail(r->err, SW_ERR_INPUT, "signature, character %d: %s",
	               (int)(r->at - r->text) + 1, what);
}

static char peek(signature_reader *r)
{
	while (*r->at == ' ' || *r->at == '\t')
		r->at++;
	return *r->at;
}

static bool take(signature_reader *r, const char *mark)
{
	peek(r);
	if (strncmp(r->at, mark, strlen(mark)) != 0)
		return false;
	r->at += strlen(mark);
	return true;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Take a word of letters, digits and _; its length is 0 if there is none. */
static sw_call_name take_word(signature_reader *r)
{
	sw_call_name word = {.text = (peek(r), r->at)};
	while (is_word(*r->at))
		r->at++;
	word.length = (int32_t)(r->at - word.text);
	return word;
}

static int32_t find_name(const signature_reader *r, const sw_call_name *word)
{
	for (int32_t i = 0; i < r->s->n_names; i++)
		if (r->s->names[i].length == word->length &&
		    memcmp(r->s->names[i].text, word->text, (size_t)word->length) == 0)
			return i;
	return -1;
}

static sw_status add_name(signature_reader *r, sw_call_name word, int32_t *number)
{
	*number = find_name(r, &word);
	if (*number >= 0)
		return SW_OK;
	if (r->s->n_names == SW_CALL_NAMES)
		return fail(r, "more than %d names", SW_CALL_NAMES);
	*number = r->s->n_names++;
	r->s->names[*number] = word;
	return SW_OK;
}

/* ---- arrays ----------------------------------------------------------------------------- */

/* Dimensions of one array while they are read. */
typedef struct dim_list {
	sw_call_dim dims[SW_MAX_RANK];
	int64_t fixed[SW_MAX_RANK]; /* a number that stands in its place, -1: none */
	int32_t n;
} dim_list;

static sw_status read_dim(signature_reader *r, dim_list *list)
{
	sw_call_dim dim = {0};
	int64_t fixed = -1;
	bool product = take(r, "(");
	if (list->n == SW_MAX_RANK)
		return fail(r, "more than %d dimensions", SW_MAX_RANK);
	do {
		sw_call_name word = take_word(r);
		if (word.length == 0 || dim.n == SW_CALL_DIM_NAMES)
			return fail(r, "expected %s", word.length ? "no further name" : "a name");
		if (!product && isdigit((unsigned char)*word.text))
			fixed = strtoll(word.text, NULL, 10);
		else if (isdigit((unsigned char)*word.text))
			return fail(r, "a number stands alone, not in a product");
		else if (word.length > 1 || *word.text != '_')
			SW_TRY(add_name(r, word, &dim.names[dim.n++]));
	} while (product && !take(r, ")"));
	list->fixed[list->n] = fixed;
	list->dims[list->n++] = dim;
	return SW_OK;
}

/* Put the dimensions that `...` stands for in front: names of their own, each named by three dots
 * and a mark behind them in this static text. */
static sw_status add_dots(signature_reader *r, dim_list *list, int32_t n)
{
	static const char marks[] = "...0...1...2...3...4...5...6...7";
	if (n < 0 || n > (int32_t)sizeof(marks) / 4)
		return fail(r, "`...` would stand for %d dimensions", n);
	r->dots = SW_MAX(r->dots, n);
	memmove(&list->dims[n], list->dims, sizeof(*list->dims) * (size_t)list->n);
	memmove(&list->fixed[n], list->fixed, sizeof(*list->fixed) * (size_t)list->n);
	for (int32_t i = 0; i < n; i++) {
		/* counted from the right, so that shapes of different ranks align */
		sw_call_name name = {.text = marks + 4 * (size_t)(n - 1 - i), .length = 4};
		list->dims[i] = (sw_call_dim){.n = 1};
		list->fixed[i] = -1;
		SW_TRY(add_name(r, name, &list->dims[i].names[0]));
	}
	list->n += n;
	return SW_OK;
}

static const char *array_word(const signature_reader *r, uint32_t array, uint32_t *number)
{
	bool operand = array < r->n_operands;
	*number = operand ? array : array - r->n_operands;
	return operand ? "operand" : "result";
}

static sw_status read_array(signature_reader *r, uint32_t array)
{
	sw_shape shape = r->shapes[array];
	dim_list list = {.n = 0};
	uint32_t number;
	const char *word = array_word(r, array, &number);
	bool dots = take(r, "...");
	if (!take(r, "()"))
		while (is_word(peek(r)) || *r->at == '(')
			SW_TRY(read_dim(r, &list));
	if (dots)
		SW_TRY(add_dots(r, &list, shape.rank - list.n));
	if (list.n != shape.rank)
		return fail(r, "%s %u has %d dimensions, and %d are named", word, number,
		            shape.rank, list.n);
	for (int32_t i = 0; i < list.n; i++)
		if (list.fixed[i] >= 0 && list.fixed[i] != shape.dims[i])
			return fail(r, "dimension %d of %s %u is %lld, not %lld", i, word, number,
			            (long long)shape.dims[i], (long long)list.fixed[i]);
	r->s->arrays[array] =
		sw_arena_copy(r->arena, list.dims, sizeof(*list.dims) * (size_t)(list.n + 1));
	return SW_OK;
}

static sw_status read_arrays(signature_reader *r, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		SW_TRY(read_array(r, i));
		if (i + 1 < end && !take(r, ","))
			return fail(r, "expected ',' and %u more arrays", end - 1 - i);
	}
	return SW_OK;
}

/* ---- sizes ------------------------------------------------------------------------------ */

/* Learn the one unknown size of a dimension's names, or check that their product is right. */
static sw_status learn(signature_reader *r, const sw_call_dim *dim, int64_t size, bool *learned)
{
	int64_t known = 1;
	int32_t unknown = -1, n_unknown = 0;
	for (int32_t i = 0; i < dim->n; i++) {
		sw_call_name *name = &r->s->names[dim->names[i]];
		if (name->size > 0) {
			known *= name->size;
			continue;
		}
		unknown = dim->names[i];
		n_unknown++;
	}
	if (dim->n == 0 || n_unknown > 1)
		return SW_OK;
	const sw_call_name *first = &r->s->names[n_unknown ? unknown : dim->names[0]];
	if (n_unknown ? size % known != 0 || size == 0 : size != known)
		return fail(r, "a dimension of %lld elements contradicts the size of '%.*s'",
		            (long long)size, (int)first->length, first->text);
	if (n_unknown)
		r->s->names[unknown].size = size / known;
	*learned |= n_unknown > 0;
	return SW_OK;
}

static sw_status find_sizes(signature_reader *r)
{
	for (bool learned = true; learned;) {
		learned = false;
		for (uint32_t a = 0; a < r->n_shapes; a++)
			for (int32_t d = 0; d < r->shapes[a].rank; d++)
				SW_TRY(learn(r, &r->s->arrays[a][d], r->shapes[a].dims[d],
				             &learned));
	}
	for (int32_t i = 0; i < r->s->n_names; i++)
		if (r->s->names[i].size == 0)
			return fail(r, "the size of '%.*s' follows from no dimension",
			            (int)r->s->names[i].length, r->s->names[i].text);
	return SW_OK;
}

/* ---- expressions ------------------------------------------------------------------------ */

static sw_status read_sum(signature_reader *r, double *value);

static sw_status read_atom(signature_reader *r, double *value)
{
	if (take(r, "(")) {
		if (++r->depth > MAX_DEPTH)
			return fail(r, "parentheses nest more than %d deep", MAX_DEPTH);
		SW_TRY(read_sum(r, value));
		r->depth--;
		return take(r, ")") ? SW_OK : fail(r, "expected ')'");
	}
	if (take(r, "...")) {
		*value = 1;
		for (int32_t i = 0; i < r->s->n_names; i++)
			*value *= *r->s->names[i].text == '.' ? (double)r->s->names[i].size : 1;
		return SW_OK;
	}
	if (isdigit((unsigned char)peek(r))) {
		char *end;
		*value = strtod(r->at, &end);
		r->at = end;
		return SW_OK;
	}
	sw_call_name word = take_word(r);
	int32_t name = word.length ? find_name(r, &word) : -1;
	if (name < 0)
		return fail(r, "expected a number or a name of a dimension");
	*value = (double)r->s->names[name].size;
	return SW_OK;
}

static sw_status read_product(signature_reader *r, double *value)
{
	SW_TRY(read_atom(r, value));
	for (;;) {
		double other;
		bool times = take(r, "*");
		if (!times && !take(r, "/"))
			return SW_OK;
		SW_TRY(read_atom(r, &other));
		*value = times ? *value * other : *value / other;
	}
}

static sw_status read_sum(signature_reader *r, double *value)
{
	SW_TRY(read_product(r, value));
	for (;;) {
		double other;
		bool plus = take(r, "+");
		if (!plus && !take(r, "-"))
			return SW_OK;
		SW_TRY(read_product(r, &other));
		*value += plus ? other : -other;
	}
}

static sw_status read_expression(signature_reader *r, double *value)
{
	SW_TRY(read_sum(r, value));
	return isfinite(*value) && *value >= 0 ? SW_OK
	                                       : fail(r, "the value is no number of 0 or more");
}

/* ---- clauses ---------------------------------------------------------------------------- */

static bool array_has(const signature_reader *r, uint32_t array, int32_t name)
{
	for (int32_t d = 0; d < r->shapes[array].rank; d++)
		for (int32_t i = 0; i < r->s->arrays[array][d].n; i++)
			if (r->s->arrays[array][d].names[i] == name)
				return true;
	return false;
}

/* A part of a split name gives a part of each result; a part of a summed one a term of each. What
 * has no elements, as a workspace, needs nothing. */
static sw_status set_use(signature_reader *r, int32_t name, sw_call_use use)
{
	const sw_call_name *n = &r->s->names[name];
	for (uint32_t a = r->n_operands; a < r->n_shapes; a++) {
		bool has = array_has(r, a, name), empty = false;
		for (int32_t d = 0; d < r->shapes[a].rank; d++)
			empty |= r->shapes[a].dims[d] == 0;
		if (!empty && has != (use == SW_CALL_SPLIT))
			return fail(r,
			            use == SW_CALL_SPLIT
			                    ? "'%.*s' is split, and result %u does not have it"
			                    : "'%.*s' is summed, and result %u has it",
			            (int)n->length, n->text, a - r->n_operands);
	}
	r->s->names[name].use = use;
	return SW_OK;
}

static sw_status read_names(signature_reader *r, sw_call_use use)
{
	while (peek(r) && *r->at != ';') {
		if (use == SW_CALL_SPLIT && take(r, "...")) {
			for (int32_t i = 0; i < r->s->n_names; i++)
				if (*r->s->names[i].text == '.')
					SW_TRY(set_use(r, i, use));
			continue;
		}
		sw_call_name word = take_word(r);
		int32_t name = word.length ? find_name(r, &word) : -1;
		if (name < 0)
			return fail(r, "expected the name of a dimension");
		SW_TRY(set_use(r, name, use));
	}
	return SW_OK;
}

static sw_status read_clause(signature_reader *r)
{
	sw_call_name word = take_word(r);
	static const char *const words[] = {"split", "sum", "flops", "workspace"};
	size_t which = 0;
	while (which < SW_COUNT(words) &&
	       !(strlen(words[which]) == (size_t)word.length &&
	         memcmp(words[which], word.text, (size_t)word.length) == 0))
		which++;
	switch (which) {
	case 0:
		return read_names(r, SW_CALL_SPLIT);
	case 1:
		return read_names(r, SW_CALL_SUM);
	case 2:
		return read_expression(r, &r->s->flops);
	case 3:
		return read_expression(r, &r->s->workspace);
	default:
		return fail(r, "expected split, sum, flops or workspace");
	}
}

/* ---- the whole -------------------------------------------------------------------------- */

sw_status sw_call_signature_read(const char *text, const sw_shape *operands, uint32_t n_operands,
                                 const sw_shape *results, uint32_t n_results, sw_arena *arena,
                                 sw_call_signature *signature, sw_error *err)
{
	uint32_t n = n_operands + n_results;
	sw_shape *shapes = SW_NEW_N(arena, sw_shape, n + 1);
	for (uint32_t i = 0; i < n; i++)
		shapes[i] = i < n_operands ? operands[i] : results[i - n_operands];
	*signature = (sw_call_signature){.arrays = SW_NEW_N(arena, const sw_call_dim *, n + 1)};
	signature_reader r = {.text = text,
	                      .at = text,
	                      .s = signature,
	                      .shapes = shapes,
	                      .n_operands = n_operands,
	                      .n_shapes = n,
	                      .arena = arena,
	                      .err = err};
	SW_TRY(read_arrays(&r, 0, n_operands));
	if (!take(&r, "->"))
		return fail(&r, "expected '->' after %u operands", n_operands);
	SW_TRY(read_arrays(&r, n_operands, n));
	SW_TRY(find_sizes(&r));
	while (take(&r, ";"))
		SW_TRY(read_clause(&r));
	return peek(&r) ? fail(&r, "expected ';' or the end") : SW_OK;
}

sw_status sw_call_signature_fit(const sw_program *program, const sw_op *op, const char *text,
                                sw_arena *arena, sw_call_signature *signature, sw_error *err)
{
	sw_shape *shapes = SW_NEW_N(arena, sw_shape, op->n_operands + op->n_results + 1);
	for (uint32_t i = 0; i < op->n_operands; i++)
		shapes[i] = sw_value_shape(program, op->operands[i]);
	for (uint32_t i = 0; i < op->n_results; i++)
		shapes[op->n_operands + i] = sw_value_shape(program, op->first_result + i);
	return sw_call_signature_read(text, shapes, op->n_operands, shapes + op->n_operands,
	                              op->n_results, arena, signature, err);
}

bool sw_call_signature_of(const sw_program *program, const sw_op *op, sw_arena *arena,
                          sw_call_signature *signature)
{
	sw_error err;
	return op->opcode == SW_OP_CUSTOM_CALL && op->attrs->custom.signature &&
	       sw_call_signature_fit(program, op, op->attrs->custom.signature, arena, signature,
	                             &err) == SW_OK;
}

static sw_call_signature figures_of(const sw_program *program, const sw_op *op)
{
	sw_arena arena;
	sw_call_signature signature;
	sw_arena_init(&arena);
	if (!sw_call_signature_of(program, op, &arena, &signature))
		signature = (sw_call_signature){.flops = 0};
	sw_arena_clear(&arena);
	return signature;
}

double sw_call_flops(const sw_program *program, const sw_op *op)
{
	return figures_of(program, op).flops;
}

double sw_call_workspace(const sw_program *program, const sw_op *op)
{
	return figures_of(program, op).workspace;
}
