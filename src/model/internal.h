/* What the files of this folder share with each other alone. */
#ifndef SW_MODEL_INTERNAL_H
#define SW_MODEL_INTERNAL_H

#include "model/model.h"

/* ---- alike.c: sites that may do the same, whatever the mesh ----------------------------- */

typedef struct sw_split_list {
	const sw_split *first;
	uint32_t n;
} sw_split_list;
sw_split_list sw_op_splits(const sw_planner *planner, sw_id op);
sw_split_list sw_value_splits(const sw_planner *planner, sw_id value);
/* The value whose layout a site that is not an op decides. */
sw_id sw_site_value(const sw_planner *planner, sw_site_kind kind, uint32_t index);
/* What the user has decided of the site, per atom; NULL: nothing. */
const sw_option *sw_pinned(const sw_planner *planner, sw_site_kind kind, uint32_t index);
/* Bytes that are equal iff the shapes are. */
void sw_key_shape(sw_text *key, sw_shape shape);
/* The number of ops like this one, whose strategies cost the same. */
uint32_t sw_op_like(sw_planner *planner, sw_id op);
/* The number of sites like this one, whose profiles are the same in every mesh; all pins are
 * resolved. */
uint32_t sw_site_like(sw_planner *planner, sw_site_kind kind, uint32_t index);

/* Number of the site's profile under the mesh (profiles.c). */
int32_t sw_profile_of(sw_planner *planner, const sw_mesh *mesh, sw_site_kind kind, uint32_t index);
bool sw_candidate_strategy(const sw_atoms *atoms, const sw_mesh *mesh, const sw_rule *rule,
                           const sw_candidate *candidate, sw_strategy *strategy);

/* ---- repeats.c: layers that are alike do alike ------------------------------------------ */

/* What sites, or hubs, have in common that are one node. */
#define SW_PLACE_ALONE UINT32_MAX /* kind: a node of its own */
typedef struct sw_place {
	uint32_t kind, repeat;
	int32_t profile;
} sw_place;
sw_place sw_place_of_site(sw_planner *planner, const sw_mesh *mesh, const sw_site *site);
sw_place sw_place_of_hub(sw_planner *planner, const sw_mesh *mesh, const sw_hub *hub);

#endif
