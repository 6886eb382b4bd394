/* campaign: attacks on many programs and clusters, from a seed. */
#ifndef SW_TESTS_BOUND_CAMPAIGN_H
#define SW_TESTS_BOUND_CAMPAIGN_H

#include "bound/attack.h"
#include "bound/clusters.h"

/* How a case is attacked: a program on a cluster, both derived from the seed of the case. */
typedef struct effort {
	int32_t random;   /* plans by chance */
	int32_t draws;    /* of strategies of each op alone */
	int32_t moves;    /* of each descent */
	int32_t planned;  /* one case in so many is planned by the search, too; 0: none */
	int32_t recorded; /* one case in so many is a recorded program; 0: none */
} effort;

/* A descent that ended below the plan of `auto`. */
typedef struct missed {
	double gain; /* seconds of auto / seconds of the descent - 1 */
	char what[320];
} missed;

#define MAX_MISSED 8
typedef struct campaign {
	attacker attacker;
	effort effort;
	site sites[N_SITES];
	int64_t cases;
	int32_t n_missed;
	missed missed[MAX_MISSED]; /* the largest gains, descending */
} campaign;
void campaign_init(campaign *c, double factor, effort how);
void campaign_clear(campaign *c);
/* Attack cases from `seed` on until `attacks` were tried. */
void campaign_run(campaign *c, uint64_t seed, int64_t attacks);
/* Attack one program, given as HLO text, on the site named `where`, with devices that fuse so. */
void campaign_text(campaign *c, uint64_t seed, const char *name, const char *hlo, const char *where,
                   sw_fusion fusion);
/* The same with a program of a kind of WRITTEN_KINDS. */
void campaign_kind(campaign *c, uint64_t seed, const char *kind, const char *where,
                   sw_fusion fusion);
void campaign_print(const campaign *c);

#endif
