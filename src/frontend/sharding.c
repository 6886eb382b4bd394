/* Annotations of shardings, in the words of HLO text. */
#include "frontend/sharding.h"

#include <stdlib.h>
#include <string.h>

/* ---- digits ----------------------------------------------------------------------------- */

static bool add_digit(sw_sharding *s, int32_t dim, int64_t size, int64_t stride)
{
	sw_sharding_digit *last = s->n ? &s->digits[s->n - 1] : NULL;
	if (size == 1)
		return true;
	if (last && last->dim == dim && last->stride == stride * size) {
		last->size *= size; /* one run of devices */
		last->stride = stride;
		return true;
	}
	if (s->n == SW_SHARDING_DIGITS)
		return false;
	s->digits[s->n++] = (sw_sharding_digit){dim, size, stride};
	return true;
}

/* Read numbers between brackets, from 1 (`least` 0: from 0), whose product is at most all devices.
 * Return how many there are, -1 if there are none or other things. */
static int32_t read_numbers(sw_lexer *lexer, char open, char close, int64_t least,
                            int64_t v[SW_MAX_RANK], int64_t *product)
{
	int32_t n = 0;
	*product = 1;
	if (!sw_lex_take(lexer, open))
		return -1;
	do {
		if (n == SW_MAX_RANK || sw_lex_int(lexer, &v[n]) != SW_OK || v[n] < least)
			return -1;
		if (least && (!sw_mul_i64(*product, v[n], product) || *product > SW_SHARDING_DEVICES))
			return -1;
		n++;
	} while (sw_lex_take(lexer, ','));
	return sw_lex_take(lexer, close) ? n : -1;
}

/* The devices as a list of factors, major first: those of `[2,4]T(1,0)` are 4 and 2. */
typedef struct factors {
	int32_t n;
	int64_t size[SW_MAX_RANK], stride[SW_MAX_RANK];
} factors;

/* Read `[2,4]T(1,0)`. */
static bool read_factors(sw_lexer *lexer, int64_t n_devices, factors *f)
{
	int64_t dims[SW_MAX_RANK], order[SW_MAX_RANK], strides[SW_MAX_RANK], all, ignored;
	uint32_t seen = 0;
	f->n = read_numbers(lexer, '[', ']', 1, dims, &all);
	if (f->n < 0 || all != n_devices)
		return false;
	for (int32_t i = f->n - 1, next = 1; i >= 0; next *= (int32_t)dims[i--]) {
		strides[i] = next;
		order[i] = i;
	}
	if (sw_lex_take(lexer, 'T') &&
	    read_numbers(lexer, '(', ')', 0, order, &ignored) != f->n)
		return false;
	for (int32_t i = 0; i < f->n; i++) {
		if (order[i] >= f->n || (seen >> order[i] & 1))
			return false;
		seen |= 1u << order[i];
		f->size[i] = dims[order[i]];
		f->stride[i] = strides[order[i]];
	}
	return true;
}

/* Cut the factors into tiles: each dimension takes the next ones, or the major part of one. */
static bool cut_factors(factors *f, const int64_t *tiles, int32_t rank, sw_sharding *s)
{
	int32_t next = 0;
	for (int32_t d = 0; d < rank; d++)
		for (int64_t left = tiles[d]; left > 1;) {
			while (next < f->n && f->size[next] == 1)
				next++;
			if (next == f->n)
				return false;
			int64_t part = SW_MIN(left, f->size[next]);
			if (left % part != 0 || f->size[next] % part != 0)
				return false;
			f->size[next] /= part;
			if (!add_digit(s, d, part, f->stride[next] * f->size[next]))
				return false;
			left /= part;
		}
	return true;
}

/* ---- listed devices --------------------------------------------------------------------- */

static int64_t least_factor(int64_t n)
{
	for (int64_t p = 2; p * p <= n; p++)
		if (n % p == 0)
			return p;
	return n;
}

/* Find the digits of an explicit list of devices in row-major order of the tiles: position and
 * device are sums of digits, each times its stride. Return false if they are not. */
