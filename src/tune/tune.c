/*
 * Algorithm 1: rounds of samples, of which the simulator rejects those that it knows to be slow,
 * and ranks the others; of trials of the best and most diverse; and of learning from all trials.
 */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/internal.h"

typedef struct tuning {
	const sw_program *program;
	const char *path;
	const sw_tune_options *options;
	const sw_tune_limits *limits;
	sw_tuned *out;
	sw_rng rng;
	uint64_t group;
	sw_map tried; /* hash of ways -> number of the trial */
	/* scores of new trials by the simulator that had not seen them; NAN: of a builder */
	SW_VEC(double) foresight;
	sw_ranker *ranker;
	sw_path_store *paths; /* which all trials share */
	double start_s;
	sw_progress progress;
	sw_error *err;
} tuning;

static double left_s(const tuning *t)
{
	double limit_s = t->options->plan.time_limit_s;
	return limit_s > 0 ? limit_s - (sw_now_s() - t->start_s) : INFINITY;
}

static bool is_over(const tuning *t)
{
	bool stopped = t->options->stop && *t->options->stop;
	bool timed_out = t->out->n_new > 0 && left_s(t) <= 0;
	return (int64_t)t->out->n_new >= t->options->trials || timed_out || stopped;
}

static const sw_trial *best_of(const sw_tuned *out)
{
	return out->trials.list.len > 0 ? &out->trials.list.data[out->best] : NULL;
}

/* ---- trials ----------------------------------------------------------------------------- */

/* Plan ways as `plan --sync` plans them. */
static sw_status plan_ways(const tuning *t, const sw_ways *ways, sw_plan **plan, sw_error *err)
{
	sw_sync sync;
	sw_plan_options options = t->options->plan;
	sw_ways_to_sync(&t->out->space, ways, &sync);
	options.strategy = (sw_plan_strategy){.kind = SW_PLAN_SYNC, .owners = SW_OWNERS_FILE};
	options.sync = &sync;
	options.codec = (sw_codec){0};
	options.autodist = false;
	options.quiet = true;
	options.least = NULL;
	options.paths = t->paths;
	options.time_limit_s = isfinite(left_s(t)) ? fmax(left_s(t), 0.1) : 0;
	sw_status status = sw_plan_make(t->program, t->path, t->out->space.sidecar,
	                                t->out->space.cluster, &options, plan, err);
	sw_sync_clear(&sync);
	return status;
}

/* Set the seconds of a trial. One that does not fit, or can't run, takes forever. */
static sw_status time_plan(const tuning *t, const sw_plan *plan, sw_example *example)
{
	sw_error why;
	example->model_s = plan->predicted.step_time_s;
	example->seconds = example->model_s;
	if (!t->options->measure)
		return SW_OK;
	sw_status status = t->options->measure(t->options->context, plan, &example->seconds, &why);
	if (status == SW_NO)
		example->seconds = INFINITY;
	else if (status != SW_OK && t->err)
		*t->err = why;
	return status == SW_NO ? SW_OK : status;
}

static void show(tuning *t)
{
	sw_text best = {0};
	const sw_trial *of = best_of(t->out);
	if (of && isfinite(of->example.seconds))
		sw_text_add_seconds(&best, of->example.seconds);
	sw_progress_update(&t->progress,
	                   (double)t->out->n_new / (double)SW_MAX(t->options->trials, 1),
	                   "trial %zu of %lld, best %s", t->out->n_new,
	                   (long long)t->options->trials, best.data ? best.data : "none yet");
	sw_text_clear(&best);
}

/* Keep the plan if it is the best so far; take it over in any case. */
static void keep_best(tuning *t, const sw_example *example, sw_plan *plan)
{
	const sw_trial *best = best_of(t->out);
	bool better = !best || example->seconds < best->example.seconds;
	if (better) {
		t->out->best = t->out->trials.list.len;
		sw_plan_free(t->out->plan);
		t->out->plan = NULL;
	}
	if (better && plan && isfinite(example->seconds))
		t->out->plan = plan;
	else
		sw_plan_free(plan);
}

