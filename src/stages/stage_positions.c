/* Positions of all flow ops of the body, what work there is at each, and what crosses a cut behind
 * each. */
#include <string.h>

#include "stages/internal.h"

/* Where each value was read by forward ops: positions, ascending, for flow values behind that of
 * their maker. Values that are no flow share the list of the largest parameter that they come
 * from. */
typedef SW_VEC(int32_t) position_list;
typedef struct position_finder {
	sw_stage_finder *f;
	position_list *lists; /* [values] */
	sw_id *source;        /* [values]: whose list counts; SW_NO_ID: nobody's */
	/* [values]: the parameter that a value comes from which is no flow, in the form in which it
	 * enters the loop; SW_NO_ID: none. Its list is its own, too. */
	sw_id *form;
} position_finder;

/* Of what is no flow: the largest parameter among its operands'. */
static void find_source(position_finder *p, const sw_op *op)
{
	const sw_stage_finder *f = p->f;
	sw_id best = SW_NO_ID;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id form = p->form[op->operands[k]];
		if (form != SW_NO_ID &&
		    (best == SW_NO_ID || sw_bytes_of(f, form) > sw_bytes_of(f, best)))
			best = form;
	}
	for (uint32_t r = 0; r < op->n_results; r++) {
		p->form[op->first_result + r] = best;
		p->source[op->first_result + r] = best == SW_NO_ID ? SW_NO_ID : p->source[best];
	}
}

static void place_forward(position_finder *p, const sw_op *op, int32_t position)
{
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id source = p->source[op->operands[k]], form = p->form[op->operands[k]];
		if (source != SW_NO_ID)
			sw_vec_push(&p->lists[source], position);
		if (form != SW_NO_ID && form != source)
			sw_vec_push(&p->lists[form], position);
	}
	for (uint32_t r = 0; r < op->n_results; r++) {
		p->source[op->first_result + r] = op->first_result + r;
		sw_vec_push(&p->lists[op->first_result + r], position);
	}
}

/* The last position up to `most` in the list; -1: there is none. */
static int32_t last_up_to(const position_list *list, int32_t most)
{
	size_t low = 0, high = list->len;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (list->data[middle] <= most)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? list->data[low - 1] : -1;
}

/* The same; but where the next position is nearer to `most`, as at the logits of tied embeddings,
 * `most` itself. */
static int32_t nearest_up_to(const position_list *list, int32_t most)
{
	int32_t before = last_up_to(list, most);
	for (size_t i = 0; i < list->len && before >= 0; i++)
		if (list->data[i] > most)
			return list->data[i] - most < most - before ? most : before;
	return before;
}

/* Not behind any backward value that it reads; and there, where the forward values and parameters
 * that it reads were read last. */
static void place_backward(position_finder *p, const sw_op *op)
{
	sw_stage_finder *f = p->f;
	int32_t most = f->n_positions - 1, anchor = -1;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id maker = sw_maker_of(f->program, op->operands[k]);
		if (f->position[maker] >= 0 && !f->forward[maker])
			most = SW_MIN(most, f->position[maker]);
	}
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id source = p->source[op->operands[k]];
		if (source != SW_NO_ID)
			anchor = SW_MAX(anchor, nearest_up_to(&p->lists[source], most));
	}
	f->position[sw_op_id(f->program, op)] = anchor < 0 ? most : anchor;
}

/* A parameter may enter the loop in several forms, such as converted, and transposed for the
 * backward pass: they are read where the first of them is, and it has all their positions. */
static void find_forms(position_finder *p)
{
	const sw_stage_finder *f = p->f;
	uint32_t *first = SW_NEW_N(&p->f->arena, uint32_t, f->n_inner); /* 1 + element */
	for (uint32_t k = 0; k < f->n_inner; k++) {
		uint32_t gradient = f->gradient_of[k];
		/* What depends on data alone is there wherever it is read. */
		if (!sw_element_is_import(f, k) || !f->state_value[f->inner + k])
			continue;
		if (gradient && !first[gradient - 1])
			first[gradient - 1] = k + 1;
		p->form[f->inner + k] = f->inner + k;
		p->source[f->inner + k] = f->inner + (gradient ? first[gradient - 1] - 1 : k);
	}
}

