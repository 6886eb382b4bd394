/* Runs the command of this build in the lab, paced, and reads what it says of itself. */
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

static sw_status measure_stage(const char *plan, const char *overlap, int64_t steps, stage_time *time,
                               sw_error *err)
{
	sw_text command = {0}, said = {0};
	json_t *answer = NULL;
	sw_text_addf(
		&command,
		"'%s/tools/lab' run -- '%s/shardwright' run '%s' --pace --overlap %s --steps %lld --json",
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

sw_status measure_stages(const sw_plan *plan, const stage *stages, int64_t steps, stage_time *times,
                         sw_error *err)
{
	char path[] = "/tmp/overlap-XXXXXX";
	int file = mkstemp(path);
	if (file < 0)
		return sw_fail(err, SW_ERR_IO, "no temporary file for the plan in /tmp");
	close(file);
	sw_status status = sw_plan_write(plan, path, err);
	for (int k = 0; k < STAGES && status == SW_OK; k++)
		status = measure_stage(path, stages[k].overlap, steps, &times[k], err);
	unlink(path);
	return status;
}
