/*
 * cluster: what the program will run on.
 *
 * Takes a cluster file (docs/cluster-file.md), gives levels, atoms, places of devices, and the
 * figures that `cost` turns into seconds. Devices are numbered 0..n-1 in the order of the
 * hierarchy. The hierarchy's counts are factored into primes: each prime is an ATOM, ordered from
 * the outermost level to the innermost (within a level: in any fixed order, larger primes first); a
 * device's number is its digits over the atoms, outermost most significant. Where the parts of a
 * level are unequal (nodes of 1 and of 4 devices), that level and all above it can't be factored
 * apart: the devices below are counted together and factored as one number. Units: seconds, bytes,
 * bytes per second, floating-point operations per second.
 */
#ifndef SW_CLUSTER_H
#define SW_CLUSTER_H

#include "program/program.h"

#define SW_MAX_ATOMS 20 /* 2^20 devices */
#define SW_MAX_LEVELS 6

/* The radices of a device's number, outermost first. The only thing that layouts need of a cluster.
 */
typedef struct sw_atoms {
	int32_t n;
	int32_t size[SW_MAX_ATOMS];
} sw_atoms;
int64_t sw_atoms_devices(const sw_atoms *atoms);
/* product of the sizes further in */
int64_t sw_atoms_stride(const sw_atoms *atoms, int32_t atom);
int32_t sw_atoms_coordinate(const sw_atoms *atoms, int64_t device, int32_t atom);
/* Product of the sizes of the atoms in the mask (bit a = atom a). */
int64_t sw_atoms_group_size(const sw_atoms *atoms, uint32_t mask);
/* The groups of devices that differ only in the atoms of the mask; a member's number within its
 * group has those atoms' digits, outermost most significant. Iota form; its lists go to the arena.
 */
sw_groups sw_atoms_groups(const sw_atoms *atoms, uint32_t mask, sw_arena *arena);

/* What groups of devices do together. */
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
 * The ways in which the transport does a collective: one row each, the only list of them.
 *
 *   X(NAME, name, the collectives that it serves)
 *
 * transport/NAME.c does it (sw_NAME_functions), and the function of that name in cost/forms.c says
 * how many seconds it takes: a row without them does not build.
 */
#define SW_SERVES(kind) (UINT32_C(1) << SW_COLLECTIVE_##kind)
#define SW_ALGORITHMS(X)                                                                           \
	/* everyone to everyone at once */                                                         \
	X(DIRECT, direct,                                                                          \
	  SW_SERVES(ALL_REDUCE) | SW_SERVES(ALL_GATHER) | SW_SERVES(REDUCE_SCATTER) |              \
	          SW_SERVES(ALL_TO_ALL) | SW_SERVES(BROADCAST) | SW_SERVES(PERMUTE))               \
	/* by place: what came from the one before goes to the next */                             \
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
	/* in pieces, from each to the next */                                                     \
	X(CHAIN, chain, SW_SERVES(BROADCAST))

typedef enum sw_algorithm {
#define SW_ROW(NAME, name, serves) SW_ALGORITHM_##NAME,
	SW_ALGORITHMS(SW_ROW)
#undef SW_ROW
		SW_ALGORITHM_COUNT
} sw_algorithm;
const char *sw_collective_name(sw_collective_kind kind); /* "all-reduce" */
const char *sw_algorithm_name(sw_algorithm algorithm);   /* "ring" */
bool sw_algorithm_serves(sw_algorithm algorithm, sw_collective_kind kind);

/* One level of the hierarchy: its units are joined by links of this kind. */
typedef struct sw_level {
	const char *name;
	int64_t count;    /* parts of each unit of the level above; 0: unequal */
	double latency_s; /* alpha: of one message between two parts */
	/* 1/beta: bytes per second that one part can send to its peers, each direction */
	double bandwidth;
	/* what a single flow can use of it; == bandwidth if the file says nothing */
	double flow_bandwidth;
	/* Where links differ: of each part, numbered globally; `bandwidth` is then the least of
	 * them, and flow_bandwidth at most that. NULL: all are the same. */
	const double *part_bandwidth;
	/* k groups that share a part's link take k * (1 + contention * (k - 1)) times as long as
	 * one alone; 0 if the file says nothing. */
	double contention;
} sw_level;

/* Kernels that are alike: one sum of terms fits the time of all of a family. */
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
 * cache) / cached_bytes_per_s
 * + max(bytes - cache, 0) / bytes_per_s, with the device's cache_bytes; a rate of 0: that term is
 * none. What a kernel's calls, rows and bytes are: sw_kernel_work (cost.h). */
typedef struct sw_kernel_fit {
	bool given; /* else the roofline of the device's own figures */
	double overhead_s, flops_per_s, bytes_per_s, cached_bytes_per_s, call_s, row_s;
} sw_kernel_fit;

