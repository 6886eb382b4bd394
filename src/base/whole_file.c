/* Reading whole files (gzip too). */
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

/* Return how many bytes to allocate at first. The size of a file tells it, that of a pipe does not.
 * One extra byte is for the zero, and one so that the end of the file is seen without growing. */
static size_t first_capacity(int fd)
{
	struct stat info;
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0)
		return (size_t)64 << 10;
	return (size_t)info.st_size + 2;
}

static sw_status read_all(int fd, const char *path, char **data, size_t *length, sw_error *err)
{
	size_t capacity = first_capacity(fd), used = 0;
	char *buffer = malloc(capacity);
	while (buffer) {
		ssize_t got = read(fd, buffer + used, capacity - used - 1);
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
		if (capacity - used < 2)
			sw_try_double(&buffer, &capacity);
	}
	return sw_fail_at(err, SW_ERR_IO, path, 0, 0,
	                  "cannot read: not enough memory for the file");
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
