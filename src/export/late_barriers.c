/* Barriers of rematerialisation, joined with what their readers wait for. */
#include "export/late_barriers.h"

#include <stdlib.h>

#include "export/on_demand.h"
#include "program/attributes.h"

/* One reader, and what it waits for. */
typedef struct barrier_meeting {
	sw_id waits_for;
	size_t first, n; /* of the list of barriers */
	bool dropped;
	sw_id tied; /* what it waits for, behind the barrier, in the new program */
} barrier_meeting;

typedef struct joiner {
	sw_on_demand w;
	uint64_t *sense; /* per value: equal where the same is computed, whatever barriers lie
	                    between */
	/* per value: it is a barrier's, or computed from some before anything that waits for the
	 * derivative; it is computed a second time */
	bool *behind, *again;
	bool *waits;       /* per value: it stands behind what is kept, and follows from it */
	uint32_t *meeting; /* per value that is behind barriers: 1 + that of its first reader; 0:
	                      none */
	bool *joins;       /* per value: it is a barrier's that its meeting joins with others */
	uint32_t *reads;   /* per op: 1 + its own meeting; 0: none */
	SW_VEC(barrier_meeting) list;
	SW_VEC(sw_id) barriers; /* values of barriers, by meeting */
	uint32_t n_joined;
} joiner;

/* ---- copies ------------------------------------------------------------------------------- */

static bool is_single_barrier(const sw_op *op)
{
	return op->opcode == SW_OP_OPT_BARRIER && op->n_operands == 1;
}

static uint64_t sense_of(const joiner *x, const sw_op *op)
{
	if (is_single_barrier(op))
		return x->sense[op->operands[0]];
	sw_text key = {0};
	uint64_t opcode = op->opcode;
	sw_text_add_n(&key, (const char *)&opcode, sizeof(opcode));
	if (op->attrs)
		sw_attributes_key((sw_opcode)op->opcode, op->attrs, &key);
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_text_add_n(&key, (const char *)&x->sense[op->operands[k]], sizeof(uint64_t));
	for (uint32_t k = 0; k < op->n_called; k++)
		sw_text_addf(&key, " %d", sw_computation_monoid(x->w.in, op->called[k]));
	for (uint32_t r = 0; r < op->n_results; r++)
		sw_shape_print(sw_value_shape(x->w.in, op->first_result + r), &key);
	uint64_t hash = sw_hash_bytes(key.data, key.len, 0);
	sw_text_clear(&key);
	return hash;
}

/* Set the senses of an op's results. Return whether an earlier op computes the same. */
static bool find_sense(joiner *x, sw_map *seen, sw_id id)
{
	const sw_op *op = sw_op_at(x->w.in, id);
	uint64_t whole = op->opcode == SW_OP_PARAMETER ? sw_hash_u64(id, 1) : sense_of(x, op);
	if (is_single_barrier(op)) {
		x->sense[op->first_result] = whole;
		return false;
	}
	for (uint32_t r = 0; r < op->n_results; r++)
		x->sense[op->first_result + r] = sw_hash_u64(whole, r);
	return sw_map_put(seen, &whole, sizeof(whole), 0) != SW_ABSENT;
}

static bool reads_behind(const joiner *x, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (x->behind[op->operands[k]])
			return true;
	return false;
}

/* Mark what is computed again, and what of that is behind barriers. Return the last value of those
 * that the barriers keep and that stand before the first barrier: what waits for the derivative
 * stands behind it. SW_NO_ID: there is no barrier. */
static sw_id last_kept(joiner *x, const sw_computation *c)
{
	sw_map seen = {0};
	sw_id first = SW_NO_ID, last = SW_NO_ID;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(x->w.in, c->ops.data[i]);
		if (op->n_results == 0)
			continue;
		bool barrier = is_single_barrier(op), copy = find_sense(x, &seen, c->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++) {
			x->again[op->first_result + r] = copy;
			x->behind[op->first_result + r] = barrier || (copy && reads_behind(x, op));
		}
		if (!barrier)
			continue;
		first = SW_MIN(first, op->first_result);
		if (op->operands[0] < first && (last == SW_NO_ID || op->operands[0] > last))
			last = op->operands[0];
	}
	sw_map_clear(&seen);
	return last;
}

