/* Do all ranks train the same? */
#include <string.h>
#include <sys/stat.h>

#include "run/trainer.h"

static uint64_t hash_fill(sw_fill fill, uint64_t hash)
{
	const double numbers[] = {(double)fill.kind, fill.a, fill.b};
	hash = sw_hash_bytes(fill.values, (size_t)fill.n_values * sizeof(*fill.values), hash);
	return sw_hash_bytes(numbers, sizeof(numbers), hash);
}

/* Hash what a run takes from the sidecar: how inputs begin, and which are tokens or the loss. */
static uint64_t hash_sidecar(const sw_sidecar *sidecar)
{
	uint64_t hash = sw_hash_u64((uint64_t)sidecar->tokens_input, (uint64_t)sidecar->vocabulary);
	for (uint32_t i = 0; i < sidecar->n_inputs; i++) {
		const sw_input_info *input = &sidecar->inputs[i];
		hash = sw_hash_bytes(input->name, strlen(input->name), hash);
		hash = sw_hash_u64(hash_fill(input->init, hash), (uint64_t)input->role);
	}
	for (uint32_t i = 0; i < sidecar->n_outputs; i++)
		hash = sw_hash_u64(hash, (uint64_t)sidecar->outputs[i].role);
	return hash;
}

uint64_t trainer_hash_data(const sw_data *data, const sw_arrays *arrays)
{
	if (!data)
		return sw_arrays_hash(arrays);
	size_t tokens = (size_t)data->tokens;
	return data->values ? sw_hash_bytes(data->values, tokens * sizeof(*data->values), 1)
	                    : sw_hash_bytes(data->bytes, tokens, 2);
}

static uint64_t hash_eval(const sw_run_eval *eval)
{
	if (!eval)
		return 0;
	uint64_t hash = sw_hash_u64(sw_program_hash(eval->local), hash_sidecar(&eval->sidecar));
	hash = sw_hash_bytes(eval->state, eval->sidecar.n_inputs * sizeof(*eval->state), hash);
	hash = sw_hash_u64(hash, (uint64_t)eval->every);
	hash = sw_hash_u64(hash, (uint64_t)eval->batches);
	return sw_hash_u64(hash, trainer_hash_data(eval->data, eval->arrays));
}

/* What tells folders apart and is the same on all hosts that share one. */
static uint64_t folder_number(const char *path)
{
	struct stat info;
	return path && stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

sw_status trainer_check_same(const sw_program *scheduled, const sw_sidecar *sidecar,
                             const sw_data *data, const sw_run_options *options,
                             sw_transport *transport, sw_error *err)
{
	static const char *const words[] = {"plan",
	                                    "folder of --save",
	                                    "number of steps",
	                                    "seed",
	                                    "sidecar",
	                                    "contents of --data",
	                                    "options of the run",
	                                    "contents of --load",
	                                    "program, data or options of --eval"};
	uint64_t flags = (uint64_t)options->paced | (uint64_t)options->tune << 1 |
	                 (uint64_t)(options->trace != NULL) << 2 |
	                 (uint64_t)options->check_nan << 63 | (uint64_t)options->signal << 62 |
	                 (uint64_t)(options->save != NULL) << 3 |
	                 ((uint64_t)options->save_every << 4 ^ (uint64_t)options->save_keep << 34);
	uint64_t mine[] = {sw_program_hash(scheduled),
	                   folder_number(options->save),
	                   (uint64_t)options->steps,
	                   options->seed,
	                   hash_sidecar(sidecar),
	                   trainer_hash_data(data, options->arrays),
	                   sw_hash_u64(flags, (uint64_t)options->servers),
	                   sw_checkpoint_hash(options->start),
	                   hash_eval(options->eval)};
	uint64_t first[SW_COUNT(mine)];
	memcpy(first, mine, sizeof(mine));
	sw_status status = transport->ops->broadcast(transport, 0, first, sizeof(first), err);
	if (status)
		return status;
	for (size_t i = 0; i < SW_COUNT(mine) && status == SW_OK; i++)
		if (first[i] != mine[i])
			status = sw_fail(err, SW_ERR_INPUT,
			                 "this rank and rank 0 differ in the %s: give all ranks "
			                 "the same",
			                 words[i]);
	return transport->ops->agree(transport, status, err);
}
