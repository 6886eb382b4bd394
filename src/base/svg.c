/* Shapes as SVG. */
#include "base/svg.h"

#include <string.h>

static void add_escaped(sw_text *svg, const char *text)
{
	for (const char *c = text; *c; c++) {
		const char *entity = *c == '&'    ? "&amp;"
		                     : *c == '<'  ? "&lt;"
		                     : *c == '>'  ? "&gt;"
		                     : *c == '\'' ? "&#39;"
		                                  : NULL;
		if (entity)
			sw_text_add(svg, entity);
		else
			sw_text_add_n(svg, c, 1);
	}
}

void sw_svg_begin(sw_text *svg, double width, double height)
{
	sw_text_addf(svg,
	             "<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' viewBox='0 0 "
	             "%g %g' "
	             "font-family='system-ui, \"DejaVu Sans\", Helvetica, Arial, sans-serif' "
	             "font-size='12' fill='#222'>\n",
	             width, height, width, height);
	sw_svg_rect(svg, 0, 0, width, height, "fill='white'");
}

void sw_svg_end(sw_text *svg)
{
	sw_text_add(svg, "</svg>\n");
}

void sw_svg_rect(sw_text *svg, double x, double y, double width, double height, const char *style)
{
	sw_text_addf(svg, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' %s/>\n", x, y, width,
	             height, style);
}

void sw_svg_line(sw_text *svg, sw_svg_point from, sw_svg_point to, const char *style)
{
	sw_text_addf(svg, "<line x1='%.2f' y1='%.2f' x2='%.2f' y2='%.2f' %s/>\n", from.x, from.y,
	             to.x, to.y, style);
}

void sw_svg_polygon(sw_text *svg, const sw_svg_point *points, int n, const char *style)
{
	sw_text_add(svg, "<polygon points='");
	for (int i = 0; i < n; i++)
		sw_text_addf(svg, "%s%.2f,%.2f", i ? " " : "", points[i].x, points[i].y);
	sw_text_addf(svg, "' %s/>\n", style);
}

/* Each mark is drawn around the origin with radius 1; a mark made of strokes has no inside to
 * fill. */
static const struct {
	const char *path;
	bool stroke;
} marks[SW_MARK_COUNT] = {
	[SW_MARK_CIRCLE] = {"M-1,0A1,1 0 1 1 1,0A1,1 0 1 1 -1,0Z", false},
	[SW_MARK_SQUARE] = {"M-.9,-.9H.9V.9H-.9Z", false},
	[SW_MARK_DIAMOND] = {"M0,-1.25L1.25,0L0,1.25L-1.25,0Z", false},
	[SW_MARK_UP] = {"M0,-1.2L1.1,.8H-1.1Z", false},
	[SW_MARK_DOWN] = {"M0,1.2L1.1,-.8H-1.1Z", false},
	[SW_MARK_CROSS] = {"M-.9,-.9L.9,.9M-.9,.9L.9,-.9", true},
	[SW_MARK_PLUS] = {"M0,-1.2V1.2M-1.2,0H1.2", true},
};

void sw_svg_mark_at(sw_text *svg, sw_svg_mark mark, sw_svg_point at, double radius,
                    const char *colour, const char *title)
{
	sw_text_addf(svg, "<path transform='translate(%.2f %.2f) scale(%g)' d='%s' ", at.x, at.y,
	             radius, marks[mark].path);
	sw_text_addf(svg,
	             marks[mark].stroke ? "fill='none' stroke='%s' stroke-width='.5'"
	                                : "fill='%s' fill-opacity='.75'",
	             colour);
	if (!title) {
		sw_text_add(svg, "/>\n");
		return;
	}
	sw_text_add(svg, "><title>");
	add_escaped(svg, title);
	sw_text_add(svg, "</title></path>\n");
}

void sw_svg_label(sw_text *svg, sw_svg_point at, const char *style, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sw_text_addf(svg, "<text x='%.2f' y='%.2f' %s>", at.x, at.y, style);
	add_escaped(svg, text);
	sw_text_add(svg, "</text>\n");
}
