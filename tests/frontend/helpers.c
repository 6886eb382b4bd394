#include "frontend/helpers.h"

#include <string.h>

static void fail_with(const char *what, const sw_error *err)
{
	fail_msg("%s: %s:%d:%d: %s", what, err->file, err->line, err->column, err->message);
}

sw_program *read_text(const char *text)
{
	sw_program *program = NULL;
	sw_error err = {0};
	if (sw_read_hlo(text, strlen(text), "text", &program, &err) != SW_OK) {
		print_message("%s\n", text);
		fail_with("read", &err);
	}
	return program;
}

void check_round_trip(const sw_program *program, const char *what)
{
	sw_text printed = {0}, again = {0};
	sw_program *second = NULL;
	sw_error err = {0};
	sw_program_print(program, &printed);
	if (sw_read_hlo(printed.data, printed.len, what, &second, &err) != SW_OK) {
		if (printed.len < 5000)
			print_message("%s\n", printed.data);
		fail_with("read what was printed", &err);
	}
	if (!sw_program_equal(program, second, &err))
		fail_with("differs after printing", &err);
	assert_true(sw_program_hash(program) == sw_program_hash(second));
	sw_program_print(second, &again);
	if (strcmp(printed.data, again.data) != 0)
		fail_msg("%s: the second printing differs from the first", what);
	sw_program_free(second);
	sw_text_clear(&printed);
	sw_text_clear(&again);
}

void check_text(const char *text)
{
	sw_program *program = read_text(text);
	check_round_trip(program, "printed");
	sw_program_free(program);
}

char *entry_of(const char *body)
{
	sw_text text = {0};
	sw_text_addf(&text, "HloModule m\n\nENTRY e {\n%s\n}\n", body);
	return text.data;
}

void check_entry(const char *body)
{
	char *text = entry_of(body);
	check_text(text);
	free(text);
}

void check_error(const char *text, int line, int column, const char *message)
{
	sw_program *program = NULL;
	sw_error err = {0};
	sw_status status = sw_read_hlo(text, strlen(text), "f.hlo", &program, &err);
	if (status == SW_OK) {
		print_message("%s\n", text);
		fail_msg("accepted; expected the error: %s", message);
	}
	assert_int_equal(status, SW_ERR_INPUT);
	assert_string_equal(err.file, "f.hlo");
	if (strcmp(err.message, message) != 0 || err.line != line || err.column != column) {
		print_message("%s\n", text);
		fail_msg("expected %d:%d: %s\n   found %d:%d: %s", line, column, message, err.line,
		         err.column, err.message);
	}
}

const sw_op *op_named(const sw_program *program, const char *name)
{
	for (size_t i = 0; i < program->ops.len; i++)
		if (strcmp(program->ops.data[i].name, name) == 0)
			return &program->ops.data[i];
	fail_msg("no op is named %s", name);
	return NULL;
}

const sw_literal *read_literal(const char *shape, const char *literal, sw_program **program)
{
	sw_text body = {0};
	sw_text_addf(&body, "HloModule m\nENTRY e {\n  ROOT c = %s constant(%s)\n}\n", shape,
	             literal);
	*program = read_text(body.data);
	sw_text_clear(&body);
	return &op_named(*program, "c")->attrs->constant;
}
