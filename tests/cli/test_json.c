/* --json prints one object and nothing else, with the keys that scripts rely on (docs/commands.md).
 */
#include "test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char plan[64];

/* Run `shardwright LINE`; return its standard output and exit code. */
static char *run(const char *line, int *code)
{
	sw_text command = {0}, out = {0};
	char block[4096];
	size_t got;
	const char *binary = getenv("SHARDWRIGHT");
	sw_text_addf(&command, "cd '%s' && '%s' %s 2>/dev/null", SW_SOURCE_DIR,
	             binary ? binary : SW_BINARY_DIR "/shardwright", line);
	FILE *pipe = popen(command.data, "r");
	assert_non_null(pipe);
	while ((got = fread(block, 1, sizeof(block), pipe)) > 0)
		sw_text_add_n(&out, block, got);
	*code = WEXITSTATUS(pclose(pipe));
	sw_text_clear(&command);
	return out.data;
}

static json_t *run_json(int wanted, const char *format, ...)
{
	char line[512];
	int code;
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	char *text = run(line, &code);
	json_error_t error;
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;
	if (!json)
		fail_msg("%s: no JSON: %s", line, text ? text : "nothing");
	assert_int_equal(code, wanted);
	free(text);
	return json;
}

static void assert_keys(json_t *json, const char *keys)
{
	char copy[256];
	snprintf(copy, sizeof(copy), "%s", keys);
	for (char *rest = copy, *key; (key = strtok_r(rest, " ", &rest));)
		if (!json_object_get(json, key))
			fail_msg("key %s is missing", key);
	json_decref(json);
}

static void every_command_has_its_keys(void **state)
{
	(void)state;
	assert_keys(
		run_json(0, "inspect tests/programs/gpt-tiny.hlo.gz --json --rules"),
		"ops flops parameters parameter_bytes state_bytes peak_bytes loops opcodes rules");
	assert_keys(run_json(0, "inspect clusters/lab-unequal.yaml --json"),
	            "name devices atoms levels device");
	assert_keys(
		run_json(0,
	                 "plan tests/programs/mlp.hlo.gz --cluster clusters/local-1x2.yaml "
	                 "--strategy dp -o %s --json",
	                 plan),
		"step_time_s lower_bound_s gap peak_bytes payload_bytes planning_s mesh strategy");
	assert_keys(run_json(0, "explain %s --json", plan), "step_time_s mesh strategy");
	assert_keys(run_json(0, "simulate %s --json", plan),
	            "step_time_s peak_bytes compute_s exposed_comm_s idle_s hidden_comm_s ranks");
	assert_keys(run_json(0, "verify %s --json", plan),
	            "ok max_rel_error outputs payload_bytes");
	assert_keys(run_json(0, "verify tests/programs/mlp.hlo.gz --ranks 4 --random 2 --json"),
	            "ok assignments failed max_rel_error payload_bytes failures");
	assert_keys(run_json(0, "run %s --ranks 2 --steps 3 --json", plan),
	            "losses step_time_s payload_bytes wire_bytes tokens_per_s peak_bytes");
	assert_keys(run_json(0, "solve tests/problems/example.json --json"),
	            "answer feasible cost lower_bound gap seconds work stopped timed_out nodes "
	            "edges tables "
	            "nodes_left edges_left usage_limit peak_usage peak_point assignment");
}

static void assert_is(const json_t *json, const char *key, const char *expected)
{
	char *text = json_dumps(json_object_get(json, key), JSON_ENCODE_ANY | JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
}

static void a_solved_problem_prints_its_figures(void **state)
{
	(void)state;
	json_t *json = run_json(0, "solve tests/problems/example.json --json");
	assert_is(json, "answer", "\"optimal\"");
	assert_is(json, "feasible", "true");
	assert_is(json, "cost", "445");
	assert_is(json, "lower_bound", "445");
	assert_is(json, "peak_usage", "50");
	assert_is(json, "peak_point", "50");
	assert_is(json, "usage_limit", "50");
	assert_is(json, "assignment", "[0,0,2,1,0]");
	json_decref(json);
}

static void an_infeasible_problem_prints_an_object(void **state)
{
	(void)state;
	json_t *json = run_json(1, "solve tests/problems/infeasible.json --json");
	assert_is(json, "answer", "\"infeasible\"");
	assert_is(json, "feasible", "false");
	assert_is(json, "cost", "null");
	assert_is(json, "lower_bound", "null");
	assert_is(json, "assignment", "null");
	json_decref(json);
	json = run_json(1, "solve tests/problems/forbidden.json --json");
	assert_is(json, "usage_limit", "null");
	json_decref(json);
}

static void the_losses_are_a_list_of_numbers(void **state)
{
	(void)state;
	json_t *json = run_json(0, "run tests/programs/mlp.hlo.gz --steps 3 --json -q"),
	       *losses = json_object_get(json, "losses");
	assert_int_equal(json_array_size(losses), 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(json_is_real(json_array_get(losses, i)));
	json_decref(json);
}

static void assert_error_object(json_t *json, const char *code, const char *file, int line)
{
	json_t *error = json_object_get(json, "error");
	assert_string_equal(json_string_value(json_object_get(error, "code")), code);
	assert_string_equal(json_string_value(json_object_get(error, "file")), file);
	assert_int_equal(json_integer_value(json_object_get(error, "line")), line);
	assert_true(strlen(json_string_value(json_object_get(error, "message"))) > 5);
	assert_true(json_is_integer(json_object_get(error, "column")));
	json_decref(json);
}

static void a_failure_prints_an_object(void **state)
{
	(void)state;
	assert_error_object(run_json(2, "inspect no/such/file --json"), "io", "no/such/file", 0);
	assert_error_object(run_json(2, "inspect --json"), "bad-input", "", 0);
	assert_error_object(run_json(2, "inspect x --frobnicate --json"), "bad-input", "", 0);
	assert_error_object(run_json(2, "frobnicate --json"), "bad-input", "", 0);
	assert_error_object(run_json(2, "plan clusters/local-2x2.yaml --cluster "
	                                "clusters/local-2x2.yaml -o x --json"),
	                    "bad-input", "clusters/local-2x2.yaml", 1);
	assert_error_object(
		run_json(1, "plan tests/programs/mlp.hlo.gz --cluster clusters/local-2x2.yaml "
	                    "-o x --memory 1kB --json"),
		"no", "", 0);
}

static int remove_plan(void **state)
{
	(void)state;
	unlink(plan);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_has_its_keys),
		cmocka_unit_test(a_solved_problem_prints_its_figures),
		cmocka_unit_test(an_infeasible_problem_prints_an_object),
		cmocka_unit_test(the_losses_are_a_list_of_numbers),
		cmocka_unit_test(a_failure_prints_an_object),
	};
	snprintf(plan, sizeof(plan), "/tmp/shardwright-test-json-%d.plan", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, remove_plan);
}
