/* The loop over microbatches of a stage's step. */
#include "stages/step_writer.h"

sw_shape sw_step_shape_of_all(const sw_step_writer *w, sw_id value, bool apart)
{
	sw_shape one = sw_value_shape(w->in, value);
	int64_t dims[SW_MAX_RANK + 1] = {1}, m = w->stages->n_microbatches;
	int32_t rank = SW_MAX(one.rank, 1);
	for (int32_t d = 0; d < one.rank; d++)
		dims[d + (d > 0 && apart)] = one.dims[d];
	if (apart)
		dims[1] = m;
	else
		dims[0] *= m;
	return sw_build_shape(w->out, one.type, dims, rank + apart);
}

/* What the step's loop carries: the counter, imports, what comes in, what is handed on, and what
 * is sent. begins: values of the step's entry. */
typedef struct step_loop {
	sw_id *begins;
	sw_shape *shapes;
	uint32_t n, imports, received, carried, sent; /* the first of each */
} step_loop;

static sw_id emit_zeros(sw_step_writer *w, sw_shape shape)
{
	sw_id zero = sw_emit_identity(w->out, w->to, shape.type, SW_MONOID_SUM);
	return shape.rank ? sw_emit_broadcast(w->out, w->to, zero, shape, NULL) : zero;
}

static step_loop list_elements(sw_step_writer *w)
{
	step_loop x = {.imports = 1};
	x.received = x.imports + (uint32_t)w->imports.len;
	x.carried = x.received + (uint32_t)w->received.len;
	x.sent = x.carried + (uint32_t)w->carried.len;
	x.n = x.sent + (uint32_t)w->sent.len;
	x.begins = SW_NEW_N(&w->arena, sw_id, x.n);
	x.shapes = SW_NEW_N(&w->out->arena, sw_shape, x.n);
	x.begins[0] = sw_emit_scalar(w->out, w->to, SW_S32, 0);
	for (size_t i = 0; i < w->imports.len; i++)
		x.begins[x.imports + i] = w->map[w->loop->operands[w->imports.data[i]]];
	for (size_t i = 0; i < w->received.len; i++)
		x.begins[x.received + i] = w->map[w->received.data[i]];
	for (size_t i = 0; i < w->carried.len; i++)
		x.begins[x.carried + i] = w->map[w->loop->operands[w->carried.data[i]]];
	for (size_t i = 0; i < w->sent.len; i++)
		x.begins[x.sent + i] =
			emit_zeros(w, sw_step_shape_of_all(w, w->sent.data[i], true));
	for (uint32_t i = 0; i < x.n; i++) {
		sw_shape shape = sw_value_shape(w->out, x.begins[i]);
		x.shapes[i] = sw_build_shape(w->out, shape.type, shape.dims, shape.rank);
	}
	return x;
}

static sw_status write_elements(sw_step_writer *w, const step_loop *x, int32_t c, sw_id *first)
{
	sw_attrs attrs = {.parameter = {.number = 0}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = x->shapes,
	                   .n_results = x->n,
	                   .tuple = true};
	return sw_build_op(w->out, c, &spec, first, w->err);
}

static sw_status write_condition(sw_step_writer *w, const step_loop *x, int32_t *c)
{
	sw_id first;
	*c = sw_build_computation(w->out, "more_microbatches");
	sw_status status = write_elements(w, x, *c, &first);
	if (status)
		return status;
	sw_id m = sw_emit_scalar(w->out, *c, SW_S32, w->stages->n_microbatches);
	sw_id more = sw_emit_compare(w->out, *c, SW_LT, first, m);
	sw_build_results(w->out, *c, &more, 1, false);
	return SW_OK;
}

/* The microbatch's part of [b, m, rest] stands at [:, counter]. */
static void write_starts(sw_step_writer *w, int32_t c, sw_id counter, int32_t rank, sw_id *starts)
{
	for (int32_t d = 0; d < rank; d++)
		starts[d] = d == 1 ? counter : sw_emit_scalar(w->out, c, SW_S32, 0);
}

static sw_shape part_shape(const sw_step_writer *w, sw_id value)
{
	sw_shape shape = sw_step_shape_of_all(w, value, true);
	((int64_t *)(uintptr_t)shape.dims)[1] = 1;
	return shape;
}

