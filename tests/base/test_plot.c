/* Pictures are complete and escaped, and every point is where it belongs. */
#include "base/plot.h"
#include "base/svg.h"

#include <string.h>

#include "test.h"

static int count(const char *text, const char *what)
{
	int n = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static void text_is_escaped(void **state)
{
	(void)state;
	sw_text svg = {0};
	sw_svg_begin(&svg, 10, 20);
	sw_svg_label(&svg, (sw_svg_point){1, 2}, "", "a < b & 'c' > %d", 3);
	sw_svg_mark_at(&svg, SW_MARK_CROSS, (sw_svg_point){1, 2}, 3, "red", "x<y");
	sw_svg_end(&svg);
	assert_non_null(strstr(svg.data, ">a &lt; b &amp; &#39;c&#39; &gt; 3</text>"));
	assert_non_null(strstr(svg.data, "<title>x&lt;y</title>"));
	assert_non_null(strstr(svg.data, "width='10' height='20'"));
	assert_int_equal(strncmp(svg.data, "<svg ", 5), 0);
	assert_int_equal(strcmp(svg.data + svg.len - 7, "</svg>\n"), 0);
	sw_text_clear(&svg);
}

/* From 1 ms to 1 s the axes have three decades, so that 10 ms is at a third. */
static void points_lie_on_logarithmic_axes(void **state)
{
	(void)state;
	const sw_plot_point points[] = {
		{0.0012, 0.0012, NULL}, {0.9, 0.9, NULL}, {0.01, 0.1, "here"}, {0, 1, "nowhere"}};
	const sw_plot_series series[] = {{"one", 4, points}, {"none", 0, NULL}};
	const sw_plot_panel panels[] = {
		{.title = "P",
	         .x_label = "x",
	         .y_label = "y",
	         .unit = SW_PLOT_SECONDS,
	         .band = 0.1,
	         .n_series = 2,
	         .series = series},
		{.title = "empty", .n_series = 1, .series = series + 1},
	};
	sw_text svg = {0};
	sw_plot_write("Title", "sub", panels, 2, &svg);
	double x = 0, y = 0;
	const char *here = strstr(svg.data, "<title>here</title>"), *start = here;
	assert_non_null(here);
	while (strncmp(start, "<path", 5) != 0)
		start--;
	assert_int_equal(sscanf(start, "<path transform='translate(%lf %lf)", &x, &y), 2);
	double left, top, side, height;
	const char *frame = strstr(svg.data, "fill='none' stroke='#555'/>");
	assert_non_null(frame);
	while (strncmp(frame, "<rect", 5) != 0)
		frame--;
	assert_int_equal(sscanf(frame, "<rect x='%lf' y='%lf' width='%lf' height='%lf'", &left,
	                        &top, &side, &height),
	                 4);
	assert_true(x > left + side / 3 - 0.02 && x < left + side / 3 + 0.02);
	assert_true(y > top + side / 3 - 0.02 && y < top + side / 3 + 0.02);
	static const char *const ticks[] = {">1 ms<", ">10 ms<", ">100 ms<", ">1 s<"};
	for (size_t i = 0; i < SW_COUNT(ticks); i++)
		assert_int_equal(count(svg.data, ticks[i]), 2);
	assert_int_equal(count(svg.data, "<path"), 3 + 1); /* three points and the legend's mark */
	assert_null(strstr(svg.data, "nowhere"));
	assert_null(strstr(svg.data, "none<"));
	assert_null(strstr(svg.data, "empty"));
	assert_non_null(strstr(svg.data, "within 10 %"));
	sw_text_clear(&svg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(points_lie_on_logarithmic_axes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
