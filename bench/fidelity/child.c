/* Run commands, each in a process of its own, with a time limit. Their standard error goes to the
 * log of the work folder. */
#include "fidelity.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds: the time that a child has to end after SIGTERM. */
#define PATIENCE_S 10

static volatile sig_atomic_t asked;

static void ask(int number)
{
	(void)number;
	asked = 1;
}

void watch_signals(void)
{
	struct sigaction action = {.sa_handler = ask};
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool stop_asked(void)
{
	return asked != 0;
}

static void log_path(const settings *how, char *path, size_t size)
{
	snprintf(path, size, "%s/log", how->work);
}

/* Become the command, in a process group of its own, so that a key pressed here reaches only this
 * program, which passes it on. */
static void become(const settings *how, const char *const *words, const int *ends)
{
	char path[512];
	log_path(how, path, sizeof(path));
	int log = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), in = open("/dev/null", O_RDONLY);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(in, STDIN_FILENO);
	dup2(ends[1], STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	execvp(words[0], (char *const *)words);
	dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
	_exit(127);
}

/* Read until the child closes its end. Returns false if the time is over, or a signal came. */
static bool drain(int fd, double deadline_s, sw_text *text)
{
	char buffer[1 << 14];
	bool asked_before = stop_asked();
	for (;;) {
		struct pollfd wait_for = {.fd = fd, .events = POLLIN};
		double left_s = deadline_s - sw_now_s();
		if (left_s <= 0 || stop_asked() != asked_before)
			return false;
		int ready = poll(&wait_for, 1, (int)SW_MIN(left_s * 1e3 + 1, 1000));
		if (ready < 0 && errno != EINTR)
			return false;
		if (ready <= 0)
			continue;
		ssize_t got = read(fd, buffer, sizeof(buffer));
		if (got <= 0)
			return got == 0;
		sw_text_add_n(text, buffer, (size_t)got);
	}
}

/* End the child: it gets time to clean up, then it is killed. */
static void end_child(pid_t pid, int fd)
{
	sw_text rest = {0};
	kill(pid, SIGTERM);
	double deadline_s = sw_now_s() + PATIENCE_S;
	while (sw_now_s() < deadline_s && waitpid(pid, NULL, WNOHANG) == 0)
		drain(fd, sw_now_s() + 0.05, &rest);
	kill(-pid, SIGKILL);
	sw_text_clear(&rest);
}

/* Return the last line of a log with words in it: one of ours if there is one, rather than one of
 * mpirun. */
static const char *telling_line(char *text)
{
	const char *found = "";
	bool ours = false;
	for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));) {
		bool is_ours = strncmp(line, "shardwright: ", 13) == 0 ||
		               strncmp(line, "tools/lab: ", 11) == 0;
		if (is_ours || (!ours && line[strspn(line, " -")]))
			found = line;
		ours = ours || is_ours;
	}
	return found;
}

/* Copy the telling line of the log; empty if the log is. */
static void last_words(const settings *how, char *line, size_t size)
{
	char path[512], *text = NULL;
	size_t length = 0;
	line[0] = 0;
	log_path(how, path, sizeof(path));
	if (sw_file_read(path, &text, &length, NULL) == SW_OK)
		snprintf(line, size, "%s", telling_line(text));
	free(text);
}

static sw_status judge(const settings *how, const char *const *words, int status, sw_error *err)
{
	char line[300];
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return SW_OK;
	last_words(how, line, sizeof(line));
	if (line[0])
		return sw_fail(err, SW_ERR_IO, "%s", line);
	return sw_fail(err, SW_ERR_IO, "%s %s: ended with status %d", words[0],
	               words[1] ? words[1] : "", status);
}

sw_status child_run(const settings *how, const char *const *words, double limit_s, sw_text *text,
                    sw_error *err)
{
	int ends[2], status = 0;
	sw_text said = {0};
	if (pipe(ends))
		return sw_fail(err, SW_ERR_IO, "%s: %s", words[0], strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		become(how, words, ends);
	close(ends[1]);
	bool ended = pid > 0 && drain(ends[0], sw_now_s() + limit_s, &said);
	sw_status result = SW_OK;
	if (pid < 0) {
		result = sw_fail(err, SW_ERR_IO, "%s: %s", words[0], strerror(errno));
	} else if (!ended) {
		end_child(pid, ends[0]);
		result =
			sw_fail(err, SW_ERR_IO, "%s %s: stopped%s", words[0],
		                words[1] ? words[1] : "", stop_asked() ? "" : ", it took too long");
	} else {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
		result = judge(how, words, status, err);
	}
	close(ends[0]);
	if (text)
		sw_text_add_n(text, said.data ? said.data : "", said.len);
	sw_text_clear(&said);
	return result;
}

sw_status child_json(const settings *how, const char *const *words, double limit_s, json_t **object,
                     sw_error *err)
{
	sw_text text = {0};
	*object = NULL;
	sw_status status = child_run(how, words, limit_s, &text, err);
	if (status == SW_OK)
		status = sw_json_parse(text.data ? text.data : "", text.len, object, err);
	sw_text_clear(&text);
	return status;
}
