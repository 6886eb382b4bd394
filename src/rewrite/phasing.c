/*
 * Phases: assign every op of the entry to a loop, or to a place between loops.
 *
 * First, sums of data alone that something waits for, as the number of tokens that count in a loss, are
 * taken out of the loops with all that they are made of: they need no loop of their own. Then ops are
 * placed as early as their operands allow. A partial sum is available as a partial
 * sum in the loop that adds it up, and as a sum only after that loop. Then, backwards, each op gets
 * the latest phase that its readers allow, so that values that a second loop needs are computed
 * there and not stored by the first. Then ops are placed again, no earlier than that: an op that
 * passed partial sums which now belong to different loops reads their sums instead. Then ops that
 * could as well run once after the loop are moved there: those that only pass sums on and do not
 * reduce the bytes that must be carried. Finally, sources are sunk into the loops. O(ops) each.
 */
#include "rewrite/phasing.h"
#include "rewrite/internal.h"

#include <string.h>

static bool is_partial(sw_time time)
{
	return time.state.kind == SW_STATE_P;
}
static bool is_split(sw_time time)
{
	return time.state.kind == SW_STATE_S;
}

static sw_id producer(const sw_phasing *p, sw_id value)
{
	return p->timing.program->values.data[value].op;
}

static const sw_op *op_at(const sw_phasing *p, sw_id id)
{
	return sw_op_at(p->timing.program, id);
}

sw_type sw_sum_type(sw_type type, sw_monoid monoid)
{
	bool is_short = sw_type_kind_of(type) == SW_KIND_FLOAT && sw_type_bytes(type) < 4;
	return monoid == SW_MONOID_SUM && is_short ? SW_F32 : type;
}

bool sw_is_source(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	if (op->opcode == SW_OP_BROADCAST)
		return sw_is_source(program, op->operands[0]);
	return op->opcode == SW_OP_IOTA ||
	       (op->opcode == SW_OP_CONSTANT && sw_value_shape(program, value).rank == 0);
}

/* ---- how a value is read ---------------------------------------------------------------- */

/* Return whether the op can read the value in the same loop, in its own state: otherwise only parts
 * of a stored value can be read, and sums once they are complete. */
static bool read_as_it_is(const sw_phasing *p, sw_id reader, sw_id value, sw_time need)
{
	return p->timing.touched[producer(p, value)] && p->timing.touched[reader] &&
	       sw_time_equal(p->timing.value[value], need);
}

/* Return whether the op can read the value only behind the loop that computes it. */
static bool waits_for(const sw_phasing *p, sw_id reader, sw_id value, sw_time need)
{
	return p->timing.touched[producer(p, value)] && !read_as_it_is(p, reader, value, need);
}

static sw_time *needs_of(const sw_phasing *p, sw_id id)
{
	sw_time *needs = sw_alloc(sizeof(*needs) * (op_at(p, id)->n_operands + 1));
	sw_timing_needs(&p->timing, id, needs);
	return needs;
}

static int32_t earliest(const sw_phasing *p, sw_id id, int32_t least)
{
	const sw_op *op = op_at(p, id);
	sw_time *needs = needs_of(p, id);
	for (uint32_t k = 0; k < op->n_operands; k++)
		least = SW_MAX(least, p->phase[producer(p, op->operands[k])] +
		                              waits_for(p, id, op->operands[k], needs[k]));
	free(needs);
	return least;
}

/* Return whether a region reads nothing of the iteration but partial sums, as the branches do of
 * which one takes the updates if all gradients are finite. */
static bool region_passes(const sw_phasing *p, sw_id id)
{
	sw_time *needs = needs_of(p, id);
	bool passes = p->timing.touched[id];
	for (uint32_t k = 0; k < op_at(p, id)->n_operands; k++)
		passes &= !is_split(needs[k]);
	free(needs);
	return passes;
}

