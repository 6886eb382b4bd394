#include "partition/trial.h"

#include <stdatomic.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/ranks.h"

void trial_clear(trial *t)
{
	sw_tensors_drop(t->inputs, t->inputs ? t->n_inputs : 0);
	sw_tensors_drop(t->true_inputs, t->true_inputs ? t->n_inputs : 0);
	free(t->inputs);
	free(t->true_inputs);
	free(t->errors);
	sw_plan_free(t->plan);
	if (t->own_cluster) {
		sw_path_cache_free(t->paths);
		sw_cluster_clear(t->own_cluster);
		free(t->own_cluster);
	}
	*t = (trial){0};
}

const char *verdict_name(verdict v)
{
	static const char *const names[] = {
		[EQUAL] = "equal",
		[UNPLANNED] = "no plan",
		[REFUSED] = "not partitioned",
		[UNSCHEDULED] = "not scheduled",
		[NOT_RUN] = "does not run",
		[ENDLESS] = "does not end",
		[DIFFERENT] = "other elements",
		[OTHER_PAYLOAD] = "another payload than predicted",
	};
	return names[v];
}

/* ---- a time limit ----------------------------------------------------------------------- */

#define TIME_LIMIT_S                                                                               \
	10 /* seconds; a trial takes milliseconds, but a wrong one may loop forever                \
	    */

static atomic_bool out_of_time;

static void stop_trial(int signal_number)
{
	(void)signal_number;
	out_of_time = true;
}

static void start_timer(void)
{
	out_of_time = false;
	signal(SIGALRM, stop_trial);
	alarm(TIME_LIMIT_S);
}

static void stop_timer(void)
{
	alarm(0);
}

/* ---- one device ------------------------------------------------------------------------- */

typedef struct recorder {
	const sw_program *program;
	sw_tensor *values;
} recorder;

/* Copy the results, since the interpreter reuses its buffers. */
static void record(void *context, sw_id op, const sw_tensor *results)
{
	const recorder *r = context;
	const sw_op *o = sw_op_at(r->program, op);
	for (uint32_t k = 0; k < o->n_results; k++) {
		sw_shape shape = sw_value_shape(r->program, o->first_result + k);
		size_t bytes = (size_t)sw_shape_bytes(shape),
		       element = (size_t)sw_type_bytes(shape.type);
		sw_tensor copy;
		if (!results[k].buffer || sw_tensor_new(shape, false, &copy, NULL) != SW_OK)
			continue;
		const char *from = sw_tensor_data(results[k]);
		if (results[k].buffer->bytes >= bytes)
			memcpy(sw_tensor_data(copy), from, bytes);
		else /* the buffer holds one element, which stands for all */
			for (size_t at = 0; at < bytes; at += element)
				memcpy((char *)sw_tensor_data(copy) + at, from, element);
		r->values[o->first_result + k] = copy;
	}
}

static sw_status run_alone(const trial *t, const sw_program *program, const sw_tensor *given,
                           sw_tensor *outputs, sw_tensor *values, sw_error *err)
{
	recorder r = {program, values};
	sw_interpret_options options = {
		.blas_threads = 1,
		.stop = &out_of_time,
		.observe = values ? record : NULL,
		.observe_context = &r,
	};
	sw_tensor *inputs = sw_alloc(sizeof(*inputs) * (t->n_inputs + 1));
	for (uint32_t i = 0; i < t->n_inputs; i++)
		inputs[i] = sw_tensor_keep(given[i]);
	sw_status status = sw_run_once(program, &options, inputs, t->n_inputs, outputs,
	                               (uint32_t)sw_entry(program)->results.len, err);
	free(inputs);
	return status;
}

sw_status trial_serial(const trial *t, sw_tensor *outputs, sw_tensor *values, sw_error *err)
{
	return run_alone(t, t->plan->program, t->inputs, outputs, values, err);
}

/* Run the program with which the ranks' outputs are compared: the unpadded one if there is one. */
static sw_status run_unpadded(const trial *t, sw_tensor *outputs, sw_error *err)
{
	return t->plan->original
	               ? run_alone(t, t->plan->original, t->true_inputs, outputs, NULL, err)
	               : trial_serial(t, outputs, NULL, err);
}

/* ---- ranks ------------------------------------------------------------------------------ */

typedef struct rank_context {
	sw_parts parts;
	const trial *trial;
	sw_tensor *outputs; /* [device][output] */
	int64_t *payload;   /* per device */
	sw_program **own;   /* per device: what it runs; it has the shapes of the outputs */
} rank_context;

