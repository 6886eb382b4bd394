/*
 * Pipelines in the lab (docs/lab.md) beside the Signal bound of the cross-mesh resharding paper:
 * the same step where each message between stages is one byte.
 *
 *   bench/signal [--json] [--turns N] [--steps N] [-q]
 *
 * gpt of tests/programs in four stages on clusters/lab-4x1.yaml, as it is and with slower links, in
 * 16 microbatches, under 1F1B and eager 1F1B; paced, so that passes take the model's time while
 * transfers are real. Of N turns (3) the quickest run of each counts: in others something else had
 * the cores. Needs what tools/lab needs. Exit code 1: nothing could be measured.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "common/child.h"

#define TOOL SW_SOURCE_DIR "/tools/lab"
#define COMMAND SW_BINARY_DIR "/shardwright"
#define NAME "signal"
#define LIMIT_S 120 /* of a command */

static const double link_bits_s[] = {500e6, 200e6};
static const char *const schedules[] = {"1f1b", "eager-1f1b"};

typedef struct settings {
	int turns, steps;
	bool json, quiet;
	char folder[64]; /* of its files */
} settings;

typedef struct row {
	double bits_s;
	const char *schedule;
	double predicted_s, step_s, signal_s; /* 0: not measured */
} row;

/* ---- commands --------------------------------------------------------------------------- */

/* Run a command and return the number of a key in the object that it prints; 0, with a note, if it
 * failed. key NULL: it prints none, and 1 is returned. */
static double run(const char *const *words, const char *key)
{
	sw_text output = {0};
	char note[200];
	json_t *object = NULL;
	child_end end = child_exec((char *const *)words, &output, LIMIT_S, 0);
	const char *begin = output.data ? strstr(output.data, "{\n") : NULL;
	const char *last = output.data ? strrchr(output.data, '}') : NULL;
	double value = end.finished && !key ? 1 : 0;
	if (end.finished && key && begin && last > begin &&
	    sw_json_parse(begin, (size_t)(last - begin) + 1, &object, NULL) == SW_OK)
		value = json_number_value(json_object_get(object, key));
	json_decref(object);
	child_explain(&end, note, sizeof(note));
	if (value <= 0)
		fprintf(stderr, "signal: %s %s: %s\n", words[0], words[1], note);
	sw_text_clear(&output);
	return value;
}

static void path_of(const settings *how, const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", how->folder, name);
}

/* clusters/lab-4x1.yaml with other links. */
static sw_status write_cluster(const settings *how, double bits_s, sw_error *err)
{
	sw_cluster cluster;
	sw_text text = {0};
	char path[128];
	SW_TRY(sw_cluster_read(SW_SOURCE_DIR "/clusters/lab-4x1.yaml", &cluster, err));
	cluster.levels[0].bandwidth = cluster.levels[0].flow_bandwidth = bits_s / 8;
	sw_cluster_print(&cluster, &text);
	path_of(how, "cluster.yaml", path, sizeof(path));
	FILE *file = fopen(path, "w");
	bool written = file && fwrite(text.data, 1, text.len, file) == text.len;
	if (file && fclose(file))
		written = false;
	sw_text_clear(&text);
	sw_cluster_clear(&cluster);
	return written ? SW_OK : sw_fail(err, SW_ERR_IO, "%s: cannot write", path);
}

static double make_plan(const settings *how, const char *schedule)
{
	char cluster[128], plan[128];
	path_of(how, "cluster.yaml", cluster, sizeof(cluster));
	path_of(how, schedule, plan, sizeof(plan));
	return run((const char *const[]){COMMAND, "plan",
	                                 SW_SOURCE_DIR "/tests/programs/gpt.hlo.gz", "--cluster",
	                                 cluster, "--strategy", "dp:pp=4", "--microbatches", "16",
	                                 "--remat", "none", "--schedule", schedule, "--json", "-q",
	                                 "-o", plan, NULL},
	           "step_s");
}

/* The ranks, which mostly wait, go before other programs (chrt: real-time priority). */
static double measure(const settings *how, const char *schedule, bool signal)
{
	char plan[128], steps[16];
	path_of(how, schedule, plan, sizeof(plan));
	snprintf(steps, sizeof(steps), "%d", how->steps);
	return run((const char *const[]){"chrt", "-r", "1", TOOL, "run", "--name", NAME, "--",
	                                 COMMAND, "run", plan, "--steps", steps, "--pace", "-q",
	                                 "--json", signal ? "--signal" : NULL, NULL},
	           "step_time_s");
}

