#include "partition/execute.h"

#include <stdlib.h>
#include <string.h>

#include "run/ranks.h"

void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s (%s)", err->file, err->line, err->column, err->message,
		         sw_status_name(status));
}

/* "2,[1, 4]" has two levels: commas inside brackets belong to the count. */
void make_cluster(const char *counts, sw_cluster *cluster)
{
	sw_text text = {0};
	sw_error err = {0};
	int level = 0;
	sw_text_add(&text, "version: 1\nname: test\nlevels:\n");
	while (*counts) {
		size_t n = *counts == '[' ? strcspn(counts, "]") + 1 : strcspn(counts, ",");
		sw_text_addf(
			&text,
			"  - {name: level%d, count: %.*s, latency: %d us, bandwidth: %d GB/s}\n",
			level, (int)n, counts, 30 - 5 * level, 2 + level);
		counts += n;
		counts += *counts == ',';
		level++;
	}
	sw_text_add(&text, "device:\n  name: core\n  memory: 2 GiB\n  memory_bandwidth: 8 GB/s\n  "
	                   "kernel_overhead: 1 us\n"
	                   "  matmul_efficiency: 0.7\n  flops: {f32: 50 GFLOP/s}\n");
	check(sw_cluster_parse(text.data, text.len, "test.yaml", cluster, &err), &err);
	sw_text_clear(&text);
}

static sw_status interpret_once(const sw_program *program, const sw_interpret_options *options,
                                sw_tensor *inputs, uint32_t n_inputs, sw_tensor *outputs,
                                sw_error *err)
{
	sw_interpreter *interpreter = NULL;
	sw_status status = sw_interpreter_new(program, options, &interpreter, err);
	if (status == SW_OK)
		status = sw_interpret(interpreter, inputs, n_inputs, outputs,
		                      (uint32_t)sw_entry(program)->results.len, err);
	sw_interpreter_free(interpreter);
	return status;
}

void execute_serial(const sw_program *program, sw_tensor *inputs, uint32_t n_inputs,
                    sw_tensor *outputs)
{
	sw_error err = {0};
	sw_interpret_options options = {.blas_threads = 1};
	check(interpret_once(program, &options, inputs, n_inputs, outputs, &err), &err);
}

typedef struct crew {
	const sw_program *program;
	sw_tensor *inputs;
	uint32_t n_inputs;
	execution *e;
	int64_t *payload;
} crew;

static sw_status run_rank(void *context, sw_transport *transport, sw_error *err)
{
	crew *c = context;
	sw_interpret_options options = {.partition_id = (uint32_t)transport->rank,
	                                .blas_threads = 1,
	                                .collective = sw_transport_collective,
	                                .collective_context = transport};
	sw_program *own = c->e->programs[transport->rank] =
		sw_program_of_device(c->program, transport->rank, NULL);
	sw_status status = interpret_once(
		own, &options, c->inputs + (size_t)transport->rank * c->n_inputs, c->n_inputs,
		c->e->outputs + (size_t)transport->rank * c->e->n_outputs, err);
	c->payload[transport->rank] = transport->traffic.payload_bytes;
	return status;
}

void execute(const sw_program *local, int64_t n_devices, sw_tensor *inputs, uint32_t n_inputs,
             execution *e)
{
	sw_error err = {0};
	*e = (execution){.n_devices = n_devices,
	                 .n_outputs = (uint32_t)sw_entry(local)->results.len};
	e->outputs = sw_alloc(sizeof(sw_tensor) * ((size_t)n_devices * e->n_outputs + 1));
	e->programs = sw_alloc(sizeof(*e->programs) * (size_t)n_devices);
	crew c = {local, inputs, n_inputs, e, sw_alloc(sizeof(int64_t) * (size_t)n_devices)};
	check(sw_ranks_run((int32_t)n_devices, run_rank, &c, &err), &err);
	for (int64_t d = 0; d < n_devices; d++)
		e->payload_bytes = SW_MAX(e->payload_bytes, c.payload[d]);
	free(c.payload);
}

void execution_clear(execution *e)
{
	for (int64_t i = 0; i < e->n_devices * e->n_outputs; i++)
		if (e->outputs[i].buffer)
			sw_tensor_drop(&e->outputs[i]);
	free(e->outputs);
	for (int64_t d = 0; d < e->n_devices; d++)
		sw_program_free(e->programs[d]);
	free(e->programs);
	*e = (execution){0};
}
