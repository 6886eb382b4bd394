/*
 * One rank of a training run: its state, and one step.
 *
 * State (a parameter, an optimizer moment, a counter: an input that an output aliases) goes from an
 * output to its input without a copy, as both are in one place of the interpreter's arena. Other
 * inputs are written there once, data inputs in each step. A paced run does the same without
 * numbers: it fills, computes and reads nothing.
 */
#include "run/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- requirements of training ----------------------------------------------------------- */

static bool is_everywhere(const sw_layout *layout)
{
	return !sw_layout_partial_atoms(layout) && !sw_layout_split_atoms(layout, -1);
}

static sw_status check_loss(const trainer *t, sw_error *err)
{
	const sw_plan *plan = t->parts.plan;
	if (t->loss < 0 || is_everywhere(sw_plan_layout(plan, plan->outputs[t->loss])))
		return SW_OK;
	return sw_fail(err, SW_ERR_INTERNAL,
	               "the plan does not replicate the loss on every device");
}

sw_status trainer_check_paced(const sw_run_options *options, sw_error *err)
{
	if (options->paced && (options->save || options->start))
		return sw_fail(err, SW_ERR_INPUT,
		               "a paced run computes nothing, so that there is no state: leave "
		               "--save, --load and --resume, or --pace, out");
	if (options->paced && options->eval)
		return sw_fail(err, SW_ERR_INPUT,
		               "a paced run computes nothing, so that there is nothing to "
		               "evaluate: leave --eval or --pace out");
	return SW_OK;
}

static sw_status check_kept(const trainer *t, sw_error *err)
{
	const sw_run_options *options = t->options;
	SW_TRY(trainer_check_paced(options, err));
	return options->save ? sw_saving_check(&t->saving, err) : SW_OK;
}

static sw_status check_tokens(const trainer *t, sw_error *err)
{
	if (t->data && t->options->paced)
		return sw_fail(err, SW_ERR_INPUT,
		               "a paced run computes nothing and reads no data: run it without");
	return sw_token_batch_check(t->data, &t->parts, t->sidecar, err);
}

/* ---- one step --------------------------------------------------------------------------- */

static uint64_t data_seed(const trainer *t, int64_t step)
{
	return sw_hash_u64(t->options->seed, (uint64_t)step + 1);
}

bool trainer_works(const trainer *t)
{
	return t->transport->rank < t->n_workers;
}

sw_status trainer_cut(const trainer *t, int64_t device, uint32_t input, const void *whole,
                      const sw_tensor *part, sw_error *err)
{
	const sw_atoms *atoms = &t->parts.plan->cluster->atoms;
	sw_shape padded = sw_parts_whole_shape(&t->parts, input),
		 shape = sw_parts_true_shape(&t->parts, input);
	int64_t bytes = sw_type_bytes(padded.type);
	void *array = sw_shape_equal(padded, shape) ? NULL : sw_padded_array(shape, whole, padded, 0);
	if (!array && !sw_shape_equal(padded, shape))
		return sw_fail(err, SW_ERR_IO, "no memory to pad an input");
	sw_layout_cut(atoms, padded, sw_parts_layout(&t->parts, input), device, bytes,
	              array ? array : whole, sw_tensor_data(*part));
	free(array);
	return SW_OK;
}

sw_status trainer_fill_input(trainer *t, int64_t device, uint32_t input, int64_t step,
                             sw_tensor *tensor, sw_error *err)
{
	const sw_input_info *info = &t->sidecar->inputs[input];
	sw_held_value value = sw_held_part(&t->parts, input);
	if (t->options->given && t->options->given[input])
		return trainer_cut(t, device, input, t->options->given[input], tensor, err);
	if (t->options->start && t->options->start->inputs[input].tensor)
		return sw_checkpoint_cut(t->options->start, &value, device, tensor,
		                         &t->loaded_bytes, err);
	if (sw_arrays_has(t->options->arrays, input))
		return sw_arrays_fill(t->options->arrays, &value, device, t->options->seed, step,
		                      tensor, err);
	uint64_t seed = info->role == SW_ROLE_DATA ? data_seed(t, step) : t->options->seed;
	if (info->role != SW_ROLE_DATA || !sw_token_batch_has(&t->tokens, input))
		return sw_part_fill(&t->parts, input, device, &info->init, seed, 0, tensor, err);
	sw_token_batch_fill(&t->tokens, device, t->options->seed, step, tensor);
	return SW_OK;
}

