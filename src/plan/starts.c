/*
 * Solutions carried from one mesh to another. Meshes differ in what sites may do, not in which sites there are: a
 * solution is remembered as layouts, and found again among another mesh's candidates.
 */
#include "plan/internal.h"

#include <stdlib.h>

void sw_start_save(sw_start *start, const sw_model *model, const int32_t *assignment)
{
	*start = (sw_start){.n_sites = model->sites.len, .n_hubs = model->hubs.len};
	start->profile = sw_alloc(sizeof(int32_t) * (start->n_sites + 1));
	start->choice = sw_alloc(sizeof(int32_t) * (start->n_sites + 1));
	start->kept = sw_alloc(sizeof(uint32_t) * (start->n_hubs + 1));
	for (size_t s = 0; s < start->n_sites; s++) {
		start->profile[s] = model->sites.data[s].profile;
		start->choice[s] = assignment[model->sites.data[s].node];
	}
	for (size_t h = 0; h < start->n_hubs; h++)
		start->kept[h] = model->planner->profiles.data[model->hubs.data[h].profile]
		                         .in[assignment[model->hubs.data[h].node]];
}

void sw_start_clear(sw_start *start)
{
	free(start->profile);
	free(start->choice);
	free(start->kept);
	*start = (sw_start){0};
}

static bool same_layouts(const sw_profile *a, int32_t i, const sw_profile *b, int32_t j)
{
	if (a->n_in != b->n_in || a->n_out != b->n_out)
		return false;
	for (uint32_t k = 0; k < a->n_in; k++)
		if (a->in[(uint32_t)i * a->n_in + k] != b->in[(uint32_t)j * b->n_in + k])
			return false;
	for (uint32_t k = 0; k < a->n_out; k++)
		if (a->out[(uint32_t)i * a->n_out + k] != b->out[(uint32_t)j * b->n_out + k])
			return false;
	return true;
}

/* The least candidate of b with the layouts of candidate i of a; -1: none. */
static int32_t find_candidate(const sw_profile *a, int32_t i, const sw_profile *b)
{
	for (int32_t j = 0; j < b->n; j++)
		if (same_layouts(a, i, b, j))
			return j;
	return -1;
}

static int32_t find_layout(const sw_profile *profile, uint32_t layout)
{
	for (int32_t j = 0; j < profile->n; j++)
		if (profile->in[j] == layout)
			return j;
	return -1;
}

bool sw_start_place(const sw_start *start, const sw_model *model, int32_t *assignment)
{
	const sw_profile *profiles = model->planner->profiles.data;
	if (start->n_sites != model->sites.len || start->n_hubs != model->hubs.len)
		return false;
	for (size_t n = 0; n < model->nodes.len; n++)
		assignment[n] = -1;
	for (size_t s = 0; s < start->n_sites; s++) {
		const sw_site *site = &model->sites.data[s];
		if (assignment[site->node] >= 0)
			continue; /* as another layer's */
		assignment[site->node] = find_candidate(&profiles[start->profile[s]], start->choice[s],
		                                        &profiles[site->profile]);
		if (assignment[site->node] < 0)
			return false;
	}
	for (size_t h = 0; h < start->n_hubs; h++) {
		const sw_hub *hub = &model->hubs.data[h];
		if (assignment[hub->node] >= 0)
			continue;
		assignment[hub->node] = find_layout(&profiles[hub->profile], start->kept[h]);
		if (assignment[hub->node] < 0)
			return false;
	}
	return true;
}
