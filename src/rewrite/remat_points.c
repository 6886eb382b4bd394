/*
 * Rematerialisation: which ops are forward, which are the flow, where the flow is narrow.
 *
 * The forward pass is found backwards from the new values of trained state: gradients are computed
 * from the loss down to the first layer, so that an op from which all gradients can be reached
 * comes before the first of them.
 */
#include "rewrite/rewrite.h"

#include <string.h>

/* A state is trained if the last gradient depends on it, and if the number of ops that it needs is
 * at least this fraction (1 / n) of the largest number: a gradient that is a constant does not show
 * where the forward pass ends. */
#define TRAINED_FRACTION 8
/* A place is narrow if the bytes alive there are at most this fraction (1 / n) of those that the
 * backward pass reads since the last narrow place. */
#define NARROW_FRACTION 4
/* One value makes up a cut of the flow if all other live values together have at most this fraction
 * (1 / n) of its bytes. */
#define SINGLE_FRACTION 16
/* Cuts of one value are used unless the largest segment between them has this many times the bytes
 * of the largest between cuts of several. */
#define MAX_SINGLE_RATIO 4

typedef struct point_finder {
	sw_remat_points *points;
	const sw_program *program;
	const sw_computation *entry;
	sw_arena *arena; /* of this search */
	sw_users users;
	size_t words;       /* of 64 states each */
	uint64_t *reach;    /* per value: the states whose new value can be reached */
	bool *forward;      /* per op */
	bool *state, *data; /* per op: depends on an input of this kind */
	/* the flow's forward ops in order */
	int32_t m;
	const sw_id *ops;
	const int32_t *index; /* per op, -1: none of them */
	int64_t *last;        /* per value: the last of them that reads it */
	sw_remat_role *roles;
	int32_t *segment, *position, *needed_in;
	bool *chain, *after_loss; /* per op */
} point_finder;

static const sw_op *op_at(const point_finder *f, size_t i)
{
	return sw_op_at(f->program, f->entry->ops.data[i]);
}

static int64_t bytes_of(const point_finder *f, sw_id value)
{
	return sw_shape_bytes(sw_value_shape(f->program, value));
}

/* ---- the forward pass ------------------------------------------------------------------- */

static bool is_float(sw_shape shape)
{
	return sw_type_kind_of(shape.type) == SW_KIND_FLOAT;
}

/* Add the states that can be reached through the op's results that are more than one number. */
static void add_reach(const point_finder *f, const sw_op *op, uint64_t *reach)
{
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		if (sw_shape_elements(sw_value_shape(f->program, value)) <= 1)
			continue;
		for (size_t w = 0; w < f->words; w++)
			reach[w] |= f->reach[value * f->words + w];
	}
}

static void find_reach(point_finder *f)
{
	const sw_program *p = f->program;
	f->words = (p->aliases.len + 63) / 64;
	f->reach = SW_NEW_N(f->arena, uint64_t, (p->values.len + 1) * f->words);
	uint64_t *of_op = SW_NEW_N(f->arena, uint64_t, f->words + 1);
	for (size_t a = 0; a < p->aliases.len; a++) {
		sw_id output = f->entry->results.data[p->aliases.data[a].output];
		if (is_float(sw_value_shape(p, output)))
			f->reach[output * f->words + a / 64] |= (uint64_t)1 << (a % 64);
	}
	for (size_t i = f->entry->ops.len; i-- > 0;) {
		const sw_op *op = op_at(f, i);
		memset(of_op, 0, sizeof(*of_op) * f->words);
		add_reach(f, op, of_op);
		for (uint32_t k = 0; k < op->n_operands; k++)
			for (size_t w = 0; w < f->words; w++)
				f->reach[op->operands[k] * f->words + w] |= of_op[w];
	}
}

/* Count, for each state, the ops that its new value needs. */
static int32_t *count_ancestors(const point_finder *f)
{
	int32_t *count = SW_NEW_N(f->arena, int32_t, f->program->aliases.len + 1);
	uint64_t *of_op = SW_NEW_N(f->arena, uint64_t, f->words + 1);
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		memset(of_op, 0, sizeof(*of_op) * f->words);
		add_reach(f, op_at(f, i), of_op);
		for (size_t a = 0; a < f->program->aliases.len; a++)
			count[a] += (int32_t)(of_op[a / 64] >> (a % 64) & 1);
	}
	return count;
}

static bool reaches(const point_finder *f, sw_id value, size_t state)
{
	return f->reach[value * f->words + state / 64] >> (state % 64) & 1;
}

