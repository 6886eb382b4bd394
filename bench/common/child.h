/*
 * Children: work in processes of their own, which can be ended, and whose times and memory peaks do
 * not mix. A child does not outlive this program.
 */
#ifndef SW_BENCH_CHILD_H
#define SW_BENCH_CHILD_H

#include "base/base.h"

typedef struct child_end {
	bool finished; /* it ended by itself, with exit code 0, after writing everything */
	bool killed;   /* it was ended at the limit */
	int code;      /* of the exit, or minus the signal */
	double seconds, cpu_s;
	int64_t peak_bytes;
} child_end;

/* Run a job in a child, and take the bytes that it writes to fd. limit_s may be infinite;
 * memory_bytes 0: no limit. */
typedef void child_job(const void *context, int fd);
child_end child_talk(child_job *job, const void *context, sw_text *output, double limit_s,
                     int64_t memory_bytes);
/* For jobs: write all bytes; end the child where that is impossible. */
void child_say(int fd, const void *data, size_t bytes);
/* Run a job that fills in a result, which stays unchanged unless the child finished. */
typedef void child_fill(const void *context, void *result);
child_end child_run(child_fill *fill, const void *context, void *result, size_t bytes,
                    double limit_s, int64_t memory_bytes);
/* Run a program, found on the PATH, and take its output. */
child_end child_exec(char *const *arguments, sw_text *output, double limit_s, int64_t memory_bytes);
/* Describe an end: "killed after 70 s", "ended by signal 11 (...)", "ended with exit code 1". */
void child_explain(const child_end *end, char *note, size_t note_bytes);

#endif