/* What the owner of a variable keeps is not the worker's (served). */
static bool is_filled(const trainer *t, uint32_t input)
{
	return !t->options->paced &&
	       !(t->served && sw_layout_owned_atoms(sw_parts_layout(&t->parts, input)));
}

static sw_status make_input(trainer *t, uint32_t input, int64_t step, sw_tensor *tensor,
                            sw_error *err)
{
	sw_status status = sw_interpreter_input(t->interpreter, input, tensor, err);
	return status || !is_filled(t, input)
	               ? status
	               : trainer_fill_input(t, t->transport->rank, input, step, tensor, err);
}

sw_status trainer_make_inputs(trainer *t, int64_t step, sw_error *err)
{
	double begin = sw_now_s();
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < t->parts.n_inputs && status == SW_OK; i++) {
		if (t->carried[i].buffer)
			t->inputs[i] = sw_tensor_keep(t->carried[i]);
		else
			status = make_input(t, i, step, &t->inputs[i], err);
	}
	t->inputs_s = sw_now_s() - begin;
	return status;
}

/* Drop our references to state: the interpreter updates a tensor in place only if it holds the only
 * reference. */
void trainer_release_state(trainer *t)
{
	const sw_program *local = t->parts.local;
	for (size_t a = 0; a < local->aliases.len; a++)
		if (t->carried[local->aliases.data[a].input].buffer)
			sw_tensor_drop(&t->carried[local->aliases.data[a].input]);
}

void trainer_carry_state(trainer *t)
{
	const sw_program *local = t->parts.local;
	for (size_t a = 0; a < local->aliases.len; a++) {
		sw_alias alias = local->aliases.data[a];
		t->carried[alias.input] = sw_tensor_keep(t->outputs[alias.output]);
	}
	if (!t->options->keep_results)
		sw_tensors_drop(t->outputs, t->parts.n_outputs);
}

void trainer_straggle(const trainer *t)
{
	if (t->options->slow_s > 0 && t->options->slow_rank == t->transport->rank)
		sw_sleep_until(sw_now_s() + t->options->slow_s);
}

void trainer_note_step(trainer *t, double seconds, double waited_s)
{
	sw_record_cores used = sw_record_used(&t->record);
	sw_vec_push(&t->cores, used);
	sw_vec_push(&t->seconds, seconds - t->inputs_s);
	sw_vec_push(&t->inputs_seconds, t->inputs_s);
	sw_vec_push(&t->waits, waited_s);
}

void trainer_note_loss(trainer *t, int64_t step, double loss)
{
	sw_vec_push(&t->losses, loss);
	if (t->loss >= 0 && !t->options->paced && isnan(loss) && t->nan_from == 0)
		t->nan_from = step + 1;
	else if (!isnan(loss))
		t->nan_from = 0;
}

void trainer_say_step(const trainer *t, int64_t step, size_t nth)
{
	sw_run_step done = {
		.step = step,
		.loss = t->losses.data[nth],
		.seconds = t->seconds.data[nth],
		.inputs_s = t->inputs_seconds.data[nth],
		.exposed_comm_s = t->waits.data[nth],
		.peak_bytes = (int64_t)sw_interpreter_peak_bytes(t->interpreter),
	};
	if (t->transport->rank == 0 && t->options->on_step)
		t->options->on_step(t->options->context, &done);
}

static double read_loss(const trainer *t)
{
	if (t->loss < 0 || t->options->paced)
		return NAN;
	return sw_element_get(t->outputs[t->loss].shape.type, sw_tensor_data(t->outputs[t->loss]),
	                      0);
}

sw_status trainer_step(trainer *t, int64_t step, sw_error *err)
{
	sw_status status = sw_record_step(&t->record, err);
	double begin = sw_now_s();
	sw_tensors_drop(t->outputs, t->parts.n_outputs);
	if (status == SW_OK)
		status = trainer_make_inputs(t, step, err);
	if (status) {
		sw_tensors_drop(t->inputs, t->parts.n_inputs);
		return status;
	}
	trainer_straggle(t);
	trainer_release_state(t);
	sw_nan_check_begin(&t->nan_check);
	if (t->options->check_nan)
		sw_nan_check_program(&t->nan_check, t->parts.local);
	status = sw_interpret(t->interpreter, t->inputs, t->parts.n_inputs, t->outputs,
	                      t->parts.n_outputs, err);
	/* sw_interpret took the references */
	memset(t->inputs, 0, t->parts.n_inputs * sizeof(*t->inputs));
	if (status)
		return status;
	double loss = read_loss(t);
	trainer_carry_state(t);
	double seconds = sw_now_s() - begin;
	trainer_note_step(t, seconds, t->record.waited_s);
	trainer_note_loss(t, step, loss);
	trainer_say_step(t, step, t->losses.len - 1);
	if (!t->options->check_nan)
		return SW_OK;
	sw_nan_check_name_input(&t->nan_check, &t->parts, t->sidecar);
	return sw_nan_check_end(&t->nan_check, t->transport, step + 1, &t->nan_seen, err);
}

