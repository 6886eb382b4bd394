/* How well simulators rank trials that they have not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune.h"

#define FOLDS 5

typedef struct judged {
	const sw_trial **list; /* those that fit, in the order of the trials */
	size_t n;
	int32_t *bucket; /* per trial */
} judged;

/* Buckets have about as many trials each, the slowest first. */
static void find_buckets(judged *j)
{
	double *seconds = sw_alloc(sizeof(*seconds) * (j->n + 1)),
	       *ranks = sw_alloc(sizeof(*ranks) * (j->n + 1));
	for (size_t i = 0; i < j->n; i++)
		seconds[i] = j->list[i]->example.seconds;
	sw_ranks(seconds, j->n, ranks);
	for (size_t i = 0; i < j->n; i++)
		j->bucket[i] =
			SW_TUNE_BUCKETS - 1 - (int32_t)(ranks[i] * SW_TUNE_BUCKETS / (double)j->n);
	free(seconds);
	free(ranks);
}

/* Count the pairs of those of a fold that are in a bucket; below 0: in any. */
static void count(const judged *j, const sw_ranker *ranker, size_t fold, int32_t bucket,
                  double apart, sw_ranking_accuracy *sum)
{
	size_t n = 0;
	double *scores = sw_alloc(sizeof(*scores) * (j->n + 1)),
	       *seconds = sw_alloc(sizeof(*seconds) * (j->n + 1));
	for (size_t i = fold; i < j->n; i += FOLDS) {
		if (bucket >= 0 && j->bucket[i] != bucket)
			continue;
		scores[n] = sw_ranker_score(ranker, &j->list[i]->example);
		seconds[n++] = j->list[i]->example.seconds;
	}
	sw_ranking_count(scores, seconds, n, apart, sum);
	free(scores);
	free(seconds);
}

static void judge(const judged *j, sw_ranker_kind kind, uint64_t group, int phase, size_t fold,
                  const sw_tune_limits *limits, sw_tune_accuracy *accuracy)
{
	size_t n = 0, till = j->n * (size_t)(phase + 1) / SW_TUNE_PHASES;
	sw_example *lessons = sw_alloc(sizeof(*lessons) * (j->n + 1));
	for (size_t i = 0; i < till; i++)
		if (i % FOLDS != fold)
			lessons[n++] = j->list[i]->example;
	sw_ranker *ranker = sw_ranker_learn(kind, lessons, n, group, limits);
	for (int32_t b = 0; b < SW_TUNE_BUCKETS; b++)
		count(j, ranker, fold, b, limits->apart, &accuracy->of[phase][b]);
	count(j, ranker, fold, -1, limits->apart, &accuracy->all[phase]);
	sw_ranker_free(ranker);
	free(lessons);
}

sw_tune_accuracy sw_tune_accuracy_of(const sw_trials *trials, sw_ranker_kind kind, uint64_t group,
                                     const sw_tune_limits *limits)
{
	sw_tune_accuracy accuracy = {0};
	size_t most = trials->list.len;
	judged j = {.list = sw_alloc(sizeof(*j.list) * (most + 1)),
	            .bucket = sw_alloc(sizeof(*j.bucket) * (most + 1))};
	for (size_t i = 0; i < most; i++)
		if (isfinite(trials->list.data[i].example.seconds))
			j.list[j.n++] = &trials->list.data[i];
	find_buckets(&j);
	for (int p = 0; p < SW_TUNE_PHASES; p++)
		for (size_t fold = 0; fold < FOLDS; fold++)
			judge(&j, kind, group, p, fold, limits, &accuracy);
	free(j.list);
	free(j.bucket);
	return accuracy;
}
