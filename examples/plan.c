/*
 * Plan a training step with libshardwright, and say what it takes:
 *
 *   cc plan.c $(pkg-config --cflags --libs shardwright) -o plan
 *   ./plan step.hlo.gz local-2x2 step.plan memory=16GiB
 *
 * The cluster is a file or the name of an installed one; what follows the plan's file are options
 * of planning.
 */
#include <stdio.h>
#include <stdlib.h>
#include <shardwright.h>

/* Print what was found, and write it. */
static shardwright_status show(const shardwright_plan *plan, const char *path,
                               shardwright_error *error)
{
	char *text;
	shardwright_status status = shardwright_plan_text(plan, &text, error);
	if (status)
		return status;
	printf("%s\n", text);
	free(text);
	printf("%lld devices, %.3g s a step, no plan takes less than %.3g s; %lld bytes at the "
	       "peak\n",
	       (long long)shardwright_plan_devices(plan), shardwright_plan_step_seconds(plan),
	       shardwright_plan_bound_seconds(plan), (long long)shardwright_plan_peak_bytes(plan));
	return shardwright_plan_write(plan, path, error);
}

static shardwright_status plan_step(char **words, shardwright_error *error)
{
	shardwright_program *program = NULL;
	shardwright_cluster *cluster = NULL;
	shardwright_plan *plan = NULL;
	shardwright_status status = shardwright_program_read(words[0], &program, error);
	if (status == SHARDWRIGHT_OK)
		status = shardwright_cluster_read(words[1], NULL, &cluster, error);
	if (status == SHARDWRIGHT_OK)
		status = shardwright_plan_make(program, cluster, (const char *const *)words + 3,
		                               &plan, error);
	shardwright_program_free(program);
	shardwright_cluster_free(cluster);
	if (status == SHARDWRIGHT_OK)
		status = show(plan, words[2], error);
	shardwright_plan_free(plan);
	return status;
}

int main(int argc, char **argv)
{
	shardwright_error error;
	if (argc < 4) {
		fprintf(stderr, "usage: plan PROGRAM CLUSTER PLAN [NAME=VALUE...]\n");
		return 2;
	}
	shardwright_status status = plan_step(argv + 1, &error);
	if (status)
		fprintf(stderr, "plan: %s\n", error.text);
	return status ? (status == SHARDWRIGHT_NO ? 1 : 2) : 0;
}