static sw_status make_trial(tuning *t, const sw_ways *ways, const sw_ways_features *features,
                            const char *builder, double foresight)
{
	sw_trial trial = {.program = t->out->space.program_hash,
	                  .cluster = t->out->space.setting,
	                  .measured = t->options->measure != NULL,
	                  .builder = builder,
	                  .ways = *ways,
	                  .example = {.features = *features, .group = t->group}};
	sw_plan *plan = NULL;
	sw_status status = plan_ways(t, ways, &plan, t->err);
	if (status == SW_NO)
		trial.example.seconds = trial.example.model_s = INFINITY;
	else if (status == SW_OK)
		status = time_plan(t, plan, &trial.example);
	else
		return status;
	if (status != SW_OK && status != SW_NO) {
		sw_plan_free(plan);
		return status;
	}
	if (plan)
		trial.cost = plan->predicted;
	keep_best(t, &trial.example, plan);
	sw_map_put(&t->tried, &ways->hash, sizeof(ways->hash), (uint32_t)t->out->trials.list.len);
	sw_vec_push(&t->out->trials.list, trial);
	sw_vec_push(&t->foresight, foresight);
	t->out->n_new++;
	show(t);
	return SW_OK;
}

static bool was_tried(const tuning *t, uint64_t hash)
{
	return sw_map_get(&t->tried, &hash, sizeof(hash)) != SW_ABSENT;
}

static sw_status save(const tuning *t)
{
	return t->options->file
	               ? sw_trials_write(t->options->file, &t->out->space, &t->out->trials, t->err)
	               : SW_OK;
}

/* ---- the builders first ----------------------------------------------------------------- */

static sw_status try_builders(tuning *t)
{
	for (size_t i = 0; sw_ways_seed_name(i) && !is_over(t); i++) {
		sw_ways ways;
		SW_TRY(sw_ways_seed(&t->out->space, i, &t->out->trials.arena, &ways, t->err));
		sw_ways_features features = sw_ways_features_of(&t->out->space, &ways);
		if (!was_tried(t, ways.hash))
			SW_TRY(make_trial(t, &ways, &features, sw_ways_seed_name(i), NAN));
	}
	return SW_OK;
}

/* ---- samples ---------------------------------------------------------------------------- */

static int quickest_first(const void *a, const void *b)
{
	const sw_trial *x = *(const sw_trial *const *)a, *y = *(const sw_trial *const *)b;
	if (x->example.seconds != y->example.seconds)
		return x->example.seconds < y->example.seconds ? -1 : 1;
	return (x > y) - (x < y);
}

/* Return the best trials, the quickest first, as many as there are up to `most`. */
static size_t find_parents(const tuning *t, size_t most, const sw_trial **parents)
{
	size_t n = t->out->trials.list.len;
	const sw_trial **all = sw_alloc(sizeof(*all) * (n + 1));
	for (size_t i = 0; i < n; i++)
		all[i] = &t->out->trials.list.data[i];
	qsort(all, n, sizeof(*all), quickest_first);
	n = SW_MIN(n, most);
	memcpy(parents, all, sizeof(*parents) * n);
	free(all);
	return n;
}

typedef SW_VEC(sw_scored_ways) sample_list;

/* Samples that were neither tried nor drawn before, in the arena. */
static void draw_samples(tuning *t, sw_arena *arena, sample_list *samples)
{
	size_t most = (size_t)t->limits->parents, wanted = (size_t)t->limits->samples;
	const sw_trial **parents = sw_alloc(sizeof(*parents) * (most + 1));
	size_t n = find_parents(t, most, parents);
	sw_map drawn = {0};
	for (size_t i = 0; i < wanted; i++) {
		sw_scored_ways sample = {0};
		bool change = n > 0 && sw_rng_unit(&t->rng) < t->limits->mutants;
		const sw_ways *of =
			change ? &parents[sw_rng_below(&t->rng, (int64_t)n)]->ways : NULL;
		const sw_ways *other =
			change ? &parents[sw_rng_below(&t->rng, (int64_t)n)]->ways : NULL;
		sample.ways = change ? sw_ways_change(&t->out->space, t->limits, of, other, &t->rng,
		                                      arena)
		                     : sw_ways_draw(&t->out->space, t->limits, &t->rng, arena);
		if (was_tried(t, sample.ways.hash) ||
		    sw_map_put(&drawn, &sample.ways.hash, sizeof(sample.ways.hash), 0) != SW_ABSENT)
			continue;
		sample.example.features = sw_ways_features_of(&t->out->space, &sample.ways);
		sample.example.group = t->group;
		sw_vec_push(samples, sample);
	}
	sw_map_clear(&drawn);
	free(parents);
}

