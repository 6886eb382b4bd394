/* Rhino's critical nodes (its section 5.3, table 5), as the rewrite finds them. */
#include "papers.h"

static void say_points(const sw_remat_points *points, double seconds, json_t *lines)
{
	int32_t critical = 0, flow = 0;
	for (size_t v = 0; v < points->program->values.len; v++)
		critical += sw_remat_is_critical(points, (sw_id)v, 1);
	for (size_t o = 0; o < points->program->ops.len; o++)
		flow += points->roles[o] == SW_REMAT_FLOW;
	char line[200];
	snprintf(line, sizeof(line),
	         "%zu canonical instructions, %d of them forward; %d critical values, %d "
	         "segments, "
	         "found in %.2f s",
	         points->program->ops.len, flow, critical, points->n_segments, seconds);
	json_array_append_new(lines, json_string(line));
}

json_t *run_segments(const settings *how, const experiment *e)
{
	(void)how;
	subject s;
	sw_error err;
	json_t *lines = json_array();
	if (subject_read_plain(&s, e, &err) == SW_OK) {
		sw_remat_points points;
		double start_s = sw_now_s();
		sw_remat_points_init(&points, s.program);
		say_points(&points, sw_now_s() - start_s, lines);
		sw_remat_points_clear(&points);
	} else {
		json_array_append_new(lines, json_string(err.message));
	}
	subject_clear(&s);
	return json_pack("{s:o}", "lines", lines);
}
