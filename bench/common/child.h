/*
 * Children: work in a process of its own, so that times and peaks of memory do not mix, and that
 * can be ended. A child does not outlive this program.
 */
#ifndef SW_BENCH_CHILD_H
#define SW_BENCH_CHILD_H

#include "base/base.h"

typedef struct child_end {
	bool finished; /* by itself, with exit code 0, and with all that it was to say */
	bool killed;   /* at the limit */
	int code;      /* of the exit, or minus the signal */
	double seconds, cpu_s;
	int64_t peak_bytes;
} child_end;

/* Runs a job in a child, and takes what it writes to fd. limit_s may be infinite; memory_bytes 0:
 * no limit. */
typedef void child_job(const void *context, int fd);
child_end child_talk(child_job *job, const void *context, sw_text *said, double limit_s,
                     int64_t memory_bytes);
/* For jobs: all of it; the child ends where that can't be. */
void child_say(int fd, const void *data, size_t bytes);
/* Runs a job that fills a result, which is as it was unless the child finished. */
typedef void child_fill(const void *context, void *result);
child_end child_run(child_fill *fill, const void *context, void *result, size_t bytes,
                    double limit_s, int64_t memory_bytes);
/* Runs a program, found on the PATH, and takes what it prints. */
child_end child_exec(char *const *arguments, sw_text *output, double limit_s, int64_t memory_bytes);
/* "killed after 70 s", "ended by signal 11 (...)", "ended with exit code 1". */
void child_explain(const child_end *end, char *note, size_t room);

#endif
