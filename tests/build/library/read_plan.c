/*
 * Reads a plan, prints what the library says of it, and what becomes of writing it.
 *
 *   read_plan PLAN COPY
 */
#include <shardwright.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	shardwright_plan *plan;
	shardwright_error error;
	char *text;
	if (argc != 3)
		return 2;
	if (shardwright_plan_read(argv[1], &plan, &error) ||
	    shardwright_plan_text(plan, &text, &error)) {
		puts(error.text);
		return 1;
	}
	shardwright_plan_write(plan, argv[2], &error);
	printf("%s%lld devices, %g s, bound %g, %lld bytes, payload %lld; %s\n", text,
	       (long long)shardwright_plan_devices(plan), shardwright_plan_step_seconds(plan),
	       shardwright_plan_bound_seconds(plan), (long long)shardwright_plan_peak_bytes(plan),
	       (long long)shardwright_plan_payload_bytes(plan), strrchr(error.text, '/') + 1);
	free(text);
	shardwright_plan_free(plan);
	return 0;
}
