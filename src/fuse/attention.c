/*
 * Attention: softmax(q k^T ...) v and its derivative, each as kernels that store no scores.
 *
 * All score regions with a softmax are candidates. What becomes of them follows from the roles of
 * their ops (scores.h); what this file adds is what attention is not: a softmax over a vocabulary,
 * or heads that are too large to be kept beside the scores.
 */
#include "fuse/score_kernels.h"

static bool has_batch(const sw_op *dot)
{
	return dot->attrs->dot.lhs_batch.n > 0;
}

static const char *why_not(const sw_scores *s, int64_t head)
{
	const sw_fuser *f = s->regions->f;
	if (s->refused.text)
		return s->refused.text;
	if (!sw_score_has_role(s, SW_SCORE_KEYS) && !sw_score_has_role(s, SW_SCORE_QUERIES))
		return "its softmax is multiplied by no values";
	for (int32_t i = 0; i < s->n_seeds; i++) {
		int64_t size = sw_score_contracted(f->program, sw_score_seed_op(s, i));
		if (size > head)
			return sw_arena_printf(&f->kernels->arena,
			                       "its heads have %lld dimensions, and %lld is the "
			                       "most that a kernel holds",
			                       (long long)size, (long long)head);
	}
	return NULL;
}

/* ---- what is worth a note --------------------------------------------------------------- */

static bool is_parameter(const sw_program *program, sw_id value)
{
	sw_id origin = sw_score_origin(program, value);
	return sw_op_at(program, program->values.data[origin].op)->opcode == SW_OP_PARAMETER;
}

/* Return whether a dot multiplies in batches, as attention does, and not an activation with a
 * weight. */
static bool is_like_attention(const sw_program *program, const sw_op *op)
{
	return op->opcode == SW_OP_DOT && has_batch(op) &&
	       is_parameter(program, op->operands[0]) == is_parameter(program, op->operands[1]);
}

static void add_note(const sw_score_regions *r, sw_id op, const char *why)
{
	sw_vec_push(&r->f->kernels->notes, ((sw_fuse_note){op, why}));
}

/* The axes that belong to one operand of a dot alone. */
typedef struct dot_side {
	sw_axis_list axes;
	int32_t first, end;
} dot_side;

static bool side_of(sw_score_regions *r, const sw_op *dot, int which, dot_side *side)
{
	int32_t begin[SW_MAX_RANK + 1];
	int32_t batch = dot->attrs->dot.lhs_batch.n,
		left = sw_value_shape(r->f->program, dot->operands[0]).rank -
	               dot->attrs->dot.lhs_contracting.n;
	if (!sw_score_divide(r, dot->first_result, &side->axes, begin))
		return false;
	side->first = begin[which ? left : batch];
	side->end = which ? side->axes.n : begin[left];
	return true;
}

/* Return whether a dot contracts all axes of a side, and no others, of its operand. */
static bool contracts_side(sw_score_regions *r, const sw_op *dot, uint32_t operand,
                           const dot_side *side)
{
	sw_ints dims = operand ? dot->attrs->dot.rhs_contracting : dot->attrs->dot.lhs_contracting;
	sw_axis_list whole = {side->end - side->first, side->axes.v + side->first}, axes;
	int32_t begin[SW_MAX_RANK + 1], n = 0;
	if (!sw_score_divide(r, dot->operands[operand], &axes, begin))
		return false;
	for (int32_t i = 0; i < dims.n; i++)
		for (int32_t k = begin[dims.v[i]]; k < begin[dims.v[i] + 1]; k++, n++)
			if (!sw_axes_have(whole, axes.v[k]))
				return false;
	return n == whole.n;
}

/* Return whether a dot that is like attention multiplies exponentials of the scores that `first`
 * computes. */
static bool multiplies(sw_score_regions *r, const sw_op *dot, const sw_op *first)
{
	uint32_t region = sw_score_region_of(r, first->first_result);
	int32_t n = sw_score_axes_of(r, first->first_result).n;
	if (!is_like_attention(r->f->program, dot))
		return false;
	for (uint32_t k = 0; k < 2; k++) {
		dot_side side;
		if (sw_score_region_of(r, dot->operands[k]) != region ||
		    !r->values[dot->operands[k] - r->first_value].exponential ||
		    sw_score_axes_of(r, dot->operands[k]).n != n)
			continue;
		for (int which = 0; which < 2; which++)
			if (side_of(r, first, which, &side) && contracts_side(r, dot, k, &side))
				return true;
	}
	return false;
}

/* Return whether a dot multiplies what a softmax is computed of, or from: its result is no score.
 */
static bool is_of_softmax(const sw_score_regions *r, const sw_op *dot)
{
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t region = sw_score_region_of(r, dot->operands[k]);
		if (region != SW_NO_ID && r->list.data[region].softmax)
			return true;
	}
	return false;
}

/* Note a product whose exponentials are multiplied as the scores of attention are, without a softmax.
 * Where nothing is an exponential no attention is meant: a power of a matrix, a state-space model. */
static void note_linear(sw_score_regions *r, uint32_t region)
{
	const sw_score_region *of = &r->list.data[region];
	const sw_op *first = sw_op_at(r->f->program, of->ops[0]);
	if (!is_like_attention(r->f->program, first) || is_of_softmax(r, first))
		return;
	for (uint32_t i = 1; i < of->n_ops; i++) {
		if (multiplies(r, sw_op_at(r->f->program, of->ops[i]), first)) {
			add_note(r, of->ops[0],
			         "no softmax is between it and the dot that "
			         "multiplies its scores");
			return;
		}
	}
}

/* ---- the recogniser --------------------------------------------------------------------- */

static void try_region(sw_score_regions *r, uint32_t region, int64_t head, sw_kernel_drafts *drafts)
{
	sw_scores scores;
	sw_scores_analyse(&scores, r, region);
	if (!scores.refused.text && sw_score_is_vocabulary(&scores))
		return;
	const char *why = why_not(&scores, head);
	if (!why && !sw_score_runs_attention(r->f))
		why = SW_FUSE_NOT_CALLED;
	if (!why)
		sw_scores_set_stages(&scores, SW_SCORES_MULTIPLIED);
	if (!why)
		sw_score_kernels_add(&scores, SW_FUSED_ATTENTION, SW_FUSED_ATTENTION_GRADIENT,
		                     drafts);
	else if (has_batch(sw_op_at(r->f->program, r->list.data[region].ops[0])))
		add_note(r, r->list.data[region].ops[0], why);
}

void sw_fuse_attention(sw_fuser *f, int32_t computation)
{
	const sw_score_rule *rule = sw_score_rule_of(f->device);
	sw_score_regions regions;
	sw_kernel_drafts drafts;
	if (rule->attention == SW_SCORE_NEVER)
		return;
	sw_score_regions_find(&regions, f, computation);
	sw_kernel_drafts_init(&drafts, f, computation);
	for (uint32_t region = 0; region < regions.list.len; region++) {
		if (regions.list.data[region].same != region)
			continue;
		if (regions.list.data[region].softmax)
			try_region(&regions, region, rule->again, &drafts);
		else
			note_linear(&regions, region);
	}
	sw_kernel_drafts_finish(&drafts,
	                        "its kernels would wait for one another, as where a softmax "
	                        "is over the queries");
	sw_kernel_drafts_clear(&drafts);
	sw_score_regions_clear(&regions);
}
