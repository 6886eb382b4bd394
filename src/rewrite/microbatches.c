/*
 * The looped program. Each phase becomes a `while` that counts iterations; its body is the phase's
 * ops as one device of the time atom would run them (sw_rule_localize, with the iteration as
 * coordinate), so that slices, positions and numbers drawn by position come from the rules. A loop
 * carries the iteration; IMPORTS: whole values computed outside that the body reads; EXPORTS: sums,
 * and whole values that are filled iteration by iteration. Loops and branches within a body carry
 * the iteration as an additional value. The canonical form, taken at the end, drops carried values
 * without readers.
 */
#include "rewrite/microbatches.h"

#include <stdlib.h>
#include <string.h>

/* ---- a phase ---------------------------------------------------------------------------- */

/* Write the parameters: the iteration, imports, exports. Return the first. */
static sw_id write_boundaries(sw_iteration *w, const sw_loop_values *x)
{
	sw_looper *l = w->l;
	uint32_t n = 1 + (uint32_t)(x->imports.len + x->exports.len);
	sw_shape *shapes = SW_NEW_N(&l->out->arena, sw_shape, n);
	shapes[0] = (sw_shape){.type = SW_S32};
	for (size_t i = 0; i < x->imports.len; i++)
		shapes[1 + i] = sw_part_shape(l, x->imports.data[i], SW_TIME_SAME);
	for (size_t i = 0; i < x->exports.len; i++)
		shapes[1 + x->imports.len + i] = sw_carried_shape(l, x->exports.data[i]);
	sw_id first = sw_emit_elements(l->out, w->at.computation, shapes, n);
	w->at.atom[0] = first;
	for (size_t i = 0; i < x->imports.len; i++)
		sw_iteration_put(w, x->imports.data[i], SW_TIME_SAME, first + 1 + (sw_id)i);
	return first;
}

static int32_t write_condition(sw_looper *l, const sw_loop_values *x)
{
	sw_iteration w;
	sw_iteration_init(&w, l, -1, "more_microbatches");
	sw_id first = write_boundaries(&w, x);
	sw_id iterations = sw_emit_scalar(l->out, w.at.computation, SW_S32, l->t->atoms.size[0]);
	sw_id more = sw_emit_compare(l->out, w.at.computation, SW_LT, first, iterations);
	sw_build_results(l->out, w.at.computation, &more, 1, false);
	sw_map_clear(&w.versions);
	return w.at.computation;
}

/* Write the ops of a phase. Exports stand in the order of their ops; each is combined with its
 * carried value as soon as it is computed, so that no two gradients are live while they wait for
 * it. `carried` becomes the values of the exports after the iteration. */
static sw_status write_ops(sw_iteration *w, const sw_loop_values *x, sw_id *carried)
{
	const sw_program *in = w->l->in;
	const sw_computation *entry = sw_entry(in);
	sw_status status = SW_OK;
	size_t next = 0;
	for (size_t i = 0; i < entry->ops.len && status == SW_OK; i++) {
		sw_id id = entry->ops.data[i];
		if (!sw_looper_in_phase(w->l, w->phase, id))
			continue;
		status = sw_iteration_write_op(w, id);
		for (; status == SW_OK && next < x->exports.len &&
		       in->values.data[x->exports.data[next]].op == id;
		     next++)
			status = sw_iteration_export(w, x->exports.data[next], carried[next],
			                             &carried[next]);
	}
	return status;
}

static sw_status write_body(sw_looper *l, int32_t phase, const sw_loop_values *x, int32_t *to)
{
	sw_iteration w;
	size_t at = 1 + x->imports.len, n = at + x->exports.len;
	sw_id *results = sw_alloc(sizeof(sw_id) * n);
	sw_iteration_init(&w, l, phase, "microbatch");
	sw_id first = write_boundaries(&w, x);
	for (size_t i = 0; i < n; i++)
		results[i] = first + (sw_id)i;
	sw_status status = write_ops(&w, x, results + at);
	if (status == SW_OK) {
		sw_id one = sw_emit_scalar(l->out, w.at.computation, SW_S32, 1);
		results[0] = sw_emit_binary(l->out, w.at.computation, SW_OP_ADD, first, one);
		sw_build_results(l->out, w.at.computation, results, (uint32_t)n, true);
	}
	*to = w.at.computation;
	sw_map_clear(&w.versions);
	free(results);
	return status;
}

static sw_status write_phase(sw_looper *l, int32_t phase)
{
	sw_loop_values x;
	int32_t called[2];
	sw_id first;
	sw_loop_values_find(l, phase, &x);
	size_t at = 1 + x.imports.len, n = at + x.exports.len;
	sw_id *operands = sw_alloc(sizeof(sw_id) * n);
	called[0] = write_condition(l, &x);
	sw_status status = write_body(l, phase, &x, &called[1]);
	operands[0] = sw_emit_scalar(l->out, l->entry, SW_S32, 0);
	for (size_t i = 0; i < x.imports.len; i++)
		operands[1 + i] = l->whole[x.imports.data[i]];
	for (size_t i = 0; i < x.exports.len; i++)
		operands[at + i] = sw_carried_initial(l, x.exports.data[i]);
	sw_attrs attrs = {.loop = {.trip_count = l->t->atoms.size[0]}};
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .name = SW_MICROBATCH_LOOP,
	                   .operands = operands,
	                   .n_operands = (uint32_t)n,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs,
	                   .tuple = true};
	if (status == SW_OK)
		status = sw_build_op(l->out, l->entry, &spec, &first, l->err);
	for (size_t i = 0; i < x.exports.len && status == SW_OK; i++) {
		sw_id value = x.exports.data[i], carried = first + (sw_id)(at + i);
		l->whole[value] = sw_carried_result(l, value, carried);
		if (l->takes_apart && l->whole[value] != carried &&
		    l->t->value[value].monoid == SW_MONOID_SUM)
			l->wide[value] = carried;
	}
	free(operands);
	sw_loop_values_clear(&x);
	return status;
}

