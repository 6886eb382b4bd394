/* score_kernels: the kernels of an analysed score region, as drafts. */
#ifndef SW_FUSE_SCORE_KERNELS_H
#define SW_FUSE_SCORE_KERNELS_H

#include "fuse/kernel_drafts.h"
#include "fuse/scores.h"

/* What a kind of device fuses of softmaxes between dots. */
typedef enum sw_score_fused { SW_SCORE_NEVER, SW_SCORE_CALLED, SW_SCORE_ALWAYS } sw_score_fused;
typedef struct sw_score_rule {
	sw_score_fused attention; /* CALLED: where the program has it by calls of a library */
	bool cross_entropy;
	/* what a score is a sum of, at most, where it is computed again rather than stored: the
	 * dimensions of a head, or the width of what a vocabulary's scores are computed from */
	int64_t again;
} sw_score_rule;
const sw_score_rule *sw_score_rule_of(sw_fusion device);
/* Return whether the device has a kernel of attention for this program. */
bool sw_score_runs_attention(const sw_fuser *f);

/* Add one draft per stage of the region. `forward` is the kind of kernels of the softmax and what
 * it multiplies, `gradient` that of the derivative. */
void sw_score_kernels_add(const sw_scores *scores, sw_fused_kernel forward,
                          sw_fused_kernel gradient, sw_kernel_drafts *drafts);

#endif
