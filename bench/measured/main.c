/*
 * Predictions for training steps that others measured.
 *
 *   bench/measured FILE.csv --programs FOLDER [--cluster FILE] [--sample N] [--seed N]
 *                  [--where COLUMN=TEXT] [--fit] [-o OUT.csv]
 *
 * FILE.csv is a table whose rows are steps: configuration, and what was measured. FOLDER holds their
 * programs (tools/export_programs.py --measured). Each row is planned exactly as configured: data x
 * tensor parallelism with sequence parallelism, stage of ZeRO, pipeline stages, microbatches, blocks
 * computed again; rows alike are planned once. OUT.csv has the rows again and behind them
 *
 *     predicted_s          seconds of a step, as the plan is simulated
 *     predicted_low_s, predicted_high_s   its 90 % interval
 *     predicted_peak_GB    per device, in GiB: what PyTorch prints as GB; of Nanotron's rows with stages
 *                          that of the first one, whose device prints it
 *     predicted_fits       1: that is within the cluster file's memory
 *     supported            0: the row cannot be planned; note says why
 *     compute_s, communication_s, note
 *
 * and status and step_s where the table has them under other names. --where takes the rows with
 * this text in this column, --sample N of them at random. --fit writes figures of the cluster file
 * instead, under which the rows that ran are predicted best (fit.c). How many of them took what their
 * interval says is printed. --cluster: instead of the file that the kind of table has (configuration.c).
 */
#include "measured.h"

#include <stdlib.h>
#include <string.h>

typedef struct settings {
	const char *table, *programs, *cluster, *output;
	const char *where; /* COLUMN=TEXT; NULL: every row */
	bool fit;
	int64_t sample;
	uint64_t seed;
	bool quiet;
} settings;

/* A cluster, or as many of its devices as some rows need. */
typedef struct part {
	const char *file;
	int64_t gpus;
	sw_cluster cluster;
} part;
typedef struct planned {
	const subject *subject;
	configuration configuration;
	prediction prediction;
	const sw_cluster *cluster;
	sw_program *scheduled; /* kept for a fit; else NULL */
} planned;

typedef struct session {
	settings how;
	table table;
	library library;
	SW_VEC(part *) parts;
	SW_VEC(planned) planned;
	SW_VEC(fit_case) cases;
} session;

/* ---- clusters --------------------------------------------------------------------------- */

static sw_status read_part(const configuration *c, sw_cluster *cluster, sw_error *err)
{
	char path[512], gpus[24];
	bool named = !strchr(c->cluster, '/') && !strchr(c->cluster, '.');
	snprintf(path, sizeof(path), named ? SW_SOURCE_DIR "/clusters/%s.yaml" : "%s", c->cluster);
	snprintf(gpus, sizeof(gpus), "%lld", (long long)c->gpus);
	sw_status status = sw_cluster_read(path, cluster, err);
	return status == SW_OK ? sw_cluster_take(cluster, gpus, err) : status;
}

static sw_status find_part(session *s, const configuration *c, const sw_cluster **cluster,
                           sw_error *err)
{
	for (size_t i = 0; i < s->parts.len; i++)
		if (s->parts.data[i]->gpus == c->gpus &&
		    !strcmp(s->parts.data[i]->file, c->cluster)) {
			*cluster = &s->parts.data[i]->cluster;
			return SW_OK;
		}
	part *new = sw_alloc(sizeof(*new));
	*new = (part){.file = c->cluster, .gpus = c->gpus};
	sw_vec_push(&s->parts, new);
	*cluster = &new->cluster;
	return read_part(c, &new->cluster, err);
}

/* ---- rows ------------------------------------------------------------------------------- */

static bool are_alike(const configuration *a, const configuration *b)
{
	return a->gpus == b->gpus && a->dp == b->dp && a->tp == b->tp && a->pp == b->pp &&
	       a->mbs == b->mbs && a->microbatches == b->microbatches && a->zero == b->zero &&
	       a->remat == b->remat && a->cluster == b->cluster;
}

static const planned *planned_before(const session *s, const subject *of, const configuration *c)
{
	for (size_t i = 0; i < s->planned.len; i++)
		if (s->planned.data[i].subject == of &&
		    are_alike(&s->planned.data[i].configuration, c))
			return &s->planned.data[i];
	return NULL;
}

/* A row that ran is a case of a fit. */
static void add_case(session *s, int32_t row, const planned *of)
{
	double seconds = atof(measured_seconds(&s->table, row));
	if (s->how.fit && of->scheduled && !strcmp(measured_status(&s->table, row), "ok") &&
	    seconds > 0)
		sw_vec_push(&s->cases, ((fit_case){of->cluster, of->scheduled, seconds, 0}));
}

