/* A plan in this process, step by step: ranks that outlast a step, and threads that do not. */
#include "run/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run/stage_state.h"
#include "run/stage_trainer.h"

struct sw_session {
	const sw_plan *plan;
	const sw_pipelined *stages; /* NULL: a plan without */
	const sw_sidecar *sidecar;
	sw_run_options options;
	const sw_data *tokens; /* from files; NULL: none */
	trainer_programs made;      /* of `plan` */
	sw_stage_programs programs; /* of `stages` */
	int32_t size;
	sw_transport **transports;    /* [size] */
	trainer *trainers;            /* [size], or */
	stage_trainer *stage_trainers; /* [size] */
	uint32_t n_results;
	uint32_t *results; /* which results are no state */
	void **given;      /* per input, a copy; NULL: none */
	int64_t steps;
	bool stepped; /* there are results */
	bool broken;
};

static const sw_program *serial_of(const sw_session *s)
{
	return s->stages ? s->stages->canonical : sw_plan_serial(s->plan);
}

/* The program whose inputs and results the arrays are. */
static const sw_program *program_of(const sw_session *s)
{
	return s->stages ? s->stages->looped : sw_plan_serial(s->plan);
}

static bool is_kept(const sw_session *s, uint32_t input)
{
	return sw_checkpoint_keeps(program_of(s), s->sidecar, input);
}

/* ---- all ranks --------------------------------------------------------------------------- */

static sw_status check_whole(const sw_session *s, sw_error *err)
{
	return s->broken ? sw_fail(err, SW_ERR_INPUT,
	                           "the run has ended with an earlier failure: open it again")
	                 : SW_OK;
}

static sw_status on_ranks(sw_session *s, sw_rank_body *body, sw_error *err)
{
	SW_TRY(check_whole(s, err));
	sw_status status = sw_ranks_on(s->transports, s->size, body, s, err);
	s->broken = status != SW_OK;
	return status;
}

static sw_status open_rank(void *context, sw_transport *transport, sw_error *err)
{
	sw_session *s = context;
	return s->stages ? stage_trainer_open(&s->stage_trainers[transport->rank], err)
	                 : trainer_open(&s->trainers[transport->rank], err);
}

static sw_status step_rank(void *context, sw_transport *transport, sw_error *err)
{
	sw_session *s = context;
	if (s->stages) {
		stage_trainer *t = &s->stage_trainers[transport->rank];
		t->losses.len = t->seconds.len = t->waits.len = t->inputs_seconds.len = 0;
		return stage_trainer_step(t, s->steps, err);
	}
	trainer *t = &s->trainers[transport->rank];
	t->losses.len = t->seconds.len = t->waits.len = t->inputs_seconds.len = t->cores.len = 0;
	return trainer_step(t, s->steps, err);
}

sw_status sw_session_step(sw_session *s, sw_error *err)
{
	SW_TRY(on_ranks(s, step_rank, err));
	s->steps++;
	s->stepped = true;
	return SW_OK;
}

static eval_rank *eval_of(sw_session *s, int32_t rank)
{
	return s->stages ? &s->stage_trainers[rank].eval : &s->trainers[rank].eval;
}

static sw_status evaluate_rank(void *context, sw_transport *transport, sw_error *err)
{
	sw_session *s = context;
	eval_rank *eval = eval_of(s, transport->rank);
	eval->done.len = 0;
	if (!s->stages)
		return eval_rank_run(eval, s->trainers[transport->rank].carried, s->steps, err);
	stage_trainer *t = &s->stage_trainers[transport->rank];
	return eval_stages_run(&t->eval_state, t->rank.entry, s->steps, err);
}

sw_status sw_session_evaluate(sw_session *s, double *loss, sw_error *err)
{
	if (!s->options.eval)
		return sw_fail(err, SW_ERR_INPUT,
		               "the run was opened without a program to evaluate: give it one, "
		               "eval=PROGRAM");
	SW_TRY(on_ranks(s, evaluate_rank, err));
	*loss = eval_of(s, 0)->done.data[0].loss;
	return SW_OK;
}

