/* The cases over which limits are measured, and the limits of all stages as one list. */
#ifndef SW_BENCH_LIMITS_H
#define SW_BENCH_LIMITS_H

#include "search/search.h"

/* A program to plan, and where. */
typedef struct limits_case {
	const char *program, *cluster;
	const char *devices; /* NULL: all of the cluster's */
	double memory_share; /* of the unconstrained plan's peak; 0: the cluster's memory */
	bool large;
} limits_case;
extern const limits_case limits_cases[];
extern const size_t limits_n_cases;

/* The limits of all stages, as one plan has them. */
typedef struct limits_all {
	sw_search_limits search;
	sw_model_limits model;
	sw_schedule_limits schedule;
} limits_all;

/* A limit, and what is known of it. */
typedef struct limits_field {
	const char *stage;
	const sw_limit_row *row;
	size_t offset; /* of a double, in limits_all */
} limits_field;
typedef SW_VEC(limits_field) limits_fields;

/* The fields named in a list "a,b"; NULL: all. SW_ERR_INPUT: there is no such field. */
sw_status limits_select(const char *only, limits_fields *fields, sw_error *err);
limits_all limits_default(void);
/* The default, with one field multiplied: of a ratio its distance from 1. */
limits_all limits_scaled(const limits_field *field, double factor);

#endif
