/* The configuration that a row ran in, from columns whose names differ between tables. */
#include "measured.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables that are known -------------------------------------------------------------- */

/* A kind of table is told by a column that it alone has. */
static const struct {
	const char *column, *cluster;
	bool remat;    /* its rows compute every block again, though no column says so */
	bool sequence; /* its tensor parallelism splits norms and residuals by the sequence */
	/* Without ZeRO gradients are those of PyTorch's DistributedDataParallel: summed while the last
	 * microbatch's backward pass goes on, else behind it; in buckets beside the sums in f32. */
	bool ddp;
	bool first_rank; /* the memory that it prints is that of its first device */
	/* play_memory.c has its memory, nanotron.c its stages. */
	bool nanotron;
	bool to_the_end; /* blocks are computed again to their end, whatever is read of that */
	bool fsdp; /* PyTorch's FullyShardedDataParallel, called by Composer (fsdp.c) */
} kinds[] = {
	/* Nanotron; with ZeRO it sums gradients itself, behind all microbatches (trainer.py). */
	{"hidden", "h100-rented", false, true, true, true, true, false, false},
	{"sharding", "h100-infiniband", false, true, false, false, false, false, true}, /* in each microbatch */
	/* Megatron-LM had no sequence parallelism in 2021, and summed behind all microbatches; its
	 * CheckpointFunction calls the whole block again, where torch.utils.checkpoint stops early. */
	{"h", "a100-selene", true, false, false, false, false, true, false},
};

static int kind_of(const table *t)
{
	for (size_t i = 0; i < SW_COUNT(kinds); i++)
		if (table_column(t, kinds[i].column) >= 0)
			return (int)i;
	return -1;
}

#define MAX_NAMES 3
/* The columns that hold a number; `absent` where a table has none of them. */
static const struct {
	size_t offset;
	const char *names[MAX_NAMES];
	int64_t absent;
} numbers[] = {
	{offsetof(configuration, gpus), {"gpus", "GPUs"}, 0},
	{offsetof(configuration, dp), {"dp", "DP"}, 0},
	{offsetof(configuration, tp), {"tp", "TP"}, 1},
	{offsetof(configuration, pp), {"pp", "PP"}, 1},
	{offsetof(configuration, mbs), {"mbs", "MBS"}, 1},
	{offsetof(configuration, microbatches), {"grad_acc", "grad acc"}, 0},
	{offsetof(configuration, zero), {"zero"}, 0},
	{offsetof(configuration, layers_again), {"L"}, 0},
	{offsetof(configuration, width_again), {"h"}, 0},
	{offsetof(configuration, llama.layers), {"layers"}, 0},
	{offsetof(configuration, llama.hidden), {"hidden"}, 0},
	{offsetof(configuration, llama.heads), {"heads"}, 0},
	{offsetof(configuration, llama.kv_heads), {"kv_heads"}, 0},
	{offsetof(configuration, llama.ffn), {"ffn"}, 0},
	{offsetof(configuration, llama.vocab), {"vocab"}, 0},
	{offsetof(configuration, tied), {"tied"}, 0},
};
static const char *const batch_names[MAX_NAMES] = {"global_batch_seqs", "GBS seqs", "batch"};

/* Sharding as llm-foundry has it. */
static const struct {
	const char *word;
	int64_t zero;
} shardings[] = {{"FULL_SHARD", 3}, {"SHARD_GRAD_OP", 2}, {"NO_SHARD", 0}};

/* ---- reading ---------------------------------------------------------------------------- */

/* llm-foundry's table up to 64 GPUs is of October 2023, when its attention was in Triton (its
 * submit_benchmarks.py: attn_impl); that of 128 to 512 is of January 2024. */
#define TRITON "h100-infiniband-triton"
#define MOST_GPUS_WITH_TRITON 64

static const char *first_cell(const table *t, int32_t row, const char *const *names)
{
	const char *cell = NULL;
	for (int i = 0; i < MAX_NAMES && names[i] && !cell; i++)
		cell = table_cell(t, row, names[i]);
	return cell;
}

static sw_status read_number(const table *t, int32_t row, const char *const *names, int64_t *number,
                             sw_error *err)
{
	const char *cell = first_cell(t, row, names);
	char *end;
	if (!cell)
		return SW_OK;
	*number = strtoll(cell, &end, 10);
	if (end == cell || *end || *number < 0 || *number > INT32_MAX)
		return sw_fail(err, SW_ERR_INPUT, "%s:%d: column '%s' is '%s': expected a number",
		               t->path, row + 2, names[0], cell);
	return SW_OK;
}

static sw_status read_numbers(const table *t, int32_t row, configuration *c, int64_t *batch,
                              sw_error *err)
{
	sw_status status = read_number(t, row, batch_names, batch, err);
	for (size_t i = 0; status == SW_OK && i < SW_COUNT(numbers); i++) {
		int64_t number = numbers[i].absent;
		status = read_number(t, row, numbers[i].names, &number, err);
		memcpy((char *)c + numbers[i].offset, &number, sizeof(number));
	}
	return status;
}

