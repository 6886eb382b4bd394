/*
 * reduce-window and select-and-scatter. A window that slides along a dimension needs a halo of it
 * (slide.c); a window that covers everything before its place, or everything after it, is a running
 * total: a scan.
 */
#include "rules/row.h"

#include <assert.h>
#include <string.h>

/* Give the local op its own list of windows, which may be changed. */
static sw_window_dim *own_windows(sw_local_op *local)
{
	sw_window *window = &local->attrs.window.window;
	sw_window_dim *w =
		sw_arena_copy(&local->out->arena, window->dims, sizeof(*w) * (size_t)window->rank);

	window->dims = w;
	return w;
}

/* ---- reduce-window(inputs, inits): rules ------------------------------------------------ */

/* Return 1 if each window covers everything up to its place, -1 if it covers everything from its
 * place on, 0 otherwise. */
static int scan_direction(const sw_window_dim *w, int64_t n)
{
	if (w->stride != 1 || w->lhs_dilate != 1 || w->rhs_dilate != 1 || w->size < n ||
	    w->size < 2)
		return 0;
	if (w->pad_low == w->size - 1 && w->pad_high == 0)
		return 1;
	return w->pad_high == w->size - 1 && w->pad_low == 0 ? -1 : 0;
}

/* Return the monoid of the window's computation; NONE also if there are several inputs. */
static sw_monoid window_monoid(const sw_program *program, const sw_op *op)
{
	return op->n_operands == 2 ? sw_computation_monoid(program, op->called[0]) : SW_MONOID_NONE;
}

static bool only_window(const sw_window *window, int32_t d)
{
	for (int32_t other = 0; other < window->rank; other++)
		if (other != d && window->dims[other].size != 1)
			return false;
	return true;
}

/* Add a factor that scans. The totals of blocks combine the elements in another order than a window
 * of several dimensions does, which is allowed only if the computation commutes. */
static int32_t add_scan(sw_rule_builder *b, int32_t d, int64_t n)
{
	if (!window_monoid(b->program, b->op) && !only_window(&b->op->attrs->window.window, d)) {
		sw_rule_whole(
			b,
			"a running total in windows of several dimensions, by a computation that "
			"may not commute, keeps its dimension whole");
		return -1;
	}
	int32_t factor = sw_rule_add_parallel(b, n);
	sw_rule_exchanges(b, factor, SW_EXCHANGE_SCAN);
	return factor;
}

static void reduce_window(sw_rule_builder *b)
{
	int32_t n = b->rule->n_operands / 2;
	sw_shape input = sw_rule_operand_shape(b, 0), output = sw_rule_result_shape(b, 0);
	sw_monoid monoid = sw_rule_splittable(input.type, window_monoid(b->program, b->op));

	for (int32_t d = 0; d < input.rank; d++) {
		const sw_window_dim *w = &b->op->attrs->window.window.dims[d];
		int32_t factor = scan_direction(w, input.dims[d])
		                         ? add_scan(b, d, input.dims[d])
		                         : sw_rule_add_slide(b, w, input.dims[d], output.dims[d],
		                                             monoid, NULL);
		if (factor < 0)
			continue;
		int64_t size = b->factors[factor].size;
		bool reduced = b->factors[factor].kind == SW_FACTOR_REDUCED;
		if (reduced)
			sw_rule_join(b, factor, n, n);
		for (int32_t i = 0; i < n; i++) {
			sw_rule_place_operand(b, factor, i, d, input.dims[d] / size);
			if (!reduced)
				sw_rule_place_result(b, factor, i, d, output.dims[d] / size);
		}
	}
	if (monoid)
		sw_rule_add_linearity_all(b, SW_MONOID_BIT(monoid));
}

/* ---- reduce-window: the local op -------------------------------------------------------- */

typedef struct reduction {
	sw_local_op *local;
	int32_t n;       /* inputs */
	sw_id *operands; /* inputs, then inits */
	sw_id *neutral;  /* per input: the value that changes no window to which it is added */
	sw_window_dim *windows;
} reduction;

/* By HLO's definition a computation that is not recognised has a neutral element, which is the
 * init. */
