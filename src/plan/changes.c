/* How a plan differs from the one that was made: another cluster, another program, edited. */
#include "plan/plan_file.h"

#include <inttypes.h>
#include <string.h>

sw_plan_changes *sw_plan_changes_of(sw_plan *plan)
{
	if (!plan->changes) {
		plan->changes = SW_NEW(&plan->arena, sw_plan_changes);
		plan->changes->was = plan->predicted;
	}
	return plan->changes;
}

static void print_atoms(const sw_cluster *cluster, sw_text *text)
{
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		sw_text_addf(text, "%s%d", a ? "x" : "", cluster->atoms.size[a]);
	if (cluster->atoms.n == 0)
		sw_text_add(text, "1");
}

sw_status sw_plan_move(sw_plan *plan, const sw_cluster *cluster, sw_error *err)
{
	const sw_atoms *have = &plan->cluster->atoms, *want = &cluster->atoms;
	if (have->n == want->n &&
	    memcmp(have->size, want->size, sizeof(have->size[0]) * (size_t)have->n) == 0) {
		if (cluster->hash != plan->cluster->hash) {
			sw_plan_changes *changes = sw_plan_changes_of(plan);
			changes->cluster = true;
			changes->cluster_name = sw_arena_text(&plan->arena, plan->cluster->name);
			sw_text differs = {0};
			sw_cluster_print_differences(plan->cluster, cluster, &differs);
			changes->cluster_differs = sw_arena_text(&plan->arena, differs.data);
			sw_text_clear(&differs);
		}
		plan->cluster = cluster;
		return SW_OK;
	}
	sw_text a = {0}, b = {0};
	print_atoms(plan->cluster, &a);
	print_atoms(cluster, &b);
	sw_status status = sw_fail(
		err, SW_ERR_INPUT,
		"the plan divides %" PRId64 " devices as %s, and cluster '%s' has %" PRId64
		" as %s: take a part of that shape with --devices, or plan again with --cluster",
		plan->cluster->n_devices, a.data, cluster->name, cluster->n_devices, b.data);
	sw_text_clear(&a);
	sw_text_clear(&b);
	return status;
}

void sw_plan_changes_print(const sw_plan *plan, sw_text *text)
{
	const sw_plan_changes *x = plan->changes;
	if (x->program) {
		sw_text_addf(text,
		             "the program has changed since the plan was made: of %d ops %d "
		             "differ, %d are new, %d are gone",
		             x->n_ops, x->changed, x->added, x->gone);
		if (x->first)
			sw_text_addf(text, " (first '%s')", x->first);
		if (x->replaced)
			sw_text_addf(text,
			             "; %d decisions no longer fit and were replaced (first '%s')",
			             x->replaced, x->first_replaced);
	}
	if (x->cluster)
		sw_text_addf(text, "%sthe plan was made for cluster '%s', not '%s' (%s)",
		             x->program ? "; " : "", x->cluster_name, plan->cluster->name,
		             x->cluster_differs);
	if (x->edited)
		sw_text_addf(text,
		             "%sthe plan file was edited since the plan was made, so its figures "
		             "are computed again",
		             x->program || x->cluster ? "; " : "");
	sw_text_add(text, "; predicted step ");
	sw_text_add_seconds(text, x->was.step_time_s);
	sw_text_add(text, " then, ");
	sw_text_add_seconds(text, plan->predicted.step_time_s);
	sw_text_add(text, " now");
}
