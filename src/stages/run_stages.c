/* A step of a pipeline in one process: all pieces, in the order of a schedule. */
#include <string.h>

#include "stages/internal.h"

typedef struct stage_runner {
	const sw_stage_pieces *pieces;
	const sw_stages *stages;
	const sw_pipeline_schedule *schedule;
	sw_arena arena;
	sw_interpreter **passes; /* [n_virtual] */
	/* values of the entry; of the body, per virtual stage what its loop carries, per stage and
	 * microbatch what it counts, and per microbatch what passes sent */
	sw_tensor *entry, **carried, ***counted, **sent;
	sw_id inner;
	sw_error *err;
} stage_runner;

static void put(sw_tensor *slot, sw_tensor tensor)
{
	if (slot->buffer)
		sw_tensor_drop(slot);
	*slot = tensor;
}

/* Run a piece once on the tensors that `find` has of its inputs. */
typedef sw_tensor *find_tensor(stage_runner *x, int32_t v, int32_t j, sw_id value);

static sw_status run_piece(stage_runner *x, const sw_stage_piece *piece, sw_interpreter *with,
                           int32_t v, int32_t j, find_tensor *find, sw_tensor *outputs)
{
	sw_tensor *inputs = sw_alloc(sizeof(sw_tensor) * SW_MAX(piece->n_inputs, 1u));
	for (uint32_t i = 0; i < piece->n_inputs; i++) {
		sw_tensor *at = find(x, v, j, piece->inputs[i]);
		if (at && at->buffer) {
			inputs[i] = sw_tensor_keep(*at);
			continue;
		}
		for (uint32_t k = 0; k < i; k++)
			sw_tensor_drop(&inputs[k]);
		free(inputs);
		return sw_fail(x->err, SW_ERR_INTERNAL, "stage %d: input %u (%s) is not there",
		               piece->stage, i,
		               sw_op_at(x->stages->program,
		                        sw_maker_of(x->stages->program, piece->inputs[i]))
		                       ->name);
	}
	sw_status status =
		sw_interpret(with, inputs, piece->n_inputs, outputs, piece->n_results, x->err);
	free(inputs);
	return status;
}

/* ---- microbatches ----------------------------------------------------------------------- */

/* An element of the loop in microbatch j, which this stage counts, or which is an import. */
static sw_tensor *find_counted(stage_runner *x, int32_t stage, int32_t j, sw_id value)
{
	const sw_op *loop = sw_op_at(x->stages->program, x->stages->loop);
	sw_tensor *counted = &x->counted[stage][j][value - x->inner];
	return counted->buffer ? counted : &x->entry[loop->operands[value - x->inner]];
}

/* What a pass reads: of the loop's elements what it carries itself, or such a one; else what
 * another pass of this microbatch sent. */
static sw_tensor *find_in_pass(stage_runner *x, int32_t v, int32_t j, sw_id value)
{
	const sw_op *loop = sw_op_at(x->stages->program, x->stages->loop);
	if (value < x->inner || value >= x->inner + loop->n_operands)
		return &x->sent[j][value];
	sw_tensor *own = &x->carried[v][value - x->inner];
	return own->buffer ? own : find_counted(x, sw_stage_physical(x->stages, v), j, value);
}

static bool has_inputs(stage_runner *x, int32_t v, int32_t j)
{
	const sw_stage_piece *piece = &x->pieces->passes[v];
	for (uint32_t i = 0; i < piece->n_inputs; i++) {
		sw_tensor *at = find_in_pass(x, v, j, piece->inputs[i]);
		if (!at->buffer)
			return false;
	}
	return true;
}

static sw_status run_pass(stage_runner *x, int32_t v, int32_t j)
{
	const sw_stage_piece *piece = &x->pieces->passes[v];
	sw_stage_carried carried = x->pieces->carried[v];
	uint32_t n_sent = piece->n_results - carried.n;
	if (!piece->program)
		return SW_OK;
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * SW_MAX(piece->n_results, 1u));
	sw_status status = run_piece(x, piece, x->passes[v], v, j, find_in_pass, outputs);
	for (uint32_t i = 0; i < piece->n_results && status == SW_OK; i++) {
		if (i < n_sent)
			put(&x->sent[j][piece->results[i]], outputs[i]);
		else
			put(&x->carried[v][carried.elements[i - n_sent]], outputs[i]);
	}
	free(outputs);
	return status;
}

