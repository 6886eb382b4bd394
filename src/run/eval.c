/* A second program on the state of training: which of its inputs are that state, and its plan. */
#include "run/eval.h"

#include <stdlib.h>
#include <string.h>

#include "run/array_data.h"
#include "run/trainer.h"

/* ---- inputs ----------------------------------------------------------------------------- */

/* Where an input of the second program comes from: one value, or several that are its parts along a
 * dimension, as training has them. */
typedef struct eval_source {
	uint32_t first, n; /* inputs of the program that is reduced to its loss */
	int32_t axis;
} eval_source;

typedef struct eval_inputs {
	sw_arena arena;
	const sw_run_trained *trained;
	uint32_t n_trained, n;
	const sw_id *whole, *trues; /* values of the training program, with padding and without */
	const sw_id *own;           /* of the second one */
	eval_source *source;        /* of each of them */
} eval_inputs;

sw_run_trained sw_run_trained_by(const sw_plan *plan, const sw_sidecar *sidecar)
{
	return (sw_run_trained){.cluster = plan->cluster,
	                        .memory_bytes = plan->memory_bytes,
	                        .serial = sw_plan_serial(plan),
	                        .held = plan->program,
	                        .sidecar = sidecar,
	                        .plan = plan};
}

static void find_inputs(eval_inputs *in, const sw_run_trained *trained, const sw_program *program)
{
	*in = (eval_inputs){.trained = trained};
	sw_arena_init(&in->arena);
	in->n_trained = sw_program_inputs(trained->held, trained->held->entry, &in->arena,
	                                  &in->whole);
	sw_program_inputs(trained->serial, trained->serial->entry, &in->arena, &in->trues);
	in->n = sw_program_inputs(program, program->entry, &in->arena, &in->own);
}

static bool is_kept(const eval_inputs *in, uint32_t input)
{
	return sw_checkpoint_keeps(in->trained->serial, in->trained->sidecar, input);
}

static sw_status other_type(const char *name, sw_shape got, sw_shape wanted, sw_error *err)
{
	sw_text is = {0}, should = {0};
	sw_shape_print(got, &is);
	sw_shape_print(wanted, &should);
	sw_status status = sw_fail(err, SW_ERR_INPUT,
	                           "input '%s' is %s, and in the trained state it is %s: export "
	                           "both steps from the same parameters",
	                           name, is.data, should.data);
	sw_text_clear(&is);
	sw_text_clear(&should);
	return status;
}

static const sw_fill_part *part_of(const eval_inputs *in, uint32_t input)
{
	const sw_fill_part *part = in->trained->sidecar->inputs[input].init.part;
	return part && part->axis >= 0 && part->whole ? part : NULL;
}

/* Training may have an input in parts, which follow each other. Return how many from this one on
 * are all parts of it, or 1. */
static uint32_t parts_from(const eval_inputs *in, uint32_t first)
{
	const sw_fill_part *part = part_of(in, first);
	int64_t end = 0;
	uint32_t n = 0;
	for (uint32_t i = first; part && i < in->n_trained && end < part->size; i++, n++) {
		const sw_fill_part *next = part_of(in, i);
		if (!next || next->axis != part->axis || next->start != end ||
		    strcmp(next->whole, part->whole) != 0)
			return 1;
		end += sw_value_shape(in->trained->serial, in->trues[i]).dims[part->axis];
	}
	return part && end == part->size ? n : 1;
}

/* The names under which the trained state can be read: those of its inputs, and of what they are
 * parts of. */
static void name_trained(const eval_inputs *in, sw_map *names)
{
	for (uint32_t i = 0; i < in->n_trained; i++) {
		const char *name = in->trained->sidecar->inputs[i].name;
		const sw_fill_part *part = part_of(in, i);
		if (!is_kept(in, i))
			continue;
		sw_map_put(names, name, strlen(name), i);
		if (part && parts_from(in, i) > 1)
			sw_map_intern(names, part->whole, strlen(part->whole), i);
	}
}

