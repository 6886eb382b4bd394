/*
 * Runs a plan with the library, and checks what it says and does: arrays go in and come out whole, a
 * checkpoint goes on where it was written, mistakes are one line, and a run outlives its plan.
 *
 *   run_plan PLAN FOLDER DATA STATE PROGRAM CLUSTER OPTION...
 *
 * DATA: an s32 input of data; STATE: an f32 input of state. Prints the losses of four steps. PROGRAM is
 * planned for CLUSTER with these options, too, and runs without a file: its losses are the same.
 */
#include <pthread.h>
#include <shardwright.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;

static void check(int ok, const char *what, const shardwright_error *error)
{
	if (ok)
		return;
	printf("FAILED: %s: %s\n", what, error->text);
	failed = 1;
}

static void wants(const char *words, shardwright_status status, shardwright_status wanted,
                  const shardwright_error *error)
{
	check(status == wanted && error->status == wanted && strstr(error->text, words) &&
	              !strchr(error->text, '\n'),
	      words, error);
}

static shardwright_run *open_run(const shardwright_plan *plan, const char *option,
                                 shardwright_error *error)
{
	const char *const options[] = {option, NULL};
	shardwright_run *run;
	check(!shardwright_run_open(plan, options, &run, error), "open", error);
	return run;
}

static shardwright_array find(const shardwright_run *run, const char *name, shardwright_error *error)
{
	shardwright_array array = {0};
	for (int64_t i = 0; i < shardwright_run_arrays(run); i++)
		if (!shardwright_run_array(run, i, &array, error) && strcmp(array.name, name) == 0)
			return array;
	check(0, name, error);
	return array;
}

static float step(shardwright_run *run, shardwright_error *error)
{
	float loss = 0;
	check(!shardwright_run_step(run, error), "step", error);
	check(!shardwright_run_get(run, "loss", &loss, sizeof(loss), error), "loss", error);
	return loss;
}

/* State is set and got; data change the loss, and stay; the same numbers give the same step. */
static void check_arrays(const shardwright_plan *plan, char **words, shardwright_error *error)
{
	shardwright_run *run = open_run(plan, "seed=3", error), *other = open_run(plan, "seed=3", error);
	shardwright_array data = find(run, words[3], error), state = find(run, words[4], error);
	check(data.kind == SHARDWRIGHT_DATA && strcmp(data.type, "s32") == 0, "data", error);
	check(state.kind == SHARDWRIGHT_STATE && strcmp(state.type, "f32") == 0, "state", error);
	int32_t *tokens = calloc(1, (size_t)data.bytes);
	float *numbers = malloc((size_t)state.bytes), *again = malloc((size_t)state.bytes);
	for (int64_t i = 0; i < state.bytes / 4; i++)
		numbers[i] = (float)(i % 97) / 970;
	check(!shardwright_run_set(run, data.name, tokens, data.bytes, error), "set", error);
	check(!shardwright_run_set(run, state.name, numbers, state.bytes, error), "set", error);
	check(!shardwright_run_get(run, state.name, again, state.bytes, error), "get", error);
	check(memcmp(numbers, again, (size_t)state.bytes) == 0, "it comes back", error);
	float given = step(run, error), drawn = step(other, error);
	check(given != drawn, "what is given counts", error);
	check(!shardwright_run_get(run, state.name, again, state.bytes, error), "get", error);
	check(memcmp(numbers, again, (size_t)state.bytes) != 0, "a step changes it", error);
	check(!shardwright_run_set(other, data.name, tokens, data.bytes, error), "set", error);
	for (int64_t i = 0; i < shardwright_run_arrays(run); i++) { /* all state */
		shardwright_array a;
		if (shardwright_run_array(run, i, &a, error) || a.kind != SHARDWRIGHT_STATE)
			continue;
		void *whole = malloc((size_t)a.bytes + 1);
		check(!shardwright_run_get(run, a.name, whole, a.bytes, error) &&
		              !shardwright_run_set(other, a.name, whole, a.bytes, error),
		      a.name, error);
		free(whole);
	}
	check(step(run, error) == step(other, error), "the same state gives the same step", error);
	free(tokens);
	free(numbers);
	free(again);
	shardwright_run_free(run);
	shardwright_run_free(other);
}

