/*
 * The system refuses memory in the middle of planning: the call says so, whatever the limit is, and
 * the process goes on and plans when there is memory again.
 *
 *   refused_memory PROGRAM CLUSTER PLAN THREADS
 */
#include <shardwright.h>
#include <stdio.h>
#include <string.h>

#include "address_space.h"

static shardwright_status plan(char **words, const char *threads, shardwright_error *error)
{
	shardwright_program *program = NULL;
	shardwright_cluster *cluster = NULL;
	shardwright_plan *made = NULL;
	const char *const options[] = {threads, NULL};
	shardwright_status status = shardwright_program_read(words[0], &program, error);
	if (!status)
		status = shardwright_cluster_read(words[1], NULL, &cluster, error);
	if (!status)
		status = shardwright_plan_make(program, cluster, options, &made, error);
	if (!status)
		status = shardwright_plan_write(made, words[2], error);
	/* also after a call that was given up, which may still use them */
	shardwright_program_free(program);
	shardwright_cluster_free(cluster);
	shardwright_plan_free(made);
	return status;
}

int main(int argc, char **argv)
{
	struct rlimit limit, free_limit;
	shardwright_error error;
	char threads[32];
	int refused = 0, bad = 0;
	if (argc != 5)
		return 2;
	snprintf(threads, sizeof(threads), "threads=%s", argv[4]);
	getrlimit(RLIMIT_AS, &free_limit);
	for (rlim_t room = 2 * MB; room <= 400 * MB; room += room / 2) {
		limit = free_limit;
		limit.rlim_cur = used() + room;
		setrlimit(RLIMIT_AS, &limit);
		shardwright_status status = plan(argv + 1, threads, &error);
		setrlimit(RLIMIT_AS, &free_limit);
		refused += status == SHARDWRIGHT_SYSTEM;
		if (status != SHARDWRIGHT_OK && status != SHARDWRIGHT_SYSTEM)
			bad++;
		if (status == SHARDWRIGHT_SYSTEM && !strstr(error.text, "memory") &&
		    !strstr(error.text, "refuses a thread"))
			bad++;
		if (status)
			printf("%llu MB: %s\n", (unsigned long long)(room / MB), error.text);
		if (plan(argv + 1, threads, &error)) {
			printf("%llu MB: then, with memory: %s\n", (unsigned long long)(room / MB),
			       error.text);
			return 1;
		}
	}
	printf("%d refused\n", refused);
	return bad || refused < 3;
}