static void find_neutral(reduction *r)
{
	sw_local_op *local = r->local;
	sw_monoid monoid = window_monoid(local->in->program, local->op);
	bool needed = sw_strategy_exchanges(local->in->rule, local->in->strategy);

	for (int32_t i = 0; needed && i < r->n; i++) {
		sw_type type = sw_value_shape(local->out, r->operands[i]).type;
		r->neutral[i] =
			monoid ? sw_emit_identity(local->out, local->computation, type, monoid)
			       : r->operands[r->n + i];
	}
}

/* Reduce this device's block along d: one row per input. */
static sw_status block_totals(const reduction *r, int32_t d, sw_id *totals, sw_error *err)
{
	sw_local_op *local = r->local;
	sw_id *operands = SW_NEW_N(&local->arena, sw_id, 2 * r->n), first;
	int64_t dim = d;
	sw_attrs attrs = {.dims = {.dims = sw_build_ints(local->out, &dim, 1)}};

	memcpy(operands, r->operands, sizeof(sw_id) * (size_t)r->n);
	memcpy(operands + r->n, r->neutral, sizeof(sw_id) * (size_t)r->n);
	sw_op_spec spec = {.opcode = SW_OP_REDUCE,
	                   .operands = operands,
	                   .n_operands = (uint32_t)(2 * r->n),
	                   .called = local->called,
	                   .n_called = 1,
	                   .attrs = &attrs};
	sw_status status = sw_build_op(local->out, local->computation, &spec, &first, err);
	for (int32_t i = 0; status == SW_OK && i < r->n; i++) {
		sw_shape shape = sw_value_shape(local->out, operands[i]);
		int64_t dims[SW_MAX_RANK];
		memcpy(dims, shape.dims, sizeof(*dims) * (size_t)shape.rank);
		dims[d] = 1;
		totals[i] = sw_emit_reshape(local->out, local->computation, first + (sw_id)i, dims,
		                            shape.rank);
	}
	return status;
}

/* Make the rows of blocks that do not come before this one (after it: direction -1) neutral. */
static sw_id mask_totals(sw_local_op *local, const sw_blocks *blocks, sw_id x, int64_t d,
                         int direction, sw_id neutral)
{
	sw_program *out = local->out;
	int32_t c = local->computation;
	sw_shape shape = sw_value_shape(out, x);
	sw_id row = sw_emit_iota(out, c, sw_build_shape(out, SW_S32, &blocks->count, 1), 0);
	sw_id counts =
		sw_emit_compare(out, c, direction > 0 ? SW_LT : SW_GT, row,
	                        sw_local_scalar_like(local, row, sw_blocks_index(local, blocks)));

	shape.type = SW_PRED;
	counts = sw_emit_broadcast(out, c, counts, shape, &d);
	return sw_emit_select(out, c, counts, x, sw_local_scalar_like(local, x, neutral));
}

/* A scan: put the totals of the blocks before this one in front of it as rows, and run the op on
 * all rows; emit_and_keep_rows drops the rows of the totals. */
static sw_status add_totals(const reduction *r, int32_t d, int direction, sw_error *err)
{
	sw_local_op *local = r->local;
	sw_blocks blocks = sw_exchange_blocks(local, &local->operands[0], d);
	sw_id *totals = SW_NEW_N(&local->arena, sw_id, r->n);
	sw_window_dim *w = &r->windows[d];

	if (blocks.count == 1)
		return SW_OK;
	sw_status status = block_totals(r, d, totals, err);
	for (int32_t i = 0; status == SW_OK && i < r->n; i++) {
		sw_id x = sw_blocks_gather(local, &blocks, totals[i], d);
		x = mask_totals(local, &blocks, x, d, direction, r->neutral[i]);
		sw_id parts[2] = {direction > 0 ? x : r->operands[i],
		                  direction > 0 ? r->operands[i] : x};
		r->operands[i] = sw_emit_concatenate(local->out, local->computation, parts, 2, d);
	}
	w->size = local->shapes[0].dims[d] + blocks.count;
	w->pad_low = direction > 0 ? w->size - 1 : 0;
	w->pad_high = direction > 0 ? 0 : w->size - 1;
	return status;
}

