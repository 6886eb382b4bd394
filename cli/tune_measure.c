/* Run a plan in a process of its own, so that a trial that fails or hangs ends no tuning. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_WORDS 64
#define TRIAL_LIMIT_S 600.0
#define NOT_STARTED 127

/* The command line of a trial, in the arena: what launches it, and `shardwright run`. */
static sw_status command_of(const cli *c, const char *plan, int64_t ranks, sw_arena *arena,
                            char **words, sw_error *err)
{
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int n = 0;
	if (length <= 0)
		return sw_fail(err, SW_ERR_IO, "--measure: this program has no path: %s",
		               strerror(errno));
	self[length] = 0;
	for (const char *at = c->values.launch; at && *at;) {
		size_t word = strcspn(at, " \t");
		if (word > 0 && n >= MOST_WORDS - 16)
			return sw_fail(err, SW_ERR_INPUT, "--launch: it has too many words");
		if (word > 0)
			words[n++] = sw_arena_text_n(arena, at, word);
		at += word + strspn(at + word, " \t");
	}
	words[n++] = sw_arena_text(arena, self);
	words[n++] = sw_arena_text(arena, "run");
	words[n++] = sw_arena_text(arena, plan);
	words[n++] = sw_arena_text(arena, "--steps");
	words[n++] = sw_arena_printf(arena, "%lld", (long long)c->values.steps);
	words[n++] = sw_arena_text(arena, "--json");
	words[n++] = sw_arena_text(arena, "-q");
	if (c->values.pace)
		words[n++] = sw_arena_text(arena, "--pace");
	if (!c->values.launch) {
		words[n++] = sw_arena_text(arena, "--ranks");
		words[n++] = sw_arena_printf(arena, "%lld", (long long)ranks);
	}
	words[n] = NULL;
	return SW_OK;
}

/* The child has a process group of its own, so that all that it starts ends with it. */
static void execute(char **words, const int *out, const int *errors, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setpgid(0, 0) == 0 && getppid() == parent && dup2(out[1], STDOUT_FILENO) >= 0 &&
	    dup2(errors[1], STDERR_FILENO) >= 0) {
		close(out[0]);
		close(errors[0]);
		execvp(words[0], words);
	}
	_exit(NOT_STARTED);
}

/* Take what the child prints until it closes both, or the time is over; false: it is. */
static bool listen_to(int out, int errors, sw_text *text, sw_text *said)
{
	double deadline_s = sw_now_s() + TRIAL_LIMIT_S;
	struct pollfd from[2] = {{.fd = out, .events = POLLIN}, {.fd = errors, .events = POLLIN}};
	sw_text *into[2] = {text, said};
	while (from[0].fd >= 0 || from[1].fd >= 0) {
		double left_s = deadline_s - sw_now_s();
		if (left_s <= 0)
			return false;
		if (poll(from, 2, (int)(left_s * 1000) + 1) < 0 && errno != EINTR)
			return false;
		for (int i = 0; i < 2; i++) {
			char bytes[4096];
			if (from[i].fd < 0 || !from[i].revents)
				continue;
			ssize_t n = read(from[i].fd, bytes, sizeof(bytes));
			if (n > 0)
				sw_text_add_n(into[i], bytes, (size_t)n);
			else if (n == 0 || errno != EINTR)
				from[i].fd = -1;
		}
	}
	return true;
}

static sw_status start(char **words, int *out, int *errors, pid_t *child, sw_error *err)
{
	pid_t parent = getpid();
	if (pipe(out) != 0)
		return sw_fail(err, SW_ERR_IO, "--measure: no pipe: %s", strerror(errno));
	if (pipe(errors) != 0) {
		close(out[0]);
		close(out[1]);
		return sw_fail(err, SW_ERR_IO, "--measure: no pipe: %s", strerror(errno));
	}
	*child = fork();
	if (*child == 0)
		execute(words, out, errors, parent);
	close(out[1]);
	close(errors[1]);
	if (*child > 0)
		return SW_OK;
	close(out[0]);
	close(errors[0]);
	return sw_fail(err, SW_ERR_IO, "--measure: no process: %s", strerror(errno));
}

/* Return the first line in words: what launches ranks draws lines of dashes. */
static const char *first_words(const char *text)
{
	while (*text && !isalpha((unsigned char)*text)) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return *text ? text : "it printed no seconds of a step";
}

/* Read the seconds of a step from what the run printed; else say why there are none, as it did: in
 * its own words, or in those of what launched it. */
static sw_status take_seconds(const sw_text *out, const sw_text *said, double *seconds,
                              sw_error *err)
{
	json_t *json = NULL;
	sw_error ignored;
	if (out->len && sw_json_parse(out->data, out->len, &json, &ignored) == SW_OK &&
	    sw_json_get_real(json, "step_time_s", "", seconds, &ignored) == SW_OK && *seconds > 0) {
		json_decref(json);
		return SW_OK;
	}
	const char *own = json_string_value(
			   json_object_get(json_object_get(json, "error"), "message")),
		   *why = own ? own : first_words(said->len ? said->data : "");
	sw_status status = sw_fail(err, SW_ERR_IO, "--measure: the run failed: %.*s",
	                           (int)strcspn(why, "\n"), why);
	json_decref(json);
	return status;
}

static sw_status run_plan(const cli *c, const char *path, int64_t ranks, double *seconds,
                          sw_error *err)
{
	char *words[MOST_WORDS];
	int out[2], errors[2], ended = 0;
	pid_t child = -1;
	sw_arena arena;
	sw_text text = {0}, said = {0};
	sw_arena_init(&arena);
	sw_status status = command_of(c, path, ranks, &arena, words, err);
	if (status == SW_OK)
		status = start(words, out, errors, &child, err);
	if (status == SW_OK) {
		bool heard = listen_to(out[0], errors[0], &text, &said);
		if (!heard)
			kill(-child, SIGKILL);
		close(out[0]);
		close(errors[0]);
		while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
			;
		if (!heard)
			status = sw_fail(err, SW_NO, "a trial took more than %g s", TRIAL_LIMIT_S);
		else if (WIFEXITED(ended) && WEXITSTATUS(ended) == NOT_STARTED)
			status = sw_fail(err, SW_ERR_INPUT, "--launch: %s can't be started",
			                 words[0]);
		else
			status = take_seconds(&text, &said, seconds, err);
	}
	sw_text_clear(&text);
	sw_text_clear(&said);
	sw_arena_clear(&arena);
	return status;
}

sw_status cli_measure_plan(void *context, const sw_plan *plan, double *seconds, sw_error *err)
{
	const cli *c = context;
	char path[] = "/tmp/shardwright-tune-XXXXXX";
	int file = mkstemp(path);
	if (file < 0)
		return sw_fail(err, SW_ERR_IO, "--measure: no temporary file: %s", strerror(errno));
	close(file);
	sw_status status = sw_plan_write(plan, path, err);
	if (status == SW_OK)
		status = run_plan(c, path, plan->cluster->n_devices, seconds, err);
	unlink(path);
	return status;
}