sw_status trainer_save(trainer *t, int64_t step, const sw_tensor *carried, sw_error *err)
{
	t->saving.about.step = step;
	SW_TRY(sw_checkpoint_save(&t->saving, t->transport, carried, &t->folder, err));
	t->saved_step = step;
	return SW_OK;
}

/* ---- one rank --------------------------------------------------------------------------- */

int trainer_threads(const sw_run_options *options, int32_t ranks)
{
	return options->blas_threads ? options->blas_threads : SW_MAX(sw_cpu_count() / ranks, 1);
}

sw_status trainer_open_folder(const sw_run_options *options, sw_transport *transport,
                              sw_checkpoint_folder *folder, sw_error *err)
{
	*folder = (sw_checkpoint_folder){.path = options->save, .lock = -1};
	if (!options->save)
		return SW_OK;
	sw_status status = SW_OK;
	if (transport->rank == 0)
		status = sw_folder_open(folder, options->save, options->save_keep, err);
	return transport->ops->agree(transport, status, err);
}

/* What a rank computes with that has a device. */
static sw_status make_interpreter(trainer *t, sw_error *err)
{
	t->placement = t->options->check_nan ? NULL : sw_placement_new(t->parts.local);
	sw_interpret_options options = {
		.placement = t->placement,
		.partition_id = (uint32_t)t->transport->rank,
		.blas_threads = trainer_threads(t->options, t->transport->neighbours),
	};
	sw_record_init(&t->record, t->transport, t->parts.local,
	               t->served ? t->parts.local : t->scheduled, t->origin,
	               t->options->trace != NULL);
	sw_record_options(&t->record, &options);
	if (t->options->check_nan) {
		options.observe = sw_nan_check_op;
		options.observe_context = &t->nan_check;
	}
	if (t->options->paced) {
		sw_run_pace_init(&t->pace, t->parts.plan->cluster, t->parts.local);
		options.pace = &t->pace.pace;
	}
	sw_status status = sw_interpreter_new(t->parts.local, &options, &t->interpreter, err);
	return status ? status
	              : eval_rank_init(&t->eval, t->options->eval, t->transport,
	                               options.blas_threads, t->options->seed, err);
}

static sw_status prepare(trainer *t, sw_error *err)
{
	sw_status status = check_loss(t, err);
	if (status == SW_OK)
		status = check_tokens(t, err);
	if (status == SW_OK)
		status = check_kept(t, err);
	if (status)
		return status;
	t->transport->traffic = (sw_traffic){0};
	t->transport->paced = t->options->paced;
	if (t->options->paced) /* a waiting thread should not wait for a core as well */
		sw_thread_run_briefly();
	if (t->served)
		status = trainer_check_served(t->options, err);
	if (status == SW_OK)
		status = trainer_open_folder(t->options, t->transport, &t->folder, err);
	/* the plan's cluster has no servers: there collectives are chosen by size alone */
	if (status == SW_OK && t->options->tune && !t->options->servers)
		sw_transport_tune(t->transport, t->parts.plan->cluster, SW_ALGORITHM_COUNT);
	return status || !trainer_works(t) ? status : make_interpreter(t, err);
}

/* Make all inputs but plain data inputs, which are made in each step. */
static sw_status make_state(trainer *t, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < t->parts.n_inputs && status == SW_OK && trainer_works(t); i++)
		if (sw_checkpoint_keeps(t->parts.plan->program, t->sidecar, i))
			status = make_input(t, i, 0, &t->carried[i], err);
	return status;
}

