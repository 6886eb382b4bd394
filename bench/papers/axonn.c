/* AxoNN: its grids by its own equations and as planned, compared with ours: figure 7, tables I to
 * III, figures 11 and 12. */
#include "papers.h"

/* The FLOPs formula that section VI-C cites (Narayanan et al.): 2048 sequences of 2048 tokens,
 * vocabulary 51200, activations recomputed per block. */
#define GPT_FLOPS(l, h)                                                                            \
	(96. * 2048 * 2048 * (l) * (double)(h) * (h) *                                             \
	 (1 + 2048 / (6. * (h)) + 51200 / (16. * (l) * (h))))

#define GPT(size, l, h, gpus, n_microbatches, machine, peak, besides, found)                       \
	{                                                                                          \
		.group = "axonn", .where = "table I GPT-" size " on " machine, .run = run_grids,   \
		.program = "gpt-" size, .cluster = machine, .devices = gpus, .planned = 1,         \
		.beside = besides, .microbatches = n_microbatches, .checkpointed = true,           \
		.stages = true, .model_flops = GPT_FLOPS(l, h), .peak_flops = peak,                \
		.finding = found,                                                                  \
		.assumed = TURNS                                                                   \
	}

#define TURNS                                                                                      \
	"equations over the whole batch, as in the paper; plans with blocks computed again, in "   \
	"as many "                                                                                 \
	"microbatches as leave each device a sequence, 8 at most; with stages (1F1B) as many "     \
	"microbatches as are best"
/* Megatron-LM, and DeepSpeed-3D, which splits the optimizer's state over the copies. */
#define MEGATRON_LM "megatron:tp=4,pp=auto"
#define DEEPSPEED_3D(tp) "megatron:tp=" tp ",zero=1,pp=auto"
#define TABLE_III(axonn, zero, megatron)                                                           \
	"utilization " axonn " % under AxoNN, " zero " under ZeRO-3, " megatron                    \
	" under Megatron with pipeline, 33, 33, 35, 35, 38 % under DeepSpeed-3D "   \
	"(table III); AxoNN takes 25 to 45 % less than Megatron, "    \
	"10 to 18 % less than ZeRO-3 for 10B to 40B, 55 % less for 80B"
#define PERLMUTTER(size, l, h, gpus, n_microbatches, found)                                        \
	GPT(size, l, h, gpus, n_microbatches, "perlmutter", 312e12, \
	    "zero3 megatron:tp=4 " MEGATRON_LM " " DEEPSPEED_3D("4"), found)
#define FRONTIER(size, l, h, gpus, n_microbatches, found)                                          \
	GPT(size, l, h, gpus, n_microbatches, "frontier", 192e12, \
	    "zero3 megatron:tp=8 " DEEPSPEED_3D("8"), found)
#define SMALL                                                                                      \
	"ZeRO-3 slightly ahead of AxoNN, which takes 23 to 35 % less than DeepSpeed-3D (figure "   \
	"11)"
#define LARGE                                                                                      \
	"AxoNN ahead of ZeRO-3, and 23 to 35 % less than DeepSpeed-3D (figure 11); of 80B on 1024, "  \
	"exposed communication 6 s, DeepSpeed-3D 15.2 s, ZeRO-3 74.9 s with nearly the same "      \
	"compute; 26 and nearly 52 % less (figures 9, 10)"

/* Strong scaling: the same batch on fewer devices, so more microbatches of a sequence per device. */
#define FIGURE_9(gpus, n_microbatches, machine, peak, besides, found)                              \
	{                                                                                          \
		.group = "axonn", .where = "figure 9 GPT-80b, " gpus " of " machine,               \
		.run = run_plans, .program = "gpt-80b", .cluster = machine, .devices = gpus,       \
		.beside = besides, .microbatches = n_microbatches, .checkpointed = true,           \
		.stages = true, .model_flops = GPT_FLOPS(42, 12288), .peak_flops = peak,           \
		.finding = found,                                                                  \
		.assumed = TURNS                                                                   \
	}
