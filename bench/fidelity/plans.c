/* Make one plan after the other for the calibrated cluster, predict it by the simulator, and
 * measure it in the lab. */
#include "fidelity.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "partition/partition.h"
#include "schedule/schedule.h"

#define PLAN_LIMIT_S 120
#define RUN_LIMIT_S 120
#define MIN_STEPS 5
#define MAX_STEPS 60
/* Steps of one run agree within a few per cent; runs of one plan differ by up to 30 %, depending on
 * the cores of its processes and their connections. */
#define RUNS 3

/* True if an earlier row has the same results: two strategies made the same plan. */
static bool is_repeated(const row_list *rows, const row *r)
{
	for (size_t i = 0; i < rows->len; i++) {
		const row *old = &rows->data[i];
		if (old->lab == r->lab && old->program == r->program &&
		    old->all.predicted_s == r->all.predicted_s &&
		    old->none.predicted_s == r->none.predicted_s &&
		    old->all.predicted_bytes == r->all.predicted_bytes)
			return true;
	}
	return false;
}

static sw_status predict(const settings *how, const char *plan, const char *overlap, step *s,
                         sw_error *err)
{
	json_t *object;
	sw_status status = shardwright(
		how, (const char *const[]){"simulate", plan, "--overlap", overlap, "--json", NULL},
		PLAN_LIMIT_S, &object, err);
	if (status == SW_OK)
		status = sw_json_get_real(object, "step_time_s", "simulate", &s->predicted_s, err);
	if (status == SW_OK)
		status = sw_json_get_real(object, "compute_s", "simulate", &s->compute_s, err);
	if (status == SW_OK)
		status = sw_json_get_real(object, "exposed_comm_s", "simulate", &s->exposed_s, err);
	if (status == SW_OK)
		status =
			sw_json_get_int(object, "peak_bytes", "simulate", &s->predicted_bytes, err);
	json_decref(object);
	return status;
}

/* Run as many steps as fit the time; the command reports their median, without the first. */
static sw_status run_once(const settings *how, const row *r, const char *plan, const char *overlap,
                          step *s, sw_error *err)
{
	char steps[32];
	json_t *object;
	double wanted = how->measure_s / RUNS / s->predicted_s;
	snprintf(steps, sizeof(steps), "%.0f", fmin(fmax(wanted, MIN_STEPS), MAX_STEPS));
	const char *words[] = {"run",    plan,        "--steps",
	                       steps,    "--overlap", overlap,
	                       "--json", "-q",        r->lab->paced ? "--pace" : NULL,
	                       NULL};
	const struct {
		const char *key;
		double *value;
	} reals[] = {{"step_time_s", &s->measured_s},
	             {"exposed_comm_s", &s->waited_s},
	             {"compute_s", &s->rest_s},
	             {"transport_cpu_s", &s->transport_cpu_s}};
	sw_status status = lab_run(how, words, RUN_LIMIT_S, &object, err);
	for (size_t i = 0; i < SW_COUNT(reals) && status == SW_OK; i++)
		status = sw_json_get_real(object, reals[i].key, "run", reals[i].value, err);
	if (status == SW_OK)
		status = sw_json_get_int(object, "peak_bytes", "run", &s->executed_bytes, err);
	json_decref(object);
	return status;
}

/* Return the median of the number at `offset` in each run. */
static double median_of(const step *runs, size_t offset)
{
	double numbers[RUNS];
	for (int i = 0; i < RUNS; i++)
		numbers[i] = *(const double *)((const char *)&runs[i] + offset);
	return sw_median(numbers, RUNS);
}

static void take_medians(const step *runs, step *s)
{
	*s = runs[RUNS - 1];
	s->measured_s = median_of(runs, offsetof(step, measured_s));
	s->waited_s = median_of(runs, offsetof(step, waited_s));
	s->rest_s = median_of(runs, offsetof(step, rest_s));
	s->transport_cpu_s = median_of(runs, offsetof(step, transport_cpu_s));
}

/* Measure with overlap and without alternately, so that other load of the machine affects both;
 * each is the median over runs. */
static sw_status measure(const settings *how, row *r, const char *plan, sw_error *err)
{
	step all[RUNS], none[RUNS];
	sw_status status = SW_OK;
	for (int i = 0; i < RUNS && status == SW_OK; i++) {
		all[i] = r->all;
		none[i] = r->none;
		status = run_once(how, r, plan, "all", &all[i], err);
		if (status == SW_OK && (how->figure_4 || can_hide(r)))
			status = run_once(how, r, plan, "none", &none[i], err);
	}
	if (status != SW_OK)
		return status;
	take_medians(all, &r->all);
	take_medians(none, &r->none);
	return SW_OK;
}

bool can_hide(const row *r)
{
	bool data = strcmp(r->strategy, "dp") == 0 || strncmp(r->strategy, "zero", 4) == 0;
	return data && r->none.exposed_s > 0 && r->none.compute_s > r->none.exposed_s;
}

double error_of(const step *s)
{
	return (s->predicted_s - s->measured_s) / s->measured_s;
}

