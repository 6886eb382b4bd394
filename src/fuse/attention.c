/*
 * Attention: softmax(q k^T ...) v and its derivative, each as kernels that store no scores.
 *
 * All score regions with a softmax are candidates. What becomes of them follows from the roles of
 * their ops (scores.h); what this file adds is what attention is not: a softmax over a vocabulary,
 * or heads that are too large to be kept beside the scores.
 */
#include "fuse/score_kernels.h"

static const sw_op *seed_op(const sw_scores *s, int32_t seed)
{
	return sw_op_at(s->regions->f->program, s->ops[s->seeds[seed].index].op);
}

static bool has_batch(const sw_op *dot)
{
	return dot->attrs->dot.lhs_batch.n > 0;
}

static int64_t contracted_size(const sw_program *program, const sw_op *dot)
{
	sw_shape shape = sw_value_shape(program, dot->operands[0]);
	int64_t size = 1;
	for (int32_t i = 0; i < dot->attrs->dot.lhs_contracting.n; i++)
		size *= shape.dims[dot->attrs->dot.lhs_contracting.v[i]];
	return size;
}

/* The scores of a vocabulary: their gradient is multiplied by the very matrix that they were
 * computed with, and there is no other factor as there is in attention. */
static bool is_vocabulary(const sw_scores *s)
{
	const sw_program *p = s->regions->f->program;
	const sw_op *dot = seed_op(s, 0);
	if (has_batch(dot))
		return false;
	sw_id keys = sw_score_origin(p, dot->operands[s->seeds[0].key_side]);
	for (uint32_t i = 0; i < s->n; i++) {
		const sw_op *op = sw_op_at(p, s->ops[i].op);
		for (uint32_t k = 0; s->ops[i].role == SW_SCORE_KEYS && k < 2; k++)
			if (sw_score_origin(p, op->operands[k]) == keys)
				return true;
	}
	return false;
}

static bool ends_at_dot(const sw_scores *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->ops[i].role == SW_SCORE_KEYS || s->ops[i].role == SW_SCORE_QUERIES)
			return true;
	return false;
}

static const char *why_not(const sw_scores *s, int64_t head)
{
	const sw_fuser *f = s->regions->f;
	if (s->refused.text)
		return s->refused.text;
	if (!ends_at_dot(s))
		return "its softmax is multiplied by no values";
	for (int32_t i = 0; i < s->n_seeds; i++) {
		int64_t size = contracted_size(f->program, seed_op(s, i));
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

/* Return the dot that begins a region if it multiplies two activations in batches, as attention
 * does; SW_NO_ID otherwise. */
static sw_id batched_dot(const sw_score_regions *r, uint32_t region)
{
	const sw_score_region *of = &r->list.data[region];
	const sw_op *op = sw_op_at(r->f->program, of->ops[0]);
	return op->opcode == SW_OP_DOT && has_batch(op) &&
	                       !is_parameter(r->f->program, op->operands[0]) &&
	                       !is_parameter(r->f->program, op->operands[1])
		? of->ops[0]
		: SW_NO_ID;
}

/* ---- the recogniser --------------------------------------------------------------------- */

static void try_region(sw_score_regions *r, uint32_t region, int64_t head,
                       sw_kernel_drafts *drafts)
{
	sw_scores scores;
	sw_id dot = batched_dot(r, region);
	sw_scores_analyse(&scores, r, region);
	if (!scores.refused.text && is_vocabulary(&scores))
		return;
	const char *why = why_not(&scores, head);
	if (!why)
		sw_score_kernels_add(&scores, SW_FUSED_ATTENTION, SW_FUSED_ATTENTION_GRADIENT,
		                     drafts);
	else if (dot != SW_NO_ID)
		sw_vec_push(&r->f->kernels->notes, ((sw_fuse_note){dot, why}));
}

void sw_fuse_attention(sw_fuser *f, int32_t computation)
{
	const sw_score_rule *rule = sw_score_rule_of(f->device);
	sw_score_regions regions;
	sw_kernel_drafts drafts;
	if (!rule->attention)
		return;
	sw_score_regions_find(&regions, f, computation);
	sw_kernel_drafts_init(&drafts, f, computation);
	for (uint32_t region = 0; region < regions.list.len; region++)
		if (regions.list.data[region].same == region && regions.list.data[region].softmax)
			try_region(&regions, region, rule->head, &drafts);
	sw_kernel_drafts_finish(&drafts);
	sw_kernel_drafts_clear(&drafts);
	sw_score_regions_clear(&regions);
}
