/*
 * A run on files of data, beside a second program: prints the loss of each of four steps, that of the
 * second program after the second and the last, and what is refused.
 *
 *   data_run PLAN OPTION...
 */
#include <shardwright.h>
#include <stdio.h>
#include <string.h>

static int failed;

static void need(shardwright_status status, const shardwright_error *error, const char *what)
{
	if (status) {
		printf("%s: %s\n", what, error->text);
		failed = 1;
	}
}

static void print_step(shardwright_run *run)
{
	shardwright_error error;
	float loss = 0;
	need(shardwright_run_step(run, &error), &error, "step");
	need(shardwright_run_get(run, "loss", &loss, sizeof(loss), &error), &error, "loss");
	printf("%.9g\n", loss);
}

static void print_evaluated(shardwright_run *run)
{
	shardwright_error error;
	double loss = 0;
	need(shardwright_run_evaluate(run, &loss, &error), &error, "evaluate");
	printf("eval %.9g\n", loss);
}

static void refuse(const shardwright_plan *plan, const char *option, shardwright_status status,
                   const char *words)
{
	const char *const options[] = {option, NULL};
	shardwright_error error;
	shardwright_run *run;
	if (shardwright_run_open(plan, options, &run, &error) != status ||
	    !strstr(error.text, words)) {
		printf("%s: not '%s', but '%s'\n", option, words, error.text);
		failed = 1;
	}
	shardwright_run_free(run);
}

int main(int argc, char **argv)
{
	shardwright_plan *plan;
	shardwright_run *run;
	shardwright_error error;
	double loss;
	if (argc < 2 || shardwright_plan_read(argv[1], &plan, &error))
		return 2;
	refuse(plan, "data=nothing=there.npy", SHARDWRIGHT_INPUT,
	       "there is no input 'nothing' for data");
	refuse(plan, "data=no/such/file", SHARDWRIGHT_SYSTEM, "no/such/file");
	refuse(plan, "eval=no/such.hlo", SHARDWRIGHT_SYSTEM, "no/such.hlo");
	refuse(plan, "eval-data=corpus", SHARDWRIGHT_INPUT, "are for the program of eval=PROGRAM");
	refuse(plan, "eval-batches=0", SHARDWRIGHT_INPUT, "expected a whole number from 1");
	refuse(plan, "sede=1", SHARDWRIGHT_INPUT, "running has no option 'sede'");
	need(shardwright_run_open(plan, NULL, &run, &error), &error, "open");
	if (shardwright_run_evaluate(run, &loss, &error) != SHARDWRIGHT_INPUT ||
	    !strstr(error.text, "without a program to evaluate")) {
		printf("evaluated without a program: %s\n", error.text);
		failed = 1;
	}
	shardwright_run_free(run);
	need(shardwright_run_open(plan, (const char *const *)argv + 2, &run, &error), &error, "open");
	shardwright_plan_free(plan);
	for (int i = 0; i < 4 && !failed; i++) {
		print_step(run);
		if (i % 2)
			print_evaluated(run);
	}
	shardwright_run_free(run);
	return failed;
}
