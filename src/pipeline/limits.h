/* limits: the constants of pipeline that change results, each with what set it. */
#ifndef SW_PIPELINE_LIMITS_H
#define SW_PIPELINE_LIMITS_H

/* Work of a search for a schedule, in actions played: about a second. */
#define SW_PIPELINE_WORK 20000000
/* Above the bound, as a fraction: a schedule this near is not searched further. */
#define SW_PIPELINE_GAP 0.001

/* Most ranks, virtual stages and microbatches, and actions of a schedule: a file that asks for more
 * is refused before it fills the memory. */
#define SW_PIPELINE_RANKS 65536
#define SW_PIPELINE_STAGES 65536
#define SW_PIPELINE_MICROBATCHES 1048576
#define SW_PIPELINE_PASSES 16777216
/* Most bytes of its file: that many passes, and transfers, of short cells. */
#define SW_PIPELINE_FILE_BYTES ((size_t)256 << 20)

#endif
