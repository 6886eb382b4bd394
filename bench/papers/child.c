/* Work in a process of its own: it can be ended, and takes its memory with it. */
#include "papers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void be_child(child_fn *work, const void *task, int fd)
{
	FILE *to = fdopen(fd, "w");
	if (to) {
		work(task, to);
		fclose(to);
	}
	_exit(0);
}

/* Until the child closes its end, or the time is over. */
static bool read_all(int fd, double end_s, sw_text *text)
{
	for (;;) {
		char buffer[4096];
		struct pollfd waited = {.fd = fd, .events = POLLIN};
		double left_s = end_s - sw_now_s();
		if (left_s <= 0)
			return false;
		int ready = poll(&waited, 1, (int)(left_s * 1000) + 1);
		ssize_t n = ready > 0 ? read(fd, buffer, sizeof(buffer)) : -1;
		if (n == 0)
			return true;
		if (n > 0)
			sw_text_add_n(text, buffer, (size_t)n);
		else if (ready < 0 && errno != EINTR)
			return true;
	}
}

/* Of the last line that is a whole object. */
static json_t *last_object(const sw_text *text)
{
	json_t *last = NULL;
	const char *at = text->data ? text->data : "";
	for (const char *end; (end = strchr(at, '\n')); at = end + 1) {
		json_t *object;
		sw_error err;
		if (sw_json_parse(at, (size_t)(end - at), &object, &err) != SW_OK)
			continue;
		json_decref(last);
		last = object;
	}
	return last;
}

static double cpu_s(const struct rusage *used)
{
	return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
	       1e-6 * (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
}

json_t *child_run(child_fn *work, const void *task, double limit_s)
{
	int ends[2];
	double start_s = sw_now_s();
	sw_text text = {0};
	fflush(NULL);
	pid_t child = pipe(ends) == 0 ? fork() : -1;
	if (child < 0)
		return json_pack("{s:s, s:s}", "status", "failed", "message", strerror(errno));
	if (child == 0) {
		close(ends[0]);
		be_child(work, task, ends[1]);
	}
	close(ends[1]);
	bool in_time = read_all(ends[0], start_s + limit_s, &text);
	if (!in_time)
		kill(child, SIGKILL);
	close(ends[0]);
	struct rusage used = {0};
	wait4(child, NULL, 0, &used);
	json_t *result = last_object(&text);
	if (!result)
		result = json_pack("{s:s, s:s}", "status", in_time ? "failed" : "time limit", "message",
		                   in_time ? "the process ended without a result" : "no plan in time");
	json_object_set_new(result, "wall_s", json_real(sw_now_s() - start_s));
	json_object_set_new(result, "cpu_s", json_real(cpu_s(&used)));
	sw_text_clear(&text);
	return result;
}
