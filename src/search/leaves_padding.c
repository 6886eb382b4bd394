/*
 * Leaves that pad.
 *
 * First whole programs: dimensions padded to the next multiple of the devices where that adds next
 * to nothing, and where it adds more. What is padded and not split costs masks and longer loops; so
 * for each contender of these, if it is not far behind, the program is padded once more in those
 * classes alone whose padding its dots need, and that contender is made again. O(contenders)
 * searches more; contenders that need the same classes share one, and what cannot be faster is not
 * searched.
 */
#include "search/leaves.h"

#include <math.h>
#include <string.h>

/* At most this part of a dimension is added to it. */
static const int64_t shares[] = {16, 2};
/* A plan without padding that is as near to the bound of its kernels is left alone. */
#define CLOSE 1.05

/* ---- what a contender needs ------------------------------------------------------------- */

/* The classes of which a dimension is split here into parts that do not divide its true size. */
static void mark_needed(const sw_leaf *l, const sw_plan *plan, sw_id value, const sw_layout *layout,
                        bool *needed)
{
	for (int32_t d = 0; d < sw_value_shape(plan->program, value).rank; d++) {
		size_t place = (size_t)value * SW_MAX_RANK + (size_t)d;
		int64_t parts = sw_atoms_group_size(&plan->cluster->atoms,
		                                    sw_layout_split_atoms(layout, d));
		if (l->map.number[place] >= 0 && l->map.size[place] % parts != 0)
			needed[l->map.number[place]] = true;
	}
}

/* By what costs most: as dots and convolutions take and leave their values. */
static void find_needed(const sw_leaf *l, const sw_plan *plan, bool *needed)
{
	const sw_program *program = plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		sw_layout layouts[3];
		if ((op->opcode != SW_OP_DOT && op->opcode != SW_OP_CONVOLUTION) ||
		    !sw_plan_op_layouts(plan, id, layouts, layouts + 2))
			continue;
		mark_needed(l, plan, op->operands[0], &layouts[0], needed);
		mark_needed(l, plan, op->operands[1], &layouts[1], needed);
		mark_needed(l, plan, op->first_result, &layouts[2], needed);
	}
}

void sw_leaves_note_need(sw_leaves *list, const sw_leaf *leaf, size_t mesh, const sw_plan *plan,
                         double model_s)
{
	int32_t n = leaf->map.n;
	bool *needed = sw_alloc((size_t)n + 1);
	int64_t *classes = SW_NEW_N(&list->arena, int64_t, n + 1);
	sw_need found = {.rule = leaf->rewrites.padding, .mesh = mesh, .model_s = model_s};
	find_needed(leaf, plan, needed);
	for (int32_t c = 0; c < n; c++)
		if (needed[c])
			classes[found.rule.classes.n++] = c;
	found.rule.classes.v = classes;
	free(needed);
	if (found.rule.classes.n > 0 && found.rule.classes.n < n)
		sw_vec_push(&list->needs, found);
}

/* ---- searching -------------------------------------------------------------------------- */

/* Can the leaf, with the parts of it that are tried after it, not be faster than what is there? If
 * several sizes are padded, a part may be little slower than the program without padding, whose
 * bound is base_s: then nothing is tried where that has been come close to. */
static bool is_hopeless(const sw_leaves *list, const sw_leaf *l, double base_s)
{
	const sw_leaf *best = sw_leaves_best(list);
	if (!best)
		return false;
	double best_s = best->plan->predicted.step_time_s;
	if (l->padded.len == 1 || l->meshes != SW_ALL_MESHES)
		return l->bound_s >= best_s;
	return best_s <= CLOSE * base_s;
}

/* Leaves from `first` on; each gets an equal share of the time that is left, of which `reserve`
 * shares stay. */
static sw_status search_leaves(sw_leaves *list, size_t first, size_t reserve, double base_s,
                               sw_error *err)
{
	for (size_t i = first; i < list->items.len; i++) {
		sw_leaf *l = &list->items.data[i];
		double left_s = sw_leaves_left_s(list),
		       shares_left = (double)(list->items.len - i + reserve);
		l->model_bound_s = l->bound_s = l->roofline_s = sw_leaf_roofline_s(list, l);
		if (is_hopeless(list, l, base_s))
			continue;
		if (left_s <= 0) {
			list->timed_out = true;
			continue;
		}
		sw_status status =
			sw_leaf_search(list, l, isfinite(left_s) ? left_s / shares_left : 0, err);
		if (status != SW_OK && status != SW_NO)
			return status;
	}
	return SW_OK;
}

/* A padding that changes nothing is no leaf. */
static sw_status add_padded(sw_leaves *list, sw_rewrites rewrites, uint64_t meshes, sw_error *err)
{
	size_t number;
	sw_error why = {0};
	sw_status status = sw_leaves_add(list, &rewrites, meshes, &number, &why);
	if (status != SW_OK && status != SW_NO && err)
		*err = why;
	return status == SW_NO ? SW_OK : status;
}

static sw_status add_whole_leaves(sw_leaves *list, sw_rewrites base, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(shares) && status == SW_OK; i++) {
		base.padding =
			(sw_pad_rule){.multiple = list->cluster->n_devices, .share = shares[i]};
		status = add_padded(list, base, SW_ALL_MESHES, err);
	}
	return status;
}

static bool same_rule(sw_pad_rule a, sw_pad_rule b)
{
	return a.multiple == b.multiple && a.share == b.share && a.classes.n == b.classes.n &&
	       memcmp(a.classes.v, b.classes.v, sizeof(int64_t) * (size_t)a.classes.n) == 0;
}

/* A leaf per set of classes that contenders need which are not far behind, with the meshes of
 * these. */
static sw_status add_part_leaves(sw_leaves *list, sw_rewrites base, sw_error *err)
{
	const sw_leaf *best = sw_leaves_best(list);
	double limit_s = best ? SW_FAR_BEHIND * best->plan->model_s : INFINITY;
	sw_status status = SW_OK;
	for (size_t i = 0; i < list->needs.len && status == SW_OK; i++) {
		const sw_need *first = &list->needs.data[i];
		uint64_t meshes = 0;
		bool seen = false;
		for (size_t k = 0; k < list->needs.len; k++) {
			const sw_need *other = &list->needs.data[k];
			if (!same_rule(first->rule, other->rule))
				continue;
			seen = seen || k < i;
			if (other->mesh < 64 && other->model_s <= limit_s)
				meshes |= UINT64_C(1) << other->mesh;
		}
		base.padding = first->rule;
		if (meshes && !seen)
			status = add_padded(list, base, meshes, err);
	}
	return status;
}

sw_status sw_leaves_pad(sw_leaves *list, sw_rewrites base, double base_s, sw_error *err)
{
	size_t first = list->items.len;
	sw_status status = add_whole_leaves(list, base, err);
	size_t parts = list->items.len;
	if (status == SW_OK)
		status = search_leaves(list, first, parts > first, base_s, err);
	if (status == SW_OK)
		status = add_part_leaves(list, base, err);
	if (status == SW_OK)
		status = search_leaves(list, parts, 0, base_s, err);
	return status;
}
