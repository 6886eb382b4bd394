/*
 * cluster: the machine that the program will run on.
 *
 * This stage takes a cluster file (docs/cluster-file.md) and gives levels, atoms, the part of each
 * level that a device is in, and the figures that `cost` turns into seconds.
 *
 * Devices are numbered 0..n-1 in the order of the hierarchy. The hierarchy's counts are factored
 * into primes: each prime is an ATOM, ordered from the outermost level to the innermost (within a
 * level: in any fixed order, larger primes first); a device's number is its digits over the atoms,
 * outermost most significant. Where the parts of a level are unequal (nodes of 1 and of 4 devices),
 * that level and all above it can't be factored apart: the devices below are counted together and
 * factored as one number.
 *
 * Units: seconds, bytes, bytes per second, floating-point operations per second.
 */
#ifndef SW_CLUSTER_H
#define SW_CLUSTER_H

#include "program/program.h"

#define SW_MAX_ATOMS 20 /* 2^20 devices */
#define SW_MAX_LEVELS 6

/* The radices of a device's number, outermost first. Layouts need nothing else of a cluster. */
typedef struct sw_atoms {
	int32_t n;
	int32_t size[SW_MAX_ATOMS];
} sw_atoms;
int64_t sw_atoms_devices(const sw_atoms *atoms);
/* product of the sizes of all inner atoms */
int64_t sw_atoms_stride(const sw_atoms *atoms, int32_t atom);
int32_t sw_atoms_coordinate(const sw_atoms *atoms, int64_t device, int32_t atom);
/* Return the product of the sizes of the atoms in the mask (bit a = atom a). */
int64_t sw_atoms_group_size(const sw_atoms *atoms, uint32_t mask);
/* Return the groups of devices that differ only in the atoms of the mask; a member's number within
 * its group has those atoms' digits, outermost most significant. Iota form; its lists are in the
 * arena. */
sw_groups sw_atoms_groups(const sw_atoms *atoms, uint32_t mask, sw_arena *arena);

/* The collectives. */
typedef enum sw_collective_kind {
	SW_COLLECTIVE_ALL_REDUCE,
	SW_COLLECTIVE_ALL_GATHER,
	SW_COLLECTIVE_REDUCE_SCATTER,
	SW_COLLECTIVE_ALL_TO_ALL,
	SW_COLLECTIVE_BROADCAST,
	SW_COLLECTIVE_PERMUTE,
	SW_COLLECTIVE_COUNT
} sw_collective_kind;

/*
 * The algorithms of collectives in the transport: one row each, the only list of them.
 *
 * X(NAME, name, the collectives that it serves)
 *
 * transport/NAME.c implements it (sw_NAME_functions), and the function of that name in cost/forms.c
 * gives its seconds: a row without them does not build.
 */
#define SW_SERVES(kind) (UINT32_C(1) << SW_COLLECTIVE_##kind)
#define SW_ALGORITHMS(X)                                                                           \
	/* all to all at once */                                                                   \
	X(DIRECT, direct,                                                                          \
	  SW_SERVES(ALL_REDUCE) | SW_SERVES(ALL_GATHER) | SW_SERVES(REDUCE_SCATTER) |              \
	          SW_SERVES(ALL_TO_ALL) | SW_SERVES(BROADCAST) | SW_SERVES(PERMUTE))               \
	/* by position: each passes on to the next one whatever came from the one before */        \
	X(RING, ring,                                                                              \
	  SW_SERVES(ALL_REDUCE) | SW_SERVES(ALL_GATHER) | SW_SERVES(REDUCE_SCATTER) |              \
	          SW_SERVES(ALL_TO_ALL))                                                           \
	/* recursive halving and doubling (all-gather, broadcast: doubling) */                     \
	X(HALVING, halving,                                                                        \
	  SW_SERVES(ALL_REDUCE) | SW_SERVES(ALL_GATHER) | SW_SERVES(REDUCE_SCATTER) |              \
	          SW_SERVES(BROADCAST))                                                            \
	/* level by level: inside the parts first, then between them */                            \
	X(HIERARCHICAL, hierarchical,                                                              \
	  SW_SERVES(ALL_REDUCE) | SW_SERVES(ALL_GATHER) | SW_SERVES(REDUCE_SCATTER) |              \
	          SW_SERVES(ALL_TO_ALL) | SW_SERVES(BROADCAST))                                    \
	/* in pieces, from each rank to the next */                                                \
	X(CHAIN, chain, SW_SERVES(BROADCAST))