/* Return whether the op only passes partial sums on, as a barrier does, too. */
static bool only_passes(const sw_phasing *p, sw_id id)
{
	const sw_op *op = op_at(p, id);
	if (sw_is_region(op))
		return region_passes(p, id);
	if (op->opcode == SW_OP_OPT_BARRIER)
		return is_partial(p->timing.value[op->first_result]);
	return p->timing.touched[id] && p->timing.choice[id].kind == SW_CHOICE_PASS;
}

/* Return whether all terms that the op passes are those of its own loop. */
static bool terms_at_hand(const sw_phasing *p, sw_id id)
{
	const sw_op *op = op_at(p, id);
	sw_time *needs = needs_of(p, id);
	bool at_hand = true;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (is_partial(needs[k]))
			at_hand &= read_as_it_is(p, id, op->operands[k], needs[k]) &&
			           p->phase[producer(p, op->operands[k])] == p->phase[id];
	free(needs);
	return at_hand;
}

/* ---- sums of data ----------------------------------------------------------------------- */

static void find_data(sw_phasing *p, const sw_program *program, const sw_id *inputs, uint32_t n,
                      const sw_sidecar *sidecar)
{
	const sw_computation *entry = sw_entry(program);
	p->of_data = SW_NEW_N(&p->timing.arena, bool, program->values.len + 1);
	for (uint32_t i = 0; i < n; i++)
		p->of_data[inputs[i]] = sidecar->inputs[i].role == SW_ROLE_DATA;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(program, entry->ops.data[i]);
		bool all = op->opcode != SW_OP_PARAMETER;
		for (uint32_t k = 0; k < op->n_operands; k++)
			all = all && p->of_data[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results && all; r++)
			p->of_data[op->first_result + r] = true;
	}
}

/* Take what waits for sums of data out of the loops, last ops first, so that a reader is seen before
 * what it reads. */
static void release_counts(sw_phasing *p)
{
	const sw_computation *entry = sw_entry(p->timing.program);
	bool *out = sw_alloc(p->timing.program->ops.len + 1); /* per op */
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id id = entry->ops.data[i];
		sw_time *needs = needs_of(p, id);
		for (uint32_t k = 0; k < op_at(p, id)->n_operands; k++) {
			sw_id value = op_at(p, id)->operands[k];
			bool waits = is_partial(p->timing.value[value]) &&
			             waits_for(p, id, value, needs[k]);
			if (p->of_data[value] && (out[id] || waits))
				out[producer(p, value)] = true;
		}
		free(needs);
	}
	for (size_t i = 0; i < entry->ops.len; i++)
		if (out[entry->ops.data[i]] && p->timing.touched[entry->ops.data[i]])
			sw_timing_release(&p->timing, entry->ops.data[i]);
	free(out);
}

/* ---- early and late placement ----------------------------------------------------------- */

/* Place ops as early as possible, but not before least[op] (NULL: 0). */
static void place_early(sw_phasing *p, const int32_t *least)
{
	const sw_computation *entry = sw_entry(p->timing.program);
	p->n = 0;
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		int32_t from = least ? least[id] : 0;
		p->phase[id] = earliest(p, id, from);
		if (only_passes(p, id) && !terms_at_hand(p, id)) {
			sw_timing_release(&p->timing, id);
			p->phase[id] = earliest(p, id, from);
		}
		if (op_at(p, id)->opcode == SW_OP_PARAMETER)
			p->phase[id] = 0;
		if (p->timing.touched[id])
			p->n = SW_MAX(p->n, p->phase[id] + 1);
	}
}

/* Find the latest phase of each op that its readers allow. */
static void find_latest(const sw_phasing *p, int32_t *latest)
{
	const sw_computation *entry = sw_entry(p->timing.program);
	for (size_t i = 0; i < entry->ops.len; i++)
		latest[entry->ops.data[i]] =
			p->timing.touched[entry->ops.data[i]] ? p->n - 1 : p->n;
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = op_at(p, id);
		sw_time *needs = needs_of(p, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = producer(p, op->operands[k]);
			latest[from] = SW_MIN(latest[from],
			                      latest[id] - waits_for(p, id, op->operands[k], needs[k]));
		}
		free(needs);
	}
}

