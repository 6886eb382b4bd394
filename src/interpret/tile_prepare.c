/* Which fusions run tile by tile, or as a product with an addend, and what an interpreter keeps for them. */
#include <stdlib.h>

#include "interpret/team.h"
#include "interpret/tile.h"

/* Return the workspace of a fusion that runs tile by tile; -1: it does not. */
static int64_t tile_bytes(const sw_program *program, const sw_op *op, const char **why)
{
	sw_arena arena;
	sw_arena_init(&arena);
	*why = "no fusion";
	const sw_tile_plan *tiles =
		op->opcode == SW_OP_FUSION ? sw_tile_plan_new(program, op, &arena, why) : NULL;
	int64_t bytes = tiles ? sw_workspace_elements(sw_tile_workspace_bytes(tiles), SW_U8) : -1;
	sw_arena_clear(&arena);
	return bytes;
}

bool sw_tile_can_run(const sw_program *program, const sw_op *op, const char **why)
{
	return tile_bytes(program, op, why) >= 0;
}

bool sw_prepare_fusion(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	const char *why;
	int64_t bytes = tile_bytes(program, op, &why);
	if (bytes >= 0) {
		plan->impl.tile_bytes = bytes;
		plan->kernel.run = sw_kernel_tile;
		plan->kernel.aliasing = SW_ALIASING_TILE;
		plan->kernel.workspace = sw_workspace_tile;
	} else if (sw_dot_add_find(program, op, &(sw_dot_add){0})) {
		plan->kernel.run = sw_kernel_dot_add;
		plan->kernel.splats = false;
		plan->kernel.aliasing = SW_ALIASING_ADDEND;
		plan->kernel.workspace = sw_workspace_dot_add;
	}
	return true;
}

int64_t sw_workspace_tile(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)program;
	(void)op;
	return plan->impl.tile_bytes;
}

const uint64_t *sw_tile_over(const sw_program *program, const sw_op *op, sw_arena *arena)
{
	sw_arena own;
	const char *why;
	uint64_t *over = SW_NEW_N(arena, uint64_t, op->n_results + 1);
	sw_arena_init(&own);
	const sw_tile_plan *plan = sw_tile_plan_new(program, op, &own, &why);
	for (uint32_t i = 0; plan && i < op->n_results; i++)
		over[i] = plan->results[i].over;
	sw_arena_clear(&own);
	return over;
}

void sw_tiles_init(sw_interpreter *it)
{
	const sw_program *program = it->program;
	const char *why;
	int64_t scratch = 0;
	it->tiles = SW_NEW_N(&it->arena, const sw_tile_plan *, program->ops.len + 1);
	for (size_t c = 0; c < program->computations.len; c++)
		for (size_t k = 0; k < it->plans[c].n_ops; k++) {
			const sw_plan_op *op = &it->plans[c].ops[k];
			if (op->kernel.run != sw_kernel_tile)
				continue;
			const sw_tile_plan *plan = it->tiles[op->op] = sw_tile_plan_new(
				program, sw_op_at(program, op->op), &it->arena, &why);
			it->tile_values = SW_MAX(it->tile_values, plan->n_values);
			scratch = SW_MAX(scratch, plan->scratch_bytes);
		}
	if (!it->tile_values && !it->multiplies)
		return;
	it->team = sw_team_new(it->options.blas_threads);
	size_t members = (size_t)sw_team_size(it->team);
	it->tile_views = SW_NEW_N(&it->arena, sw_tile_view, it->tile_values * (members + 1));
	it->tile_direct = SW_NEW_N(&it->arena, char *, it->tile_values);
	it->tile_scratch = SW_NEW_N(&it->arena, char *, members);
	for (size_t m = 1; m < members; m++)
		it->tile_scratch[m] = sw_alloc((size_t)scratch);
}

void sw_tiles_clear(sw_interpreter *it)
{
	for (int m = 1; m < sw_team_size(it->team); m++)
		free(it->tile_scratch[m]);
	sw_team_free(it->team);
}
