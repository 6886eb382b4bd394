/* Flights: transfers under way beside each other and beside collectives bring what was sent, each
 * to its own; and no rank waits forever. */
#include "ranks.h"

#include <string.h>
#include <unistd.h>

#define FLIGHTS 12
#define CHUNKS 3
#define BYTES 40000 /* of a chunk */

static int32_t bytes_of(int32_t number)
{
	return BYTES + 977 * number;
}

static void fill(unsigned char *at, int32_t number, int32_t chunk)
{
	for (int32_t i = 0; i < bytes_of(number); i++)
		at[i] = (unsigned char)(i * 7 + number * 31 + chunk * 101);
}

static sw_status check_filled(const unsigned char *at, int32_t number, int32_t chunk, sw_error *err)
{
	for (int32_t i = 0; i < bytes_of(number); i++)
		if (at[i] != (unsigned char)(i * 7 + number * 31 + chunk * 101))
			return sw_fail(err, SW_ERR_INTERNAL,
			               "flight %d, chunk %d: byte %d is wrong", number, chunk, i);
	return SW_OK;
}

/* The steps of a rank in a transfer from rank 0 by all others, each of which passes on what it
 * gets, chunk by chunk. */
static size_t chain_steps(const sw_transport *t, int32_t number, unsigned char *buffer,
                          sw_message_step *steps)
{
	size_t n = 0;
	for (int32_t c = 0; c < CHUNKS; c++) {
		unsigned char *at = buffer + c * bytes_of(number);
		if (t->rank > 0)
			steps[n++] = (sw_message_step){SW_STEP_RECEIVE, t->rank - 1, at,
			                               bytes_of(number)};
		if (t->rank + 1 < t->size)
			steps[n++] =
				(sw_message_step){SW_STEP_SEND, t->rank + 1, at, bytes_of(number)};
	}
	return n;
}

static sw_status add_up(sw_transport *t, sw_error *err)
{
	float in[64] = {1}, out[64];
	return t->ops->all_reduce(t, t->everyone, t->size, SW_MONOID_SUM, SW_F32, in, out, 64, err);
}

static sw_status begin(sw_transport *t, int32_t number, unsigned char **buffer, sw_flight **flight,
                       sw_error *err)
{
	sw_message_step steps[2 * CHUNKS];
	*buffer = sw_alloc((size_t)(CHUNKS * bytes_of(number)));
	for (int32_t c = 0; c < CHUNKS && t->rank == 0; c++)
		fill(*buffer + c * bytes_of(number), number, c);
	return sw_transport_fly(t, number, steps, chain_steps(t, number, *buffer, steps), flight,
	                        err);
}

/* All are under way before the first lands; collectives run between; they land last first. */
static sw_status fly_many(sw_transport *t, void *context, sw_error *err)
{
	unsigned char *buffers[FLIGHTS] = {0};
	sw_flight *flights[FLIGHTS] = {0};
	sw_status status = SW_OK;
	(void)context;
	for (int32_t i = 0; i < FLIGHTS && status == SW_OK; i++) {
		status = begin(t, i, &buffers[i], &flights[i], err);
		if (status == SW_OK && i % 4 == 1)
			status = add_up(t, err);
	}
	for (int32_t i = FLIGHTS; i-- > 0 && status == SW_OK;) {
		status = sw_transport_land(t, flights[i], err);
		for (int32_t c = 0; c < CHUNKS && status == SW_OK; c++)
			status = check_filled(buffers[i] + c * bytes_of(i), i, c, err);
	}
	for (int32_t i = 0; i < FLIGHTS; i++) {
		sw_transport_flight_free(t, flights[i]);
		free(buffers[i]);
	}
	return status;
}

static void flights_bring_what_was_sent(void **state)
{
	(void)state;
	run_everywhere(fly_many, NULL);
}

/* What is sent lands at the sender although the receiver waits for nothing of it yet, and is there
 * when the receiver looks; over MPI without its help, while it computes. */
static sw_status arrive_alone(sw_transport *t, void *context, sw_error *err)
{
	unsigned char *buffer;
	sw_flight *flight;
	bool landed = false;
	(void)context;
	sw_status status = begin(t, 5, &buffer, &flight, err);
	if (status == SW_OK)
		status = t->ops->barrier(t, err);
	for (int i = 0; i < 2000 && !landed && status == SW_OK; i++) {
		usleep(1000);
		status = sw_transport_landed(t, flight, &landed, err);
	}
	if (status == SW_OK && !landed)
		status = sw_fail(err, SW_ERR_INTERNAL, "it has not landed by itself");
	sw_transport_flight_free(t, flight);
	free(buffer);
	return status;
}

static void flights_land_without_waits(void **state)
{
	(void)state;
	run_everywhere(arrive_alone, NULL);
}

