/*
 * tile: run the ops of a fusion tile by tile, so that what one op hands to the next stays in the
 * cache and has no buffer. Private to src/interpret.
 *
 * 1. Dimensions (tile_dims.c). The dimensions of all values are cut into ATOMS such that ops relate
 *    atoms to atoms: an elementwise op gives its result the atoms of its operands, a reshape
 *    neither moves nor merges an atom. So a tile is a range of some atoms, and all of the others.
 * 2. Boxes (tile_variables.c, tile_plan.c). Some atoms become VARIABLES, which the loop over tiles
 * steps through. From the results back, each value gets the box that its readers need, as a
 * function of the variables: a box moves through slices and pads, and is the hull of what several
 * readers need.
 * 3. Stages. What does not depend on the variables is computed BEFORE the loop; a reduction over a
 *    variable is accumulated by the tiles, and its readers are computed AFTER the loop. If a reader
 *    of such a reduction is needed within the loop, its atoms can't be variables: they are whole in
 *    every tile (the row of a softmax).
 * 4. Running (tile_run.c, tile_steps.c, tile_reduce.c). The tiles are cut into chunks that depend
 * on the shapes only; the threads take chunks. Each chunk has accumulators of its own, which are
 * merged in their order: results are the same for any number of threads.
 */
#ifndef SW_INTERPRET_TILE_H
#define SW_INTERPRET_TILE_H

#include "interpret/kernel.h"
#include "interpret/reduce_loops.h"

enum {
	SW_TILE_VARIABLES = 8,
	SW_TILE_RANK = 12, /* atoms of a value */
	/* elements of the largest value that a tile holds: 32 KiB of f32, not measured against
	 * other sizes yet */
	SW_TILE_ELEMENTS = 8192,
	SW_TILE_CHUNKS = 16, /* parts of a loop that has accumulators */
};
/* A tile's values may take this much, else the fusion runs op by op in a frame. */
#define SW_TILE_BYTES (INT64_C(1) << 20)
/* ... and so may what is computed before the loop. */
#define SW_TILE_SHARED_BYTES (INT64_C(1) << 18)

/* How an index along a dimension of an operand follows from that of the result:
 * slope * index(to) + offset. FULL: all of them are read; FIXED: the one at `offset`. */
enum { SW_AXIS_FULL = -1, SW_AXIS_FIXED = -2 };
typedef struct sw_tile_axis {
	int32_t to;
	int64_t slope, offset;
} sw_tile_axis;

/* A range of indices: [low, high) if variable is -1. Otherwise, in the tile [begin, end) of the
 * variable, [slope * begin + low, slope * (end - 1) + high), or for a negative slope
 * [slope * (end - 1) + low, slope * begin + high). Clipped to the dimension. */
typedef struct sw_tile_range {
	int32_t variable;
	int64_t slope, low, high;
} sw_tile_range;

typedef enum sw_tile_stage {
	SW_STAGE_UNUSED,
	SW_STAGE_GIVEN,  /* operands of the fusion, constants, and views of them */
	SW_STAGE_BEFORE, /* once, before the loop */
	SW_STAGE_TILE,
	SW_STAGE_AFTER, /* once, after the loop */
} sw_tile_stage;

/* A value, by its dimensions in atoms; those of size 1 have none. */
typedef struct sw_tile_value {
	sw_type type;
	int32_t rank;
	int64_t *dims;
	int32_t *atoms;
	int32_t *first; /* per dimension of the value: its first atom; one more for the end */
	sw_tile_stage stage;
	bool read;          /* box is set */
	int32_t parameter;  /* the operand of the fusion that it is, or is a view of; -1: none */
	sw_tile_range *box; /* what is read of it; this is computed, unless it is given */
	int64_t *strides;   /* as it is stored, in elements */
	int64_t at, bytes;  /* of its storage; bytes == 0: none, it is a view */
	int32_t step;       /* that computes it */
	int32_t last;       /* the last step that reads it, also through views */
} sw_tile_value;

typedef enum sw_tile_kind {
	SW_TILE_GIVEN,
	SW_TILE_VIEW,
	SW_TILE_UNARY,
	SW_TILE_BINARY,
	SW_TILE_CONVERT,
	SW_TILE_SELECT,
	SW_TILE_CLAMP,
	SW_TILE_IOTA,
	SW_TILE_JOIN, /* pad, concatenate: parts beside each other */
	SW_TILE_REDUCE,
	SW_TILE_NONE, /* no kind: the op can't run so */
} sw_tile_kind;

/* Where an operand of a join lies in the result. */
typedef struct sw_tile_part {
	int64_t start, size;
} sw_tile_part;