static void check_mistakes(shardwright_run *run, const char *folder, shardwright_error *error)
{
	float loss;
	char path[4096];
	snprintf(path, sizeof(path), "%s/none", folder);
	wants("there was no step", shardwright_run_get(run, "loss", &loss, 4, error),
	      SHARDWRIGHT_INPUT, error);
	wants("no array 'lost'", shardwright_run_get(run, "lost", &loss, 4, error),
	      SHARDWRIGHT_INPUT, error);
	wants("'loss' has 4 bytes, not 8", shardwright_run_get(run, "loss", &loss, 8, error),
	      SHARDWRIGHT_INPUT, error);
	wants("is a result of a step", shardwright_run_set(run, "loss", &loss, 4, error),
	      SHARDWRIGHT_INPUT, error);
	wants("pointer that the function needs", shardwright_run_step(NULL, error),
	      SHARDWRIGHT_INPUT, error);
	wants("a folder that exists", shardwright_run_save(run, path, error), SHARDWRIGHT_INPUT,
	      error);
	wants("cannot read", shardwright_run_load(run, path, error), SHARDWRIGHT_SYSTEM, error);
	shardwright_array array;
	wants("no array of that number", shardwright_run_array(run, -1, &array, error),
	      SHARDWRIGHT_INPUT, error);
}

static void check_options(const shardwright_plan *plan, shardwright_error *error)
{
	static const char *const wrong[] = {"sed=1", "seed=x", "threads=9999999", "seed",
	                                    "seed=99999999999999999999", "threads=0"};
	static const char *const words[] = {"no option 'sed'", "seed x: expected a whole number",
	                                    "from 1 to 4096", "expected NAME=VALUE",
	                                    "expected a whole number", "from 1 to 4096"};
	for (int i = 0; i < 6; i++) {
		const char *const options[] = {wrong[i], NULL};
		shardwright_run *run;
		wants(words[i], shardwright_run_open(plan, options, &run, error),
		      SHARDWRIGHT_INPUT, error);
		check(run == NULL, "no run after a mistake", error);
	}
}

/* The same plan as it was made: the program and the cluster go before the run begins. */
static void check_made(char **words, const float *losses, shardwright_error *error)
{
	shardwright_program *program = NULL;
	shardwright_cluster *cluster = NULL;
	shardwright_plan *plan = NULL;
	check(!shardwright_program_read(words[5], &program, error) &&
	              !shardwright_cluster_read(words[6], NULL, &cluster, error) &&
	              !shardwright_plan_make(program, cluster, (const char *const *)words + 7,
	                                     &plan, error),
	      "plan", error);
	shardwright_program_free(program);
	shardwright_cluster_free(cluster);
	shardwright_run *run = open_run(plan, NULL, error);
	shardwright_plan_free(plan);
	for (int i = 0; i < 4; i++)
		check(step(run, error) == losses[i], "the loss of the plan that was made", error);
	shardwright_run_free(run);
}

typedef struct stepping {
	shardwright_run *run;
	float losses[4];
	shardwright_error error;
	shardwright_status status;
} stepping;

static void *do_steps(void *argument)
{
	stepping *s = argument;
	for (int i = 0; i < 4 && !s->status; i++) {
		s->status = shardwright_run_step(s->run, &s->error);
		if (!s->status)
			s->status = shardwright_run_get(s->run, "loss", &s->losses[i],
			                                sizeof(s->losses[i]), &s->error);
	}
	return NULL;
}

/* Several runs of one plan, each stepped by a thread of its own. */
static void check_threads(const shardwright_plan *plan, shardwright_error *error)
{
	stepping steps[3] = {0};
	pthread_t threads[3];
	for (int i = 0; i < 3; i++) {
		steps[i].run = open_run(plan, NULL, error);
		check(!pthread_create(&threads[i], NULL, do_steps, &steps[i]), "thread", error);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		check(!steps[i].status, "steps of a thread", &steps[i].error);
		check(memcmp(steps[i].losses, steps[0].losses, sizeof(steps[0].losses)) == 0,
		      "runs side by side do the same", error);
		shardwright_run_free(steps[i].run);
	}
}

int main(int argc, char **argv)
{
	shardwright_plan *plan;
	shardwright_error error;
	if (argc < 7)
		return 2;
	check(!shardwright_plan_read(argv[1], &plan, &error), "read", &error);
	check_options(plan, &error);
	check_arrays(plan, argv, &error);
	check_threads(plan, &error);
	shardwright_run *run = open_run(plan, NULL, &error), *later = open_run(plan, NULL, &error);
	shardwright_plan_free(plan);
	check_mistakes(run, argv[2], &error);
	float losses[4];
	for (int i = 0; i < 2; i++)
		losses[i] = step(run, &error);
	check(!shardwright_run_save(run, argv[2], &error), "save", &error);
	check(!shardwright_run_load(later, argv[2], &error), "load", &error);
	check(shardwright_run_steps(later) == 2, "it goes on behind the checkpoint's step", &error);
	for (int i = 2; i < 4; i++) {
		losses[i] = step(run, &error);
		check(losses[i] == step(later, &error), "the same loss after the checkpoint", &error);
	}
	for (int i = 0; i < 4; i++)
		printf("%.9g\n", losses[i]);
	shardwright_run_free(run);
	shardwright_run_free(later);
	shardwright_run_free(NULL);
	check_made(argv, losses, &error);
	return failed;
}
