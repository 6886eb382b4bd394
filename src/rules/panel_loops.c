/*
 * Local ops as loops over panels (looped SUMMA). A factor over which an op sums is cut by one more
 * digit, below all digits that devices hold: the iteration. Iteration t takes the operands'
 * elements whose digit is t, gathers those that are streamed, and adds the op's result to the
 * running sum. This is the time atom on a contraction: partial sums over
 * time, added up in every iteration.
 */
#include "rules/row.h"

typedef struct stream {
	sw_local_op *local;
	sw_panels panels;
	sw_type type; /* of the running sum */
} stream;

/* Return the atoms over which the operand is streamed. */
static uint32_t streamed_atoms(const stream *s, int32_t operand, int32_t dim)
{
	uint32_t mask = sw_layout_split_atoms(&s->local->operands[operand], dim);

	for (int32_t a = 0; a < s->local->atoms->n; a++)
		if (s->local->in->strategy->atom[a].index == s->panels.factor)
			mask &= ~(1u << a);
	return mask;
}

/* Take the elements whose digit is `iteration`: one of the middle dimension of [before, iterations,
 * after]. */
static sw_id take_iteration(const stream *s, int32_t body, sw_id x, int32_t dim, sw_id iteration)
{
	sw_program *out = s->local->out;
	sw_shape shape = sw_value_shape(out, x);
	int64_t dims[3] = {1, s->panels.count, s->panels.stride}, left[SW_MAX_RANK];

	for (int32_t d = 0; d < shape.rank; d++) {
		dims[d < dim ? 0 : 2] *= d == dim ? 1 : shape.dims[d];
		left[d] = shape.dims[d];
	}
	left[dim] /= s->panels.count;
	dims[0] *= left[dim] / s->panels.stride;
	int64_t sizes[3] = {dims[0], 1, dims[2]};
	sw_id zero = sw_emit_scalar(out, body, SW_S32, 0);
	sw_id starts[3] = {zero, iteration, zero};
	x = sw_emit_reshape(out, body, x, dims, 3);
	x = sw_emit_dynamic_slice(out, body, x, starts, sizes);
	return sw_emit_reshape(out, body, x, left, shape.rank);
}

/* Gather the panel of an operand. With the iteration's digit gone, the digits above it have a
 * smaller stride. */
static sw_id gather_panel(const stream *s, sw_coordinates *body, int32_t operand, sw_id x,
                          int32_t dim)
{
	uint32_t mask = streamed_atoms(s, operand, dim);
	sw_shape whole = sw_local_operand_whole(s->local, operand);
	int64_t dims[SW_MAX_RANK];
	sw_layout layout = s->local->operands[operand];

	if (!mask)
		return x;
	for (int32_t d = 0; d < whole.rank; d++)
		dims[d] = d == dim ? whole.dims[d] / s->panels.count : whole.dims[d];
	whole.dims = dims;
	for (int32_t a = 0; a < layout.n; a++)
		if (layout.state[a].kind == SW_STATE_S && layout.state[a].dim == dim)
			layout.state[a].stride /= s->panels.count;
	sw_move gather = {.kind = SW_MOVE_ALL_GATHER, .atoms = mask, .after = layout};
	for (int32_t a = 0; a < layout.n; a++)
		if (mask >> a & 1)
			gather.after.state[a] = (sw_state){.kind = SW_STATE_B};
	return sw_lower_move(body, whole, &layout, &gather, x);
}

/* Sums of short floats are taken in f32, so that one more iteration is not one more rounding. */
static sw_type sum_type(sw_type type)
{
	return sw_type_kind_of(type) == SW_KIND_FLOAT && sw_type_bytes(type) < 4 ? SW_F32 : type;
}

static sw_id converted(sw_program *out, int32_t c, sw_id x, sw_type type)
{
	return sw_value_shape(out, x).type == type ? x : sw_emit_convert(out, c, x, type);
}

/* Add the parameters of the loop: the iteration, the operands, the sum. */
static sw_id *loop_parameters(const stream *s, int32_t c, sw_shape sum)
{
	sw_program *out = s->local->out;
	uint32_t n = s->local->op->n_operands;
	sw_id *ids = SW_NEW_N(&s->local->arena, sw_id, n + 2);
	sw_shape *shapes = SW_NEW_N(&out->arena, sw_shape, n + 2);
	sw_error err;

	shapes[0] = (sw_shape){.type = SW_S32};
	for (uint32_t i = 0; i < n; i++)
		shapes[i + 1] = sw_value_shape(out, s->local->in->operands[i]);
	shapes[n + 1] = sum;
	sw_attrs attrs = {.parameter = {.number = 0}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = n + 2,
	                   .tuple = true};
	if (sw_build_op(out, c, &spec, &ids[0], &err) != SW_OK)
		return NULL;
	for (uint32_t i = 1; i < n + 2; i++)
		ids[i] = ids[0] + i;
	return ids;
}

