/*
 * plot: scatter plots with logarithmic axes, as a picture that stands alone (SVG).
 *
 * A picture is a row of panels under one title. A panel has series of points, each with its colour
 * and mark, and a legend; both axes have the same unit, and with `band` the diagonal is drawn and
 * what lies within a factor of 1 +- band of it is shaded.
 */
#ifndef SW_PLOT_H
#define SW_PLOT_H

#include "base/base.h"

typedef struct sw_plot_point {
	double x, y;       /* more than 0; others are left out */
	const char *title; /* shown where the pointer rests; NULL: none */
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
	const sw_plot_series *series; /* those without points are left out */
} sw_plot_panel;

/* Panels without any points are left out. */
void sw_plot_write(const char *title, const char *subtitle, const sw_plot_panel *panels, int n,
                   sw_text *svg);

#endif
