/* AxoNN: its grids by its own equations and as planned, tables I to III, figure 7. */
#include "papers.h"

#define GRIDS(name, title, machine, gpus)                                                                  \
	{                                                                                                  \
		.group = "axonn", .where = title, .run = run_grids, .program = name, .cluster = machine,   \
		.devices = gpus                                                                            \
	}

#define WEAK(name, title, gpus, besides, found)                                                            \
	{                                                                                                  \
		.group = "axonn", .where = title, .run = run_plans, .program = name,                       \
		.cluster = "perlmutter", .devices = gpus, .beside = besides, .microbatches = 8,            \
		.checkpointed = true, .finding = found,                                                    \
		.assumed = "8 microbatches, blocks computed again; no pipeline"                            \
	}

#define WHOLE                                                                                              \
	"equations over the whole batch; plans in 8 microbatches, with blocks computed again, of the "     \
	"three first grids"
#define AMPLE 4e12

const experiment axonn_experiments[] = {
	{.group = "axonn",
         .where = "figure 7",
         .run = run_grids,
         .program = "gpt-20b-4-layers",
         .cluster = "perlmutter",
         .devices = "32",
         .planned = 9,
         .memory_bytes = AMPLE,
         .fitting_bytes = 40e9 * 2.835 / 20.1,
         .finding = "four of the five quickest grids are among the first five by place, two with one "
                    "bandwidth; the quickest is "
                    "number 1 and 12",
         .assumed = "64 k tokens, twice those that section IV has on 16 GPUs; 4 of the 32 equal layers, "
                    "with their share of a "
                    "device's memory for state; the first nine by place are planned, since grids with x "
                    "and y above 1 take minutes"},
	GRIDS("gpt-5b", "table I GPT-5B", "perlmutter", "64"),
	GRIDS("gpt-10b", "table I GPT-10B", "perlmutter", "128"),
	GRIDS("gpt-20b", "table I GPT-20B", "perlmutter", "256"),
	GRIDS("gpt-40b", "table I GPT-40B", "perlmutter", "512"),
	GRIDS("gpt-80b", "table I GPT-80B", "perlmutter", "1024"),
	GRIDS("gpt-5b", "table I GPT-5B", "frontier", "64"),
	GRIDS("gpt-10b", "table I GPT-10B", "frontier", "128"),
	GRIDS("gpt-20b", "table I GPT-20B", "frontier", "256"),
	GRIDS("gpt-40b", "table I GPT-40B", "frontier", "512"),
	GRIDS("gpt-80b", "table I GPT-80B", "frontier", "1024"),
	GRIDS("unet", "table II U-Net 250M", "perlmutter", "64"),
	GRIDS("unet-416", "table II U-Net 500M", "perlmutter", "128"),
	GRIDS("unet-512", "table II U-Net 1B", "perlmutter", "256"),
	GRIDS("unet-768", "table II U-Net 2B", "perlmutter", "512"),
	GRIDS("unet-1024", "table II U-Net 4B", "perlmutter", "1024"),
	GRIDS("unet", "table II U-Net 250M", "frontier", "64"),
	GRIDS("unet-416", "table II U-Net 500M", "frontier", "128"),
	GRIDS("unet-512", "table II U-Net 1B", "frontier", "256"),
	GRIDS("unet-768", "table II U-Net 2B", "frontier", "512"),
	GRIDS("unet-1024", "table II U-Net 4B", "frontier", "1024"),
	WEAK("gpt-5b", "table III GPT-5B", "64", "zero3 megatron:tp=4 axonn:1,1,64,1 axonn:4,1,4,4",
             "13.5 s under AxoNN, 16.5 under ZeRO-3, 24.5 under Megatron with pipeline (from its "
             "utilizations)"),
	WEAK("gpt-20b", "table III GPT-20B", "256", "zero3 megatron:tp=4 axonn:1,1,256,1 axonn:4,1,16,4",
             "13.1 s under AxoNN, 15.4 under ZeRO-3, 20.9 under Megatron with pipeline (from its "
             "utilizations)"),
	WEAK("gpt-80b", "table III GPT-80B", "1024", "zero3 megatron:tp=4 axonn:1,1,1024,1 axonn:4,1,64,4",
             "14.5 s under AxoNN, 30.6 under ZeRO-3, 19.7 under Megatron with pipeline (from its "
             "utilizations)"),
};
const size_t n_axonn = SW_COUNT(axonn_experiments);