int64_t sw_session_steps(const sw_session *s)
{
	return s->steps;
}

/* ---- opening ----------------------------------------------------------------------------- */

static sw_status make_programs(sw_session *s, sw_error *err)
{
	if (s->stages) {
		SW_TRY(sw_stage_programs_init(&s->programs, s->stages, err));
		return stage_programs_reserve(&s->options, s->size, err);
	}
	SW_TRY(trainer_programs_make(s->plan, s->sidecar, &s->options, &s->made, err));
	if (s->made.is_served)
		return sw_fail(err, SW_ERR_INPUT,
		               "variables that their owners serve have no steps of all ranks: "
		               "shardwright run trains such a plan");
	return trainer_programs_reserve(&s->made, &s->options, s->size, err);
}

static void begin_ranks(sw_session *s)
{
	if (s->stages)
		s->stage_trainers = sw_alloc((size_t)s->size * sizeof(*s->stage_trainers));
	else
		s->trainers = sw_alloc((size_t)s->size * sizeof(*s->trainers));
	for (int32_t r = 0; r < s->size; r++)
		if (s->stages)
			stage_trainer_init(&s->stage_trainers[r], &s->programs, s->sidecar,
			                   s->tokens, s->transports[r], &s->options);
		else
			trainer_init(&s->trainers[r], s->plan, &s->made, s->sidecar, s->tokens,
			             s->transports[r], &s->options);
}

static void find_results(sw_session *s)
{
	const sw_program *p = program_of(s);
	uint32_t n = (uint32_t)sw_entry(p)->results.len;
	s->results = sw_alloc((n + 1) * sizeof(*s->results));
	for (uint32_t o = 0; o < n; o++)
		if (sw_input_of_output(p, o) < 0)
			s->results[s->n_results++] = o;
}

static sw_status open_session(sw_session *s, sw_error *err)
{
	SW_TRY(make_programs(s, err));
	s->transports = sw_alloc((size_t)s->size * sizeof(*s->transports));
	SW_TRY(sw_transport_local(s->size, s->transports, err));
	begin_ranks(s);
	return on_ranks(s, open_rank, err);
}

sw_status sw_session_open(const sw_plan *plan, const sw_pipelined *stages,
                          const sw_sidecar *sidecar, const sw_session_options *options,
                          sw_session **session, sw_error *err)
{
	sw_session *s = *session = sw_alloc(sizeof(*s));
	*s = (sw_session){.plan = plan, .stages = stages, .sidecar = sidecar};
	s->size = (int32_t)(stages ? stages->cluster : plan->cluster)->n_devices;
	s->given = sw_alloc((sidecar->n_inputs + 1) * sizeof(*s->given));
	s->options = (sw_run_options){.seed = options->seed,
	                              .blas_threads = options->blas_threads,
	                              .overlap = SW_OVERLAP_ALL,
	                              .tune = true,
	                              .quiet = true,
	                              .given = (const void *const *)s->given,
	                              .keep_results = true,
	                              .arrays = options->data ? options->data->arrays : NULL,
	                              .eval = options->eval};
	s->tokens = options->data ? sw_data_files_tokens(options->data) : NULL;
	find_results(s);
	sw_status status = open_session(s, err);
	if (status) {
		sw_session_free(s);
		*session = NULL;
	}
	return status;
}

