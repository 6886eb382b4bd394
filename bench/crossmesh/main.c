/*
 * The experiments of the cross-mesh resharding paper: figure 5, table 2 with figure 6, figure 8.
 *
 *     bench/crossmesh [--json] [-q] [--no-lab] [--only KEY,...] [--cases NAME,...] [--repeat N]
 *                     [--turns N]
 *
 * Each transfer is planned on the paper's cluster (clusters/aws-p3-8xlarge.yaml, five nodes), by
 * our plan and by the paper's baselines, beside the lower bound; and on a lab of five nodes
 * (clusters/lab-5x4.yaml: the same links at a fiftieth), where every plan is also carried out and
 * every element checked, N times (3, the median counts) in two turns (the quicker counts). The lab
 * needs root (docs/lab.md); where it can't be built, or with --no-lab, the tables are the model's.
 * Ten minutes or so; nothing else should run beside it. Keys: figure5_devices, figure5_nodes,
 * table2 (with figure 8). Exit code 0; 1: a transfer failed in
 * the lab; 2: bad usage.
 */
#include "bench_crossmesh.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct settings {
	bool json, quiet, no_lab;
	const char *only, *cases;
	int64_t repeat, turns;
} settings;

static bool is_chosen(const char *list, const char *key)
{
	size_t length = strlen(key);
	if (!list)
		return true;
	for (const char *at = list; (at = strstr(at, key)); at += length)
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static bool take_options(settings *how, char **argv)
{
	for (; *argv; argv++) {
		if (strcmp(*argv, "--json") == 0)
			how->json = true;
		else if (strcmp(*argv, "-q") == 0)
			how->quiet = true;
		else if (strcmp(*argv, "--no-lab") == 0)
			how->no_lab = true;
		else if (strcmp(*argv, "--only") == 0 && argv[1])
			how->only = *++argv;
		else if (strcmp(*argv, "--cases") == 0 && argv[1])
			how->cases = *++argv;
		else if (strcmp(*argv, "--repeat") == 0 && argv[1])
			how->repeat = strtoll(*++argv, NULL, 10);
		else if (strcmp(*argv, "--turns") == 0 && argv[1])
			how->turns = strtoll(*++argv, NULL, 10);
		else
			return false;
	}
	return how->repeat > 0 && how->turns > 0;
}

static sw_status read_clusters(sw_cluster *paper, sw_cluster *lab, sw_error *err)
{
	sw_status status = sw_cluster_read(PAPER_CLUSTER, paper, err);
	if (status)
		return status;
	status = sw_cluster_take(paper, PAPER_DEVICES, err);
	if (status == SW_OK)
		status = sw_cluster_read(LAB_CLUSTER, lab, err);
	if (status)
		sw_cluster_clear(paper);
	return status;
}

static sw_status model_all(const settings *how, const sw_cluster *paper, const sw_cluster *lab,
                           case_rows *rows, sw_error *err)
{
	for (size_t e = 0; e < n_experiments; e++) {
		const experiment *of = &experiments[e];
		for (int32_t c = 0; c < of->n_cases && is_chosen(how->only, of->key); c++) {
			case_row row = {.of = of, .which = &of->cases[c]};
			if (!is_chosen(how->cases, row.which->name))
				continue;
			sw_status status =
				model_case(paper, of, row.which, of->shape, &row.paper, err);
			if (status == SW_OK)
				status = model_case(lab, of, row.which, of->lab_shape, &row.lab,
				                    err);
			if (status)
				return status;
			sw_vec_push(rows, row);
		}
	}
	return SW_OK;
}

/* Return whether all was measured that was to be. */
static bool measure_all(const settings *how, case_rows *rows)
{
	bool all = true;
	if (how->no_lab || !lab_build())
		return true;
	for (size_t i = 0; i < rows->len; i++) {
		const case_row *row = &rows->data[i];
		lab_measure(&rows->data[i], how->repeat, how->turns, how->quiet);
		for (int32_t w = 0; w < row->of->n_ways; w++)
			all = all && row->lab_measured.ways_s[w] > 0;
	}
	lab_remove();
	return all;
}

int main(int argc, char **argv)
{
	settings how = {.repeat = 3, .turns = 2};
	case_rows rows = {0};
	sw_cluster paper, lab;
	sw_error err = {0};
	double load = NAN;
	if (argc < 1 || !take_options(&how, argv + 1)) {
		fputs("usage: crossmesh [--json] [-q] [--no-lab] [--only KEY,...] [--cases "
		      "NAME,...] "
		      "[--repeat N] [--turns N]\n",
		      stderr);
		return 2;
	}
	if (getloadavg(&load, 1) < 1)
		load = NAN;
	sw_status status = read_clusters(&paper, &lab, &err);
	if (status == SW_OK) {
		status = model_all(&how, &paper, &lab, &rows, &err);
		sw_cluster_clear(&paper);
		sw_cluster_clear(&lab);
	}
	if (status) {
		fprintf(stderr, "crossmesh: %s\n", err.message);
		return sw_status_exit_code(status);
	}
	bool all = measure_all(&how, &rows);
	if (how.json)
		report_json(&rows, load);
	else
		report_text(&rows);
	sw_vec_clear(&rows);
	return all ? 0 : 1;
}