typedef enum sw_algorithm {
#define SW_ROW(NAME, name, serves) SW_ALGORITHM_##NAME,
	SW_ALGORITHMS(SW_ROW)
#undef SW_ROW
		SW_ALGORITHM_COUNT
} sw_algorithm;
const char *sw_collective_name(sw_collective_kind kind); /* "all-reduce" */
const char *sw_algorithm_name(sw_algorithm algorithm);   /* "ring" */
bool sw_algorithm_of(const char *name, sw_algorithm *algorithm); /* false: no algorithm has the name */
bool sw_algorithm_serves(sw_algorithm algorithm, sw_collective_kind kind);

/* One level of the hierarchy. Links of this kind join its units. */
typedef struct sw_level {
	const char *name;
	int64_t count;    /* parts of each unit of the level above; 0: unequal */
	double latency_s; /* alpha: of one message between two parts */
	/* 1/beta: bytes per second that one part can send to its peers, each direction */
	double bandwidth;
	/* the share of it that a single flow can use, bytes per second; equal to bandwidth if the
	 * file gives none */
	double flow_bandwidth;
	/* Bandwidth of each part, numbered globally, where links differ; `bandwidth` is then the
	 * smallest of them, and flow_bandwidth at most that. NULL: all are equal. */
	const double *part_bandwidth;
	/* k groups that share a part's link take k * (1 + contention * (k - 1)) times as long as
	 * one group; 0 if the file gives none. */
	double contention;
} sw_level;

/* Families of kernels: one sum of terms fits the time of all members. */
typedef enum sw_family {
	SW_FAMILY_MATMUL,
	SW_FAMILY_CONVOLUTION,
	SW_FAMILY_ELEMENTWISE,
	SW_FAMILY_TRANSCENDENTAL,
	SW_FAMILY_REDUCE,
	SW_FAMILY_MOVE,    /* transposes, slices, concatenations, broadcasts */
	SW_FAMILY_INDEXED, /* gathers, scatters, sorts */
	SW_FAMILY_COUNT
} sw_family;
const char *sw_family_name(sw_family family); /* "matmul" */
/* Fitted: seconds = overhead_s + call_s * calls + row_s * rows + flops / flops_per_s + min(bytes,
 * cache) / cached_bytes_per_s + max(bytes - cache, 0) / bytes_per_s, with the device's cache_bytes.
 * A rate of 0 means that there is no term. sw_kernel_work (cost.h) gives a kernel's calls, rows and
 * bytes. */
typedef struct sw_kernel_fit {
	bool given; /* else the roofline of the device's own figures holds */
	double overhead_s, flops_per_s, bytes_per_s, cached_bytes_per_s, call_s, row_s;
} sw_kernel_fit;

/* A measured point: `bytes` of operand per rank, over all groups of these atoms at once, by the
 * fastest algorithm. */
typedef struct sw_measurement {
	sw_collective_kind collective;
	uint32_t atoms;
	sw_algorithm algorithm;
	int64_t bytes;
	double seconds, deviation_s; /* median; half the width of its 95 % confidence interval */
} sw_measurement;
typedef struct sw_calibration {
	const char *date; /* "2026-11-22"; NULL: the figures are given, not fitted */
	double error;     /* median relative error of the fit over its points */
	int32_t n_points;
	const sw_measurement *points; /* by (collective, atoms, bytes) */
} sw_calibration;

/* How far a device runs several ops as one kernel; src/fuse has the rules.
 * X(NAME, the word of the cluster file) */
