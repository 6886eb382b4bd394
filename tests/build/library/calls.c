/*
 * The calls themselves, of library/call.h: an assertion that fails ends its call and not the
 * process, in any thread of it; a call has a locale and signals of its own.
 */
#undef NDEBUG
#include <assert.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

static sw_status answers(void *context, sw_error *err)
{
	int *numbers = context;
	numbers[0]++;
	return numbers[1] ? sw_fail_at(err, SW_NO, "a.hlo", 3, 4, "the answer is no") : SW_OK;
}

static sw_status asserts(void *context, sw_error *err)
{
	(void)err;
	assert(context == NULL);
	return SW_OK;
}

static void *assert_beside(void *context)
{
	assert(context == NULL);
	return NULL;
}

static sw_status waits_for_one_that_asserts(void *context, sw_error *err)
{
	pthread_t thread;
	(void)err;
	if (pthread_create(&thread, NULL, assert_beside, context) == 0)
		pthread_join(thread, NULL);
	return SW_OK;
}

static sw_status allocates_too_much(void *context, sw_error *err)
{
	(void)context;
	(void)err;
	free(sw_alloc((size_t)1 << 60));
	return SW_OK;
}

static sw_status blocks_signals(void *context, sw_error *err)
{
	sigset_t mask;
	(void)err;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	*(int *)context = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM);
	return SW_OK;
}

static int failed;
static void check(bool ok, const char *what, const shardwright_error *error)
{
	if (!ok)
		printf("FAILED: %s: %d: %s\n", what, (int)error->status, error->text);
	failed |= !ok;
}

int main(void)
{
	shardwright_error error;
	int numbers[2] = {0, 0}, blocked = 0;
	bool gone;
	check(!library_call(answers, numbers, &gone, &error) && !gone && !*error.text, "ok",
	      &error);
	numbers[1] = 1;
	check(library_call(answers, numbers, &gone, &error) == SHARDWRIGHT_NO && !gone &&
	              !strcmp(error.text, "a.hlo:3:4: the answer is no"),
	      "no", &error);
	check(library_call(answers, numbers, &gone, NULL) == SHARDWRIGHT_NO, "no error", &error);
	check(library_call(asserts, numbers, &gone, &error) == SHARDWRIGHT_BUG && gone &&
	              strstr(error.text, "context == NULL"),
	      "assertion", &error);
	check(library_call(waits_for_one_that_asserts, numbers, &gone, &error) == SHARDWRIGHT_BUG &&
	              gone,
	      "assertion beside", &error);
	check(library_call(allocates_too_much, NULL, &gone, &error) == SHARDWRIGHT_SYSTEM && gone &&
	              strstr(error.text, "out of memory"),
	      "memory", &error);
	check(!library_call(blocks_signals, &blocked, &gone, &error) && blocked, "signals", &error);
	check(numbers[0] == 3, "calls", &error);
	puts("called");
	return failed;
}
