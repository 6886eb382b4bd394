/*
 * svg: the few shapes that our pictures are made of, as text. Coordinates are pixels, y downwards.
 * Text is escaped; everything else is passed through as the caller wrote it (styles are attributes
 * such as "fill='#eee'"). A picture refers to nothing outside itself.
 */
#ifndef SW_SVG_H
#define SW_SVG_H

#include "base/base.h"

typedef struct sw_svg_point {
	double x, y;
} sw_svg_point;
typedef enum sw_svg_mark {
	SW_MARK_CIRCLE,
	SW_MARK_SQUARE,
	SW_MARK_DIAMOND,
	SW_MARK_UP,
	SW_MARK_DOWN,
	SW_MARK_CROSS,
	SW_MARK_PLUS,
	SW_MARK_COUNT
} sw_svg_mark;

/* Begin a picture with a white background and a sans-serif font. */
void sw_svg_begin(sw_text *svg, double width, double height);
void sw_svg_end(sw_text *svg);
void sw_svg_rect(sw_text *svg, double x, double y, double width, double height, const char *style);
void sw_svg_line(sw_text *svg, sw_svg_point from, sw_svg_point to, const char *style);
void sw_svg_polygon(sw_text *svg, const sw_svg_point *points, int n, const char *style);
/* Draw a mark of about `radius` around `at`, with the stroke or fill that suits the mark. The title
 * is its tooltip; NULL: none. */
void sw_svg_mark_at(sw_text *svg, sw_svg_mark mark, sw_svg_point at, double radius,
                    const char *colour, const char *title);
/* `style` may hold text-anchor, font-size, transform, ... */
void sw_svg_label(sw_text *svg, sw_svg_point at, const char *style, const char *format, ...)
	SW_PRINTF(4, 5);

#endif
