/*
 * figures: what the reader, the rounding and the taking of a part do to any figure of a table.
 * Private to src/cluster; the tables' rows are in figures.c.
 */
#ifndef SW_CLUSTER_FIGURES_H
#define SW_CLUSTER_FIGURES_H

#include "cluster/cluster.h"

/* NULL, if no row has the key. */
const sw_figure *figure_find(const sw_figures *figures, const char *key);
/* The figure that is the most this one may be; NULL, if it has no ceiling. */
const sw_figure *figure_ceiling(const sw_figures *figures, const sw_figure *figure);

void figure_set(const sw_figure *figure, void *of, double value);
/* Sets the figure to the least of n >= 1 parts and keeps the list, which must outlive the struct,
 * where they are unequal. */
void figure_set_parts(const sw_figure *figure, void *of, const double *each, int64_t n);
/* Makes an optional figure what it is where the file leaves it out. */
void figure_leave_out(const sw_figures *figures, const sw_figure *figure, void *of);

#endif
