/*
 * Train under a plan with libshardwright, in this process, on batches of one's own:
 *
 *   cc train.c $(pkg-config --cflags --libs shardwright) -o train
 *   ./train step.plan 20 checkpoints corpus.txt
 *
 * Rows of bytes of the corpus are the tokens, if the step has such an input; without a corpus each
 * step takes the data that the program's sidecar draws. The checkpoint is one of `shardwright run`.
 */
#include <shardwright.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The array of this kind, type and number of dimensions that comes first; a name may be wanted. */
static int find(const shardwright_run *run, shardwright_kind kind, const char *type, int32_t rank,
                const char *name, shardwright_array *found)
{
	for (int64_t i = 0; i < shardwright_run_arrays(run); i++)
		if (shardwright_run_array(run, i, found, NULL) == SHARDWRIGHT_OK &&
		    found->kind == kind && found->rank == rank && strcmp(found->type, type) == 0 &&
		    (!name || strcmp(found->name, name) == 0))
			return 1;
	return 0;
}

/* Give the next rows of the corpus, which begins again at its end. */
static shardwright_status give_batch(shardwright_run *run, const shardwright_array *tokens,
                                     FILE *corpus, shardwright_error *error)
{
	int32_t *batch = malloc((size_t)tokens->bytes);
	for (int64_t i = 0; batch && i < tokens->dims[0] * tokens->dims[1]; i++) {
		int byte = getc(corpus);
		if (byte == EOF) {
			rewind(corpus);
			byte = getc(corpus);
		}
		batch[i] = byte == EOF ? 0 : byte;
	}
	shardwright_status status =
		shardwright_run_set(run, tokens->name, batch, tokens->bytes, error);
	free(batch);
	return status;
}

static shardwright_status train(shardwright_run *run, int64_t steps, FILE *corpus,
                                shardwright_error *error)
{
	shardwright_array tokens, loss;
	int has_tokens = find(run, SHARDWRIGHT_DATA, "s32", 2, NULL, &tokens);
	int has_loss = find(run, SHARDWRIGHT_RESULT, "f32", 0, "loss", &loss);
	shardwright_status status = SHARDWRIGHT_OK;
	while (status == SHARDWRIGHT_OK && shardwright_run_steps(run) < steps) {
		float value = 0;
		if (has_tokens && corpus)
			status = give_batch(run, &tokens, corpus, error);
		if (status == SHARDWRIGHT_OK)
			status = shardwright_run_step(run, error);
		if (status == SHARDWRIGHT_OK && has_loss)
			status = shardwright_run_get(run, loss.name, &value, loss.bytes, error);
		if (status == SHARDWRIGHT_OK)
			printf("step %lld  loss %.9g\n", (long long)shardwright_run_steps(run),
			       value);
	}
	return status;
}

static shardwright_status train_plan(char **words, FILE *corpus, shardwright_error *error)
{
	shardwright_plan *plan = NULL;
	shardwright_run *run = NULL;
	shardwright_status status = shardwright_plan_read(words[0], &plan, error);
	if (status == SHARDWRIGHT_OK)
		status = shardwright_run_open(plan, NULL, &run, error);
	shardwright_plan_free(plan);
	if (status == SHARDWRIGHT_OK)
		status = train(run, atoll(words[1]), corpus, error);
	if (status == SHARDWRIGHT_OK)
		status = shardwright_run_save(run, words[2], error);
	shardwright_run_free(run);
	return status;
}

int main(int argc, char **argv)
{
	shardwright_error error;
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: train PLAN STEPS CHECKPOINTS [CORPUS]\n");
		return 2;
	}
	FILE *corpus = argc == 5 ? fopen(argv[4], "rb") : NULL;
	if (argc == 5 && !corpus) {
		perror(argv[4]);
		return 2;
	}
	shardwright_status status = train_plan(argv + 1, corpus, &error);
	if (status)
		fprintf(stderr, "train: %s\n", error.text);
	if (corpus)
		fclose(corpus);
	return status ? 2 : 0;
}
