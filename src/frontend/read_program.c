/* Recognise the format of a file by its content, and call the reader of that format. */
#include "frontend/frontend.h"

#include "frontend/calls.h"
#include "frontend/lexer.h"
#include "frontend/sharding.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum format {
	FORMAT_HLO,
	FORMAT_MLIR,
	FORMAT_BYTECODE,
	FORMAT_PROTOBUF,
	FORMAT_JSON,
	FORMAT_EMPTY,
	FORMAT_OTHER
} format;

/* Return whether there are control characters other than white space, which text does not have. */
static bool is_binary(const char *text, size_t length)
{
	for (size_t i = 0; i < SW_MIN(length, 512); i++)
		if (((unsigned char)text[i] < ' ' && !sw_char_is(text[i], SW_CHAR_SPACE)) ||
		    text[i] == 0x7f)
			return true;
	return false;
}

/* Return whether the content is a serialised HloModuleProto, which begins with field 1, its name: a
 * tag, a length, and that many characters. */
static bool is_protobuf(const char *text, size_t length)
{
	return length >= 2 && text[0] == '\n' && is_binary(text, length);
}

static bool begins_mlir(sw_lexer *lexer)
{
	static const char *const words[] = {"module", "func.func", "builtin.module", "func",
	                                    "stablehlo.module"};
	sw_span word = sw_lex_peek_word(lexer);
	char c = sw_lex_peek(lexer);
	for (size_t i = 0; i < SW_COUNT(words); i++)
		if (sw_span_is(word, words[i]))
			return true;
	/* MLIR's #loc = ..., !alias = ...; but not "# heading" or "#!/bin/sh" */
	if (c == '#' || c == '!')
		return lexer->at + 1 < lexer->end && isalpha((unsigned char)lexer->at[1]);
	return c == '"'; /* MLIR's generic form, "builtin.module"() */
}

static format recognise(const char *text, size_t length)
{
	sw_lexer lexer;
	sw_lex_init(&lexer, text, length, "", NULL);
	if (length >= 4 && memcmp(text, "ML\xefR", 4) == 0)
		return FORMAT_BYTECODE;
	if (is_protobuf(text, length))
		return FORMAT_PROTOBUF;
	sw_lex_skip(&lexer);
	if (lexer.at == lexer.end)
		return FORMAT_EMPTY;
	if (begins_mlir(&lexer))
		return FORMAT_MLIR;
	if (is_binary(text, length))
		return FORMAT_PROTOBUF;
	if (sw_lex_peek(&lexer) == '{')
		return FORMAT_JSON;
	return sw_span_is(sw_lex_peek_word(&lexer), "HloModule") ? FORMAT_HLO : FORMAT_OTHER;
}

/* Return whether XLA compiled the program for several devices and cut an input: it is the program
 * of one of them. Only before it is compiled does an annotation speak of a whole array. */
static bool is_cut(const sw_program *program)
{
	const sw_computation *entry = sw_entry(program);
	bool cut = false;
	for (size_t i = 0; i < entry->parameters.len; i++) {
		const sw_op *op = sw_op_at(program, entry->parameters.data[i]);
		const char *text = sw_op_sharding(op);
		int32_t rank = sw_value_shape(program, op->first_result).rank;
		cut |= text && op->n_results == 1 && sw_sharding_parse(text, rank).n > 0;
	}
	return cut && program->num_partitions > 1 && sw_program_is_scheduled(program);
}

static bool has_collectives(const sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++)
		if (sw_opcode_class((sw_opcode)program->ops.data[i].opcode) == SW_CLASS_COLLECTIVE)
			return true;
	return false;
}

/* Settle what depends on the whole program: custom calls, the order of ops, state, annotations. An
 * order that was chosen stays: that of a schedule, and that in which one of several devices begins
 * and ends collectives. */
static sw_status finish(sw_program **program, const char *path, sw_error *err)
{
	if (is_cut(*program))
		return sw_fail_at(err, SW_ERR_INPUT, path, 1, 1, "%s", SW_SEVERAL_DEVICES);
	SW_TRY(sw_calls_describe(*program, path, err));
	SW_TRY(sw_calls_expand(program, err));
	if (!sw_program_is_scheduled(*program) && !has_collectives(*program))
		sw_program_order_ops(*program);
	sw_state_pair(*program, path);
	sw_sharding_settle(*program);
	return SW_OK;
}

sw_status sw_read_program_text(const char *text, size_t length, const char *path,
                               sw_program **program, sw_error *err)
{
	static const char *const refusals[] = {
		[FORMAT_BYTECODE] = "this is MLIR bytecode, which is not read; write StableHLO "
				    "text instead, with "
				    "lowered.as_text(), or HLO text",
		[FORMAT_EMPTY] =
			"the file is empty; expected HLO text, which begins with HloModule",
		[FORMAT_JSON] = "this is JSON, perhaps a plan or a sidecar; expected the program "
				"itself, HLO text, "
				"which begins with HloModule",
		[FORMAT_OTHER] = "expected HLO text, which begins with HloModule",
	};
	format found = recognise(text, length);
	if (found == FORMAT_HLO)
		SW_TRY(sw_read_hlo(text, length, path, program, err));
	else if (found == FORMAT_MLIR)
		SW_TRY(sw_read_stablehlo(text, length, path, program, err));
	else if (found == FORMAT_PROTOBUF)
		SW_TRY(sw_read_hlo_proto(text, length, path, program, err));
	else
		return sw_fail_at(err, SW_ERR_INPUT, path, 1, 1, "%s", refusals[found]);
	sw_status status = finish(program, path, err);
	if (status != SW_OK)
		sw_program_free(*program);
	return status;
}

sw_status sw_read_program(const char *path, sw_program **program, sw_error *err)
{
	char *text = NULL;
	size_t length = 0;
	SW_TRY(sw_file_read(path, &text, &length, err));
	sw_status status = sw_read_program_text(text, length, path, program, err);
	free(text);
	return status;
}