/* Where forward ops have another order, all of them are placed before the others. */
static void place_in_order_found(position_finder *p)
{
	sw_stage_finder *f = p->f;
	for (size_t i = 0; i < f->body->ops.len; i++)
		if (sw_body_op(f, i)->opcode != SW_OP_PARAMETER &&
		    !sw_op_is_flow(f, f->body->ops.data[i]))
			find_source(p, sw_body_op(f, i));
	for (int32_t i = 0; i < f->n_positions; i++) {
		f->position[f->ops[i]] = i;
		place_forward(p, sw_op_at(f->program, f->ops[i]), i);
	}
	for (size_t i = 0; i < f->body->ops.len; i++)
		if (sw_op_is_flow(f, f->body->ops.data[i]) && !f->forward[f->body->ops.data[i]])
			place_backward(p, sw_body_op(f, i));
}

static void place_all(position_finder *p)
{
	sw_stage_finder *f = p->f;
	int32_t next = 0;
	find_forms(p);
	if (!f->in_order) {
		place_in_order_found(p);
		return;
	}
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = sw_body_op(f, i);
		sw_id id = f->body->ops.data[i];
		if (op->opcode == SW_OP_PARAMETER)
			continue;
		if (f->forward[id]) {
			f->position[id] = next;
			place_forward(p, op, next++);
		} else if (f->state[id] && f->data[id]) {
			place_backward(p, op);
		} else {
			find_source(p, op);
		}
	}
}

/* ---- what is computed again -------------------------------------------------------------- */

/* The position from which on forward ops have read each source of the op; -1: it has none. */
static int32_t read_since(const position_finder *p, const sw_op *op)
{
	int32_t since = -1;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id source = p->source[op->operands[k]];
		if (source != SW_NO_ID)
			since = SW_MAX(since, p->lists[source].len ? p->lists[source].data[0] : INT32_MAX);
	}
	return since;
}

/* What the backward pass computes again from a value or parameter that is read early and late, as
 * the first layer from tied embeddings, has been placed late, with all that follows from it alone.
 * It goes back to where it is read, or as far as its sources allow. Where a gradient comes from,
 * sources are read once. */
static void mark_movable(const position_finder *p, bool *movable)
{
	const sw_stage_finder *f = p->f;
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = sw_body_op(f, i);
		sw_id id = f->body->ops.data[i];
		if (f->forward[id] || f->position[id] < 0)
			continue;
		bool all = read_since(p, op) < f->position[id];
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id maker = sw_maker_of(f->program, op->operands[k]);
			if (f->position[maker] >= 0 && !f->forward[maker])
				all &= movable[maker];
		}
		movable[id] = all;
	}
}

static void move_recomputed(position_finder *p)
{
	sw_stage_finder *f = p->f;
	size_t n = f->program->ops.len;
	bool *movable = SW_NEW_N(&f->arena, bool, n);
	int32_t *most = SW_NEW_N(&f->arena, int32_t, n); /* 1 + the last position of readers */
	mark_movable(p, movable);
	for (size_t i = f->body->ops.len; i-- > 0;) {
		const sw_op *op = sw_body_op(f, i);
		sw_id id = f->body->ops.data[i];
		if (movable[id] && most[id] > 0)
			f->position[id] =
				SW_MIN(f->position[id], SW_MAX(most[id] - 1, read_since(p, op)));
		for (uint32_t k = 0; k < op->n_operands && f->position[id] >= 0; k++) {
			sw_id maker = sw_maker_of(f->program, op->operands[k]);
			most[maker] = SW_MAX(most[maker], f->position[id] + 1);
		}
	}
}

/* ---- gradients -------------------------------------------------------------------------- */

/* Of values: 0 nothing reads it; 1 + k: only what element k of the loop is summed from does;
 * SEVERAL: others do. */
#define SEVERAL UINT32_MAX
static void join(uint32_t *leads, uint32_t to)
{
	*leads = *leads == 0 || *leads == to ? to : SEVERAL;
}

