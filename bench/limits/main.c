/*
 * Measure the worth of each limit: halve it, double it, and plan.
 *
 *   bench/limits [--only FIELD[,FIELD]] [--cases N] [--skip N] [--large] [--memory SHARE]
 *                [--factor F] [--json] [-q]
 *
 * FIELD is a row of SW_SEARCH_LIMITS, SW_MODEL_LIMITS or SW_SCHEDULE_LIMITS, or one of their
 * stages; default: all. Of a ratio the distance from 1 is halved and doubled. --cases: the first N;
 * --large: those too that take long. --memory: the share of the unconstrained plan's peak that the
 * cases with little memory get, instead of their own. --factor: by which limits are divided and
 * multiplied (default: 2).
 *
 * One line per field and direction. "changed": cases whose step is another; "mean", "best" and
 * "worst": of the step divided by the default's, "mean" geometric; "cpu": processor time of all
 * plans divided by that of the default, planned in turn with every fourth field. All but "cpu" is
 * the same on every machine.
 */
#include "limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"

typedef struct settings {
	const char *only, *cases, *skip, *memory;
	double factor;
	bool large, json, quiet;
} settings;

/* A case that has been read. */
typedef struct subject {
	char name[128];
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	int64_t memory_bytes; /* 0: the cluster's */
	double step_s;        /* of the default plan */
	double cpu_s;         /* that it took, as measured last */
} subject;
typedef SW_VEC(subject) subjects;

/* The results of halving, or of doubling, a field. */
typedef struct tally {
	int n, changed, lost; /* plans; with another step; cases without any plan that fits */
	double log_sum, best, worst, cpu_s, default_cpu_s;
} tally;

/* ---- planning ----------------------------------------------------------------------------- */

/* Step and peak of the plan, INFINITY and 0 if none fits; *cpu_s is added to. */
static sw_status plan(const subject *s, const limits_all *limits, double *step_s,
                      int64_t *peak_bytes, double *cpu_s, sw_error *err)
{
	const sw_plan_options options = {.quiet = true,
	                                 .threads = 1,
	                                 .memory_bytes = s->memory_bytes,
	                                 .limits.search = &limits->search,
	                                 .limits.model = &limits->model,
	                                 .limits.schedule = &limits->schedule};
	sw_plan *made = NULL;
	double start_s = cpu_now_s();
	sw_status status =
		sw_plan_make(s->program, s->name, &s->sidecar, &s->cluster, &options, &made, err);
	*cpu_s += cpu_now_s() - start_s;
	*step_s = made ? made->predicted.step_time_s : INFINITY;
	*peak_bytes = made ? made->predicted.peak_bytes : 0;
	sw_plan_free(made);
	return status == SW_NO ? SW_OK : status;
}

/* ---- cases -------------------------------------------------------------------------------- */

static sw_status read_case(const limits_case *c, subject *s, sw_error *err)
{
	char path[512];
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s.yaml", c->cluster);
	sw_status status = sw_cluster_read(path, &s->cluster, err);
	if (status == SW_OK && c->devices)
		status = sw_cluster_take(&s->cluster, c->devices, err);
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", c->program);
	if (status == SW_OK)
		status = sw_read_program(path, &s->program, err);
	return status == SW_OK ? sw_sidecar_find(path, s->program, &s->sidecar, err) : status;
}

static void clear_subject(subject *s)
{
	sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	sw_cluster_clear(&s->cluster);
}

/* The memory of the case, and its default step. */
static sw_status prepare(const limits_case *c, const settings *how, subject *s, sw_error *err)
{
	const limits_all limits = limits_default();
	double share = c->memory_share > 0 && how->memory ? strtod(how->memory, NULL)
	                                                  : c->memory_share,
	       cpu_s = 0;
	int64_t peak_bytes;
	sw_status status = SW_OK;
	if (share > 0) {
		s->memory_bytes = INT64_C(1) << 50;
		status = plan(s, &limits, &s->step_s, &peak_bytes, &cpu_s, err);
		s->memory_bytes = (int64_t)(share * (double)peak_bytes);
		cpu_s = 0;
	}
	if (status == SW_OK)
		status = plan(s, &limits, &s->step_s, &peak_bytes, &cpu_s, err);
	snprintf(s->name, sizeof(s->name), "%s on %s%s%s", c->program, c->cluster,
	         c->devices ? " " : "", c->devices ? c->devices : "");
	if (!how->quiet && !how->json)
		printf("# %-40s memory %4.0f %%, step %.6g s, planned in %.2f s\n", s->name,
		       share * 100, s->step_s, cpu_s);
	fflush(stdout);
	s->cpu_s = cpu_s;
	return status;
}

