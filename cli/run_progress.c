/* What `run` says while it trains: a line of progress, remarks, and the log. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "run_progress.h"

sw_status run_progress_start(run_progress *w, sw_error *err)
{
	const cli_values *v = &w->c->values;
	w->was_number = true;
	w->begun_s = sw_now_s();
	run_stop_start(&w->stop, w->c, w->first);
	sw_progress_start(&w->progress, "training", v->quiet || v->verbose || !cli_speaks(w->c));
	if (!v->log || !cli_speaks(w->c))
		return SW_OK;
	/* a run that goes on adds to the log of the one before */
	w->log = fopen(v->log, w->first > 0 ? "a" : "w");
	return w->log ? SW_OK
	              : sw_fail_at(err, SW_ERR_IO, v->log, 0, 0, "cannot write: %s",
	                           strerror(errno));
}

static double tokens_per_s(const run_progress *w, const sw_run_step *step)
{
	return step->seconds > 0 ? (double)w->tokens / (step->seconds + step->inputs_s) : 0;
}

/* One JSON object per line, complete when the step is done. Takes the object. */
static void write_line(run_progress *w, json_t *line)
{
	json_dumpf(line, w->log, JSON_COMPACT | JSON_REAL_PRECISION(9));
	fputc('\n', w->log);
	fflush(w->log);
	json_decref(line);
}

static void log_step(run_progress *w, const sw_run_step *step)
{
	if (!w->log)
		return;
	json_t *line =
		json_pack("{s:I, s:o, s:f, s:f, s:f, s:f, s:I}", "step",
	                  (json_int_t)(step->step + 1), "loss", cli_json_real(step->loss),
	                  "seconds", step->seconds, "inputs_s", step->inputs_s, "tokens_per_s",
	                  tokens_per_s(w, step), "exposed_comm_s", step->exposed_comm_s,
	                  "memory_bytes", (json_int_t)step->peak_bytes);
	write_line(w, line);
}

void run_progress_eval(void *context, const sw_run_evaluated *evaluated)
{
	run_progress *w = context;
	cli_note(w->c, "step %" PRId64 "  eval loss %.4f", evaluated->step, evaluated->loss);
	if (!w->log)
		return;
	json_t *line =
		json_pack("{s:I, s:o, s:f}", "step", (json_int_t)evaluated->step, "eval_loss",
	                  cli_json_real(evaluated->loss), "eval_seconds", evaluated->seconds);
	write_line(w, line);
}

/* The time left, from the mean of the steps so far. */
static void add_left(const run_progress *w, int64_t done, sw_text *text)
{
	int64_t left = w->steps - done;
	if (left <= 0)
		return;
	sw_text_add(text, "  ");
	sw_text_add_seconds(text, (sw_now_s() - w->begun_s) / (double)done * (double)left);
	sw_text_add(text, " left");
}

void run_progress_step(void *context, const sw_run_step *step)
{
	run_progress *w = context;
	int64_t number = step->step + 1, done = number - w->first, tenth = SW_MAX(w->steps / 10, 1),
		last = w->first + w->steps;
	bool paced = w->c->values.pace;
	sw_text line = {0};
	sw_text_addf(&line, "step %" PRId64 "/%" PRId64, number, last);
	if (paced)
		sw_text_add(&line, "  paced");
	else if (w->has_loss)
		sw_text_addf(&line, "  loss %.4f", step->loss);
	if (isnan(step->loss) && !paced && w->has_loss && w->was_number)
		cli_note(w->c, "the loss is NaN in step %" PRId64, number);
	w->was_number = !isnan(step->loss);
	if (w->tokens)
		sw_text_addf(&line, "  %.0f tokens/s", tokens_per_s(w, step));
	add_left(w, done, &line);
	sw_progress_update(&w->progress, (double)done / (double)w->steps, "%s", line.data);
	if (w->c->values.verbose ||
	    (!w->progress.active && (number % tenth == 0 || number == last)))
		cli_note(w->c, "%s", line.data);
	sw_text_clear(&line);
	log_step(w, step);
	run_stop_step(&w->stop, step);
}

sw_status run_progress_end(run_progress *w, sw_error *err)
{
	sw_progress_end(&w->progress);
	run_stop_end(&w->stop);
	if (!w->log)
		return SW_OK;
	bool failed = ferror(w->log) != 0;
	failed = fclose(w->log) != 0 || failed;
	w->log = NULL;
	return failed ? sw_fail_at(err, SW_ERR_IO, w->c->values.log, 0, 0,
	                           "the log could not be written")
	              : SW_OK;
}
