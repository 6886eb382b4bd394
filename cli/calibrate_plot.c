/* Draw fitted against measured seconds. */
#include "base/plot.h"
#include "calibrate_report.h"

#define BAND 0.1
#define GROUPS SW_MAX(SW_COLLECTIVE_COUNT + 1, SW_FAMILY_COUNT)

typedef struct scatter {
	sw_arena arena;
	sw_plot_series links[GROUPS], kernels[GROUPS];
} scatter;

static void add_point(scatter *s, sw_plot_series *series, int64_t capacity, double seconds,
                      double fitted_s, const char *title)
{
	if (!series->points)
		series->points = SW_NEW_N(&s->arena, sw_plot_point, capacity);
	((sw_plot_point *)series->points)[series->n++] = (sw_plot_point){seconds, fitted_s, title};
}

static void add_link(scatter *s, const sw_calibrate_result *result, const sw_link_point *p)
{
	int group = p->atoms ? (int)p->kind : SW_COLLECTIVE_COUNT;
	sw_text title = {0};
	s->links[group].name = p->atoms ? sw_collective_name(p->kind) : "pair alone";
	sw_text_addf(&title, "%s ", s->links[group].name);
	if (p->atoms) {
		sw_text_addf(&title, "%s over ", sw_algorithm_name(p->algorithm));
		sw_calibrate_print_atoms(&result->cluster, p->atoms, &title);
	}
	sw_text_add(&title, ", ");
	sw_text_add_bytes(&title, (double)p->bytes);
	add_point(s, &s->links[group], (int64_t)result->links.len, p->seconds, p->fitted_s,
	          sw_arena_text(&s->arena, title.data));
	sw_text_clear(&title);
}

static sw_plot_panel panel(scatter *s, const char *what, const sw_fit *fit,
                           const sw_plot_series *series, int n)
{
	return (sw_plot_panel){.title = sw_arena_printf(&s->arena,
	                                                "%s: median error %.1f %%, %d points", what,
	                                                100 * fit->median_error, fit->n_points),
	                       .x_label = "measured (median)",
	                       .y_label = "fitted",
	                       .unit = SW_PLOT_SECONDS,
	                       .band = BAND,
	                       .n_series = n,
	                       .series = series};
}

void calibrate_plot(const sw_calibrate_result *result, sw_text *svg)
{
	scatter s = {0};
	sw_arena_init(&s.arena);
	for (size_t i = 0; i < result->links.len; i++)
		add_link(&s, result, &result->links.data[i]);
	for (size_t i = 0; i < result->kernels.len; i++) {
		const sw_kernel_point *p = &result->kernels.data[i];
		s.kernels[p->family].name = sw_family_name(p->family);
		add_point(&s, &s.kernels[p->family], (int64_t)result->kernels.len, p->seconds,
		          p->fitted_s,
		          sw_arena_printf(&s.arena, "%s, %s", p->what, sw_type_name(p->type)));
	}
	const sw_plot_panel panels[] = {
		panel(&s, "Links", &result->link_fit, s.links, SW_COLLECTIVE_COUNT + 1),
		panel(&s, "Kernels", &result->kernel_fit, s.kernels, SW_FAMILY_COUNT)};
	const char *title =
		sw_arena_printf(&s.arena, "Calibration of %s: fitted against measured seconds",
	                        result->cluster.name);
	const char *date = result->cluster.calibration.date;
	const char *subtitle =
		sw_arena_printf(&s.arena, "%lld ranks%s%s", (long long)result->cluster.n_devices,
	                        date ? ", " : "", date ? date : "");
	sw_plot_write(title, subtitle, panels, 2, svg);
	sw_arena_clear(&s.arena);
}