static sw_status open_cases(const settings *how, subjects *all, sw_error *err)
{
	size_t most = how->cases ? strtoull(how->cases, NULL, 10) : limits_n_cases;
	sw_status status = SW_OK;
	for (size_t i = how->skip ? strtoull(how->skip, NULL, 10) : 0;
	     i < limits_n_cases && all->len < most && status == SW_OK; i++) {
		subject s = {.program = NULL};
		if (limits_cases[i].large && !how->large)
			continue;
		status = read_case(&limits_cases[i], &s, err);
		if (status == SW_OK)
			status = prepare(&limits_cases[i], how, &s, err);
		if (status == SW_OK && isfinite(s.step_s))
			sw_vec_push(all, s);
		else
			clear_subject(&s);
	}
	return status;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static void count(tally *t, double ratio)
{
	t->n++;
	t->changed += fabs(ratio - 1) > 1e-9;
	if (isfinite(ratio)) {
		t->log_sum += log(ratio);
		t->best = fmin(t->best, ratio);
		t->worst = fmax(t->worst, ratio);
	} else {
		t->lost++;
	}
}

static sw_status plan_default(subject *s, sw_error *err)
{
	const limits_all limits = limits_default();
	int64_t peak_bytes;
	s->cpu_s = 0;
	return plan(s, &limits, &s->step_s, &peak_bytes, &s->cpu_s, err);
}

static sw_status measure(const limits_field *field, const subject *s, double factor, tally *t,
                         sw_error *err)
{
	const limits_all limits = limits_scaled(field, factor);
	double step_s;
	int64_t peak_bytes;
	sw_status status = plan(s, &limits, &step_s, &peak_bytes, &t->cpu_s, err);
	t->default_cpu_s += s->cpu_s;
	if (status == SW_OK)
		count(t, step_s / s->step_s);
	return status;
}

/* Over all cases: the default in turn with each DEFAULT_EVERY-th field, halved and doubled. */
#define DEFAULT_EVERY 4
static sw_status measure_all(const limits_field *field, double factor, size_t number,
                             const subjects *all, tally tallies[2], sw_progress *progress,
                             size_t n_fields, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < all->len && status == SW_OK; i++) {
		subject *s = &all->data[i];
		sw_progress_update(progress,
		                   ((double)number + (double)i / (double)all->len) /
		                           (double)n_fields,
		                   "%s, %s", field->row->name, s->name);
		if ((number + i) % DEFAULT_EVERY == 0)
			status = plan_default(s, err);
		for (int k = 0; k < 2 && status == SW_OK; k++)
			status = measure(field, s, k == 0 ? 1 / factor : factor, &tallies[k], err);
	}
	return status;
}

/* ---- printing ----------------------------------------------------------------------------- */

static double mean_of(const tally *t)
{
	return t->n > t->lost ? exp(t->log_sum / (t->n - t->lost)) : 1;
}

static void print_heading(void)
{
	printf("%-9s%-22s%12s%12s%9s%6s%9s%9s%9s%7s\n", "stage", "limit", "default", "tried",
	       "changed", "lost", "mean", "best", "worst", "cpu");
}

static void print_line(const limits_field *f, double tried, const tally *t)
{
	printf("%-9s%-22s%12g%12g%5d/%-3d%6d%9.4f%9.4f%9.4f%7.2f\n", f->stage, f->row->name,
	       f->row->value, tried, t->changed, t->n, t->lost, mean_of(t), t->best, t->worst,
	       t->cpu_s / t->default_cpu_s);
	fflush(stdout);
}

static json_t *line_json(const limits_field *f, double tried, const tally *t)
{
	return json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:i, s:f, s:f, s:f, s:f}", "stage",
	                 f->stage, "limit", f->row->name, "unit", f->row->unit, "default",
	                 f->row->value, "tried", tried, "cases", t->n, "changed", t->changed,
	                 "lost", t->lost, "mean", mean_of(t), "best", t->best, "worst", t->worst,
	                 "cpu", t->cpu_s / t->default_cpu_s);
}