#define SW_FUSIONS(X)                                                                              \
	X(NONE, "none")   /* each op is a kernel */                                                \
	X(LOOPS, "loops") /* what the executor's kernels do */                                     \
	/* what XLA makes for a GPU, with cuBLAS, cuDNN and flash attention */                     \
	X(XLA_GPU, "xla-gpu")                                                                      \
	/* as xla-gpu, but only attention that the program calls cuDNN for is one kernel: of plain \
	 * ops XLA makes none */                                                                   \
	X(XLA_GPU_CALLS, "xla-gpu-calls")                                                          \
	/* as xla-gpu, but of what several kernels read only functions of one array are computed   \
	 * again: eager frameworks save the rest */                                                \
	X(TORCH, "torch")                                                                          \
	/* as torch before it had fused attention: one kernel only where the program calls a       \
	 * library for it; nothing is fused to products */                                         \
	X(TORCH_CALLS, "torch-calls")                                                              \
	/* what XLA makes for a TPU: products and convolutions with what follows them, attention only \
	 * where the program calls a kernel for it */                                              \
	X(XLA_TPU, "xla-tpu")                                                                      \
	X(XLA_CPU, "xla-cpu") /* what XLA makes for a CPU: no attention, no epilogues of dots */
#define SW_FUSION_WORDS                                                                            \
	"none, loops, xla-gpu, xla-gpu-calls, torch, torch-calls, xla-tpu or xla-cpu"
/* What the executor does is what a device does whose file does not say it. */
#define SW_FUSION_LEFT_OUT SW_FUSION_LOOPS
typedef enum sw_fusion {
#define SW_ROW(NAME, name) SW_FUSION_##NAME,
	SW_FUSIONS(SW_ROW)
#undef SW_ROW
		SW_FUSION_COUNT
} sw_fusion;
const char *sw_fusion_name(sw_fusion fusion); /* "xla-gpu" */
/* Return whether kernels are those of a vendor's libraries, which take no workspace of a program's
 * memory; else they are counted as this program's interpreter runs them. */
bool sw_fusion_has_library_kernels(sw_fusion fusion);

/* Whose collectives a device runs; names.c says which algorithms each library has, and whether a
 * conversion may be composed of several. X(NAME, the word of the cluster file) */
#define SW_LIBRARIES(X)                                                                            \
	X(OWN, "own") /* this program's transport */                                               \
	X(NCCL, "nccl")                                                                            \
	X(TORCH, "torch") /* NCCL, one collective per conversion, as an eager framework calls it   \
	                   */
typedef enum sw_library {
#define SW_ROW(NAME, name) SW_LIBRARY_##NAME,
	SW_LIBRARIES(SW_ROW)
#undef SW_ROW
		SW_LIBRARY_COUNT
} sw_library;
const char *sw_library_name(sw_library library); /* "nccl" */
/* Return whether the library does collectives of this kind by the algorithm. */
bool sw_library_has(sw_library library, sw_algorithm algorithm, sw_collective_kind kind);
/* Return whether an eager framework calls it: no conversion is composed of several collectives where
 * one suffices, no axis of several levels is taken level by level, and collectives begin beside
 * kernels only where that takes no memory beyond that of the program's own order. */
bool sw_library_is_eager(sw_library library);

typedef struct sw_device {
	const char *name;
	sw_fusion fusion;       /* SW_FUSION_LEFT_OUT if the file gives none */
	sw_library collectives; /* OWN if the file gives none */
	int64_t memory_bytes;
	double memory_bandwidth;
	/* Fraction of it that a kernel reaches which cuts or joins rows of arrays; 0 if the
	 * file gives none: all of it. */
	double strided_share;
	double kernel_overhead_s;    /* added to every op */
	double flops[SW_TYPE_COUNT]; /* matmul peak by element type; 0: the type runs at the rate of
	                                f32 */
	double matmul_efficiency;    /* fraction of that peak, (0, 1] */
	/* bytes that a fitted kernel reads and writes at cached_bytes_per_s */
	double cache_bytes;
	/* Fraction of the device that a collective in flight takes: kernels beside it run at 1 -
	 * this; [0, 1). 0 if the file gives none. */
	double transfer_share;
	/* A matrix product is cut into tiles of tile x tile elements of its result, of which each
	 * of the device's `processors` computes one at a time; a tile takes tile_depth steps of the
	 * contraction more than there are. 0 if the file gives none: then only flops count. */
	double tile, processors, tile_depth;
	/* fraction of the matmul peak that fused attention and its gradient reach for heads of
	 * unlimited size; one of e elements reaches e / (e + attention_depth) of that. 0 if the
	 * file gives none: matmul_efficiency */
	double attention_efficiency, attention_gradient_efficiency, attention_depth;
	/* what a step takes of the host for each kernel and collective: none begins sooner after
	 * the one before. 0 if the file gives none. */
	double launch_interval_s;
	/* what a collective takes beside its messages, for streams that wait for each other; 0 if the file
	 * gives none. */
	double collective_overhead_s;
	/* how many launches beyond its own a collective costs the host for each of its members; in a
	 * program with pipeline stages. 0 if the file gives none. */
	double collective_launches, stage_collective_launches;
	double reserved_bytes; /* of memory, taken by libraries and gaps; 0 if the file gives none
	                        */
	/* A step takes its predicted seconds times or over 1 + this in nine cases of ten; 0 if the
	 * file gives none. */
	double prediction_error;
	sw_kernel_fit kernels[SW_FAMILY_COUNT];
} sw_device;

