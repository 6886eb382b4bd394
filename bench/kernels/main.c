/*
 * Step times of this executor against XLA's CPU backend, on the same programs and processors.
 *
 *   tools/export_programs.py --kernels                writes the programs, to build/kernels
 *   bench/kernels [--python PYTHON] [--programs DIR] [--threads N] [--steps N] [--fusion KIND] [--ops]
 *                 [--alone] [--frames] [--cpu]
 *                 [NAME ...]
 *
 * PYTHON must find the packages of tools/export_requirements.txt; the peer is JAX's jitted step of
 * the same model, with its state donated. Both run their steps in turns, A B A B, and the median of
 * each counts. `memory` is the arena, and beside it XLA's memory_analysis(): arguments, outputs and
 * temporaries. --fusion is none, loops (the default: as `run` does) or xla-cpu. --alone leaves the
 * peer out; --ops adds where our time goes; --frames lists the fusions that run op by op. --cpu takes
 * the processor time of all threads instead of the clock's, for a machine that is busy. --threads
 * sets ours; to give both one processor, use taskset.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { MAX_STEPS = 64 };

typedef struct settings {
	const char *python, *programs;
	int threads, steps;
	bool ops, alone, frames, cpu;
	sw_fusion fusion;
} settings;

static const char *const names[] = {
	"gpt",   "gpt-long",   "gpt-scan",         "gpt-bf16",   "gpt-dropout",
	"llama", "llama-bf16", "resnet",           "unet",       "vit",
	"mamba", "lstm",       "moe-mixtral-scan", "moe-gshard", "dlrm",
};

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return a < b ? -1 : a > b;
}

static double median(double *seconds, int n)
{
	qsort(seconds, (size_t)n, sizeof *seconds, by_value);
	return seconds[n / 2];
}

/* Take the steps in turns; set the medians of both. */
static sw_status take_turns(const settings *s, own *o, peer *p, double *own_s, double *peer_s,
                            sw_error *err)
{
	double ours[MAX_STEPS], theirs[MAX_STEPS] = {0};
	sw_status status = own_step(o, s->cpu, own_s, err);
	for (int i = 0; status == SW_OK && i < s->steps; i++) {
		status = own_step(o, s->cpu, &ours[i], err);
		if (status == SW_OK && p)
			status = peer_step(p, s->cpu, &theirs[i], err);
	}
	if (status == SW_OK) {
		*own_s = median(ours, s->steps);
		*peer_s = median(theirs, s->steps);
	}
	return status;
}

static void add_row(sw_table *table, const char *name, const own *o, const peer *p, double own_s,
                    double peer_s)
{
	sw_table_cell(table, "%s", name);
	sw_table_cell(table, "%.1f", 1e3 * own_s);
	if (p) {
		sw_table_cell(table, "%.1f", 1e3 * peer_s);
		sw_table_cell(table, "%.2f", own_s / peer_s);
	}
	sw_table_cell(table, "%.1f", 0x1p-20 * (double)own_arena_bytes(o));
	if (p) {
		sw_table_cell(table, "%.1f", 0x1p-20 * (double)peer_bytes(p));
		sw_table_cell(table, "%.2f", (double)own_arena_bytes(o) / (double)peer_bytes(p));
	}
}

static sw_status measure(const settings *s, const char *name, sw_table *table, double *log_ratio,
                         sw_error *err)
{
	own *o = NULL;
	peer *p = NULL;
	sw_text text = {0};
	double own_s = 0, peer_s = 0;
	sw_status status = own_open(s->programs, name, s->fusion, s->threads, &o, err);
	if (status == SW_OK && s->frames)
		own_list_frames(o);
	if (status == SW_OK && !s->alone)
		status = peer_open(s->python, name, &p, err);
	if (status == SW_OK)
		status = take_turns(s, o, p, &own_s, &peer_s, err);
	if (status == SW_OK && s->ops)
		status = own_describe(o, &text, err);
	if (status == SW_OK) {
		add_row(table, name, o, p, own_s, peer_s);
		if (s->ops)
			sw_table_cell(table, "%s", text.data ? text.data : "");
		*log_ratio += p ? log(own_s / peer_s) : 0;
	}
	sw_text_clear(&text);
	own_close(o);
	peer_close(p);
	return status;
}

static sw_status measure_all(const settings *s, const char *const *list, int n, sw_error *err)
{
	const char *headings[8] = {"program", "ms/step"};
	int columns = 2;
	double log_ratio = 0;
	sw_table table;
	sw_text text = {0};
	sw_status status = SW_OK;
	if (!s->alone) {
		headings[columns++] = "XLA";
		headings[columns++] = "ratio";
	}
	headings[columns++] = "memory MiB";
	if (!s->alone) {
		headings[columns++] = "XLA";
		headings[columns++] = "ratio";
	}
	if (s->ops)
		headings[columns++] = "time";
	sw_table_init(&table, columns, headings);
	for (int i = 0; status == SW_OK && i < n; i++)
		status = measure(s, list[i], &table, &log_ratio, err);
	sw_table_add_to(&table, &text);
	printf("%s", text.data);
	if (!s->alone && status == SW_OK)
		printf("geometric mean of step times, ours / XLA: %.2f\n", exp(log_ratio / n));
	sw_text_clear(&text);
	sw_table_clear(&table);
	return status;
}

/* Take options from the front of the list; return the position of the first name. */
static int read_options(int argc, char **argv, settings *s)
{
	int at = 1;
	for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
		const char *option = argv[at], *value = at + 1 < argc ? argv[at + 1] : "";
		s->ops |= strcmp(option, "--ops") == 0;
		s->alone |= strcmp(option, "--alone") == 0;
		s->cpu |= strcmp(option, "--cpu") == 0;
		s->frames |= strcmp(option, "--frames") == 0;
		bool python = strcmp(option, "--python") == 0,
		     programs = strcmp(option, "--programs") == 0,
		     threads = strcmp(option, "--threads") == 0,
		     steps = strcmp(option, "--steps") == 0,
		     fusion = strcmp(option, "--fusion") == 0;
		s->python = python ? value : s->python;
		s->programs = programs ? value : s->programs;
		s->threads = threads ? atoi(value) : s->threads;
		s->steps = steps ? SW_MAX(SW_MIN(atoi(value), MAX_STEPS), 1) : s->steps;
		for (int f = 0; fusion && f < SW_FUSION_COUNT; f++)
			s->fusion = strcmp(value, sw_fusion_name((sw_fusion)f)) == 0 ? (sw_fusion)f
			                                                             : s->fusion;
		at += python || programs || threads || steps || fusion;
	}
	return at;
}

int main(int argc, char **argv)
{
	sw_error err = {0};
	settings s = {.python = "python3",
	              .programs = SW_BINARY_DIR "/kernels",
	              .threads = sw_cpu_count(),
	              .steps = 7,
	              .fusion = SW_FUSION_LEFT_OUT};
	int at = read_options(argc, argv, &s);
	printf("%d threads, %d steps each in turns, fusion: %s\n\n", s.threads, s.steps,
	       sw_fusion_name(s.fusion));
	sw_status status =
		at < argc ? measure_all(&s, (const char *const *)argv + at, argc - at, &err)
			  : measure_all(&s, names, (int)SW_COUNT(names), &err);
	if (status != SW_OK)
		fprintf(stderr, "%s: %s\n", err.file[0] ? err.file : "kernels", err.message);
	return sw_status_exit_code(status);
}
