/*
 * Cross-entropy: the scores of a vocabulary, their softmax, what a loss picks of it, and the
 * derivative, as kernels that store no scores.
 *
 * The first kernel stores the statistics of each row (maximum, sum, the label's score), the second
 * computes the scores again, and from them the gradients of both factors. The loss itself, and how
 * labels are weighted, is outside: numbers per row.
 */
#include "fuse/score_kernels.h"

static int64_t count_keys(const sw_scores *s)
{
	const sw_program *p = s->regions->f->program;
	const sw_op *dot = sw_score_seed_op(s, 0);
	int side = s->seeds[0].key_side;
	int64_t whole = sw_shape_elements(sw_value_shape(p, dot->operands[side]));
	int64_t contracted = sw_score_contracted(p, dot);
	return contracted ? whole / contracted : 0;
}

/* Return whether the region picks a score of each row, by an index. */
static bool picks_labels(const sw_score_regions *r, uint32_t region)
{
	const sw_score_region *of = &r->list.data[region];
	for (uint32_t i = 0; i < of->n_ops; i++)
		if (sw_op_at(r->f->program, of->ops[i])->opcode == SW_OP_GATHER)
			return true;
	return false;
}

static const char *why_no_loss(const sw_scores *s, const sw_score_rule *rule)
{
	if (s->refused.text)
		return s->refused.text;
	if (sw_score_contracted(s->regions->f->program, sw_score_seed_op(s, 0)) * rule->vocabulary >
	    count_keys(s))
		return "its vocabulary is small beside the width that it is computed from";
	return NULL;
}

static void try_loss(sw_score_regions *r, uint32_t region, const sw_score_rule *rule,
                     sw_kernel_drafts *drafts)
{
	sw_scores scores;
	sw_id dot = r->list.data[region].ops[0];
	sw_scores_analyse(&scores, r, region);
	if (!scores.refused.text && !sw_score_is_vocabulary(&scores))
		return;
	const char *why = why_no_loss(&scores, rule);
	if (!why) {
		sw_scores_set_stages(&scores, true);
		sw_score_kernels_add(&scores, SW_FUSED_CROSS_ENTROPY,
		                     SW_FUSED_CROSS_ENTROPY_GRADIENT, drafts);
	} else if (picks_labels(r, region)) {
		sw_vec_push(&r->f->kernels->notes, ((sw_fuse_note){dot, why}));
	}
}

static bool is_free(const sw_score_regions *r, uint32_t region)
{
	return r->f->kernels->owner[r->list.data[region].ops[0]] == SW_NO_ID;
}

void sw_fuse_cross_entropy(sw_fuser *f, int32_t computation)
{
	const sw_score_rule *rule = sw_score_rule_of(f->device);
	sw_score_regions regions;
	sw_kernel_drafts drafts;
	if (!rule->cross_entropy)
		return;
	sw_score_regions_find(&regions, f, computation);
	sw_kernel_drafts_init(&drafts, f, computation);
	for (uint32_t region = 0; region < regions.list.len; region++)
		if (regions.list.data[region].same == region &&
		    regions.list.data[region].softmax && is_free(&regions, region))
			try_loss(&regions, region, rule, &drafts);
	sw_kernel_drafts_finish(&drafts);
	sw_kernel_drafts_clear(&drafts);
	sw_score_regions_clear(&regions);
}
