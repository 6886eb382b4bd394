/* objects: what shardwright.h has in its files' hands, and what its files share. */
#ifndef SW_LIBRARY_OBJECTS_H
#define SW_LIBRARY_OBJECTS_H

#include "call.h"
#include "pipelined/pipelined.h"

/* Objects are counted, since a plan uses the program and the cluster that it was made of, a run its
 * plan, and a call that is abandoned all that it was given. */
struct shardwright_program {
	_Atomic int uses;
	char *path;
	sw_program *program;
	sw_sidecar sidecar;
};
struct shardwright_cluster {
	_Atomic int uses;
	sw_cluster cluster;
};
struct shardwright_plan {
	_Atomic int uses;
	sw_plan *plan; /* NULL: one with stages */
	sw_pipelined *stages;
	const sw_sidecar *sidecar;
	/* of a plan that was made: what it was made of */
	shardwright_program *program;
	shardwright_cluster *cluster;
	/* of one that was read */
	sw_cluster own_cluster;
	sw_sidecar own_sidecar;
};

/* Return copies; *failed: memory was refused. NULL is copied to NULL. */
char *library_copy(const char *string, bool *failed);
char **library_copy_options(const char *const *options, bool *failed);
void library_free_options(char **options);
/* What is required is there; a mistake of the caller in words. */
bool library_given(bool ok, shardwright_error *error);
/* Cut "NAME=VALUE" in two and return the value. SW_ERR_INPUT: it has no =, as `such_as` has. */
sw_status library_cut_option(char *option, const char *such_as, char **value, sw_error *err);
/* Read a program and its sidecar; nothing stays after an error. */
sw_status library_load_program(const char *path, sw_program **program, sw_sidecar *sidecar,
                               sw_error *err);

#endif
