/* The CSV of torch.distributed.pipelining: a row per rank, a cell per action. Which rank has which
 * stage, how many microbatches there are and whether there are two chains follows from the cells.
 */
#include <ctype.h>
#include <string.h>

#include "pipeline/internal.h"
#include "pipeline/limits.h"

typedef struct csv_reader {
	const char *at, *end, *name;
	int line, cell;
	SW_VEC(sw_action_list) rows;
	int32_t n_stages, n_microbatches;
	int64_t passes;
	sw_error *err;
} csv_reader;

static sw_status fail_at_cell(csv_reader *r, const char *cell, size_t length, const char *what)
{
	char shown[48];
	size_t n = SW_MIN(length, sizeof(shown) - 1);
	memcpy(shown, cell, n);
	shown[n] = 0;
	sw_text text = {0};
	sw_text_add_printable(&text, shown, false);
	sw_status status =
		sw_fail_at(r->err, SW_ERR_INPUT, r->name, r->line, 0, "cell %d, '%s': %s", r->cell,
	                   text.data ? text.data : "", what);
	sw_text_clear(&text);
	return status;
}

/* Read a number; false if there is none, or it is too large. */
static bool take_number(const char **at, const char *end, int32_t most, int32_t *number)
{
	const char *from = *at;
	int64_t value = 0;
	while (*at < end && isdigit((unsigned char)**at) && value <= most)
		value = 10 * value + (*(*at)++ - '0');
	*number = (int32_t)SW_MIN(value, most);
	return *at > from && value < most && (*at == end || !isdigit((unsigned char)**at));
}

/* The longest word that the text begins with: SEND_F before anything that S begins. */
static bool take_word(const char **at, const char *end, sw_action_kind *kind)
{
	size_t best = 0;
	for (int k = 0; k < SW_ACTION_KINDS; k++) {
		const char *word = sw_action_word((sw_action_kind)k);
		size_t length = strlen(word);
		if (length > best && (size_t)(end - *at) >= length &&
		    memcmp(*at, word, length) == 0) {
			best = length;
			*kind = (sw_action_kind)k;
		}
	}
	*at += best;
	return best > 0;
}

#define EXPECTED "expected a stage, a word and a microbatch, such as 0F1, 1I3 or 2SEND_B0"

static sw_status take_action(csv_reader *r, const char *cell, size_t length)
{
	const char *at = cell, *end = cell + length;
	sw_action a = {.microbatch = -1};
	if (!take_number(&at, end, SW_PIPELINE_STAGES, &a.stage) || !take_word(&at, end, &a.kind))
		return fail_at_cell(r, cell, length, EXPECTED);
	if (at < end && !take_number(&at, end, SW_PIPELINE_MICROBATCHES, &a.microbatch))
		return fail_at_cell(r, cell, length, EXPECTED);
	if (at != end)
		return fail_at_cell(r, cell, length, EXPECTED);
	if (a.kind <= SW_RECEIVE_BACKWARD && a.microbatch < 0)
		return fail_at_cell(r, cell, length, "expected a microbatch at its end");
	r->n_stages = SW_MAX(r->n_stages, a.stage + 1);
	r->n_microbatches = SW_MAX(r->n_microbatches, a.microbatch + 1);
	if (++r->passes > SW_PIPELINE_PASSES)
		return fail_at_cell(r, cell, length, "there are too many actions");
	sw_vec_push(&r->rows.data[r->rows.len - 1], a);
	return SW_OK;
}

/* (0F1;1B2)OVERLAP_F_B: its parts, one after the other. */
static sw_status take_overlapped(csv_reader *r, const char *cell, size_t length)
{
	static const char word[] = ")OVERLAP_F_B";
	size_t tail = sizeof(word) - 1;
	if (length < tail + 1 || memcmp(cell + length - tail, word, tail) != 0)
		return fail_at_cell(r, cell, length, "expected (ACTION;ACTION)OVERLAP_F_B");
	const char *at = cell + 1, *end = cell + length - tail;
	sw_status status = SW_OK;
	while (at <= end && status == SW_OK) {
		size_t part = 0;
		while (at + part < end && at[part] != ';')
			part++;
		status = take_action(r, at, part);
		at += part + 1;
	}
	return status;
}

static void trim(const char **from, size_t *length)
{
	while (*length && (isspace((unsigned char)**from) || **from == '"')) {
		(*from)++;
		(*length)--;
	}
	while (*length &&
	       (isspace((unsigned char)(*from)[*length - 1]) || (*from)[*length - 1] == '"'))
		(*length)--;
}