/* ---- the entry -------------------------------------------------------------------------- */

static sw_status write_whole_op(sw_looper *l, sw_id id)
{
	const sw_op *op = sw_op_at(l->in, id);
	bool instead;
	sw_status status = sw_looper_widen(l, id, &instead);
	if (status || instead)
		return status;
	sw_id *operands = SW_NEW_N(&l->out->arena, sw_id, op->n_operands + 1);
	int32_t *called = SW_NEW_N(&l->out->arena, int32_t, op->n_called + 1);
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = l->whole[op->operands[k]];
	sw_looper_copy_called(l, op, called);
	sw_id first = sw_build_copy_op(l->out, l->entry, l->in, id, operands, called);
	for (uint32_t k = 0; k < op->n_results; k++)
		l->whole[op->first_result + k] = first + k;
	return first == SW_NO_ID ? sw_fail(l->err, SW_ERR_INTERNAL,
	                                   "microbatches: op '%s' can't be copied", op->name)
	                         : SW_OK;
}

/* Write the ops without time that stand after this number of loops. Parameters come first of
 * all. */
static sw_status write_between(sw_looper *l, int32_t loops)
{
	const sw_computation *entry = sw_entry(l->in);
	sw_status status = SW_OK;
	for (size_t i = 0; i < entry->ops.len && status == SW_OK; i++) {
		sw_id id = entry->ops.data[i];
		if (l->p->phase[id] == loops && !l->t->touched[id])
			status = write_whole_op(l, id);
	}
	return status;
}

static sw_status write_entry(sw_looper *l)
{
	const sw_computation *entry = sw_entry(l->in);
	l->entry = sw_build_computation(l->out, entry->name);
	sw_status status = write_between(l, 0);
	for (int32_t phase = 0; phase < l->p->n && status == SW_OK; phase++) {
		status = write_phase(l, phase);
		if (status == SW_OK)
			status = write_between(l, phase + 1);
	}
	if (status != SW_OK)
		return status;
	sw_id *results = SW_NEW_N(&l->out->arena, sw_id, entry->results.len + 1);
	for (size_t i = 0; i < entry->results.len; i++)
		results[i] = l->whole[entry->results.data[i]];
	sw_build_results(l->out, l->entry, results, (uint32_t)entry->results.len,
	                 entry->root_tuple);
	l->out->entry = l->entry;
	return SW_OK;
}

static sw_status write_program(const sw_phasing *p, sw_program **out, sw_error *err)
{
	const sw_program *in = p->timing.program;
	sw_looper l = {
		.p = p, .t = &p->timing, .in = in, .out = sw_program_new(in->name), .err = err};
	l.computation = sw_alloc(sizeof(int32_t) * (in->computations.len + 1));
	l.whole = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	memset(l.computation, 0xff, sizeof(int32_t) * in->computations.len);
	l.wide = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	for (size_t v = 0; v < in->values.len; v++)
		l.whole[v] = l.wide[v] = SW_NO_ID;
	for (size_t i = 0; i < in->ops.len; i++)
		l.takes_apart = l.takes_apart || in->ops.data[i].opcode == SW_OP_TERMS;
	sw_build_copy_frame(l.out, in);
	sw_status status = write_entry(&l);
	if (status == SW_OK)
		status = sw_rewrite_canonical(l.out, out, err);
	sw_program_free(l.out);
	free(l.computation);
	free(l.whole);
	free(l.wide);
	return status;
}

/* ---- the pass --------------------------------------------------------------------------- */

static sw_status refused(const sw_phasing *p, int32_t microbatches, sw_error *err)
{
	if (p->timing.refuses == SW_NO_ID)
		return sw_fail(err, SW_NO, "program '%s': no op reads an input that has a batch",
		               p->timing.program->name);
	const sw_op *op = sw_op_at(p->timing.program, p->timing.refuses);
	return sw_fail_at(
		err, SW_NO, p->timing.program->source, op->line, 0,
		"%d microbatches are not possible: %s '%s': %s; the batch comes to it by %s",
		microbatches, sw_op_opcode_name(op), op->name, p->timing.why, sw_phasing_path(p));
}

static sw_status wrong_number(const sw_phasing *p, int32_t microbatches, const sw_sidecar *sidecar,
                              sw_error *err)
{
	bool any = false;
	for (uint32_t i = 0; i < sidecar->n_inputs; i++)
		any = any || p->inputs[i] >= 0;
	if (!any && microbatches > 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "%d microbatches: no input has rows of a batch, and what a step draws or "
		               "picks out of tables is not divided: take 1",
		               microbatches);
	return sw_fail(err, SW_ERR_INPUT,
	               "%d microbatches: expected 2 or more that divide the batch, which is %lld",
	               microbatches, (long long)p->batch);
}

sw_status sw_rewrite_microbatches(const sw_program *in, const sw_sidecar *sidecar,
                                  int32_t microbatches, sw_program **out, sw_error *err)
{
	sw_phasing p;
	sw_status status;
	*out = NULL;
	sw_phasing_init(&p, in, sidecar);
	if (microbatches < 2 || p.batch % microbatches != 0)
		status = wrong_number(&p, microbatches, sidecar, err);
	else if (!sw_phasing_find(&p, microbatches) || p.n == 0)
		status = refused(&p, microbatches, err);
	else
		status = write_program(&p, out, err);
	sw_phasing_clear(&p);
	return status;
}
