/* The caches that the models of several meshes share. */
#include "model/internal.h"

#include <string.h>

static uint32_t *absent(sw_memo *m, size_t n)
{
	uint32_t *numbers = SW_NEW_N(&m->arena, uint32_t, n + 1);
	memset(numbers, 0xff, sizeof(*numbers) * n);
	return numbers;
}

void sw_memo_init(sw_memo *m, const sw_analysis *analysis, const sw_plan *plan, int threads)
{
	*m = (sw_memo){.analysis = analysis, .threads = sw_thread_count(threads)};
	m->own_paths = plan->paths ? NULL : sw_path_store_new(plan->cluster);
	m->paths = plan->paths ? plan->paths : m->own_paths;
	sw_arena_init(&m->arena);
	sw_layouts_copy(&m->layouts, &plan->layouts);
	m->op_class = absent(m, analysis->program->ops.len);
	m->decision_class[SW_DECISION_OP] = absent(m, analysis->program->ops.len);
	m->decision_class[SW_DECISION_INPUT] = absent(m, analysis->roles.n_inputs);
	m->decision_class[SW_DECISION_BOUNDARY] = absent(m, analysis->roles.boundaries.len);
	m->decision_class[SW_DECISION_OUTPUT] = absent(m, sw_entry(analysis->program)->results.len);
}

void sw_memo_clear(sw_memo *m)
{
	sw_layouts_clear(&m->layouts);
	sw_path_store_free(m->own_paths);
	sw_vec_clear(&m->tables);
	sw_map_clear(&m->table_index);
	sw_map_clear(&m->op_class_index);
	sw_map_clear(&m->decision_class_index);
	sw_text_clear(&m->key);
	sw_vec_clear(&m->priced);
	sw_map_clear(&m->priced_index);
	sw_arena_clear(&m->arena);
}
