/*
 * Rematerialisation: which ops are the flow, where the flow is narrow, and which role each op has.
 */
#include "rewrite/remat_points.h"

#include <string.h>

/* A place is narrow if the bytes alive there are at most this fraction (1 / n) of those that the
 * backward pass reads since the last narrow place. */
#define NARROW_FRACTION 4
/* One value makes up a cut of the flow if all other live values together have at most this fraction
 * (1 / n) of its bytes. */
#define SINGLE_FRACTION 16
/* Cuts of one value are used unless the largest segment between them has this many times the bytes
 * of the largest between cuts of several. */
#define MAX_SINGLE_RATIO 4

static int64_t bytes_of(const sw_point_finder *f, sw_id value)
{
	return sw_shape_bytes(sw_value_shape(f->program, value));
}

/* ---- the flow --------------------------------------------------------------------------- */

static void mark_inputs(sw_point_finder *f, const sw_id *inputs, uint32_t n)
{
	bool *is_state = SW_NEW_N(f->arena, bool, n + 1);
	for (size_t a = 0; a < f->program->aliases.len; a++)
		is_state[f->program->aliases.data[a].input] = true;
	for (uint32_t i = 0; i < n; i++) {
		sw_id op = f->program->values.data[inputs[i]].op;
		sw_shape shape = sw_value_shape(f->program, inputs[i]);
		f->state[op] |= is_state[i] && sw_type_kind_of(shape.type) == SW_KIND_FLOAT &&
		                shape.rank > 0;
		f->data[op] |= !is_state[i] && shape.rank > 0;
	}
}

static void find_flow(sw_point_finder *f)
{
	sw_id *ops = SW_NEW_N(f->arena, sw_id, f->entry->ops.len + 1);
	int32_t *index = SW_NEW_N(f->arena, int32_t, f->program->ops.len + 1);
	memset(index, -1, sizeof(*index) * (f->program->ops.len + 1));
	f->last = SW_NEW_N(f->arena, int64_t, f->program->values.len + 1);
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		sw_id id = f->entry->ops.data[i];
		const sw_op *op = sw_op_at(f->program, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = f->program->values.data[op->operands[k]].op;
			f->state[id] |= f->state[from];
			f->data[id] |= f->data[from];
		}
		if (!f->forward[id] || !f->state[id] || !f->data[id])
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++)
			f->last[op->operands[k]] = f->m;
		for (uint32_t r = 0; r < op->n_results; r++)
			f->last[op->first_result + r] = f->m;
		index[id] = f->m;
		ops[f->m++] = id;
	}
	f->ops = ops;
	f->index = index;
}

static bool ends_flow(const sw_point_finder *f, int32_t i)
{
	const sw_op *op = sw_op_at(f->program, f->ops[i]);
	for (uint32_t r = 0; r < op->n_results; r++)
		if (f->last[op->first_result + r] > i)
			return false;
	return true;
}

/* Mark what depends on the last op of the flow: on the only one that no other op of it reads. */
static void mark_settled(sw_point_finder *f)
{
	int32_t ends = 0;
	for (int32_t i = 0; i < f->m; i++)
		ends += ends_flow(f, i);
	for (size_t i = 0; i < f->entry->ops.len && ends == 1; i++) {
		sw_id id = f->entry->ops.data[i];
		const sw_op *op = sw_op_at(f->program, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id from = f->program->values.data[op->operands[k]].op;
			f->settled[id] |= f->settled[from] || f->index[from] == f->m - 1;
		}
	}
}

/* ---- narrow places ---------------------------------------------------------------------- */

/* One scan over the flow. Places lie between its ops: place i is behind op i. */
typedef struct scan {
	const sw_point_finder *f;
	bool single; /* only places at which one value makes up the cut */
	/* per op: bytes of its results that ops other than forward ones read */
	int64_t *read_bytes;
	/* per place: bytes of values computed since the last narrow place and last read here */
	int64_t *fresh_ends;
	const bool *is_single; /* per place */
	int32_t *places, n;
	int64_t largest; /* segment, in bytes that are read */
} scan;

