/*
 * The text of a plan file (docs/plan-file.md): strategies, and names of values.
 */
#include "plan/plan_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void sw_plan_strategy_text(const sw_strategy *s, sw_text *text)
{
	for (int32_t a = 0; a < s->n; a++) {
		const sw_choice *c = &s->atom[a];
		sw_text_add(text, a ? " " : "");
		if (c->kind == SW_CHOICE_NONE)
			sw_text_add(text, ".");
		else if (c->kind == SW_CHOICE_SPLIT && c->stream_stride > 0)
			sw_text_addf(text, "%d@%" PRId64 "<%d@%" PRId64, c->index, c->stride,
			             c->stream, c->stream_stride);
		else if (c->kind == SW_CHOICE_SPLIT)
			sw_text_addf(text, "%d@%" PRId64, c->index, c->stride);
		else if (c->kind == SW_CHOICE_OWN)
			sw_text_addf(text, "O%" PRId64, c->stride);
		else
			sw_text_addf(text, "~%d:%s", c->index,
			             sw_monoid_name((sw_monoid)c->monoid));
	}
}

static bool monoid_of(const char *name, size_t length, uint8_t *monoid)
{
	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
		if (strlen(sw_monoid_name((sw_monoid)m)) == length &&
		    !strncmp(name, sw_monoid_name((sw_monoid)m), length)) {
			*monoid = (uint8_t)m;
			return true;
		}
	return false;
}

/* Parse "F@T", and move *word behind it. */
static bool digit_parse(const char **word, const sw_rule *rule, int16_t *factor, int64_t *stride)
{
	char *end;
	long index = strtol(*word, &end, 10);
	if (end == *word || index < 0 || index >= rule->n_factors || *end != '@')
		return false;
	*factor = (int16_t)index;
	*stride = strtoll(end + 1, &end, 10);
	*word = end;
	return *stride >= 1 && *stride <= rule->factors[index].size;
}

static bool pass_parse(const char *word, size_t length, const sw_rule *rule, sw_choice *c)
{
	char *end;
	long index = strtol(word + 1, &end, 10);
	if (end == word + 1 || index < 0 || index >= rule->n_linearities || *end != ':')
		return false;
	c->kind = SW_CHOICE_PASS;
	c->index = (int16_t)index;
	return monoid_of(end + 1, length - (size_t)(end + 1 - word), &c->monoid);
}

static bool own_parse(const char *word, size_t length, sw_choice *c)
{
	char *end;
	c->kind = SW_CHOICE_OWN;
	c->stride = strtoll(word + 1, &end, 10);
	return length > 1 && word[1] >= '0' && word[1] <= '9' && end == word + length;
}

static bool choice_parse(const char *word, size_t length, const sw_rule *rule, sw_choice *c)
{
	const char *at = word;
	*c = (sw_choice){0};
	if (length == 1 && word[0] == '.')
		return true;
	if (word[0] == '~')
		return pass_parse(word, length, rule, c);
	if (word[0] == 'O')
		return own_parse(word, length, c);
	c->kind = SW_CHOICE_SPLIT;
	if (!digit_parse(&at, rule, &c->index, &c->stride))
		return false;
	if (*at == '<') {
		at++;
		if (!digit_parse(&at, rule, &c->stream, &c->stream_stride))
			return false;
	}
	return at == word + length;
}

bool sw_plan_strategy_words(const char *text, const sw_rule *rule, sw_strategy *s)
{
	int32_t a = 0;
	while (*text) {
		size_t length = strcspn(text, " ");
		if (a == s->n || length == 0 || !choice_parse(text, length, rule, &s->atom[a++]))
			return false;
		text += length;
		text += *text == ' ';
	}
	return a == s->n;
}

const char *sw_plan_value_name(const sw_program *program, sw_id value, sw_text *text)
{
	const sw_value *v = &program->values.data[value];
	text->len = 0;
	sw_text_add(text, sw_op_at(program, v->op)->name);
	if (v->index > 0)
		sw_text_addf(text, ":%u", v->index);
	return text->data;
}
