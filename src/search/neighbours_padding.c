/*
 * Variants that pad.
 *
 * First whole programs: dimensions are padded to the next multiple of the devices, where that adds
 * at most one of pad_first_parts parts of the dimension, then one of pad_second_parts. A padded
 * dimension that is not split costs masks and longer loops for nothing. So for each candidate of
 * these variants that is not far behind, the program is padded once more, only in those classes of
 * dimensions whose padding its dots need, and its mesh is searched again. Candidates that need the
 * same classes share a variant.
 *
 * Where the quickest plan before that is one of a part of the cluster, all is done once more for the
 * meshes of that part, to whose devices dimensions are then padded.
 */
#include "search/internal.h"

#include <math.h>
#include <string.h>

/* ---- the padding that a candidate needs ------------------------------------------------- */

/* Mark the classes of which a dimension is split here into parts that do not divide its true size.
 */
static void mark_needed(const sw_variant *v, const sw_plan *plan, sw_id value,
                        const sw_layout *layout, bool *needed)
{
	for (int32_t d = 0; d < sw_value_shape(plan->program, value).rank; d++) {
		size_t at = (size_t)value * SW_MAX_RANK + (size_t)d;
		int64_t parts = sw_atoms_group_size(&plan->cluster->atoms,
		                                    sw_layout_split_atoms(layout, d));
		if (v->pad_map.number[at] >= 0 && v->pad_map.size[at] % parts != 0)
			needed[v->pad_map.number[at]] = true;
	}
}

/* Mark the classes that the operands and results of dots and convolutions need, which cost most. */
static void find_needed(const sw_variant *v, const sw_plan *plan, bool *needed)
{
	const sw_program *program = plan->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		sw_layout layouts[3];
		if ((op->opcode != SW_OP_DOT && op->opcode != SW_OP_CONVOLUTION) ||
		    !sw_plan_op_layouts(plan, id, layouts, layouts + 2))
			continue;
		mark_needed(v, plan, op->operands[0], &layouts[0], needed);
		mark_needed(v, plan, op->operands[1], &layouts[1], needed);
		mark_needed(v, plan, op->first_result, &layouts[2], needed);
	}
}

void sw_padding_note_need(sw_search *s, const sw_mesh_search *m)
{
	const sw_variant *v = sw_search_variant(s, s->wave->variant);
	int32_t n = v->pad_map.n;
	if (n <= 1)
		/* With one class there is nothing to leave out. */
		return;
	bool *needed = sw_alloc((size_t)n + 1);
	int64_t *classes = SW_NEW_N(&s->arena, int64_t, n + 1);
	sw_need found = {.rule = v->rewrites.padding,
	                 .mesh = v->entries.data[m->entry].number,
	                 .model_s = m->found.model_s};
	find_needed(v, m->sketch, needed);
	for (int32_t c = 0; c < n; c++)
		if (needed[c])
			classes[found.rule.classes.n++] = c;
	found.rule.classes.v = classes;
	free(needed);
	if (found.rule.classes.n > 0 && found.rule.classes.n < n)
		sw_vec_push(&s->proposals.needs, found);
}

/* ---- variants --------------------------------------------------------------------------- */

/* Return the variant that padding starts from: the incumbent's; else the one with the smallest
 * plan; else the program as it is. */
static const sw_variant *base_of(const sw_search *s)
{
	const sw_variant *base = &s->variants.data[0];
	if (sw_search_has_incumbent(s))
		return sw_search_variant(s, s->incumbent.variant);
	const sw_variant *least = sw_variant_least(s);
	return least ? least : base;
}

/* Add a padded variant, if the padding changes anything. Microbatches that the batch divides by may
 * not divide it when it is padded: then there is none. */
static sw_status add_padded(sw_search *s, sw_rewrites rewrites, const sw_mesh_set *wanted)
{
	size_t number;
	sw_error why = {0};
	sw_status status = sw_variant_add(s, &rewrites, wanted, &number, &why);
	if (status == SW_NO || status == SW_ERR_INPUT)
		return SW_OK;
	if (status != SW_OK && s->err)
		*s->err = why;
	return status;
}

static sw_status add_whole(sw_search *s)
{
	const int64_t shares[] = {(int64_t)s->asked.limits->pad_first_parts,
	                          (int64_t)s->asked.limits->pad_second_parts};
	const sw_cluster *cluster = s->asked.cluster;
	int64_t devices = s->proposals.padding.part
	                          ? sw_atoms_group_size(&cluster->atoms, s->proposals.padding.part)
	                          : cluster->n_devices;
	sw_mesh_set all = {.rest = true};
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(shares) && status == SW_OK; i++) {
		sw_rewrites rewrites = s->proposals.padding.base;
		rewrites.padding = (sw_pad_rule){.multiple = devices, .share = shares[i]};
		status = add_padded(s, rewrites, &all);
	}
	return status;
}

