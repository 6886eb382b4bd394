/* Verify every recorded program, under every fixed strategy on every small cluster, and under the
 * searched plan on two of them: partitioned equals serial, and the bytes are as predicted. */
#include "fixtures.h"

#include <glob.h>
#include <string.h>
#include "search/search.h"

typedef struct subject {
	char path[256];
	sw_program *program;
	sw_sidecar sidecar;
} subject;

static void close_subject(subject *s)
{
	sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
}

static void verify(const subject *s, const sw_cluster *cluster, const char *strategy)
{
	sw_error err = {0};
	sw_plan *plan;
	sw_verify_result result;
	sw_plan_options options = {.quiet = true, .no_overlap = true};
	assert_int_equal(sw_plan_strategy_parse(strategy, &options.strategy, &err), SW_OK);
	if (sw_plan_make(s->program, s->path, &s->sidecar, cluster, &options, &plan, &err) ||
	    sw_run_verify(plan, &s->sidecar, 1, &result, &err))
		fail_msg("%s on %s, %s: %s", s->path, cluster->name, strategy, err.message);
	bool fine = result.ok || is_at_kink(plan, &s->sidecar, 1);
	for (size_t i = 0; i < result.rows.len && !fine; i++)
		if (!result.rows.data[i].ok)
			fail_msg("%s on %s, %s: %s differs by %g, allowed is %g", s->path,
			         cluster->name, strategy, result.rows.data[i].name,
			         result.rows.data[i].relative, result.rows.data[i].tolerance);
	assert_true(fine);
	assert_int_equal(result.payload_bytes, result.predicted_payload_bytes);
	print_message("%-28s %-10s %-14s %-16s %10lld bytes  %.1e\n", strrchr(s->path, '/') + 1,
	              cluster->name, strategy, plan->chosen, (long long)result.payload_bytes,
	              result.max_rel_error);
	sw_verify_result_clear(&result);
	sw_plan_free(plan);
}

static void verify_on(const char *cluster_file, bool searched, int64_t largest_tp)
{
	static const char *const strategies[] = {"auto", "dp", "zero1", "zero3"};
	sw_cluster cluster;
	sw_error err = {0};
	glob_t found;
	if (sw_cluster_read(cluster_file, &cluster, &err))
		fail_msg("%s: %s", cluster_file, err.message);
	assert_int_equal(
		glob(SW_SOURCE_DIR "/tests/programs/*.recorded.safetensors.gz", 0, NULL, &found),
		0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		subject s;
		read_recorded(found.gl_pathv[i], s.path, &s.program, &s.sidecar);
		for (size_t k = searched ? 0 : 1; k < SW_COUNT(strategies); k++)
			verify(&s, &cluster, strategies[k]);
		for (int64_t tp = 2; tp <= largest_tp; tp *= 2) {
			char megatron[32];
			snprintf(megatron, sizeof(megatron), "megatron:tp=%lld", (long long)tp);
			verify(&s, &cluster, megatron);
		}
		close_subject(&s);
	}
	globfree(&found);
	sw_cluster_clear(&cluster);
}

static void all_verify_on_two_ranks(void **state)
{
	(void)state;
	verify_on(SW_SOURCE_DIR "/clusters/local-1x2.yaml", true, 2);
}

static void all_verify_on_four_ranks(void **state)
{
	(void)state;
	verify_on(SW_SOURCE_DIR "/clusters/local-1x4.yaml", false, 4);
}

static void all_verify_on_two_nodes_of_two(void **state)
{
	(void)state;
	verify_on(SW_SOURCE_DIR "/clusters/local-2x2.yaml", true, 4);
}

static void all_verify_on_two_nodes_of_four(void **state)
{
	(void)state;
	verify_on(SW_SOURCE_DIR "/clusters/local-2x4.yaml", false, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_verify_on_two_ranks),
		cmocka_unit_test(all_verify_on_four_ranks),
		cmocka_unit_test(all_verify_on_two_nodes_of_two),
		cmocka_unit_test(all_verify_on_two_nodes_of_four),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
