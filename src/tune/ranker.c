/*
 * The simulator: a score of ways, learned from the order of trials.
 *
 * The loss of a pair, of which a is faster than b, is log(1 + exp(score(b) - score(a))) (RankNet,
 * Burges and others 2005). Scores begin as a prior, the logarithm of a model's seconds times a
 * slope, so that without trials they rank as the model does, and morph with each trial.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/internal.h"

#define N_FEATURES RANKER_FEATURES

struct sw_ranker {
	sw_ranker_kind kind;
	double slope;
	double mean[N_FEATURES], scale[N_FEATURES]; /* scale 0: the feature is the same for all */
	double weight[N_FEATURES];
	ranking_trees *trees; /* NULL: none */
};

static const char *const WORDS[SW_RANKER_COUNT] = {
#define SW_RANKER_WORD(name, word) [SW_RANKER_##name] = word,
	SW_RANKERS(SW_RANKER_WORD)
#undef SW_RANKER_WORD
};

const char *sw_ranker_word(sw_ranker_kind kind)
{
	return WORDS[kind];
}

sw_status sw_ranker_parse(const char *word, sw_ranker_kind *kind, sw_error *err)
{
	sw_nearest nearest = {.word = word};
	sw_text all = {0};
	for (int k = 0; k < SW_RANKER_COUNT; k++) {
		*kind = (sw_ranker_kind)k;
		if (strcmp(word, WORDS[k]) == 0) {
			sw_text_clear(&all);
			return SW_OK;
		}
		sw_nearest_try(&nearest, WORDS[k]);
		sw_text_addf(&all, "%s%s", k ? ", " : "", WORDS[k]);
	}
	sw_status status = sw_fail(err, SW_ERR_INPUT, "--simulator %s: expected one of %s%s", word,
	                           all.data, sw_nearest_hint(&nearest).text);
	sw_text_clear(&all);
	return status;
}

bool sw_ranker_asks_model(sw_ranker_kind kind)
{
	return kind == SW_RANKER_ANALYTIC || kind == SW_RANKER_BOTH;
}

static bool learns(sw_ranker_kind kind)
{
	return kind == SW_RANKER_LINEAR || kind == SW_RANKER_TREES || kind == SW_RANKER_BOTH;
}

/* ---- scores ----------------------------------------------------------------------------- */

/* Of ways that fit no device by the model, and of those about which it was not asked. */
#define SLOWEST_S 1e9

static double speed_of_model(const sw_ranker *r, const sw_example *example)
{
	double seconds =
		sw_ranker_asks_model(r->kind) ? example->model_s : example->features.seconds;
	if (r->kind == SW_RANKER_NONE)
		return 0;
	return -log(isfinite(seconds) && seconds > 0 ? seconds : SLOWEST_S);
}

/* The model of `both` is a feature by how far it is from the predefined one. */
static void view(const sw_ranker *r, const sw_example *example, double *x)
{
	double model_s = example->model_s;
	bool known = r->kind == SW_RANKER_BOTH && model_s > 0 && isfinite(model_s);
	memcpy(x, example->features.x, sizeof(example->features.x));
	x[SW_WAYS_FEATURES] = known ? log(model_s / example->features.seconds) : 0;
	for (int f = 0; f < N_FEATURES; f++)
		x[f] = r->scale[f] > 0 ? (x[f] - r->mean[f]) / r->scale[f] : 0;
}

static double dot(const double *a, const double *b)
{
	double sum = 0;
	for (int f = 0; f < N_FEATURES; f++)
		sum += a[f] * b[f];
	return sum;
}

double sw_ranker_score(const sw_ranker *ranker, const sw_example *example)
{
	double x[N_FEATURES], score = ranker->slope * speed_of_model(ranker, example);
	if (!learns(ranker->kind))
		return score;
	view(ranker, example, x);
	score += dot(ranker->weight, x);
	return ranker->trees ? score + sw_ranking_trees_score(ranker->trees, x) : score;
}

void sw_ranker_free(sw_ranker *ranker)
{
	if (ranker)
		sw_ranking_trees_free(ranker->trees);
	free(ranker);
}

/* ---- pairs ------------------------------------------------------------------------------ */

/* Is a faster than b by so much that it is no chance? */
static bool is_faster(double a_s, double b_s, double apart)
{
	return isfinite(a_s) && (!isfinite(b_s) || a_s < b_s * (1 - apart));
}

/* The pairs of a group weigh together as much as it has trials. */
static void weigh_pairs(const sw_example *examples, size_t n, uint64_t group,
                        const sw_tune_limits *limits, pair_weights *pairs)
{
	*pairs = (pair_weights){.n = n, .weight = sw_alloc(sizeof(double) * (n * n + 1))};
	for (size_t i = 0; i < n; i++) {
		double count = 0, members = 0;
		for (size_t j = 0; j < n; j++) {
			bool pair =
				examples[i].group == examples[j].group &&
				is_faster(examples[i].seconds, examples[j].seconds, limits->apart);
			members += examples[i].group == examples[j].group;
			pairs->weight[i * n + j] = pair;
			count += pair;
		}
		double share = examples[i].group == group ? 1 : limits->foreign;
		/* about half of a group's n^2 cells are pairs */
		double weight = members > 1 ? 2 * share / (members - 1) : 0;
		for (size_t j = 0; j < n; j++)
			pairs->weight[i * n + j] *= weight;
		pairs->total += weight * count;
	}
}

