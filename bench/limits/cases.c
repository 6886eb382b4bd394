/*
 * Programs of all kinds and sizes on clusters of all kinds: one link or several levels, fast and
 * slow, equal and unequal; with all the memory that the plans ask for, and with less.
 */
#include "limits.h"

const limits_case limits_cases[] = {
	{.program = "mlp", .cluster = "local-2x2"},
	{.program = "mlp-clip", .cluster = "h100-superpod", .devices = "2x8"},
	{.program = "lstm-lm-tiny", .cluster = "lab-4x1"},
	{.program = "ncf-tiny", .cluster = "google-cloud-2x16", .devices = "2x2"},
	{.program = "dlrm-tiny", .cluster = "lab-2x1"},
	{.program = "forward-forward-tiny", .cluster = "local-1x4"},
	{.program = "odd-tiny", .cluster = "local-1x4"},
	{.program = "odd-tiny", .cluster = "local-1x2", .memory_share = 0.8},
	{.program = "vgg-tiny", .cluster = "piz-daint", .devices = "4"},
	{.program = "dnabert-tiny", .cluster = "local-1x4"},
	{.program = "mamba-tiny", .cluster = "local-2x2"},
	{.program = "gpt-tiny", .cluster = "frontier", .devices = "1x4x2"},
	{.program = "gpt-tiny", .cluster = "local-1x4", .memory_share = 0.8},
	{.program = "gpt-tiny-scan", .cluster = "a100-8x8", .devices = "2x2"},
	{.program = "gpt-scan", .cluster = "local-1x2", .memory_share = 0.7},
	{.program = "gpt", .cluster = "local-2x2"},
	{.program = "gpt", .cluster = "local-1x2", .memory_share = 0.7},
	{.program = "moe-mixtral-tiny", .cluster = "lab-2x1"},
	{.program = "llama-gqa-tiny", .cluster = "local-1x2", .memory_share = 0.8},
	{.program = "gpt-124m", .cluster = "a100-8x8", .devices = "1x8"},
	{.program = "vgg13", .cluster = "local-1x4"},
	/* with less memory than they ask for, and variants that save it */
	{.program = "lstm-lm-tiny", .cluster = "local-1x2", .memory_share = 0.8},
	{.program = "mlp", .cluster = "local-2x2", .memory_share = 0.9},
	{.program = "dlrm-tiny", .cluster = "dgx-a100-2x8", .devices = "1x4", .memory_share = 0.8},
	{.program = "gpt-scan", .cluster = "local-2x2", .memory_share = 0.7},
	{.program = "t5-tiny", .cluster = "local-1x2"},
	/* each takes more than 5 s of a processor */
	{.program = "llama-gqa-tiny", .cluster = "lab-2x4", .large = true},
	{.program = "vgg-tiny", .cluster = "lab-2x1", .memory_share = 0.8, .large = true},
	{.program = "gpt-124m", .cluster = "a100-8x8", .devices = "2x8", .large = true},
	{.program = "gpt-124m", .cluster = "local-2x4", .memory_share = 0.6, .large = true},
	{.program = "llama3-8b", .cluster = "a100-8x8", .large = true},
	{.program = "gpt-175b",
         .cluster = "perlmutter",
         .devices = "256x4",
         .memory_share = 0.8,
         .large = true},
};
const size_t limits_n_cases = SW_COUNT(limits_cases);
