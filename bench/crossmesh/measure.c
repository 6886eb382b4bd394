/* Transfers in the lab (docs/lab.md). */
#include "bench_crossmesh.h"

#include <stdio.h>
#include <string.h>

#include "common/child.h"

#define TOOL SW_SOURCE_DIR "/tools/lab"
#define COMMAND SW_BINARY_DIR "/shardwright"
#define NAME "crossmesh"
/* Seconds that one run may take: a few transfers of a few seconds, and the start of 20 ranks. */
#define LIMIT_S 120

static bool run_tool(const char *const *words, const char *what)
{
	sw_text output = {0};
	char note[200];
	child_end end = child_exec((char *const *)words, &output, LIMIT_S, 0);
	child_explain(&end, note, sizeof(note));
	if (!end.finished && what)
		fprintf(stderr, "crossmesh: %s: tools/lab %s\n", what, note);
	sw_text_clear(&output);
	return end.finished;
}

bool lab_build(void)
{
	setenv("SHARDWRIGHT", COMMAND, 1);
	lab_remove();
	return run_tool((const char *const[]){TOOL, "up", "--name", NAME, LAB_CLUSTER, NULL},
	                "nothing is measured");
}

void lab_remove(void)
{
	run_tool((const char *const[]){TOOL, "down", "--name", NAME, NULL}, NULL);
}

/* Return the measured seconds in what a run printed: mpirun may have said something before and
 * after the object. */
static double seconds_in(const sw_text *output)
{
	const char *begin = output->data ? strstr(output->data, "{\n") : NULL;
	const char *end = output->data ? strrchr(output->data, '}') : NULL;
	json_t *object = NULL;
	if (!begin || !end || end < begin ||
	    sw_json_parse(begin, (size_t)(end - begin) + 1, &object, NULL))
		return 0;
	double seconds =
		json_number_value(json_object_get(json_object_get(object, "measured"), "seconds"));
	json_decref(object);
	return seconds;
}

/* The ranks, which mostly wait, go before other programs (chrt: real-time priority): a chain of
 * eight ranks takes up to a third longer where each has to wait for a core. Return the seconds of
 * one run; 0, with a note, if it failed. */
static double measure(const case_row *row, const transfer_way *way, int64_t repeat)
{
	char times[32], pieces[32], note[200];
	const experiment *e = row->of;
	sw_text output = {0};
	snprintf(times, sizeof(times), "%lld", (long long)repeat);
	snprintf(pieces, sizeof(pieces), "%d", way->pieces);
	const char *words[] = {"chrt",       "-r",
	                       "1",          TOOL,
	                       "run",        "--name",
	                       NAME,         "--",
	                       COMMAND,      "reshard",
	                       "--execute",  "--json",
	                       "--repeat",   times,
	                       "--cluster",  LAB_CLUSTER,
	                       "--shape",    e->lab_shape,
	                       "--from",     row->which->from,
	                       "--to",       row->which->to,
	                       "--strategy", sw_crossmesh_strategy_name(way->strategy),
	                       "--order",    sw_crossmesh_order_name(way->order),
	                       way->pieces ? "--pieces" : NULL,
	                       pieces,
	                       NULL};
	child_end end = child_exec((char *const *)words, &output, LIMIT_S, 0);
	double seconds = end.finished ? seconds_in(&output) : 0;
	child_explain(&end, note, sizeof(note));
	if (seconds <= 0)
		fprintf(stderr, "crossmesh: %s, %s: not measured: %s\n", row->which->name,
		        way->label, note);
	sw_text_clear(&output);
	return seconds;
}

/* Each run gives its median. The quicker turn counts: in the other, something else had the cores.
 */
void lab_measure(case_row *row, int64_t repeat, int64_t turns, bool quiet)
{
	row->measured = true;
	row->lab_measured.bound_s = row->lab.bound_s;
	for (int64_t turn = 0; turn < turns; turn++) {
		for (int32_t w = 0; w < row->of->n_ways; w++) {
			double *seconds = &row->lab_measured.ways_s[w];
			double now = measure(row, row->of->ways[w], repeat);
			if (now > 0 && (*seconds == 0 || now < *seconds))
				*seconds = now;
			if (!quiet)
				fprintf(stderr, "%s, %s: %.1f ms\n", row->which->name,
				        row->of->ways[w]->label, 1e3 * now);
		}
	}
}
