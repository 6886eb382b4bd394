/* Rhino: sections 7.2 to 7.5. */
#include "papers.h"

#define PARTLY                                                                                     \
	"2 devices: dp; 4: one variable of layer 0 split; 8: Q, K, V and their moments split, "    \
	"the rest "                                                                                \
	"as dp (\"20% data "                                                                       \
	"transfer size\" of dp's)"

#define MEDIUM(machine, n, besides)                                                                \
	{                                                                                          \
		.group = "rhino", .where = "7.3 figure 8e, " n " of " machine, .run = run_plans,   \
		.program = "gpt-medium", .cluster = machine, .devices = n, .beside = besides,      \
		.finding = PARTLY                                                                  \
	}

/* Section 4.4: a GPT whose state does not fit whole. */
#define FORCED(size, n, text, bytes)                                                               \
	{                                                                                          \
		.group = "rhino", .where = "4.4 GPT-" size ", " n ", " text, .run = run_plans,     \
		.program = "gpt-" size, .cluster = "rhino-m8", .devices = n,                       \
		.memory_bytes = bytes, .beside = "forced zero3 dp",                                \
		.finding = "ZeRO on some of the large tensors alone; no figure is printed",        \
		.assumed = "batch 4, less memory than their 32 GB; a forced tensor is split "      \
	                   "among all devices, by its largest dimension"                           \
	}

/* Megatron-LM's count of FLOPs (Narayanan et al.), without recomputation: b sequences of 1024
 * tokens, vocabulary 51200. */
#define GPT_FLOPS(b, l, h)                                                                         \
	(72. * (b)*1024 * (l) * (double)(h) * (h) *                                                \
	 (1 + 1024 / (6. * (h)) + 51200 / (12. * (l) * (h))))
#define V100_FLOPS 15.6e12 /* section 7.2 */

/* Figure 7: batch 64 on all of its devices; figure 8: batch 4, without pipelines. */
#define GPT(size, n, b, suffix, title, l, h, besides, found)                                       \
	{                                                                                          \
		.group = "rhino", .where = title " GPT-" size ", " n, .run = run_plans,            \
		.program = "gpt-" size suffix, .cluster = "rhino-m8", .devices = n,                \
		.beside = besides, .planner_chooses = true, .stages = b == 64,                     \
		.model_flops = GPT_FLOPS(b, l, h), .peak_flops = V100_FLOPS, .finding = found      \
	}
/* Section 7.3: a stage on each device, and nothing else. */
#define PIPELINE_ALONE(size, n, l, h, machine)                                                     \
	{                                                                                          \
		.group = "rhino", .where = "7.3 pipeline alone, GPT-" size ", " n " of " machine,  \
		.run = run_plans, .program = "gpt-" size, .cluster = machine, .devices = n,        \
		.beside = "dp:pp=" n " zero3 megatron:tp=" n, .planner_chooses = true,             \
		.stages = true, .about_stages = true, .model_flops = GPT_FLOPS(4, l, h),           \
		.peak_flops = V100_FLOPS,                                                          \
		.finding = "a plot alone: pipelines might be an alternative where links are slow", \
		.assumed = "batch 4, so 4 microbatches at most"                                    \
	}
#define FIGURE_7(size, n, l, h, besides)                                                           \
	GPT(size, n, 64, "-batch-64", "7.2 table 1, batch 64", l, h, besides,                      \
	    "utilization 54.0 to 75.9 %, pipelines among the plans; as Alpa and DeepSpeed, or "    \
	    "slightly "                                                                            \
	    "better")
#define FIGURE_8(size, n, l, h, besides)                                                           \
	GPT(size, n, 4, "", "7.3 table 1, batch 4", l, h, besides,                                 \
	    "utilization up to 68.1 % within a machine")

/* The same for GShard: every second of l blocks is a mixture of which a token sees two experts of
 * hidden size H. */
#define MOE_FLOPS(b, l, h, H)                                                                      \
	(3. * (b)*1024 *                                                                           \
	 ((l) * (8. * (h) * (h) + 4. * 1024 * (h)) + (l) / 2 * 12. * (h) * (H) +                   \
	  2. * (h)*51200))
#define MOE(n, b, title, l, h, H, machine, besides, found)                                         \
	{                                                                                          \
		.group = "rhino", .where = title ", " n " of " machine, .run = run_plans,          \
		.program = "moe-" n "-batch-" #b, .cluster = machine, .devices = n,                \
		.beside = besides, .planner_chooses = true, .stages = b == 256,                    \
		.model_flops = MOE_FLOPS(b, l, h, H), .peak_flops = V100_FLOPS, .finding = found   \
	}