static sw_status check_type(const eval_inputs *in, const sw_program *program, uint32_t input,
                            uint32_t trained, const char *name, sw_error *err)
{
	const eval_source *source = &in->source[input];
	sw_shape own = sw_value_shape(program, in->own[input]),
		 wanted = sw_value_shape(in->trained->serial, in->trues[trained]);
	int64_t dims[SW_MAX_RANK];
	if (source->n > 1) {
		memcpy(dims, wanted.dims, sizeof(*dims) * (size_t)wanted.rank);
		dims[source->axis] = part_of(in, trained)->size;
		wanted.dims = dims;
	}
	return sw_shape_equal(own, wanted) ? SW_OK : other_type(name, own, wanted, err);
}

/* Append what an input comes from to the sidecar. */
static void add_source(const eval_inputs *in, uint32_t input, uint32_t found,
                       const sw_sidecar *from, sw_run_eval *eval)
{
	sw_sidecar *to = &eval->sidecar;
	const char *name = from->inputs[input].name;
	eval_source *source = &in->source[input];
	*source = (eval_source){.first = to->n_inputs, .n = 1};
	if (from->tokens_input == (int32_t)input)
		to->tokens_input = (int32_t)to->n_inputs;
	if (found != SW_ABSENT && strcmp(in->trained->sidecar->inputs[found].name, name) != 0) {
		source->n = parts_from(in, found);
		source->axis = part_of(in, found)->axis;
	}
	for (uint32_t k = 0; k < source->n; k++) {
		const sw_input_info *there = found == SW_ABSENT
		                                     ? NULL
		                                     : &in->trained->sidecar->inputs[found + k];
		sw_input_info *info = &to->inputs[to->n_inputs];
		eval->state[to->n_inputs++] = there ? (int32_t)(found + k) : -1;
		*info = from->inputs[input];
		info->role = there ? there->role : SW_ROLE_DATA;
		if (source->n > 1)
			info->name = sw_arena_text(&to->arena, there->name);
	}
}

static sw_status bind_inputs(eval_inputs *in, const sw_program *program, sw_run_eval *eval,
                             sw_error *err)
{
	sw_map names = {0};
	sw_status status = SW_OK;
	const sw_sidecar from = eval->sidecar;
	size_t most = (size_t)in->n + in->n_trained + 1;
	name_trained(in, &names);
	in->source = SW_NEW_N(&in->arena, eval_source, in->n + 1);
	eval->state = sw_alloc(most * sizeof(*eval->state));
	eval->sidecar.inputs = SW_NEW_N(&eval->sidecar.arena, sw_input_info, most);
	eval->sidecar.n_inputs = 0;
	for (uint32_t i = 0; i < in->n && status == SW_OK; i++) {
		const char *name = from.inputs[i].name;
		uint32_t found = sw_map_get(&names, name, strlen(name));
		add_source(in, i, found, &from, eval);
		if (found != SW_ABSENT)
			status = check_type(in, program, i, found, name, err);
	}
	sw_map_clear(&names);
	return status;
}

/* ---- the program ------------------------------------------------------------------------ */

/* Add an input to the entry as training holds it, and cut the padding off. */
static sw_id take_input(const eval_inputs *in, sw_shape given, uint32_t input,
                        const sw_run_eval *eval, sw_program *out, int32_t entry)
{
	static const int64_t start[SW_MAX_RANK] = {0};
	int32_t state = eval->state[input];
	sw_shape held = given;
	if (state >= 0) {
		held = sw_value_shape(in->trained->held, in->whole[state]);
		given = sw_value_shape(in->trained->serial, in->trues[state]);
	}
	held = sw_build_shape(out, held.type, held.dims, held.rank);
	sw_id value = sw_emit_parameter(out, entry, held, NULL);
	return sw_shape_equal(given, held)
	               ? value
	               : sw_emit_slice(out, entry, value, start, given.dims, NULL);
}

static sw_id take_source(const eval_inputs *in, const sw_program *program, uint32_t input,
                         const sw_run_eval *eval, sw_program *out, int32_t entry)
{
	const eval_source *source = &in->source[input];
	sw_id *parts = SW_NEW_N(&out->arena, sw_id, source->n + 1);
	for (uint32_t k = 0; k < source->n; k++)
		parts[k] = take_input(in, sw_value_shape(program, in->own[input]), source->first + k,
		                      eval, out, entry);
	return source->n == 1 ? parts[0]
	                      : sw_emit_concatenate(out, entry, parts, source->n, source->axis);
}

