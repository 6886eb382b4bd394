/*
 * Which fixed strategies a search that was cut short by its time limit ought to have refined.
 *
 * A search of all meshes looks at every one of them before it refines any, by rewrites that save
 * memory, by padding or within memory. Where it is cut, some fixed strategy, planned alone, may have
 * come further. First are those that may be quicker than the best plan if their communication hides,
 * then those of which nothing but kernels is known, and last those that were searched to the end.
 */
#include "search/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROMISING, UNKNOWN, SETTLED };

/* Is the plan of the mesh, of the program as asked, played and within memory? */
static bool is_settled(const sw_mesh_entry *e)
{
	return !e->timed_out && e->line.feasible && e->line.bound_s == 0;
}

static sw_fixed_hope hope_of(const sw_search *s, const sw_mesh_entry *e)
{
	double best_s = sw_search_has_incumbent(s) ? s->incumbent.cost.step_time_s : INFINITY,
	       hidden_s = sw_cost_step_bound_s(&e->unconstrained.cached);
	sw_fixed_hope hope = {.step_s = hidden_s > 0 ? hidden_s : e->kernels_s, .number = e->number};
	hope.rank = hidden_s > 0 ? PROMISING : UNKNOWN;
	if (is_settled(e) || hope.step_s >= best_s)
		hope.rank = SETTLED;
	snprintf(hope.name, sizeof(hope.name), "%s", e->mesh.name);
	char *rewrites = strstr(hope.name, ", ");
	if (rewrites)
		*rewrites = '\0';
	return hope;
}

static int compare_hopes(const void *a, const void *b)
{
	const sw_fixed_hope *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	if (x->step_s != y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

void sw_cut_short_rank(const sw_search *s, sw_fixed_hopes *hopes)
{
	hopes->len = 0;
	if (!s->timed_out || s->variants.len == 0)
		return;
	const sw_variant *v = sw_search_variant(s, 0);
	for (size_t i = 0; i < v->entries.len; i++) {
		const sw_mesh_entry *e = &v->entries.data[i];
		if (!sw_mesh_is_free(&e->mesh) && !e->mesh.untied &&
		    e->least_bytes <= sw_search_memory(s))
			sw_vec_push(hopes, hope_of(s, e));
	}
	if (hopes->len > 0)
		qsort(hopes->data, hopes->len, sizeof(*hopes->data), compare_hopes);
}