static void take_part(sw_step_writer *w, int32_t c, sw_id counter, sw_id all, sw_id value)
{
	sw_shape apart = sw_step_shape_of_all(w, value, true), one = sw_value_shape(w->in, value),
		 part = part_shape(w, value);
	sw_id starts[SW_MAX_RANK + 1];
	sw_id x = sw_emit_reshape(w->out, c, all, apart.dims, apart.rank);
	write_starts(w, c, counter, apart.rank, starts);
	x = sw_emit_dynamic_slice(w->out, c, x, starts, part.dims);
	w->map[value] = sw_emit_reshape(w->out, c, x, one.dims, one.rank);
}

static sw_status put_part(sw_step_writer *w, int32_t c, sw_id counter, sw_id all, sw_id value,
                          sw_id *result)
{
	sw_shape part = part_shape(w, value);
	sw_id operands[SW_MAX_RANK + 3] = {all};
	operands[1] = sw_emit_reshape(w->out, c, w->map[value], part.dims, part.rank);
	write_starts(w, c, counter, part.rank, operands + 2);
	sw_op_spec spec = {.opcode = SW_OP_DYNAMIC_UPDATE_SLICE,
	                   .operands = operands,
	                   .n_operands = (uint32_t)(2 + part.rank)};
	return sw_build_op(w->out, c, &spec, result, w->err);
}

static sw_status write_body(sw_step_writer *w, const step_loop *x, int32_t *c)
{
	sw_id first, *results = SW_NEW_N(&w->arena, sw_id, x->n);
	*c = sw_build_computation(w->out, "microbatch");
	sw_status status = write_elements(w, x, *c, &first);
	if (status)
		return status;
	for (uint32_t i = 0; i < x->n; i++)
		results[i] = first + i;
	w->map[w->inner + w->counter] = first;
	for (size_t i = 0; i < w->imports.len; i++)
		w->map[w->inner + w->imports.data[i]] = first + x->imports + (sw_id)i;
	for (size_t i = 0; i < w->carried.len; i++)
		w->map[w->inner + w->carried.data[i]] = first + x->carried + (sw_id)i;
	for (size_t i = 0; i < w->received.len; i++)
		take_part(w, *c, first, first + x->received + (sw_id)i, w->received.data[i]);
	sw_piece_write_ops(w->stages, w->in_body, w->needed, NULL, false, w->out, *c, w->map);
	results[0] =
		sw_emit_binary(w->out, *c, SW_OP_ADD, first, sw_emit_scalar(w->out, *c, SW_S32, 1));
	for (size_t i = 0; i < w->carried.len; i++)
		results[x->carried + i] = w->map[w->body->results.data[w->carried.data[i]]];
	for (size_t i = 0; i < w->sent.len && status == SW_OK; i++)
		status = put_part(w, *c, first, first + x->sent + (sw_id)i, w->sent.data[i],
		                  &results[x->sent + i]);
	sw_build_results(w->out, *c, results, x->n, true);
	return status;
}

sw_status sw_step_write_loop(sw_step_writer *w)
{
	step_loop x = list_elements(w);
	int32_t called[2];
	sw_id first = 0;
	sw_status status = write_condition(w, &x, &called[0]);
	if (status == SW_OK)
		status = write_body(w, &x, &called[1]);
	sw_attrs attrs = {.loop = {.trip_count = w->stages->n_microbatches}};
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .name = SW_MICROBATCH_LOOP,
	                   .operands = x.begins,
	                   .n_operands = x.n,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs,
	                   .tuple = true};
	if (status == SW_OK)
		status = sw_build_op(w->out, w->to, &spec, &first, w->err);
	if (status)
		return status;
	w->written_loop = sw_maker_of(w->out, first);
	for (uint32_t k = 0; k < w->loop->n_operands; k++)
		if (sw_step_is_import(w, k))
			w->map[w->loop->first_result + k] = w->map[w->loop->operands[k]];
	for (size_t i = 0; i < w->carried.len; i++)
		w->map[w->loop->first_result + w->carried.data[i]] = first + x.carried + (sw_id)i;
	w->sent_all = SW_NEW_N(&w->arena, sw_id, w->sent.len + 1);
	for (size_t i = 0; i < w->sent.len; i++) {
		sw_shape all = sw_step_shape_of_all(w, w->sent.data[i], false);
		w->sent_all[i] = sw_emit_reshape(w->out, w->to, first + x.sent + (sw_id)i, all.dims,
		                                 all.rank);
	}
	return SW_OK;
}
