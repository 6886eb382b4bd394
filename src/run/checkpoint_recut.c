/* A checkpoint cut anew for another plan, in one process. */
#include <stdlib.h>

#include "run/run_stages.h"
#include "run/stage_state.h"

typedef struct recut {
	const sw_checkpoint *checkpoint;
	const sw_parts *parts; /* NULL: of a plan with stages, which pads nothing */
	const sw_saving *saving;
	uint32_t n_inputs;
	sw_tensor *carried; /* per input: a rank's part */
	int64_t (*dims)[SW_MAX_RANK]; /* of them, with stages */
} recut;

/* The shape of a rank's part. */
static sw_shape part_shape(const recut *r, const sw_held_value *value)
{
	if (r->parts)
		return sw_value_shape(r->parts->local, r->parts->local_inputs[value->input]);
	sw_shape shape = value->shape;
	sw_layout_local_dims(value->atoms, shape, value->layout, r->dims[value->input]);
	shape.dims = r->dims[value->input];
	return shape;
}

static sw_status cut_rank(const recut *r, int64_t rank, sw_error *err)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < r->saving->values.len; i++) {
		const sw_held_value *value = &r->saving->values.data[i].held;
		sw_tensor *part = &r->carried[value->input];
		if (rank < value->first || rank >= value->first + sw_atoms_devices(value->atoms))
			continue;
		SW_TRY(sw_tensor_new(part_shape(r, value), false, part, err));
		SW_TRY(sw_checkpoint_cut(r->checkpoint, value, rank, part, &bytes, err));
	}
	return SW_OK;
}

static sw_status write_ranks(const recut *r, const sw_checkpoint_folder *folder, sw_error *err)
{
	const sw_saving *s = r->saving;
	SW_TRY(sw_folder_begin(folder, s->about.step, err));
	uint64_t *hashes = sw_alloc((size_t)s->n_ranks * sizeof(*hashes));
	sw_status status = SW_OK;
	for (int64_t rank = 0; rank < s->n_ranks && status == SW_OK; rank++) {
		status = cut_rank(r, rank, err);
		if (status == SW_OK)
			status = sw_saving_write(s, rank, r->carried, folder->path, &hashes[rank],
			                         err);
		sw_tensors_drop(r->carried, r->n_inputs);
	}
	if (status == SW_OK)
		status = sw_saving_finish(s, folder, hashes, err);
	free(hashes);
	return status;
}

static sw_status check_complete(const recut *r, sw_error *err)
{
	if (!r->checkpoint->n_missing)
		return sw_saving_check(r->saving, err);
	return sw_fail_at(err, SW_ERR_INPUT, r->checkpoint->files.data[0].path, 0, 0,
	                  "it lacks %u inputs of the program's state", r->checkpoint->n_missing);
}

static sw_status write_locked(recut *r, const char *path, sw_error *err)
{
	sw_checkpoint_folder folder;
	SW_TRY(check_complete(r, err));
	SW_TRY(sw_folder_open(&folder, path, 0, err));
	r->carried = sw_alloc((r->n_inputs + 1) * sizeof(*r->carried));
	r->dims = sw_alloc((r->n_inputs + 1) * sizeof(*r->dims));
	sw_status status = write_ranks(r, &folder, err);
	free(r->carried);
	free(r->dims);
	sw_folder_close(&folder);
	return status;
}

/* All but the plan's hash. */
static sw_checkpoint_about about_of(const sw_checkpoint *checkpoint)
{
	return (sw_checkpoint_about){.step = checkpoint->step,
	                             .seed = checkpoint->seed,
	                             .data_hash = checkpoint->data_hash};
}

sw_status sw_checkpoint_recut(const sw_checkpoint *checkpoint, const sw_plan *plan,
                              const sw_sidecar *sidecar, const char *folder, sw_error *err)
{
	sw_program *local = NULL;
	sw_parts parts;
	SW_TRY(sw_ranks_program(plan, SW_OVERLAP_ALL, &local, err));
	sw_parts_init(&parts, plan, local);
	sw_saving s = {.n_ranks = plan->cluster->n_devices, .about = about_of(checkpoint)};
	s.about.plan_hash = sw_program_hash(local);
	recut r = {checkpoint, &parts, &s, parts.n_inputs, NULL, NULL};
	sw_saving_add_parts(&s, &parts, sidecar);
	sw_status status = write_locked(&r, folder, err);
	sw_saving_clear(&s);
	sw_parts_clear(&parts);
	sw_program_free(local);
	return status;
}

sw_status sw_checkpoint_recut_stages(const sw_checkpoint *checkpoint, const sw_pipelined *plan,
                                     const sw_sidecar *sidecar, const char *folder, sw_error *err)
{
	sw_stage_programs programs;
	sw_saving s = {.about = about_of(checkpoint)};
	SW_TRY(sw_stage_programs_init(&programs, plan, err));
	recut r = {checkpoint, NULL, &s, programs.n_inputs, NULL, NULL};
	sw_status status = stage_state_saving(&programs, sidecar, &s, err);
	if (status == SW_OK)
		status = write_locked(&r, folder, err);
	sw_saving_clear(&s);
	sw_stage_programs_clear(&programs);
	return status;
}