static sw_status plan_row(session *s, int32_t row, const configuration *c, prediction *p,
                          sw_error *err)
{
	subject *of = NULL;
	const sw_cluster *cluster = NULL;
	if (c->refusal) {
		snprintf(p->note, sizeof(p->note), "%s", c->refusal);
		return SW_OK;
	}
	sw_status status = library_find(&s->library, &s->table, row, &of, err);
	if (status == SW_OK)
		status = find_part(s, c, &cluster, err);
	if (status != SW_OK)
		return status;
	const planned *before = planned_before(s, of, c);
	if (!before) {
		planned made = {.subject = of, .configuration = *c, .cluster = cluster};
		if (c->pp > 1)
			predict_stages(of, cluster, c, &made.prediction);
		else
			made.scheduled = predict(of, cluster, c, &made.prediction);
		made.prediction.seconds +=
			unread_seconds(c, cluster) + fsdp_seconds(of, c, cluster) + looking_seconds(c);
		if (!s->how.fit) {
			sw_program_free(made.scheduled);
			made.scheduled = NULL;
		}
		sw_vec_push(&s->planned, made);
		before = &s->planned.data[s->planned.len - 1];
	}
	*p = before->prediction;
	add_case(s, row, before);
	return SW_OK;
}

/* What its framework refuses does not fit, whatever memory it needs and whether it could be planned. */
static sw_status predict_row(session *s, int32_t row, prediction *p, sw_error *err)
{
	configuration c;
	*p = (prediction){0};
	SW_TRY(configuration_of(&s->table, row, s->how.cluster, &c, err));
	SW_TRY(plan_row(s, row, &c, p, err));
	p->refused = c.does_not_run != NULL;
	if (p->refused) {
		p->fits = false;
		snprintf(p->note, sizeof(p->note), "%s", c.does_not_run);
	}
	return SW_OK;
}

/* ---- output ----------------------------------------------------------------------------- */

static void add_number(sw_text *line, bool given, const char *format, double number)
{
	char text[32] = "";
	if (given)
		snprintf(text, sizeof(text), format, number);
	table_add_cell(line, text);
}

static void add_prediction(sw_text *line, const prediction *p)
{
	bool given = p->supported;
	add_number(line, given, "%.5g", p->seconds);
	add_number(line, given && p->interval > 0, "%.5g", p->seconds / (1 + p->interval));
	add_number(line, given && p->interval > 0, "%.5g", p->seconds * (1 + p->interval));
	add_number(line, given, "%.5g", (double)p->peak_bytes / (1 << 30));
	add_number(line, given || p->refused, "%.0f", p->fits);
	add_number(line, true, "%.0f", p->supported);
	add_number(line, given && p->compute_s > 0, "%.5g", p->compute_s);
	add_number(line, given && p->compute_s > 0, "%.5g", p->communication_s);
	table_add_cell(line, p->note);
}

static void add_heading(const table *t, sw_text *out)
{
	sw_text line = {0};
	for (int32_t i = 0; i < t->n_columns; i++)
		table_add_cell(&line, t->columns[i]);
	if (table_column(t, "status") < 0)
		table_add_cell(&line, "status");
	if (table_column(t, "step_s") < 0)
		table_add_cell(&line, "step_s");
	sw_text_addf(out, "%s,predicted_s,predicted_low_s,predicted_high_s,predicted_peak_GB,"
	                  "predicted_fits,supported,compute_s,communication_s,note\n",
	             line.data);
	sw_text_clear(&line);
}

static void add_row(const table *t, int32_t row, const prediction *p, sw_text *out)
{
	sw_text line = {0};
	for (int32_t i = 0; i < t->n_columns; i++)
		table_add_cell(&line, t->cells[(size_t)row * (size_t)t->n_columns + (size_t)i]);
	if (table_column(t, "status") < 0)
		table_add_cell(&line, measured_status(t, row));
	if (table_column(t, "step_s") < 0)
		table_add_cell(&line, measured_seconds(t, row));
	add_prediction(&line, p);
	sw_text_addf(out, "%s\n", line.data);
	sw_text_clear(&line);
}

/* ---- the whole -------------------------------------------------------------------------- */

static bool is_asked_for(const session *s, int32_t row)
{
	char column[64];
	const char *equals = s->how.where ? strchr(s->how.where, '=') : NULL;
	if (!equals)
		return true;
	snprintf(column, sizeof(column), "%.*s", (int)(equals - s->how.where), s->how.where);
	const char *cell = table_cell(&s->table, row, column);
	return cell && !strcmp(cell, equals + 1);
}

/* Return which rows are taken: all that are asked for, or a sample of them (Fisher and Yates), in
 * the order of the table. */
