/*
 * fields: what every part of the cluster file's reader shares. Private to src/cluster.
 *
 * A mapping is a table of fields: which keys it may have, which it must have, and where their
 * numbers go. Errors name line, column and the path to the key ("levels[0].latency"); the file is
 * named by the caller.
 */
#ifndef SW_CLUSTER_FIELDS_H
#define SW_CLUSTER_FIELDS_H

#include "cluster/quantity.h"

#define PATH_ROOM 256 /* of "levels[0].count[3]", for messages */

/* What a key holds, and where its number goes. */
typedef struct field {
	const char *key;
	quantity_kind kind;
	bool optional, may_be_zero;
	double *value; /* NULL: not a quantity; read elsewhere */
} field;

sw_status field_bad(sw_error *err, const sw_yaml *at, const char *where, const char *message);
sw_status field_expect(const sw_yaml *node, sw_yaml_kind kind, const char *where,
                       const char *expected, sw_error *err);
/* Of one value; not negative, and zero only where that makes sense. */
sw_status field_read(const sw_yaml *node, const field *f, const char *where, sw_error *err);
/* A name: not empty, in the arena. */
sw_status field_name(const sw_yaml *node, const char *where, sw_arena *arena, const char **name,
                     sw_error *err);
/* No key is unknown, none is missing. */
sw_status fields_check(const sw_yaml *node, const field *fields, size_t n, const char *where,
                       sw_error *err);
/* The same, and the quantities are read. */
sw_status fields_read(const sw_yaml *node, const field *fields, size_t n, const char *where,
                      sw_error *err);

#endif
