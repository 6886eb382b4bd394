/*
 * placer: what the steps of a placement share (placement.c), for one computation after the other.
 */
#ifndef SW_INTERPRET_PLACER_H
#define SW_INTERPRET_PLACER_H

#include "interpret/placement.h"

#define SW_FOREVER INT32_MAX
#define SW_NO_BUFFER UINT32_MAX

/* A buffer holds one equivalence class of values at a time. */
typedef struct sw_place_buffer {
	sw_place place;
	int64_t bytes;
	int32_t begin, end;
	/* the buffer is reserved from this program point on: an earlier occupant must be dead by
	 * then */
	int32_t reserved;
	sw_id occupant; /* the last class that was assigned to the buffer */
	bool copied_to; /* a result is copied to it at the end */
} sw_place_buffer;

/* Result `result` is copied to buffer `to` at the end, by way of the buffer `staging` unless that
 * is SW_NO_BUFFER. */
typedef struct sw_pending_copy {
	uint32_t result, to, staging;
} sw_pending_copy;

typedef struct sw_placer {
	const sw_program *program;
	/* the entry's frame is not packed more tightly than this; 0: pack as tightly as possible */
	int64_t enough_bytes;
	struct sw_places *places;
	bool is_run; /* the interpreter will run it, whosever kernels the program is written for */
	sw_arena arena;
	bool *dense; /* per value: a reader needs all of its elements, not a splat */
	/* per value: its class, named by the first value that has the buffer */
	sw_id *class;
	int32_t *first; /* per class: the program point at which it is written */
	/* per class: the last point at which it is read; SW_FOREVER: it stays live */
	int32_t *last;
	/* per input: the last point at which it is read, even if it stays live */
	int32_t *read;
	uint32_t *buffer_of;   /* per class: its buffer, or SW_NO_BUFFER */
	sw_aliasing *aliasing; /* per op */
	/* per op that runs tile by tile: sw_tile_over; NULL: it was not asked for yet */
	const uint64_t **over;
	bool *is_target;       /* per value: an input whose buffer a result must end up in */
	/* of the current computation: */
	SW_VEC(sw_place_buffer) buffers;
	SW_VEC(sw_pending_copy) copies_back;
	int32_t end; /* the program point after the last op */
	sw_map constants;
} sw_placer;

static inline int64_t *sw_placer_bytes_of(sw_placer *p, sw_id value)
{
	return &p->places->values[value].bytes;
}

static inline bool sw_placer_in_entry(const sw_placer *p, const sw_computation *c)
{
	return c == &p->program->computations.data[p->program->entry];
}

/* ---- buffer_classes.c ------------------------------------------------------------------- */

void sw_placer_init(sw_placer *p, const sw_program *program, struct sw_places *places);
void sw_placer_clear(sw_placer *p);
/* Are the kernels not the interpreter's? (sw_program.library_kernels) */
bool sw_placer_is_foreign(const sw_placer *p);
/* Note the op's aliasing and return its workspace in bytes; 0 for a region. */
int64_t sw_placer_kernel(sw_placer *p, sw_id id);
/* Return true if the kernel of an analysed op may write result i over operand k (see
 * sw_kernel_may_overwrite). */
bool sw_placer_kernel_may_overwrite(sw_placer *p, const sw_op *op, uint32_t i, uint32_t k);
/* Find the classes of a computation and their live ranges; its ops must be analysed. */
void sw_placer_trace(sw_placer *p, const sw_computation *c);

/* ---- placement.c ------------------------------------------------------------------------ */

/* Give the class a buffer of its own. */
void sw_placer_add_buffer(sw_placer *p, sw_id class, sw_place place);

/* ---- result_places.c -------------------------------------------------------------------- */

/* Return true if result i of op may be written over operand k, which is dead afterwards. */
bool sw_placer_may_overwrite(sw_placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i,
                             uint32_t k);
/* Return per result the input whose buffer it must end up in, SW_NO_ID: none. */
sw_id *sw_placer_targets(sw_placer *p, const sw_computation *c);
/* Inputs that are not the target of a result keep their contents: they stay live. */
void sw_placer_keep_inputs(sw_placer *p, const sw_computation *c, const sw_id *targets);
/* Place each result in its target, or where the caller provides, or copy it there at the end. */
void sw_placer_place_results(sw_placer *p, const sw_computation *c, const sw_id *targets);
/* Match results with inputs: each result gets at most one input, each input at most one result. */
void sw_placer_allow_callers(sw_placer *p, const sw_computation *c, sw_frame_plan *frame);

/* ---- frame_packing.c -------------------------------------------------------------------- */

/* Pack the buffers and workspaces of a computation, and note who is there at the peak. */
void sw_placer_pack(sw_placer *p, const sw_computation *c, sw_frame_plan *frame);
/* Write down the places of all values and the copies at the end. */
void sw_placer_note_places(sw_placer *p, const sw_computation *c, sw_frame_plan *frame);

#endif
