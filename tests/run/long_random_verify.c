/*
 * Verify every recorded program under random layouts on 2, 4, 6 and 8 ranks: partitioned equals
 * serial, and the bytes are as predicted. Large programs are verified once, on 2 ranks: random
 * layouts replicate most of the work on all ranks, and these are threads of one machine. SW_SEED=N
 * tries other assignments, SW_RANDOM=K more of them, SW_PROGRAM=NAME only one program: a mismatch
 * is printed with these.
 */
#include "fixtures.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/model.h"

static const int ranks[] = {2, 4, 6, 8};

#define LARGE_FLOPS 1e9 /* FLOPs of a step */

typedef struct tally {
	int64_t assignments, failed, kinks;
	double max_rel_error; /* of one program */
	double seconds[SW_COUNT(ranks)];
} tally;

static int64_t from_environment(const char *name, int64_t usual)
{
	const char *text = getenv(name);
	return text ? strtoll(text, NULL, 10) : usual;
}

static const char *short_name(const char *path)
{
	static char name[128];
	const char *last = strrchr(path, '/') + 1;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(last, "."), last);
	return name;
}

static void say_wrong(const char *path, int n_ranks, int64_t seed, const sw_verify_result *result)
{
	printf("%s on %d ranks, SW_SEED=%lld:\n", short_name(path), n_ranks, (long long)seed);
	for (size_t i = 0; i < result->rows.len; i++) {
		const sw_verify_row *row = &result->rows.data[i];
		if (!row->ok)
			printf("  %s differs by %g%s, allowed is %g\n", row->name, row->relative,
			       row->in_lr_units ? " lr" : "", row->tolerance);
	}
	if (!result->payload_by_data && result->payload_bytes != result->predicted_payload_bytes)
		printf("  %lld bytes sent, %lld predicted\n", (long long)result->payload_bytes,
		       (long long)result->predicted_payload_bytes);
}

static void verify(fixture *f, const char *path, int n_ranks, int64_t seed, tally *t)
{
	sw_error err = {0};
	sw_verify_result result = {0};
	sw_status status = sw_plan_random(f->program, path, &f->cluster, (uint64_t)seed, false,
	                                  &f->plan, &err);
	if (status == SW_OK)
		status = sw_partition_measure(f->plan, &f->plan->predicted, &err);
	if (status == SW_OK)
		status = sw_run_verify(f->plan, &f->sidecar, (uint64_t)seed, &result, &err);
	if (status != SW_OK)
		printf("%s on %d ranks, SW_SEED=%lld: %s\n", short_name(path), n_ranks,
		       (long long)seed, err.message);
	else if (!result.ok)
		say_wrong(path, n_ranks, seed, &result);
	bool kink =
		status == SW_OK && !result.ok && is_at_kink(f->plan, &f->sidecar, (uint64_t)seed);
	if (kink)
		printf("  other data agree: a kink\n");
	t->assignments++;
	t->kinks += kink;
	t->failed += (status != SW_OK || !result.ok) && !kink;
	t->max_rel_error = fmax(t->max_rel_error, result.max_rel_error);
	sw_verify_result_clear(&result);
	sw_plan_free(f->plan);
	f->plan = NULL;
}

static void verify_program(const char *recording, int64_t first_seed, int64_t k, tally *t)
{
	fixture f = {0};
	char path[256];
	read_recorded(recording, path, &f.program, &f.sidecar);
	bool large = sw_program_flops(f.program) > LARGE_FLOPS;
	t->max_rel_error = 0;
	memset(t->seconds, 0, sizeof(t->seconds));
	for (size_t i = 0; i < (large ? 1 : SW_COUNT(ranks)); i++) {
		double begin_s = sw_now_s();
		fixture_cluster(ranks[i], &f.cluster);
		for (int64_t seed = first_seed; seed < first_seed + (large ? 1 : k); seed++)
			verify(&f, path, ranks[i], seed, t);
		sw_cluster_clear(&f.cluster);
		t->seconds[i] = sw_now_s() - begin_s;
	}
	printf("%-24s %6zu", short_name(path), f.program->ops.len);
	for (size_t i = 0; i < SW_COUNT(ranks); i++)
		printf(" %6.1f", t->seconds[i]);
	printf("    %.1e\n", t->max_rel_error);
	fflush(stdout);
	sw_sidecar_clear(&f.sidecar);
	sw_program_free(f.program);
}

static void random_assignments_verify(void **state)
{
	(void)state;
	int64_t seed = from_environment("SW_SEED", 1), k = from_environment("SW_RANDOM", 3);
	const char *only = getenv("SW_PROGRAM");
	tally t = {0};
	glob_t found;
	printf("%-24s %6s  seconds on 2, 4, 6, 8 ranks      largest relative error\n", "program",
	       "ops");
	assert_int_equal(
		glob(SW_SOURCE_DIR "/tests/programs/*.recorded.safetensors.gz", 0, NULL, &found),
		0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (!only || !strcmp(only, short_name(found.gl_pathv[i])))
			verify_program(found.gl_pathv[i], seed, k, &t);
	globfree(&found);
	printf("%lld assignments, %lld failed, %lld at a kink\n", (long long)t.assignments,
	       (long long)t.failed, (long long)t.kinks);
	assert_true(t.assignments > 0);
	assert_int_equal(t.failed, 0);
	assert_true(only || t.kinks * 50 <= t.assignments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_assignments_verify),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