static void report(const limits_field *f, double factor, const tally tallies[2], json_t *list)
{
	for (int i = 0; i < 2; i++) {
		const limits_all limits = limits_scaled(f, i == 0 ? 1 / factor : factor);
		double tried = *(const double *)((const char *)&limits + f->offset);
		if (list)
			json_array_append_new(list, line_json(f, tried, &tallies[i]));
		else
			print_line(f, tried, &tallies[i]);
	}
}

static sw_status bench_fields(const settings *how, const limits_fields *fields, const subjects *all,
                              json_t *list, sw_error *err)
{
	sw_progress progress;
	sw_status status = SW_OK;
	sw_progress_start(&progress, "limits", how->quiet);
	for (size_t f = 0; f < fields->len && status == SW_OK; f++) {
		tally tallies[2] = {{.best = INFINITY}, {.best = INFINITY}};
		status = measure_all(&fields->data[f], how->factor, f, all, tallies, &progress,
		                     fields->len, err);
		if (status == SW_OK)
			report(&fields->data[f], how->factor, tallies, list);
	}
	sw_progress_end(&progress);
	return status;
}

static sw_status bench(const settings *how, sw_error *err)
{
	subjects all = {0};
	limits_fields fields = {0};
	json_t *list = how->json ? json_array() : NULL;
	sw_status status = limits_select(how->only, &fields, err);
	if (status == SW_OK)
		status = open_cases(how, &all, err);
	if (status == SW_OK && !how->json)
		print_heading();
	if (status == SW_OK)
		status = bench_fields(how, &fields, &all, list, err);
	if (status == SW_OK && list) {
		json_dumpf(list, stdout, JSON_INDENT(1));
		printf("\n");
	}
	for (size_t i = 0; i < all.len; i++)
		clear_subject(&all.data[i]);
	sw_vec_clear(&all);
	sw_vec_clear(&fields);
	json_decref(list);
	return status;
}

/* ---- the command line --------------------------------------------------------------------- */

static bool flag(int argc, char **argv, int *i, const char *name, bool *value)
{
	bool here = *i < argc && !strcmp(argv[*i], name);
	*value = *value || here;
	*i += here;
	return here;
}

static bool option(int argc, char **argv, int *i, const char *name, const char **value)
{
	if (*i + 1 >= argc || strcmp(argv[*i], name))
		return false;
	*value = argv[*i + 1];
	*i += 2;
	return true;
}

static const char usage[] =
	"usage: limits [--only FIELD[,FIELD]] [--cases N] [--skip N] [--large] [--memory SHARE]\n"
	"              [--factor F] [--json] [-q]\n"
	"Halves and doubles limits of search, model and schedule, and prints what that does to\n"
	"the steps of the cases' plans and to the processor time of planning.\n"
	"  --only FIELDS   these limits, or all of a stage; default: all\n"
	"  --cases N       the first N cases\n"
	"  --skip N        without the first N cases\n"
	"  --large         those cases, too, that take long\n"
	"  --memory SHARE  of the unconstrained plan's peak, for cases with little memory\n"
	"  --factor F      by which limits are divided and multiplied; default: 2\n"
	"  --json          prints the lines as JSON\n"
	"  -q              prints no cases and no progress\n";

int main(int argc, char **argv)
{
	settings how = {0};
	const char *factor = "2";
	bool help = false;
	sw_error err = {0};
	int i = 1;
	while (flag(argc, argv, &i, "--help", &help) ||
	       flag(argc, argv, &i, "--large", &how.large) ||
	       flag(argc, argv, &i, "--json", &how.json) ||
	       flag(argc, argv, &i, "-q", &how.quiet) ||
	       option(argc, argv, &i, "--only", &how.only) ||
	       option(argc, argv, &i, "--cases", &how.cases) ||
	       option(argc, argv, &i, "--skip", &how.skip) ||
	       option(argc, argv, &i, "--memory", &how.memory) ||
	       option(argc, argv, &i, "--factor", &factor))
		;
	how.factor = strtod(factor, NULL);
	if (help) {
		fputs(usage, stdout);
		return 0;
	}
	sw_status status =
		i < argc ? sw_fail(&err, SW_ERR_INPUT, "no option, or no value: '%s'", argv[i])
			 : bench(&how, &err);
	if (status != SW_OK)
		fprintf(stderr, "limits: %s\n%s", err.message, i < argc ? usage : "");
	return sw_status_exit_code(status);
}