static int64_t read_by_others(const sw_point_finder *f, const sw_op *op)
{
	int64_t bytes = 0;
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		bool other = false;
		for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++)
			other |= !f->forward[f->users.ops[u]];
		bytes += other ? bytes_of(f, value) : 0;
	}
	return bytes;
}

/* Find the places at which all live values but one are small. */
static bool *find_single(const sw_point_finder *f)
{
	bool *single = SW_NEW_N(f->arena, bool, f->m + 1);
	int64_t *ends = SW_NEW_N(f->arena, int64_t, f->m + 1), alive = 0;
	/* Only a result of the op just before the place may be the large value: larger values
	 * that were computed earlier are not considered. */
	for (int32_t i = 0; i < f->m; i++) {
		const sw_op *op = sw_op_at(f->program, f->ops[i]);
		alive -= ends[i];
		int64_t largest = 0;
		for (uint32_t r = 0; r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			if (f->last[value] <= i)
				continue;
			alive += bytes_of(f, value);
			ends[f->last[value]] += bytes_of(f, value);
			largest = SW_MAX(largest, bytes_of(f, value));
		}
		single[i] = largest > 0 && alive - largest <= largest / SINGLE_FRACTION;
	}
	return single;
}

static bool is_admitted(const scan *s, int32_t i)
{
	return !s->single || s->is_single[i];
}

/* Return the next narrow place behind `from` (-1: the start), -1 if there is none. *segment: the
 * bytes of this segment's values that the backward pass reads. A place is replaced by a later one
 * that is narrower, or as narrow and not far, and is final once the flow widens or as many bytes
 * again have been read. */
static int32_t next_place(scan *s, int32_t from, int64_t *segment)
{
	const sw_point_finder *f = s->f;
	int32_t best = -1;
	int64_t alive = 0, read = 0, best_alive = 0, best_read = 0;
	memset(s->fresh_ends, 0, sizeof(*s->fresh_ends) * (size_t)f->m);
	for (int32_t i = from + 1; i < f->m - 1; i++) {
		const sw_op *op = sw_op_at(f->program, f->ops[i]);
		alive -= s->fresh_ends[i];
		read += s->read_bytes[i];
		for (uint32_t r = 0; r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			int64_t bytes = f->last[value] > i ? bytes_of(f, value) : 0;
			alive += bytes;
			s->fresh_ends[f->last[value]] += bytes;
		}
		bool near = read - best_read <= best_read / 8;
		if (best >= 0 && (alive > best_alive + best_alive / 2 || read > 2 * best_read))
			break;
		if (is_admitted(s, i) && alive > 0 && alive <= read / NARROW_FRACTION &&
		    (best < 0 || alive < best_alive - best_alive / 8 ||
		     (alive <= best_alive && near))) {
			best = i;
			best_alive = alive;
			best_read = read;
		}
	}
	*segment = best_read;
	return best;
}

static void find_places(scan *s)
{
	int32_t from = -1;
	int64_t segment;
	s->n = 0;
	s->largest = 0;
	while ((from = next_place(s, from, &segment)) >= 0) {
		s->places[s->n++] = from;
		s->largest = SW_MAX(s->largest, segment);
	}
}

static scan new_scan(const sw_point_finder *f, bool single, int64_t *read_bytes,
                     const bool *is_single)
{
	return (scan){.f = f,
	              .single = single,
	              .read_bytes = read_bytes,
	              .is_single = is_single,
	              .fresh_ends = SW_NEW_N(f->arena, int64_t, f->m + 1),
	              .places = SW_NEW_N(f->arena, int32_t, f->m + 1)};
}

/* Choose cuts of one value, as between the layers of most networks; or cuts of several values where
 * the former are rare (a decoder that reads the encoder's output everywhere, a network with long
 * skip connections). */
