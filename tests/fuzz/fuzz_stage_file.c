/* Files of stages, on any bytes: what the reader accepts, the planner holds to or refuses, for
 * `mlp` on four devices. */
#include "pipelined/pipelined.h"

#include <stdlib.h>

#include "in_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char path[] = "tests/programs/mlp.hlo.gz";
static sw_program *program;
static sw_sidecar sidecar;
static sw_cluster cluster;

static void open_once(void)
{
	sw_error err = {0};
	if (program)
		return;
	if (sw_read_program(path, &program, &err) != SW_OK ||
	    sw_sidecar_find(path, program, &sidecar, &err) != SW_OK ||
	    sw_cluster_read("clusters/local-2x2.yaml", &cluster, &err) != SW_OK)
		abort();
}

/* Slices have the devices that the file says. */
static void check_slices(const sw_pipelined *plan, const sw_stage_file *file)
{
	for (int32_t r = 0; r < plan->n_ranks && file->devices; r++)
		if (plan->first_device[r + 1] - plan->first_device[r] != file->devices[r])
			abort();
	if (file->n_stages && plan->n_stages != file->n_stages)
		abort();
}

static sw_status plan(const char *file_path, sw_error *err)
{
	sw_stage_file file;
	sw_pipelined *made = NULL;
	sw_status status = sw_stage_file_read(file_path, &file, err);
	sw_pipelined_options options = {
		.n_stages = file.devices ? file.n_slices : file.n_stages,
		.microbatches = 4,
		.schedule = SW_1F1B,
		.file = &file,
		.plan = {.no_overlap = true, .quiet = true, .threads = 1, .remat = "none"}};
	if (sw_plan_strategy_parse("dp", &options.plan.strategy, err) != SW_OK)
		abort();
	/* One slice is no pipeline: the command refuses it. */
	if (status == SW_OK && options.n_stages > 1)
		status = sw_pipelined_make(program, path, &sidecar, &cluster, &options, &made, err);
	if (made)
		check_slices(made, &file);
	sw_pipelined_free(made);
	sw_stage_file_clear(&file);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_error err = {0};
	open_once();
	fuzz_file file = fuzz_file_open(data, size);
	sw_status status = plan(file.path, &err);
	if (status != SW_OK && (!err.message[0] || err.code != status ||
	                        (status != SW_ERR_INPUT && status != SW_NO))) {
		fprintf(stderr, "%s: %s\n", sw_status_name(status), err.message);
		abort();
	}
	fuzz_file_close(&file);
	return 0;
}
