/* limits: the constants of crossmesh that change plans, each with what set it. */
#ifndef SW_CROSSMESH_LIMITS_H
#define SW_CROSSMESH_LIMITS_H

/* Chunks of a chain. The paper takes about 100 (section 3.1); A - 1 chunks of K are lost to filling
 * the chain, so that 1 % growth from 1 to 4 hosts needs 300. */
#define SW_CROSSMESH_CHUNKS 1024
/* Bytes of a chunk, at least. With 16 KiB the executor's ranks, 20 on two busy cores, did not keep up
 * with links of 200 Mb/s (bench/crossmesh, case 7: 10 to 30 % over the bound); 64 KiB is a message of
 * its own. */
#define SW_CROSSMESH_CHUNK_BYTES 65536
/* Each message of a phase after the first costs its sender so many latencies (src/cost, forms.c).
 */
#define SW_CROSSMESH_NEXT_MESSAGE 0.02

/* Above the bound, as a fraction: a plan this near is not searched further. */
#define SW_CROSSMESH_TOLERANCE 0.002
/* A slice is cut into so many pieces at most, and there are so many tasks at most. */
#define SW_CROSSMESH_PIECES 8
#define SW_CROSSMESH_TASKS 4096

/* Work of the searches for an order, in options placed and looked at, each of which counts once more
 * for so many links: about a millisecond. */
#define SW_CROSSMESH_WORK 20000
#define SW_CROSSMESH_WORK_LINKS 8
/* The list schedule by critical links has so much work per task in any case: with thousands of small
 * tasks it is far better than what searches nothing, and quick, as many begin at once. */
#define SW_CROSSMESH_LIST_WORK 1000
/* The paper's depth-first search fails above 20 tasks. */
#define SW_CROSSMESH_DFS_TASKS 20
/* Random sets of which the largest is taken, and schedules that are drawn. */
#define SW_CROSSMESH_SETS 4
#define SW_CROSSMESH_DRAWS 16

/* Uses of a link at one time that are told apart. */
#define SW_CROSSMESH_USES 8

#endif