/* Ops that only lead to the gradient of one parameter are where that parameter is read, as far as
 * they may be: not behind the position that they have. */
static void pull_gradients(position_finder *p, const uint32_t *parameter_of)
{
	sw_stage_finder *f = p->f;
	uint32_t *leads = SW_NEW_N(&f->arena, uint32_t, f->program->values.len);
	for (uint32_t k = 0; k < f->n_inner; k++)
		join(&leads[f->body->results.data[k]], k + 1);
	for (size_t i = f->body->ops.len; i-- > 0;) {
		const sw_op *op = sw_body_op(f, i);
		sw_id id = f->body->ops.data[i];
		uint32_t to = 0;
		for (uint32_t r = 0; r < op->n_results; r++)
			if (leads[op->first_result + r])
				join(&to, leads[op->first_result + r]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			join(&leads[op->operands[k]], to ? to : SEVERAL);
		if (to == 0 || to == SEVERAL || !parameter_of[to - 1] || f->forward[id] ||
		    f->position[id] < 0)
			continue;
		const position_list *list =
			&p->lists[p->source[f->inner + parameter_of[to - 1] - 1]];
		int32_t at = nearest_up_to(list, f->position[id]);
		if (at >= 0)
			f->position[id] = at;
	}
}

static void place_gradients(position_finder *p)
{
	const sw_stage_finder *f = p->f;
	uint32_t *parameter_of = SW_NEW_N(&p->f->arena, uint32_t, f->n_inner);
	for (uint32_t k = 0; k < f->n_inner; k++)
		if (f->gradient_of[k])
			parameter_of[f->gradient_of[k] - 1] = k + 1;
	pull_gradients(p, parameter_of);
}

/* ---- work ------------------------------------------------------------------------------- */

static double op_seconds(const sw_stage_finder *f, sw_id id, double flops)
{
	const sw_remat_device *device = &f->options.device;
	if (f->options.by_ops)
		return f->position[id] >= 0;
	if (f->options.op_s)
		return f->options.op_s[id];
	return SW_MAX(flops / device->flops_per_s,
	              sw_op_bytes(f->program, id) / device->bytes_per_s);
}

/* Set per op of the body which op's position has its work: its own, or for what is no flow that of its
 * first reader; SW_NO_ID: nothing reads it. It is computed in every stage that reads it, but counted
 * once. */
static sw_id *find_bearers(sw_stage_finder *f)
{
	sw_id *bearer = SW_NEW_N(&f->arena, sw_id, f->body->ops.len + 1),
	      *reader = SW_NEW_N(&f->arena, sw_id, f->program->values.len + 1);
	memset(reader, 0xff, sizeof(*reader) * f->program->values.len);
	for (size_t i = f->body->ops.len; i-- > 0;) {
		const sw_op *op = sw_body_op(f, i);
		sw_id id = f->body->ops.data[i];
		bearer[i] = f->position[id] < 0 ? SW_NO_ID : id;
		for (uint32_t r = 0; r < op->n_results && f->position[id] < 0; r++)
			bearer[i] = SW_MIN(bearer[i], reader[op->first_result + r]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (bearer[i] != SW_NO_ID)
				reader[op->operands[k]] = bearer[i];
	}
	return bearer;
}

void sw_stage_add_work(sw_stage_finder *f)
{
	size_t n = (size_t)f->n_positions;
	const sw_id *bearer = find_bearers(f);
	f->position_forward_s = SW_NEW_N(&f->arena, double, n);
	f->position_backward_s = SW_NEW_N(&f->arena, double, n);
	f->position_flops = SW_NEW_N(&f->arena, double, n);
	for (size_t i = 0; i < f->body->ops.len; i++) {
		sw_id id = f->body->ops.data[i];
		if (bearer[i] == SW_NO_ID)
			continue;
		int32_t at = f->position[bearer[i]];
		double flops = sw_op_flops(f->program, id), seconds = op_seconds(f, id, flops);
		(f->forward[bearer[i]] ? f->position_forward_s : f->position_backward_s)[at] +=
			seconds;
		f->position_flops[at] += flops;
	}
}

/* ---- what crosses ----------------------------------------------------------------------- */

static void widen(sw_position_span *span, int32_t position)
{
	span->first = SW_MIN(span->first, position);
	span->last = SW_MAX(span->last, position);
}

/* `bytes` cross every cut from behind `from` to before `to`. */
static void cross(int64_t *steps, int32_t from, int32_t to, int64_t bytes)
{
	if (from < to) {
		steps[from] += bytes;
		steps[to] -= bytes;
	}
}

static void sum_up(int64_t *steps, int32_t n)
{
	for (int32_t i = 1; i < n; i++)
		steps[i] += steps[i - 1];
}

static sw_position_span *find_spans(sw_stage_finder *f)
{
	sw_position_span *spans = SW_NEW_N(&f->arena, sw_position_span, f->program->values.len);
	for (size_t i = 0; i < f->program->values.len; i++)
		spans[i] = (sw_position_span){INT32_MAX, -1};
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = sw_body_op(f, i);
		int32_t at = f->position[f->body->ops.data[i]];
		for (uint32_t k = 0; k < op->n_operands && at >= 0; k++)
			widen(&spans[op->operands[k]], at);
	}
	return spans;
}

/* Copies of a parameter, from its first reader to its last one and to its gradient's sum, cross
 * once a step: in microbatches, there and back. */
static void cross_parameters(position_finder *p)
{
	sw_stage_finder *f = p->f;
	f->parameters = SW_NEW_N(&f->arena, sw_position_span, f->n_inner);
	for (uint32_t k = 0; k < f->n_inner; k++) {
		const position_list *list = &p->lists[f->inner + k];
		sw_position_span *span = &f->parameters[k];
		*span = (sw_position_span){0, -1};
		if (!sw_element_is_import(f, k) || !list->len || !f->state_value[f->inner + k])
			continue;
		*span = (sw_position_span){list->data[0], list->data[list->len - 1]};
		if (f->gradient_of[k])
			widen(span,
			      f->position[sw_maker_of(
				      f->program, f->body->results.data[f->gradient_of[k] - 1])]);
		int64_t bytes = sw_bytes_of(f, f->inner + k) / f->n_microbatches;
		cross(f->up_bytes, span->first, span->last, bytes);
		cross(f->down_bytes, span->first, span->last, bytes);
	}
}

static void add_crossings(position_finder *p)
{
	sw_stage_finder *f = p->f;
	int32_t n = f->n_positions;
	sw_position_span *spans = find_spans(f);
	f->up_bytes = SW_NEW_N(&f->arena, int64_t, n + 1);
	f->down_bytes = SW_NEW_N(&f->arena, int64_t, n + 1);
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = sw_body_op(f, i);
		int32_t at = f->position[f->body->ops.data[i]];
		for (uint32_t r = 0; r < op->n_results && at >= 0; r++) {
			sw_id value = op->first_result + r;
			if (spans[value].last < 0)
				continue;
			cross(f->up_bytes, at, spans[value].last, sw_bytes_of(f, value));
			cross(f->down_bytes, spans[value].first, at, sw_bytes_of(f, value));
		}
	}
	cross_parameters(p);
	sum_up(f->up_bytes, n);
	sum_up(f->down_bytes, n);
}

void sw_stage_find_positions(sw_stage_finder *f)
{
	position_finder p = {.f = f};
	size_t n = f->program->values.len;
	p.lists = sw_alloc(sizeof(position_list) * n);
	p.source = sw_alloc(sizeof(sw_id) * n);
	p.form = sw_alloc(sizeof(sw_id) * n);
	f->position = SW_NEW_N(&f->arena, int32_t, f->program->ops.len);
	for (size_t i = 0; i < f->program->ops.len; i++)
		f->position[i] = -1;
	for (size_t i = 0; i < n; i++)
		p.source[i] = p.form[i] = SW_NO_ID;
	place_all(&p);
	move_recomputed(&p);
	place_gradients(&p);
	add_crossings(&p);
	for (size_t i = 0; i < n; i++)
		sw_vec_clear(&p.lists[i]);
	free(p.lists);
	free(p.source);
	free(p.form);
}
