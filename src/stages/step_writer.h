/*
 * step_writer: what the files that write a stage's step share. Private to src/stages.
 */
#ifndef SW_STAGES_STEP_WRITER_H
#define SW_STAGES_STEP_WRITER_H

#include "stages/internal.h"
#include "stages/stage_step.h"

typedef SW_VEC(sw_stage_port) sw_port_list;

typedef struct sw_step_writer {
	const sw_stages *stages;
	const sw_program *in;
	const sw_op *loop;
	const sw_computation *body, *entry;
	sw_id inner;
	int32_t stage;
	sw_piece_place in_body, in_entry;
	sw_arena arena;
	/* Of the body: what is sent, what comes in, elements that are read only, and those that
	 * this stage's microbatches hand on; all without the counter. */
	sw_stage_values sent, received;
	sw_element_list imports, carried;
	uint32_t counter; /* element */
	bool *needed;     /* per value of the looped program */
	sw_id *map;       /* per value of it: that of the step's program; SW_NO_ID: none */
	sw_id *sent_all;  /* per value sent: that of all microbatches in the step's entry */
	sw_port_list inputs, results;
	sw_program *out;
	int32_t to; /* the entry of `out` */
	sw_id written_loop;
	sw_error *err;
} sw_step_writer;

static inline bool sw_step_is_import(const sw_step_writer *w, uint32_t element)
{
	return w->body->results.data[element] == w->inner + element;
}
/* Return the shape of a microbatch's value for all microbatches: [b * m, rest]; apart: [b, m,
 * rest]. */
sw_shape sw_step_shape_of_all(const sw_step_writer *w, sw_id value, bool apart);
/* Write the loop into the step's entry; its results stand for those of the looped program. */
sw_status sw_step_write_loop(sw_step_writer *w);

#endif
