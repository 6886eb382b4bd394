/* Writing files all or nothing, whole or piece by piece. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sw_sink {
	int fd;
	int failure;    /* errno of the first failed write; 0: none */
	char *path;     /* as given by the caller */
	char *target;   /* the file that the temporary becomes; NULL: written in place */
	sw_text beside; /* name of the temporary; empty: it has none yet */
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

/* Return the folder of a file, to be freed by the caller. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

int sw_file_why_not_writable(const char *path)
{
	struct stat info;
	bool exists = stat(path, &info) == 0;
	if (exists && S_ISDIR(info.st_mode))
		return EISDIR;
	if (exists && (!(info.st_mode & 0222) || access(path, W_OK) != 0))
		return EACCES; /* the superuser may, and should not */
	if (exists && !S_ISREG(info.st_mode))
		return 0;
	char *folder = folder_of(path);
	int reason = access(folder, W_OK | X_OK) == 0 ? 0 : errno;
	free(folder);
	return reason;
}

/* Call make(context, name) with names beside the target until one is new; return what it did. */
static int name_beside(const char *target, sw_text *name, int (*make)(void *, const char *),
                       void *context)
{
	for (int attempt = 0; attempt < 100; attempt++) {
		sw_text_clear(name);
		sw_text_addf(name, "%s.tmp-%ld-%d", target, (long)getpid(), attempt);
		int made = make(context, name->data);
		if (made >= 0 || errno != EEXIST)
			return made;
	}
	return -1;
}

static int create(void *context, const char *name)
{
	(void)context;
	return open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Give a file without a name one. */
static int link_to(void *context, const char *name)
{
	char from[64];
	snprintf(from, sizeof(from), "/proc/self/fd/%d", *(const int *)context);
	return linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Open a new file in the target's folder, with the permissions that the user's mask gives or the
 * replaced file has. */
static void open_beside(sw_sink *sink)
{
	struct stat old;
	char *folder = folder_of(sink->target);
	sink->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	free(folder);
	if (sink->fd < 0)
		sink->fd = name_beside(sink->target, &sink->beside, create, NULL);
	if (sink->fd >= 0 && stat(sink->target, &old) == 0)
		(void)fchmod(sink->fd, old.st_mode & 07777);
}

/* Return the file that a path names through links, whether it exists or not; the caller frees
 * it. */
static char *follow_links(const char *path)
{
	char *real = realpath(path, NULL), to[PATH_MAX];
	if (real)
		return real;
	ssize_t length = readlink(path, to, sizeof(to) - 1);
	if (length <= 0)
		return strdup(path);
	char *folder = folder_of(path);
	sw_text joined = {0};
	sw_text_addf(&joined, "%s%.*s", to[0] == '/' ? "" : folder, (int)length, to);
	free(folder);
	return joined.data;
}

static void open_file(sw_sink *sink)
{
	int reason = sw_file_why_not_writable(sink->path);
	if (reason) {
		errno = reason;
		return;
	}
	if (is_special(sink->path)) {
		sink->fd = open(sink->path, O_WRONLY | O_CLOEXEC);
		return;
	}
	sink->target = follow_links(sink->path);
	if (sink->target)
		open_beside(sink);
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
	s->fd = -1;
	if (is_standard_output(path)) {
		s->fd = STDOUT_FILENO;
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

/* Overwrite the target with what was written, for all of its names. Returns -1, with errno, if that
 * fails. */
static int overwrite(const sw_sink *sink)
{
	char piece[64 << 10];
	ssize_t got = 0, put = 0;
	int to = open(sink->target, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (to < 0)
		return -1;
	for (off_t at = 0; put >= 0 && (got = pread(sink->fd, piece, sizeof(piece), at)) > 0;
	     at += put)
		put = write(to, piece, (size_t)got);
	bool failed = got < 0 || put < 0 || fsync(to) != 0;
	return close(to) != 0 || failed ? -1 : 0;
}

/* Make the temporary file the target. */
static int take_place(sw_sink *sink)
{
	struct stat old;
	if (stat(sink->target, &old) == 0 && old.st_nlink > 1)
		return overwrite(sink);
	if (!sink->beside.len && name_beside(sink->target, &sink->beside, link_to, &sink->fd) < 0) {
		sw_text_clear(&sink->beside);
		return -1;
	}
	int placed = rename(sink->beside.data, sink->target);
	if (placed == 0)
		sw_text_clear(&sink->beside);
	return placed;
}

/* Put the file in place. The data reach the disk before the name does, so that after a crash the
 * file is either the old one or the new one. */
static void settle(sw_sink *sink)
{
	if (!sink->failure && sink->target && fsync(sink->fd) != 0 && errno != EINVAL)
		sink->failure = errno;
	if (!sink->failure && sink->target && take_place(sink) != 0)
		sink->failure = errno;
	if (sink->beside.len)
		unlink(sink->beside.data);
	if (sink->path && close(sink->fd) != 0 && !sink->failure)
		sink->failure = errno;
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