/* ---- scores ----------------------------------------------------------------------------- */

/* All examples: of this run's group, then of others, the newest ones. */
#define MOST_LESSONS 512

static size_t list_lessons(const tuning *t, sw_example *lessons)
{
	const sw_trials *trials = &t->out->trials;
	size_t n = SW_MIN(trials->list.len, MOST_LESSONS),
	       others = SW_MIN(trials->others.len, MOST_LESSONS - n), at = 0;
	for (size_t i = trials->list.len - n; i < trials->list.len; i++)
		lessons[at++] = trials->list.data[i].example;
	for (size_t i = trials->others.len - others; i < trials->others.len; i++)
		lessons[at++] = trials->others.data[i].example;
	return at;
}

static sw_ranker *learn(const tuning *t, sw_ranker_kind kind)
{
	sw_example *lessons = sw_alloc(sizeof(*lessons) * MOST_LESSONS);
	size_t n = list_lessons(t, lessons);
	sw_ranker *ranker = sw_ranker_learn(kind, lessons, n, t->group, t->limits);
	free(lessons);
	return ranker;
}

static int highest_first(const void *a, const void *b)
{
	const sw_scored_ways *x = a, *y = b;
	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return (x->ways.hash > y->ways.hash) - (x->ways.hash < y->ways.hash);
}

static void score(const sw_ranker *ranker, sample_list *samples)
{
	for (size_t i = 0; i < samples->len; i++)
		samples->data[i].score = sw_ranker_score(ranker, &samples->data[i].example);
}

/* Ask our model about the samples that another simulator ranks highest; the others are dropped. */
static sw_status ask_model(tuning *t, sample_list *samples)
{
	sw_ranker *first = learn(t, SW_RANKER_LINEAR);
	score(first, samples);
	sw_ranker_free(first);
	qsort(samples->data, samples->len, sizeof(*samples->data), highest_first);
	samples->len = SW_MIN(samples->len, (size_t)t->limits->shortlist);
	for (size_t i = 0; i < samples->len && !is_over(t); i++) {
		sw_plan *plan = NULL;
		sw_status status = plan_ways(t, &samples->data[i].ways, &plan, t->err);
		if (status != SW_OK && status != SW_NO)
			return status;
		samples->data[i].example.model_s = plan ? plan->predicted.step_time_s : INFINITY;
		sw_plan_free(plan);
	}
	return SW_OK;
}

/* ---- the fidelity filter ---------------------------------------------------------------- */

/* The last trials, as the simulator scored them before it had seen them. */
typedef struct foresights {
	size_t n;
	double *scores, *seconds;
	size_t *trial;
} foresights;

static foresights recent_foresights(const tuning *t)
{
	size_t n_new = t->foresight.len, first = t->out->trials.list.len - n_new,
	       most = (size_t)t->limits->recent;
	foresights f = {.scores = sw_alloc(sizeof(double) * (most + 1)),
	                .seconds = sw_alloc(sizeof(double) * (most + 1)),
	                .trial = sw_alloc(sizeof(size_t) * (most + 1))};
	for (size_t i = n_new; i-- > 0 && f.n < most;) {
		if (isnan(t->foresight.data[i]))
			continue;
		f.scores[f.n] = t->foresight.data[i];
		f.seconds[f.n] = t->out->trials.list.data[first + i].example.seconds;
		f.trial[f.n++] = first + i;
	}
	return f;
}

static void clear_foresights(foresights *f)
{
	free(f->scores);
	free(f->seconds);
	free(f->trial);
}

/* Return the score below which samples are rejected: judged by foresight, in the scores of the
 * simulator that has seen those trials. */
static double fidelity_level(const tuning *t, const foresights *f)
{
	size_t at = sw_fidelity_trial(f->scores, f->seconds, f->n, t->limits->fidelity,
	                              t->limits->apart);
	return at < f->n
	               ? sw_ranker_score(t->ranker, &t->out->trials.list.data[f->trial[at]].example)
	               : -INFINITY;
}

/* Drop what is below the level, unless that leaves less than a round. */
static void reject(tuning *t, double level, sample_list *samples)
{
	size_t n = 0, least = (size_t)t->limits->round;
	qsort(samples->data, samples->len, sizeof(*samples->data), highest_first);
	while (n < samples->len && (samples->data[n].score >= level || n < least))
		n++;
	t->out->rejected += (int64_t)(samples->len - n);
	samples->len = n;
}

