/*
 * placement: where each value lies, and what the interpreter goes by.
 *
 * A computation that runs as a whole has a FRAME: its values, its ops' working space and the frames
 * of what it calls, at offsets of its own. The frame of the entry begins behind the constants; that
 * of a called computation is the working space of the op that calls it (the largest, where they are
 * alternatives), so that it is laid out once, wherever it is called from. Two kinds of values lie
 * outside of it: what comes in lies where the caller has it, and what goes out is written where the
 * caller wants it. A loop's body carries: its result i must end up in its input i; so must an
 * output of the entry that is state. Where that can't be, it is copied at the end.
 */
#ifndef SW_INTERPRET_PLACEMENT_H
#define SW_INTERPRET_PLACEMENT_H

#include "interpret/kernel.h"

typedef enum sw_place_kind {
	SW_PLACE_FRAME,    /* at .. of the frame */
	SW_PLACE_INPUT,    /* in the buffer of input .. */
	SW_PLACE_RESULT,   /* in the buffer that the caller has for result .. */
	SW_PLACE_CONSTANT, /* at .. of the arena, all the time */
} sw_place_kind;

typedef struct sw_equivalence_key {
	sw_place_kind kind;
	int64_t at;
	int64_t bytes; /* of one element where it is a splat */
} sw_equivalence_key;

/* Copied at the end of a computation, by way of `stage` (an offset in the frame) if that isn't -1.
 */
typedef struct sw_homing {
	uint32_t result;
	int64_t stage;
	sw_equivalence_key to;
} sw_homing;

/* What fills a frame at the point when most of it is in use. */
typedef struct sw_frame_resident {
	sw_id id; /* value; of working space the op; SW_NO_ID: an output on its way home */
	bool working;
	int64_t bytes;
} sw_frame_resident;

typedef struct sw_frame_plan {
	bool placed, carries;
	uint32_t n_inputs;
	int64_t *over; /* per result: the input whose buffer the caller may give for it, -1: none */
	int64_t bytes, live_bytes;
	sw_homing *homings;
	uint32_t n_homings;
	sw_id fullest; /* the op at that point; SW_NO_ID: there is none at all */
	sw_frame_resident *residents;
	uint32_t n_residents;
} sw_frame_plan;

typedef struct sw_workspace {
	int64_t at, bytes;
} sw_workspace;

struct sw_places {
	sw_arena arena;
	sw_equivalence_key *values; /* per value; those of computations without a frame are zero */
	sw_workspace *rooms;        /* per op: working space, in its computation's frame */
	sw_frame_plan *frames;      /* per computation */
	int64_t constant_bytes;
};

#endif
