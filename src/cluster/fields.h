/*
 * fields: the mappings of the cluster file, which every part of its reader shares. Private to
 * src/cluster.
 *
 * A mapping has the keys of a table of figures, whose values are read here, and keys whose values
 * are read elsewhere. Errors name line, column and the path to the key ("levels[0].latency"); the
 * file is named by the caller.
 */
#ifndef SW_CLUSTER_FIELDS_H
#define SW_CLUSTER_FIELDS_H

#include "cluster/cluster.h"
#include "cluster/quantity.h"

#define MAX_PATH_BYTES 256 /* of "levels[0].count[3]", for messages */

typedef struct field {
	const char *key;
	bool optional;
} field;
typedef struct mapping {
	const field *fields; /* their values are read elsewhere */
	size_t n;
	const sw_figures *figures; /* NULL: none */
} mapping;

sw_status field_bad(sw_error *err, const sw_yaml *at, const char *where, const char *message);
sw_status field_expect(const sw_yaml *node, sw_yaml_kind kind, const char *where,
                       const char *expected, sw_error *err);
/* Read a name, which must not be empty, into the arena. */
sw_status field_name(const sw_yaml *node, const char *where, sw_arena *arena, const char **name,
                     sw_error *err);
/* Accept a mapping that has no unknown key and lacks none. */
sw_status mapping_check(const sw_yaml *node, const mapping *m, const char *where, sw_error *err);

/* Read one value into the struct: in range, not negative, and zero only where the figure may be. */
sw_status figure_read(const sw_yaml *node, const sw_figure *figure, void *of, const char *where,
                      sw_error *err);
/* Read all figures of a mapping that was checked. n_parts: the length of lists; 0: no figure of the
 * table has a list. Lists go to the arena. */
sw_status figures_read(const sw_yaml *node, const sw_figures *figures, void *of, int64_t n_parts,
                       const char *where, sw_arena *arena, sw_error *err);

#endif
