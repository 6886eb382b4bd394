/* Attention is recognised however it is written, once per layer and way, and stores no scores; what
 * only looks like it is left alone, with a note that says why. */
#include "fuse/softmaxes.h"

static const softmax_case styles[] = {
	{"jax_causal", 1, 1, NULL},
	{"jax_grouped", 1, 1, NULL},
	{"jax_bf16_bias", 1, 1, NULL},
	{"jax_window", 1, 1, NULL},
	{"jax_lengths", 1, 1, NULL},
	{"flax_mask", 1, 1, NULL},
	{"flax_dropout", 1, 1, NULL},
	{"dropout_input", 1, 1, NULL},
	{"soft_cap", 1, 1, NULL},
	{"sliding_window", 1, 1, NULL},
	{"alibi", 1, 1, NULL},
	{"normalised_late", 1, 1, NULL},
	{"no_maximum", 1, 1, NULL},
	{"log_sum", 1, 1, NULL},
	{"one_key_head", 1, 1, NULL},
	{"no_batch", 1, 1, NULL},
	{"tied", 1, 1, NULL},
	{"cross", 1, 1, NULL},
	{"learned_bias", 1, 1, NULL},
	{"windows", 1, 1, NULL},
	{"two_scores", 1, 1, NULL},
	{"temperature", 1, 1, NULL},
	/* the forward pass of each layer is computed twice */
	{"checkpointed", 4, 2, NULL},
	{"kept_products", 4, 2, NULL},
	{"scanned", 2, 1, NULL},
	/* keys on two devices: a maximum, a sum and a product, and two parts of the derivative,
	 * with an all-reduce between them */
	{"split_keys", 3, 2, NULL},
};

static const softmax_case near_misses[] = {
	{"weights_returned", 0, 0, "its scores are returned as %"},
	{"over_queries", 0, 0, "would wait for one another"},
	{"over_heads", 0, 0, "over other dimensions than those of one of its operands"},
	{"linear", 0, 0, "no softmax is between"},
	{"talking_heads", 0, 0, "over other dimensions than those of one of its operands"},
	{"large_head", 0, 0, "its heads have 512 dimensions, and 256 is the most"},
	{"shared_bias", 0, 0, "its scores are read by %add_any"},
	{"scanned_stored", 0, 0, "its scores are read by %dynamic_update_slice"},
};

/* A scan that keeps its residuals writes scores into an array of all layers. */
#define STACKED "its scores are read by %dynamic_update_slice"

static const softmax_case models[] = {
	{"bert-tiny", 2, 2, NULL},
	{"bert-tiny-clip", 2, 2, NULL},
	{"dnabert-tiny", 1, 1, NULL},
	{"dnabert", 12, 12, NULL},
	{"gpt", 2, 2, NULL},
	{"gpt-124m", 12, 12, NULL},
	{"gpt-175b", 96, 96, NULL},
	{"gpt-dropout-tiny", 2, 2, NULL},
	{"gpt-tiny", 2, 2, NULL},
	{"gpt-tiny-clip", 2, 2, NULL},
	{"llama-gqa-tiny", 2, 2, NULL},
	{"llama3-8b", 32, 32, NULL},
	{"moe-gshard-tiny", 2, 2, NULL},
	{"moe-gshard", 16, 16, NULL},
	{"moe-mixtral-tiny", 2, 2, NULL},
	{"odd-tiny", 1, 1, NULL},
	{"t5-tiny", 6, 6, NULL},
	{"t5-tiny-clip", 6, 6, NULL},
	{"unet-tiny", 4, 4, NULL},
	{"unet", 15, 15, NULL},
	{"vit-tiny", 2, 2, NULL},
	{"vit", 24, 24, NULL},
	{"gpt-124m-scan", 0, 0, STACKED},
	{"gpt-scan", 0, 0, STACKED},
	{"gpt-tiny-scan", 0, 0, STACKED},
	{"gpt-tiny-scan-clip", 0, 0, STACKED},
	{"moe-mixtral-tiny-scan", 0, 0, STACKED},
	{"moe-mixtral", 0, 0, STACKED},
	{"dlrm-tiny", 0, 0, NULL},
	{"lstm-lm-tiny", 0, 0, NULL},
	{"mamba-tiny", 0, 0, NULL},
};
