#include "child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_FOUND 127 /* as shells report it */

/* In the child: let it end with this program, and limit its memory. */
static void confine(int64_t memory_bytes)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (memory_bytes > 0) {
		struct rlimit limit = {(rlim_t)memory_bytes, (rlim_t)memory_bytes};
		setrlimit(RLIMIT_AS, &limit);
	}
}

/* Read until the child closes its end of the pipe, which it does by ending, or until the time is
 * over. */
static bool drain(int fd, sw_text *output, double deadline_s)
{
	char buffer[1 << 16];
	for (;;) {
		struct pollfd wait_for = {.fd = fd, .events = POLLIN};
		double left_s = deadline_s - sw_now_s();
		int ready = left_s > 0 ? poll(&wait_for, 1, (int)SW_MIN(left_s * 1e3 + 1, 1e9)) : 0;
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		ssize_t got = read(fd, buffer, sizeof buffer);
		if (got <= 0)
			return got == 0;
		sw_text_add_n(output, buffer, (size_t)got);
	}
}

static child_end wait_for_child(pid_t pid, int fd, sw_text *output, double limit_s)
{
	child_end end = {0};
	struct rusage usage = {0};
	int status = 0;
	double start_s = sw_now_s();
	end.killed = !drain(fd, output, start_s + limit_s);
	if (end.killed)
		kill(pid, SIGKILL);
	while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	close(fd);
	end.seconds = sw_now_s() - start_s;
	end.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	end.finished = !end.killed && end.code == 0;
	end.cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	            1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	end.peak_bytes = (int64_t)usage.ru_maxrss * 1024;
	return end;
}

/* Start a child that writes into the pipe whose other end is *fd; return 0 in the child, -1 if
 * there is none. */
static pid_t start_child(int *fd, int64_t memory_bytes)
{
	int ends[2];
	fflush(NULL);
	if (pipe(ends))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		confine(memory_bytes);
		*fd = ends[1];
		return 0;
	}
	close(ends[1]);
	*fd = ends[0];
	if (pid < 0)
		close(ends[0]);
	return pid;
}

void child_say(int fd, const void *data, size_t bytes)
{
	const char *at = data;
	while (bytes > 0) {
		ssize_t n = write(fd, at, bytes);
		if (n < 0 && errno != EINTR)
			_exit(1);
		at += SW_MAX(n, 0);
		bytes -= (size_t)SW_MAX(n, 0);
	}
}

child_end child_talk(child_job *job, const void *context, sw_text *output, double limit_s,
                     int64_t memory_bytes)
{
	int fd;
	pid_t pid = start_child(&fd, memory_bytes);
	if (pid == 0) {
		job(context, fd);
		_exit(0);
	}
	return pid < 0 ? (child_end){.code = NOT_FOUND} : wait_for_child(pid, fd, output, limit_s);
}

/* A job that fills in a result and writes it to the pipe. */
typedef struct filling {
	child_fill *fill;
	const void *context;
	void *result;
	size_t bytes;
} filling;

static void fill_and_say(const void *context, int fd)
{
	const filling *f = context;
	f->fill(f->context, f->result);
	child_say(fd, f->result, f->bytes);
}

child_end child_run(child_fill *fill, const void *context, void *result, size_t bytes,
                    double limit_s, int64_t memory_bytes)
{
	const filling f = {fill, context, result, bytes};
	sw_text output = {0};
	child_end end = child_talk(fill_and_say, &f, &output, limit_s, memory_bytes);
	end.finished = end.finished && output.len == bytes;
	if (end.finished)
		memcpy(result, output.data, bytes);
	sw_text_clear(&output);
	return end;
}

child_end child_exec(char *const *arguments, sw_text *output, double limit_s, int64_t memory_bytes)
{
	int fd;
	pid_t pid = start_child(&fd, memory_bytes);
	if (pid == 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		close(fd);
		execvp(arguments[0], arguments);
		_exit(NOT_FOUND);
	}
	return pid < 0 ? (child_end){.code = NOT_FOUND} : wait_for_child(pid, fd, output, limit_s);
}

void child_explain(const child_end *end, char *note, size_t note_bytes)
{
	if (end->killed)
		snprintf(note, note_bytes, "killed after %.0f s", end->seconds);
	else if (end->code == NOT_FOUND)
		snprintf(note, note_bytes, "not installed: tools/setup --bench");
	else if (end->code < 0)
		snprintf(note, note_bytes, "ended by signal %d (%s)", -end->code,
		         strsignal(-end->code));
	else
		snprintf(note, note_bytes, "ended with exit code %d", end->code);
}