static scan choose_places(const sw_point_finder *f)
{
	int64_t *read_bytes = SW_NEW_N(f->arena, int64_t, f->m + 1);
	for (int32_t i = 0; i < f->m; i++)
		read_bytes[i] = read_by_others(f, sw_op_at(f->program, f->ops[i]));
	scan several = new_scan(f, false, read_bytes, NULL),
	     single = new_scan(f, true, read_bytes, find_single(f));
	find_places(&several);
	find_places(&single);
	return single.n > 0 && single.largest / MAX_SINGLE_RATIO <= several.largest ? single
	                                                                            : several;
}

/* ---- roles ------------------------------------------------------------------------------ */

static int32_t segment_of_index(const scan *places, int32_t i)
{
	int32_t low = 0, high = places->n;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		if (places->places[middle] < i)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Return the segment of an op; one that is not forward belongs to the last segment of its
 * operands. */
static int32_t segment_of_op(const sw_point_finder *f, const scan *places, sw_id id)
{
	const sw_op *op = sw_op_at(f->program, id);
	int32_t segment = 0;
	if (f->index[id] >= 0)
		return segment_of_index(places, f->index[id]);
	for (uint32_t k = 0; k < op->n_operands; k++)
		segment = SW_MAX(segment, f->segment[f->program->values.data[op->operands[k]].op]);
	return segment;
}

static bool is_source(const sw_op *op)
{
	return op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_CONSTANT;
}

/* Mark the ops that depend on the loss. */
static void mark_descendants(const sw_point_finder *f, int32_t loss)
{
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		sw_id id = f->entry->ops.data[i];
		const sw_op *op = sw_op_at(f->program, id);
		bool late = f->index[id] >= loss;
		for (uint32_t k = 0; k < op->n_operands && !late; k++)
			late = f->roles[f->program->values.data[op->operands[k]].op] ==
			       SW_REMAT_LATE;
		f->roles[id] = late ? SW_REMAT_LATE : SW_REMAT_APART;
		f->after_loss[id] = late;
	}
}

/* Mark the ops that feed late ops: late as well if they stand after the loss begins, otherwise side
 * or flow. */
static void mark_feeders(const sw_point_finder *f, int32_t loss)
{
	bool *feeds = SW_NEW_N(f->arena, bool, f->program->ops.len + 1);
	int32_t begin = f->position[f->ops[loss]];
	for (size_t i = f->entry->ops.len; i-- > 0;) {
		sw_id id = f->entry->ops.data[i];
		const sw_op *op = sw_op_at(f->program, id);
		feeds[id] |= f->roles[id] == SW_REMAT_LATE;
		for (uint32_t k = 0; k < op->n_operands && feeds[id]; k++)
			feeds[f->program->values.data[op->operands[k]].op] = true;
		if (f->roles[id] == SW_REMAT_LATE || !feeds[id] || is_source(op))
			continue;
		if (!f->forward[id] && (int32_t)i > begin)
			f->roles[id] = SW_REMAT_LATE;
		else
			f->roles[id] = f->state[id] && f->data[id] ? SW_REMAT_FLOW : SW_REMAT_SIDE;
	}
}

static void find_segments(const sw_point_finder *f, const scan *places)
{
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		sw_id id = f->entry->ops.data[i];
		const sw_op *op = sw_op_at(f->program, id);
		if (f->roles[id] != SW_REMAT_FLOW)
			continue;
		f->segment[id] = segment_of_op(f, places, id);
		for (uint32_t r = 0; r < op->n_results && f->index[id] >= 0; r++)
			f->needed_in[op->first_result + r] =
				segment_of_index(places, (int32_t)f->last[op->first_result + r]);
	}
}