/* Take the ranks in turn; each goes on until its next pass has no inputs yet. */
static sw_status run_microbatches(stage_runner *x)
{
	const sw_pipeline_schedule *s = x->schedule;
	size_t *next = SW_NEW_N(&x->arena, size_t, s->n_ranks);
	sw_status status = SW_OK;
	bool moved = true, left = true;
	while (moved && left && status == SW_OK) {
		moved = left = false;
		for (int32_t r = 0; r < s->n_ranks; r++)
			for (; next[r] < s->lists[r].len && status == SW_OK; next[r]++) {
				sw_action a = s->lists[r].data[next[r]];
				int32_t v[2], n = sw_stage_passes_of(x->stages, a, v);
				left = true;
				if (n > 0 && !has_inputs(x, v[0], a.microbatch))
					break;
				for (int32_t i = 0; i < n && status == SW_OK; i++)
					status = run_pass(x, v[i], a.microbatch);
				moved = true;
			}
	}
	if (status == SW_OK && left && !moved)
		return sw_fail(x->err, SW_ERR_INTERNAL, "stages: the schedule does not run");
	return status;
}

/* ---- before and behind the loop --------------------------------------------------------- */

static sw_tensor *find_in_entry(stage_runner *x, int32_t v, int32_t j, sw_id value)
{
	(void)v;
	(void)j;
	return &x->entry[value];
}

/* Run a piece that is run once; outputs: new tensors of its results. */
static sw_status run_once(stage_runner *x, const sw_stage_piece *piece, int32_t v, int32_t j,
                          find_tensor *find, sw_tensor *outputs)
{
	sw_interpreter *with = NULL;
	sw_interpret_options options = {.blas_threads = 1};
	sw_status status = sw_interpreter_new(piece->program, &options, &with, x->err);
	if (status == SW_OK)
		status = run_piece(x, piece, with, v, j, find, outputs);
	sw_interpreter_free(with);
	return status;
}

static sw_status run_entry_piece(stage_runner *x, const sw_stage_piece *piece)
{
	if (!piece->program)
		return SW_OK;
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * SW_MAX(piece->n_results, 1u));
	sw_status status = run_once(x, piece, 0, 0, find_in_entry, outputs);
	for (uint32_t i = 0; i < piece->n_results && status == SW_OK; i++)
		put(&x->entry[piece->results[i]], outputs[i]);
	free(outputs);
	return status;
}

/* What these elements of the loop begin with. */
static void begin_elements(stage_runner *x, sw_stage_carried carried, sw_tensor *elements)
{
	const sw_op *loop = sw_op_at(x->stages->program, x->stages->loop);
	for (uint32_t i = 0; i < carried.n; i++) {
		uint32_t k = carried.elements[i];
		put(&elements[k], sw_tensor_keep(x->entry[loop->operands[k]]));
	}
}

/* Count all microbatches of a stage. */
static sw_status run_counts(stage_runner *x, int32_t stage)
{
	const sw_stage_piece *piece = &x->pieces->counts[stage];
	sw_stage_carried counted = x->pieces->counted[stage];
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * (counted.n + 1));
	sw_status status = SW_OK;
	begin_elements(x, counted, x->counted[stage][0]);
	for (int32_t j = 0; j < x->stages->n_microbatches && counted.n && status == SW_OK; j++) {
		status = run_once(x, piece, stage, j, find_counted, outputs);
		for (uint32_t i = 0; i < counted.n && status == SW_OK; i++)
			put(&x->counted[stage][j + 1][counted.elements[i]], outputs[i]);
	}
	free(outputs);
	return status;
}

static void end_elements(stage_runner *x, const sw_tensor *elements)
{
	const sw_op *loop = sw_op_at(x->stages->program, x->stages->loop);
	for (uint32_t k = 0; k < loop->n_operands; k++)
		if (elements[k].buffer)
			put(&x->entry[loop->first_result + k], sw_tensor_keep(elements[k]));
}

/* The loop's results: what the stages carry and count. */
static void end_loop(stage_runner *x)
{
	for (int32_t v = 0; v < x->stages->n_virtual; v++)
		end_elements(x, x->carried[v]);
	for (int32_t s = 0; s < x->stages->n_stages; s++)
		end_elements(x, x->counted[s][x->stages->n_microbatches]);
}

