/* The files of --data and --eval-data. */
#include "run/data_files.h"

#include <string.h>

static sw_shape tokens_shape(const sw_program *serial, const sw_sidecar *sidecar)
{
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	sw_program_inputs(serial, serial->entry, &arena, &inputs);
	sw_shape shape = sw_value_shape(serial, inputs[sidecar->tokens_input]);
	sw_arena_clear(&arena);
	return shape;
}

int64_t sw_step_tokens(const sw_program *serial, const sw_sidecar *sidecar)
{
	if (sidecar->tokens_input < 0)
		return 0;
	sw_shape shape = tokens_shape(serial, sidecar);
	return shape.rank == 2 ? shape.dims[0] * (shape.dims[1] - 1) : 0;
}

/* What words are read for. */
typedef struct word_reader {
	const sw_program *serial;
	const sw_sidecar *sidecar;
	const char *option;
	SW_VEC(const char *) paths;
	SW_VEC(uint32_t) of; /* the input of each path */
	SW_VEC(const char *) tokens;
	sw_error *err;
} word_reader;

static bool find_input(const sw_sidecar *sidecar, const char *name, size_t length, uint32_t *input)
{
	for (*input = 0; *input < sidecar->n_inputs; ++*input) {
		const char *known = sidecar->inputs[*input].name;
		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return true;
	}
	return false;
}

static sw_status no_input(const word_reader *r, const char *word, size_t length)
{
	sw_text names = {0};
	for (uint32_t i = 0; i < r->sidecar->n_inputs && names.len < 200; i++)
		if (!sw_checkpoint_keeps(r->serial, r->sidecar, i))
			sw_text_addf(&names, "%s%s", names.len ? ", " : "",
			             r->sidecar->inputs[i].name);
	sw_status status = sw_fail(
		r->err, SW_ERR_INPUT, "%s %.100s: there is no input '%.*s' for data, only: %s",
		r->option, word, (int)SW_MIN(length, 100), word, names.len ? names.data : "none");
	sw_text_clear(&names);
	return status;
}

/* A word without a name belongs to the name before it, as in NAME=FILE,FILE. */
static sw_status sort_words(word_reader *r, const char *const *words, size_t n)
{
	uint32_t input = 0;
	bool named = false;
	for (size_t i = 0; i < n; i++) {
		const char *word = words[i], *equals = strchr(word, '=');
		size_t length = equals ? (size_t)(equals - word) : 0;
		if (equals && !memchr(word, '/', length)) {
			if (!find_input(r->sidecar, word, length, &input) ||
			    sw_checkpoint_keeps(r->serial, r->sidecar, input))
				return no_input(r, word, length);
			named = true;
			word = equals + 1;
		}
		if (!named) {
			sw_vec_push(&r->tokens, word);
			continue;
		}
		sw_vec_push(&r->paths, word);
		sw_vec_push(&r->of, input);
	}
	return SW_OK;
}

static sw_status open_tokens(const word_reader *r, sw_data_files *files)
{
	if (r->sidecar->tokens_input < 0)
		return sw_fail(
			r->err, SW_ERR_INPUT,
			"%s takes no tokens: name the input, %s NAME=FILE.npy, or put the "
			"sidecar that names its tokens beside the program (docs/programs.md)",
			r->serial->name, r->option);
	sw_shape shape = tokens_shape(r->serial, r->sidecar);
	SW_TRY(sw_data_open(r->tokens.data, (int)r->tokens.len, r->sidecar->vocabulary,
	                    shape.rank == 2 ? shape.dims[1] : 1, &files->tokens, r->err));
	files->has_tokens = true;
	return SW_OK;
}

sw_status sw_data_files_open(const sw_program *serial, const sw_sidecar *sidecar, const char *option,
                             const char *const *words, size_t n, sw_data_files *files, sw_error *err)
{
	word_reader r = {.serial = serial, .sidecar = sidecar, .option = option, .err = err};
	*files = (sw_data_files){0};
	sw_status status = sort_words(&r, words, n);
	if (status == SW_OK && r.tokens.len)
		status = open_tokens(&r, files);
	if (status == SW_OK && r.paths.len)
		status = sw_arrays_open(serial, sidecar, r.paths.data, r.of.data, r.paths.len,
		                        &files->arrays, err);
	sw_vec_clear(&r.paths);
	sw_vec_clear(&r.of);
	sw_vec_clear(&r.tokens);
	return status;
}

const sw_data *sw_data_files_tokens(const sw_data_files *files)
{
	return files->has_tokens ? &files->tokens : NULL;
}

void sw_data_files_close(sw_data_files *files)
{
	if (files->has_tokens)
		sw_data_close(&files->tokens);
	sw_arrays_free(files->arrays);
	*files = (sw_data_files){0};
}