#define MOE_7(n, l, h, H, besides)                                                                 \
	MOE(n, 256, "7.2 table 2, MoE", l, h, H, "rhino-m8", besides,                              \
	    "utilization up to 55.1 %, pipelines among the plans")
#define MOE_8(n, l, h, H, machine, besides)                                                        \
	MOE(n, 8, "7.3 MoE batch 8", l, h, H, machine, besides,                                    \
	    "utilization up to 62.0 % within a machine of rhino-m8")

#define RESNET(size, n, assumption)                                                                \
	{                                                                                          \
		.group = "rhino", .where = "7.4 table 4, " size, .run = run_plans,                 \
		.program = "wide-resnet-" size, .cluster = "rhino-m8", .devices = n,               \
		.beside = "dp zero3 megatron:tp=" n, .planner_chooses = true,                      \
		.finding = "near-linear throughput", .assumed = assumption                         \
	}

const experiment rhino_experiments[] = {
	FIGURE_7("medium", "1", 24, 1024, NULL),
	FIGURE_7("large", "2", 24, 1536, "dp zero3 megatron:tp=2 dp:pp=2"),
	FIGURE_7("xl", "4", 24, 2048, "dp zero3 megatron:tp=2 megatron:tp=4 dp:pp=4"),
	FIGURE_7("2.7b", "8", 32, 2560, "dp zero3 megatron:tp=2 megatron:tp=4 megatron:tp=8 dp:pp=8"),
	FIGURE_7("6.7b", "16", 32, 4096, "dp zero3 megatron:tp=4 megatron:tp=8 dp:pp=16 megatron:tp=8,pp=2"),
	FIGURE_8("medium", "1", 24, 1024, NULL),
	FIGURE_8("large", "2", 24, 1536, "dp zero3 megatron:tp=2"),
	FIGURE_8("xl", "4", 24, 2048, "dp zero3 megatron:tp=2 megatron:tp=4"),
	FIGURE_8("2.7b", "8", 32, 2560, "dp zero3 megatron:tp=2 megatron:tp=4 megatron:tp=8"),
	PIPELINE_ALONE("large", "2", 24, 1536, "rhino-m8"),
	PIPELINE_ALONE("xl", "4", 24, 2048, "rhino-m8"),
	PIPELINE_ALONE("2.7b", "8", 32, 2560, "rhino-m8"),
	PIPELINE_ALONE("large", "2", 24, 1536, "rhino-s1"),
	PIPELINE_ALONE("xl", "4", 24, 2048, "rhino-s1"),
	PIPELINE_ALONE("2.7b", "8", 32, 2560, "rhino-s1"),
	FORCED("2.7b", "8", "18 GB", 18e9),
	FORCED("2.7b", "8", "16 GB", 16e9),
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
         .finding = "does not fit on one device, scales with the classifier of a million classes "
                    "split",
         .assumed = "batch 1024, 128 per device"},
	RESNET("1.3b", "1", "1.7 G by our count of parameters"),
	RESNET("2.6b", "2", "3.3 G by our count of parameters"),
	RESNET("6b", "4", "6.7 G by our count of parameters"),
	RESNET("12b", "8",
               "widening 5, which makes 15.7 G, instead of the printed 12, which makes 82 G"),
	{.group = "rhino",
         .where = "7.4 table 3, DNABERT",
         .run = run_plans,
         .program = "dnabert",
         .cluster = "rhino-m8",
         .devices = "8",
         .beside = "dp zero1",
         .planner_chooses = true,
         .finding = "dp is chosen",
         .assumed = "batch 32 of half precision: the paper has 32 per device, in full precision"},
	MOE_7("1", 8, 768, 6144, NULL),
	MOE_7("2", 16, 768, 6144, "dp zero3 expert"),
	MOE_7("4", 16, 768, 6144, "dp zero3 expert"),
	MOE_7("8", 16, 1024, 8192, "dp zero3 expert"),
	MOE_7("16", 16, 1536, 12288, "dp zero3 expert"),
	MOE_8("1", 8, 768, 6144, "rhino-m8", NULL),
	MOE_8("2", 16, 768, 6144, "rhino-m8", "dp zero3 expert"),
	MOE_8("4", 16, 768, 6144, "rhino-m8", "dp zero3 expert"),
	MOE_8("8", 16, 1024, 8192, "rhino-m8", "dp zero3 expert"),
	MOE_8("8", 16, 1024, 8192, "rhino-s1", "dp zero3 expert"),
	{.group = "rhino",
         .where = "7.4 table 3, U-Net",
         .run = run_plans,
         .program = "unet-33m",
         .cluster = "rhino-m8",
         .devices = "8",
         .beside = "dp zero1",
         .finding = "dp is chosen",
         .assumed = "AxoNN's U-Net with 104 channels: 32.4 M; 32 x 32, 16 samples per device"},
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