/* Fetch the rows of other blocks, one windowed dimension after the other. */
static sw_status fetch_rows(const reduction *r, sw_error *err)
{
	sw_local_op *local = r->local;
	sw_shape whole = sw_local_operand_whole(local, 0);
	sw_status status = SW_OK;

	for (int32_t d = 0; d < whole.rank && status == SW_OK; d++) {
		sw_window_dim w = r->windows[d];
		int direction = scan_direction(&w, whole.dims[d]);
		if (direction)
			status = add_totals(r, d, direction, err);
		for (int32_t i = 0; i < r->n && !direction; i++) {
			r->windows[d] = w;
			r->operands[i] = sw_local_slide(local, i, r->operands[i], d,
			                                local->shapes[0].dims[d], r->neutral[i],
			                                &r->windows[d]);
		}
	}
	return status;
}

/* Emit the op; its result includes the rows that a scan added, which are dropped. */
static sw_status emit_and_keep_rows(const reduction *r, sw_id *results, sw_error *err)
{
	sw_local_op *local = r->local;
	sw_shape wanted = local->shapes[0], whole = sw_local_operand_whole(local, 0);
	sw_shape given = sw_build_shape(local->out, wanted.type, wanted.dims, wanted.rank);
	/* a fresh list, which may be changed */
	int64_t *dims = (int64_t *)given.dims, start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK];
	bool more = false;

	for (int32_t d = 0; d < wanted.rank; d++) {
		int direction =
			scan_direction(&local->op->attrs->window.window.dims[d], whole.dims[d]);
		if (direction)
			dims[d] = sw_value_shape(local->out, r->operands[0]).dims[d];
		more |= dims[d] != wanted.dims[d];
		start[d] = direction > 0 ? dims[d] - wanted.dims[d] : 0;
		limit[d] = start[d] + wanted.dims[d];
	}
	for (int32_t i = 0; i < r->n; i++)
		local->shapes[i].dims = dims;
	sw_status status = sw_local_emit(local, r->operands, results, err);
	for (int32_t i = 0; status == SW_OK && more && i < r->n; i++)
		results[i] = sw_emit_slice(local->out, local->computation, results[i], start, limit,
		                           NULL);
	return status;
}

static sw_status local_reduce_window(sw_local_op *local, sw_id *results, sw_error *err)
{
	int32_t n = (int32_t)local->op->n_operands / 2;
	reduction r = {.local = local,
	               .n = n,
	               .operands = SW_NEW_N(&local->arena, sw_id, 2 * n),
	               .neutral = SW_NEW_N(&local->arena, sw_id, n),
	               .windows = own_windows(local)};

	memcpy(r.operands, local->in->operands, sizeof(sw_id) * (size_t)(2 * n));
	find_neutral(&r);
	sw_status status = fetch_rows(&r, err);
	return status == SW_OK ? emit_and_keep_rows(&r, results, err) : status;
}

/* ---- select-and-scatter(operand, source, init): rules ----------------------------------- */

/* A NaN that no machine makes by itself (quiet, with the next bit set and no other), as bits: the
 * mark of elements outside the operand. */
typedef struct outside_mark {
	sw_type type, bits;
	uint64_t pattern;
} outside_mark;

static const outside_mark outside_marks[] = {
	{SW_F32, SW_U32, 0x7fe00000},
	{SW_F64, SW_U64, 0x7ffc000000000000},
	{SW_BF16, SW_U16, 0x7fe0},
	{SW_F16, SW_U16, 0x7f00},
};

static const outside_mark *outside_mark_of(sw_type type)
{
	for (size_t i = 0; i < SW_COUNT(outside_marks); i++)
		if (outside_marks[i].type == type)
			return &outside_marks[i];
	return NULL;
}

static bool looks_outside(const sw_window_dim *w, int64_t input, int64_t output)
{
	return w->pad_low > 0 || (output - 1) * w->stride + w->size > input + w->pad_low;
}

static const char *no_halo(const sw_rule_builder *b, const sw_window_dim *w, int64_t input,
                           int64_t output)
{
	if (!sw_computation_monoid(b->program, b->op->called[1]))
		return "a select-and-scatter whose scatter is not a sum, product, max, min, and, "
		       "or keeps "
		       "its dimensions whole";
	if (w->lhs_dilate != 1 || w->rhs_dilate != 1)
		return "a dilated select-and-scatter keeps its dimensions whole";
	if (looks_outside(w, input, output) && !outside_mark_of(sw_rule_operand_shape(b, 0).type))
		return "a padded select-and-scatter of numbers without NaN keeps its dimensions "
		       "whole";
	return NULL;
}

