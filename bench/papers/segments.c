/*
 * Rhino's critical nodes (its sections 4.3.1 and 4.3.2, table 5), by its definition: with a time of
 * 1 per op, the contractions that can't begin later without delaying the end; each two neighbouring
 * ones bound a segment. Beside them, the cuts of the forward pass that the rewrite finds.
 */
#include "papers.h"

/* Compute when each op of the entry ends at the earliest. */
static void find_earliest(const sw_program *p, int32_t *earliest)
{
	const sw_computation *entry = sw_entry(p);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		for (uint32_t k = 0; k < op->n_operands; k++)
			earliest[id] =
				SW_MAX(earliest[id], earliest[p->values.data[op->operands[k]].op]);
		earliest[id]++;
	}
}

/* Compute when each op ends at the latest without delaying the end. */
static void find_latest(const sw_program *p, const int32_t *earliest, int32_t *latest)
{
	const sw_computation *entry = sw_entry(p);
	int32_t end = 0;
	for (size_t i = 0; i < entry->ops.len; i++)
		end = SW_MAX(end, earliest[entry->ops.data[i]]);
	for (size_t i = 0; i < entry->ops.len; i++)
		latest[entry->ops.data[i]] = end;
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			int32_t *before = &latest[p->values.data[op->operands[k]].op];
			*before = SW_MIN(*before, latest[id] - 1);
		}
	}
}

static int count_critical(const sw_program *p)
{
	sw_arena arena = {0};
	int32_t *earliest = SW_NEW_N(&arena, int32_t, p->ops.len),
		*latest = SW_NEW_N(&arena, int32_t, p->ops.len);
	const sw_computation *entry = sw_entry(p);
	int n = 0;
	find_earliest(p, earliest);
	find_latest(p, earliest, latest);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		n += contracts(sw_op_at(p, id)) && earliest[id] == latest[id];
	}
	sw_arena_clear(&arena);
	return n;
}

static void say(const sw_program *p, json_t *lines)
{
	char line[200];
	sw_remat_points points;
	double start_s = sw_now_s();
	int critical = count_critical(p);
	sw_remat_points_init(&points, p);
	snprintf(line, sizeof(line),
	         "%zu canonical instructions, %d critical nodes, %d narrow places of the forward "
	         "pass; "
	         "found in %.2f s",
	         p->ops.len, critical, points.n_segments, sw_now_s() - start_s);
	json_array_append_new(lines, json_string(line));
	sw_remat_points_clear(&points);
}

json_t *run_segments(const settings *how, const experiment *e)
{
	(void)how;
	subject s;
	sw_error err;
	json_t *lines = json_array();
	if (subject_read_plain(&s, e, &err) == SW_OK)
		say(s.program, lines);
	else
		json_array_append_new(lines, json_string(err.message));
	subject_clear(&s);
	return json_pack("{s:o}", "lines", lines);
}