static bool same_rule(sw_pad_rule a, sw_pad_rule b)
{
	return a.multiple == b.multiple && a.share == b.share && a.classes.n == b.classes.n &&
	       memcmp(a.classes.v, b.classes.v, sizeof(int64_t) * (size_t)a.classes.n) == 0;
}

/* Collect the meshes of all candidates that need the same classes as the first and are not far
 * behind. Return false where an earlier candidate needs the same, or no mesh remains. */
static bool meshes_of_need(const sw_search *s, size_t first, double limit_s, sw_mesh_set *meshes)
{
	bool seen = false, any = false;
	for (size_t k = 0; k < s->proposals.needs.len; k++) {
		const sw_need *other = &s->proposals.needs.data[k];
		if (!same_rule(s->proposals.needs.data[first].rule, other->rule))
			continue;
		seen = seen || k < first;
		if (other->model_s <= limit_s) {
			sw_mesh_set_put(meshes, other->mesh, true);
			any = true;
		}
	}
	return any && !seen;
}

static sw_status add_parts(sw_search *s)
{
	double limit_s = sw_search_has_incumbent(s)
	                         ? s->asked.limits->pad_behind * s->incumbent.model_s
	                         : INFINITY;
	sw_status status = SW_OK;
	for (size_t i = 0; i < s->proposals.needs.len && status == SW_OK; i++) {
		sw_mesh_set meshes = {0};
		sw_rewrites rewrites = s->proposals.padding.base;
		rewrites.padding = s->proposals.needs.data[i].rule;
		if (meshes_of_need(s, i, limit_s, &meshes))
			status = add_padded(s, rewrites, &meshes);
		sw_vec_clear(&meshes.has);
	}
	return status;
}

/* ---- waves ------------------------------------------------------------------------------ */

/* Return a bound of the variant, with the variants that pad parts of it. Where several sizes are
 * padded, a part may be only slightly slower than the unpadded program: it is given up if the
 * incumbent is close to the bound of the latter. */
static double bound_with_parts_s(const sw_search *s, const sw_variant *v)
{
	bool alone = v->padded.len == 1 || !v->meshes.wanted.rest;
	return alone ? v->kernels_s
	             : s->asked.limits->close_to_roofline * s->proposals.padding.kernels_s;
}

/* Open a wave of the next variant that can win. Each gets an equal share of the time that is left,
 * of which `reserve` shares are kept back. */
static sw_status open_next(sw_search *s, size_t reserve)
{
	for (; s->proposals.padding.next < s->variants.len; s->proposals.padding.next++) {
		sw_variant *v = &s->variants.data[s->proposals.padding.next];
		double shares = (double)(s->variants.len - s->proposals.padding.next + reserve);
		if (sw_mesh_set_has_any(&v->meshes.wanted) &&
		    !sw_variant_prune(s, v, bound_with_parts_s(s, v)))
			return sw_wave_open(s, s->proposals.padding.next++, SW_MEMORY_LIMITED,
			                    sw_search_left_s(s) / shares);
	}
	return SW_OK;
}

static void begin(sw_search *s)
{
	const sw_variant *base = base_of(s);
	s->proposals.padding.base = base->rewrites;
	s->proposals.padding.kernels_s = base->kernels_s;
	s->proposals.padding.first = s->proposals.padding.next = s->variants.len;
	s->proposals.padding.of = sw_search_has_incumbent(s)
	                                  ? base->entries.data[s->incumbent.entry].mesh
	                                  : (sw_mesh){0};
}

sw_status sw_propose_padding(sw_search *s)
{
	sw_status status = SW_OK;
	if (s->proposals.padding.next == 0) {
		begin(s);
		status = add_whole(s);
	}
	if (status == SW_OK)
		status = open_next(s, 1);
	s->proposals.step += !s->wave;
	return status;
}

sw_status sw_propose_part_padding(sw_search *s)
{
	sw_status status = SW_OK;
	if (!s->proposals.padding.in_part) {
		s->proposals.padding.in_part = true;
		status = add_parts(s);
	}
	if (status == SW_OK)
		status = open_next(s, 0);
	s->proposals.step += !s->wave;
	return status;
}

/* Variants that were padded for the whole cluster may be what its part needs, too. */
static sw_status begin_part(sw_search *s)
{
	for (size_t i = s->proposals.padding.first; i < s->variants.len; i++) {
		sw_mesh_set *wanted = &s->variants.data[i].meshes.wanted;
		wanted->rest = false;
		wanted->has.len = 0;
	}
	s->proposals.padding.part = sw_mesh_atoms(&s->proposals.padding.of);
	s->proposals.padding.next = s->proposals.padding.first;
	s->proposals.padding.in_part = false;
	s->proposals.needs.len = 0;
	return add_whole(s);
}

sw_status sw_propose_padding_of_part(sw_search *s)
{
	s->proposals.step++;
	return s->proposals.padding.of.copied ? begin_part(s) : SW_OK;
}
