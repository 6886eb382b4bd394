/*
 * link_unknowns: the unknowns of a fit of links (fit_links.c). Private to src/cost.
 */
#ifndef SW_COST_LINK_UNKNOWNS_H
#define SW_COST_LINK_UNKNOWNS_H

#include "cost/fit.h"

typedef enum figure_kind { LATENCY, BANDWIDTH, FLOW, CONTENTION } figure_kind;

typedef struct unknown {
	int32_t level, part; /* part -1: the whole level */
	figure_kind figure;
	double min, max, guess, prior; /* bounds, guess and prior weight of the coordinate */
} unknown;

typedef struct link_fit {
	const sw_cluster *shape;
	sw_link_point *points;
	int32_t n_points;
	int n;
	unknown *unknowns;
	double *x;        /* [n] */
	sw_cluster trial; /* borrows everything but the levels' figures */
	double *part_bandwidth[SW_MAX_LEVELS];
	double *trust, *residuals, *weights, *scratch; /* [n_points] */
	double *jacobian;                              /* [n_points][n] */
} link_fit;

/* Return the number of parts of a level; those of level -1 are the whole cluster. */
int64_t count_parts(const sw_cluster *cluster, int32_t level);
/* List the unknowns of the levels that can be crossed: those that divide some part of the level
 * above. */
void list_unknowns(link_fit *f, sw_arena *arena);
/* Set all figures. A level's bandwidths come before its flow_bandwidth in the list, its parts in
 * order. */
void set_figures(link_fit *f);
/* Return the seconds of a point on the cluster. */
double predict(const sw_cluster *cluster, const sw_link_point *point);
/* Write ln (predicted / measured) of each point. */
void fill_residuals(link_fit *f, double *residuals);

#endif
