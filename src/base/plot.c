/* Scatter plots on logarithmic axes. */
#include "base/plot.h"

#include <math.h>

#include "base/svg.h"

#define SIDE 440.0 /* pixels, the side of a panel's square */
#define LEFT 84.0
#define TOP 96.0
#define LEGEND 118.0 /* pixels, the width of the legend right of the square */
#define BOTTOM 62.0
#define PANEL (LEFT + SIDE + LEGEND)
#define RADIUS 3.6

/* Colours that are distinct also with a colour vision deficiency (Okabe and Ito, 2008); marks
 * repeat with another period. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#555555"};

/* The decades of the axes, the same for both. */
typedef struct axes {
	double left, top; /* corner of the square */
	int first, last;  /* powers of ten at the ends of the axes */
	sw_plot_unit unit;
} axes;

static bool is_shown(const sw_plot_point *p)
{
	return p->x > 0 && p->y > 0 && isfinite(p->x) && isfinite(p->y);
}

/* Find the range of all points. Return false if there are none. */
static bool find_range(const sw_plot_panel *panel, axes *a)
{
	double min = INFINITY, max = 0;
	for (int s = 0; s < panel->n_series; s++)
		for (int64_t i = 0; i < panel->series[s].n; i++) {
			const sw_plot_point *p = &panel->series[s].points[i];
			if (!is_shown(p))
				continue;
			min = fmin(min, fmin(p->x, p->y));
			max = fmax(max, fmax(p->x, p->y));
		}
	if (!(max > 0))
		return false;
	a->first = (int)floor(log10(min) - 0.02);
	a->last = SW_MAX((int)ceil(log10(max) + 0.02), a->first + 1);
	return true;
}

static double along(const axes *a, double value)
{
	return (log10(value) - a->first) / (a->last - a->first) * SIDE;
}

static sw_svg_point place(const axes *a, double x, double y)
{
	return (sw_svg_point){a->left + along(a, x), a->top + SIDE - along(a, y)};
}

/* Print the label of a tick: "10 us", "1 s", "100 kB", "1e3". */
static void print_tick(int power, sw_plot_unit unit, char text[32])
{
	static const char *const seconds[] = {"ns", "µs", "ms", "s", "ks"}, *const bytes[] = {
										    "B", "kB", "MB",
										    "GB", "TB"};
	static const char *const heads[] = {"1", "10", "100"};
	int base = unit == SW_PLOT_SECONDS ? -9 : 0, thousands = (int)floor((power - base) / 3.0);
	if (unit == SW_PLOT_NUMBER || thousands < 0 || thousands > 4)
		snprintf(text, 32, "1e%d%s", power, unit == SW_PLOT_SECONDS ? " s" : "");
	else
		snprintf(text, 32, "%s %s", heads[power - base - 3 * thousands],
		         unit == SW_PLOT_SECONDS ? seconds[thousands] : bytes[thousands]);
}

static void draw_grid(const axes *a, sw_text *svg)
{
	for (int power = a->first; power <= a->last; power++) {
		char text[32];
		double value = pow(10, power), low = pow(10, a->first), high = pow(10, a->last);
		for (int k = 2; k < 10 && power < a->last; k++) {
			sw_svg_line(svg, place(a, k * value, low), place(a, k * value, high),
			            "stroke='#f2f2f2'");
			sw_svg_line(svg, place(a, low, k * value), place(a, high, k * value),
			            "stroke='#f2f2f2'");
		}
		sw_svg_line(svg, place(a, value, low), place(a, value, high), "stroke='#d8d8d8'");
		sw_svg_line(svg, place(a, low, value), place(a, high, value), "stroke='#d8d8d8'");
		print_tick(power, a->unit, text);
		sw_svg_point x = place(a, value, low), y = place(a, low, value);
		sw_svg_label(svg, (sw_svg_point){x.x, x.y + 18}, "text-anchor='middle'", "%s",
		             text);
		sw_svg_label(svg, (sw_svg_point){y.x - 8, y.y + 4}, "text-anchor='end'", "%s",
		             text);
	}
}