static bool is(const table *t, int32_t row, const char *column, const char *text)
{
	const char *cell = table_cell(t, row, column);
	return cell && !strcmp(cell, text);
}

/* Megatron's tables say how many of the layers each of a rank's stages has. */
static sw_status read_chunks(const table *t, int32_t row, configuration *c, sw_error *err)
{
	static const char *const of_chunk[MAX_NAMES] = {"interleaved"};
	static const char *const of_all[MAX_NAMES] = {"L"};
	int64_t layers = 0, all = 0;
	c->chunks = 1;
	if (c->pp == 1 || !table_cell(t, row, *of_chunk) || is(t, row, *of_chunk, "-"))
		return SW_OK;
	SW_TRY(read_number(t, row, of_chunk, &layers, err));
	SW_TRY(read_number(t, row, of_all, &all, err));
	if (layers < 1 || all % (layers * c->pp) != 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s:%d: %lld layers are no whole number of stages of %lld on each "
		               "of %lld ranks",
		               t->path, row + 2, (long long)all, (long long)layers,
		               (long long)c->pp);
	c->chunks = all / (layers * c->pp);
	return SW_OK;
}

static void read_words(const table *t, int32_t row, configuration *c)
{
	for (size_t i = 0; i < SW_COUNT(shardings); i++)
		if (is(t, row, "sharding", shardings[i].word))
			c->zero = shardings[i].zero;
	c->remat = c->remat || is(t, row, "recompute", "True");
	if (is(t, row, "precision", "amp_fp8"))
		c->refusal = "products in 8 bits";
}

static sw_status check(const table *t, int32_t row, const configuration *c, int64_t batch,
                       sw_error *err)
{
	if (c->dp * c->tp * c->pp != c->gpus || c->gpus < 1)
		return sw_fail(err, SW_ERR_INPUT, "%s:%d: dp x tp x pp is %lld, gpus is %lld",
		               t->path, row + 2, (long long)(c->dp * c->tp * c->pp),
		               (long long)c->gpus);
	if (batch > 0 && c->dp * c->mbs * c->microbatches != batch)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s:%d: dp x mbs x grad_acc is %lld, the batch %lld", t->path,
		               row + 2, (long long)(c->dp * c->mbs * c->microbatches),
		               (long long)batch);
	return SW_OK;
}

sw_status configuration_of(const table *t, int32_t row, const char *cluster, configuration *c,
                           sw_error *err)
{
	int kind = kind_of(t);
	int64_t batch = 0;
	if (kind < 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s: no known table: expected a column 'hidden', 'sharding' or 'h'",
		               t->path);
	*c = (configuration){.cluster = cluster ? cluster : kinds[kind].cluster,
	                     .remat = kinds[kind].remat,
	                     .sequence = kinds[kind].sequence,
	                     .first_rank = kinds[kind].first_rank};
	sw_status status = read_numbers(t, row, c, &batch, err);
	if (status != SW_OK)
		return status;
	if (!c->dp)
		c->dp = c->gpus / SW_MAX(c->tp * c->pp, 1);
	if (!c->microbatches)
		c->microbatches = batch / SW_MAX(c->dp * c->mbs, 1);
	read_words(t, row, c);
	if (!kinds[kind].to_the_end)
		c->layers_again = c->width_again = 0;
	c->fsdp = kinds[kind].fsdp;
	if (c->fsdp && !cluster && c->gpus <= MOST_GPUS_WITH_TRITON)
		c->cluster = TRITON;
	c->ddp = kinds[kind].ddp && c->dp > 1 && c->zero == 0;
	c->nanotron = kinds[kind].nanotron;
	SW_TRY(read_chunks(t, row, c, err));
	if (!kinds[kind].nanotron)
		c->llama = (llama){0};
	if (kinds[kind].nanotron && c->pp > 1)
		c->does_not_run = nanotron_refuses(c);
	return check(t, row, c, batch, err);
}

const char *measured_seconds(const table *t, int32_t row)
{
	static const char *const names[MAX_NAMES] = {"step_s", "step s (d)"};
	const char *cell = first_cell(t, row, names);
	return cell ? cell : "";
}

const char *measured_status(const table *t, int32_t row)
{
	const char *cell = table_cell(t, row, "status");
	return cell ? cell : "ok";
}

void configuration_strategy(const configuration *c, sw_plan_strategy *strategy)
{
	static const sw_strategy_kind data[] = {SW_PLAN_DP, SW_PLAN_ZERO1, SW_PLAN_ZERO2,
	                                        SW_PLAN_ZERO3};
	*strategy = (sw_plan_strategy){.kind = data[c->zero]};
	if (c->tp > 1 || c->zero == 1)
		*strategy = (sw_plan_strategy){SW_PLAN_MEGATRON, .size = {c->tp},
		                               .sequence = c->tp > 1 && c->sequence,
		                               .zero = c->dp > 1 ? c->zero : 0};
}