static void place_late(sw_phasing *p)
{
	int32_t *latest = sw_alloc(sizeof(*latest) * (p->timing.program->ops.len + 1));
	place_early(p, NULL);
	find_latest(p, latest);
	place_early(p, latest);
	free(latest);
}

/* ---- values that leave their loop ------------------------------------------------------- */

static void leave(sw_phasing *p, sw_id value, sw_id reader)
{
	if (!p->timing.touched[producer(p, value)])
		return;
	p->leaves[value] = true;
	p->reader[value] = reader;
}

/* Note how the op reads its operands. Readers are visited last to first, so that the first one is
 * the one that remains. */
static void note_readings(sw_phasing *p, sw_id id)
{
	const sw_op *op = op_at(p, id);
	sw_time *needs = needs_of(p, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id value = op->operands[k], from = producer(p, value);
		bool local = p->phase[from] == p->phase[id] && read_as_it_is(p, id, value, needs[k]);
		if (!local)
			leave(p, value, id);
		else
			p->passed[value] = true;
	}
	free(needs);
}

static int64_t sum_bytes(const sw_phasing *p, sw_id value)
{
	sw_shape shape = sw_value_shape(p->timing.program, value);
	shape.type = sw_sum_type(shape.type, p->timing.value[value].monoid);
	return sw_shape_bytes(shape);
}

/* Return the bytes that would have to be carried instead if the op read sums: each operand once,
 * without operands that are carried anyway. */
static int64_t bytes_instead(const sw_phasing *p, sw_id id)
{
	const sw_op *op = op_at(p, id);
	int64_t bytes = 0;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		bool again =
			!is_partial(p->timing.value[op->operands[k]]) || p->leaves[op->operands[k]];
		for (uint32_t j = 0; j < k && !again; j++)
			again = op->operands[j] == op->operands[k];
		bytes += again ? 0 : sum_bytes(p, op->operands[k]);
	}
	return bytes;
}

/* Return whether the op may run after the loop: all readers wait for its sum, which is no smaller
 * than the sums that it reads. Then it runs once for all iterations. */
static bool can_wait(const sw_phasing *p, sw_id id)
{
	const sw_op *op = op_at(p, id);
	return only_passes(p, id) && op->n_results == 1 && !p->passed[op->first_result] &&
	       sum_bytes(p, op->first_result) >= bytes_instead(p, id);
}

static void find_leaving(sw_phasing *p)
{
	const sw_computation *entry = sw_entry(p->timing.program);
	size_t values = p->timing.program->values.len;
	memset(p->leaves, 0, values);
	memset(p->passed, 0, values);
	for (size_t i = 0; i < entry->results.len; i++)
		leave(p, entry->results.data[i], SW_NO_ID);
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id id = entry->ops.data[i];
		if (can_wait(p, id)) {
			p->leaves[op_at(p, id)->first_result] = false;
			sw_timing_release(&p->timing, id);
			p->phase[id]++;
		}
		note_readings(p, id);
	}
}

/* ---- sinking sources into loops --------------------------------------------------------- */

enum { UNREAD, READ_IN_PART, READ_WHOLE };
typedef struct sinking {
	sw_phasing *p;
	uint8_t *read; /* per value */
	sw_time *part; /* per value that is read in part */
} sinking;

static void note_part(sinking *d, sw_id value, sw_time need)
{
	sw_time has = d->p->timing.value[value];
	if (has.state.kind != SW_STATE_B)
		return;
	bool first = d->read[value] == UNREAD, in_part = is_split(need);
	if (first && in_part)
		d->part[value] = need;
	bool whole = !in_part || (!first && !sw_time_equal(d->part[value], need));
	d->read[value] = whole ? READ_WHOLE : (uint8_t)SW_MAX(d->read[value], READ_IN_PART);
}