/* The operand only selects positions; sums pass source and init. */
static void select_and_scatter(sw_rule_builder *b)
{
	sw_shape input = sw_rule_operand_shape(b, 0), output = sw_rule_operand_shape(b, 1);

	for (int32_t d = 0; d < input.rank; d++) {
		const sw_window_dim *w = &b->op->attrs->window.window.dims[d];
		int32_t factor =
			sw_rule_add_slide(b, w, input.dims[d], output.dims[d], SW_MONOID_NONE,
		                          no_halo(b, w, input.dims[d], output.dims[d]));
		if (factor < 0)
			continue;
		int64_t size = b->factors[factor].size;
		sw_rule_place_operand(b, factor, 0, d, input.dims[d] / size);
		sw_rule_place_operand(b, factor, 1, d, output.dims[d] / size);
		sw_rule_place_result(b, factor, 0, d, input.dims[d] / size);
	}
	if (sw_computation_monoid(b->program, b->op->called[1]) == SW_MONOID_SUM)
		sw_rule_add_linearity_text(b, "011", SW_PASS_SUM);
}

/* ---- select-and-scatter: the local op --------------------------------------------------- */

/* One dimension: block c has n rows of the operand and m of the source, and works on windows [first
 * + c*m, + count), which cover its rows and include all windows that touch them. */
typedef struct span {
	bool reaches;
	sw_blocks blocks;
	int64_t n, m, first, count;
} span;

static span span_of(const sw_local_op *local, int32_t d)
{
	const sw_window_dim *w = &local->op->attrs->window.window.dims[d];
	span s = {.blocks = sw_exchange_blocks(local, &local->operands[0], d),
	          .n = sw_local_operand_extent(local, 0, d),
	          .m = sw_local_operand_extent(local, 1, d)};
	int64_t last = INT64_MIN;

	s.reaches = s.blocks.count > 1;
	s.first = INT64_MAX;
	for (int64_t c = 0; s.reaches && c < s.blocks.count; c++) {
		/* as positions of windows */
		int64_t low = c * s.n + w->pad_low, high = low + s.n - 1;
		int64_t from = SW_MIN(sw_ceil_div(low - w->size + 1, w->stride),
		                      sw_floor_div(low, w->stride));
		int64_t to = SW_MAX(sw_floor_div(high, w->stride),
		                    sw_ceil_div(high - w->size + 1, w->stride));
		s.first = SW_MIN(s.first, from - c * s.m);
		last = SW_MAX(last, to - c * s.m);
	}
	s.count = s.reaches ? last - s.first + 1 : 0;
	return s;
}

static sw_id emit(sw_program *out, int32_t c, const sw_op_spec *spec)
{
	sw_error err;
	sw_id x = SW_NO_ID;
	sw_status status = sw_build_op(out, c, spec, &x, &err);

	assert(status == SW_OK);
	(void)status;
	return x;
}

static sw_id bitcast(sw_program *out, int32_t c, sw_id x, sw_type type)
{
	sw_shape shape = {.type = type};

	return emit(out, c,
	            &(sw_op_spec){.opcode = SW_OP_BITCAST_CONVERT,
	                          .operands = &x,
	                          .n_operands = 1,
	                          .shapes = &shape,
	                          .n_results = 1});
}

static sw_id outside_bits(sw_program *out, int32_t c, const outside_mark *mark)
{
	return sw_emit_scalar(out, c, mark->bits, (double)mark->pattern);
}

/* Write (kept, next) -> whether `kept` stays selected: as `select` decides, except that an element
 * inside never gives way to one outside, and one outside gives way to every other. Ties, infinities
 * and other NaNs are unchanged. */
static int32_t select_inside(sw_local_op *local, int32_t select, const outside_mark *mark)
{
	sw_program *out = local->out;
	int32_t c = sw_build_computation(out, "select_inside");
	sw_id x[2], outside[2];

	for (int i = 0; i < 2; i++) {
		x[i] = sw_emit_parameter(out, c, (sw_shape){.type = mark->type}, NULL);
		outside[i] = sw_emit_compare(out, c, SW_EQ, bitcast(out, c, x[i], mark->bits),
		                             outside_bits(out, c, mark));
	}
	sw_id stays = emit(out, c,
	                   &(sw_op_spec){.opcode = SW_OP_CALL,
	                                 .operands = x,
	                                 .n_operands = 2,
	                                 .called = &select,
	                                 .n_called = 1});
	sw_id inside = sw_emit_unary(out, c, SW_OP_NOT, outside[0]);
	stays = sw_emit_binary(out, c, SW_OP_AND, inside, stays);
	stays = sw_emit_binary(out, c, SW_OP_OR, outside[1], stays);
	sw_build_results(out, c, &stays, 1, false);
	return c;
}

