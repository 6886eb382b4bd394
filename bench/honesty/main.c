/*
 * Check whether the planner's cost model ranks plans as they run: all plans of a small candidate
 * set are costed by the model and played by the simulator.
 *
 *     bench/honesty [--cluster FILE] [--devices N|AxB] [--every K] [--json] [--check] [FILE ...]
 *
 * Without FILE and --cluster: one layer of GPT, of the size for a lab (gpt-layer on
 * clusters/lab-4x1.yaml) and of GPT-2's (gpt-124m-layer on one node of clusters/a100-8x8.yaml).
 * --every K: each K-th plan of the set (K odd, else some weights have one choice only). The
 * simulated step is that of `run`: scheduled with overlap. "first is slower by": the plan that a
 * judge ranks first, against the one that the simulator ranks first; "best of 5": the best by the
 * simulator among the judge's first five. --check: exit code 1 if the planner's model ranks worse
 * than it should. No figure depends on the machine.
 *
 * The programs are tools/export_programs.py's models GPT_DEMO and GPT_124M with a depth of 1.
 */
#include "honesty.h"

#include <string.h>

#define OWN SW_SOURCE_DIR "/bench/honesty/"
#define CLUSTERS SW_SOURCE_DIR "/clusters/"

typedef struct settings {
	const char *cluster, *devices, *every;
	bool json, check;
} settings;

typedef struct judging {
	const subject *subject;
	verdicts all;
} judging;

static sw_status judge_choice(void *context, const char *choice, const double *model_s,
                              sw_error *err)
{
	judging *j = context;
	return judge_plan(j->subject, choice, model_s, &j->all, err);
}

static void report(const settings *how, const judging *j, json_t *list)
{
	sw_text text = {0};
	if (how->json) {
		json_array_append_new(list, report_json(j->subject, &j->all));
		return;
	}
	report_text(j->subject, &j->all, &text);
	printf("%s\n", text.data);
	fflush(stdout);
	sw_text_clear(&text);
}

/* The targets of --check: the planner's model has at least MIN_CORRELATION with the simulator, and
 * at most MAX_LOSS less than a model in which nothing hides. */
#define MIN_CORRELATION 0.95
#define MAX_LOSS 0.01

static sw_status check(const subject *s, const verdicts *all, sw_error *err)
{
	double ours = rank_correlation(all, PLANNED),
	       additive = rank_correlation(all, HIDES_NOTHING);
	if (ours >= MIN_CORRELATION && ours >= additive - MAX_LOSS)
		return SW_OK;
	return sw_fail(
		err, SW_NO,
		"%s: the planner's model has rank correlation %.4f, one in which nothing hides "
		"has %.4f",
		s->name, ours, additive);
}

static sw_status bench(const settings *how, const char *program, const char *cluster,
                       const char *devices, json_t *list, sw_error *err)
{
	subject s;
	judging j = {.subject = &s};
	sw_status status = subject_open(&s, program, cluster, devices, err);
	if (status == SW_OK)
		status = choices_each(&s, SW_MAX(strtoll(how->every, NULL, 10), 1), judge_choice,
		                      &j, err);
	if (status == SW_OK)
		report(how, &j, list);
	if (status == SW_OK && how->check)
		status = check(&s, &j.all, err);
	verdicts_clear(&j.all);
	subject_close(&s);
	return status;
}

static sw_status bench_own(const settings *how, json_t *list, sw_error *err)
{
	sw_status status =
		bench(how, OWN "gpt-layer.hlo.gz", CLUSTERS "lab-4x1.yaml", NULL, list, err);
	if (status == SW_OK)
		status = bench(how, OWN "gpt-124m-layer.hlo.gz", CLUSTERS "a100-8x8.yaml", "1x8",
		               list, err);
	return status;
}

static bool option(int argc, char **argv, int *i, const char *name, const char **value)
{
	if (strcmp(argv[*i], name) || *i + 1 >= argc)
		return false;
	*value = argv[*i + 1];
	*i += 2;
	return true;
}

static bool flag(char **argv, int *i, const char *name, bool *value)
{
	if (strcmp(argv[*i], name))
		return false;
	*value = true;
	++*i;
	return true;
}

int main(int argc, char **argv)
{
	settings how = {.every = "1"};
	sw_error err = {0};
	sw_status status = SW_OK;
	json_t *list = json_array();
	int i = 1;
	while (i < argc &&
	       (option(argc, argv, &i, "--cluster", &how.cluster) ||
	        option(argc, argv, &i, "--devices", &how.devices) ||
	        option(argc, argv, &i, "--every", &how.every) ||
	        flag(argv, &i, "--json", &how.json) || flag(argv, &i, "--check", &how.check)))
		;
	const char *cluster = how.cluster ? how.cluster : CLUSTERS "lab-4x1.yaml";
	if (i == argc && !how.cluster)
		status = bench_own(&how, list, &err);
	else if (i == argc)
		status = bench(&how, OWN "gpt-layer.hlo.gz", cluster, how.devices, list, &err);
	for (; i < argc && status == SW_OK; i++)
		status = bench(&how, argv[i], cluster, how.devices, list, &err);
	if (how.json && status == SW_OK)
		json_dumpf(list, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	if (status != SW_OK)
		fprintf(stderr, "%s:%d:%d: %s\n", err.file, err.line, err.column, err.message);
	json_decref(list);
	return sw_status_exit_code(status);
}