void sw_session_free(sw_session *s)
{
	if (!s)
		return;
	for (int32_t r = 0; r < s->size && s->trainers; r++)
		trainer_clear(&s->trainers[r]);
	for (int32_t r = 0; r < s->size && s->stage_trainers; r++)
		stage_trainer_clear(&s->stage_trainers[r]);
	for (int32_t r = 0; r < s->size && s->transports; r++)
		if (s->transports[r])
			s->transports[r]->ops->free(s->transports[r]);
	for (uint32_t i = 0; i < s->sidecar->n_inputs; i++)
		free(s->given[i]);
	trainer_programs_clear(&s->made);
	sw_stage_programs_clear(&s->programs);
	free(s->transports);
	free(s->trainers);
	free(s->stage_trainers);
	free(s->given);
	free(s->results);
	free(s);
}

/* ---- arrays ------------------------------------------------------------------------------ */

uint32_t sw_session_arrays(const sw_session *s)
{
	return s->sidecar->n_inputs + s->n_results;
}

static sw_shape input_shape(const sw_session *s, uint32_t input)
{
	return s->stages ? stage_trainer_shape(&s->stage_trainers[0], input)
	                 : sw_parts_true_shape(&s->trainers[0].parts, input);
}

sw_session_array sw_session_array_at(const sw_session *s, uint32_t array)
{
	uint32_t n = s->sidecar->n_inputs;
	if (array < n)
		return (sw_session_array){s->sidecar->inputs[array].name, input_shape(s, array),
		                          is_kept(s, array) ? SW_SESSION_STATE : SW_SESSION_DATA};
	uint32_t o = s->results[array - n];
	sw_id value = sw_entry(program_of(s))->results.data[o];
	return (sw_session_array){s->sidecar->outputs[o].name,
	                          sw_value_shape(program_of(s), value), SW_SESSION_RESULT};
}

uint32_t sw_session_find(const sw_session *s, const char *name)
{
	uint32_t n = sw_session_arrays(s), i = 0;
	while (i < n && strcmp(sw_session_array_at(s, i).name, name) != 0)
		i++;
	return i;
}

/* A rank's part of what outlasts a step; without a buffer if it has none. */
static sw_tensor part_of(const sw_session *s, int32_t rank, uint32_t input)
{
	if (!s->stages)
		return s->trainers[rank].carried[input];
	const stage_rank *x = &s->stage_trainers[rank].rank;
	return stage_rank_has_input(x, input) ? x->entry[s->programs.inputs[input]]
	                                      : (sw_tensor){0};
}

static bool is_there(sw_tensor part)
{
	return part.buffer && sw_shape_elements(part.shape) > 0;
}

static sw_status set_state(sw_session *s, uint32_t input, const void *whole, sw_error *err)
{
	sw_status status = SW_OK;
	for (int32_t r = 0; r < s->size && status == SW_OK; r++) {
		sw_tensor part = part_of(s, r, input);
		if (!is_there(part))
			continue;
		status = s->stages ? stage_rank_give(&s->stage_trainers[r].rank, input, whole, err)
		                   : trainer_cut(&s->trainers[r], r, input, whole, &part, err);
	}
	s->broken = status != SW_OK; /* some ranks have it */
	return status;
}

sw_status sw_session_set(sw_session *s, uint32_t array, const void *whole, sw_error *err)
{
	SW_TRY(check_whole(s, err));
	if (array >= s->sidecar->n_inputs)
		return sw_fail(err, SW_ERR_INPUT, "'%s' is a result of a step: it is not set",
		               sw_session_array_at(s, array).name);
	if (is_kept(s, array))
		return set_state(s, array, whole, err);
	size_t bytes = (size_t)sw_shape_bytes(input_shape(s, array));
	if (!s->given[array] && !(s->given[array] = sw_try_alloc(bytes + 1)))
		return sw_fail(err, SW_ERR_IO, "no memory for '%s'", s->sidecar->inputs[array].name);
	memcpy(s->given[array], whole, bytes);
	return SW_OK;
}

/* How ranks hold a value: each from `first` on a part of the padded shape. */
typedef struct held_parts {
	const sw_atoms *atoms;
	const sw_layout *layout;
	sw_shape padded, shape;
	int32_t first;
} held_parts;