void sw_pair_slopes(const pair_weights *pairs, const double *scores, double *slope,
                    double *curvature)
{
	size_t n = pairs->n;
	memset(slope, 0, sizeof(*slope) * n);
	memset(curvature, 0, sizeof(*curvature) * n);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double weight = pairs->weight[i * n + j];
			if (weight == 0)
				continue;
			double wrong = 1 / (1 + exp(scores[i] - scores[j]));
			slope[i] -= weight * wrong;
			slope[j] += weight * wrong;
			curvature[i] += weight * wrong * (1 - wrong);
			curvature[j] += weight * wrong * (1 - wrong);
		}
}

static double loss_of(const pair_weights *pairs, const double *scores)
{
	double loss = 0;
	for (size_t i = 0; i < pairs->n; i++)
		for (size_t j = 0; j < pairs->n; j++) {
			double weight = pairs->weight[i * pairs->n + j],
			       ahead = scores[i] - scores[j];
			if (weight > 0)
				loss += weight * (ahead > 0 ? log1p(exp(-ahead))
				                            : log1p(exp(ahead)) - ahead);
		}
	return loss;
}

/* ---- the linear simulator: Newton steps ---------------------------------------------------- */

typedef struct linear_fit {
	const pair_weights *pairs;
	const double *x;    /* [n][N_FEATURES] */
	const double *base; /* scores of the prior */
	double ridge;
	double *scores; /* of the weights tried last */
} linear_fit;

static double fit_loss(const linear_fit *fit, const double *weight)
{
	for (size_t i = 0; i < fit->pairs->n; i++)
		fit->scores[i] = fit->base[i] + dot(weight, &fit->x[i * N_FEATURES]);
	return loss_of(fit->pairs, fit->scores) + 0.5 * fit->ridge * dot(weight, weight);
}

/* Set the slope of the loss by the weights, and its curvature, X' L X with the Laplacian L of the
 * pairs. O(n^2 features + n features^2). */
static void derive(const linear_fit *fit, const double *weight, double *slope, double *hessian)
{
	size_t n = fit->pairs->n;
	double *row = sw_alloc(sizeof(*row) * N_FEATURES);
	for (int f = 0; f < N_FEATURES; f++)
		slope[f] = fit->ridge * weight[f];
	memset(hessian, 0, sizeof(*hessian) * N_FEATURES * N_FEATURES);
	for (int f = 0; f < N_FEATURES; f++)
		hessian[f * N_FEATURES + f] = fit->ridge;
	for (size_t i = 0; i < n; i++) {
		/* row i of L X, and what trial i adds to the slope */
		double own = 0;
		memset(row, 0, sizeof(*row) * N_FEATURES);
		for (size_t j = 0; j < n; j++) {
			double faster = fit->pairs->weight[i * n + j],
			       slower = fit->pairs->weight[j * n + i], weights = faster + slower;
			if (weights == 0)
				continue;
			double wrong = 1 / (1 + exp(fabs(fit->scores[i] - fit->scores[j])));
			bool ahead = fit->scores[i] >= fit->scores[j];
			double curve = weights * wrong * (1 - wrong);
			own += slower * (ahead ? 1 - wrong : wrong) -
			       faster * (ahead ? wrong : 1 - wrong);
			for (int f = 0; f < N_FEATURES; f++)
				row[f] += curve *
				          (fit->x[i * N_FEATURES + f] - fit->x[j * N_FEATURES + f]);
		}
		for (int f = 0; f < N_FEATURES; f++) {
			double value = fit->x[i * N_FEATURES + f];
			slope[f] += own * value;
			for (int g = 0; g < N_FEATURES && value != 0; g++)
				hessian[f * N_FEATURES + g] += value * row[g];
		}
	}
	free(row);
}

/* Solve a x = b in place of b, by Cholesky's factors in place of a, which is positive definite. */
static void solve_linear(double *a, double *b, int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j <= i; j++) {
			double sum = a[i * n + j];
			for (int k = 0; k < j; k++)
				sum -= a[i * n + k] * a[j * n + k];
			a[i * n + j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / a[j * n + j];
		}
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < i; k++)
			b[i] -= a[i * n + k] * b[k];
		b[i] /= a[i * n + i];
	}
	for (int i = n - 1; i >= 0; i--) {
		for (int k = i + 1; k < n; k++)
			b[i] -= a[k * n + i] * b[k];
		b[i] /= a[i * n + i];
	}
}

#define MOST_NEWTON_STEPS 12
#define MOST_HALVINGS 8
#define NEWTON_GAIN 1e-4 /* of the loss: less ends the steps */

