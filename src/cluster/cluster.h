/*
 * cluster: what the program will run on.
 *
 * Takes a cluster file (docs/cluster-file.md), gives levels, atoms, places of devices, and the figures that
 * `cost` turns into seconds. Devices are numbered 0..n-1 in the order of the hierarchy. The hierarchy's
 * counts are factored into primes: each prime is an ATOM, ordered from the outermost level to the
 * innermost (within a level: in any fixed order, larger primes first); a device's number is its digits over the
 * atoms, outermost most significant. Where the parts of a level are unequal (nodes of 1 and of 4 devices), that level and
 * all above it can't be factored apart: the devices below are counted together and factored as one number.
 * Units: seconds, bytes, bytes per second, floating-point operations per second.
 */
#ifndef SW_CLUSTER_H
#define SW_CLUSTER_H

#include "program/program.h"

#define SW_MAX_ATOMS 20  /* 2^20 devices */
#define SW_MAX_LEVELS 6

/* The radices of a device's number, outermost first. The only thing that layouts need of a cluster. */
typedef struct sw_atoms {
	int32_t n;
	int32_t size[SW_MAX_ATOMS];
} sw_atoms;
int64_t sw_atoms_devices(const sw_atoms *atoms);
int64_t sw_atoms_stride(const sw_atoms *atoms, int32_t atom);            /* product of the sizes further in */
int32_t sw_atoms_coordinate(const sw_atoms *atoms, int64_t device, int32_t atom);
/* Product of the sizes of the atoms in the mask (bit a = atom a). */
int64_t sw_atoms_group_size(const sw_atoms *atoms, uint32_t mask);
/* The groups of devices that differ only in the atoms of the mask; a member's number within its group has those atoms'
 * digits, outermost most significant. Iota form; its lists go to the arena. */
sw_groups sw_atoms_groups(const sw_atoms *atoms, uint32_t mask, sw_arena *arena);

/* One level of the hierarchy: its units are joined by links of this kind. */
typedef struct sw_level {
	const char *name;
	int64_t count;         /* parts of each unit of the level above; 0: unequal */
	double latency_s;      /* alpha: of one message between two parts */
	double bandwidth;      /* 1/beta: bytes per second that one part can send to its peers, each direction */
	double flow_bandwidth; /* what a single flow can use of it; == bandwidth if the file says nothing */
} sw_level;

typedef struct sw_device {
	const char *name;
	int64_t memory_bytes;
	double memory_bandwidth;
	double kernel_overhead_s;        /* added to every op */
	double flops[SW_TYPE_COUNT];     /* matmul peak by element type; 0: the type runs as f32 */
	double matmul_efficiency;        /* of that peak, (0, 1] */
} sw_device;

typedef struct sw_cluster {
	sw_arena arena;
	const char *name, *source;
	int32_t n_levels;
	sw_level levels[SW_MAX_LEVELS]; /* outermost first; the innermost counts devices */
	int64_t n_devices;
	sw_device device;
	sw_atoms atoms;
	int32_t atom_level[SW_MAX_ATOMS]; /* outermost level whose links a step along the atom may cross */
	const int32_t *place;             /* [n_devices][n_levels]: which part of each level a device is in, numbered globally per level */
	uint64_t hash;                    /* of all that planning depends on */
} sw_cluster;

/* Errors name file, line, column, key: missing, negative, unknown, of the wrong kind. */
sw_status sw_cluster_read(const char *path, sw_cluster *cluster, sw_error *err);
sw_status sw_cluster_parse(const char *text, size_t length, const char *file, sw_cluster *cluster, sw_error *err);
void sw_cluster_clear(sw_cluster *cluster);
void sw_cluster_print(const sw_cluster *cluster, sw_text *text); /* the file's format; reads back equal */

/* Outermost level at which two devices are in different parts, n_levels if a == b. */
int32_t sw_cluster_meeting_level(const sw_cluster *cluster, int64_t a, int64_t b);

#endif