static void paste(const held_parts *h, int32_t rank, sw_tensor part, void *whole)
{
	if (is_there(part))
		sw_layout_paste(h->atoms, h->padded, h->layout, rank - h->first,
		                sw_type_bytes(h->shape.type), sw_tensor_data(part), whole);
}

static held_parts parts_of_input(const sw_session *s, uint32_t input)
{
	sw_held_value held = {0};
	if (s->stages)
		stage_state_of(&s->programs, input, &held);
	else
		held = sw_held_part(&s->trainers[0].parts, input);
	return (held_parts){held.atoms, held.layout,
	                    s->stages ? held.shape
	                              : sw_parts_whole_shape(&s->trainers[0].parts, input),
	                    held.shape, (int32_t)held.first};
}

static held_parts parts_of_result(const sw_session *s, uint32_t output)
{
	sw_id value = sw_entry(program_of(s))->results.data[output];
	sw_shape shape = sw_value_shape(program_of(s), value);
	if (!s->stages) {
		sw_id padded = sw_entry(s->plan->program)->results.data[output];
		return (held_parts){&s->plan->cluster->atoms,
		                    sw_plan_layout(s->plan, s->plan->outputs[output]),
		                    sw_value_shape(s->plan->program, padded), shape, 0};
	}
	int32_t slice = sw_slice_of_output(&s->programs, output);
	return (held_parts){
		&s->stages->slices[slice]->atoms,
		s->programs.layouts[slice][sw_stage_value_of(&s->programs, value)], shape, shape,
		(int32_t)s->stages->first_device[slice]};
}

static sw_tensor result_part(const sw_session *s, int32_t rank, uint32_t output)
{
	return s->stages ? s->stage_trainers[rank].results[output]
	                 : s->trainers[rank].outputs[output];
}

/* output: a result's number; -1: the input. */
static sw_status gather(const sw_session *s, uint32_t input, int64_t output, void *whole,
                        sw_error *err)
{
	held_parts h = output < 0 ? parts_of_input(s, input) : parts_of_result(s, (uint32_t)output);
	if (!h.layout)
		return sw_fail(err, SW_ERR_INPUT, "no stage has it");
	bool is_padded = !sw_shape_equal(h.padded, h.shape);
	void *array = is_padded ? sw_try_alloc((size_t)sw_shape_bytes(h.padded) + 1) : whole;
	if (!array)
		return sw_fail(err, SW_ERR_IO, "no memory to gather an array");
	for (int32_t r = h.first; r < h.first + (int32_t)sw_atoms_devices(h.atoms); r++)
		paste(&h, r,
		      output < 0 ? part_of(s, r, input) : result_part(s, r, (uint32_t)output),
		      array);
	if (is_padded) {
		sw_shape_crop(h.padded, array, h.shape, whole);
		free(array);
	}
	return SW_OK;
}

sw_status sw_session_get(const sw_session *s, uint32_t array, void *whole, sw_error *err)
{
	uint32_t n = s->sidecar->n_inputs;
	SW_TRY(check_whole(s, err));
	if (array < n && is_kept(s, array))
		return gather(s, array, -1, whole, err);
	if (array < n && !s->given[array])
		return sw_fail(err, SW_ERR_INPUT, "'%s' was not given",
		               s->sidecar->inputs[array].name);
	if (array < n) {
		memcpy(whole, s->given[array], (size_t)sw_shape_bytes(input_shape(s, array)));
		return SW_OK;
	}
	if (!s->stepped)
		return sw_fail(err, SW_ERR_INPUT, "'%s' is a result, and there was no step",
		               sw_session_array_at(s, array).name);
	return gather(s, 0, s->results[array - n], whole, err);
}

/* ---- checkpoints ------------------------------------------------------------------------- */

