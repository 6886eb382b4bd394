/* checkpoint: functions of the files that read and write checkpoints. Private to src/run. */
#ifndef SW_RUN_CHECKPOINT_H
#define SW_RUN_CHECKPOINT_H

#include "run/ranks.h"
#include "run/saved.h"


/* ---- reading: saved.c, saved_index.c ---------------------------------------------------- */

/* Add a file, or one of its tensors as a whole one, to a checkpoint that is being read. */
sw_status sw_saved_open_file(sw_checkpoint *c, const char *path, sw_error *err);
void sw_saved_add_whole(sw_checkpoint *c, uint32_t file, const sw_tensor_place *place);
/* Read a number that is written as a text. */
bool sw_saved_number(const json_t *metadata, const char *key, uint64_t most, uint64_t *number);
sw_status sw_saved_metadata(const json_t *metadata, sw_checkpoint *c, sw_error *err);
sw_status sw_saved_read_index(const char *folder, const char *path, sw_checkpoint *c,
                              sw_error *err);
/* The hash that an index has of a file: of the bytes of its tensors, in the order of its header. */
uint64_t sw_saved_hash_add(uint64_t hash, const char *data, size_t bytes);

/* ---- a program's state ------------------------------------------------------------------ */

/* Return a hash of what is saved, the step and the seed; 0 for NULL. Of files without hashes of
 * their contents it takes the header and some of the data. */
uint64_t sw_checkpoint_hash(const sw_checkpoint *checkpoint);
/* Copy a rank's part of a value into `tensor`, which has the part's shape; padding becomes zeros.
 * Adds to *bytes what was read. Of a file that anything is read of all contents are checked once. */
sw_status sw_checkpoint_cut(const sw_checkpoint *checkpoint, const sw_held_value *value,
                            int64_t rank, const sw_tensor *tensor, int64_t *bytes, sw_error *err);

/* The folder of --save: rank 0 alone changes it. */
typedef struct sw_checkpoint_folder {
	const char *path;
	int64_t keep; /* how many checkpoints stay; 0: all */
	int lock;     /* descriptor of the locked folder, -1: none */
} sw_checkpoint_folder;
/* Lock the folder against other runs, and remove what a run that was killed has left. */
sw_status sw_folder_open(sw_checkpoint_folder *folder, const char *path, int64_t keep,
                         sw_error *err);
void sw_folder_close(sw_checkpoint_folder *folder);
/* Make the folder of a checkpoint that is being written, empty. */
sw_status sw_folder_begin(const sw_checkpoint_folder *folder, int64_t step, sw_error *err);
/* Append the path of a file in it. */
void sw_folder_add_part(const char *path, int64_t step, const char *name, sw_text *text);
/* Make what was begun the checkpoint of its step, and remove those that are too many. */
sw_status sw_folder_finish(const sw_checkpoint_folder *folder, int64_t step, sw_error *err);

/* How a state is saved in parts. */
typedef struct sw_saving {
	SW_VEC(struct sw_saved_value {
		sw_held_value held;
		const char *name;
		const sw_fill_part *part; /* of what the input is one, or NULL */
	})
	values;
	int64_t n_ranks;
	sw_checkpoint_about about;
	double total_bytes; /* of all values, whole */
} sw_saving;
/* Add the value of the input that this describes, which must outlive the list. */
void sw_saving_add(sw_saving *s, const sw_held_value *value, const sw_input_info *info);
/* Add all values that are kept. */
void sw_saving_add_parts(sw_saving *s, const sw_parts *parts, const sw_sidecar *sidecar);
void sw_saving_clear(sw_saving *s);
/* Return SW_ERR_INPUT if a value has a type that safetensors cannot say. */
sw_status sw_saving_check(const sw_saving *s, sw_error *err);
/* Write the file of one rank, from its part of each value in `carried`, by inputs, into what
 * sw_folder_begin made; *hash is that of its contents. */
sw_status sw_saving_write(const sw_saving *s, int64_t rank, const sw_tensor *carried,
                          const char *folder, uint64_t *hash, sw_error *err);
/* Once all ranks have written, write the index, with a hash per rank, and put all in place. */
sw_status sw_saving_finish(const sw_saving *s, const sw_checkpoint_folder *folder,
                           const uint64_t *hashes, sw_error *err);

/* Write the checkpoint of s->about.step; collective. Each rank writes one file of its parts of the
 * values in `carried`, one value per part of an input among the devices that hold it; the folder
 * is then put in place as a whole. `folder` is used on rank 0 alone, but for its path. The traffic
 * is not counted. */
sw_status sw_checkpoint_save(const sw_saving *s, sw_transport *transport, const sw_tensor *carried,
                             const sw_checkpoint_folder *folder, sw_error *err);

#endif