/* What a rank gets arrives although the next one, to which it passes that on, has not begun. */
static sw_status arrive_before_the_next(sw_transport *t, void *context, sw_error *err)
{
	unsigned char *buffer = NULL;
	sw_flight *flight = NULL;
	bool last = t->rank == t->size - 1, landed = true;
	sw_status status = last ? SW_OK : begin(t, 7, &buffer, &flight, err);
	(void)context;
	if (status == SW_OK && !last)
		status = sw_transport_arrive(t, flight, err);
	for (int32_t c = 0; c < CHUNKS && status == SW_OK && !last; c++)
		status = check_filled(buffer + c * bytes_of(7), 7, c, err);
	if (status == SW_OK && t->rank + 2 == t->size)
		status = sw_transport_landed(t, flight, &landed, err);
	if (status == SW_OK && t->rank + 2 == t->size && landed && t->ops->name[0] == 'l')
		status = sw_fail(err, SW_ERR_INTERNAL, "nobody has received it yet");
	if (status == SW_OK)
		status = t->ops->barrier(t, err);
	if (status == SW_OK && last)
		status = begin(t, 7, &buffer, &flight, err);
	if (status == SW_OK)
		status = sw_transport_land(t, flight, err);
	for (int32_t c = 0; c < CHUNKS && status == SW_OK; c++)
		status = check_filled(buffer + c * bytes_of(7), 7, c, err);
	sw_transport_flight_free(t, flight);
	free(buffer);
	return status;
}

static void what_is_passed_on_is_not_waited_for(void **state)
{
	(void)state;
	run_everywhere(arrive_before_the_next, NULL);
}

/* ---- failures --------------------------------------------------------------------------- */

static sw_status receive_from(sw_transport *t, int32_t peer, int64_t bytes, sw_error *err)
{
	char buffer[64];
	sw_message_step step = {SW_STEP_RECEIVE, peer, buffer, bytes};
	sw_flight *flight;
	sw_status status = sw_transport_fly(t, 3, &step, 1, &flight, err);
	if (status == SW_OK)
		status = sw_transport_land(t, flight, err);
	sw_transport_flight_free(t, flight);
	return status;
}

static sw_status last_rank_fails(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	SW_TRY(add_up(t, err));
	if (t->rank < t->size - 1)
		return receive_from(t, t->size - 1, 8, err);
	usleep(20000);
	return sw_fail(err, SW_ERR_INPUT, "the disk is on fire");
}

static sw_status first_rank_leaves(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	SW_TRY(add_up(t, err));
	return t->rank == 0 ? SW_OK : receive_from(t, 0, 8, err);
}

static sw_status sizes_differ(sw_transport *t, void *context, sw_error *err)
{
	char bytes[8] = {0};
	sw_message_step step = {SW_STEP_SEND, 1, bytes, 4};
	sw_flight *flight;
	(void)context;
	if (t->rank == 1)
		return receive_from(t, 0, 8, err);
	if (t->rank > 1)
		return receive_from(t, 0, 8, err);
	sw_status status = sw_transport_fly(t, 3, &step, 1, &flight, err);
	if (status == SW_OK)
		status = sw_transport_land(t, flight, err);
	sw_transport_flight_free(t, flight);
	return status ? status : receive_from(t, 1, 8, err);
}

static sw_status wait_for_each_other(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	return receive_from(t, (t->rank + 1) % t->size, 8, err);
}

static void assert_all_say(rank_body *body, const char *part, int32_t but)
{
	outcome result;
	run_ranks(3, true, body, NULL, &result);
	for (int32_t r = 0; r < 3; r++)
		if (r != but && !strstr(result.error[r].message, part))
			fail_msg("rank %d: \"%s\" lacks \"%s\"", r, result.error[r].message, part);
}

static void waits_end_when_they_cannot_be_met(void **state)
{
	(void)state;
	assert_all_say(last_rank_fails, "rank 2: the disk is on fire", 2);
	assert_all_say(first_rank_leaves, "rank 0 has left", 0);
	assert_all_say(sizes_differ, "ranks disagree", -1);
	assert_all_say(wait_for_each_other, "ranks wait for each other", -1);
}

static sw_status combine(sw_transport *t, void *context, sw_error *err)
{
	float at = 0;
	sw_message_step step = {SW_STEP_COMBINE, 1 - t->rank, &at, sizeof(at)};
	sw_flight *flight;
	(void)context;
	sw_status status = sw_transport_fly(t, 3, &step, 1, &flight, err);
	sw_transport_flight_free(t, flight);
	return status;
}

static void what_combines_does_not_fly(void **state)
{
	(void)state;
	outcome result;
	run_ranks(2, true, combine, NULL, &result);
	assert_int_equal(result.status[0], SW_ERR_INTERNAL);
}

/* ---- the same under mpirun: one case per process, named by the argument ----------------- */

static const rank_case cases_of_one[] = {
	{"fails", last_rank_fails},
	{"leaves", first_rank_leaves},
	{"size", sizes_differ},
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flights_bring_what_was_sent),
		cmocka_unit_test(flights_land_without_waits),
		cmocka_unit_test(what_is_passed_on_is_not_waited_for),
		cmocka_unit_test(waits_end_when_they_cannot_be_met),
		cmocka_unit_test(what_combines_does_not_fly),
	};
	const struct CMUnitTest over_mpi[] = {
		cmocka_unit_test(flights_bring_what_was_sent),
		cmocka_unit_test(flights_land_without_waits),
		cmocka_unit_test(what_is_passed_on_is_not_waited_for),
	};
	if (argc > 1)
		return run_case(cases_of_one, SW_COUNT(cases_of_one), argv[1]);
	return sw_transport_under_mpi() ? cmocka_run_group_tests(over_mpi, NULL, end_ranks)
	                                : cmocka_run_group_tests(tests, NULL, NULL);
}