/* ---- meetings ------------------------------------------------------------------------------- */

/* Return whether an op reads a value of the step itself: neither what is computed again, nor what
 * follows from inputs and constants alone, as masks do that are computed again in another form. */
static bool reads_step(const joiner *x, const sw_op *op, sw_id after)
{
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id value = op->operands[k];
		uint8_t opcode = sw_op_at(x->w.in, x->w.in->values.data[value].op)->opcode;
		bool source = opcode == SW_OP_PARAMETER || opcode == SW_OP_CONSTANT ||
		              opcode == SW_OP_IOTA;
		if (value > after ? x->waits[value] : !source)
			return true;
	}
	return false;
}

/* Return the operand that is computed last of those that wait for the derivative; SW_NO_ID: none.
 */
static sw_id last_operand(const joiner *x, const sw_op *op)
{
	sw_id last = SW_NO_ID;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id value = op->operands[k];
		if (x->waits[value] && (last == SW_NO_ID || value > last))
			last = value;
	}
	return last;
}

/* What waits for scores would keep a compiler from computing them where they are read; constants
 * and masks are not worth that: on one H100 a step of a GPT of 124 M took 39.3 ms with no barriers
 * joined, and 44.3 with these among those that were. */
enum { MOST_BYTES = 4 }; /* of what a reader waits for, per byte that was kept */

static double bytes_of(const joiner *x, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(x->w.in, value));
}

/* Let a reader meet all barriers that its operands are behind, but for those that have met another.
 * waits_for SW_NO_ID: it waits for nothing, and they stay as they are. */
static void meet(joiner *x, sw_id id, sw_id waits_for)
{
	const sw_op *op = sw_op_at(x->w.in, id);
	barrier_meeting m = {.waits_for = waits_for, .first = x->barriers.len};
	SW_VEC(sw_id) left = {0};
	double bytes_brought = 0;
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_vec_push(&left, op->operands[k]);
	while (left.len > 0) {
		sw_id value = left.data[--left.len];
		const sw_op *from = sw_op_at(x->w.in, x->w.in->values.data[value].op);
		if (!x->behind[value] || x->meeting[value])
			continue;
		x->meeting[value] = (uint32_t)x->list.len + 1;
		/* what is behind a barrier itself would wait for this one */
		x->joins[value] = is_single_barrier(from) && !x->behind[from->operands[0]];
		if (x->joins[value]) {
			sw_vec_push(&x->barriers, value);
			bytes_brought += bytes_of(x, value);
		}
		for (uint32_t k = 0; k < from->n_operands && !x->joins[value]; k++)
			sw_vec_push(&left, from->operands[k]);
	}
	sw_vec_clear(&left);
	m.n = x->barriers.len - m.first;
	/* what it waits for must not be made of what it brings; and it is stored for the barrier */
	m.dropped =
		waits_for == SW_NO_ID || m.n == 0 ||
		bytes_of(x, waits_for) > MOST_BYTES * bytes_brought ||
		sw_needs_given(x->w.in, &waits_for, 1, x->barriers.data + m.first, (uint32_t)m.n);
	sw_vec_push(&x->list, m);
	if (!m.dropped)
		x->reads[id] = (uint32_t)x->list.len;
}

