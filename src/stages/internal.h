/* internal: what the files of stages share. */
#ifndef SW_STAGES_INTERNAL_H
#define SW_STAGES_INTERNAL_H

#include "stages/stages.h"

typedef struct sw_position_span {
	int32_t first, last;
} sw_position_span;

/* What is known of the loop's body while stages are sought. */
typedef struct sw_stage_finder {
	sw_stages *out;
	const sw_program *program;
	const sw_computation *body, *entry;
	const sw_op *loop;
	sw_arena arena; /* of this search */
	sw_stage_options options;
	sw_id inner;                    /* the first result of the body's parameter */
	uint32_t n_inner;               /* elements that the loop carries */
	bool *state_value, *data_value; /* per value: depends on an input of this kind */
	bool *state, *data;             /* per op of the body, likewise */
	bool *forward;                  /* per op of the body */
	int32_t *position;              /* per op of the body; -1: no flow */
	int32_t n_positions;
	const sw_id *ops; /* [n_positions]: the forward ops */
	double *position_forward_s, *position_backward_s, *position_flops;
	int64_t *up_bytes, *down_bytes; /* of a cut behind a position: forward, and back */
	/* Per element of the loop that is a parameter: the positions from its first reader to its
	 * last one and its gradient's sum; last -1: it is none. */
	sw_position_span *parameters;
	uint32_t *gradient_of; /* per element: 1 + that of its gradient's sum; 0: none */
} sw_stage_finder;

static inline const sw_op *sw_body_op(const sw_stage_finder *f, size_t i)
{
	return sw_op_at(f->program, f->body->ops.data[i]);
}
static inline sw_id sw_op_id(const sw_program *program, const sw_op *op)
{
	return (sw_id)(op - program->ops.data);
}
static inline sw_id sw_maker_of(const sw_program *program, sw_id value)
{
	return program->values.data[value].op;
}
/* Is the element of the loop an import: whole, and the same in all iterations? */
bool sw_element_is_import(const sw_stage_finder *f, uint32_t element);

/* The steps of sw_stages_init, in order. */
sw_status sw_stage_find_loop(sw_stage_finder *f, sw_error *err);
sw_status sw_stage_find_forward(sw_stage_finder *f, sw_error *err);
void sw_stage_find_positions(sw_stage_finder *f);
sw_status sw_stage_cut(sw_stage_finder *f, sw_error *err);
void sw_stage_find_entry(sw_stage_finder *f);

#endif