/* Sink the op if all readers of one of its results read the same part, and the op can compute only
 * that part. */
static bool sink(sinking *d, sw_id id)
{
	const sw_op *op = op_at(d->p, id);
	for (uint32_t k = 0; k < op->n_results; k++)
		if (d->read[op->first_result + k] == READ_IN_PART &&
		    sw_timing_sink(&d->p->timing, op->first_result + k,
		                   d->part[op->first_result + k]))
			return true;
	return false;
}

static bool is_read_whole(const sinking *d, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_results; k++)
		if (d->read[op->first_result + k] == READ_WHOLE)
			return true;
	return false;
}

static void sink_computation(sinking *d, int32_t c, const sw_time *results);

/* Note how the computations of a region are read: in the states of the op's results, or of the
 * carried values. */
static void sink_region(sinking *d, const sw_op *op)
{
	static const sw_time same;
	uint32_t n;
	if (op->opcode == SW_OP_WHILE) {
		sink_computation(d, op->called[0], &same);
		sink_computation(
			d, op->called[1],
			&d->p->timing.value[sw_region_parameters(d->p->timing.program, op, 1, &n)]);
		return;
	}
	for (uint32_t k = 0; k < op->n_called; k++)
		sink_computation(d, op->called[k], &d->p->timing.value[op->first_result]);
}

static void sink_op(sinking *d, sw_id id)
{
	static const sw_time same;
	const sw_op *op = op_at(d->p, id);
	bool sunk = !d->p->timing.touched[id] && sink(d, id), whole = sunk && is_read_whole(d, op);
	sw_time *needs = needs_of(d->p, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		note_part(d, op->operands[k], needs[k]);
		if (whole)
			note_part(d, op->operands[k], same);
	}
	free(needs);
	if (d->p->timing.touched[id] && sw_is_region(op))
		sink_region(d, op);
}

static void sink_computation(sinking *d, int32_t c, const sw_time *results)
{
	const sw_computation *computation = &d->p->timing.program->computations.data[c];
	static const sw_time same;
	for (size_t i = 0; i < computation->results.len; i++)
		note_part(d, computation->results.data[i], results ? results[i] : same);
	for (size_t i = computation->ops.len; i-- > 0;)
		sink_op(d, computation->ops.data[i]);
}

static void sink_sources(sw_phasing *p)
{
	size_t values = p->timing.program->values.len;
	sinking d = {.p = p,
	             .read = sw_alloc(values + 1),
	             .part = sw_alloc(sizeof(sw_time) * (values + 1))};
	sink_computation(&d, p->timing.program->entry, NULL);
	free(d.read);
	free(d.part);
}

/* ---- all steps -------------------------------------------------------------------------- */

static void find_batch(sw_phasing *p, const sw_program *program, const sw_sidecar *sidecar)
{
	const sw_id *values;
	uint32_t n = sw_program_inputs(program, program->entry, &p->timing.arena, &values);
	p->inputs = SW_NEW_N(&p->timing.arena, int32_t, n + 1);
	for (uint32_t i = 0; i < n; i++)
		p->inputs[i] = sidecar->inputs[i].role == SW_ROLE_DATA ? 0 : -1;
	p->batch = sw_find_batch(program, values, n, p->inputs);
	find_data(p, program, values, n, sidecar);
}

void sw_phasing_init(sw_phasing *p, const sw_program *program, const sw_sidecar *sidecar)
{
	*p = (sw_phasing){0};
	sw_timing_init(&p->timing, program);
	p->phase = SW_NEW_N(&p->timing.arena, int32_t, program->ops.len);
	p->leaves = SW_NEW_N(&p->timing.arena, bool, program->values.len);
	p->passed = SW_NEW_N(&p->timing.arena, bool, program->values.len);
	p->reader = SW_NEW_N(&p->timing.arena, sw_id, program->values.len);
	find_batch(p, program, sidecar);
}