static void remove_lab(void)
{
	run((const char *const[]){TOOL, "down", "--name", NAME, NULL}, NULL);
}

static bool build_lab(const settings *how)
{
	char cluster[128];
	path_of(how, "cluster.yaml", cluster, sizeof(cluster));
	return run((const char *const[]){TOOL, "up", "--name", NAME, cluster, NULL}, NULL) > 0;
}

/* ---- rows ------------------------------------------------------------------------------- */

static void keep_least(double *least_s, double now_s)
{
	if (now_s > 0 && (*least_s <= 0 || now_s < *least_s))
		*least_s = now_s;
}

static bool fill_rows(const settings *how, double bits_s, row *rows)
{
	sw_error err = {0};
	size_t n = SW_COUNT(schedules);
	if (write_cluster(how, bits_s, &err)) {
		fprintf(stderr, "signal: %s\n", err.message);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		rows[i] = (row){.bits_s = bits_s,
		                .schedule = schedules[i],
		                .predicted_s = make_plan(how, schedules[i])};
	if (!build_lab(how))
		return false;
	for (int turn = 0; turn < how->turns; turn++)
		for (size_t i = 0; i < n; i++) {
			keep_least(&rows[i].step_s, measure(how, schedules[i], false));
			keep_least(&rows[i].signal_s, measure(how, schedules[i], true));
			if (!how->quiet)
				fprintf(stderr, "%.0f Mb/s, %s: %.1f ms, with a byte %.1f ms\n",
				        bits_s / 1e6, schedules[i], 1e3 * rows[i].step_s,
				        1e3 * rows[i].signal_s);
		}
	remove_lab();
	return true;
}

static double share(const row *r)
{
	return r->step_s > 0 ? r->signal_s / r->step_s : 0;
}

static void print_table(const row *rows, size_t n)
{
	static const char *const heads[] = {"links",    "schedule",    "predicted",
	                                    "measured", "with a byte", "of the bound"};
	sw_table table;
	sw_text text = {0};
	sw_table_init(&table, SW_COUNT(heads), heads);
	for (size_t i = 0; i < n; i++) {
		sw_table_cell(&table, "%.0f Mb/s", rows[i].bits_s / 1e6);
		sw_table_cell(&table, "%s", rows[i].schedule);
		sw_table_cell_number(&table, sw_text_add_seconds, rows[i].predicted_s);
		sw_table_cell_number(&table, sw_text_add_seconds, rows[i].step_s);
		sw_table_cell_number(&table, sw_text_add_seconds, rows[i].signal_s);
		sw_table_cell(&table, "%.1f %%", 100 * share(&rows[i]));
	}
	sw_table_add_to(&table, &text);
	printf("%s", text.data);
	sw_text_clear(&text);
	sw_table_clear(&table);
}

static void print_json(const row *rows, size_t n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:f, s:s, s:f, s:f, s:f, s:f}", "link_bits_s",
		                        rows[i].bits_s, "schedule", rows[i].schedule, "predicted_s",
		                        rows[i].predicted_s, "step_s", rows[i].step_s, "signal_s",
		                        rows[i].signal_s, "share", share(&rows[i])));
	json_dumpf(list, stdout, JSON_INDENT(1));
	printf("\n");
	json_decref(list);
}

static void remove_folder(const settings *how)
{
	const char *const words[] = {"rm", "-rf", how->folder, NULL};
	run(words, NULL);
}

int main(int argc, char **argv)
{
	settings how = {.turns = 3, .steps = 8, .folder = "/tmp/sw-signal-XXXXXX"};
	enum { EACH = SW_COUNT(schedules), ALL = SW_COUNT(link_bits_s) * EACH };
	row rows[ALL] = {0};
	bool measured = true;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			how.json = true;
		else if (!strcmp(argv[i], "-q"))
			how.quiet = true;
		else if (!strcmp(argv[i], "--turns") && i + 1 < argc)
			how.turns = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--steps") && i + 1 < argc)
			how.steps = atoi(argv[++i]);
		else {
			fprintf(stderr, "usage: signal [--json] [--turns N] [--steps N] [-q]\n");
			return 2;
		}
	}
	if (!mkdtemp(how.folder))
		return 1;
	setenv("SHARDWRIGHT", COMMAND, 1);
	for (size_t i = 0; i < SW_COUNT(link_bits_s) && measured; i++)
		measured = fill_rows(&how, link_bits_s[i], rows + i * EACH);
	if (how.json)
		print_json(rows, ALL);
	else
		print_table(rows, ALL);
	remove_folder(&how);
	return measured ? 0 : 1;
}