static bool cut_list(const int64_t *list, const int64_t *tiles, int32_t n_tiles, int32_t rank,
                     int64_t n_devices, sw_sharding *s)
{
	int64_t step = n_devices;
	struct {
		int64_t size, step;
	} parts[64];
	int32_t n = 0;
	for (int32_t d = 0; d < n_tiles; d++)
		for (int64_t left = tiles[d]; left > 1;) {
			int64_t p = least_factor(left);
			left /= p;
			step /= p;
			if (list[step] <= list[0])
				return false;
			parts[n].size = p;
			parts[n++].step = step;
			if (d < rank && !add_digit(s, d, p, list[step] - list[0]))
				return false;
		}
	for (int64_t i = 0; i < n_devices; i++) {
		int64_t device = 0;
		for (int32_t k = 0; k < n; k++)
			device += i / parts[k].step % parts[k].size * list[parts[k].step];
		if (list[i] != device)
			return false;
	}
	return true;
}

static bool read_list(sw_lexer *lexer, const int64_t *tiles, int32_t n_tiles, int32_t rank,
                      sw_sharding *s)
{
	int64_t *list = sw_alloc((size_t)s->n_devices * sizeof(*list));
	bool good = true;
	for (int64_t i = 0; i < s->n_devices && good; i++)
		good = (i == 0 || sw_lex_take(lexer, ',')) &&
		       sw_lex_int(lexer, &list[i]) == SW_OK && list[i] >= 0 &&
		       list[i] < s->n_devices;
	good = good && list[0] == 0 && cut_list(list, tiles, n_tiles, rank, s->n_devices, s);
	free(list);
	return good;
}

/* ---- the words of HLO text -------------------------------------------------------------- */

/* Read `last_tile_dim_replicate` or `last_tile_dims={replicated, manual}`: how many dimensions of
 * the tiles are none of the array's. Return -1 if it is anything else. */
static int32_t read_last_dims(sw_lexer *lexer, sw_sharding_kind *kind)
{
	int32_t n = 0;
	sw_lexer before = *lexer;
	sw_span word = sw_lex_word(lexer);
	if (sw_span_is(word, "last_tile_dim_replicate"))
		return 1;
	if (sw_span_is(word, "unspecified_dims")) {
		*lexer = before;
		return 0;
	}
	if (!sw_span_is(word, "last_tile_dims"))
		return word.length ? -1 : 0;
	if (!sw_lex_take(lexer, '=') || !sw_lex_take(lexer, '{'))
		return -1;
	do {
		word = sw_lex_word(lexer);
		if (sw_span_is(word, "manual"))
			*kind = SW_SHARDING_MANUAL;
		else if (!sw_span_is(word, "replicated"))
			return -1;
		n++;
	} while (sw_lex_take(lexer, ','));
	return sw_lex_take(lexer, '}') ? n : -1;
}

/* Read `unspecified_dims=[0,1]`, if it is there. */
static bool read_open(sw_lexer *lexer, int32_t rank, sw_sharding *s)
{
	int64_t dims[SW_MAX_RANK], ignored;
	if (!sw_lex_take_text(lexer, "unspecified_dims="))
		return true;
	int32_t n = read_numbers(lexer, '[', ']', 0, dims, &ignored);
	for (int32_t i = 0; i < n; i++) {
		if (dims[i] >= rank)
			return false;
		s->open |= 1u << dims[i];
	}
	return n > 0;
}

/* Read what follows `devices=`. */
static bool read_tiles(sw_lexer *lexer, int32_t rank, sw_sharding *s)
{
	int64_t tiles[SW_MAX_RANK];
	factors f;
	int32_t n = read_numbers(lexer, '[', ']', 1, tiles, &s->n_devices);
	if (n < rank)
		return false;
	bool good = sw_lex_take_text(lexer, "<=") ? read_factors(lexer, s->n_devices, &f) &&
	                                                    cut_factors(&f, tiles, rank, s)
	                                          : read_list(lexer, tiles, n, rank, s);
	return good && read_last_dims(lexer, &s->kind) == n - rank && read_open(lexer, rank, s) &&
	       sw_lex_take(lexer, '}');
}

