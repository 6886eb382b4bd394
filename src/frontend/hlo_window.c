/* Attributes with a grammar of their own: windows, dimension labels, slices, paddings. */
#include "frontend/hlo.h"

#include <string.h>

/* ---- window={size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=2x2 rhs_dilate=1x1 rhs_reversal=1x1} ---
 */

typedef struct window_field {
	const char *name;
	size_t offset; /* offset in sw_window_dim */
	int parts;     /* numbers per dimension */
	int64_t least;
} window_field;

static const window_field fields[] = {
	{"size", offsetof(sw_window_dim, size), 1, 0},
	{"stride", offsetof(sw_window_dim, stride), 1, 1},
	{"pad", offsetof(sw_window_dim, pad_low), 2, INT64_MIN},
	{"lhs_dilate", offsetof(sw_window_dim, lhs_dilate), 1, 1},
	{"rhs_dilate", offsetof(sw_window_dim, rhs_dilate), 1, 1},
	{"rhs_reversal", offsetof(sw_window_dim, reversal), 0, 0}, /* a bool */
};

_Static_assert(offsetof(sw_window_dim, pad_high) ==
                       offsetof(sw_window_dim, pad_low) + sizeof(int64_t),
               "pad is read as two numbers in a row");

static const window_field *find_field(sw_span name)
{
	for (size_t i = 0; i < SW_COUNT(fields); i++)
		if (sw_span_is(name, fields[i].name))
			return &fields[i];
	return NULL;
}

static sw_status read_field_item(sw_lexer *lexer, const window_field *field, sw_window_dim *dim)
{
	char *member = (char *)dim + field->offset;
	for (int part = 0; part < SW_MAX(field->parts, 1); part++) {
		int64_t value;
		if (part && sw_lex_here(lexer) != '_')
			return sw_lex_expected(lexer, "'_' and the padding behind");
		lexer->at += part > 0;
		const char *place = lexer->at;
		SW_TRY(sw_lex_int_here(lexer, &value));
		if (value < field->least || (!field->parts && value > 1))
			return sw_lex_fail(lexer, place, "%s can't be %lld", field->name,
			                   (long long)value);
		if (field->parts)
			memcpy(member + (size_t)part * sizeof(value), &value, sizeof(value));
		else
			*(bool *)member = value != 0;
	}
	return SW_OK;
}

/* Read a field. The first field gives the number of dimensions, and the others must agree. */
static sw_status read_field(sw_lexer *lexer, const window_field *field,
                            sw_window_dim dims[SW_MAX_RANK], int32_t *rank)
{
	int32_t n = 0;
	sw_lex_skip(lexer);
	const char *place = lexer->at;
	do {
		if (n == SW_MAX_RANK)
			return sw_lex_fail(lexer, place, "the window has more than %d dimensions",
			                   SW_MAX_RANK);
		lexer->at += n > 0;
		SW_TRY(read_field_item(lexer, field, &dims[n++]));
	} while (sw_lex_here(lexer) == 'x');
	if (*rank >= 0 && *rank != n)
		return sw_lex_fail(lexer, place, "%s has %d dimensions, the window has %d",
		                   field->name, n, *rank);
	*rank = n;
	return SW_OK;
}

sw_status sw_hlo_read_window(sw_hlo *reader, sw_window *window)
{
	sw_lexer *lexer = &reader->lexer;
	sw_window_dim dims[SW_MAX_RANK];
	for (int i = 0; i < SW_MAX_RANK; i++)
		dims[i] = (sw_window_dim){.size = 1, .stride = 1, .lhs_dilate = 1, .rhs_dilate = 1};
	int32_t rank = -1;
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	while (!sw_lex_take(lexer, '}')) {
		const window_field *field = find_field(sw_lex_peek_word(lexer));
		if (!field)
			return sw_lex_expected(
				lexer,
				"size, stride, pad, lhs_dilate, rhs_dilate, rhs_reversal or '}'");
		sw_lex_word(lexer);
		SW_TRY(sw_lex_expect(lexer, '=', NULL));
		SW_TRY(read_field(lexer, field, dims, &rank));
	}
	window->rank = SW_MAX(rank, 0);
	if (window->rank)
		window->dims = sw_arena_copy(&reader->program->arena, dims,
		                             (size_t)window->rank * sizeof(*dims));
	return SW_OK;
}

/* ---- dim_labels=b01f_01io->b01f --------------------------------------------------------- */

/* Read one of the three groups: the positions of its two letters, and of the digits. */
static sw_status read_labels(sw_hlo *reader, const char letters[2], int64_t places[2],
                             sw_ints *spatial)
{
	sw_lexer *lexer = &reader->lexer;
	const char *start = lexer->at;
	int64_t digits[10];
	int64_t *found[12] = {&places[0], &places[1]};
	int32_t n = 0, n_digits = 0;
	for (int i = 0; i < 10; i++)
		found[2 + i] = &digits[i];
	for (int i = 0; i < 12; i++)
		*found[i] = -1;
	for (char c; (c = sw_lex_here(lexer)) != '\0'; lexer->at++, n++) {
		bool digit = sw_char_is(c, SW_CHAR_DIGIT);
		if (!digit && c != letters[0] && c != letters[1])
			break;
		int64_t *place = digit ? &digits[c - '0'] : &places[c == letters[1]];
		if (*place >= 0)
			return sw_lex_fail(lexer, lexer->at, "the label '%c' stands twice", c);
		*place = n;
		n_digits += digit;
	}
	if (places[0] < 0 || places[1] < 0)
		return sw_lex_fail(
			lexer, start,
			"expected the labels '%c' and '%c' and the spatial dimensions 0, 1, ...",
			letters[0], letters[1]);
	for (int32_t i = 0; i < n_digits; i++)
		if (digits[i] < 0)
			return sw_lex_fail(lexer, start, "the spatial dimension %d is missing", i);
	*spatial = sw_hlo_keep_dims(reader, digits, n_digits);
	return SW_OK;
}