static void fit_weights(const linear_fit *fit, double *weight)
{
	double slope[N_FEATURES], next[N_FEATURES],
		*hessian = sw_alloc(sizeof(double) * N_FEATURES * N_FEATURES);
	double loss = fit_loss(fit, weight);
	for (int step = 0; step < MOST_NEWTON_STEPS; step++) {
		double rate = 1, tried = loss;
		derive(fit, weight, slope, hessian);
		solve_linear(hessian, slope, N_FEATURES);
		for (int h = 0; h < MOST_HALVINGS; h++, rate /= 2) {
			for (int f = 0; f < N_FEATURES; f++)
				next[f] = weight[f] - rate * slope[f];
			tried = fit_loss(fit, next);
			if (tried < loss)
				break;
		}
		bool over = tried > loss * (1 - NEWTON_GAIN);
		if (tried < loss) {
			memcpy(weight, next, sizeof(next));
			loss = tried;
		}
		fit_loss(fit, weight);
		if (over)
			break;
	}
	free(hessian);
}

/* ---- learning --------------------------------------------------------------------------- */

/* Scale features by their spread, which tells most features that vary little from those that do
 * not at all. */
#define LEAST_SPREAD 1e-9

static void find_scales(sw_ranker *r, const sw_example *examples, size_t n)
{
	double x[N_FEATURES];
	for (int f = 0; f < N_FEATURES; f++)
		r->scale[f] = 1;
	double sum[N_FEATURES] = {0}, squares[N_FEATURES] = {0};
	for (size_t i = 0; i < n; i++) {
		view(r, &examples[i], x);
		for (int f = 0; f < N_FEATURES; f++)
			sum[f] += x[f];
	}
	for (int f = 0; f < N_FEATURES; f++)
		r->mean[f] = sum[f] / (double)n;
	for (size_t i = 0; i < n; i++) {
		view(r, &examples[i], x);
		for (int f = 0; f < N_FEATURES; f++)
			squares[f] += x[f] * x[f];
	}
	for (int f = 0; f < N_FEATURES; f++) {
		double spread = sqrt(squares[f] / (double)n);
		r->scale[f] = spread > LEAST_SPREAD ? spread : 0;
	}
}

/* All that the examples say, in the form in which it is fitted. */
typedef struct lessons {
	size_t n;
	double *x;      /* [n][N_FEATURES] */
	double *model;  /* [n]: the logarithm of the speed by the model of the prior */
	double *scores; /* [n]: of the fit made last */
	pair_weights pairs;
} lessons;

static void start_lessons(sw_ranker *r, const sw_example *examples, size_t n, uint64_t group,
                          const sw_tune_limits *limits, lessons *l)
{
	*l = (lessons){.n = n,
	               .x = sw_alloc(sizeof(double) * n * N_FEATURES),
	               .model = sw_alloc(sizeof(double) * n),
	               .scores = sw_alloc(sizeof(double) * n)};
	find_scales(r, examples, n);
	weigh_pairs(examples, n, group, limits, &l->pairs);
	for (size_t i = 0; i < n; i++) {
		view(r, &examples[i], &l->x[i * N_FEATURES]);
		l->model[i] = speed_of_model(r, &examples[i]);
	}
}

static void end_lessons(lessons *l)
{
	free(l->x);
	free(l->model);
	free(l->scores);
	free(l->pairs.weight);
}

/* Fit the weights, under a prior of this slope. */
static void fit_prior(const lessons *l, double slope, double ridge, double *weight)
{
	double *base = sw_alloc(sizeof(*base) * (l->n + 1));
	for (size_t i = 0; i < l->n; i++)
		base[i] = slope * l->model[i];
	linear_fit fit = {&l->pairs, l->x, base, ridge, l->scores};
	fit_weights(&fit, weight);
	free(base);
}

static void learn(sw_ranker *r, const sw_example *examples, size_t n, uint64_t group,
                  const sw_tune_limits *limits)
{
	lessons l;
	start_lessons(r, examples, n, group, limits, &l);
	if (l.pairs.total > 0) {
		fit_prior(&l, r->slope, limits->ridge, r->weight);
		if (r->kind == SW_RANKER_TREES)
			r->trees = sw_ranking_trees_fit(&l.pairs, l.x, l.scores, limits);
	}
	end_lessons(&l);
}

sw_ranker *sw_ranker_learn(sw_ranker_kind kind, const sw_example *examples, size_t n,
                           uint64_t group, const sw_tune_limits *limits)
{
	sw_ranker *r = sw_alloc(sizeof(*r));
	r->kind = kind;
	r->slope = limits->prior_slope;
	if (learns(kind) && n > 0)
		learn(r, examples, n, group, limits);
	return r;
}

/* ---- accuracy --------------------------------------------------------------------------- */

void sw_ranking_count(const double *scores, const double *seconds, size_t n, double apart,
                      sw_ranking_accuracy *sum)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			if (!is_faster(seconds[i], seconds[j], apart))
				continue;
			double right = scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
			sum->right += (right - sum->right) / (double)++sum->pairs;
		}
}
