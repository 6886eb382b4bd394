/* Run the command of this build in the lab, paced, and read the times that it reports. */
#include "overlap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sw_status read_all(FILE *pipe, sw_text *text)
{
	char buffer[4096];
	size_t got;
	while ((got = fread(buffer, 1, sizeof(buffer), pipe)) > 0)
		sw_text_add_n(text, buffer, got);
	return text->len ? SW_OK : SW_ERR_IO;
}

static sw_status measure_stage(const char *plan, const char *overlap, int64_t steps,
                               stage_time *time, sw_error *err)
{
	sw_text command = {0}, said = {0};
	json_t *answer = NULL;
	sw_text_addf(
		&command,
		"'%s/tools/lab' run -- '%s/shardwright' run '%s' --pace --overlap %s --steps %lld "
		"--json -q",
		SW_SOURCE_DIR, SW_BINARY_DIR, plan, overlap, (long long)steps);
	FILE *pipe = popen(command.data, "r");
	sw_status status = pipe ? read_all(pipe, &said) : SW_ERR_IO;
	int code = pipe ? pclose(pipe) : -1;
	if (status != SW_OK || code != 0)
		status = sw_fail(err, SW_ERR_IO, "failed, is the lab up (tools/lab up FILE)? %s",
		                 command.data);
	if (status == SW_OK)
		status = sw_json_parse(said.data, said.len, &answer, err);
	if (status == SW_OK)
		status = sw_json_get_real(answer, "step_time_s", "run", &time->seconds, err);
	if (status == SW_OK)
		status = sw_json_get_real(answer, "exposed_comm_s", "run", &time->exposed_s, err);
	json_decref(answer);
	sw_text_clear(&said);
	sw_text_clear(&command);
	return status;
}

static sw_status measure_once(sw_plan *plan, const sw_reads *made, const stage *how,
                              const char *path, int64_t steps, stage_time *time, sw_error *err)
{
	cache_or_regather(plan, made, how);
	sw_status status = sw_plan_write(plan, path, err);
	return status == SW_OK ? measure_stage(path, how->overlap, steps, time, err) : status;
}

static stage_time median_time(const stage_time *runs)
{
	double seconds[RUNS], exposed_s[RUNS];
	for (int i = 0; i < RUNS; i++) {
		seconds[i] = runs[i].seconds;
		exposed_s[i] = runs[i].exposed_s;
	}
	return (stage_time){sw_median(seconds, RUNS), sw_median(exposed_s, RUNS)};
}

/* Measure all stages, then all again: the load of the machine, and the cores on which processes
 * run, change from minute to minute. */
static sw_status measure_runs(sw_plan *plan, const sw_reads *made, const stage *stages,
                              const char *path, int64_t steps, bool quiet,
                              stage_time runs[STAGES][RUNS], sw_error *err)
{
	sw_status status = SW_OK;
	for (int i = 0; i < RUNS; i++)
		for (int k = 0; k < STAGES && status == SW_OK; k++) {
			if (!quiet)
				fprintf(stderr, "run %d of %d: %s\n", i + 1, RUNS, stages[k].name);
			status =
				measure_once(plan, made, &stages[k], path, steps, &runs[k][i], err);
		}
	return status;
}

sw_status measure_stages(sw_plan *plan, const sw_reads *made, const stage *stages, int64_t steps,
                         bool quiet, stage_time *times, sw_error *err)
{
	stage_time runs[STAGES][RUNS];
	char path[] = "/tmp/overlap-XXXXXX";
	int file = mkstemp(path);
	if (file < 0)
		return sw_fail(err, SW_ERR_IO, "no temporary file for the plan in /tmp");
	close(file);
	sw_status status = measure_runs(plan, made, stages, path, steps, quiet, runs, err);
	for (int k = 0; k < STAGES && status == SW_OK; k++)
		times[k] = median_time(runs[k]);
	unlink(path);
	return status;
}