typedef struct sw_tile_step {
	const sw_op *op;
	sw_tile_kind kind;
	bool live; /* a result needs it */
	uint32_t n_in;
	int32_t *in, out;      /* values, by their number in the fusion */
	sw_tile_axis **axes;   /* per operand that is read by box: per dimension */
	sw_tile_part **parts;  /* join: per operand: per dimension of the result */
	int64_t *copy_at;      /* per operand: place of a dense copy, -1: it is read as it lies */
	int64_t accumulate_at; /* reduce: place of the accumulators */
	int32_t accumulator;   /* reduce over variables: its number; -1: none */
	sw_plan_op plan;       /* inner loops */
} sw_tile_step;

typedef struct sw_tile_variable {
	int32_t atom;
	int64_t extent, size; /* of the atom, and of a tile */
} sw_tile_variable;

/* Accumulators of a reduction over variables: [chunks][elements of the result]. */
typedef struct sw_tile_accumulator {
	int32_t step;
	int64_t elements, at, stride; /* stride: bytes from one chunk to the next */
	/* variables that its operand does not have: only tiles at 0 of them are accumulated */
	bool lacks[SW_TILE_VARIABLES];
} sw_tile_accumulator;

typedef struct sw_tile_result {
	int32_t value;
	sw_tile_range *box; /* the part that a tile writes */
	/* variables that the result does not have: only tiles at 0 of them write it */
	bool lacks[SW_TILE_VARIABLES];
	uint64_t over; /* bit k: it may be written over operand k */
	bool direct;   /* the step may write into the result's buffer */
} sw_tile_result;

typedef struct sw_tile_plan {
	const sw_program *program;
	const sw_op *op;
	uint32_t n_values, n_steps, n_results, n_parameters;
	sw_tile_value *values;
	sw_tile_step *steps;
	sw_tile_result *results;
	int32_t *parameters; /* per operand of the fusion: its value */
	sw_tile_variable variables[SW_TILE_VARIABLES];
	int32_t n_variables;
	int64_t tiles, chunks;
	sw_tile_accumulator *accumulators;
	int32_t n_accumulators;
	/* bytes: of values outside of the loop, of all accumulators, and of one thread's tile */
	int64_t shared_bytes, accumulator_bytes, scratch_bytes;
	const char *refused; /* why it can't run so */
} sw_tile_plan;

/* Cut the dimensions into atoms and set `axes` and `parts`. False: plan->refused says why. */
bool sw_tile_find_dims(sw_tile_plan *plan, sw_arena *arena);
/* Set the places of all that a tile computes, and which results may lie over operands. False: a
 * tile is too large. */
bool sw_tile_lay_out(sw_tile_plan *plan, sw_arena *arena);
/* Return the most indices of a dimension of size n that a range has in any tile. */
int64_t sw_tile_most(const sw_tile_plan *plan, const sw_tile_range *r, int64_t n);
/* Make the plan of a fusion; NULL: it can't run tile by tile, and *why says why. O(ops * rank) for
 * each reduction that makes another choice of variables necessary. */
sw_tile_plan *sw_tile_plan_new(const sw_program *program, const sw_op *op, sw_arena *arena,
                               const char **why);

int64_t sw_tile_workspace_bytes(const sw_tile_plan *plan);

/* ---- running ---------------------------------------------------------------------------- */

/* A value in a tile: its box, and where its first element lies. */
typedef struct sw_tile_view {
	char *data;
	int64_t low[SW_TILE_RANK], n[SW_TILE_RANK], strides[SW_TILE_RANK];
} sw_tile_view;

/* What one thread works with. */
typedef struct sw_tile_worker {
	const sw_tile_plan *plan;
	sw_tile_view *views; /* per value */
	char *storage;       /* where slots of the current stage lie */
	char **direct;       /* per value: the result that it is written to; NULL: a slot */
	int64_t begin[SW_TILE_VARIABLES], end[SW_TILE_VARIABLES]; /* of the tile */
} sw_tile_worker;

/* Set low and n of a box in the worker's tile; return whether there is anything in it. */
bool sw_tile_box(const sw_tile_worker *w, const sw_tile_value *value, const sw_tile_range *box,
                 int64_t *low, int64_t *n);
/* Set the view of what a step computes, and compute it. */
void sw_tile_run_step(sw_tile_worker *w, const sw_tile_step *step);
void sw_tile_reduce(sw_tile_worker *w, const sw_tile_step *step);
/* The accumulators of one chunk take what the tile has. */
void sw_tile_accumulate(sw_tile_worker *w, const sw_tile_step *step, char *accumulators);
void sw_tile_dense_strides(int32_t rank, const int64_t *n, int64_t *strides);
/* Copy n[i] elements along each dimension. */
void sw_tile_copy(int32_t rank, const int64_t *n, sw_type type, const char *from,
                  const int64_t *from_strides, char *to, const int64_t *to_strides);
/* Copy the part of a result that a tile has to the result. */
void sw_tile_store(const sw_tile_worker *w, const sw_tile_result *r, const int64_t *low,
                   const int64_t *n, char *to);

#endif
