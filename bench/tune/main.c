/*
 * tune: what the simulator of AutoDist's optimiser is worth (its figures 4 and 9). On each program
 * and cluster ways are tuned with each simulator, from several seeds, and without any:
 *
 *   build/bench/tune [--trials N] [--seeds K] [--only WORD] [--accuracy]
 *
 * Printed are how many trials it takes to come within 1 % of the best step that any of these runs
 * found, the best step after so many trials over that, the hit rate (samples that are quicker than
 * the best builder), and with --accuracy how well simulators rank trials that they have not seen.
 */
#include <math.h>
#include <string.h>

#include "tune/tune.h"

typedef struct tune_case {
	const char *program, *cluster, *devices; /* devices NULL: all */
} tune_case;

static const tune_case CASES[] = {
	{"tests/programs/gpt-tiny", "local-2x2", NULL},
	{"tests/programs/gpt-124m", "a100-8x8", "8x1"},
	{"bench/papers/programs/vgg16-batch-352", "autodist-a", "11"},
	{"bench/papers/programs/vgg16-batch-512", "autodist-b4", "16"},
	{"bench/papers/programs/ncf-122m-batch-720896", "autodist-a", "11"},
	{"bench/papers/programs/ncf-122m-batch-1048576", "autodist-b4", "16"},
	{"bench/papers/programs/bert-large-batch-88", "autodist-a", "11"},
	{"bench/papers/programs/bert-large-batch-128", "autodist-b4", "16"},
};

static const sw_ranker_kind RANKERS[] = {SW_RANKER_NONE, SW_RANKER_PREDEFINED, SW_RANKER_LINEAR,
                                         SW_RANKER_TREES};
static const size_t CHECKPOINTS[] = {20, 50, 100, 200};
#define MOST_SEEDS 16

/* What a run has found after each trial. */
typedef struct tune_curve {
	size_t n;
	double *best_s; /* [n] */
	double hit_rate;
} tune_curve;

typedef struct tune_job {
	int64_t trials, seeds;
	const char *only;
	bool accuracy;
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	char path[512];
} tune_job;

static void draw_curve(const sw_tuned *tuned, tune_curve *curve)
{
	double best_s = INFINITY, builder_s = INFINITY;
	size_t hits = 0, samples = 0;
	curve->n = tuned->trials.list.len;
	curve->best_s = sw_alloc(sizeof(double) * (curve->n + 1));
	for (size_t i = 0; i < curve->n; i++) {
		const sw_trial *trial = &tuned->trials.list.data[i];
		curve->best_s[i] = best_s = fmin(best_s, trial->example.seconds);
		if (*trial->builder)
			builder_s = fmin(builder_s, trial->example.seconds);
		samples += !*trial->builder;
		hits += !*trial->builder && trial->example.seconds < builder_s;
	}
	curve->hit_rate = samples > 0 ? (double)hits / (double)samples : NAN;
}

static size_t trials_until(const tune_curve *curve, double seconds)
{
	size_t i = 0;
	while (i < curve->n && curve->best_s[i] > seconds)
		i++;
	return i + 1;
}

static double after(const tune_curve *curve, size_t trials)
{
	return curve->n > 0 ? curve->best_s[SW_MIN(trials, curve->n) - 1] : NAN;
}

static sw_status read_case(tune_job *job, const tune_case *of, sw_error *err)
{
	char cluster[512];
	snprintf(job->path, sizeof(job->path), "%s/%s.hlo.gz", SW_SOURCE_DIR, of->program);
	snprintf(cluster, sizeof(cluster), "%s/clusters/%s.yaml", SW_SOURCE_DIR, of->cluster);
	SW_TRY(sw_cluster_read(cluster, &job->cluster, err));
	if (of->devices)
		SW_TRY(sw_cluster_take(&job->cluster, of->devices, err));
	SW_TRY(sw_read_program(job->path, &job->program, err));
	return sw_sidecar_find(job->path, job->program, &job->sidecar, err);
}

static void print_accuracy(const sw_tuned *tuned)
{
	uint64_t group = tuned->trials.list.data[0].example.group;
	printf("  %-11s %-7s %-6s %s\n", "simulator", "trials", "pairs", "slowest ... fastest");
	for (int k = SW_RANKER_PREDEFINED; k <= SW_RANKER_TREES; k++) {
		sw_tune_accuracy a = sw_tune_accuracy_of(&tuned->trials, (sw_ranker_kind)k, group,
		                                         &sw_tune_default_limits);
		for (int p = k == SW_RANKER_PREDEFINED ? SW_TUNE_PHASES - 1 : 0; p < SW_TUNE_PHASES;
		     p++) {
			printf("  %-11s %-7zu %3.0f %%  ", sw_ranker_word((sw_ranker_kind)k),
			       tuned->trials.list.len * (size_t)(p + 1) / SW_TUNE_PHASES,
			       100 * a.all[p].right);
			for (int b = 0; b < SW_TUNE_BUCKETS; b++)
				if (a.of[p][b].pairs > 0)
					printf("%3.0f %% ", 100 * a.of[p][b].right);
				else
					printf("    - ");
			printf("\n");
		}
	}
}