static sw_status write_ranks(const sw_session *s, const sw_saving *saving,
                             const sw_checkpoint_folder *folder, sw_error *err)
{
	uint32_t n = s->sidecar->n_inputs;
	sw_tensor *carried = sw_alloc((n + 1) * sizeof(*carried));
	uint64_t *hashes = sw_alloc((size_t)s->size * sizeof(*hashes));
	sw_status status = sw_folder_begin(folder, s->steps, err);
	for (int32_t r = 0; r < s->size && status == SW_OK; r++) {
		for (uint32_t i = 0; i < n; i++)
			carried[i] = part_of(s, r, i);
		status = sw_saving_write(saving, r, carried, folder->path, &hashes[r], err);
	}
	if (status == SW_OK)
		status = sw_saving_finish(saving, folder, hashes, err);
	free(hashes);
	free(carried);
	return status;
}

static sw_status describe_saving(const sw_session *s, sw_saving *saving, sw_error *err)
{
	saving->about = (sw_checkpoint_about){
		.step = s->steps,
		.seed = s->options.seed,
		.data_hash = trainer_hash_data(s->tokens, s->options.arrays)};
	if (s->stages)
		return stage_state_saving(&s->programs, s->sidecar, saving, err);
	saving->n_ranks = s->size;
	saving->about.plan_hash = sw_program_hash(s->made.scheduled);
	sw_saving_add_parts(saving, &s->trainers[0].parts, s->sidecar);
	return sw_saving_check(saving, err);
}

sw_status sw_session_save(const sw_session *s, const char *path, sw_error *err)
{
	sw_saving saving = {0};
	sw_checkpoint_folder folder = {.lock = -1};
	struct stat info;
	SW_TRY(check_whole(s, err));
	if (stat(path, &info) != 0)
		return sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
		                  "a checkpoint needs a folder that exists: make it first");
	sw_status status = describe_saving(s, &saving, err);
	if (status == SW_OK)
		status = sw_folder_open(&folder, path, 0, err);
	if (status == SW_OK)
		status = write_ranks(s, &saving, &folder, err);
	sw_folder_close(&folder);
	sw_saving_clear(&saving);
	return status;
}

/* A rank's part of an input is what training from options.start begins with. */
static sw_status begin_input(sw_session *s, int32_t rank, uint32_t input, sw_error *err)
{
	sw_tensor part = part_of(s, rank, input);
	if (!is_there(part))
		return SW_OK;
	return s->stages ? stage_trainer_make_input(&s->stage_trainers[rank], input, 0, err)
	                 : trainer_fill_input(&s->trainers[rank], rank, input, 0, &part, err);
}

static sw_status load_all(sw_session *s, const sw_checkpoint *checkpoint, sw_error *err)
{
	sw_status status = SW_OK;
	if (checkpoint->has_step) {
		s->steps = checkpoint->step;
		s->options.seed = checkpoint->seed;
		for (int32_t r = 0; r < s->size; r++)
			eval_of(s, r)->seed = checkpoint->seed;
	}
	s->options.start = checkpoint;
	for (uint32_t i = 0; i < s->sidecar->n_inputs; i++)
		for (int32_t r = 0; r < s->size && is_kept(s, i) && status == SW_OK; r++)
			status = begin_input(s, r, i, err);
	s->options.start = NULL;
	s->stepped = false;
	s->broken = status != SW_OK;
	return status;
}

sw_status sw_session_load(sw_session *s, const char *path, sw_error *err)
{
	sw_checkpoint checkpoint;
	sw_text newest = {0};
	SW_TRY(check_whole(s, err));
	sw_status status = sw_checkpoint_newest_of(path, &newest, err);
	if (status == SW_OK)
		status = sw_checkpoint_open(newest.len ? newest.data : path, serial_of(s),
		                            s->sidecar, &checkpoint, err);
	if (status == SW_OK) {
		status = load_all(s, &checkpoint, err);
		sw_checkpoint_close(&checkpoint);
	}
	sw_text_clear(&newest);
	return status;
}