sw_sharding sw_sharding_parse(const char *text, int32_t rank)
{
	const sw_sharding open = {.kind = SW_SHARDING_OPEN};
	sw_sharding s = {.kind = SW_SHARDING_TILED};
	sw_error ignored = {0};
	sw_lexer lexer;
	sw_lex_init(&lexer, text, strlen(text), "", &ignored);
	sw_lex_take(&lexer, '{');
	sw_span word = sw_lex_word(&lexer);
	if (sw_span_is(word, "manual"))
		return (sw_sharding){.kind = SW_SHARDING_MANUAL};
	if (sw_span_is(word, "replicated"))
		return s;
	if (!sw_span_is(word, "devices") || !sw_lex_take(&lexer, '='))
		return open;
	return read_tiles(&lexer, rank, &s) ? s : open;
}

void sw_sharding_add_open(const char *words, sw_span config, sw_text *text)
{
	size_t length = strlen(words);
	if (strncmp(words, "{devices=", 9) != 0 || words[length - 1] != '}') {
		sw_text_add(text, "{unknown}");
		return;
	}
	sw_text_addf(text, "%.*s %.*s}", (int)(length - 1), words,
	             (int)SW_MIN(config.length, 200), config.start);
}

/* ---- of programs ------------------------------------------------------------------------ */

const char *sw_op_sharding(const sw_op *op)
{
	if (op->opcode != SW_OP_PARAMETER && op->opcode != SW_OP_COPY)
		return NULL;
	return op->n_results == 1 ? sw_op_extra(op, "sharding") : NULL;
}

/* Take the annotation out of an op. */
static void drop(sw_op *op)
{
	/* the list belongs to the program's arena, which its readers filled */
	sw_extra **link = (sw_extra **)&op->extras;
	while (*link)
		if (strcmp((*link)->name, "sharding") == 0)
			*link = (*link)->next;
		else
			link = (sw_extra **)&(*link)->next;
}

void sw_sharding_drop(sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++)
		drop(&program->ops.data[i]);
	program->lost_annotations = 0;
	program->unannotated = true;
}

static bool is_annotated(const sw_op *op)
{
	return sw_op_extra(op, "sharding") != NULL;
}

/* Count the annotations of values that are read but lie as the planner wants. */
static uint32_t count_others(const sw_program *program)
{
	bool *read = sw_alloc(program->values.len + 1);
	uint32_t n = 0;
	for (size_t i = 0; i < program->ops.len; i++)
		for (uint32_t k = 0; k < program->ops.data[i].n_operands; k++)
			read[program->ops.data[i].operands[k]] = true;
	for (size_t c = 0; c < program->computations.len; c++)
		for (size_t i = 0; i < program->computations.data[c].results.len; i++)
			read[program->computations.data[c].results.data[i]] = true;
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		n += is_annotated(op) && !sw_op_sharding(op) && op->n_results &&
		     read[op->first_result];
	}
	free(read);
	return n;
}

void sw_sharding_settle(sw_program *program)
{
	program->lost_annotations += count_others(program);
	const sw_id *results = program->computations.data[program->entry].results.data;
	for (size_t a = 0; a < program->aliases.len; a++) {
		sw_id result = results[program->aliases.data[a].output];
		sw_op *op = &program->ops.data[program->values.data[result].op];
		if (op->opcode == SW_OP_COPY)
			drop(op);
	}
	for (size_t i = 0; i < program->ops.len; i++) {
		sw_op *op = &program->ops.data[i];
		if (op->opcode == SW_OP_COPY && sw_op_sharding(op) &&
		    sw_value_shape(program, op->first_result).rank == 0)
			drop(op);
	}
}

static bool is_any_of(const char *target, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(target, names[i]) == 0)
			return true;
	return false;
}

bool sw_sharding_is_manual(const char *target)
{
	static const char *const names[] = {"SPMDFullToShardShape", "SPMDShardToFullShape",
	                                    "xla.sdy.GlobalToLocalShape",
	                                    "xla.sdy.LocalToGlobalShape"};
	return is_any_of(target, names, SW_COUNT(names));
}

bool sw_sharding_is_constraint(const char *target)
{
	static const char *const names[] = {"Sharding", "xla.sdy.FuncResultSharding"};
	return is_any_of(target, names, SW_COUNT(names));
}
