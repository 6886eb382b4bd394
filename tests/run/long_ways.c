/* Every builder of ways plans every recorded program, and the plan verifies: partitioned equals
 * serial, and the bytes are as predicted. What owners or servers can't serve is refused for one of
 * a few reasons. */
#include "fixtures.h"

#include <glob.h>
#include <string.h>
#include "search/search.h"

/* Of the refusals of programs whose variables were to be served. */
static const char *const reasons[] = {
	"is made of the batch and no part of a parameter's own state", /* running statistics */
	"of all rows of the batch", /* tokens of a whole batch compete for experts */
	"has rows of its own of the batch, which must divide by them",
};
/* Of programs of which no gradient is made at once. */
static const char *const file_reasons[] = {"way: gather: its gradient is neither a product"};

static bool has_reason(const char *const *list, size_t n, const char *message)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(message, list[i]))
			return true;
	return false;
}

typedef struct case_counts {
	int verified, refused;
} case_counts;

/* A strategy, or the entries of a file of ways. */
static sw_status parse(const char *text, sw_plan_options *options, sw_sync *sync, sw_error *err)
{
	const sw_yaml *root;
	if (*text != '-')
		return sw_plan_strategy_parse(text, &options->strategy, err);
	options->sync = sync;
	SW_TRY(sw_plan_strategy_parse("sync", &options->strategy, err));
	SW_TRY(sw_yaml_parse(text, strlen(text), &sync->arena, &root, err));
	return sw_sync_of_yaml(root, sync, err);
}

static void try_one(const char *path, const sw_program *program, const sw_sidecar *sidecar,
                    const sw_cluster *cluster, const char *strategy, case_counts *counts)
{
	sw_error err = {0};
	sw_plan *plan;
	sw_verify_result result;
	sw_plan_options options = {.quiet = true};
	sw_sync sync = {.file = "ways.yaml"};
	bool served = strstr(strategy, "served") || strstr(strategy, "stale");
	sw_arena_init(&sync.arena);
	assert_int_equal(parse(strategy, &options, &sync, &err), SW_OK);
	sw_status made = sw_plan_make(program, path, sidecar, cluster, &options, &plan, &err);
	sw_sync_clear(&sync);
	if (made) {
		if (!(served && has_reason(reasons, SW_COUNT(reasons), err.message)) &&
		    !(*strategy == '-' && has_reason(file_reasons, SW_COUNT(file_reasons), err.message)))
			fail_msg("%s on %s, %s: %s", path, cluster->name, strategy, err.message);
		counts->refused++;
		return;
	}
	sw_sidecar own = {0};
	if ((plan->undivided && sw_plan_sidecar(plan, sidecar, &own, &err)) ||
	    sw_run_verify(plan, plan->undivided ? &own : sidecar, 1, &result, &err))
		fail_msg("%s on %s, %s: %s", path, cluster->name, strategy, err.message);
	if (!result.ok && !is_at_kink(plan, plan->undivided ? &own : sidecar, 1))
		fail_msg("%s on %s, %s: differs by %g", path, cluster->name, strategy,
		         result.max_rel_error);
	assert_int_equal(result.payload_bytes, result.predicted_payload_bytes);
	counts->verified++;
	sw_verify_result_clear(&result);
	if (plan->undivided)
		sw_sidecar_clear(&own);
	sw_plan_free(plan);
}

/* most_refused: cases that are refused for a reason. */
static void try_all_on(const char *cluster_file, int most_refused)
{
	static const char *const strategies[] = {"ps",
	                                         "ps:proxy",
	                                         "ps:balanced",
	                                         "ps:partitioned",
	                                         "ps:uneven",
	                                         "allreduce:chunk=8",
	                                         "allreduce:partitioned",
	                                         "parallax",
	                                         "horovod",
	                                         "zero1",
	                                         "zero2",
	                                         "zero3",
	                                         "random",
	                                         "ways",
	                                         "ps:served",
	                                         "ps:balanced,served",
	                                         "ps:balanced,stale=any",
	                                         "ps:uneven,served",
	                                         "ps:partitioned,stale=2",
	                                         "- {variable: '*', way: gather}",
	                                         "- {variable: '*', way: any}",
	                                         "- {variable: '*', way: all-reduce, algorithm: ring}",
	                                         "- {variable: '*', way: ps, order: 1, algorithm: hierarchical}",
	                                         "- {variable: '*', way: ps, proxy: true, algorithm: chain}"};
	sw_cluster cluster;
	sw_error err = {0};
	glob_t found;
	case_counts counts = {0};
	if (sw_cluster_read(cluster_file, &cluster, &err))
		fail_msg("%s: %s", cluster_file, err.message);
	assert_int_equal(
		glob(SW_SOURCE_DIR "/tests/programs/*.recorded.safetensors.gz", 0, NULL, &found),
		0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[256];
		sw_program *program;
		sw_sidecar sidecar;
		read_recorded(found.gl_pathv[i], path, &program, &sidecar);
		for (size_t k = 0; k < SW_COUNT(strategies); k++)
			try_one(path, program, &sidecar, &cluster, strategies[k], &counts);
		sw_sidecar_clear(&sidecar);
		sw_program_free(program);
	}
	print_message("%s: %d verified, %d refused\n", cluster.name, counts.verified,
	              counts.refused);
	assert_true(counts.verified > 0 && counts.refused <= most_refused);
	globfree(&found);
	sw_cluster_clear(&cluster);
}

static void on_two_ranks(void **state)
{
	(void)state;
	try_all_on(SW_SOURCE_DIR "/clusters/local-1x2.yaml", 4);
}

static void on_two_nodes_of_two(void **state)
{
	(void)state;
	try_all_on(SW_SOURCE_DIR "/clusters/local-2x2.yaml", 23);
}

static void on_unequal_nodes(void **state)
{
	(void)state;
	/* 6 devices divide few batches */
	try_all_on(SW_SOURCE_DIR "/clusters/lab-unequal.yaml", 145);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_two_ranks),
		cmocka_unit_test(on_two_nodes_of_two),
		cmocka_unit_test(on_unequal_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
