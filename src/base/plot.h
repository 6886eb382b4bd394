/*
 * plot: scatter plots with logarithmic axes, as a self-contained picture (SVG).
 *
 * A picture is a row of panels under one title. A panel has series of points, each with its colour
 * and mark, and a legend. Both axes have the same unit. With `band` the diagonal is drawn, and the
 * area within a factor of 1 +- band of it is shaded.
 */
#ifndef SW_PLOT_H
#define SW_PLOT_H

#include "base/base.h"

typedef struct sw_plot_point {
	double x, y;       /* greater than 0; other points are left out */
	const char *title; /* tooltip of the point; NULL: none */
} sw_plot_point;
typedef struct sw_plot_series {
	const char *name;
	int64_t n;
	const sw_plot_point *points;
} sw_plot_series;
typedef enum sw_plot_unit { SW_PLOT_NUMBER, SW_PLOT_SECONDS, SW_PLOT_BYTES } sw_plot_unit;
typedef struct sw_plot_panel {
	const char *title, *x_label, *y_label;
	sw_plot_unit unit;
	double band; /* 0.1: +-10 %; 0: no diagonal */
	int n_series;
	const sw_plot_series *series; /* series without points are left out */
} sw_plot_panel;

/* Draw the panels; panels without any points are left out. */
void sw_plot_write(const char *title, const char *subtitle, const sw_plot_panel *panels, int n,
                   sw_text *svg);

#endif
