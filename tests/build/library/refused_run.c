/*
 * The system refuses memory in the middle of running a plan: the call says so, whatever the limit is,
 * and the process goes on and runs the plan when there is memory again.
 *
 *   refused_run PLAN
 */
#include <shardwright.h>
#include <stdio.h>
#include <string.h>

#include "address_space.h"

static shardwright_status run_plan(const char *path, shardwright_error *error)
{
	shardwright_plan *plan = NULL;
	shardwright_run *run = NULL;
	float loss;
	shardwright_status status = shardwright_plan_read(path, &plan, error);
	if (!status)
		status = shardwright_run_open(plan, NULL, &run, error);
	for (int i = 0; i < 3 && !status; i++)
		status = shardwright_run_step(run, error);
	if (!status)
		status = shardwright_run_get(run, "loss", &loss, sizeof(loss), error);
	/* also after a call that was given up, which may still use them */
	shardwright_plan_free(plan);
	shardwright_run_free(run);
	return status;
}

int main(int argc, char **argv)
{
	struct rlimit limit, free_limit;
	shardwright_error error;
	int refused = 0, bad = 0;
	if (argc != 2)
		return 2;
	getrlimit(RLIMIT_AS, &free_limit);
	for (rlim_t room = MB; room <= 600 * MB; room += room / 3 + MB) {
		limit = free_limit;
		limit.rlim_cur = used() + room;
		setrlimit(RLIMIT_AS, &limit);
		shardwright_status status = run_plan(argv[1], &error);
		setrlimit(RLIMIT_AS, &free_limit);
		refused += status == SHARDWRIGHT_SYSTEM;
		if (status)
			printf("%llu MB: %s\n", (unsigned long long)(room / MB), error.text);
		if (status != SHARDWRIGHT_OK && status != SHARDWRIGHT_SYSTEM)
			bad++;
		if (run_plan(argv[1], &error)) {
			printf("%llu MB: then, with memory: %s\n", (unsigned long long)(room / MB),
			       error.text);
			return 1;
		}
	}
	printf("%d refused\n", refused);
	return bad || refused < 3;
}
