/* Writing files all or nothing, whole or piece by piece. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sw_sink {
	int fd;
	int failure;  /* errno of the first failed write; 0: none */
	char *path;   /* as given by the caller */
	char *target; /* the file that the temporary becomes; NULL: written in place */
	sw_text beside;
};

static sw_status cannot_write(sw_error *err, const char *path, int reason)
{
	return sw_fail_at(err, SW_ERR_IO, path, 0, 0, "cannot write: %s", strerror(reason));
}

static bool is_standard_output(const char *path)
{
	return !path || !path[0] || strcmp(path, "-") == 0;
}

/* Return whether the path is a device or a pipe, which cannot be replaced by a rename. */
static bool is_special(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

/* Open a new file beside the target, with the permissions that the user's mask gives. */
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

static void open_file(sw_sink *sink)
{
	if (is_special(sink->path)) {
		sink->fd = open(sink->path, O_WRONLY | O_CLOEXEC);
		return;
	}
	char *real = realpath(sink->path, NULL); /* follows a link to the file that it names */
	sink->target = real ? real : strdup(sink->path);
	sink->fd = sink->target ? open_beside(sink->target, &sink->beside) : -1;
}

static void sink_free(sw_sink *sink)
{
	sw_text_clear(&sink->beside);
	free(sink->target);
	free(sink->path);
	free(sink);
}

sw_status sw_sink_open(const char *path, sw_sink **sink, sw_error *err)
{
	sw_sink *s = sw_alloc(sizeof(*s));
	sw_status status = SW_OK;
	s->fd = STDOUT_FILENO;
	if (is_standard_output(path)) {
		s->failure = fflush(stdout) == 0 ? 0 : errno;
	} else {
		sw_text name = {0};
		sw_text_add(&name, path);
		s->path = name.data;
		open_file(s);
	}
	if (s->fd < 0) {
		status = cannot_write(err, path, errno);
		sink_free(s);
		s = NULL;
	}
	*sink = s;
	return status;
}

void sw_sink_put(sw_sink *sink, const char *data, size_t length)
{
	while (length && !sink->failure) {
		ssize_t put = write(sink->fd, data, length);
		if (put < 0 && errno != EINTR)
			sink->failure = errno;
		if (put < 0)
			continue;
		data += put;
		length -= (size_t)put;
	}
}

/* Put the file in place. The data reach the disk before the name does, so that after a crash the
 * file is either the old one or the new one. */
static void settle(sw_sink *sink)
{
	if (!sink->failure && sink->target && fsync(sink->fd) != 0 && errno != EINVAL)
		sink->failure = errno;
	if (sink->path && close(sink->fd) != 0 && !sink->failure)
		sink->failure = errno;
	if (!sink->target)
		return;
	if (!sink->failure && rename(sink->beside.data, sink->target) != 0)
		sink->failure = errno;
	if (sink->failure)
		unlink(sink->beside.data);
}

sw_status sw_sink_close(sw_sink *sink, sw_error *err)
{
	sw_status status = SW_OK;
	settle(sink);
	if (sink->failure && sink->path)
		status = cannot_write(err, sink->path, sink->failure);
	else if (sink->failure)
		status = sw_fail(err, SW_ERR_IO, "cannot write to standard output: %s",
		                 strerror(sink->failure));
	sink_free(sink);
	return status;
}

sw_status sw_file_write(const char *path, const char *data, size_t length, sw_error *err)
{
	sw_sink *sink;
	sw_status status = sw_sink_open(path, &sink, err);
	if (status != SW_OK)
		return status;
	sw_sink_put(sink, data, length);
	return sw_sink_close(sink, err);
}