static int64_t count_kept(const sw_point_finder *f)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		const sw_op *op = sw_entry_op(f, i);
		sw_remat_role role = f->roles[f->entry->ops.data[i]];
		for (uint32_t r = 0;
		     r < op->n_results && (role == SW_REMAT_SIDE || role == SW_REMAT_FLOW); r++) {
			sw_id value = op->first_result + r;
			bool late = false;
			for (uint32_t u = f->users.start[value]; u < f->users.start[value + 1]; u++)
				late |= f->roles[f->users.ops[u]] == SW_REMAT_LATE;
			bytes += late ? bytes_of(f, value) : 0;
		}
	}
	return bytes;
}

/* ---- all steps -------------------------------------------------------------------------- */

static void finder_init(sw_point_finder *f, sw_remat_points *points, sw_arena *arena)
{
	const sw_program *p = points->program;
	*f = (sw_point_finder){
		.points = points, .program = p, .entry = sw_entry(p), .arena = arena};
	f->users = sw_program_users(p, arena);
	f->forward = SW_NEW_N(&points->arena, bool, p->ops.len + 1);
	f->settled = SW_NEW_N(&points->arena, bool, p->ops.len + 1);
	f->state = SW_NEW_N(arena, bool, p->ops.len + 1);
	f->data = SW_NEW_N(arena, bool, p->ops.len + 1);
	f->roles = SW_NEW_N(&points->arena, sw_remat_role, p->ops.len + 1);
	f->segment = SW_NEW_N(&points->arena, int32_t, p->ops.len + 1);
	f->position = SW_NEW_N(arena, int32_t, p->ops.len + 1);
	f->needed_in = SW_NEW_N(&points->arena, int32_t, p->values.len + 1);
	f->chain = SW_NEW_N(&points->arena, bool, p->ops.len + 1);
	f->after_loss = SW_NEW_N(&points->arena, bool, p->ops.len + 1);
	memset(f->segment, -1, sizeof(int32_t) * p->ops.len);
	memset(f->needed_in, -1, sizeof(int32_t) * p->values.len);
	for (size_t i = 0; i < f->entry->ops.len; i++)
		f->position[f->entry->ops.data[i]] = (int32_t)i;
	points->roles = f->roles;
	points->segment = f->segment;
	points->needed_in = f->needed_in;
	points->chain = f->chain;
	points->after_loss = f->after_loss;
	points->forward = f->forward;
	points->settled = f->settled;
}

static void find(sw_point_finder *f)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(f->program, f->program->entry, f->arena, &inputs);
	if (!sw_find_forward(f, inputs)) {
		memset(f->settled, true, sizeof(*f->settled) * f->program->ops.len);
		return;
	}
	mark_inputs(f, inputs, n);
	find_flow(f);
	mark_settled(f);
	scan places = choose_places(f);
	if (places.n == 0)
		return;
	int32_t loss = places.places[places.n - 1] + 1;
	mark_descendants(f, loss);
	mark_feeders(f, loss);
	find_segments(f, &places);
	f->points->n_segments = places.n;
	f->points->kept_bytes = count_kept(f);
}

void sw_remat_points_init(sw_remat_points *points, const sw_program *program)
{
	sw_arena arena;
	sw_point_finder f;
	*points = (sw_remat_points){.program = program};
	sw_arena_init(&points->arena);
	sw_arena_init(&arena);
	finder_init(&f, points, &arena);
	find(&f);
	sw_arena_clear(&arena);
}

void sw_remat_points_clear(sw_remat_points *points)
{
	sw_arena_clear(&points->arena);
	*points = (sw_remat_points){0};
}

bool sw_remat_reads_original(const sw_remat_points *points, sw_id op, sw_id reader)
{
	return points->settled[op] || points->forward[reader];
}

bool sw_remat_copies_once(const sw_remat_points *points, sw_id op)
{
	return points->segment[op] >= 0;
}

bool sw_remat_is_critical(const sw_remat_points *points, sw_id value, int32_t every)
{
	int32_t computed = points->segment[points->program->values.data[value].op];
	int32_t needed = points->needed_in[value];
	if (needed < 0)
		return false;
	/* The last narrow place is kept in any case. */
	return needed / every > computed / every || needed == points->n_segments;
}