sw_status sw_hlo_read_dim_labels(sw_hlo *reader, sw_attrs *attrs)
{
	sw_lexer *lexer = &reader->lexer;
	int64_t input[2], kernel[2], output[2];
	const char *start = (sw_lex_skip(lexer), lexer->at);
	SW_TRY(read_labels(reader, "bf", input, &attrs->convolution.input_spatial));
	SW_TRY(sw_lex_expect_text(lexer, "_"));
	SW_TRY(read_labels(reader, "io", kernel, &attrs->convolution.kernel_spatial));
	SW_TRY(sw_lex_expect_text(lexer, "->"));
	SW_TRY(read_labels(reader, "bf", output, &attrs->convolution.output_spatial));
	if (attrs->convolution.kernel_spatial.n != attrs->convolution.input_spatial.n ||
	    attrs->convolution.output_spatial.n != attrs->convolution.input_spatial.n)
		return sw_lex_fail(lexer, start,
		                   "input, kernel and output have different spatial dimensions");
	attrs->convolution.input_batch = input[0];
	attrs->convolution.input_feature = input[1];
	attrs->convolution.kernel_input = kernel[0];
	attrs->convolution.kernel_output = kernel[1];
	attrs->convolution.output_batch = output[0];
	attrs->convolution.output_feature = output[1];
	return SW_OK;
}

/* ---- slice={[0:4096], [0:8:2]} and padding=0_0x0_1_2 ------------------------------------ */

typedef struct triples {
	int64_t part[3][SW_MAX_RANK];
	int32_t n;
} triples;

static void keep_triples(sw_hlo *reader, const triples *t, sw_ints *a, sw_ints *b, sw_ints *c)
{
	*a = sw_hlo_keep_dims(reader, t->part[0], t->n);
	*b = sw_hlo_keep_dims(reader, t->part[1], t->n);
	*c = sw_hlo_keep_dims(reader, t->part[2], t->n);
}

sw_status sw_hlo_read_slice(sw_hlo *reader, sw_attrs *attrs)
{
	sw_lexer *lexer = &reader->lexer;
	triples t = {.n = 0};
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (!sw_lex_take(lexer, '}')) {
		do {
			if (t.n == SW_MAX_RANK)
				return sw_lex_fail(lexer, lexer->at, "more than %d dimensions",
				                   SW_MAX_RANK);
			SW_TRY(sw_lex_expect(lexer, '[', NULL));
			SW_TRY(sw_lex_int(lexer, &t.part[0][t.n]));
			SW_TRY(sw_lex_expect(lexer, ':', NULL));
			SW_TRY(sw_lex_int(lexer, &t.part[1][t.n]));
			t.part[2][t.n] = 1;
			if (sw_lex_take(lexer, ':'))
				SW_TRY(sw_lex_int(lexer, &t.part[2][t.n]));
			SW_TRY(sw_lex_expect(lexer, ']', "':' or ']'"));
			t.n++;
		} while (sw_lex_take(lexer, ','));
		SW_TRY(sw_lex_expect(lexer, '}', "',' or '}'"));
	}
	keep_triples(reader, &t, &attrs->slice.start, &attrs->slice.limit, &attrs->slice.stride);
	return SW_OK;
}

static sw_status read_padding_item(sw_lexer *lexer, triples *t)
{
	SW_TRY(sw_lex_int_here(lexer, &t->part[0][t->n]));
	if (sw_lex_here(lexer) != '_')
		return sw_lex_expected(lexer, "'_' and the padding behind");
	lexer->at++;
	SW_TRY(sw_lex_int_here(lexer, &t->part[1][t->n]));
	t->part[2][t->n] = 0;
	if (sw_lex_here(lexer) != '_')
		return SW_OK;
	const char *place = ++lexer->at;
	SW_TRY(sw_lex_int_here(lexer, &t->part[2][t->n]));
	if (t->part[2][t->n] < 0)
		return sw_lex_fail(lexer, place, "interior padding can't be negative");
	return SW_OK;
}

/* Read a padding; that of a scalar is an empty text. */
sw_status sw_hlo_read_padding(sw_hlo *reader, sw_attrs *attrs)
{
	sw_lexer *lexer = &reader->lexer;
	triples t = {.n = 0};
	char c = sw_lex_peek(lexer);
	bool more = c == '-' || sw_char_is(c, SW_CHAR_DIGIT);
	while (more) {
		if (t.n == SW_MAX_RANK)
			return sw_lex_fail(lexer, lexer->at, "more than %d dimensions",
			                   SW_MAX_RANK);
		SW_TRY(read_padding_item(lexer, &t));
		t.n++;
		more = sw_lex_here(lexer) == 'x';
		lexer->at += more;
	}
	keep_triples(reader, &t, &attrs->pad.low, &attrs->pad.high, &attrs->pad.interior);
	return SW_OK;
}
