/*
 * The state of a plan with stages, sent to where a second program has it: each part of a value is
 * broadcast from one of the ranks that hold it to those that need some of it. All ranks go through
 * all parts in one order, so that none waits for another in a circle.
 */
#include "run/eval_stages.h"

#include <stdlib.h>
#include <string.h>

/* ---- who needs what ---------------------------------------------------------------------- */

typedef struct part_place {
	sw_part_grid grid;
	int32_t coordinates[SW_MAX_ATOMS];
} part_place;

static part_place place_of(const sw_held_value *value, int64_t rank)
{
	part_place p;
	sw_held_grid(value, rank, &p.grid, p.coordinates);
	return p;
}

/* Is the index among those of the part, along the dimension? */
static bool has_index(const part_place *p, int32_t dim, int64_t index)
{
	for (int32_t k = 0; k < p->grid.n; k++)
		if (p->grid.digits[k].dim == dim &&
		    index / p->grid.digits[k].stride % p->grid.digits[k].size != p->coordinates[k])
			return false;
	return true;
}

/* Parts are products of sets of indices: they share elements if they do along each dimension. */
static bool share_elements(sw_shape shape, const part_place *a, const part_place *b)
{
	int64_t dims[SW_MAX_RANK];
	bool shared = true;
	sw_grid_dims(&a->grid, a->coordinates, shape, dims);
	for (int32_t d = 0; d < shape.rank && shared; d++) {
		shared = false;
		for (int64_t i = 0; i < dims[d] && !shared; i++)
			shared = has_index(b, d, sw_grid_global(&a->grid, a->coordinates, d, i));
	}
	return shared;
}

static int64_t part_number(const part_place *p)
{
	int64_t number = 0;
	for (int32_t k = 0; k < p->grid.n; k++)
		number = number * p->grid.digits[k].size + p->coordinates[k];
	return number;
}

/* Add the move of the part that a rank holds, if some rank needs it. */
static void add_move(eval_stages *e, uint32_t input, const sw_held_value *held, int32_t holder)
{
	int32_t size = e->rank->transport->size, mine = e->rank->transport->rank;
	part_place from = place_of(held, holder);
	sw_held_value target = sw_held_part(&e->rank->parts, input);
	eval_move move = {.input = input,
	                  .held = *held,
	                  .ranks = SW_NEW_N(&e->arena, int32_t, size + 1),
	                  .n = 1,
	                  .mine = holder == mine};
	bool needed = false;
	move.ranks[0] = holder;
	for (int32_t r = 0; r < size; r++) {
		part_place to = place_of(&target, r);
		if (!share_elements(held->shape, &from, &to))
			continue;
		needed = true;
		move.needed = move.needed || r == mine;
		move.mine = move.mine || r == mine;
		if (r != holder)
			move.ranks[move.n++] = r;
	}
	if (needed)
		sw_vec_push(&e->moves, move);
}

static void add_moves(eval_stages *e, uint32_t input, const sw_held_value *held)
{
	int64_t n = sw_atoms_devices(held->atoms);
	bool *seen = sw_alloc((size_t)n + 1);
	for (int64_t d = 0; d < n; d++) {
		part_place p = place_of(held, held->first + d);
		int64_t number = part_number(&p);
		if (!seen[number])
			add_move(e, input, held, (int32_t)(held->first + d));
		seen[number] = true;
	}
	free(seen);
}

/* The shape of a part in memory; its dims are in the array. */
static sw_shape memory_shape(const sw_held_value *held, int64_t *dims)
{
	sw_shape shape = held->shape;
	sw_layout_local_dims(held->atoms, shape, held->layout, dims);
	shape.dims = dims;
	return shape;
}

