/*
 * Cross-entropy: the scores of a vocabulary, their softmax, what a loss picks of it, and the
 * derivative, in kernels that store no scores.
 *
 * One kernel goes through the rows: scores, their statistics, and the gradients of both factors. It
 * stores the statistics (maximum, sum, the label's score), the loss itself and how rows are
 * weighted is outside. Where the derivative waits for the loss, or the vocabulary is split among
 * devices, several kernels compute the scores; that is done only if a score is a short sum, as
 * computing it again would take longer than reading it.
 */
#include "fuse/score_kernels.h"

/* Return whether the region picks a score of each row, by an index. */
static bool picks_labels(const sw_score_regions *r, uint32_t region)
{
	const sw_score_region *of = &r->list.data[region];
	for (uint32_t i = 0; i < of->n_ops; i++)
		if (sw_op_at(r->f->program, of->ops[i])->opcode == SW_OP_GATHER)
			return true;
	return false;
}

static const char *why_no_loss(const sw_scores *s, int64_t again)
{
	const sw_fuser *f = s->regions->f;
	if (s->refused.text)
		return s->refused.text;
	int64_t width = sw_score_contracted(f->program, sw_score_seed_op(s, 0));
	if (s->n_stages < 2 || width <= again)
		return NULL;
	return sw_arena_printf(
		&f->kernels->arena,
		"%d kernels would compute its scores, each a sum of %lld products, and "
		"%lld is the most that is summed again",
		s->n_stages, (long long)width, (long long)again);
}

static void try_loss(sw_score_regions *r, uint32_t region, int64_t again, sw_score_passes passes,
                     sw_kernel_drafts *drafts)
{
	sw_scores scores;
	sw_id dot = r->list.data[region].ops[0];
	sw_scores_analyse(&scores, r, region);
	if (!scores.refused.text && !sw_score_is_vocabulary(&scores))
		return;
	if (!scores.refused.text)
		sw_scores_set_stages(&scores, passes);
	const char *why = why_no_loss(&scores, again);
	if (!why)
		sw_score_kernels_add(&scores, SW_FUSED_CROSS_ENTROPY,
		                     passes == SW_SCORES_ONCE ? SW_FUSED_CROSS_ENTROPY
		                                              : SW_FUSED_CROSS_ENTROPY_GRADIENT,
		                     drafts);
	else if (passes == SW_SCORES_TWICE && picks_labels(r, region))
		sw_vec_push(&r->f->kernels->notes, ((sw_fuse_note){dot, why}));
}

/* Try all regions whose first op no kernel has. */
static void try_losses(sw_score_regions *r, sw_fuser *f, int64_t again, sw_score_passes passes)
{
	sw_kernel_drafts drafts;
	sw_kernel_drafts_init(&drafts, f, r->computation);
	for (uint32_t region = 0; region < r->list.len; region++) {
		const sw_score_region *of = &r->list.data[region];
		if (of->same == region && of->softmax && f->node[of->ops[0]] == SW_NO_ID)
			try_loss(r, region, again, passes, &drafts);
	}
	sw_kernel_drafts_finish(&drafts, passes == SW_SCORES_TWICE
	                                         ? "its kernels would wait for one another"
	                                         : NULL);
	sw_kernel_drafts_clear(&drafts);
}

void sw_fuse_cross_entropy(sw_fuser *f, int32_t computation)
{
	const sw_score_rule *rule = sw_score_rule_of(f->device);
	sw_score_regions regions;
	if (!rule->cross_entropy)
		return;
	sw_score_regions_find(&regions, f, computation);
	try_losses(&regions, f, rule->again, SW_SCORES_ONCE);
	try_losses(&regions, f, rule->again, SW_SCORES_TWICE);
	sw_score_regions_clear(&regions);
}