void sw_phasing_clear(sw_phasing *p)
{
	sw_timing_clear(&p->timing);
}

/* Of a sort of rows from all microbatches: say what it is for, if that is known, and the remedy. */
static bool refuse(sw_phasing *p)
{
	sw_timing *t = &p->timing;
	const sw_op *op = t->refuses == SW_NO_ID ? NULL : op_at(p, t->refuses), *by = NULL;
	if (!op || op->opcode != SW_OP_SORT ||
	    t->value[op->operands[t->through]].state.dim != op->attrs->sort.dimension)
		return false;
	by = sw_needs_order_of(t->program, t->refuses);
	const char *use = by ? sw_arena_printf(&t->arena,
	                                       ", and %s '%s' needs to know the place of each",
	                                       sw_op_opcode_name(by), by->name)
	                     : "";
	t->why = sw_arena_printf(
		&t->arena,
		"it puts rows of all microbatches in one order%s, as where experts have a "
		"capacity: sort the rows of each sample by themselves (jax.vmap), so that each "
		"has a capacity of its own",
		use);
	return false;
}

bool sw_phasing_find(sw_phasing *p, int32_t microbatches)
{
	if (!sw_timing_find(&p->timing, p->inputs, microbatches))
		return refuse(p);
	release_counts(p);
	place_late(p);
	if (p->n == 0 && sw_timing_find(&p->timing, p->inputs, microbatches)) /* all is made of data */
		place_late(p);
	find_leaving(p);
	sink_sources(p);
	return true;
}

/* ---- the path to the op that refuses ---------------------------------------------------- */

/* Return the operand through which time reached an op, or the region whose parameter it is;
 * SW_NO_ID: an input. */
static sw_id came_from(const sw_phasing *p, sw_id value)
{
	const sw_op *op = op_at(p, producer(p, value));
	if (op->opcode == SW_OP_PARAMETER) {
		sw_id region = p->timing.caller[op->computation];
		const sw_op *caller = region == SW_NO_ID ? NULL : op_at(p, region);
		uint32_t k = p->timing.program->values.data[value].index;
		return caller && caller->opcode == SW_OP_WHILE ? caller->operands[k] : SW_NO_ID;
	}
	for (int split = 1; split >= 0; split--)
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_time time = p->timing.value[op->operands[k]];
			if (split ? is_split(time) : is_partial(time))
				return op->operands[k];
		}
	return SW_NO_ID;
}

/* the number of ops named at either end of a path */
#define PATH_ENDS 4

const char *sw_phasing_path(const sw_phasing *p)
{
	const sw_timing *t = &p->timing;
	SW_VEC(const char *) names = {0};
	sw_text text = {0};
	const sw_op *op = op_at(p, t->refuses);
	sw_vec_push(&names, op->name);
	sw_id value = op->n_operands ? op->operands[t->through] : SW_NO_ID;
	for (size_t steps = 0; value != SW_NO_ID && steps < t->program->ops.len; steps++) {
		sw_vec_push(&names, op_at(p, producer(p, value))->name);
		value = came_from(p, value);
	}
	for (size_t i = names.len; i-- > 0;) {
		bool skip = i >= PATH_ENDS && i + PATH_ENDS < names.len;
		if (!skip)
			sw_text_addf(&text, "%s%s", text.len ? " -> " : "", names.data[i]);
		else if (i == PATH_ENDS)
			sw_text_addf(&text, " -> (%zu more)", names.len - 2 * PATH_ENDS);
	}
	const char *path = sw_arena_text((sw_arena *)(uintptr_t)&t->arena, text.data);
	sw_text_clear(&text);
	sw_vec_clear(&names);
	return path;
}
