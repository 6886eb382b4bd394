/* A pseudo-terminal, or a file, replaces standard error while the progress line runs. */
#define _GNU_SOURCE /* posix_openpt */
#include "helpers.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct terminal {
	int saved, master, slave;
} terminal;

static terminal open_terminal(unsigned short columns)
{
	terminal t = {.saved = dup(STDERR_FILENO), .master = posix_openpt(O_RDWR | O_NOCTTY)};
	if (t.master < 0)
		skip();
	assert_int_equal(grantpt(t.master) | unlockpt(t.master), 0);
	t.slave = open(ptsname(t.master), O_RDWR | O_NOCTTY);
	assert_true(t.slave >= 0);
	ioctl(t.slave, TIOCSWINSZ, &(struct winsize){.ws_row = 24, .ws_col = columns});
	dup2(t.slave, STDERR_FILENO);
	return t;
}

/* Close the terminal and return what was written to it so far. */
static char *close_terminal(terminal t)
{
	static char written[4096];
	size_t length = 0;
	ssize_t got;
	fflush(stderr);
	dup2(t.saved, STDERR_FILENO);
	close(t.saved);
	close(t.slave); /* the last one, so that reading ends where the text does */
	while ((got = read(t.master, written + length, sizeof(written) - 1 - length)) > 0)
		length += (size_t)got;
	written[length] = '\0';
	close(t.master);
	return written;
}

static void a_terminal_sees_a_line_that_is_wiped(void **state)
{
	(void)state;
	terminal t = open_terminal(80);
	sw_progress progress;
	sw_progress_start(&progress, "solving", false);
	sw_progress_update(&progress, 0.25, "gap %d%%", 7);
	sw_progress_end(&progress);
	assert_string_equal(close_terminal(t), "\r\033[Ksolving  25%  0 s  gap 7%\r\033[K");
	assert_false(progress.active);
}

static void a_line_is_redrawn_at_most_ten_times_a_second(void **state)
{
	(void)state;
	terminal t = open_terminal(80);
	sw_progress progress;
	sw_progress_start(&progress, "p", false);
	double start = sw_now_s();
	for (int i = 0; i < 1000; i++)
		sw_progress_update(&progress, i / 1000.0, "%d", i);
	double passed = sw_now_s() - start;
	const char *written = close_terminal(t);
	int lines = 0;
	for (const char *at = written; (at = strstr(at, "\r\033[K")); at++)
		lines++;
	assert_in_range(lines, 1, 1 + (int)(passed / 0.1));
}

static void a_line_is_no_wider_than_the_terminal(void **state)
{
	(void)state;
	terminal t = open_terminal(12);
	sw_progress progress;
	sw_progress_start(&progress, "a rather long label", false);
	sw_progress_update(&progress, 2, "and a note");
	assert_string_equal(close_terminal(t), "\r\033[Ka rather lo");
}

static void quiet_is_quiet(void **state)
{
	(void)state;
	terminal t = open_terminal(80);
	sw_progress progress;
	sw_progress_start(&progress, "p", true);
	sw_progress_update(&progress, 0.5, "x");
	sw_progress_end(&progress);
	assert_string_equal(close_terminal(t), "");
}

static void a_file_sees_nothing(void **state)
{
	(void)state;
	int saved = dup(STDERR_FILENO),
	    file = open(scratch_path("stderr"), O_RDWR | O_CREAT | O_TRUNC, 0666);
	dup2(file, STDERR_FILENO);
	sw_progress progress;
	sw_progress_start(&progress, "p", false);
	sw_progress_update(&progress, 0.5, "x");
	sw_progress_end(&progress);
	fflush(stderr);
	off_t written = lseek(file, 0, SEEK_END);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(file);
	assert_int_equal(written, 0);
	assert_false(progress.active);
}

static int remove_scratch(void **state)
{
	(void)state;
	scratch_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_terminal_sees_a_line_that_is_wiped),
		cmocka_unit_test(a_line_is_redrawn_at_most_ten_times_a_second),
		cmocka_unit_test(a_line_is_no_wider_than_the_terminal),
		cmocka_unit_test(quiet_is_quiet),
		cmocka_unit_test(a_file_sees_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