static void find_meetings(joiner *x, int32_t computation)
{
	const sw_computation *c = &x->w.in->computations.data[computation];
	sw_id after = last_kept(x, c);
	for (size_t i = 0; i < c->ops.len && after != SW_NO_ID; i++) {
		const sw_op *op = sw_op_at(x->w.in, c->ops.data[i]);
		if (op->n_results == 0 || op->first_result <= after || x->behind[op->first_result])
			continue;
		bool reads = reads_behind(x, op), step = reads_step(x, op, after);
		if (reads && step)
			meet(x, c->ops.data[i], last_operand(x, op));
		for (uint32_t r = 0; r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			x->behind[value] = reads && !step;
			x->waits[value] = step && !x->again[value];
		}
	}
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Write the one barrier of a meeting. */
static sw_giving give_meeting(joiner *x, int32_t c, barrier_meeting *m)
{
	const sw_id *barriers = x->barriers.data + m->first;
	SW_VEC(sw_id) operands = {0};
	sw_id first = SW_NO_ID;
	sw_error err = {0};
	for (size_t i = 0; i < m->n; i++)
		sw_vec_push(&operands,
		            sw_op_at(x->w.in, x->w.in->values.data[barriers[i]].op)->operands[0]);
	sw_vec_push(&operands, m->waits_for);
	if (!sw_on_demand_have(&x->w, operands.data, (uint32_t)operands.len)) {
		sw_vec_clear(&operands);
		return SW_GIVE_LATER;
	}
	for (size_t i = 0; i < operands.len; i++)
		operands.data[i] = x->w.value[operands.data[i]];
	sw_op_spec spec = {.opcode = SW_OP_OPT_BARRIER,
	                   .operands = operands.data,
	                   .n_operands = (uint32_t)operands.len,
	                   .tuple = true};
	sw_status status = sw_build_op(x->w.out, c, &spec, &first, &err);
	sw_vec_clear(&operands);
	if (status != SW_OK)
		return SW_GIVE_FAILED;
	for (size_t i = 0; i < m->n; i++)
		x->w.value[barriers[i]] = first + (sw_id)i;
	m->tied = first + (sw_id)m->n;
	x->n_joined += (uint32_t)m->n;
	return SW_GIVEN;
}

/* Copy a reader. It reads what it waits for from the barrier, which else would have an operand that
 * nobody reads, and that a compiler leaves out. */
static sw_giving give_reader(joiner *x, int32_t c, sw_id value, const barrier_meeting *m)
{
	const sw_op *op = sw_op_at(x->w.in, x->w.in->values.data[value].op);
	if (!sw_on_demand_have(&x->w, op->operands, op->n_operands))
		return SW_GIVE_LATER;
	sw_id plain = x->w.value[m->waits_for];
	x->w.value[m->waits_for] = m->tied;
	sw_giving giving = sw_on_demand_copy(&x->w, c, value);
	x->w.value[m->waits_for] = plain;
	return giving;
}

static sw_giving give(sw_on_demand *w, int32_t c, sw_id value)
{
	joiner *x = (joiner *)w;
	sw_id id = w->in->values.data[value].op;
	barrier_meeting *m = x->joins[value] ? &x->list.data[x->meeting[value] - 1] : NULL;
	if (m && !m->dropped)
		return give_meeting(x, c, m);
	return x->reads[id] ? give_reader(x, c, value, &x->list.data[x->reads[id] - 1])
	                    : sw_on_demand_copy(w, c, value);
}

sw_status sw_late_barriers(const sw_program *in, sw_program **out, uint32_t *n_joined,
                           sw_error *err)
{
	joiner x = {0};
	size_t n = in->values.len + 1;
	sw_on_demand_open(&x.w, in, give);
	x.sense = sw_alloc(n * sizeof(*x.sense));
	x.behind = sw_alloc(n * sizeof(*x.behind));
	x.again = sw_alloc(n * sizeof(*x.again));
	x.meeting = sw_alloc(n * sizeof(*x.meeting));
	x.waits = sw_alloc(n * sizeof(*x.waits));
	x.joins = sw_alloc(n * sizeof(*x.joins));
	x.reads = sw_alloc((in->ops.len + 1) * sizeof(*x.reads));
	for (size_t c = 0; c < in->computations.len; c++)
		find_meetings(&x, (int32_t)c);
	sw_status status = sw_on_demand_close(&x.w, out, "barriers", err);
	*n_joined = x.n_joined;
	sw_vec_clear(&x.list);
	sw_vec_clear(&x.barriers);
	free(x.sense);
	free(x.behind);
	free(x.again);
	free(x.meeting);
	free(x.waits);
	free(x.joins);
	free(x.reads);
	return status;
}
