/* AutoDist: figures 5 to 8, section 3.3. Ours is the quicker one of the plan in which each
 * variable has a way of its own, and of the planner's own, which splits what it likes. */
#include "papers.h"

#define OTHERS "dp horovod ps ps:balanced ps:partitioned parallax"
#define CHUNKS "dp allreduce:chunk=1 allreduce:chunk=16 allreduce:chunk=64 allreduce:chunk=512"
/* The paper's clusters A1 and A2, of one GPU per node, and B7, of four. */
#define A1 .cluster = "autodist-a", .devices = "16"
#define A2 .cluster = "autodist-a", .devices = "11"
#define B7 .cluster = "autodist-b4", .devices = "16"
/* Those of two kinds of GPU, half of the nodes each: 8 and 16 devices. */
#define B10 .cluster = "autodist-b10"
#define B11 .cluster = "autodist-b11"
#define BUILDERS "horovod ps:balanced ps:partitioned"
#define FIGURE_5 .group = "autodist", .run = run_plans, .beside = BUILDERS, .ways = true
#define FIGURE_6                                                                                   \
	.group = "autodist", .run = run_plans, .beside = OTHERS, .ways = true, .planner_chooses = true
#define FIGURE_8 .group = "autodist", .run = run_plans, .beside = OTHERS, .ways = true
#define FIGURE_7 .group = "autodist", .run = run_plans, .beside = CHUNKS, .ways = true

const experiment autodist_experiments[] = {
	{FIGURE_5, B7, .where = "3.1 figure 5 DenseNet121, B7", .program = "densenet121-batch-512",
         .finding = "partitioned parameter servers are the quickest on more than 4 GPUs",
         .assumed = "32 images per GPU"},
	{FIGURE_5, B7, .where = "3.1 figure 5 ResNet101, B7", .program = "resnet101-batch-512",
         .finding = "partitioned parameter servers are the quickest on more than 4 GPUs",
         .assumed = "32 images per GPU"},
	{FIGURE_5, B7, .where = "3.1 figure 5 InceptionV3, B7", .program = "inception-v3-batch-512",
         .finding = "partitioned parameter servers are the quickest on more than 4 GPUs",
         .assumed = "32 images per GPU"},
	{FIGURE_6, B10, .where = "3.2 figure 6 VGG16, B10", .program = "vgg16-batch-256",
         .finding = "which builder is the quickest depends on model and cluster",
         .assumed = "32 images per GPU"},
	{FIGURE_6, B11, .where = "3.2 figure 6 VGG16, B11", .program = "vgg16-batch-512",
         .finding = "which builder is the quickest depends on model and cluster",
         .assumed = "32 images per GPU"},
	{FIGURE_6, B10, .where = "3.2 figure 6 BERT, B10", .program = "bert-large-batch-64",
         .finding = "partitioned servers outperform all-reduce by a small margin",
         .assumed = "8 sequences of 128 tokens per GPU; 336 M parameters"},
	{FIGURE_6, B11, .where = "3.2 figure 6 BERT, B11", .program = "bert-large-batch-128",
         .finding = "partitioned servers outperform all-reduce by a small margin",
         .assumed = "8 sequences of 128 tokens per GPU; 336 M parameters"},
	{FIGURE_8, A2, .where = "3.3 figure 8 BERT, A2", .program = "bert-large-batch-88",
         .finding = "1.25 times as fast as the best of both",
         .assumed = "8 sequences of 128 tokens per GPU; 336 M parameters"},
	{FIGURE_8, B7, .where = "3.3 figure 8 BERT, B7", .program = "bert-large-batch-128",
         .finding = "1.2 times as fast as the best of both",
         .assumed = "sequences of 128 tokens; 336 M parameters"},
	{FIGURE_8, A2, .where = "3.3 figure 8 VGG16, A2", .program = "vgg16-batch-352",
         .finding = "at least 20 % less time than the best of both",
         .assumed = "32 images per GPU"},
	{FIGURE_8, B7, .where = "3.3 figure 8 VGG16, B7", .program = "vgg16-batch-512",
         .finding = "more than 1.6 times as fast as the best of both",
         .assumed = "32 images per GPU"},
	{FIGURE_8, A2, .where = "3.3 figure 8 NCF, A2", .program = "ncf-122m-batch-720896",
         .finding = "15 % less time than the best of both",
         .assumed = "65536 clicks per GPU; MovieLens's users and items"},
	{FIGURE_8, B7, .where = "3.3 figure 8 NCF, B7", .program = "ncf-122m-batch-1048576",
         .finding = "15 % less time than the best of both",
         .assumed = "65536 clicks per GPU; MovieLens's users and items"},
	{FIGURE_8, B7, .where = "3.3 LM1B LSTM, B7", .program = "lstm-lm",
         .finding = "sparse gradients often go by all-gather",
         .assumed = "64 sequences per GPU, a whole softmax"},
	/* 12 GB hold no activations of 32 images */
	{FIGURE_7, A1, .planner_chooses = true, .where = "3.2 figure 7 ResNet101, A1",
         .program = "resnet101-batch-512",
         .finding = "merging: more than 2 times as fast; all in one is worse",
         .assumed = "32 images per GPU"},
	{FIGURE_7, B7, .where = "3.2 figure 7 ResNet101, B7", .program = "resnet101-batch-512",
         .finding = "merging: more than 2 times as fast; all in one is worse",
         .assumed = "32 images per GPU"},
	{FIGURE_7, A1, .where = "3.2 figure 7 VGG16, A1", .program = "vgg16-batch-512",
         .finding = "merging: as fast; all in one is worse", .assumed = "32 images per GPU"},
	{FIGURE_7, B7, .where = "3.2 figure 7 VGG16, B7", .program = "vgg16-batch-512",
         .finding = "merging: as fast; all in one is worse", .assumed = "32 images per GPU"},
	{FIGURE_7, A1, .where = "3.2 figure 7 NCF, A1", .program = "ncf-122m-batch-1048576",
         .finding = "merging: slower", .assumed = "65536 clicks per GPU"},
	{FIGURE_7, B7, .where = "3.2 figure 7 NCF, B7", .program = "ncf-122m-batch-1048576",
         .finding = "merging: slower", .assumed = "65536 clicks per GPU"},
};
const size_t n_autodist = SW_COUNT(autodist_experiments);
