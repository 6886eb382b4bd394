/*
 * saved: checkpoints as files, of no plan.
 *
 * A checkpoint is a safetensors file of whole arrays, or a folder with an index
 * (model.safetensors.index.json, in the form of Hugging Face) and safetensors files, each with
 * the parts that one rank wrote. An index of others, with whole arrays in several files, is read
 * as well. docs/formats.md describes them. Files are mapped: only what is used is read.
 */
#ifndef SW_RUN_SAVED_H
#define SW_RUN_SAVED_H

#include <inttypes.h>
#include <stdatomic.h>

#include "interpret/interpret.h"
#include "run/part_grid.h"

/* The folder of --save has one folder of this name per checkpoint. */
#define SW_CHECKPOINT_NAME "step-%" PRId64
/* A folder that has this file is a checkpoint. */
#define SW_CHECKPOINT_INDEX "model.safetensors.index.json"

/* A part of a tensor, where it lies. */
typedef struct sw_saved_part {
	uint32_t file;
	const char *data; /* in the file's mapping */
	const sw_part_grid *grid;
	int32_t coordinates[SW_MAX_ATOMS];
	int64_t dims[SW_MAX_RANK];
	sw_grid_piece piece;
} sw_saved_part;
typedef struct sw_saved_tensor {
	const char *name;
	sw_shape shape; /* of the whole */
	size_t n_parts; /* those without elements are left out */
	sw_saved_part *parts;
} sw_saved_tensor;
typedef struct sw_saved_file {
	const char *path;
	sw_mapping mapping;
	sw_tensor_places places;
	uint64_t hash;      /* of the tensors' bytes, as the index says; 0: not known */
	atomic_bool *whole; /* that has been seen to be their hash */
} sw_saved_file;

/* Where the value of an input is: in a tensor (NULL: it is data, or not in the file), of which it
 * may be a piece. */
typedef struct sw_saved_input {
	const sw_saved_tensor *tensor;
	sw_grid_piece piece;
} sw_saved_input;

/* The state of training after `step` steps. A file of another program, without a step, is of step
 * 0: initial values. */
typedef struct sw_checkpoint {
	sw_arena arena;
	SW_VEC(sw_saved_file) files;
	SW_VEC(sw_saved_tensor) tensors;
	sw_map names; /* of tensors */
	bool has_step;
	int64_t step;
	uint64_t seed;                 /* of the run that wrote it; 0 if the file has no step */
	uint64_t plan_hash, data_hash; /* likewise; 0: not known */
	sw_saved_input *inputs;        /* after sw_checkpoint_open, per input */
	/* inputs that outlast a step and are not there: of a file without a step, or of codecs */
	uint32_t n_missing;
	uint32_t n_left_out; /* tensors of codecs for which the program has no place */
} sw_checkpoint;

/* Read the header of a file, or an index and the headers of its files, and check that each tensor
 * has all its elements once. Errors are SW_ERR_INPUT and name the file. O(parts log parts). */
sw_status sw_checkpoint_read(const char *path, sw_checkpoint *checkpoint, sw_error *err);
void sw_checkpoint_close(sw_checkpoint *checkpoint);
/* Find the newest whole checkpoint in a folder of --save; *step is -1 if there is none. */
sw_status sw_checkpoint_newest(const char *folder, int64_t *step, sw_error *err);
/* Where the path is a folder of several checkpoints, add the path of the newest one to the text; else
 * nothing. */
sw_status sw_checkpoint_newest_of(const char *path, sw_text *newest, sw_error *err);
/* Compare the contents of a file, or of all files, with the hashes of the index, once; O(bytes). */
sw_status sw_saved_check_file(const sw_saved_file *file, sw_error *err);
sw_status sw_checkpoint_check_contents(const sw_checkpoint *checkpoint, sw_error *err);
/* Return the tensor of this name; NULL if there is none. */
const sw_saved_tensor *sw_checkpoint_get(const sw_checkpoint *checkpoint, const char *name);
/* Copy the whole tensor to `out`. */
void sw_saved_whole(const sw_saved_tensor *tensor, char *out);
/* Write all tensors, whole, to one file, all or nothing. Holds all of them in memory. */
sw_status sw_checkpoint_join(const sw_checkpoint *checkpoint, const char *path, sw_error *err);

/* Return a hash of a file's length, its beginning and pieces of the rest, for files too large to be
 * read whole. */
uint64_t sw_mapping_sample(const sw_mapping *mapping, uint64_t hash);

/* What a checkpoint says of the run that wrote it. */
typedef struct sw_checkpoint_about {
	int64_t step; /* steps done in all */
	uint64_t seed, plan_hash, data_hash;
} sw_checkpoint_about;
/* Return the texts of __metadata__ and of an index; owned by the caller. */
json_t *sw_checkpoint_metadata(const sw_checkpoint_about *about);
#endif
