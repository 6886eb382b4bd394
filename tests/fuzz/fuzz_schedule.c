/* The reader of schedules' CSV, on any bytes: what is read is printed so that it is read again, with
 * transfers and without, and either plays or says why it does not. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_reason(sw_status status, const sw_error *err)
{
	if (status != SW_OK && (!err->message[0] || status != SW_ERR_INPUT))
		abort();
}

/* A second of each pass, and nothing else. */
static void play(const sw_pipeline_schedule *schedule)
{
	sw_error err = {0};
	sw_pipeline_played played = {0};
	size_t n = (size_t)SW_MAX(schedule->n_stages, schedule->n_ranks) + 1;
	double *rows = sw_alloc(3 * n * sizeof(double));
	double *ones = rows, *zeros = rows + n, *endless = rows + 2 * n;
	for (size_t i = 0; i < n; i++) {
		ones[i] = 1;
		endless[i] = INFINITY;
	}
	sw_pipeline_costs costs = {.forward_s = ones,
	                           .input_gradient_s = ones,
	                           .weight_gradient_s = ones,
	                           .send_forward_s = zeros,
	                           .send_backward_s = zeros,
	                           .gather_s = zeros,
	                           .reduce_s = zeros,
	                           .update_s = zeros,
	                           .activation_bytes = ones,
	                           .gradient_bytes = ones,
	                           .fixed_bytes = zeros,
	                           .limit_bytes = endless};
	sw_status status = sw_pipeline_play(schedule, &costs, &played, &err);
	expect_reason(status, &err);
	if (status == SW_OK && played.step_s < sw_pipeline_bound_of(schedule, &costs).seconds - 1e-6)
		abort();
	if (status == SW_OK)
		sw_pipeline_played_free(&played);
	free(rows);
}

static void read_again(const sw_pipeline_schedule *schedule)
{
	sw_text text = {0}, again = {0};
	sw_error err = {0};
	sw_pipeline_schedule *other = NULL;
	sw_pipeline_print_csv(schedule, &text);
	if (sw_pipeline_parse_csv(text.data, text.len, "again", &other, &err) != SW_OK)
		abort();
	sw_pipeline_print_csv(other, &again);
	if (text.len != again.len || memcmp(text.data, again.data, text.len) != 0)
		abort();
	sw_pipeline_free(other);
	sw_text_clear(&again);
	sw_text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_error err = {0};
	sw_pipeline_schedule *schedule = NULL;
	char *text = sw_alloc(size + 1); /* on the heap, so that a look behind its end is seen */
	if (size)
		memcpy(text, data, size);
	sw_status status = sw_pipeline_parse_csv(text, size, "fuzz", &schedule, &err);
	expect_reason(status, &err);
	if (status == SW_OK) {
		read_again(schedule);
		play(schedule);
		sw_pipeline_free(schedule);
	}
	free(text);
	return 0;
}
