/* Reading whole files (gzip too). */
#define _GNU_SOURCE /* tee, pipe2 */
#include "base/base.h"
#include "base/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sw_status system_error(sw_error *err, const char *path, const char *what)
{
	return sw_fail_at(err, SW_ERR_IO, path, 0, 0, "%s: %s", what, strerror(errno));
}

/* Return how many bytes to allocate at first. The size of a file tells it, that of a pipe does not.
 * One extra byte is for the zero, and one so that the end of the file is seen without growing. */
static size_t first_capacity(int fd)
{
	struct stat info;
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0)
		return (size_t)64 << 10;
	return (size_t)info.st_size + 2;
}

sw_status sw_too_large(size_t most, sw_error *err)
{
	sw_text text = {0};
	sw_text_add_bytes(&text, (double)most);
	sw_status status = sw_fail(err, SW_ERR_INPUT,
	                           "too large: at most %s are read of such a file", text.data);
	sw_text_clear(&text);
	return status;
}

static sw_status read_all(int fd, const char *path, size_t most, char **data, size_t *length,
                          sw_error *err)
{
	size_t capacity = SW_MIN(first_capacity(fd), most + 2), used = 0;
	char *buffer = malloc(capacity);
	while (buffer) {
		ssize_t got = read(fd, buffer + used, SW_MIN(capacity - used - 1, most + 1 - used));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			system_error(err, path, "cannot read");
			free(buffer);
			return SW_ERR_IO;
		}
		if (got == 0) {
			buffer[used] = '\0';
			*data = buffer;
			*length = used;
			return SW_OK;
		}
		used += (size_t)got;
		if (used > most) {
			free(buffer);
			return sw_too_large(most, err);
		}
		if (capacity - used < 2)
			sw_try_double(&buffer, &capacity);
	}
	return sw_fail_at(err, SW_ERR_IO, path, 0, 0,
	                  "cannot read: not enough memory for the file");
}

/* ---- opening ---------------------------------------------------------------------------- */

#define MAX_WAIT_S 10.0 /* for a pipe's first writer */
#define POLL_S 0.02

/* Return whether somebody has the pipe open for writing, or had. tee() takes nothing out of it, and
 * says 0 where there is neither a byte nor a writer. */
static bool has_writer(int fd, int scratch)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};
	return poll(&wanted, 1, 0) > 0 || tee(fd, scratch, 1, SPLICE_F_NONBLOCK) != 0;
}

static bool wait_for_writer(int fd)
{
	double until_s = sw_now_s() + MAX_WAIT_S;
	int scratch[2];
	if (pipe2(scratch, O_CLOEXEC) != 0)
		return true;
	bool found = has_writer(fd, scratch[1]);
	for (; !found && sw_now_s() < until_s; found = has_writer(fd, scratch[1]))
		sw_sleep_until(sw_now_s() + POLL_S);
	close(scratch[0]);
	close(scratch[1]);
	return found;
}

sw_status sw_file_open(const char *path, int *descriptor, sw_error *err)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return system_error(err, path, "cannot read");
	bool is_pipe = fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
	if (is_pipe && !wait_for_writer(fd)) {
		close(fd);
		return sw_fail_at(err, SW_ERR_IO, path, 0, 0,
		                  "cannot read: nobody has written to this pipe for %.0f s",
		                  MAX_WAIT_S);
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	*descriptor = fd;
	return SW_OK;
}

/* ---- reading ---------------------------------------------------------------------------- */

sw_status sw_file_read(const char *path, char **data, size_t *length, sw_error *err)
{
	return sw_file_read_most(path, SW_MAX_FILE_BYTES, data, length, err);
}

sw_status sw_file_read_most(const char *path, size_t most, char **data, size_t *length,
                            sw_error *err)
{
	int fd;
	char *raw = NULL;
	size_t raw_length = 0;
	sw_status status = sw_file_open(path, &fd, err);
	if (status != SW_OK)
		return status;
	status = read_all(fd, path, most, &raw, &raw_length, err);
	close(fd);
	if (status != SW_OK)
		return sw_error_in_file(err, status, path);
	if (!sw_is_gzip(raw, raw_length)) {
		*data = raw;
		*length = raw_length;
		return SW_OK;
	}
	status = sw_gunzip(raw, raw_length, most, data, length, err);
	free(raw);
	return sw_error_in_file(err, status, path);
}
