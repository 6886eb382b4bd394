/* The files of --data and --eval-data of `run`. */
#include <string.h>

#include "run_progress.h"

static sw_shape tokens_shape(const run_job *job)
{
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	const sw_program *program = job->serial;
	sw_program_inputs(program, program->entry, &arena, &inputs);
	sw_shape shape = sw_value_shape(program, inputs[job->sidecar->tokens_input]);
	sw_arena_clear(&arena);
	return shape;
}

int64_t run_data_tokens(const run_job *job)
{
	if (job->sidecar->tokens_input < 0)
		return 0;
	sw_shape shape = tokens_shape(job);
	return shape.rank == 2 ? shape.dims[0] * (shape.dims[1] - 1) : 0;
}

static sw_status open_tokens(const run_job *job, const char *option, const char *const *paths,
                             size_t n, run_data *data, sw_error *err)
{
	if (job->sidecar->tokens_input < 0)
		return sw_fail(
			err, SW_ERR_INPUT,
			"%s takes no tokens: name the input, %s NAME=FILE.npy, or put the "
			"sidecar that names its tokens beside the program (docs/programs.md)",
			job->serial->name, option);
	sw_shape shape = tokens_shape(job);
	SW_TRY(sw_data_open(paths, (int)n, job->sidecar->vocabulary,
	                    shape.rank == 2 ? shape.dims[1] : 1, &data->tokens, err));
	data->has_tokens = true;
	return SW_OK;
}

/* ---- named inputs ----------------------------------------------------------------------- */

static bool find_input(const sw_sidecar *sidecar, const char *name, size_t length, uint32_t *input)
{
	for (*input = 0; *input < sidecar->n_inputs; ++*input) {
		const char *known = sidecar->inputs[*input].name;
		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return true;
	}
	return false;
}

static sw_status no_input(const run_job *job, const char *option, const char *word, size_t length,
                          sw_error *err)
{
	sw_text names = {0};
	const sw_program *program = job->serial;
	for (uint32_t i = 0; i < job->sidecar->n_inputs && names.len < 200; i++)
		if (!sw_checkpoint_keeps(program, job->sidecar, i))
			sw_text_addf(&names, "%s%s", names.len ? ", " : "",
			             job->sidecar->inputs[i].name);
	sw_status status = sw_fail(
		err, SW_ERR_INPUT, "%s %.100s: there is no input '%.*s' for data, only: %s", option,
		word, (int)SW_MIN(length, 100), word, names.len ? names.data : "none");
	sw_text_clear(&names);
	return status;
}

typedef struct named_files {
	SW_VEC(const char *) paths;
	SW_VEC(uint32_t) of;
	SW_VEC(const char *) tokens;
} named_files;

/* A word without a name belongs to the name before it, as in NAME=FILE,FILE. */
static sw_status sort_words(const run_job *job, const char *option, const char *const *words,
                            size_t n, named_files *files, sw_error *err)
{
	uint32_t input = 0;
	bool named = false;
	for (size_t i = 0; i < n; i++) {
		const char *word = words[i], *equals = strchr(word, '=');
		size_t length = equals ? (size_t)(equals - word) : 0;
		if (equals && !memchr(word, '/', length)) {
			if (!find_input(job->sidecar, word, length, &input) ||
			    sw_checkpoint_keeps(job->serial, job->sidecar, input))
				return no_input(job, option, word, length, err);
			named = true;
			word = equals + 1;
		}
		if (!named) {
			sw_vec_push(&files->tokens, word);
			continue;
		}
		sw_vec_push(&files->paths, word);
		sw_vec_push(&files->of, input);
	}
	return SW_OK;
}

static sw_status open_files(const run_job *job, const char *option, const named_files *files,
                            run_data *data, sw_error *err)
{
	if (files->tokens.len)
		SW_TRY(open_tokens(job, option, files->tokens.data, files->tokens.len, data, err));
	if (!files->paths.len)
		return SW_OK;
	return sw_arrays_open(job->serial, job->sidecar, files->paths.data, files->of.data,
	                      files->paths.len, &data->arrays, err);
}

sw_status run_data_open(const run_job *job, const char *option, const char *const *words, size_t n,
                        run_data *data, sw_error *err)
{
	named_files files = {0};
	*data = (run_data){0};
	sw_status status = sort_words(job, option, words, n, &files, err);
	if (status == SW_OK)
		status = open_files(job, option, &files, data, err);
	sw_vec_clear(&files.paths);
	sw_vec_clear(&files.of);
	sw_vec_clear(&files.tokens);
	return status;
}

void run_data_close(run_data *data)
{
	if (data->has_tokens)
		sw_data_close(&data->tokens);
	sw_arrays_free(data->arrays);
	*data = (run_data){0};
}
