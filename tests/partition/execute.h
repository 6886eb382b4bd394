/* Run programs on one device and on in-process ranks, for the tests of partition. */
#ifndef SW_TESTS_PARTITION_EXECUTE_H
#define SW_TESTS_PARTITION_EXECUTE_H

#include "test.h"

#include "interpret/interpret.h"
#include "partition/partition.h"

/* Fail the test with the error's place and message. */
void check(sw_status status, const sw_error *err);

/* Make a cluster whose levels have these counts, outermost first ("2,3": atoms 2 and 3; "[1, 4]":
 * unequal parts). */
void make_cluster(const char *counts, sw_cluster *cluster);

/* Takes ownership of the inputs; the outputs are new. */
void execute_serial(const sw_program *program, sw_tensor *inputs, uint32_t n_inputs,
                    sw_tensor *outputs);

typedef struct execution {
	int64_t n_devices, payload_bytes; /* payload: of the rank that sends most */
	uint32_t n_outputs;
	sw_tensor *outputs; /* [device][output] */
	/* [device]: what each ran of the program; they have the shapes of the outputs */
	sw_program **programs;
} execution;
/* Run one rank per device, on threads. inputs: [device][input], ownership taken. */
void execute(const sw_program *local, int64_t n_devices, sw_tensor *inputs, uint32_t n_inputs,
             execution *e);
void execution_clear(execution *e);

#endif
