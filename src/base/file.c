/* Whole files: read (gzip too), written all or nothing. */
#include "base/base.h"
#include "base/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sw_status system_error(sw_error *err, const char *path, const char *what)
{
	return sw_fail_at(err, SW_ERR_IO, path, 0, 0, "%s: %s", what, strerror(errno));
}

/* ---- reading ---- */

/* How much to make room for at first: a file's size says it, a pipe's does not. One byte for the
 * zero, one so that the end of the file is seen without growing. */
static size_t first_room(int fd)
{
	struct stat info;
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0)
		return (size_t)64 << 10;
	return (size_t)info.st_size + 2;
}

static sw_status read_all(int fd, const char *path, char **data, size_t *length, sw_error *err)
{
	size_t room = first_room(fd), used = 0;
	char *buffer = malloc(room);
	while (buffer) {
		ssize_t got = read(fd, buffer + used, room - used - 1);
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
		if (room - used < 2)
			sw_try_double(&buffer, &room);
	}
	return sw_fail_at(err, SW_ERR_IO, path, 0, 0, "cannot read: not enough memory for the file");
}

sw_status sw_file_read(const char *path, char **data, size_t *length, sw_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return system_error(err, path, "cannot read");
	char *raw = NULL;
	size_t raw_length = 0;
	sw_status status = read_all(fd, path, &raw, &raw_length, err);
	close(fd);
	if (status != SW_OK)
		return status;
	if (!sw_is_gzip(raw, raw_length)) {
		*data = raw;
		*length = raw_length;
		return SW_OK;
	}
	status = sw_gunzip(raw, raw_length, data, length, err);
	free(raw);
	return sw_error_in_file(err, status, path);
}

/* ---- writing ---- */

static bool write_all(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t put = write(fd, data, length);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return false;
		data += put;
		length -= (size_t)put;
	}
	return true;
}

static sw_status write_standard_output(const char *data, size_t length, sw_error *err)
{
	if (fwrite(data, 1, length, stdout) != length || fflush(stdout) != 0)
		return sw_fail(err, SW_ERR_IO, "cannot write to standard output: %s", strerror(errno));
	return SW_OK;
}

/* A device or a pipe can't be replaced by a rename. */
static bool is_special(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static sw_status write_special(const char *path, const char *data, size_t length, sw_error *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return system_error(err, path, "cannot write");
	bool good = write_all(fd, data, length);
	sw_status status = good ? SW_OK : system_error(err, path, "cannot write");
	close(fd);
	return status;
}

/* Opens a new file beside the target, with the permissions that the user's mask gives. */
static int open_beside(const char *target, sw_text *name)
{
	for (int attempt = 0; attempt < 100; attempt++) {
		sw_text_clear(name);
		sw_text_addf(name, "%s.tmp-%ld-%d", target, (long)getpid(), attempt);
		int fd = open(name->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

/* The data reach the disk before the name does: after a crash the file is the old one or the new. */
static bool write_and_sync(int fd, const char *data, size_t length)
{
	bool good = write_all(fd, data, length);
	good = good && (fsync(fd) == 0 || errno == EINVAL);
	int reason = errno;
	good = close(fd) == 0 && good;
	if (!good && reason)
		errno = reason;
	return good;
}

static sw_status replace(const char *path, const char *data, size_t length, sw_error *err)
{
	sw_text name = {0};
	char *real = realpath(path, NULL); /* through a link to the file that it names */
	const char *target = real ? real : path;
	sw_status status = SW_OK;
	int fd = open_beside(target, &name);
	if (fd < 0) {
		status = system_error(err, path, "cannot write");
	} else if (!write_and_sync(fd, data, length) || rename(name.data, target) != 0) {
		status = system_error(err, path, "cannot write");
		unlink(name.data);
	}
	free(real);
	sw_text_clear(&name);
	return status;
}

sw_status sw_file_write(const char *path, const char *data, size_t length, sw_error *err)
{
	if (!path || !path[0] || strcmp(path, "-") == 0)
		return write_standard_output(data, length, err);
	if (is_special(path))
		return write_special(path, data, length, err);
	return replace(path, data, length, err);
}