#define SCALES_P(gpus, n)                                                                          \
	FIGURE_9(gpus, n, "perlmutter", 312e12,                                                    \
	         "zero3 megatron:tp=4,zero=3 " MEGATRON_LM " " DEEPSPEED_3D("4"),                  \
	         "ZeRO-3 equal to AxoNN up to 512 GPUs; Megatron and DeepSpeed-3D linear to 1024")
#define SCALES_F(gpus, n)                                                                          \
	FIGURE_9(gpus, n, "frontier", 192e12, "zero3 megatron:tp=8,zero=3 " DEEPSPEED_3D("8"),     \
	         "ZeRO-3 does not scale beyond 512 GCDs, AxoNN nearly linear to 1024")

#define UNET(name, size, gpus, machine)                                                            \
	{                                                                                          \
		.group = "axonn", .where = "table II U-Net " size " on " machine,                  \
		.run = run_grids, .program = name, .cluster = machine, .devices = gpus,            \
		.planned = 1, .beside = "dp zero3", .finding = AHEAD, .assumed = WHOLE             \
	}
#define AHEAD "AxoNN always ahead of ZeRO-3, up to 5 times as fast at 512 and 1024 (figure 12)"
#define WHOLE "equations over the whole batch; plans with nothing computed again"
#define AMPLE 4e12

const experiment axonn_experiments[] = {
	{.group = "axonn",
         .where = "figure 7",
         .run = run_grids,
         .program = "gpt-20b-4-layers",
         .cluster = "perlmutter",
         .devices = "32",
         .planned = 36,
         .memory_bytes = AMPLE,
         .fitting_bytes = 40e9 * 2.835 / 20.1,
         .finding =
                 "four of the five quickest grids are among the first five by place, two with one "
                 "bandwidth; the quickest is number 1 and 12",
         .assumed = "64 k tokens, twice those that section IV has on 16 GPUs; 4 of the 32 equal "
                    "layers, "
                    "with their share of a device's memory for state"},
	PERLMUTTER("5b", 24, 4096, "64", 8, TABLE_III("67", "55", "37")),
	PERLMUTTER("10b", 32, 5120, "128", 8, TABLE_III("63", "57", "42")),
	PERLMUTTER("20b", 32, 7168, "256", 8, TABLE_III("67", "57", "42")),
	PERLMUTTER("40b", 38, 9216, "512", 4, TABLE_III("64", "55", "44")),
	PERLMUTTER("80b", 42, 12288, "1024", 2, TABLE_III("57", "27", "42")),
	FRONTIER("5b", 24, 4096, "64", 8, SMALL),
	FRONTIER("10b", 32, 5120, "128", 8, SMALL),
	FRONTIER("20b", 32, 7168, "256", 8, SMALL),
	FRONTIER("40b", 38, 9216, "512", 4, LARGE),
	FRONTIER("80b", 42, 12288, "1024", 2, LARGE),
	SCALES_P("64", 32),
	SCALES_P("128", 16),
	SCALES_P("256", 8),
	SCALES_P("512", 4),
	SCALES_F("64", 32),
	SCALES_F("128", 16),
	SCALES_F("256", 8),
	SCALES_F("512", 4),
	UNET("unet", "250M", "64", "perlmutter"),
	UNET("unet-416", "500M", "128", "perlmutter"),
	UNET("unet-512", "1B", "256", "perlmutter"),
	UNET("unet-768", "2B", "512", "perlmutter"),
	UNET("unet-1024", "4B", "1024", "perlmutter"),
	UNET("unet", "250M", "64", "frontier"),
	UNET("unet-416", "500M", "128", "frontier"),
	UNET("unet-512", "1B", "256", "frontier"),
	UNET("unet-768", "2B", "512", "frontier"),
	UNET("unet-1024", "4B", "1024", "frontier"),
};
const size_t n_axonn = SW_COUNT(axonn_experiments);
