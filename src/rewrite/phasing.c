/*
 * Phases: every op of the entry gets its loop, or its place between loops.
 *
 * Forward: as early as operands allow. A partial sum is there in the loop that adds it up, as a
 * partial sum; as a sum only after it. Backward: as late as readers allow, so that what a second
 * loop needs is computed there and not stored by the first. Forward again with that as the least:
 * what passed partial sums that are now of different loops takes their sums. Then what could as
 * well be done once, after the loop, is: an op that only passes sums on and does not make less of
 * them to keep. At last sources are drawn into the loops. O(ops) each.
 */
#include "rewrite/phasing.h"

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

/* ---- what a reader finds ---------------------------------------------------------------- */

/* Read in the same loop, as it is there: otherwise parts can be read of what was stored, and sums
 * once they are complete. */
static bool read_as_it_is(const sw_phasing *p, sw_id value, sw_time need)
{
	return p->timing.touched[producer(p, value)] && sw_time_equal(p->timing.value[value], need);
}

/* The earliest phase of a reader. */
static int32_t ready(const sw_phasing *p, sw_id value, sw_time need)
{
	sw_id op = producer(p, value);
	bool waits = p->timing.touched[op] && !read_as_it_is(p, value, need);
	return p->phase[op] + (waits ? 1 : 0);
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
		least = SW_MAX(least, ready(p, op->operands[k], needs[k]));
	free(needs);
	return least;
}

/* Does the op nothing but pass partial sums on? */
static bool only_passes(const sw_phasing *p, sw_id id)
{
	return p->timing.touched[id] && p->timing.choice[id].kind == SW_CHOICE_PASS;
}

/* Are its terms those of its own loop? */
static bool terms_at_hand(const sw_phasing *p, sw_id id)
{
	const sw_op *op = op_at(p, id);
	sw_time *needs = needs_of(p, id);
	bool at_hand = true;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (is_partial(needs[k]))
			at_hand &= read_as_it_is(p, op->operands[k], needs[k]) &&
			           p->phase[producer(p, op->operands[k])] == p->phase[id];
	free(needs);
	return at_hand;
}

/* ---- early, late ------------------------------------------------------------------------ */

/* least: per op; NULL: 0. */
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

/* Later than at most this none of its readers can be. */
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
			bool waits = p->timing.touched[from] &&
			             !read_as_it_is(p, op->operands[k], needs[k]);
			latest[from] = SW_MIN(latest[from], latest[id] - (waits ? 1 : 0));
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

/* ---- what leaves its loop --------------------------------------------------------------- */

static void leave(sw_phasing *p, sw_id value, sw_id reader)
{
	if (!p->timing.touched[producer(p, value)])
		return;
	p->leaves[value] = true;
	p->reader[value] = reader;
}

/* Readers are seen last to first: the first one is kept. */
static void note_readings(sw_phasing *p, sw_id id)
{
	const sw_op *op = op_at(p, id);
	sw_time *needs = needs_of(p, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id value = op->operands[k], from = producer(p, value);
		bool local = p->timing.touched[id] && p->phase[from] == p->phase[id] &&
		             read_as_it_is(p, value, needs[k]);
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

/* What would have to be kept instead if the op took sums: each operand once, and none that is kept
 * anyway. */
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

/* All readers wait for its sum, which is no smaller than what it is made of: done once, it is done
 * for all iterations. */
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

/* ---- drawing sources into loops --------------------------------------------------------- */

enum { UNREAD, READ_IN_PART, READ_WHOLE };
typedef struct drawing {
	sw_phasing *p;
	uint8_t *read; /* per value */
	sw_time *part; /* per value that is read in part */
} drawing;

static void note_part(drawing *d, sw_id value, sw_time need)
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

/* Is any of the results wanted by all its readers in one part, and can the op give that? */
static bool draw(drawing *d, sw_id id)
{
	const sw_op *op = op_at(d->p, id);
	for (uint32_t k = 0; k < op->n_results; k++)
		if (d->read[op->first_result + k] == READ_IN_PART &&
		    sw_timing_draw(&d->p->timing, op->first_result + k,
		                   d->part[op->first_result + k]))
			return true;
	return false;
}

static bool is_read_whole(const drawing *d, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_results; k++)
		if (d->read[op->first_result + k] == READ_WHOLE)
			return true;
	return false;
}

static void draw_computation(drawing *d, int32_t c, const sw_time *results);

/* Its computations give what the op's results, or what is carried, are. */
static void draw_region(drawing *d, const sw_op *op)
{
	static const sw_time same;
	uint32_t n;
	if (op->opcode == SW_OP_WHILE) {
		draw_computation(d, op->called[0], &same);
		draw_computation(
			d, op->called[1],
			&d->p->timing.value[sw_region_parameters(d->p->timing.program, op, 1, &n)]);
		return;
	}
	for (uint32_t k = 0; k < op->n_called; k++)
		draw_computation(d, op->called[k], &d->p->timing.value[op->first_result]);
}

static void draw_op(drawing *d, sw_id id)
{
	static const sw_time same;
	const sw_op *op = op_at(d->p, id);
	bool drawn = !d->p->timing.touched[id] && draw(d, id),
	     whole = drawn && is_read_whole(d, op);
	sw_time *needs = needs_of(d->p, id);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		note_part(d, op->operands[k], needs[k]);
		if (whole)
			note_part(d, op->operands[k], same);
	}
	free(needs);
	if (d->p->timing.touched[id] && sw_is_region(op))
		draw_region(d, op);
}

static void draw_computation(drawing *d, int32_t c, const sw_time *results)
{
	const sw_computation *computation = &d->p->timing.program->computations.data[c];
	static const sw_time same;
	for (size_t i = 0; i < computation->results.len; i++)
		note_part(d, computation->results.data[i], results ? results[i] : same);
	for (size_t i = computation->ops.len; i-- > 0;)
		draw_op(d, computation->ops.data[i]);
}

static void draw_sources(sw_phasing *p)
{
	size_t values = p->timing.program->values.len;
	drawing d = {.p = p,
	             .read = sw_alloc(values + 1),
	             .part = sw_alloc(sizeof(sw_time) * (values + 1))};
	draw_computation(&d, p->timing.program->entry, NULL);
	free(d.read);
	free(d.part);
}

/* ---- the whole -------------------------------------------------------------------------- */

static void find_batch(sw_phasing *p, const sw_program *program, const sw_sidecar *sidecar)
{
	const sw_id *values;
	uint32_t n = sw_program_inputs(program, program->entry, &p->timing.arena, &values);
	p->inputs = SW_NEW_N(&p->timing.arena, bool, n + 1);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(program, values[i]);
		p->inputs[i] = sidecar->inputs[i].role == SW_ROLE_DATA && shape.rank > 0;
		if (p->inputs[i])
			p->batch = sw_gcd(shape.dims[0], p->batch);
	}
	p->batch = SW_MAX(p->batch, 1);
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

bool sw_phasing_find(sw_phasing *p, int32_t microbatches)
{
	if (!sw_timing_find(&p->timing, p->inputs, microbatches))
		return false;
	place_late(p);
	find_leaving(p);
	draw_sources(p);
	return true;
}

/* ---- the path to what refuses ----------------------------------------------------------- */

/* The operand by which time came to an op, or to the region whose parameter it is; SW_NO_ID: an
 * input. */
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

#define PATH_ENDS 4 /* so many ops at either end are named */

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