static void allocate(trainer *t)
{
	size_t n_inputs = t->parts.n_inputs + 1, n_outputs = t->parts.n_outputs + 1;
	t->carried = sw_alloc(n_inputs * sizeof(*t->carried));
	t->inputs = sw_alloc(n_inputs * sizeof(*t->inputs));
	t->outputs = sw_alloc(n_outputs * sizeof(*t->outputs));
	sw_token_batch_init(&t->tokens, t->data, &t->parts, t->sidecar);
	if (!t->options->save)
		return;
	t->saving.n_ranks = t->transport->size;
	t->saving.about = (sw_checkpoint_about){0, t->options->seed, sw_program_hash(t->scheduled),
	                                        trainer_hash_data(t->data, t->options->arrays)};
	sw_saving_add_parts(&t->saving, &t->parts, t->sidecar);
	if (t->served)
		trainer_place_saved(t);
}

void trainer_init(trainer *t, const sw_plan *plan, const trainer_programs *run,
                  const sw_sidecar *sidecar, const sw_data *data, sw_transport *transport,
                  const sw_run_options *options)
{
	const sw_program *scheduled = run->scheduled;
	*t = (trainer){.scheduled = scheduled,
	               .served = run->is_served ? &run->served : NULL,
	               .sidecar = sidecar,
	               .data = data,
	               .transport = transport,
	               .n_workers = (int32_t)plan->cluster->n_devices,
	               .options = options,
	               .saved_step = -1,
	               .folder = {.lock = -1}};
	if (!t->served && sw_program_has_owners(scheduled))
		t->own = sw_program_of_device(scheduled, transport->rank, &t->origin);
	sw_parts_init(&t->parts, plan,
	              t->served ? t->served->worker
	              : t->own  ? t->own
	                        : scheduled);
	t->loss = sw_find_loss(plan->program, sidecar);
	allocate(t);
}

sw_status trainer_open(trainer *t, sw_error *err)
{
	SW_TRY(prepare(t, err));
	return make_state(t, err);
}

void trainer_clear(trainer *t)
{
	serving_free(t->serving);
	sw_tensors_drop(t->carried, t->parts.n_inputs);
	sw_tensors_drop(t->inputs, t->parts.n_inputs);
	sw_tensors_drop(t->outputs, t->parts.n_outputs);
	sw_folder_close(&t->folder);
	sw_nan_check_clear(&t->nan_check);
	sw_saving_clear(&t->saving);
	sw_interpreter_free(t->interpreter);
	sw_placement_free(t->placement);
	sw_record_clear(&t->record);
	sw_run_pace_clear(&t->pace);
	if (t->options->tune) /* the plan's cluster belongs to the caller */
		sw_transport_tune(t->transport, NULL, SW_ALGORITHM_COUNT);
	free(t->carried);
	free(t->inputs);
	free(t->outputs);
	sw_token_batch_clear(&t->tokens);
	eval_rank_clear(&t->eval);
	sw_vec_clear(&t->losses);
	sw_vec_clear(&t->seconds);
	sw_vec_clear(&t->waits);
	sw_vec_clear(&t->inputs_seconds);
	sw_vec_clear(&t->cores);
	sw_parts_clear(&t->parts);
	sw_program_free(t->own);
	free(t->origin);
}

/* ---- programs --------------------------------------------------------------------------- */

/* What is in flight can't be looked at. */
static uint32_t overlap_of(const sw_run_options *options)
{
	return options->check_nan ? 0 : options->overlap;
}

void trainer_programs_clear(trainer_programs *run)
{
	sw_program_free(run->scheduled);
	if (run->is_served)
		sw_served_clear(&run->served);
	*run = (trainer_programs){0};
}

sw_status trainer_programs_make(const sw_plan *plan, const sw_sidecar *sidecar,
                                const sw_run_options *options, trainer_programs *run, sw_error *err)
{
	*run = (trainer_programs){0};
	sw_status status = sw_ranks_program(plan, overlap_of(options), &run->scheduled, err);
	if (status == SW_OK && (sw_forms_served(&plan->forms) || options->servers)) {
		run->is_served = true;
		status = sw_served_cut_for(plan, sidecar, options->servers, &run->served, err);
	}
	if (status)
		trainer_programs_clear(run);
	return status;
}

sw_status trainer_programs_reserve(const trainer_programs *run, const sw_run_options *options,
                                   int32_t size, sw_error *err)
{
	int threads = trainer_threads(options, size);
	if (!options->paced)
		SW_TRY(sw_interpret_reserve(run->scheduled, size, threads, err));
	for (uint32_t p = 0; p < run->served.n_ports; p++)
		SW_TRY(sw_interpret_reserve(run->served.ports[p].update, 1, 1, err));
	return options->eval
	               ? sw_interpret_reserve(options->eval->local, size, threads, err)
	               : SW_OK;
}