static bool *choose_rows(const session *s, int32_t n)
{
	bool *taken = sw_alloc(sizeof(*taken) * (size_t)(n + 1));
	int64_t asked = 0;
	for (int32_t i = 0; i < n; i++)
		asked += taken[i] = is_asked_for(s, i);
	int64_t left = s->how.sample > 0 ? SW_MIN(s->how.sample, asked) : asked;
	sw_rng rng = {.seed = s->how.seed};
	for (int32_t i = 0; i < n; i++) {
		if (!taken[i])
			continue;
		taken[i] = sw_rng_below(&rng, asked--) < left;
		left -= taken[i];
	}
	return taken;
}

/* Of rows that ran, how many were predicted with an interval, and in how many it has the measured seconds. */
typedef struct coverage {
	int32_t rows, covered;
} coverage;

static void count_covered(const table *t, int32_t row, const prediction *p, coverage *c)
{
	double seconds = atof(measured_seconds(t, row)), width = 1 + p->interval;
	if (!p->supported || p->interval <= 0 || seconds <= 0 || strcmp(measured_status(t, row), "ok") != 0)
		return;
	c->rows++;
	c->covered += seconds >= p->seconds / width && seconds <= p->seconds * width;
}

static sw_status predict_table(session *s, sw_text *out, sw_error *err)
{
	int32_t n = s->table.n_rows;
	bool *taken = choose_rows(s, n);
	sw_progress progress = {0};
	coverage covered = {0};
	sw_status status = SW_OK;
	sw_progress_start(&progress, "predict", s->how.quiet);
	add_heading(&s->table, out);
	for (int32_t row = 0; status == SW_OK && row < n; row++) {
		prediction p;
		sw_progress_update(&progress, (double)row / n, "row %d of %d, %d plans", row + 1, n,
		                   (int)s->planned.len);
		if (taken[row])
			status = predict_row(s, row, &p, err);
		if (taken[row] && status == SW_OK) {
			add_row(&s->table, row, &p, out);
			count_covered(&s->table, row, &p, &covered);
		}
	}
	sw_progress_end(&progress);
	if (covered.rows > 0)
		fprintf(stderr, "%d of %d rows that ran took what their 90 %% interval says\n",
		        covered.covered, covered.rows);
	free(taken);
	return status;
}

static sw_status run(session *s, sw_error *err)
{
	sw_text out = {0};
	sw_status status = table_read(s->how.table, &s->table, err);
	if (status == SW_OK)
		status = library_open(s->how.programs, &s->library, err);
	if (status == SW_OK)
		status = predict_table(s, &out, err);
	if (status == SW_OK && s->how.fit) {
		out.len = 0;
		status = fit(s->cases.data, s->cases.len, &out, err);
	}
	if (status == SW_OK)
		status = sw_file_write(s->how.output, out.data, out.len, err);
	for (size_t i = 0; i < s->parts.len; i++) {
		sw_cluster_clear(&s->parts.data[i]->cluster);
		free(s->parts.data[i]);
	}
	sw_vec_clear(&s->parts);
	for (size_t i = 0; i < s->planned.len; i++)
		sw_program_free(s->planned.data[i].scheduled);
	sw_vec_clear(&s->planned);
	sw_vec_clear(&s->cases);
	library_close(&s->library);
	table_clear(&s->table);
	sw_text_clear(&out);
	return status;
}

static bool read_arguments(int argc, char **argv, settings *how)
{
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;
		if (!strcmp(argv[i], "--programs") && more)
			how->programs = argv[++i];
		else if (!strcmp(argv[i], "--cluster") && more)
			how->cluster = argv[++i];
		else if (!strcmp(argv[i], "-o") && more)
			how->output = argv[++i];
		else if (!strcmp(argv[i], "--sample") && more)
			how->sample = atoll(argv[++i]);
		else if (!strcmp(argv[i], "--where") && more)
			how->where = argv[++i];
		else if (!strcmp(argv[i], "--fit"))
			how->fit = true;
		else if (!strcmp(argv[i], "--seed") && more)
			how->seed = strtoull(argv[++i], NULL, 10);
		else if (argv[i][0] != '-' && !how->table)
			how->table = argv[i];
		else
			return false;
	}
	return how->table && how->programs;
}

int main(int argc, char **argv)
{
	session s = {.how = {.output = "-"}};
	sw_error err = {0};
	if (!read_arguments(argc, argv, &s.how)) {
		fprintf(stderr, "usage: measured FILE.csv --programs FOLDER [--cluster FILE] "
		                "[--sample N] [--seed N] [--where COLUMN=TEXT] [--fit] [-o OUT]\n");
		return 2;
	}
	sw_memory_keep();
	if (run(&s, &err) != SW_OK) {
		fprintf(stderr, "measured: %s\n", err.message);
		return err.code == SW_ERR_INPUT ? 2 : 1;
	}
	return 0;
}
