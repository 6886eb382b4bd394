/* Pins, on any bytes: what the reader accepts, the planner holds to or refuses, for `mlp` on four
 * devices. */
#include "partition/partition.h"
#include "search/search.h"

#include <stdlib.h>

#include "in_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sw_program *program;
static sw_sidecar sidecar;
static sw_cluster cluster;

static void open_once(void)
{
	sw_error err = {0};
	static const char path[] = "tests/programs/mlp.hlo.gz";
	if (program)
		return;
	if (sw_read_program(path, &program, &err) != SW_OK ||
	    sw_sidecar_find(path, program, &sidecar, &err) != SW_OK ||
	    sw_cluster_read("clusters/local-2x2.yaml", &cluster, &err) != SW_OK)
		abort();
}

static sw_status plan(const char *path, sw_error *err)
{
	sw_pins pins;
	sw_plan *plan = NULL;
	sw_status status = sw_pins_read(path, &pins, err);
	if (status != SW_OK)
		return status;
	sw_plan_options options = {.no_overlap = true,
	                           .quiet = true,
	                           .threads = 1,
	                           .pins = &pins,
	                           .microbatches = 1,
	                           .remat = "none"};
	if (sw_plan_strategy_parse("dp", &options.strategy, err) != SW_OK)
		abort();
	status = sw_plan_make(program, "mlp", &sidecar, &cluster, &options, &plan, err);
	if (status == SW_OK && sw_plan_verify(plan, err) != SW_OK)
		abort();
	sw_plan_free(plan);
	sw_pins_clear(&pins);
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