static sw_status take_row(csv_reader *r, const char *row, size_t length)
{
	sw_status status = SW_OK;
	sw_vec_push(&r->rows, ((sw_action_list){0}));
	if (r->rows.len > SW_PIPELINE_RANKS)
		return fail_at_cell(r, row, 0, "there are too many rows");
	r->cell = 0;
	for (const char *at = row, *end = row + length; at <= end && status == SW_OK;) {
		size_t n = 0;
		while (at + n < end && at[n] != ',')
			n++;
		const char *cell = at;
		at += n + 1;
		r->cell++;
		trim(&cell, &n);
		if (n)
			status = *cell == '(' ? take_overlapped(r, cell, n)
			                      : take_action(r, cell, n);
	}
	return status;
}

static sw_status take_rows(csv_reader *r)
{
	sw_status status = SW_OK;
	while (r->at < r->end && status == SW_OK) {
		size_t n = 0;
		while (r->at + n < r->end && r->at[n] != '\n')
			n++;
		r->line++;
		const char *row = r->at;
		size_t length = n;
		r->at += SW_MIN(n + 1, (size_t)(r->end - r->at));
		trim(&row, &length);
		status = take_row(r, row, length);
	}
	/* what is blank at the end is no rank */
	for (; r->rows.len && r->rows.data[r->rows.len - 1].len == 0; r->rows.len--)
		sw_vec_clear(&r->rows.data[r->rows.len - 1]);
	if (status == SW_OK && (r->passes == 0 || r->n_microbatches == 0)) /* nothing but updates */
		return sw_fail_at(r->err, SW_ERR_INPUT, r->name, 0, 0,
		                  "there are no actions in it; expected a row per rank, with "
		                  "cells such as 0F1");
	if (status == SW_OK && (int64_t)r->n_stages * r->n_microbatches > SW_PIPELINE_PASSES)
		return sw_fail_at(r->err, SW_ERR_INPUT, r->name, 0, 0,
		                  "it has %d stages and %d microbatches: too many", r->n_stages,
		                  r->n_microbatches);
	return status;
}

/* Two chains: microbatch 0 does not run through the last stage, and there is an even number. */
static int32_t count_chains(const csv_reader *r)
{
	bool all = false;
	for (size_t i = 0; i < r->rows.len; i++)
		for (size_t k = 0; k < r->rows.data[i].len; k++) {
			sw_action a = r->rows.data[i].data[k];
			all |= a.kind == SW_FORWARD && a.microbatch == 0 &&
			       a.stage == r->n_stages - 1;
		}
	return all || r->n_stages % 2 ? 1 : 2;
}

static sw_pipeline_schedule *build(csv_reader *r)
{
	sw_pipeline_schedule *s = sw_pipeline_new((int32_t)r->rows.len, r->n_stages,
	                                          r->n_microbatches, count_chains(r));
	for (int32_t v = 0; v < r->n_stages; v++)
		s->rank_of_stage[v] = 0;
	for (size_t i = 0; i < r->rows.len; i++) {
		s->lists[i] = r->rows.data[i];
		for (size_t k = 0; k < s->lists[i].len; k++)
			s->rank_of_stage[s->lists[i].data[k].stage] = (int32_t)i;
	}
	r->rows.len = 0;
	return s;
}

/* Spreadsheets begin UTF-8 with a byte order mark. */
static size_t mark_length(const char *text, size_t length)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'};
	return length >= sizeof mark && memcmp(text, mark, sizeof mark) == 0 ? sizeof mark : 0;
}

sw_status sw_pipeline_parse_csv(const char *text, size_t length, const char *name,
                                sw_pipeline_schedule **schedule, sw_error *err)
{
	csv_reader r = {.at = text + mark_length(text, length),
	                .end = text + length,
	                .name = name,
	                .err = err};
	*schedule = NULL;
	sw_status status = take_rows(&r);
	if (status == SW_OK) {
		sw_pipeline_schedule *s = build(&r);
		status = sw_pipeline_check(s, err);
		if (status == SW_OK)
			*schedule = s;
		else
			sw_pipeline_free(s);
	}
	for (size_t i = 0; i < r.rows.len; i++)
		sw_vec_clear(&r.rows.data[i]);
	sw_vec_clear(&r.rows);
	return status ? sw_error_in_file(err, status, name) : SW_OK;
}

sw_status sw_pipeline_read(const char *path, sw_pipeline_schedule **schedule, sw_error *err)
{
	char *data;
	size_t length;
	*schedule = NULL;
	sw_status status = sw_file_read_most(path, SW_PIPELINE_FILE_BYTES, &data, &length, err);
	if (status)
		return status;
	status = sw_pipeline_parse_csv(data, length, path, schedule, err);
	free(data);
	return status;
}

void sw_pipeline_print_csv(const sw_pipeline_schedule *schedule, sw_text *text)
{
	for (int32_t r = 0; r < schedule->n_ranks; r++) {
		bool first = true;
		for (size_t i = 0; i < schedule->lists[r].len; i++) {
			if (schedule->lists[r].data[i].kind == SW_UPDATE)
				continue;
			if (!first)
				sw_text_add(text, ",");
			sw_action_print(schedule->lists[r].data[i], text);
			first = false;
		}
		sw_text_add(text, "\n");
	}
}