/* Return the mark of elements outside the operand where windows of the op look there; the local
 * select then recognises it. */
static sw_id outside_operand(sw_local_op *local, const span *spans)
{
	sw_shape operand = sw_local_operand_whole(local, 0),
		 source = sw_local_operand_whole(local, 1);
	const outside_mark *mark = outside_mark_of(operand.type);
	bool looks = false;

	for (int32_t d = 0; d < operand.rank; d++)
		looks |= spans[d].reaches && looks_outside(&local->op->attrs->window.window.dims[d],
		                                           operand.dims[d], source.dims[d]);
	if (!looks)
		return SW_NO_ID;
	local->called[0] = select_inside(local, local->called[0], mark);
	return bitcast(local->out, local->computation,
	               outside_bits(local->out, local->computation, mark), mark->type);
}

/* Return the source values of windows that the op does not have. */
static sw_id outside_source(sw_local_op *local)
{
	sw_monoid monoid = sw_computation_monoid(local->in->program, local->op->called[1]);

	if (monoid == SW_MONOID_SUM || !sw_strategy_exchanges(local->in->rule, local->in->strategy))
		return SW_NO_ID;
	return sw_emit_identity(local->out, local->computation, local->shapes[0].type, monoid);
}

/* Fetch all rows and sources of the span's windows, as if they were the whole. */
static void fetch_span(sw_local_op *local, const span *s, int32_t d, sw_id *operands,
                       const sw_id *outside, sw_window_dim *w)
{
	sw_reach rows = {.start = s->first * w->stride - w->pad_low,
	                 .step = s->m * w->stride,
	                 .length = (s->count - 1) * w->stride + w->size,
	                 .dilation = 1,
	                 .fill = outside[0]};
	sw_reach sources = {.start = s->first,
	                    .step = s->m,
	                    .length = s->count,
	                    .dilation = 1,
	                    .fill = outside[1]};

	operands[0] = sw_blocks_fetch(local, &s->blocks, operands[0], d, &rows);
	operands[1] = sw_blocks_fetch(local, &s->blocks, operands[1], d, &sources);
	w->pad_low = w->pad_high = 0;
}

static sw_id cut_own_rows(sw_local_op *local, const span *s, int32_t d, sw_id x)
{
	const sw_window_dim *w = &local->op->attrs->window.window.dims[d];

	return sw_blocks_cut(local, &s->blocks, x, d, w->pad_low - s->first * w->stride,
	                     s->n - s->m * w->stride, s->n);
}

/* Each block scatters also the sources of other blocks' windows that touch its rows, so that no
 * scattered value is sent. */
static sw_status local_select_and_scatter(sw_local_op *local, sw_id *results, sw_error *err)
{
	int32_t rank = local->shapes[0].rank;
	sw_window_dim *windows = own_windows(local);
	span spans[SW_MAX_RANK];
	sw_id operands[3];

	for (int32_t d = 0; d < rank; d++)
		spans[d] = span_of(local, d);
	sw_id outside[2] = {outside_operand(local, spans), outside_source(local)};
	memcpy(operands, local->in->operands, sizeof(operands));
	for (int32_t d = 0; d < rank; d++)
		if (spans[d].reaches)
			fetch_span(local, &spans[d], d, operands, outside, &windows[d]);
	local->shapes[0] = sw_value_shape(local->out, operands[0]);
	sw_status status = sw_local_emit(local, operands, results, err);
	for (int32_t d = 0; d < rank && status == SW_OK; d++)
		if (spans[d].reaches)
			results[0] = cut_own_rows(local, &spans[d], d, results[0]);
	return status;
}

static const sw_rule_row rows[] = {
	{ROW(REDUCE_WINDOW, reduce_window), LOCAL(local_reduce_window)},
	{ROW(SELECT_AND_SCATTER, select_and_scatter), LOCAL(local_select_and_scatter)},
};

const sw_rule_family sw_rules_window = {"window", rows, SW_COUNT(rows)};