static sw_status run_step(stage_runner *x)
{
	const sw_stages *s = x->stages;
	sw_status status = SW_OK;
	for (int32_t i = 0; i < s->n_stages && status == SW_OK; i++)
		status = run_entry_piece(x, &x->pieces->before[i]);
	for (int32_t i = 0; i < s->n_stages && status == SW_OK; i++)
		status = run_counts(x, i);
	if (status)
		return status;
	for (int32_t v = 0; v < s->n_virtual; v++)
		begin_elements(x, x->pieces->carried[v], x->carried[v]);
	status = run_microbatches(x);
	end_loop(x);
	for (int32_t i = 0; i < s->n_stages * s->n_rounds && status == SW_OK; i++)
		status = run_entry_piece(x, &x->pieces->after[i]);
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static sw_status runner_init(stage_runner *x)
{
	const sw_stages *s = x->stages;
	const sw_program *p = s->program;
	sw_interpret_options options = {.blas_threads = 1};
	sw_status status = SW_OK;
	sw_arena_init(&x->arena);
	x->inner = sw_op_at(p, p->computations.data[s->body].parameters.data[0])->first_result;
	x->passes = SW_NEW_N(&x->arena, sw_interpreter *, s->n_virtual);
	x->entry = SW_NEW_N(&x->arena, sw_tensor, p->values.len);
	x->carried = SW_NEW_N(&x->arena, sw_tensor *, s->n_virtual);
	x->sent = SW_NEW_N(&x->arena, sw_tensor *, s->n_microbatches);
	uint32_t n_elements = sw_op_at(p, s->loop)->n_operands;
	for (int32_t v = 0; v < s->n_virtual; v++)
		x->carried[v] = SW_NEW_N(&x->arena, sw_tensor, n_elements);
	x->counted = SW_NEW_N(&x->arena, sw_tensor **, s->n_stages);
	for (int32_t i = 0; i < s->n_stages; i++) {
		x->counted[i] = SW_NEW_N(&x->arena, sw_tensor *, s->n_microbatches + 1);
		for (int32_t j = 0; j <= s->n_microbatches; j++)
			x->counted[i][j] = SW_NEW_N(&x->arena, sw_tensor, n_elements);
	}
	for (int32_t j = 0; j < s->n_microbatches; j++)
		x->sent[j] = SW_NEW_N(&x->arena, sw_tensor, p->values.len);
	for (int32_t v = 0; v < s->n_virtual && status == SW_OK; v++)
		if (x->pieces->passes[v].program)
			status = sw_interpreter_new(x->pieces->passes[v].program, &options,
			                            &x->passes[v], x->err);
	return status;
}

static void drop_all(sw_tensor *tensors, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (tensors[i].buffer)
			sw_tensor_drop(&tensors[i]);
}

static void runner_clear(stage_runner *x)
{
	const sw_stages *s = x->stages;
	size_t n = s->program->values.len;
	drop_all(x->entry, n);
	for (int32_t j = 0; j < s->n_microbatches; j++)
		drop_all(x->sent[j], n);
	uint32_t n_elements = sw_op_at(s->program, s->loop)->n_operands;
	for (int32_t v = 0; v < s->n_virtual; v++) {
		drop_all(x->carried[v], n_elements);
		sw_interpreter_free(x->passes[v]);
	}
	for (int32_t i = 0; i < s->n_stages; i++)
		for (int32_t j = 0; j <= s->n_microbatches; j++)
			drop_all(x->counted[i][j], n_elements);
	sw_arena_clear(&x->arena);
}

static sw_status check_schedule(const sw_stages *s, const sw_pipeline_schedule *schedule,
                                sw_error *err)
{
	if (schedule->n_chains != 1 || schedule->n_stages != s->n_stages ||
	    schedule->n_microbatches != s->n_microbatches)
		return sw_fail(
			err, SW_ERR_INPUT,
			"a schedule of %d stages, %d microbatches and %d copies of the model; "
			"expected %d, %d and 1",
			schedule->n_stages, schedule->n_microbatches, schedule->n_chains,
			s->n_stages, s->n_microbatches);
	sw_status status = sw_pipeline_check(schedule, err);
	return status;
}

sw_status sw_stages_run(const sw_stage_pieces *pieces, const sw_pipeline_schedule *schedule,
                        const sw_tensor *inputs, sw_tensor *outputs, sw_error *err)
{
	stage_runner x = {.pieces = pieces, .stages = pieces->stages, .err = err};
	const sw_program *p = x.stages->program;
	const sw_id *values;
	sw_status status = check_schedule(x.stages, schedule, err);
	if (status)
		return status;
	sw_pipeline_schedule *own = sw_pipeline_without_transfers(schedule);
	x.schedule = own;
	status = runner_init(&x);
	uint32_t n = sw_program_inputs(p, p->entry, &x.arena, &values);
	for (uint32_t i = 0; i < n; i++)
		put(&x.entry[values[i]], sw_tensor_keep(inputs[i]));
	if (status == SW_OK)
		status = run_step(&x);
	for (size_t i = 0; i < sw_entry(p)->results.len && status == SW_OK; i++) {
		sw_tensor *at = &x.entry[sw_entry(p)->results.data[i]];
		if (!at->buffer)
			status =
				sw_fail(err, SW_ERR_INTERNAL, "stages: result %zu is not there", i);
		else
			outputs[i] = sw_tensor_keep(*at);
	}
	runner_clear(&x);
	sw_pipeline_free(own);
	return status;
}