/* A measured point: `bytes` of operand per rank, over all groups of these atoms at once, by the
 * algorithm that was fastest. */
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

typedef struct sw_device {
	const char *name;
	int64_t memory_bytes;
	double memory_bandwidth;
	double kernel_overhead_s;    /* added to every op */
	double flops[SW_TYPE_COUNT]; /* matmul peak by element type; 0: the type runs as f32 */
	double matmul_efficiency;    /* of that peak, (0, 1] */
	/* of what a fitted kernel reads and writes, so many bytes go at cached_bytes_per_s */
	double cache_bytes;
	/* What a collective under way takes of the device: kernels beside it go at 1 - this; [0,
	 * 1). 0 if the file says nothing. */
	double transfer_share;
	sw_kernel_fit kernels[SW_FAMILY_COUNT];
} sw_device;

/* ---- figures: one table for each struct, which all walk that read, print, round, compare, hash or
 * show it. A new figure is a member of the struct and a row of its table in figures.c. ---- */

/* The units in which a figure may be written (quantity.c has them). */
typedef enum sw_quantity {
	SW_QUANTITY_NUMBER, /* no unit at all */
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
	bool whole;       /* an int64_t lies there instead */
	bool optional;    /* the file may leave it out: then it is 0, or equal to the ceiling */
	bool may_be_zero; /* no figure may be negative */
	/* The least and the most that the file may say, and the error where it says another;
	 * range NULL: any number. */
	double least, most;
	const char *range;
	const char *ceiling; /* key of a row above, whose figure it must not exceed; or NULL */
	/* Of the pointer to a figure for each part of the level, where the file has a list; the
	 * figure is then the least of them. 0: there is no such pointer. */
	size_t each;
} sw_figure;
typedef struct sw_figures {
	const sw_figure *rows;
	size_t n;
} sw_figures;
/* Of sw_level, sw_device and sw_kernel_fit. */
extern const sw_figures sw_level_figures, sw_device_figures, sw_kernel_figures;

double sw_figure_value(const sw_figure *figure, const void *of);
/* The list of a figure for each part; NULL: they are all the same. */
const double *sw_figure_parts(const sw_figure *figure, const void *of);
/* False for an optional figure that is as if the file had left it out. */
bool sw_figure_is_given(const sw_figures *figures, const sw_figure *figure, const void *of);
/* Adds "2.50 GB/s": for people, to three or four digits. */
void sw_quantity_add(double value, sw_quantity quantity, sw_text *text);

/* ---- the cluster ---- */

typedef struct sw_cluster {
	sw_arena arena;
	const char *name, *source;
	int32_t n_levels;
	sw_level levels[SW_MAX_LEVELS]; /* outermost first; the innermost counts devices */
	int64_t n_devices;
	sw_device device;
	sw_atoms atoms;
	/* outermost level whose links a step along the atom may cross */
	int32_t atom_level[SW_MAX_ATOMS];
	/* [n_devices][n_levels]: which part of each level a device is in, numbered globally per
	 * level */
	const int32_t *place;
	sw_calibration calibration;
	uint64_t hash; /* of all that planning depends on */
} sw_cluster;

/* Errors name file, line, column, key: missing, negative, unknown, of the wrong kind. */
sw_status sw_cluster_read(const char *path, sw_cluster *cluster, sw_error *err);
sw_status sw_cluster_parse(const char *text, size_t length, const char *file, sw_cluster *cluster,
                           sw_error *err);
void sw_cluster_clear(sw_cluster *cluster);
/* The figures of levels and device in which b differs from a: "bandwidth of node 12.5 GB/s, not 10
 * GB/s, ...". Adds nothing where they are the same. */
void sw_cluster_print_differences(const sw_cluster *a, const sw_cluster *b, sw_text *text);
/* the file's format; reads back equal */
void sw_cluster_print(const sw_cluster *cluster, sw_text *text);
/* Every figure but counts and sizes to so many digits, so that a fitted one prints short; what it
 * needs anew is in the arena. The hash is not renewed. */
void sw_cluster_round(sw_cluster *cluster, int digits, sw_arena *arena);

/* Makes it the part of itself that `what` says: "64", the first 64 devices, by whole parts of one
 * level within the first part of each level above (64 of nodes of 8: 8 nodes; 4 of them: half of
 * the first node); or "2x4", a count for each level: the first 4 of each of the first 2. Links keep
 * their figures; measured points, but for all devices, are dropped. On an error, which names what
 * can be had, nothing has changed but the arena. O(devices * levels). */
sw_status sw_cluster_take(sw_cluster *cluster, const char *what, sw_error *err);

/* Parts of a level in the whole cluster. */
int64_t sw_cluster_parts(const sw_cluster *cluster, int32_t level);
/* Outermost level at which two devices are in different parts, n_levels if a == b. */
int32_t sw_cluster_meeting_level(const sw_cluster *cluster, int64_t a, int64_t b);

#endif
