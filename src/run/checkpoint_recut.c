/* A checkpoint cut anew for another plan, in one process. */
#include <stdlib.h>

#include "run/checkpoint.h"

typedef struct recut {
	const sw_checkpoint *checkpoint;
	const sw_parts *parts;
	const sw_sidecar *sidecar;
	sw_tensor *carried; /* per input: a rank's part */
} recut;

static sw_status cut_rank(const recut *r, int64_t rank, sw_error *err)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < r->parts->n_inputs; i++) {
		if (!r->checkpoint->values[i])
			continue;
		sw_shape shape = sw_value_shape(r->parts->local, r->parts->local_inputs[i]);
		SW_TRY(sw_tensor_new(shape, false, &r->carried[i], err));
		sw_held_value value = sw_held_part(r->parts, i);
		sw_checkpoint_cut(r->checkpoint, &value, rank, &r->carried[i], &bytes);
	}
	return SW_OK;
}

static sw_status write_ranks(const recut *r, const sw_saving *s, const sw_checkpoint_folder *folder,
                             sw_error *err)
{
	SW_TRY(sw_folder_begin(folder, s->about.step, err));
	uint64_t *hashes = sw_alloc((size_t)s->n_ranks * sizeof(*hashes));
	sw_status status = SW_OK;
	for (int64_t rank = 0; rank < s->n_ranks && status == SW_OK; rank++) {
		status = cut_rank(r, rank, err);
		if (status == SW_OK)
			status = sw_saving_write(s, rank, r->carried, folder->path, &hashes[rank],
			                         err);
		sw_tensors_drop(r->carried, r->parts->n_inputs);
	}
	if (status == SW_OK)
		status = sw_saving_finish(s, folder, hashes, err);
	free(hashes);
	return status;
}

static sw_status check_complete(const recut *r, const sw_saving *s, sw_error *err)
{
	if (!r->checkpoint->n_missing)
		return sw_saving_check(s, err);
	return sw_fail_at(err, SW_ERR_INPUT, r->checkpoint->files.data[0].path, 0, 0,
	                  "it lacks %u inputs of the program's state", r->checkpoint->n_missing);
}

static sw_status write_locked(const recut *r, const sw_saving *s, const char *path, sw_error *err)
{
	sw_checkpoint_folder folder;
	SW_TRY(check_complete(r, s, err));
	SW_TRY(sw_folder_open(&folder, path, 0, err));
	sw_status status = write_ranks(r, s, &folder, err);
	sw_folder_close(&folder);
	return status;
}

sw_status sw_checkpoint_recut(const sw_checkpoint *checkpoint, const sw_plan *plan,
                              const sw_sidecar *sidecar, const char *folder, sw_error *err)
{
	sw_program *local = NULL;
	sw_parts parts;
	SW_TRY(sw_ranks_program(plan, SW_OVERLAP_ALL, &local, err));
	sw_parts_init(&parts, plan, local);
	recut r = {checkpoint, &parts, sidecar,
	           sw_alloc((parts.n_inputs + 1) * sizeof(*r.carried))};
	sw_saving s = {.n_ranks = plan->cluster->n_devices,
	               .about = {checkpoint->step, checkpoint->seed, sw_program_hash(local),
	                         checkpoint->data_hash}};
	sw_saving_add_parts(&s, &parts, sidecar);
	sw_status status = write_locked(&r, &s, folder, err);
	sw_saving_clear(&s);
	free(r.carried);
	sw_parts_clear(&parts);
	sw_program_free(local);
	return status;
}