/* Shade the area between y = x (1 - band) and y = x (1 + band), cut at the square's edges. */
static void draw_band(const axes *a, double band, sw_text *svg)
{
	double low = pow(10, a->first), high = pow(10, a->last);
	const sw_svg_point corners[] = {place(a, low, low),
	                                place(a, low, low * (1 + band)),
	                                place(a, high / (1 + band), high),
	                                place(a, high, high),
	                                place(a, high, high * (1 - band)),
	                                place(a, low / (1 - band), low)};
	sw_svg_polygon(svg, corners, 6,
	               "fill='#0072b2' fill-opacity='.15' stroke='#0072b2' stroke-opacity='.6' "
	               "stroke-width='.6' "
	               "stroke-dasharray='3 2'");
	sw_svg_line(svg, place(a, low, low), place(a, high, high),
	            "stroke='#555' stroke-width='1.2'");
}

static void draw_labels(const sw_plot_panel *panel, const axes *a, sw_text *svg)
{
	char turned[96];
	double middle = a->top + SIDE / 2, left = a->left - 64;
	snprintf(turned, sizeof(turned), "text-anchor='middle' transform='rotate(-90 %.1f %.1f)'",
	         left, middle);
	sw_svg_label(svg, (sw_svg_point){a->left, a->top - 12}, "font-size='14' font-weight='600'",
	             "%s", panel->title);
	sw_svg_label(svg, (sw_svg_point){a->left + SIDE / 2, a->top + SIDE + 42},
	             "text-anchor='middle'", "%s", panel->x_label);
	sw_svg_label(svg, (sw_svg_point){left, middle}, turned, "%s", panel->y_label);
}

/* Return the place of the legend's next row, right of the square. */
static sw_svg_point next_row(const axes *a, int *row)
{
	return (sw_svg_point){a->left + SIDE + 16, a->top + 10 + 20 * (*row)++};
}

static void draw_series(const sw_plot_panel *panel, const axes *a, sw_text *svg)
{
	int row = 0;
	for (int s = 0; s < panel->n_series; s++) {
		const sw_plot_series *series = &panel->series[s];
		const char *colour = colours[(size_t)s % SW_COUNT(colours)];
		sw_svg_mark mark = (sw_svg_mark)(s % SW_MARK_COUNT);
		if (!series->n)
			continue;
		for (int64_t i = 0; i < series->n; i++)
			if (is_shown(&series->points[i]))
				sw_svg_mark_at(svg, mark,
				               place(a, series->points[i].x, series->points[i].y),
				               RADIUS, colour, series->points[i].title);
		sw_svg_point at = next_row(a, &row);
		sw_svg_mark_at(svg, mark, at, RADIUS + 1, colour, NULL);
		sw_svg_label(svg, (sw_svg_point){at.x + 11, at.y + 4}, "", "%s", series->name);
	}
	if (panel->band > 0) {
		sw_svg_point at = next_row(a, &row);
		sw_svg_rect(svg, at.x - 6, at.y - 5, 12, 10, "fill='#0072b2' fill-opacity='.12'");
		sw_svg_line(svg, (sw_svg_point){at.x - 6, at.y + 5},
		            (sw_svg_point){at.x + 6, at.y - 5}, "stroke='#555'");
		sw_svg_label(svg, (sw_svg_point){at.x + 11, at.y + 4}, "", "within %g %%",
		             100 * panel->band);
	}
}

static void draw_panel(const sw_plot_panel *panel, axes *a, sw_text *svg)
{
	draw_grid(a, svg);
	if (panel->band > 0)
		draw_band(a, panel->band, svg);
	sw_svg_rect(svg, a->left, a->top, SIDE, SIDE, "fill='none' stroke='#555'");
	draw_labels(panel, a, svg);
	draw_series(panel, a, svg);
}

void sw_plot_write(const char *title, const char *subtitle, const sw_plot_panel *panels, int n,
                   sw_text *svg)
{
	axes a = {.top = TOP};
	int shown = 0;
	for (int i = 0; i < n; i++)
		shown += find_range(&panels[i], &a);
	sw_svg_begin(svg, PANEL * SW_MAX(shown, 1) + 16, TOP + SIDE + BOTTOM);
	sw_svg_label(svg, (sw_svg_point){24, 32}, "font-size='19' font-weight='600'", "%s", title);
	sw_svg_label(svg, (sw_svg_point){24, 54}, "fill='#555'", "%s", subtitle);
	a.left = LEFT;
	for (int i = 0; i < n; i++) {
		a.unit = panels[i].unit;
		if (!find_range(&panels[i], &a))
			continue;
		draw_panel(&panels[i], &a, svg);
		a.left += PANEL;
	}
	sw_svg_end(svg);
}