/* Write an entry that has the inputs as training holds them, with padding, cuts that off, calls the
 * program, and returns the loss alone. */
static sw_status write_entry(const eval_inputs *in, const sw_program *program, int32_t callee,
                             int32_t loss, const sw_run_eval *eval, sw_program *out, sw_error *err)
{
	int32_t entry = sw_build_computation(out, "eval");
	sw_id *values = SW_NEW_N(&out->arena, sw_id, in->n + 1), result;
	for (uint32_t i = 0; i < in->n; i++)
		values[i] = take_source(in, program, i, eval, out, entry);
	sw_op_spec call = {.opcode = SW_OP_CALL,
	                   .operands = values,
	                   .n_operands = in->n,
	                   .called = &callee,
	                   .n_called = 1};
	SW_TRY(sw_build_op(out, entry, &call, &result, err));
	result += (sw_id)loss;
	sw_build_results(out, entry, &result, 1, false);
	out->entry = entry;
	return sw_program_verify(out, err);
}

static sw_status reduce_to_loss(const eval_inputs *in, const sw_program *program, int32_t loss,
                                sw_run_eval *eval, sw_error *err)
{
	sw_program *out = eval->program = sw_program_new(program->name);
	int32_t *map = sw_alloc((program->computations.len + 1) * sizeof(*map));
	for (size_t i = 0; i < program->computations.len; i++)
		map[i] = -1;
	out->source = sw_arena_text(&out->arena, program->source ? program->source : "");
	out->num_partitions = out->replica_count = 1;
	out->unannotated = true;
	int32_t callee = sw_build_copy_computation(out, program, program->entry, map);
	free(map);
	return write_entry(in, program, callee, loss, eval, out, err);
}

static sw_status find_loss(const sw_program *program, const sw_sidecar *sidecar, int32_t *loss,
                           sw_error *err)
{
	*loss = sw_find_loss(program, sidecar);
	if (*loss < 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "it has no loss: one result that is a number of a float type; of "
		               "several, a sidecar's \"role\": \"loss\" says which");
	sw_shape shape = sw_value_shape(program, sw_entry(program)->results.data[*loss]);
	return sw_shape_elements(shape) == 1
	               ? SW_OK
	               : sw_fail(err, SW_ERR_INPUT, "its loss is no single number");
}

/* The sidecar of a program whose only result is the loss. */
static void reduce_sidecar(sw_sidecar *sidecar, int32_t loss)
{
	sidecar->outputs[0] = sidecar->outputs[loss];
	sidecar->outputs[0].role = SW_ROLE_LOSS;
	sidecar->outputs[0].input = -1;
	sidecar->n_outputs = 1;
}

sw_status sw_run_eval_init(const sw_run_trained *trained, sw_program *program, sw_sidecar *sidecar,
                           sw_run_eval *eval, sw_error *err)
{
	eval_inputs in;
	int32_t loss = -1;
	*eval = (sw_run_eval){.sidecar = *sidecar, .batches = 1};
	*sidecar = (sw_sidecar){0};
	find_inputs(&in, trained, program);
	sw_status status = find_loss(program, &eval->sidecar, &loss, err);
	if (status == SW_OK)
		status = bind_inputs(&in, program, eval, err);
	if (status == SW_OK)
		status = reduce_to_loss(&in, program, loss, eval, err);
	if (status == SW_OK)
		reduce_sidecar(&eval->sidecar, loss);
	sw_arena_clear(&in.arena);
	sw_program_free(program);
	if (status)
		sw_run_eval_clear(eval);
	return status;
}

/* ---- data ------------------------------------------------------------------------------- */

