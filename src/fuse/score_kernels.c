/* The kernels of a score region: what each owns, copies and borrows. */
#include "fuse/score_kernels.h"

#include <stdlib.h>

static const sw_score_rule rules[SW_FUSION_COUNT] = {
	[SW_FUSION_LOOPS] = {.attention = SW_SCORE_ALWAYS, .cross_entropy = true, .again = 256},
	/* flash attention of cuDNN takes heads of at most 256; XLA fuses no loss with its dots */
	[SW_FUSION_XLA_GPU] = {.attention = SW_SCORE_ALWAYS, .again = 256},
	[SW_FUSION_TORCH] = {.attention = SW_SCORE_ALWAYS, .again = 256},
	[SW_FUSION_TORCH_CALLS] = {.attention = SW_SCORE_CALLED, .again = 256},
	[SW_FUSION_XLA_GPU_CALLS] = {.attention = SW_SCORE_CALLED, .again = 256},
	[SW_FUSION_XLA_TPU] = {.attention = SW_SCORE_CALLED, .again = 256},
};

const sw_score_rule *sw_score_rule_of(sw_fusion device)
{
	return &rules[device];
}

bool sw_score_runs_attention(const sw_fuser *f)
{
	sw_score_fused attention = sw_score_rule_of(f->device)->attention;
	return attention == SW_SCORE_ALWAYS ||
	       (attention == SW_SCORE_CALLED && f->program->library_attention);
}

/* ---- one kernel ------------------------------------------------------------------------- */

typedef struct draft_maker {
	const sw_scores *s;
	const sw_program *program;
	sw_kernel_drafts *drafts;
	int32_t stage;
	SW_VEC(sw_draft_op) ops;
	sw_map have; /* op ids */
} draft_maker;

static bool take(draft_maker *m, sw_id op, sw_draft_part part)
{
	if (sw_map_get(&m->have, &op, sizeof(op)) != SW_ABSENT)
		return false;
	sw_map_put(&m->have, &op, sizeof(op), 0);
	sw_vec_push(&m->ops, ((sw_draft_op){op, part}));
	return true;
}

/* Row statistics of earlier kernels are read, unless they are only reshaped. */
static bool is_copied(const draft_maker *m, const sw_score_op *x)
{
	return x->role == SW_SCORE_FULL || sw_op_at(m->program, x->op)->opcode == SW_OP_RESHAPE;
}

/* Take what the kernel computes an operand from. */
static void take_operand(draft_maker *m, sw_id value)
{
	const sw_score_op *x = sw_score_op_of(m->s, value);
	if (x && x->stage == m->stage)
		return;
	if (x && is_copied(m, x))
		take(m, x->op, SW_DRAFT_COPY);
	else if (!x && sw_draft_may_borrow(m->drafts, value))
		take(m, m->program->values.data[value].op, SW_DRAFT_BORROWED);
}

static int compare_drafts(const void *a, const void *b)
{
	sw_id x = ((const sw_draft_op *)a)->op, y = ((const sw_draft_op *)b)->op;
	return (x > y) - (x < y);
}

/* Take the ops of the stage, then, op by op, those that their operands need. Return whether there
 * are scores among them. */
static bool collect(draft_maker *m)
{
	bool scores = false;
	for (uint32_t i = 0; i < m->s->n; i++)
		if (m->s->ops[i].role != SW_SCORE_APART && m->s->ops[i].stage == m->stage)
			take(m, m->s->ops[i].op, SW_DRAFT_OWNED);
	for (size_t i = 0; i < m->ops.len; i++) {
		const sw_op *op = sw_op_at(m->program, m->ops.data[i].op);
		const sw_score_op *x = sw_score_op_of(m->s, op->first_result);
		scores |= x && x->role == SW_SCORE_FULL;
		for (uint32_t k = 0; k < op->n_operands; k++)
			take_operand(m, op->operands[k]);
	}
	return scores;
}

/* ---- the region's kernels --------------------------------------------------------------- */

static void add_stage(const sw_scores *s, int32_t stage, const sw_fused_kernel kinds[2],
                      sw_kernel_drafts *drafts)
{
	draft_maker m = {s, s->regions->f->program, drafts, stage, {0}, {0}};
	if (collect(&m)) {
		qsort(m.ops.data, m.ops.len, sizeof(*m.ops.data), compare_drafts);
		sw_kernel_drafts_add(drafts, (sw_kernel_draft){
						     .kind = kinds[stage >= s->base],
						     .group = s->region,
						     .about = s->ops[s->seeds[0].index].op,
						     .n = (uint32_t)m.ops.len,
						     .ops = m.ops.data,
					     });
	}
	sw_vec_clear(&m.ops);
	sw_map_clear(&m.have);
}

void sw_score_kernels_add(const sw_scores *s, sw_fused_kernel forward, sw_fused_kernel gradient,
                          sw_kernel_drafts *drafts)
{
	const sw_fused_kernel kinds[2] = {forward, gradient};
	for (int32_t stage = 0; stage < s->n_stages; stage++)
		add_stage(s, stage, kinds, drafts);
}
