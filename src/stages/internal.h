/* internal: what the files of stages share. */
#ifndef SW_STAGES_INTERNAL_H
#define SW_STAGES_INTERNAL_H

#include "stages/stages.h"

typedef struct sw_position_span {
	int32_t first, last;
} sw_position_span;

/* What is known of the loop's body while stages are sought: first what holds for all cuts, without
 * `out`, `options` and seconds; then, in a copy with an arena of its own, what is of one cut. */
typedef struct sw_stage_finder {
	sw_stages *out;
	const sw_program *program;
	const sw_computation *body, *entry;
	const sw_op *loop;
	sw_arena arena; /* of this search */
	sw_stage_options options;
	int32_t n_stages; /* for which there must be positions */
	int32_t n_microbatches;
	sw_id inner;                    /* the first result of the body's parameter */
	uint32_t n_inner;               /* elements that the loop carries */
	bool *state_value, *data_value; /* per value: depends on an input of this kind */
	bool *state, *data;             /* per op of the body, likewise */
	bool *forward;                  /* per op of the body */
	int32_t *position;              /* per op of the body; -1: no flow */
	int32_t n_positions;
	const sw_id *ops; /* [n_positions]: the forward ops, by position */
	bool in_order;    /* they are in the order of the program */
	double *position_forward_s, *position_backward_s, *position_flops;
	int64_t *up_bytes, *down_bytes; /* of a cut behind a position: forward, and back */
	/* Per element of the loop that is a parameter: the positions from its first reader to its
	 * last one and its gradient's sum; last -1: it is none. */
	sw_position_span *parameters;
	uint32_t *gradient_of; /* per element: 1 + that of its gradient's sum; 0: none */
	int32_t longest_gradient; /* flow ops that the gradient with most of them needs */
} sw_stage_finder;

static inline const sw_op *sw_body_op(const sw_stage_finder *f, size_t i)
{
	return sw_op_at(f->program, f->body->ops.data[i]);
}
static inline sw_id sw_maker_of(const sw_program *program, sw_id value)
{
	return program->values.data[value].op;
}
static inline int64_t sw_bytes_of(const sw_stage_finder *f, sw_id value)
{
	return sw_shape_bytes(sw_value_shape(f->program, value));
}
/* Does the op of the body depend on state and on data? */
static inline bool sw_op_is_flow(const sw_stage_finder *f, sw_id op)
{
	return f->state[op] && f->data[op];
}
/* Is the value an element of the loop, as its body gets it? */
static inline bool sw_value_is_element(const sw_stage_finder *f, sw_id value)
{
	return value >= f->inner && value < f->inner + f->n_inner;
}
/* Is the element of the loop an import: whole, and the same in all iterations? */
bool sw_element_is_import(const sw_stage_finder *f, uint32_t element);

/* The steps of sw_stages_init, in order. The first three hold for all cuts. */
sw_status sw_stage_find_loop(sw_stage_finder *f, sw_error *err);
sw_status sw_stage_find_forward(sw_stage_finder *f, sw_error *err);
/* Set gradient_of, and return the numbers of the loop's elements that are gradients: sums of
 * tensors from which new state follows. The first n_long need at least half as many flow ops as the
 * one that needs most; the others are of parameters, and need nearly all parameters, as those of
 * the last layers do. Statistics of layers are neither. O(ops * elements / 64). */
uint32_t *sw_stage_find_gradients(sw_stage_finder *f, size_t *n, size_t *n_long);
/* Clear f->forward of each op that is not needed by all of these elements. O(ops * n / 64). */
void sw_stage_keep_common(sw_stage_finder *f, const uint32_t *exports, size_t n);
/* Set f->forward also of what only some gradients need, where a loss that the step reports needs it
 * and it reads parameters: heads of their own, of several losses. O(ops * losses / 64). */
void sw_stage_add_heads(sw_stage_finder *f);
/* Put f->ops, forward ops in the order of the program, into another order where parameters are then
 * read by ops that are nearer to each other by far. O(ops). */
void sw_stage_order_forward(sw_stage_finder *f, sw_id *ops);
void sw_stage_find_positions(sw_stage_finder *f);
/* Set the work at each position, by the seconds of the options. */
void sw_stage_add_work(sw_stage_finder *f);
sw_status sw_stage_cut(sw_stage_finder *f, sw_error *err);
void sw_stage_find_entry(sw_stage_finder *f);
/* What sw_stages_part_sums does once, with positions known. *out: NULL where there is no such sum. */
sw_status sw_stage_part_sums(const sw_stage_finder *f, sw_program **out, sw_error *err);

/* The first element of the loop, as its body gets it. */
static inline sw_id sw_stage_first_element(const sw_stages *s)
{
	const sw_computation *body = &s->program->computations.data[s->body];
	return sw_op_at(s->program, body->parameters.data[0])->first_result;
}
/* The op that computes the next value of an element; of an import, the body's parameter. */
static inline sw_id sw_stage_maker_of_next(const sw_stages *s, uint32_t element)
{
	const sw_computation *body = &s->program->computations.data[s->body];
	return sw_maker_of(s->program, body->results.data[element]);
}

typedef SW_VEC(sw_id) sw_stage_values;
typedef SW_VEC(uint32_t) sw_element_list; /* of the loop, by their numbers */

/* Which ops a piece has: those of a computation with one of two stages (-1: none) and a round (-1:
 * any); and what has no stage, wherever it is read. */
typedef struct sw_piece_place {
	int32_t computation, stage, other, round;
} sw_piece_place;
bool sw_piece_has(const sw_stages *stages, sw_piece_place at, sw_id op);
/* Mark, of a computation's values, what must be there for `wanted`, which are marked too. `inputs`
 * gets those that the piece does not compute. */
void sw_piece_find_needed(const sw_stages *stages, sw_piece_place at, const sw_stage_values *wanted,
                          bool *needed, sw_stage_values *inputs);
/* Copy the ops that compute needed values; map: of values, to those of `out`. Only those for which
 * only[op] is `is`; only NULL: all. */
void sw_piece_write_ops(const sw_stages *stages, sw_piece_place at, const bool *needed,
                        const bool *only, bool is, sw_program *out, int32_t to, sw_id *map);
/* Emit a parameter for a value of the looped program. */
sw_id sw_piece_emit_parameter(const sw_stages *stages, sw_program *out, int32_t to, sw_id value,
                              const char *name);

#endif
