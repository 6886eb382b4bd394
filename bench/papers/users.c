/*
 * The fixed strategies that a user would pick today: every fixture, each on several machines, and
 * every cluster file. Our plan is compared with the best of the fixed strategies that the search
 * tries itself, planned again by itself, and with those that it does not try; the planner chooses
 * the number of microbatches and the rematerialisation of each.
 */
#include "papers.h"

#define PICK(name, machine, part)                                                                  \
	{                                                                                          \
		.group = "users", .where = name " on " machine, .run = run_picks, .program = name, \
		.cluster = machine, .devices = part, .planner_chooses = true                       \
	}
/* Clusters with slow links between nodes, with unequal nodes, and a real machine. */
#define SMALL(name)                                                                                \
	PICK(name, "lab-2x4", NULL), PICK(name, "lab-unequal", NULL),                              \
		PICK(name, "aws-p3-8xlarge", "8")

const experiment users_experiments[] = {
	{.group = "users",
         .where = "planning time",
         .run = run_plans,
         .program = "llama3-8b",
         .checkpointed = true,
         .assumed = "blocks computed again",
         .cluster = "h100-16x8",
         .devices = "64",
         .beside = "zero3 megatron:tp=8",
         .finding = "PyTorch AutoParallel, Llama-3 8B on 64 devices: 15.1 s to build the problem "
                    "and 36.5 "
                    "s to solve it with CBC"},
	SMALL("bert-tiny"),
	SMALL("bert-tiny-clip"),
	SMALL("dlrm-tiny"),
	SMALL("dnabert-tiny"),
	SMALL("forward-forward-tiny"),
	SMALL("gpt"),
	SMALL("gpt-dropout-tiny"),
	SMALL("gpt-scan"),
	SMALL("gpt-tiny"),
	SMALL("gpt-tiny-clip"),
	SMALL("gpt-tiny-scan"),
	SMALL("gpt-tiny-scan-clip"),
	SMALL("llama-gqa-tiny"),
	SMALL("lstm-lm-tiny"),
	SMALL("mamba-tiny"),
	SMALL("mamba-tiny-associative"),
	SMALL("mlp"),
	SMALL("mlp-bf16"),
	SMALL("mlp-clip"),
	SMALL("moe-gshard-tiny"),
	SMALL("moe-mixtral-tiny"),
	SMALL("moe-mixtral-tiny-scan"),
	SMALL("ncf-tiny"),
	SMALL("odd-tiny"),
	SMALL("resnet-tiny"),
	SMALL("t5-tiny"),
	SMALL("t5-tiny-clip"),
	SMALL("unet-tiny"),
	SMALL("vgg-tiny"),
	SMALL("vit-tiny"),
	PICK("dlrm", "h200-superpod", "64"),
	PICK("dnabert", "h200-superpod", "64"),
	PICK("gpt-124m", "dgx-a100-2x8", "16"),
	PICK("gpt-124m-scan", "dgx-a100-2x8", "16"),
	PICK("gpt-175b", "h200-superpod", "256"),
	PICK("llama3-8b", "h100-16x8", "64"),
	PICK("lstm-lm", "dgx-a100-2x8", "16"),
	PICK("mamba-130m", "h200-superpod", "64"),
	PICK("mlp-128-nodes", "piz-daint", "128"),
	PICK("mlp-4096-nodes", "piz-daint", "4096"),
	PICK("moe-gshard", "h200-superpod", "64"),
	PICK("moe-mixtral", "h200-superpod", "64"),
	PICK("resnet50", "dgx-a100-2x8", "16"),
	PICK("unet", "dgx-a100-2x8", "16"),
	PICK("vgg13", "dgx-a100-2x8", "16"),
	PICK("vgg19", "dgx-a100-2x8", "16"),
	PICK("vit", "dgx-a100-2x8", "16"),
	PICK("wide-resnet", "dgx-a100-2x8", "16"),
	PICK("dlrm", "perlmutter", "64"),
	PICK("gpt-124m", "perlmutter", "64"),
	PICK("llama3-8b", "perlmutter", "64"),
	PICK("lstm-lm", "perlmutter", "64"),
	PICK("moe-gshard", "perlmutter", "64"),
	PICK("resnet50", "perlmutter", "64"),
	PICK("vgg13", "perlmutter", "64"),
	PICK("vgg19", "perlmutter", "64"),
	PICK("vit", "perlmutter", "64"),
	PICK("gpt", "a100-8x8", NULL),
	PICK("gpt", "autodist-a", NULL),
	PICK("gpt", "autodist-b1", NULL),
	PICK("gpt", "autodist-b10", NULL),
	PICK("gpt", "autodist-b11", NULL),
	PICK("gpt", "autodist-b12", NULL),
	PICK("gpt", "autodist-b4", NULL),
	PICK("gpt", "autodist-b9", NULL),
	PICK("gpt", "dgx-a100-2x8", NULL),
	PICK("gpt", "frontier", "64"),
	PICK("gpt", "google-cloud-2x16", NULL),
	PICK("gpt", "h100-10000", "40"),
	PICK("gpt", "h100-16x8", NULL),
	PICK("gpt", "h100-superpod", "64"),
	PICK("gpt", "h200-superpod", "64"),
	PICK("gpt", "lab-2x1", NULL),
	PICK("gpt", "lab-4x1", NULL),
	PICK("gpt", "local-1x2", NULL),
	PICK("gpt", "local-1x4", NULL),
	PICK("gpt", "local-2x2", NULL),
	PICK("gpt", "local-2x4", NULL),
	PICK("gpt", "perlmutter", "64"),
	PICK("gpt", "piz-daint", "64"),
	PICK("gpt", "rhino-m8", NULL),
	PICK("gpt", "rhino-s1", NULL),
	PICK("gpt", "tpu-v5p", "64"),
	PICK("gpt", "unequal-1-4", NULL),
};
const size_t n_users = SW_COUNT(users_experiments);
