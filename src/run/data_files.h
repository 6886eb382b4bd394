/*
 * data_files: the files that an option such as --data names, for the inputs of a program.
 */
#ifndef SW_RUN_DATA_FILES_H
#define SW_RUN_DATA_FILES_H

#include "run/run.h"

typedef struct sw_data_files {
	sw_data tokens;
	bool has_tokens;
	sw_arrays *arrays; /* NULL: none */
} sw_data_files;

/* Open the files that the words of an option name: FILE for the token input, NAME=FILE for the data
 * input of that name; a word without a name behind it is another file of that input. Zeroed files
 * have nothing open; close them in any case. SW_ERR_INPUT, with the option: there is no such input. */
sw_status sw_data_files_open(const sw_program *serial, const sw_sidecar *sidecar, const char *option,
                             const char *const *words, size_t n, sw_data_files *files,
                             sw_error *err);
void sw_data_files_close(sw_data_files *files);
/* The tokens; NULL: there are none. */
const sw_data *sw_data_files_tokens(const sw_data_files *files);
/* Return the tokens of a step, 0: the program has no input for them. */
int64_t sw_step_tokens(const sw_program *serial, const sw_sidecar *sidecar);

#endif
