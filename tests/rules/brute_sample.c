/*
 * Samples: small programs of one op, written from text.
 */
#include "rules/brute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "frontend/frontend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void brute_init(brute_sample *sample)
{
	*sample = (brute_sample){.program = sw_program_new("sample"), .op = SW_NO_ID};
	sample->c = sw_build_computation(sample->program, "main");
}

void brute_clear(brute_sample *sample)
{
	sw_program_free(sample->program);
}

sw_ints brute_ints(brute_sample *sample, const char *text)
{
	int64_t list[32];
	int32_t n = 0;

	while (*text) {
		char *end;
		list[n++] = strtoll(text, &end, 10);
		text = *end == ',' ? end + 1 : end;
	}
	return sw_build_ints(sample->program, list, n);
}

sw_shape brute_shape(brute_sample *sample, const char *text)
{
	const char *open = strchr(text, '[');
	sw_type type = SW_F32;
	char dims[64];

	assert_non_null(open);
	assert_true(sw_type_find(text, (size_t)(open - text), &type));
	snprintf(dims, sizeof(dims), "%.*s", (int)strcspn(open + 1, "]"), open + 1);
	sw_ints list = brute_ints(sample, dims);
	return sw_build_shape(sample->program, type, list.v, list.n);
}

void brute_operand(brute_sample *sample, const char *shape, double low, double high)
{
	assert_true(sample->n < BRUTE_MAX_VALUES);
	sample->operands[sample->n] =
		sw_emit_parameter(sample->program, sample->c, brute_shape(sample, shape), NULL);
	sample->low[sample->n] = low;
	sample->high[sample->n] = high;
	sample->fill[sample->n++] = BRUTE_INTEGERS;
}

void brute_powers(brute_sample *sample, const char *shape, double low, double high)
{
	brute_operand(sample, shape, low, high);
	sample->fill[sample->n - 1] = BRUTE_POWERS_OF_TWO;
}

void brute_constant(brute_sample *sample, const char *shape, double value)
{
	sw_shape whole = brute_shape(sample, shape);

	assert_true(sample->n < BRUTE_MAX_VALUES);
	sample->operands[sample->n] = sw_emit_broadcast(
		sample->program, sample->c,
		sw_emit_scalar(sample->program, sample->c, whole.type, value), whole, NULL);
	sample->low[sample->n] = sample->high[sample->n] = value;
	sample->fill[sample->n++] = BRUTE_CONSTANT;
}

void brute_op_calling(brute_sample *sample, sw_opcode opcode, const sw_attrs *attrs,
                      const char *shapes, const int32_t *called, uint32_t n_called)
{
	sw_shape declared[4];
	sw_error err = {0};
	sw_op_spec spec = {.opcode = opcode,
	                   .operands = sample->operands,
	                   .n_operands = sample->n,
	                   .attrs = attrs,
	                   .called = called,
	                   .n_called = n_called};

	for (; shapes && *shapes; shapes += shapes[0] == ';') {
		declared[spec.n_results++] = brute_shape(sample, shapes);
		shapes += strcspn(shapes, ";");
		spec.shapes = declared;
	}
	sw_id first = SW_NO_ID;
	if (sw_build_op(sample->program, sample->c, &spec, &first, &err) != SW_OK)
		fail_msg("%s: %s", sw_opcode_name(opcode), err.message);
	sample->op = (sw_id)sample->program->ops.len - 1;
	sw_id results[BRUTE_MAX_VALUES];
	uint32_t n = sw_op_at(sample->program, sample->op)->n_results;
	for (uint32_t i = 0; i < n; i++)
		results[i] = first + i;
	sw_build_results(sample->program, sample->c, results, n, n != 1);
	sample->program->entry = sample->c;
}

void brute_op(brute_sample *sample, sw_opcode opcode, const sw_attrs *attrs, const char *shapes)
{
	brute_op_calling(sample, opcode, attrs, shapes, NULL, 0);
}

void brute_from_text(brute_sample *sample, const char *hlo)
{
	sw_program *program = NULL;
	sw_error err = {0};

	if (sw_read_hlo(hlo, strlen(hlo), "sample", &program, &err) != SW_OK)
		fail_msg("%s: %s", hlo + strlen(hlo) - SW_MIN(strlen(hlo), 160), err.message);
	sw_program_free(sample->program);
	*sample = (brute_sample){.program = program, .c = program->entry};
	const sw_computation *entry = sw_entry(program);
	sample->n = (uint32_t)entry->parameters.len;
	assert_true(sample->n <= BRUTE_MAX_VALUES);
	for (uint32_t i = 0; i < sample->n; i++) {
		sample->operands[i] = sw_op_at(program, entry->parameters.data[i])->first_result;
		sample->low[i] = -3;
		sample->high[i] = 3;
	}
	sample->op = program->values.data[entry->results.data[0]].op;
}