/* A name that is a letter away from one of the state is meant to be that. */
static sw_status no_value(const sw_run_eval *eval, uint32_t input, const sw_run_trained *trained,
                          sw_error *err)
{
	const char *name = eval->sidecar.inputs[input].name;
	sw_nearest nearest = {.word = name};
	for (uint32_t i = 0; i < trained->sidecar->n_inputs; i++)
		if (sw_checkpoint_keeps(trained->serial, trained->sidecar, i))
			sw_nearest_try(&nearest, trained->sidecar->inputs[i].name);
	return sw_fail(err, SW_ERR_INPUT,
	               "input '%s' is neither in the trained state%s nor has it data: give it the "
	               "name that it has there, or --eval-data %s=FILE.npy",
	               name, sw_nearest_hint(&nearest).text, name);
}

sw_status sw_run_eval_check(const sw_run_eval *eval, const sw_run_trained *trained, sw_error *err)
{
	uint32_t bound = 0;
	for (uint32_t i = 0; i < eval->sidecar.n_inputs; i++) {
		bound += eval->state[i] >= 0;
		if (eval->state[i] >= 0 || sw_arrays_has(eval->arrays, i) ||
		    (eval->data && (int32_t)i == eval->sidecar.tokens_input))
			continue;
		return no_value(eval, i, trained, err);
	}
	return bound ? SW_OK
	             : sw_fail(err, SW_ERR_INPUT,
	                       "none of its inputs is in the trained state, by its name");
}

/* ---- the plan --------------------------------------------------------------------------- */

/* Let the state lie as training has it, if all devices have some of it. False where it is padded
 * otherwise. */
static bool take_layouts(const sw_run_eval *eval, const sw_run_trained *trained)
{
	sw_plan *own = eval->plan;
	eval_inputs in;
	bool fits = true;
	find_inputs(&in, trained, own->program);
	for (uint32_t i = 0; i < in.n && fits; i++) {
		if (eval->state[i] < 0)
			continue;
		sw_id there = in.whole[eval->state[i]], here = in.own[i];
		bool shared = own->materialised[here] == own->produced[here];
		fits = sw_shape_equal(sw_value_shape(trained->held, there),
		                      sw_value_shape(own->program, here));
		if (!trained->plan)
			continue;
		own->produced[here] = sw_layouts_id(
			&own->layouts,
			sw_plan_layout(trained->plan, trained->plan->produced[there]));
		if (shared)
			own->materialised[here] = own->produced[here];
	}
	/* the layouts of training need not be of the axes of this plan */
	own->n_axes = 0;
	sw_arena_clear(&in.arena);
	return fits;
}

static void drop_plan(sw_run_eval *eval)
{
	sw_plan_free(eval->plan);
	eval->plan = NULL;
}

/* Where the quickest plan pads the state in another way than training does, every device runs the
 * whole program. */
static sw_status find_plan(sw_run_eval *eval, const sw_run_trained *trained, const char *path,
                           bool quiet, sw_error *err)
{
	sw_plan_options options = {.memory_bytes = trained->memory_bytes,
	                           .method = SW_METHOD_EXACT,
	                           .remat = "none",
	                           .microbatches = 1,
	                           .quiet = quiet};
	SW_TRY(sw_plan_make(eval->program, path, &eval->sidecar, trained->cluster, &options,
	                    &eval->plan, err));
	if (take_layouts(eval, trained))
		return SW_OK;
	drop_plan(eval);
	SW_TRY(sw_plan_replicated(eval->program, trained->cluster, &eval->plan, err));
	take_layouts(eval, trained);
	return SW_OK;
}

sw_status sw_run_eval_plan(sw_run_eval *eval, const sw_run_trained *trained, const char *path,
                           bool quiet, sw_error *err)
{
	sw_status status = find_plan(eval, trained, path, quiet, err);
	if (status == SW_OK)
		status = sw_plan_verify(eval->plan, err);
	return status ? status : sw_ranks_program(eval->plan, SW_OVERLAP_ALL, &eval->local, err);
}

void sw_run_eval_clear(sw_run_eval *eval)
{
	sw_program_free(eval->local);
	drop_plan(eval);
	sw_program_free(eval->program);
	sw_sidecar_clear(&eval->sidecar);
	free(eval->state);
	*eval = (sw_run_eval){0};
}
