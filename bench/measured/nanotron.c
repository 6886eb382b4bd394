/* How the Nanotron of the published sweep cuts a Llama into stages, what it refuses, and how long its
 * first version looks for messages.
 *
 * Blocks go to a stage until it has more than its share of what has been given, counted in
 * multiplications, and the next block to the next stage (build_model in models/base.py,
 * get_block_compute_costs in models/llama.py). So first stages have more than last ones; and what
 * stands behind the layers may be a stage, to which the logits are sent. */
#include "measured.h"

#include <stdlib.h>

/* What ran: as published, and as steps and memory show it. In the late version a stage that has just its
 * share has enough, and what stands behind the layers is in the last stage (docs/measured.md). */
typedef enum version { PUBLISHED, LATE } version;

/* Behind the layers: norm, head, conversion of the logits, loss; of these the head alone counts. */
enum { NORM, HEAD, CONVERSION, LOSS, BEHIND_LAYERS };

/* Set the stage of each block, layers first. stages [layers + BEHIND_LAYERS]. */
static void give_blocks(const llama *m, int64_t n_stages, version of, int64_t *stages)
{
	int64_t of_head = m->hidden / m->heads,
		layer = 2 * (m->heads + m->kv_heads) * of_head * m->hidden + 3 * m->ffn * m->hidden,
		head = m->vocab * m->hidden, all = m->layers * layer + head, given = 0, stage = 0;
	for (int64_t i = 0; i < m->layers + BEHIND_LAYERS; i++) {
		bool last = of == LATE && i >= m->layers;
		stages[i] = last ? n_stages - 1 : stage;
		given += i < m->layers ? layer : i == m->layers + HEAD ? head : 0;
		if (stage + 1 < n_stages && given * n_stages + (of == LATE) > all * (stage + 1))
			stage++;
	}
}

/* ---- versions ---------------------------------------------------------------------------- */

/* The sweep's script leaves ZeRO out from 32 copies of the model on (scaling_benchmarks.py). What ran
 * without it on fewer, in stages on several nodes, is taken for a version before: that of December
 * 2024 (its branch bench2), whose stages look every tenth of a second whether a message has come.
 * There the smaller Llama, whose table is tied between two stages, failed. */
#define GPUS_OF_NODE 8
#define LATE_COPIES 32
#define EITHER_COPIES 2 /* of rows with so many some look for messages, and some do not */
#define LOOK_S 0.1
#define MESSAGES_OF_TENSOR 2 /* that tell of it */
#define TENSORS 3 /* of a microbatch, to or from each neighbour: an activation, a mask, a gradient */

static bool is_early(const configuration *c)
{
	return c->nanotron && c->ddp && c->pp > 1 && c->gpus > GPUS_OF_NODE && c->dp < LATE_COPIES;
}

static int64_t *blocks_of(const configuration *c, version of)
{
	int64_t *stages = sw_alloc(sizeof(int64_t) * (size_t)(c->llama.layers + BEHIND_LAYERS));
	if (c->llama.heads > 0)
		give_blocks(&c->llama, c->pp, of, stages);
	return stages;
}

/* The late version leaves no stage without a block: with so many stages the published cuts are taken. */
static version version_of(const configuration *c)
{
	int64_t *stages = blocks_of(c, LATE), n = c->llama.layers;
	bool gap = c->llama.heads > 0 && stages[n - 1] + 1 < c->pp - 1;
	free(stages);
	return is_early(c) || gap ? PUBLISHED : LATE;
}

double looking_seconds(const configuration *c)
{
	double neighbours = c->pp > 2 ? 2 : 1, messages = TENSORS * MESSAGES_OF_TENSOR * neighbours;
	bool looks = is_early(c) && c->dp > EITHER_COPIES;
	return looks ? LOOK_S * messages * (double)c->microbatches : 0;
}

const char *nanotron_refuses(const configuration *c)
{
	int64_t *stages = blocks_of(c, PUBLISHED);
	bool all = c->llama.heads == 0 || stages[c->llama.layers + LOSS] + 1 == c->pp;
	free(stages);
	return c->microbatches < c->pp - 1
	               ? "Nanotron wants as many microbatches as stages less one"
	       : is_early(c) && c->tied ? "Nanotron of 2024 has no tied tables in DistributedDataParallel's stages"
	       : all ? NULL
	             : "Nanotron gives some stage no block";
}

/* ---- the stages as a file of them -------------------------------------------------------- */

static void add_entry(sw_stage_file *file, const char *pattern, bool is_op, int64_t stage)
{
	file->entries[file->n_entries++] =
		(sw_stage_file_entry){.pattern = pattern, .is_op = is_op, .stage = (int32_t)stage};
}

/* Follow a value back through what only moves or converts it. */
static sw_id source_of(const sw_program *p, sw_id value)
{
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	while (op->opcode == SW_OP_CONVERT || op->opcode == SW_OP_TRANSPOSE ||
	       op->opcode == SW_OP_RESHAPE) {
		value = op->operands[0];
		op = sw_op_at(p, p->values.data[value].op);
	}
	return value;
}

/* Return the first product with an input; NULL: there is none. */
static const char *product_with(const subject *s, const char *beginning)
{
	const sw_program *p = s->program;
	const char *name;
	sw_id input = input_named(s, beginning, &name);
	for (size_t k = 0; k < p->ops.len && input != SW_NO_ID; k++) {
		const sw_op *op = &p->ops.data[k];
		if (op->opcode == SW_OP_DOT && (source_of(p, op->operands[0]) == input ||
		                                source_of(p, op->operands[1]) == input))
			return op->name;
	}
	return NULL;
}

void nanotron_stages(const configuration *c, const subject *s, sw_stage_file *file)
{
	const llama *m = &c->llama;
	*file = (sw_stage_file){.path = "Nanotron's stages", .n_stages = (int32_t)c->pp};
	sw_arena_init(&file->arena);
	if (m->heads == 0)
		return;
	const char *head = product_with(s, "params.head.w");
	int64_t *stages = blocks_of(c, version_of(c));
	file->entries = SW_NEW_N(&file->arena, sw_stage_file_entry, m->layers + BEHIND_LAYERS);
	for (int64_t i = 0; i < m->layers; i++)
		add_entry(file, sw_arena_printf(&file->arena, "params.blocks.%lld.*", (long long)i),
		          false, stages[i]);
	add_entry(file, "params.norm", false, stages[m->layers + NORM]);
	head = head ? head : product_with(s, "params.embed");
	if (head)
		add_entry(file, head, true, stages[m->layers + HEAD]);
	free(stages);
}