/* ---- a round ---------------------------------------------------------------------------- */

/* A copy in the arena of the trials: samples go with their round. */
static sw_ways keep_ways(tuning *t, const sw_ways *ways)
{
	sw_arena *arena = &t->out->trials.arena;
	uint32_t n = t->out->space.n;
	sw_variable_ways *of = sw_arena_copy(arena, ways->of, sizeof(*of) * n);
	for (uint32_t i = 0; i < n; i++)
		of[i].parts =
			sw_arena_copy(arena, of[i].parts, sizeof(*of[i].parts) * (size_t)of[i].n);
	sw_ways kept = *ways;
	kept.of = of;
	return kept;
}

static sw_status try_picks(tuning *t, sample_list *samples)
{
	int64_t left = t->options->trials - (int64_t)t->out->n_new;
	size_t most = (size_t)SW_MIN(left, (int64_t)t->limits->round);
	sw_picks_take(&t->out->space, samples->data, samples->len, most, t->limits, &t->rng);
	for (size_t i = 0; i < samples->len && !is_over(t); i++) {
		const sw_scored_ways *sample = &samples->data[i];
		if (!sample->taken)
			continue;
		sw_ways ways = keep_ways(t, &sample->ways);
		SW_TRY(make_trial(t, &ways, &sample->example.features, "", sample->score));
	}
	return save(t);
}

