/* The bytes of a file or of memory, piece by piece; gzip is unpacked by zlib's inflate. */
#include "base/base.h"
#include "base/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* 15: the largest window; 16: require a gzip header and check it */
#define PIECE ((size_t)64 << 10)   /* bytes per read */
#define MAX_STEP ((size_t)1 << 30) /* bytes per call of zlib, which counts in unsigned int */

typedef enum place { IN_MEMBER, AFTER_MEMBER, IN_PADDING } place;

struct sw_source {
	int fd;           /* -1: the source is in memory */
	char *piece;      /* buffer for a file's bytes */
	const char *next; /* bytes that were read and not used yet */
	size_t left;
	bool at_end; /* nothing follows the `left` bytes */
	bool packed;
	place place;
	z_stream stream;
	double size, taken; /* bytes of the file; size 0: unknown */
};

/* ---- raw bytes -------------------------------------------------------------------------- */

static sw_status take_piece(sw_source *s, sw_error *err)
{
	ssize_t got;
	while (s->left == 0 && !s->at_end) {
		got = read(s->fd, s->piece, PIECE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return sw_fail(err, SW_ERR_IO, "cannot read: %s", strerror(errno));
		s->next = s->piece;
		s->left = (size_t)got;
		s->taken += (double)got;
		s->at_end = got == 0;
	}
	return SW_OK;
}

/* Read the two bytes that identify gzip. A pipe may deliver them one by one. */
static sw_status take_magic(sw_source *s, sw_error *err)
{
	sw_status status = take_piece(s, err);
	if (status || s->left != 1 || s->at_end)
		return status;
	ssize_t got;
	do
		got = read(s->fd, s->piece + 1, PIECE - 1);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return sw_fail(err, SW_ERR_IO, "cannot read: %s", strerror(errno));
	s->left += (size_t)got;
	s->taken += (double)got;
	s->at_end = got == 0;
	return SW_OK;
}

/* ---- opening and closing ---------------------------------------------------------------- */

static sw_status begin(sw_source *s, sw_error *err)
{
	s->packed = sw_is_gzip(s->next, s->left);
	if (s->packed && inflateInit2(&s->stream, GZIP_WINDOW) != Z_OK) {
		s->packed = false;
		return sw_fail(err, SW_ERR_IO,
		               "cannot read: not enough memory to unpack the gzip data");
	}
	return SW_OK;
}

sw_status sw_source_open(const char *path, sw_source **source, sw_error *err)
{
	struct stat info;
	int fd;
	sw_status status = sw_file_open(path, &fd, err);
	if (status != SW_OK)
		return status;
	sw_source *s = sw_alloc(sizeof(*s));
	s->fd = fd;
	s->piece = sw_alloc(PIECE);
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
		s->size = (double)info.st_size;
	status = take_magic(s, err);
	if (status == SW_OK)
		status = begin(s, err);
	if (status) {
		sw_source_close(s);
		return sw_error_in_file(err, status, path);
	}
	*source = s;
	return SW_OK;
}

sw_source *sw_source_memory(const char *data, size_t length)
{
	sw_source *s = sw_alloc(sizeof(*s));
	*s = (sw_source){.fd = -1, .next = data, .left = length, .at_end = true};
	s->size = s->taken = (double)length;
	if (begin(s, NULL) != SW_OK) {
		sw_source_close(s);
		return NULL;
	}
	return s;
}

void sw_source_close(sw_source *source)
{
	if (!source)
		return;
	if (source->packed)
		inflateEnd(&source->stream);
	if (source->fd >= 0)
		close(source->fd);
	free(source->piece);
	free(source);
}

bool sw_source_is_gzip(const sw_source *source)
{
	return source->packed;
}

double sw_source_fraction(const sw_source *source)
{
	return source->size > 0 ? (source->taken - (double)source->left) / source->size : 0;
}

/* ---- reading ---------------------------------------------------------------------------- */

static void use(sw_source *s, size_t bytes)
{
	s->next += bytes;
	s->left -= bytes;
}

static sw_status explain(const sw_source *s, int answer, sw_error *err)
{
	if (answer == Z_MEM_ERROR)
		return sw_fail(err, SW_ERR_IO,
		               "cannot read: not enough memory to unpack the gzip data");
	if (answer == Z_BUF_ERROR)
		return sw_fail(err, SW_ERR_INPUT,
		               "truncated gzip data: the file ends in the middle; copy it again");
	return sw_fail(err, SW_ERR_INPUT, "corrupt gzip data: %s",
	               s->stream.msg ? s->stream.msg : "unknown trouble");
}

/* Skip what stands between members: another one may follow at once, or zeros up to the end (tape
 * padding). *done: the end was reached. */
static sw_status pass_gap(sw_source *s, bool *done, sw_error *err)
{
	*done = s->left == 0;
	if (*done)
		return SW_OK;
	if (s->place == AFTER_MEMBER && *s->next) {
		s->place = IN_MEMBER;
		return inflateReset(&s->stream) == Z_OK ? SW_OK : explain(s, Z_STREAM_ERROR, err);
	}
	s->place = IN_PADDING;
	while (s->left && !*s->next)
		use(s, 1);
	return s->left ? sw_fail(err, SW_ERR_INPUT, "corrupt gzip data: incorrect header check")
	               : SW_OK;
}

/* Call inflate once. If it makes no progress at the end of the input, the data are incomplete. */
static sw_status inflate_some(sw_source *s, char *buffer, size_t capacity, size_t *got,
                              sw_error *err)
{
	uInt shown = (uInt)SW_MIN(s->left, MAX_STEP), space = (uInt)SW_MIN(capacity, MAX_STEP);
	s->stream.next_in = (Bytef *)s->next;
	s->stream.avail_in = shown;
	s->stream.next_out = (Bytef *)buffer;
	s->stream.avail_out = space;
	int answer = inflate(&s->stream, Z_NO_FLUSH);
	use(s, shown - s->stream.avail_in);
	*got = space - s->stream.avail_out;
	if (answer == Z_STREAM_END)
		s->place = AFTER_MEMBER;
	else if (answer != Z_OK)
		return explain(s, answer, err);
	return SW_OK;
}

static sw_status read_packed(sw_source *s, char *buffer, size_t capacity, size_t *got,
                             sw_error *err)
{
	bool done = false;
	sw_status status = SW_OK;
	while (status == SW_OK && !*got && !done) {
		status = take_piece(s, err);
		if (status == SW_OK)
			status = s->place == IN_MEMBER ? inflate_some(s, buffer, capacity, got, err)
			                               : pass_gap(s, &done, err);
	}
	return status;
}

static sw_status read_plain(sw_source *s, char *buffer, size_t capacity, size_t *got, sw_error *err)
{
	sw_status status = take_piece(s, err);
	*got = SW_MIN(capacity, s->left);
	if (status == SW_OK && *got) {
		memcpy(buffer, s->next, *got);
		use(s, *got);
	}
	return status;
}

sw_status sw_source_read(sw_source *source, char *buffer, size_t capacity, size_t *got,
                         sw_error *err)
{
	*got = 0;
	return source->packed ? read_packed(source, buffer, capacity, got, err)
	                      : read_plain(source, buffer, capacity, got, err);
}