static int32_t write_condition(const stream *s, sw_shape sum)
{
	sw_program *out = s->local->out;
	int32_t c = sw_build_computation(out, "more_panels");
	sw_id *in = loop_parameters(s, c, sum);
	sw_id more = sw_emit_compare(out, c, SW_LT, in[0],
	                             sw_emit_scalar(out, c, SW_S32, (double)s->panels.count));

	sw_build_results(out, c, &more, 1, false);
	return c;
}

static sw_status write_body(stream *s, sw_shape sum, int32_t *computation, sw_error *err)
{
	sw_local_op *local = s->local;
	sw_program *out = local->out;
	uint32_t n = local->op->n_operands;
	int32_t c = *computation = sw_build_computation(out, "panel"), outside = local->computation;
	sw_id *in = loop_parameters(s, c, sum), *panel = SW_NEW_N(&local->arena, sw_id, n), part;
	sw_coordinates coordinates;

	sw_coordinates_init(&coordinates, out, c, local->atoms);
	for (uint32_t i = 0; i < n; i++) {
		int64_t stride;
		int32_t dim = sw_rule_dim_with(local->in->rule, false, (int32_t)i, s->panels.factor,
		                               &stride);
		panel[i] = in[i + 1];
		if (dim < 0)
			continue;
		panel[i] = take_iteration(s, c, panel[i], dim, in[0]);
		panel[i] = gather_panel(s, &coordinates, (int32_t)i, panel[i], dim);
	}
	local->computation = c;
	sw_status status = sw_local_emit(local, panel, &part, err);
	local->computation = outside;
	if (status != SW_OK)
		return status;
	in[n + 1] = sw_emit_binary(out, c, SW_OP_ADD, in[n + 1], converted(out, c, part, s->type));
	in[0] = sw_emit_binary(out, c, SW_OP_ADD, in[0], sw_emit_scalar(out, c, SW_S32, 1));
	sw_build_results(out, c, in, n + 2, true);
	return SW_OK;
}

static sw_status write_loop(stream *s, sw_id *results, sw_error *err)
{
	sw_local_op *local = s->local;
	sw_program *out = local->out;
	uint32_t n = local->op->n_operands;
	sw_id *operands = SW_NEW_N(&local->arena, sw_id, n + 2), first;
	sw_shape sum = local->shapes[0];
	int32_t called[2];

	sum.type = s->type;
	called[0] = write_condition(s, sum);
	sw_status status = write_body(s, sum, &called[1], err);
	if (status != SW_OK)
		return status;
	operands[0] = sw_emit_scalar(out, local->computation, SW_S32, 0);
	for (uint32_t i = 0; i < n; i++)
		operands[i + 1] = local->in->operands[i];
	operands[n + 1] = sw_emit_scalar(out, local->computation, s->type, 0);
	if (sum.rank > 0)
		operands[n + 1] =
			sw_emit_broadcast(out, local->computation, operands[n + 1], sum, NULL);
	sw_attrs attrs = {.loop = {.trip_count = s->panels.count}};
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .name = local->op->name,
	                   .operands = operands,
	                   .n_operands = n + 2,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs,
	                   .tuple = true};
	status = sw_build_op(out, local->computation, &spec, &first, err);
	if (status == SW_OK)
		results[0] =
			converted(out, local->computation, first + n + 1, local->shapes[0].type);
	return status;
}

sw_status sw_local_streamed(sw_local_op *local, sw_id *results, sw_error *err)
{
	const sw_strategy *strategy = local->in->strategy;
	stream s = {.local = local, .type = sum_type(local->shapes[0].type)};

	for (int32_t a = 0; a < strategy->n; a++) {
		if (strategy->atom[a].kind != SW_CHOICE_SPLIT ||
		    strategy->atom[a].stream_stride == 0)
			continue;
		if (!sw_strategy_panels(local->in->rule, local->atoms, strategy,
		                        strategy->atom[a].stream, &s.panels))
			return sw_fail(err, SW_ERR_INTERNAL, "'%s': its panels do not fit",
			               local->op->name);
		return write_loop(&s, results, err);
	}
	return sw_local_emit(local, local->in->operands, results, err);
}