/* The median over seeds; sorts them. */
static void print_row(tune_job *job, sw_ranker_kind ranker, const tune_curve *curves, double best_s)
{
	double values[MOST_SEEDS];
	size_t n = (size_t)job->seeds;
	for (size_t s = 0; s < n; s++)
		values[s] = (double)trials_until(&curves[s], best_s * 1.01);
	double until = sw_median(values, n);
	printf("  %-11s ", sw_ranker_word(ranker));
	if (until > (double)job->trials)
		printf(" > %-5lld", (long long)job->trials);
	else
		printf("%7.0f ", until);
	for (size_t c = 0; c < SW_COUNT(CHECKPOINTS); c++) {
		if ((int64_t)CHECKPOINTS[c] > job->trials)
			break;
		for (size_t s = 0; s < n; s++)
			values[s] = after(&curves[s], CHECKPOINTS[c]) / best_s;
		printf("%8.3f ", sw_median(values, n));
	}
	for (size_t s = 0; s < n; s++)
		values[s] = curves[s].hit_rate;
	printf("%6.0f %%\n", 100 * sw_median(values, n));
}

static sw_status run_one(tune_job *job, sw_ranker_kind ranker, int64_t seed, tune_curve *curve,
                         double *builder_s, bool accuracy, sw_error *err)
{
	sw_tuned tuned;
	const sw_tune_options options = {.plan = {.quiet = true, .seed = (uint64_t)seed},
	                                 .trials = job->trials,
	                                 .ranker = ranker};
	SW_TRY(sw_tune(job->program, job->path, &job->sidecar, &job->cluster, &options, &tuned,
	               err));
	draw_curve(&tuned, curve);
	for (size_t i = 0; i < tuned.trials.list.len; i++)
		if (*tuned.trials.list.data[i].builder)
			*builder_s = fmin(*builder_s, tuned.trials.list.data[i].example.seconds);
	if (accuracy)
		print_accuracy(&tuned);
	sw_tuned_clear(&tuned);
	return SW_OK;
}

static sw_status run_case(tune_job *job, const tune_case *of, sw_error *err)
{
	tune_curve curves[SW_COUNT(RANKERS)][MOST_SEEDS] = {0};
	double best_s = INFINITY, builder_s = INFINITY;
	SW_TRY(read_case(job, of, err));
	printf("%s on %s %s\n", of->program, of->cluster, of->devices ? of->devices : "");
	for (size_t r = 0; r < SW_COUNT(RANKERS); r++)
		for (int64_t s = 0; s < job->seeds; s++) {
			bool accuracy = job->accuracy && RANKERS[r] == SW_TUNE_RANKER && s == 0;
			SW_TRY(run_one(job, RANKERS[r], s, &curves[r][s], &builder_s, accuracy,
			               err));
			best_s = fmin(best_s, after(&curves[r][s], curves[r][s].n));
		}
	printf("  %-11s %7s", "simulator", "1 %");
	for (size_t c = 0; c < SW_COUNT(CHECKPOINTS); c++)
		if ((int64_t)CHECKPOINTS[c] <= job->trials)
			printf(" %8zu", CHECKPOINTS[c]);
	printf("   hits\n");
	for (size_t r = 0; r < SW_COUNT(RANKERS); r++) {
		print_row(job, RANKERS[r], curves[r], best_s);
		for (int64_t s = 0; s < job->seeds; s++)
			free(curves[r][s].best_s);
	}
	printf("  the best builder takes %.3f times the best: %.6f s of %.6f s\n",
	       builder_s / best_s, builder_s, best_s);
	fflush(stdout);
	sw_sidecar_clear(&job->sidecar);
	sw_program_free(job->program);
	sw_cluster_clear(&job->cluster);
	return SW_OK;
}

static bool read_options(int argc, char **argv, tune_job *job)
{
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;
		if (strcmp(argv[i], "--accuracy") == 0)
			job->accuracy = true;
		else if (more && strcmp(argv[i], "--trials") == 0 &&
		         sw_parse_count(argv[i + 1], &job->trials) && job->trials > 0)
			i++;
		else if (more && strcmp(argv[i], "--seeds") == 0 &&
		         sw_parse_count(argv[i + 1], &job->seeds) && job->seeds > 0 &&
		         job->seeds <= MOST_SEEDS)
			i++;
		else if (more && strcmp(argv[i], "--only") == 0)
			job->only = argv[++i];
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	tune_job job = {.trials = 100, .seeds = 3};
	sw_error err;
	if (!read_options(argc, argv, &job)) {
		fprintf(stderr,
		        "usage: tune [--trials N] [--seeds K] [--only WORD] [--accuracy]; "
		        "K is at most %d\n",
		        MOST_SEEDS);
		return 2;
	}
	sw_memory_keep();
	for (size_t i = 0; i < SW_COUNT(CASES); i++) {
		if (job.only && !strstr(CASES[i].program, job.only))
			continue;
		if (run_case(&job, &CASES[i], &err) != SW_OK) {
			fprintf(stderr, "tune: %s\n", err.message);
			return 1;
		}
	}
	return 0;
}