/* Mark the CHAIN of cotangents, down to the last gradient. */
static void mark_chain(const point_finder *f, size_t deepest)
{
	for (sw_id v = 0; v < f->program->values.len; v++)
		if (sw_shape_elements(sw_value_shape(f->program, v)) > 1 && reaches(f, v, deepest))
			f->chain[f->program->values.data[v].op] = true;
}

/* Mark the trained states, which every forward op must reach; return false if there are none. */
static bool mark_trained(const point_finder *f, const sw_id *inputs, uint64_t *trained)
{
	const int32_t *count = count_ancestors(f);
	size_t n = f->program->aliases.len, deepest = 0;
	bool any = false;
	for (size_t a = 1; a < n; a++)
		if (count[a] > count[deepest])
			deepest = a;
	mark_chain(f, deepest);
	for (size_t a = 0; a < n; a++) {
		sw_id input = inputs[f->program->aliases.data[a].input];
		if (count[a] <= 1 || count[a] < count[deepest] / TRAINED_FRACTION ||
		    !reaches(f, input, deepest))
			continue;
		trained[a / 64] |= (uint64_t)1 << (a % 64);
		any = true;
	}
	return any;
}

static bool find_forward(point_finder *f, const sw_id *inputs)
{
	if (f->program->aliases.len == 0)
		return false;
	find_reach(f);
	uint64_t *trained = SW_NEW_N(f->arena, uint64_t, f->words + 1),
		 *of_op = SW_NEW_N(f->arena, uint64_t, f->words + 1);
	if (!mark_trained(f, inputs, trained))
		return false;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		bool all = true;
		memset(of_op, 0, sizeof(*of_op) * f->words);
		add_reach(f, op_at(f, i), of_op);
		for (size_t w = 0; w < f->words; w++)
			all &= (of_op[w] & trained[w]) == trained[w];
		f->forward[f->entry->ops.data[i]] = all;
	}
	return true;
}

/* ---- the flow --------------------------------------------------------------------------- */

static void mark_inputs(point_finder *f, const sw_id *inputs, uint32_t n)
{
	bool *is_state = SW_NEW_N(f->arena, bool, n + 1);
	for (size_t a = 0; a < f->program->aliases.len; a++)
		is_state[f->program->aliases.data[a].input] = true;
	for (uint32_t i = 0; i < n; i++) {
		sw_id op = f->program->values.data[inputs[i]].op;
		sw_shape shape = sw_value_shape(f->program, inputs[i]);
		f->state[op] |= is_state[i] && is_float(shape) && shape.rank > 0;
		f->data[op] |= !is_state[i] && shape.rank > 0;
	}
}

static void find_flow(point_finder *f)
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

/* ---- narrow places ---------------------------------------------------------------------- */

/* One scan over the flow. Places lie between its ops: place i is behind op i. */
typedef struct scan {
	const point_finder *f;
	bool single; /* only places at which one value makes up the cut */
	/* per op: bytes of its results that ops other than forward ones read */
	int64_t *read_bytes;
	/* per place: bytes of values computed since the last narrow place and last read here */
	int64_t *fresh_ends;
	const bool *is_single; /* per place */
	int32_t *places, n;
	int64_t largest; /* segment, in bytes that are read */
} scan;

static int64_t read_by_others(const point_finder *f, const sw_op *op)
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
static bool *find_single(const point_finder *f)
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
	const point_finder *f = s->f;
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

static scan new_scan(const point_finder *f, bool single, int64_t *read_bytes, const bool *is_single)
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
static scan choose_places(const point_finder *f)
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
static int32_t segment_of_op(const point_finder *f, const scan *places, sw_id id)
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
static void mark_descendants(const point_finder *f, int32_t loss)
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
static void mark_feeders(const point_finder *f, int32_t loss)
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

static void find_segments(const point_finder *f, const scan *places)
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

static int64_t count_kept(const point_finder *f)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		const sw_op *op = op_at(f, i);
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

static void finder_init(point_finder *f, sw_remat_points *points, sw_arena *arena)
{
	const sw_program *p = points->program;
	*f = (point_finder){.points = points, .program = p, .entry = sw_entry(p), .arena = arena};
	f->users = sw_program_users(p, arena);
	f->forward = SW_NEW_N(arena, bool, p->ops.len + 1);
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
}

static void find(point_finder *f)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(f->program, f->program->entry, f->arena, &inputs);
	if (!find_forward(f, inputs))
		return;
	mark_inputs(f, inputs, n);
	find_flow(f);
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
	point_finder f;
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

bool sw_remat_is_critical(const sw_remat_points *points, sw_id value, int32_t every)
{
	int32_t computed = points->segment[points->program->values.data[value].op];
	int32_t needed = points->needed_in[value];
	if (needed < 0)
		return false;
	/* The last narrow place is kept in any case. */
	return needed / every > computed / every || needed == points->n_segments;
}
