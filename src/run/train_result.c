/*
 * The result of a training run: figures of all ranks brought together, and medians over the steps.
 */
#include "run/trainer.h"

#include <stddef.h>
#include <stdlib.h>

typedef struct figures {
	int64_t payload_bytes, wire_bytes, peak_bytes, loaded_bytes; /* maxima over all ranks */
	int64_t oldest;                                              /* likewise */
	double slowest_step_s;                                       /* likewise */
	double ages, n_ages;                                         /* sums over all ranks */
	double steps_per_s;                                          /* mean over all workers */
	double compute_s, exposed_comm_s;                            /* likewise */
	sw_record_cores cores;                                       /* likewise */
} figures;

static sw_thread_times plus_share(sw_thread_times sum, sw_thread_times of_one, int32_t n)
{
	return (sw_thread_times){sum.cpu_s + of_one.cpu_s / n,
	                         sum.delayed_s + of_one.delayed_s / n};
}

/* Servers, the ranks from number n on, have no steps of which there could be means. */
static void combine(const figures *all, int32_t size, int32_t n, figures *f)
{
	*f = (figures){0};
	for (int32_t r = 0; r < size; r++) {
		f->payload_bytes = SW_MAX(f->payload_bytes, all[r].payload_bytes);
		f->wire_bytes = SW_MAX(f->wire_bytes, all[r].wire_bytes);
		f->peak_bytes = SW_MAX(f->peak_bytes, all[r].peak_bytes);
		f->loaded_bytes = SW_MAX(f->loaded_bytes, all[r].loaded_bytes);
		f->oldest = SW_MAX(f->oldest, all[r].oldest);
		f->slowest_step_s = SW_MAX(f->slowest_step_s, all[r].slowest_step_s);
		f->steps_per_s += all[r].steps_per_s / n;
		f->ages += all[r].ages;
		f->n_ages += all[r].n_ages;
		f->compute_s += all[r].compute_s / n;
		f->exposed_comm_s += all[r].exposed_comm_s / n;
		f->cores.own = plus_share(f->cores.own, all[r].cores.own, n);
		f->cores.transport = plus_share(f->cores.transport, all[r].cores.transport, n);
	}
}

static sw_status gather_figures(const trainer *t, figures *f, sw_error *err)
{
	int32_t size = t->transport->size;
	figures *all = sw_alloc((size_t)size * sizeof(*all));
	sw_status status = t->transport->ops->all_gather(t->transport, t->transport->everyone, size,
	                                                 f, all, sizeof(*f), err);
	if (status == SW_OK)
		combine(all, size, t->n_workers, f);
	free(all);
	return status;
}

double trainer_median(double *seconds, int64_t n)
{
	int64_t skipped = n > 2;
	return n > 0 ? sw_median(seconds + skipped, (size_t)(n - skipped)) : 0;
}

static double median_compute(const trainer *t, int64_t n)
{
	double *rest = sw_alloc((size_t)(n + 1) * sizeof(*rest));
	for (int64_t i = 0; i < n; i++)
		rest[i] = t->seconds.data[i] - t->waits.data[i];
	double median = trainer_median(rest, n);
	free(rest);
	return median;
}

/* Return the median over the steps of the number at `offset` in their processor times. */
static double median_of_cores(const trainer *t, int64_t n, size_t offset)
{
	double *numbers = sw_alloc((size_t)(n + 1) * sizeof(*numbers));
	for (int64_t i = 0; i < n; i++)
		numbers[i] = *(const double *)((const char *)&t->cores.data[i] + offset);
	double median = trainer_median(numbers, n);
	free(numbers);
	return median;
}

static sw_record_cores median_cores(const trainer *t, int64_t n)
{
	return (sw_record_cores){
		{median_of_cores(t, n, offsetof(sw_record_cores, own.cpu_s)),
	         median_of_cores(t, n, offsetof(sw_record_cores, own.delayed_s))},
		{median_of_cores(t, n, offsetof(sw_record_cores, transport.cpu_s)),
	         median_of_cores(t, n, offsetof(sw_record_cores, transport.delayed_s))}};
}

static int64_t tokens_per_step(const trainer *t)
{
	if (t->sidecar->tokens_input < 0)
		return 0;
	sw_shape shape = sw_parts_true_shape(&t->parts, (uint32_t)t->sidecar->tokens_input);
	return shape.rank == 2 ? shape.dims[0] * (shape.dims[1] - 1)
	                       : 0; /* the first token of a row is not predicted */
}

sw_status trainer_report(trainer *t, int64_t done, sw_run_result *result, sw_error *err)
{
	int64_t n = (int64_t)t->seconds.len; /* steps of this rank: of a server none */
	figures f = {
		.payload_bytes = t->transport->traffic.payload_bytes + t->counts.payload_bytes,
		.wire_bytes = t->transport->traffic.wire_bytes + t->counts.wire_bytes,
		.peak_bytes = t->counts.peak_bytes,
		.oldest = t->counts.oldest,
		.ages = t->counts.sum,
		.n_ages = t->counts.n,
		.slowest_step_s = trainer_median(t->seconds.data, n),
		.loaded_bytes = t->loaded_bytes,
		.compute_s = median_compute(t, n),
		.exposed_comm_s = trainer_median(t->waits.data, n),
		.cores = median_cores(t, n),
	};
	if (t->interpreter)
		f.peak_bytes += (int64_t)sw_interpreter_peak_bytes(t->interpreter);
	double own_step_s = f.slowest_step_s,
	       own_inputs_s = trainer_median(t->inputs_seconds.data, n),
	       from_step_to_step_s = own_step_s + own_inputs_s;
	f.steps_per_s = own_step_s > 0 ? 1 / from_step_to_step_s : 0;
	sw_status status = gather_figures(t, &f, err);
	if (status == SW_OK && t->options->trace)
		status = sw_record_gather(&t->record, t->options->trace, err);
	if (status)
		return status;
	*result = (sw_run_result){
		.steps = done,
		.losses = t->losses.data,
		.nan_from = t->nan_from,
		.nan_seen = t->nan_seen,
		.step_time_s = own_step_s,
		.inputs_s = own_inputs_s,
		.slowest_step_s = f.slowest_step_s,
		.served = t->served != NULL,
		.oldest = f.oldest,
		.mean_age = f.n_ages > 0 ? f.ages / f.n_ages : 0,
		.compute_s = f.compute_s,
		.exposed_comm_s = f.exposed_comm_s,
		.cpu_s = f.cores.own.cpu_s,
		.delayed_s = f.cores.own.delayed_s,
		.transport_cpu_s = f.cores.transport.cpu_s,
		.transport_delayed_s = f.cores.transport.delayed_s,
		.payload_bytes = f.payload_bytes / SW_MAX(done, 1),
		.wire_bytes = f.wire_bytes / SW_MAX(done, 1),
		.peak_bytes = f.peak_bytes,
		.saved_step = t->saved_step,
		.loaded_bytes = f.loaded_bytes,
		.evaluated = t->eval.done.data,
		.n_evaluated = (int64_t)t->eval.done.len,
	};
	/* Ranks that do not wait for each other each add their rows at their own pace. */
	if (result->step_time_s > 0)
		result->tokens_per_s =
			(double)tokens_per_step(t) *
			(t->served ? f.steps_per_s : 1 / from_step_to_step_s);
	t->losses.data = NULL;
	t->eval.done.data = NULL;
	return SW_OK;
}

void sw_run_result_clear(sw_run_result *result)
{
	free(result->losses);
	free(result->evaluated);
	sw_program_free(result->program);
	*result = (sw_run_result){0};
}