double exposed_share(const row *r)
{
	return r->all.waited_s / r->none.waited_s;
}

double cost_share(const row *r)
{
	return (r->all.measured_s - r->none.rest_s) / (r->none.measured_s - r->none.rest_s);
}

/* A target that is met although the bound is above it counts as met: measured times may be better
 * than the model. */
verdict verdict_of(const row *r)
{
	if (exposed_share(r) <= MAX_EXPOSED_SHARE)
		return MET;
	return r->least_share <= MAX_EXPOSED_SHARE ? NOT_MET : NOT_POSSIBLE;
}

/* Find the lower bound with collectives one by one or merged as the schedule has them: the bound
 * holds for one or the other. */
static sw_status find_least(const sw_plan *plan, const sw_program *local, double *least_s,
                            sw_error *err)
{
	sw_program *scheduled;
	sw_schedule_options options = {.overlap = SW_OVERLAP_ALL,
	                               .memory_bytes = plan->memory_bytes};
	sw_status status = sw_schedule(plan->cluster, local, &options, &scheduled, err);
	if (status != SW_OK)
		return status;
	*least_s = fmin(sw_schedule_bound_seconds(plan->cluster, local, SW_OVERLAP_ALL),
	                sw_schedule_bound_seconds(plan->cluster, scheduled, SW_OVERLAP_ALL));
	sw_program_free(scheduled);
	return SW_OK;
}

/* Find the bound's share of exposed communication; both times are those of the two streams of one
 * device, to which the bound applies. */
static sw_status bound_share(const char *path, double *share, sw_error *err)
{
	sw_cluster cluster;
	sw_plan *plan;
	sw_program *local = NULL;
	sw_status status = sw_plan_read(path, &cluster, &plan, err);
	if (status != SW_OK)
		return status;
	double least_s = 0, compute_s = plan->predicted.compute_s;
	status = sw_partition(plan, &local, err);
	if (status == SW_OK)
		status = find_least(plan, local, &least_s, err);
	if (status == SW_OK)
		*share = fmax(least_s - compute_s, 0) /
		         (sw_schedule_seconds(&cluster, local) - compute_s);
	sw_program_free(local);
	sw_plan_free(plan);
	sw_cluster_clear(&cluster);
	return status;
}

static sw_status make_plan(const settings *how, const row *r, const char *calibrated,
                           const char *plan, sw_error *err)
{
	char program[512];
	json_t *object = NULL;
	snprintf(program, sizeof(program), "%s/tests/programs/%s.hlo.gz", SW_SOURCE_DIR,
	         r->program);
	sw_status status = shardwright(how,
	                               (const char *const[]){"plan", program, "--cluster",
	                                                     calibrated, "--strategy", r->strategy,
	                                                     "-o", plan, "--json", "-q", NULL},
	                               PLAN_LIMIT_S, &object, err);
	json_decref(object);
	return status;
}

static sw_status try_plan(const settings *how, const char *calibrated, row_list *rows, row *r,
                          sw_error *err)
{
	char plan[512];
	snprintf(plan, sizeof(plan), "%s/%s.plan", how->work, r->lab->name);
	sw_status status = make_plan(how, r, calibrated, plan, err);
	if (status == SW_OK)
		status = predict(how, plan, "all", &r->all, err);
	if (status == SW_OK)
		status = predict(how, plan, "none", &r->none, err);
	if (status != SW_OK || is_repeated(rows, r))
		return status == SW_OK ? SW_NO : status;
	status = measure(how, r, plan, err);
	return status == SW_OK && can_hide(r) ? bound_share(plan, &r->least_share, err) : status;
}

static void say(const settings *how, const row *r, sw_status status, const sw_error *err)
{
	if (how->quiet)
		return;
	fprintf(stderr, "%-11s  %-16s  %-13s  ", r->lab->name, r->program, r->strategy);
	if (status == SW_NO)
		fprintf(stderr, "the same plan as one before\n");
	else if (status != SW_OK)
		fprintf(stderr, "left out: %s\n", err->message);
	else
		fprintf(stderr, "predicted %8.2f ms, measured %8.2f ms, %+6.1f %%\n",
		        r->all.predicted_s * 1e3, r->all.measured_s * 1e3, 100 * error_of(&r->all));
}

static void measure_program(const settings *how, const lab_case *lab, const char *program,
                            const char *calibrated, row_list *rows)
{
	for (const char *const *strategy = lab->strategies; *strategy && !stop_asked();
	     strategy++) {
		if (!is_chosen(how->strategies, *strategy))
			continue;
		row r = {.lab = lab, .program = program, .strategy = *strategy};
		sw_error err;
		sw_status status = try_plan(how, calibrated, rows, &r, &err);
		say(how, &r, status, &err);
		if (status == SW_OK)
			sw_vec_push(rows, r);
		else
			rows->left_out += status != SW_NO;
	}
}

void measure_lab(const settings *how, const lab_case *lab, const char *calibrated, row_list *rows)
{
	for (const char *const *program = lab->programs; *program; program++)
		if (is_chosen(how->programs, *program))
			measure_program(how, lab, *program, calibrated, rows);
}