/* ---- figures ---------------------------------------------------------------------------- */

/* Each struct has one table of its figures, and all code that reads, prints, rounds, compares,
 * hashes or shows them walks the table. A new figure is a member of the struct and a row of its
 * table in figures.c. */

/* The units in which a figure may be written (table in quantity.c). */
typedef enum sw_quantity {
	SW_QUANTITY_NUMBER, /* no unit */
	SW_QUANTITY_SECONDS,
	SW_QUANTITY_BYTES,
	SW_QUANTITY_BYTES_PER_S,
	SW_QUANTITY_FLOPS, /* per second */
} sw_quantity;

typedef struct sw_figure {
	const char *key;   /* in the cluster file: "kernel_overhead" */
	const char *words; /* for people: "kernel overhead" */
	sw_quantity quantity;
	size_t offset;    /* of its double in the struct */
	bool whole;       /* the member is an int64_t instead */
	bool optional;    /* the file may leave it out: then it is 0, or equal to the ceiling */
	bool may_be_zero; /* no figure may be negative */
	bool costs;       /* a device with more of it is slower, or holds less */
	/* The smallest and the greatest value that the file may give, and the error for any other;
	 * range NULL: any number. */
	double least, most;
	const char *range;
	const char
		*ceiling; /* key of an earlier row, whose figure it must not exceed; NULL: none */
	/* Offset of the pointer to one figure per part of the level, where the file has a list; the
	 * figure itself is then the smallest of them. 0: there is no pointer. */
	size_t each;
} sw_figure;
typedef struct sw_figures {
	const sw_figure *rows;
	size_t n;
} sw_figures;
/* The tables of sw_level, sw_device and sw_kernel_fit. */
extern const sw_figures sw_level_figures, sw_device_figures, sw_kernel_figures;

double sw_figure_value(const sw_figure *figure, const void *of);
/* Return the list of a figure per part; NULL: all parts are equal. */
const double *sw_figure_parts(const sw_figure *figure, const void *of);
/* Return the figure of one part. */
double sw_figure_of_part(const sw_figure *figure, const void *of, int64_t part);
/* Return false for an optional figure that equals the value of a file without it. */
bool sw_figure_is_given(const sw_figures *figures, const sw_figure *figure, const void *of);
/* Add "2.50 GB/s": for people, to three or four digits. */
void sw_quantity_add(double value, sw_quantity quantity, sw_text *text);

/* ---- the cluster ------------------------------------------------------------------------ */

typedef struct sw_cluster {
	sw_arena arena;
	const char *name, *source;
	int32_t n_levels;
	sw_level levels[SW_MAX_LEVELS]; /* outermost first; the innermost counts devices */
	int64_t n_devices;
	/* What every device has at least: where devices are of several kinds, each figure is that
	 * of the slowest kind in it. Plans with equal shares are made for it. */
	sw_device device;
	int32_t n_kinds;         /* 0: all devices are alike */
	const sw_device *kinds;  /* [n_kinds] */
	const int32_t *kind_of;  /* [n_devices] */
	sw_atoms atoms;
	/* the outermost level whose links a step along the atom may cross */
	int32_t atom_level[SW_MAX_ATOMS];
	/* [n_devices][n_levels]: the part of each level that a device is in, numbered globally per
	 * level */
	const int32_t *place;
	sw_calibration calibration;
	uint64_t hash; /* of everything that planning depends on */
} sw_cluster;

/* Errors name file, line, column and key: missing, negative, unknown, or of the wrong kind. */
sw_status sw_cluster_read(const char *path, sw_cluster *cluster, sw_error *err);
sw_status sw_cluster_parse(const char *text, size_t length, const char *file, sw_cluster *cluster,
                           sw_error *err);