static sw_status cut_inputs(const rank_context *c, const sw_parts *own, int64_t device,
                            sw_tensor *parts, sw_error *err)
{
	const sw_atoms *atoms = &c->trial->plan->cluster->atoms;
	for (uint32_t i = 0; i < c->trial->n_inputs; i++) {
		sw_tensor whole = c->trial->inputs[i];
		sw_shape shape = sw_value_shape(own->local, own->local_inputs[i]);
		const sw_layout *layout = sw_parts_layout(own, i);
		sw_status status = sw_tensor_new(shape, false, &parts[i], err);
		if (status != SW_OK)
			return status;
		if (sw_layout_has_part(atoms, layout, device))
			sw_layout_cut(atoms, whole.shape, layout, device,
			              sw_type_bytes(whole.shape.type), sw_tensor_data(whole),
			              sw_tensor_data(parts[i]));
	}
	return SW_OK;
}

static sw_status run_rank(void *context, sw_transport *transport, sw_error *err)
{
	rank_context *c = context;
	uint32_t n = c->trial->n_inputs;
	sw_tensor *inputs = sw_alloc(sizeof(*inputs) * (n + 1));
	sw_program *own = c->own[transport->rank] =
		sw_program_of_device(c->parts.local, transport->rank, NULL);
	sw_placement *placement = sw_placement_new(own);
	sw_parts parts;
	sw_parts_init(&parts, c->trial->plan, own);
	sw_interpret_options options = {.placement = placement,
	                                .partition_id = (uint32_t)transport->rank,
	                                .blas_threads = 1,
	                                .stop = &out_of_time,
	                                .collective = sw_transport_collective,
	                                .collective_context = transport,
	                                .begin = sw_transport_begin,
	                                .finish = sw_transport_finish,
	                                .drain = sw_transport_drain};
	sw_status status = cut_inputs(c, &parts, transport->rank, inputs, err);
	if (status == SW_OK)
		status = sw_run_once(own, &options, inputs, n,
		                     c->outputs + (size_t)transport->rank * c->parts.n_outputs,
		                     c->parts.n_outputs, err);
	else
		sw_tensors_drop(inputs, n);
	c->payload[transport->rank] = transport->traffic.payload_bytes;
	sw_parts_clear(&parts);
	sw_placement_free(placement);
	free(inputs);
	return status;
}

/* ---- comparing -------------------------------------------------------------------------- */

