/*
 * placement: the places of values, in the form that the interpreter uses.
 *
 * A computation that runs as a whole has a FRAME: its values, the workspace of its ops and the
 * frames of the computations that they call, each at an offset in the frame. The frame of the entry
 * computation follows the constants. The frame of a called computation is the workspace of the op
 * that calls it (the largest frame, if there are several branches), so that it is laid out once for
 * all its callers. Two kinds of values are stored outside of the frame: an input stays in the
 * caller's buffer, and a result is written into the buffer that the caller provides. A loop body
 * carries values from one iteration to the next: its result i must end up in the buffer of its
 * input i; so must an output of the entry computation that is the new value of state. If a result
 * cannot be computed there, it is copied back at the end.
 */
#ifndef SW_INTERPRET_PLACEMENT_H
#define SW_INTERPRET_PLACEMENT_H

#include "interpret/kernel.h"

typedef enum sw_place_kind {
	SW_PLACE_FRAME,    /* at offset `at` of the frame */
	SW_PLACE_INPUT,    /* in the buffer of input `at` */
	SW_PLACE_RESULT,   /* in the caller's buffer for result `at` */
	SW_PLACE_CONSTANT, /* at offset `at` of the arena, for the whole run */
} sw_place_kind;

typedef struct sw_place {
	sw_place_kind kind;
	int64_t at;
	int64_t bytes; /* of one element if the value is a splat */
} sw_place;

/* A result that is copied to its final place at the end of a computation; if `staging` is not -1,
 * by way of a staging buffer at that offset of the frame. */
typedef struct sw_copy_back {
	uint32_t result;
	int64_t staging;
	sw_place to;
} sw_copy_back;

/* A resident of a frame at the program point where its live bytes peak. */
typedef struct sw_frame_resident {
	sw_id id; /* value; for workspace the op; SW_NO_ID: a staging buffer */
	bool working;
	int64_t bytes;
} sw_frame_resident;

typedef struct sw_frame_plan {
	bool placed, is_loop_body;
	uint32_t n_inputs;
	/* per result: the input whose buffer the caller may provide for it, -1: none */
	int64_t *aliased_input;
	int64_t bytes, live_bytes;
	sw_copy_back *copies_back;
	uint32_t n_copies_back;
	sw_id peak_op; /* the op at the peak of live bytes; SW_NO_ID: no ops */
	sw_frame_resident *residents;
	uint32_t n_residents;
} sw_frame_plan;

typedef struct sw_workspace {
	int64_t at, bytes;
} sw_workspace;

struct sw_places {
	sw_arena arena;
	sw_place *values;         /* per value; zero in computations without a frame */
	sw_workspace *workspaces; /* per op: workspace, in its computation's frame */
	sw_frame_plan *frames;    /* per computation */
	int64_t constant_bytes;
};

/* Of a program with owners, the device whose arena is largest, of the three kinds of devices whose
 * values are largest. Bytes as of sw_placement_bytes_near. (fullest_device.c) O(devices * sets of
 * owners), and a program for each kind of device. */
typedef struct sw_fullest {
	int64_t device, arena_bytes;
} sw_fullest;
sw_fullest sw_fullest_device(const sw_program *program, int64_t enough_bytes);

#endif