/* The same of a file that may be named: a word without a folder and an ending, of which there is no
 * file here, is NAME.yaml in the first of the folders that has it. folders: relative to where the
 * file `beside` lies, ended by NULL. */
sw_status sw_cluster_read_named(const char *path, const char *beside, const char *const *folders,
                                sw_cluster *cluster, sw_error *err);
void sw_cluster_clear(sw_cluster *cluster);
/* Add the figures of levels and device in which b differs from a: "bandwidth of node 12.5 GB/s, not
 * 10 GB/s, ...". Add nothing where they are equal. */
void sw_cluster_print_differences(const sw_cluster *a, const sw_cluster *b, sw_text *text);
/* Print in the file's format, which reads back equal. */
void sw_cluster_print(const sw_cluster *cluster, sw_text *text);
/* Round every figure except counts and sizes to this many digits, so that a fitted one prints
 * short. New lists are in the arena. The hash is not renewed. */
void sw_cluster_round(sw_cluster *cluster, int digits, sw_arena *arena);

/* Reduce the cluster to the part that `what` names: "64", the first 64 devices, by whole parts of
 * one level within the first part of each level above (64 of nodes of 8: 8 nodes; 4 of them: half
 * of the first node); or "2x4", a count for each level: the first 4 of each of the first 2. Links
 * keep their figures; measured points are dropped, unless all devices are taken. An error names the
 * possible parts, and leaves everything but the arena unchanged. O(devices * levels). */
sw_status sw_cluster_take(sw_cluster *cluster, const char *what, sw_error *err);
/* Reduce the cluster to its n devices from `first` on, whatever parts that cuts: a node of which
 * some devices are taken keeps its link. O(devices * levels). */
void sw_cluster_take_range(sw_cluster *cluster, int64_t first, int64_t n);
/* Make a cluster of n of its devices, from `first` on, which lives by itself. Cleared by the
 * caller, also if this fails. */
sw_status sw_cluster_slice(const sw_cluster *cluster, int64_t first, int64_t n, sw_cluster *slice,
                           sw_error *err);
/* Make a slice that of a pipeline stage, of a cluster whose outermost level has several parts: its
 * collectives cost the host what they do beside stages. */
void sw_cluster_become_stage(sw_cluster *slice);
/* Return the first of the n devices from b on that is of another kind, is joined with those before
 * it, or whose links to them are, otherwise than the like one of the n devices from a on; b + n:
 * all are alike. O(n * levels). */
int64_t sw_cluster_first_unlike(const sw_cluster *cluster, int64_t a, int64_t b, int64_t n);

/* Return the figures of a device. */
static inline const sw_device *sw_cluster_device_of(const sw_cluster *cluster, int64_t device)
{
	return cluster->n_kinds ? &cluster->kinds[cluster->kind_of[device]] : &cluster->device;
}
/* Return the cluster as if all of its devices were of one of its kinds, or of one that in each
 * figure is the fastest of them. All is borrowed. */
sw_cluster sw_cluster_of_kind(const sw_cluster *cluster, int32_t kind);
sw_cluster sw_cluster_of_fastest(const sw_cluster *cluster);
/* Return about how quick a device, or all devices of a cluster together, are: the geometric mean of
 * its rates of products and of memory. Only ratios mean something. */
double sw_device_speed(const sw_device *device);
double sw_cluster_speed(const sw_cluster *cluster);
/* Return the atoms on which a device's kind depends; 0: all devices are alike. O(devices *
 * atoms). */
uint32_t sw_cluster_kind_atoms(const sw_cluster *cluster);

/* Return the part of a level in which a device is, by its number in the whole cluster. */
static inline int32_t sw_cluster_part_at(const sw_cluster *cluster, int64_t device, int32_t level)
{
	return cluster->place[device * cluster->n_levels + level];
}
/* Return the number of parts of a level in the whole cluster. */
int64_t sw_cluster_parts(const sw_cluster *cluster, int32_t level);
/* Return the outermost level at which two devices are in different parts; n_levels if a == b. */
int32_t sw_cluster_meeting_level(const sw_cluster *cluster, int64_t a, int64_t b);

#endif
