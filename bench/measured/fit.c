/*
 * Fit a cluster's figures to measured steps.
 *
 * Each step keeps its plan and its schedule; only figures change, and it is played again. The fit
 * minimises the mean of ln(1 + (ln(predicted / measured) / SCALE)^2), which outliers (Cauchy) hardly
 * move, one figure after the other: each is tried larger and smaller by a factor, until none helps,
 * then by a smaller factor (Hooke and Jeeves, 1961). Deterministic.
 */
#include "measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALE 0.1
#define FIRST_FACTOR 0.2
#define LAST_FACTOR 0.02

/* The figures that are fitted. level -1: of the device. */
static const struct {
	int32_t level;
	const char *key;
	double most;
} fitted[] = {
	{-1, "memory_bandwidth", INFINITY}, {-1, "matmul_efficiency", 1},
	{-1, "attention_efficiency", 1},    {-1, "attention_gradient_efficiency", 1},
	{-1, "launch_interval", INFINITY},  {0, "latency", INFINITY},
	{0, "bandwidth", INFINITY},
};
#define N_FITTED SW_COUNT(fitted)

typedef struct fit_state {
	fit_case *cases;
	size_t n;
	double values[N_FITTED];
	bool failed;
} fit_state;

/* ---- figures ---------------------------------------------------------------------------- */

static const sw_figure *figure_of(size_t i)
{
	const sw_figures *all = fitted[i].level < 0 ? &sw_device_figures : &sw_level_figures;
	for (size_t f = 0; f < all->n; f++)
		if (!strcmp(all->rows[f].key, fitted[i].key))
			return &all->rows[f];
	return NULL;
}

static void *place_of(sw_cluster *cluster, size_t i)
{
	char *of = fitted[i].level < 0 ? (char *)&cluster->device
	                               : (char *)&cluster->levels[fitted[i].level];
	return of + figure_of(i)->offset;
}

/* Return the cluster with the figures; it borrows everything else. */
static sw_cluster with_figures(const sw_cluster *cluster, const double *values)
{
	sw_cluster trial = *cluster;
	for (size_t i = 0; i < N_FITTED; i++)
		memcpy(place_of(&trial, i), &values[i], sizeof(values[i]));
	for (int32_t l = 0; l < trial.n_levels; l++)
		trial.levels[l].flow_bandwidth = trial.levels[l].bandwidth;
	return trial;
}

/* ---- the objective ---------------------------------------------------------------------- */

static void play_case(void *context, int64_t i)
{
	fit_state *f = context;
	fit_case *of = &f->cases[i];
	const sw_cluster trial = with_figures(of->cluster, f->values);
	sw_error err = {0};
	if (sw_simulate_seconds(&trial, of->scheduled, &of->predicted_s, &err) != SW_OK)
		f->failed = true;
}

static double loss_of(fit_state *f)
{
	double sum = 0;
	sw_parallel_for((int64_t)f->n, sw_cpu_count(), play_case, f);
	for (size_t i = 0; i < f->n; i++) {
		double error = log(f->cases[i].predicted_s / f->cases[i].measured_s) / SCALE;
		sum += log1p(error * error);
	}
	return sum / (double)f->n;
}

/* Try the figure times a factor; keep what is better. */
static bool try_factor(fit_state *f, size_t i, double factor, double *best)
{
	double before = f->values[i];
	f->values[i] = fmin(before * factor, fitted[i].most);
	double loss = f->values[i] == before ? INFINITY : loss_of(f);
	if (loss < *best) {
		*best = loss;
		return true;
	}
	f->values[i] = before;
	return false;
}

static double descend(fit_state *f)
{
	double best = loss_of(f);
	for (double factor = FIRST_FACTOR; factor >= LAST_FACTOR && !f->failed;) {
		bool better = false;
		for (size_t i = 0; i < N_FITTED; i++)
			better |= try_factor(f, i, 1 + factor, &best) ||
			          try_factor(f, i, 1 / (1 + factor), &best);
		factor = better ? factor : factor / 2;
	}
	loss_of(f);
	return best;
}

/* ---- the answer ------------------------------------------------------------------------- */

static int compare_errors(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Return |ln(predicted / measured)| of the steps, ascending. */
static double *sorted_errors(const fit_state *f)
{
	double *errors = sw_alloc(sizeof(*errors) * f->n);
	for (size_t i = 0; i < f->n; i++)
		errors[i] = fabs(log(f->cases[i].predicted_s / f->cases[i].measured_s));
	qsort(errors, f->n, sizeof(*errors), compare_errors);
	return errors;
}

static void describe(const fit_state *f, double loss, sw_text *text)
{
	double *errors = sorted_errors(f);
	for (size_t i = 0; i < N_FITTED; i++) {
		const sw_cluster *cluster = f->cases[0].cluster;
		sw_text_addf(text, "%s.%s: ",
		             fitted[i].level < 0 ? "device" : cluster->levels[fitted[i].level].name,
		             fitted[i].key);
		sw_quantity_add(f->values[i], figure_of(i)->quantity, text);
		sw_text_add(text, "\n");
	}
	sw_text_addf(text, "device.prediction_error: %.3f\n",
	             exp(errors[(size_t)(0.9 * (double)(f->n - 1))]) - 1);
	sw_text_addf(text, "# %d steps, median error %.1f %%, loss %.4f\n", (int)f->n,
	             100 * (exp(errors[f->n / 2]) - 1), loss);
	free(errors);
}

sw_status fit(fit_case *cases, size_t n, sw_text *text, sw_error *err)
{
	fit_state f = {.cases = cases, .n = n};
	if (n == 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "--fit: none of the rows is timed and can be planned");
	sw_cluster first = *cases[0].cluster;
	for (size_t i = 0; i < N_FITTED; i++)
		memcpy(&f.values[i], place_of(&first, i), sizeof(f.values[i]));
	double loss = descend(&f);
	describe(&f, loss, text);
	return f.failed ? sw_fail(err, SW_ERR_INTERNAL, "--fit: a step could not be played")
	                : SW_OK;
}
