/* Rhino: sections 7.3 to 7.5. */
#include "papers.h"

#define PARTLY                                                                                             \
	"2 devices: dp; 4: one variable of layer 0 split; 8: Q, K, V and their moments split, the rest "   \
	"as dp (\"20% data "                                                                               \
	"transfer size\" of dp's)"

#define MEDIUM(machine, n, besides)                                                                        \
	{                                                                                                  \
		.group = "rhino", .where = "7.3 figure 8e, " n, .run = run_plans, .program = "gpt-medium", \
		.cluster = machine, .devices = n, .beside = besides, .finding = PARTLY                     \
	}

const experiment rhino_experiments[] = {
	MEDIUM("rhino-m8", "2", "dp zero1 megatron:tp=2"),
	MEDIUM("rhino-m8", "4", "dp zero1 megatron:tp=2 megatron:tp=4"),
	MEDIUM("rhino-m8", "8", "dp zero1 megatron:tp=2 megatron:tp=4 megatron:tp=8"),
	MEDIUM("rhino-s1", "2", "dp zero1 megatron:tp=2"),
	MEDIUM("rhino-s1", "4", "dp zero1 megatron:tp=2 megatron:tp=4"),
	MEDIUM("rhino-s1", "8", "dp zero1 megatron:tp=2 megatron:tp=4 megatron:tp=8"),
	{.group = "rhino",
         .where = "7.4 table 3, VGG19",
         .run = run_plans,
         .program = "vgg19",
         .cluster = "rhino-m8",
         .devices = "8",
         .beside = "dp zero3 megatron:tp=8",
         .finding = "does not fit on one device, scales with the classifier of a million classes split",
         .assumed = "batch 1024, 128 per device"},
	{.group = "rhino",
         .where = "7.4 table 3, DNABERT",
         .run = run_plans,
         .program = "dnabert",
         .cluster = "rhino-m8",
         .devices = "8",
         .beside = "dp",
         .finding = "dp is chosen",
         .assumed = "batch 32 of half precision, and no limit to memory: the paper has 32 per device, in "
                    "full precision",
         .memory_bytes = 4e12},
	{.group = "rhino",
         .where = "7.2 table 2, MoE",
         .run = run_plans,
         .program = "moe-gshard",
         .cluster = "rhino-m8",
         .devices = "16",
         .beside = "dp zero3 expert",
         .finding = "experts are split",
         .assumed = "half precision, and no limit to memory",
         .memory_bytes = 4e12},
	{.group = "rhino",
         .where = "7.5 table 5",
         .run = run_segments,
         .program = "gpt-72x512",
         .cluster = "rhino-m8",
         .devices = "2",
         .finding = "378 critical nodes of 76 k instructions at 72 layers"},
	{.group = "rhino",
         .where = "7.5 table 5, MoE",
         .run = run_segments,
         .program = "moe-gshard",
         .cluster = "rhino-m8",
         .devices = "2",
         .finding = "90 critical nodes of 18 k instructions"},
};
const size_t n_rhino = SW_COUNT(rhino_experiments);