sw_status eval_stages_init(eval_stages *e, const sw_stage_programs *programs, eval_rank *rank,
                           sw_error *err)
{
	int64_t most = 1, dims[SW_MAX_RANK];
	*e = (eval_stages){.programs = programs, .rank = rank};
	if (!rank->eval)
		return SW_OK;
	sw_arena_init(&e->arena);
	e->carried = SW_NEW_N(&e->arena, sw_tensor, programs->n_inputs + 1);
	for (uint32_t i = 0; i < rank->parts.n_inputs; i++) {
		int32_t trained = rank->eval->state[i];
		sw_held_value held;
		if (trained < 0)
			continue;
		if (!stage_state_of(programs, (uint32_t)trained, &held))
			return sw_fail(err, SW_ERR_INPUT,
			               "no stage has input '%s', which the program of --eval reads",
			               rank->eval->sidecar.inputs[i].name);
		add_moves(e, i, &held);
		most = SW_MAX(most, sw_shape_bytes(memory_shape(&held, dims)));
	}
	e->buffer = sw_try_alloc((size_t)most);
	return e->buffer ? SW_OK
	                 : sw_fail(err, SW_ERR_IO, "no memory for a part of %lld bytes",
	                           (long long)most);
}

static void drop(eval_stages *e)
{
	sw_tensors_drop(e->carried, e->programs->n_inputs);
}

void eval_stages_clear(eval_stages *e)
{
	if (!e->programs || !e->rank->eval)
		return;
	drop(e);
	free(e->buffer);
	sw_vec_clear(&e->moves);
	sw_arena_clear(&e->arena);
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Copy what the rank needs of a part that has arrived. */
static void take(eval_stages *e, const eval_move *move)
{
	int64_t dims[SW_MAX_RANK];
	const sw_tensor *into = &e->carried[e->rank->eval->state[move->input]];
	sw_held_value target = sw_held_part(&e->rank->parts, move->input);
	part_place from = place_of(&move->held, move->ranks[0]),
		   to = place_of(&target, e->rank->transport->rank);
	sw_grid_part source = {.grid = &from.grid,
	                       .coordinates = from.coordinates,
	                       .dims = memory_shape(&move->held, dims).dims},
		     own = {.grid = &to.grid, .coordinates = to.coordinates, .dims = into->shape.dims};
	sw_grid_copy(move->held.shape, &source, e->buffer, &own, sw_tensor_data(*into));
}

static sw_status make_room(eval_stages *e, sw_error *err)
{
	const sw_parts *parts = &e->rank->parts;
	for (uint32_t i = 0; i < parts->n_inputs; i++) {
		int32_t trained = e->rank->eval->state[i];
		sw_shape shape = sw_value_shape(parts->local, parts->local_inputs[i]);
		if (trained >= 0)
			SW_TRY(sw_tensor_new(shape, false, &e->carried[trained], err));
	}
	return SW_OK;
}

static sw_status send_all(eval_stages *e, const sw_tensor *entry, sw_error *err)
{
	sw_transport *t = e->rank->transport;
	int64_t dims[SW_MAX_RANK];
	for (size_t i = 0; i < e->moves.len; i++) {
		const eval_move *move = &e->moves.data[i];
		const sw_tensor *own = &entry[e->programs->inputs[move->held.input]];
		int64_t bytes = sw_shape_bytes(memory_shape(&move->held, dims));
		const void *from = move->ranks[0] == t->rank ? sw_tensor_data(*own) : NULL;
		if (move->mine && bytes > 0)
			SW_TRY(t->ops->group_broadcast(t, move->ranks, move->n, from, e->buffer,
			                               bytes, err));
		if (move->needed && bytes > 0)
			take(e, move);
	}
	return SW_OK;
}

sw_status eval_stages_run(eval_stages *e, const sw_tensor *entry, int64_t step, sw_error *err)
{
	if (!e->rank->eval)
		return SW_OK;
	sw_traffic traffic = e->rank->transport->traffic;
	sw_status status = make_room(e, err);
	if (status == SW_OK)
		status = send_all(e, entry, err);
	e->rank->transport->traffic = traffic;
	if (status == SW_OK)
		status = eval_rank_run(e->rank, e->carried, step, err);
	drop(e);
	return status;
}
