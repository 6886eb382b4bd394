/*
 * Check whether predictions hold: plans are predicted by the simulator and measured in emulated
 * clusters (docs/lab.md).
 *
 *     bench/fidelity [--json] [-q] [--figure-4|--ways] [--labs A,B,...] [--programs A,B,...]
 *                    [--strategies A,B,...] [--calibrated DIR] [--calibrate SECONDS] [--measure SECONDS]
 *
 * The bench builds each lab (needs root: tools/lab), calibrates it, plans every program of the lab
 * under every strategy for the calibrated cluster, predicts its step with and without overlap, and
 * measures it in three runs: with real kernels where each rank has a core, else paced. Then it
 * removes the lab. It prints three tables: every plan; per program and lab how much slower the plan
 * predicted to be the best is than the best; and, for data-parallel and ZeRO plans that compute for
 * longer than they communicate, exposed communication with overlap relative to that without, beside
 * the lower bound for every order of their ops by the model (sw_schedule_bound_seconds).
 * --ways: the builders' ways of synchronising variables alone, on four nodes of one device.
 * --figure-4: AutoDDL's figure 4 alone: a Transformer on two nodes of four under eight strategies,
 * whose communication, without overlap, is ordered by the model and by measurement.
 * --calibrated DIR: cluster files LAB.yaml in it are used, missing ones are made there. Exit code
 * 0; 1: there is no row; 2: bad usage.
 */
#include "fidelity.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] = "usage: fidelity [--json] [-q] [--figure-4|--ways] [--labs A,B,...] "
			    "[--programs A,B,...] [--strategies A,B,...] [--calibrated DIR] "
			    "[--calibrate SECONDS] [--measure SECONDS]\n";

static void say(const settings *how, const lab_case *lab, const char *what)
{
	if (!how->quiet)
		fprintf(stderr, "%s: %s\n", lab->name, what);
}

static void bench_lab(const settings *how, const lab_case *lab, row_list *rows)
{
	char calibrated[512];
	sw_error err = {0};
	snprintf(calibrated, sizeof(calibrated), "%s/%s.yaml", how->work, lab->name);
	say(how, lab, "building");
	sw_status status = lab_up(how, lab, &err);
	if (status == SW_OK) {
		say(how, lab, "calibrating");
		status = lab_calibrate(how, lab, calibrated, &err);
	}
	if (status == SW_OK)
		measure_lab(how, lab, calibrated, rows);
	else {
		rows->left_out++;
		fprintf(stderr, "%s: left out: %s\n", lab->name, err.message);
	}
	lab_down(how);
}

/* ---- the line --------------------------------------------------------------------------- */

static bool take_seconds(const char *text, double *seconds)
{
	char *end;
	*seconds = text ? strtod(text, &end) : 0;
	return text && end != text && !*end && *seconds > 0 && isfinite(*seconds);
}

static bool take_options(settings *how, char **argv)
{
	for (; *argv; argv++) {
		bool good = true;
		if (strcmp(*argv, "--json") == 0)
			how->json = true;
		else if (strcmp(*argv, "-q") == 0)
			how->quiet = true;
		else if (strcmp(*argv, "--figure-4") == 0)
			how->figure_4 = true;
		else if (strcmp(*argv, "--ways") == 0)
			how->ways = true;
		else if (strcmp(*argv, "--labs") == 0)
			good = (how->labs = *++argv) != NULL;
		else if (strcmp(*argv, "--programs") == 0)
			good = (how->programs = *++argv) != NULL;
		else if (strcmp(*argv, "--strategies") == 0)
			good = (how->strategies = *++argv) != NULL;
		else if (strcmp(*argv, "--calibrated") == 0)
			good = (how->work = *++argv) != NULL;
		else if (strcmp(*argv, "--calibrate") == 0)
			good = take_seconds(*++argv, &how->calibrate_s);
		else if (strcmp(*argv, "--measure") == 0)
			good = take_seconds(*++argv, &how->measure_s);
		else
			good = false;
		if (!good)
			return false;
	}
	return true;
}

static void remove_work(const char *work)
{
	static const char *const endings[] = {".yaml", ".plan"};
	char path[512];
	for (size_t l = 0; l < n_labs; l++)
		for (size_t e = 0; e < SW_COUNT(endings); e++) {
			snprintf(path, sizeof(path), "%s/%s%s", work, all_labs[l].name, endings[e]);
			unlink(path);
		}
	snprintf(path, sizeof(path), "%s/log", work);
	unlink(path);
	rmdir(work);
}

int main(int argc, char **argv)
{
	char own[] = "/tmp/fidelity-XXXXXX";
	settings how = {.calibrate_s = 20, .measure_s = 1};
	row_list rows = {0};
	double load = NAN;
	if (argc < 1 || !take_options(&how, argv + 1)) {
		fputs(usage, stderr);
		return 2;
	}
	bool keep = how.work != NULL;
	if (keep)
		mkdir(how.work, 0777);
	else
		how.work = mkdtemp(own);
	if (!how.work) {
		fputs("fidelity: no folder can be made in /tmp\n", stderr);
		return 2;
	}
	watch_signals();
	getloadavg(&load, 1);
	if (how.figure_4)
		bench_lab(&how, &figure_4_lab, &rows);
	else if (how.ways)
		bench_lab(&how, &ways_lab, &rows);
	for (size_t l = 0; l < n_labs && !stop_asked() && !how.figure_4 && !how.ways; l++)
		if (is_chosen(how.labs, all_labs[l].name))
			bench_lab(&how, &all_labs[l], &rows);
	if (how.json)
		report_json(&rows, load);
	else if (how.figure_4)
		report_figure_4(&rows, load);
	else
		report_text(&rows, load);
	bool measured = rows.len > 0;
	sw_vec_clear(&rows);
	if (!keep)
		remove_work(how.work);
	return measured ? 0 : 1;
}
