/*
 * figures: operations on any figure of a table, for the reader, the rounding and sw_cluster_take.
 * Private to src/cluster; the tables' rows are in figures.c.
 */
#ifndef SW_CLUSTER_FIGURES_H
#define SW_CLUSTER_FIGURES_H

#include "cluster/cluster.h"

/* Return NULL if no row has the key. */
const sw_figure *figure_find(const sw_figures *figures, const char *key);
/* Return the figure that this one must not exceed; NULL: it has no ceiling. */
const sw_figure *figure_ceiling(const sw_figures *figures, const sw_figure *figure);

void figure_set(const sw_figure *figure, void *of, double value);
/* Set the figure to the smallest of n >= 1 parts and keep the list, which must outlive the struct,
 * where they are unequal. */
void figure_set_parts(const sw_figure *figure, void *of, const double *each, int64_t n);
/* Set an optional figure to its value in a file that leaves it out. */
void figure_leave_out(const sw_figures *figures, const sw_figure *figure, void *of);

#endif