/* *none: no samples were left that had not been tried. */
static sw_status try_round(tuning *t, bool *none)
{
	sample_list samples = {0};
	sw_arena arena;
	sw_arena_init(&arena);
	draw_samples(t, &arena, &samples);
	*none = samples.len == 0;
	sw_status status = SW_OK;
	if (sw_ranker_asks_model(t->options->ranker))
		status = ask_model(t, &samples);
	if (status == SW_OK) {
		foresights f = recent_foresights(t);
		sw_ranker_free(t->ranker);
		t->ranker = learn(t, t->options->ranker);
		score(t->ranker, &samples);
		reject(t, fidelity_level(t, &f), &samples);
		status = try_picks(t, &samples);
		clear_foresights(&f);
	}
	sw_vec_clear(&samples);
	sw_arena_clear(&arena);
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static sw_status read_trials(tuning *t)
{
	sw_trials *trials = &t->out->trials;
	if (t->options->file)
		SW_TRY(sw_trials_read(t->options->file, &t->out->space, t->options->measure != NULL,
		                      trials, t->err));
	for (size_t i = 0; i < trials->list.len; i++) {
		const sw_trial *trial = &trials->list.data[i];
		sw_map_put(&t->tried, &trial->ways.hash, sizeof(trial->ways.hash), (uint32_t)i);
		if (trial->example.seconds < best_of(t->out)->example.seconds)
			t->out->best = i;
	}
	return SW_OK;
}

/* Small spaces have fewer ways than rounds ask for: so many rounds without any end the search. */
#define MOST_EMPTY_ROUNDS 3

static sw_status search_ways(tuning *t)
{
	int empty = 0;
	SW_TRY(read_trials(t));
	if (!t->options->no_seeds)
		SW_TRY(try_builders(t));
	while (!is_over(t) && empty < MOST_EMPTY_ROUNDS) {
		bool none = false;
		SW_TRY(try_round(t, &none));
		empty = none ? empty + 1 : 0;
	}
	return save(t);
}

/* The best may be of the file, and its plan is not. */
static sw_status finish(tuning *t)
{
	const sw_trial *best = best_of(t->out);
	if (!best || !isfinite(best->example.seconds))
		return sw_fail(t->err, SW_NO, "none of the %zu ways that were tried fits in memory",
		               t->out->n_new);
	return t->out->plan ? SW_OK : plan_ways(t, &best->ways, &t->out->plan, t->err);
}

/* What `explain` says of the plan. */
static void note_alternatives(tuning *t)
{
	sw_plan *plan = t->out->plan;
	for (size_t i = 0; i < t->out->trials.list.len; i++) {
		const sw_trial *trial = &t->out->trials.list.data[i];
		bool fits = isfinite(trial->example.model_s);
		sw_alternative line = {.feasible = fits};
		if (!*trial->builder || trial->old)
			continue;
		line.step_time_s = trial->cost.step_time_s;
		line.compute_s = trial->cost.compute_s;
		line.communication_s = trial->cost.communication_s;
		line.payload_bytes = trial->cost.payload_bytes;
		line.peak_bytes = trial->cost.peak_bytes;
		snprintf(line.name, sizeof(line.name), "%s", trial->builder);
		sw_vec_push(&plan->alternatives, line);
	}
	snprintf(plan->searched, sizeof(plan->searched),
	         "%zu ways of synchronising variables, by AutoDist's optimiser",
	         t->out->trials.list.len);
	plan->planning_s = sw_now_s() - t->start_s;
}

/* Trials in other memory, or of other variants of the program, do not compare. */
static uint64_t setting_of(const sw_cluster *cluster, const sw_plan_options *plan)
{
	uint64_t hash = sw_hash_u64(cluster->hash, (uint64_t)plan->memory_bytes);
	hash = sw_hash_u64(hash, (uint64_t)plan->microbatches);
	return plan->remat ? sw_hash_bytes(plan->remat, strlen(plan->remat), hash) : hash;
}

sw_status sw_tune(const sw_program *program, const char *program_path, const sw_sidecar *sidecar,
                  const sw_cluster *cluster, const sw_tune_options *options, sw_tuned *tuned,
                  sw_error *err)
{
	tuning t = {.program = program,
	            .path = program_path,
	            .options = options,
	            .limits = options->limits ? options->limits : &sw_tune_default_limits,
	            .out = tuned,
	            .rng = {.seed = options->plan.seed},
	            .start_s = sw_now_s(),
	            .err = err};
	*tuned = (sw_tuned){0};
	SW_TRY(sw_ways_space_init(&tuned->space, program, sidecar, cluster,
	                          options->plan.n_allowed_codecs, options->plan.allowed_codecs,
	                          err));
	sw_trials_init(&tuned->trials);
	t.paths = sw_path_store_new(tuned->space.cluster);
	tuned->space.setting = setting_of(cluster, &options->plan);
	tuned->space.gathers = options->plan.microbatches <= 1;
	t.group = sw_tune_group(tuned->space.program_hash, tuned->space.setting,
	                        options->measure != NULL);
	sw_progress_start(&t.progress, "tune", options->plan.quiet);
	sw_status status = search_ways(&t);
	if (status == SW_OK)
		status = finish(&t);
	sw_progress_end(&t.progress);
	if (status == SW_OK)
		note_alternatives(&t);
	sw_ranker_free(t.ranker);
	sw_path_store_free(t.paths);
	sw_map_clear(&t.tried);
	sw_vec_clear(&t.foresight);
	if (status != SW_OK)
		sw_tuned_clear(tuned);
	return status;
}

void sw_tuned_clear(sw_tuned *tuned)
{
	sw_plan_free(tuned->plan);
	sw_trials_clear(&tuned->trials);
	sw_ways_space_clear(&tuned->space);
	*tuned = (sw_tuned){0};
}

sw_status sw_plan_make_any(const sw_program *program, const char *program_path,
                           const sw_sidecar *sidecar, const sw_cluster *cluster,
                           const sw_plan_options *options, sw_plan **plan, sw_error *err)
{
	sw_tuned tuned;
	*plan = NULL;
	if (!options->autodist && options->n_allowed_codecs > 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "--allow codec=... lets --method autodist choose codecs: add that");
	if (!options->autodist)
		return sw_plan_make(program, program_path, sidecar, cluster, options, plan, err);
	if (options->strategy.kind != SW_PLAN_AUTO || options->sync || options->codec.kind)
		return sw_fail(
			err, SW_ERR_INPUT,
			"method autodist chooses how variables are synchronised: leave "
			"strategy, sync and codec out (--allow codec=... lets it choose codecs)");
	if (options->allows_stale)
		return sw_fail(
			err, SW_ERR_INPUT,
			"method autodist tries synchronous ways: leave stale= out of --allow");
	sw_tune_options tune = {.plan = *options,
	                        .trials = options->trials ? options->trials : SW_TUNE_TRIALS,
	                        .ranker = SW_TUNE_RANKER};
	SW_TRY(sw_tune(program, program_path, sidecar, cluster, &tune, &tuned, err));
	*plan = tuned.plan;
	tuned.plan = NULL;
	sw_tuned_clear(&tuned);
	return SW_OK;
}