static double distance(double a, double b)
{
	if (a == b || (isnan(a) && isnan(b)))
		return 0;
	return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

/* Return the largest distance of elements that are not padding. A complex number counts as two real
 * ones. */
static double largest_distance(sw_type type, const void *got, const void *expected,
                               const uint8_t *is_true, int64_t n)
{
	double max = 0;
	int64_t parts = 1;
	if (sw_type_kind_of(type) == SW_KIND_COMPLEX) {
		type = type == SW_C64 ? SW_F32 : SW_F64;
		parts = 2;
	}
	if (memcmp(got, expected, (size_t)(n * parts * sw_type_bytes(type))) == 0)
		return 0;
	for (int64_t e = 0; e < n * parts; e++)
		if (is_true[e / parts])
			max = fmax(max, distance(sw_element_get(type, got, e),
			                         sw_element_get(type, expected, e)));
	return max;
}

/* An output in its layout, and one byte per element: is it part of the unpadded output? */
typedef struct expected {
	sw_shape shape;
	char *whole, *part;
	uint8_t *whole_true, *part_true;
} expected;

static expected expected_init(const sw_plan *plan, sw_tensor serial, uint32_t output)
{
	expected w = {.shape = sw_value_shape(plan->program,
	                                      sw_entry(plan->program)->results.data[output])};
	sw_shape small = serial.shape, large = w.shape;
	small.type = large.type = SW_PRED;
	uint8_t *ones = sw_alloc((size_t)sw_shape_elements(small) + 1);
	memset(ones, 1, (size_t)sw_shape_elements(small));
	w.whole = sw_padded_array(serial.shape, sw_tensor_data(serial), w.shape, 0);
	w.whole_true = sw_padded_array(small, ones, large, 0);
	w.part = sw_alloc((size_t)sw_shape_bytes(w.shape) + 1);
	w.part_true = sw_alloc((size_t)sw_shape_elements(w.shape) + 1);
	free(ones);
	return w;
}

static void expected_clear(expected *w)
{
	free(w->whole);
	free(w->part);
	free(w->whole_true);
	free(w->part_true);
}

static void compare_output(const rank_context *c, const sw_tensor *serial, uint32_t i, outcome *o)
{
	const sw_plan *plan = c->trial->plan;
	const sw_layout *layout = sw_plan_layout(plan, plan->outputs[i]);
	expected w = expected_init(plan, serial[i], i);
	for (int64_t d = 0; d < plan->cluster->n_devices && o->verdict == EQUAL; d++) {
		sw_tensor got = c->outputs[d * c->parts.n_outputs + i];
		if (!sw_layout_has_part(&plan->cluster->atoms, layout, d))
			continue;
		sw_layout_cut(&plan->cluster->atoms, w.shape, layout, d,
		              sw_type_bytes(w.shape.type), w.whole, w.part);
		sw_layout_cut(&plan->cluster->atoms, w.shape, layout, d, 1, w.whole_true,
		              w.part_true);
		double largest_error = largest_distance(w.shape.type, sw_tensor_data(got), w.part,
		                                        w.part_true, sw_shape_elements(got.shape));
		if (largest_error > c->trial->errors[i]) {
			o->verdict = DIFFERENT;
			o->output = i;
			o->device = d;
			o->largest_error = largest_error;
		}
	}
	expected_clear(&w);
}

/* The payload depends on the data if a loop's trip count is unknown or a branch is chosen. */
static bool payload_is_known(const sw_program *local)
{
	for (sw_id id = 0; id < local->ops.len; id++) {
		const sw_op *op = sw_op_at(local, id);
		if (op->opcode == SW_OP_CONDITIONAL ||
		    (op->opcode == SW_OP_WHILE && op->attrs->loop.trip_count < 0))
			return false;
	}
	return true;
}

static void compare_payload(const rank_context *c, outcome *o)
{
	sw_program_cost cost;
	sw_cost_program(c->trial->plan->cluster, c->parts.local, &cost);
	for (int64_t d = 0; d < c->trial->plan->cluster->n_devices; d++)
		o->payload_bytes = SW_MAX(o->payload_bytes, c->payload[d]);
	o->predicted_bytes = cost.payload_bytes;
	if (o->verdict == EQUAL && o->payload_bytes != o->predicted_bytes &&
	    payload_is_known(c->parts.local))
		o->verdict = OTHER_PAYLOAD;
}

/* ---- the driver ------------------------------------------------------------------------- */

static void run_local(const trial *t, const sw_program *local, outcome *o)
{
	int64_t devices = t->plan->cluster->n_devices;
	uint32_t n = (uint32_t)sw_entry(local)->results.len;
	rank_context c = {.trial = t};
	sw_tensor *serial = sw_alloc(sizeof(sw_tensor) * (n + 1));
	sw_parts_init(&c.parts, t->plan, local);
	c.own = sw_alloc(sizeof(*c.own) * (size_t)devices);
	c.outputs = sw_alloc(sizeof(sw_tensor) * ((size_t)devices * n + 1));
	c.payload = sw_alloc(sizeof(int64_t) * (size_t)devices);
	sw_status status = run_unpadded(t, serial, &o->err);
	if (status == SW_OK)
		status = sw_ranks_run((int32_t)devices, run_rank, &c, &o->err);
	if (status != SW_OK)
		o->verdict = out_of_time ? ENDLESS : NOT_RUN;
	for (uint32_t i = 0; i < n && o->verdict == EQUAL; i++)
		compare_output(&c, serial, i, o);
	if (o->verdict == EQUAL)
		compare_payload(&c, o);
	sw_tensors_drop(serial, n);
	sw_tensors_drop(c.outputs, (uint32_t)devices * n);
	free(serial);
	free(c.outputs);
	free(c.payload);
	for (int64_t d = 0; d < devices; d++)
		sw_program_free(c.own[d]);
	free(c.own);
	sw_parts_clear(&c.parts);
}

/* Count the collectives of all computations: the cost has only the most expensive branch, which may
 * be another one after collectives of one branch were combined. */
static int count_collectives(const sw_program *program)
{
	int n = 0;
	for (sw_id id = 0; id < program->ops.len; id++)
		n += sw_opcode_class((sw_opcode)sw_op_at(program, id)->opcode) ==
		     SW_CLASS_COLLECTIVE;
	return n;
}

/* Scheduling must not change the payload; collectives take the same time, or less if some were
 * combined. */
static bool costs_the_same(const sw_cluster *cluster, const sw_program *local,
                           const sw_program *scheduled)
{
	sw_program_cost before, after;
	sw_cost_program(cluster, local, &before);
	sw_cost_program(cluster, scheduled, &after);
	double more = after.step_time_s - before.step_time_s, least = 1e-9 * before.step_time_s;
	bool combined = count_collectives(scheduled) < count_collectives(local);
	return before.payload_bytes == after.payload_bytes && more <= least &&
	       (combined || more >= -least);
}

/* Schedule collectives beside kernels, as `run` does. The scheduled program costs no more than the
 * one before it, and is no slower. */
static sw_status schedule(const trial *t, const sw_program *local, sw_program **scheduled,
                          sw_error *err)
{
	const sw_cluster *cluster = t->plan->cluster;
	sw_schedule_options how = {.overlap = SW_OVERLAP_ALL};
	sw_status status = sw_schedule(cluster, local, &how, scheduled, err);
	if (status == SW_OK)
		status = sw_program_verify(*scheduled, err);
	if (status != SW_OK)
		return status;
	double slower =
		sw_schedule_seconds(cluster, *scheduled) / sw_schedule_seconds(cluster, local);
	if (!costs_the_same(cluster, local, *scheduled) || slower > 1 + 1e-9)
		status = sw_fail(err, SW_ERR_INTERNAL,
		                 "scheduled, it costs something else: %g times as long", slower);
	return status;
}

void trial_run(const trial *t, outcome *o)
{
	sw_program *local, *scheduled = NULL;
	*o = (outcome){.verdict = EQUAL};
	if (sw_plan_verify(t->plan, &o->err) != SW_OK) {
		o->verdict = UNPLANNED;
		return;
	}
	if (sw_partition_by(t->plan, t->paths, &local, &o->err) != SW_OK) {
		o->verdict = REFUSED;
		return;
	}
	if (schedule(t, local, &scheduled, &o->err) != SW_OK) {
		o->verdict = UNSCHEDULED;
		sw_program_free(scheduled);
		sw_program_free(local);
		return;
	}
	start_timer();
	run_local(t, scheduled, o);
	stop_timer();
	sw_program_free(scheduled);
	sw_program_free(local);
}

/* ---- printing --------------------------------------------------------------------------- */

static void print_layout(const trial *t, const char *what, sw_id value, uint32_t layout,
                         sw_text *text)
{
	if (layout == 0)
		return;
	sw_text_addf(text, "  %s ", what);
	sw_layout_print(&t->plan->cluster->atoms, sw_value_shape(t->plan->program, value),
	                sw_plan_layout(t->plan, layout), text);
}

static void print_decisions(const trial *t, sw_text *text)
{
	const sw_plan *plan = t->plan;
	const sw_program *p = plan->program;
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		sw_text line = {0};
		sw_strategy none = sw_strategy_none(&plan->cluster->atoms);
		if (!sw_strategy_equal(&none, &plan->strategies[id])) {
			sw_text_add(&line, "  ");
			sw_strategy_print(&plan->cluster->atoms, plan->rules[id],
			                  &plan->strategies[id], &line);
		}
		for (uint32_t k = 0; k < op->n_results; k++) {
			sw_id v = op->first_result + k;
			print_layout(t, "made", v, plan->produced[v], &line);
			if (plan->materialised[v] != plan->produced[v])
				print_layout(t, "kept", v, plan->materialised[v], &line);
		}
		if (line.len)
			sw_text_addf(text, "  %s:%s\n", op->name, line.data);
		sw_text_clear(&line);
	}
	for (uint32_t i = 0; i < plan->n_outputs; i++) {
		sw_text line = {0};
		print_layout(t, "left", sw_entry(p)->results.data[i], plan->outputs[i], &line);
		if (line.len)
			sw_text_addf(text, "  result %u:%s\n", i, line.data);
		sw_text_clear(&line);
	}
}

void trial_print(const trial *t, const outcome *o, sw_text *text)
{
	const sw_atoms *atoms = &t->plan->cluster->atoms;
	sw_text_addf(text, "%s", verdict_name(o->verdict));
	if (o->verdict == DIFFERENT)
		sw_text_addf(text, ": output %u on device %lld is off by %g where %g is allowed",
		             o->output, (long long)o->device, o->largest_error,
		             t->errors[o->output]);
	else if (o->verdict == OTHER_PAYLOAD)
		sw_text_addf(text, ": %lld bytes, predicted %lld", (long long)o->payload_bytes,
		             (long long)o->predicted_bytes);
	else
		sw_text_addf(text, ": %s", o->err.message);
	sw_text_add(text, "\natoms:");
	for (int32_t a = 0; a < atoms->n; a++)
		sw_text_addf(text, " %d", (int)atoms->size[a]);
	sw_text_add(text, t->plan->original ? "; beside the program without padding\n" : "\n");
	sw_program_print(t->plan->program, text);
	print_decisions(t, text);
}
