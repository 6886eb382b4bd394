/* gzip, by zlib's inflate. */
#include "base/gunzip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest window; 16 asks for a gzip header, checked */

bool sw_is_gzip(const char *data, size_t length)
{
	return length >= 2 && (unsigned char)data[0] == 0x1f && (unsigned char)data[1] == 0x8b;
}

void sw_try_double(char **buffer, size_t *room)
{
	char *grown = *room <= SIZE_MAX / 2 ? realloc(*buffer, *room * 2) : NULL;
	if (grown)
		*room *= 2;
	else
		free(*buffer);
	*buffer = grown;
}

typedef struct unpacker {
	z_stream stream;
	size_t rest; /* input that the stream has not been shown yet */
	char *out;
	size_t room, used;
} unpacker;

/* zlib counts in unsigned int; larger data are shown piece by piece. */
static void show_more_input(unpacker *u)
{
	if (u->stream.avail_in || !u->rest)
		return;
	uInt piece = (uInt)SW_MIN(u->rest, (size_t)1 << 30);
	u->stream.avail_in = piece;
	u->rest -= piece;
}

/* One call of inflate, with room for at least one byte of output and one for the closing zero. */
static int inflate_some(unpacker *u)
{
	if (u->room - u->used < 2)
		sw_try_double(&u->out, &u->room);
	if (!u->out)
		return Z_MEM_ERROR;
	uInt space = (uInt)SW_MIN(u->room - u->used - 1, (size_t)1 << 30);
	u->stream.next_out = (Bytef *)u->out + u->used;
	u->stream.avail_out = space;
	int answer = inflate(&u->stream, Z_NO_FLUSH);
	u->used += space - u->stream.avail_out;
	return answer;
}

static bool only_zeros_left(const unpacker *u)
{
	size_t left = u->stream.avail_in + u->rest;
	for (size_t i = 0; i < left; i++)
		if (u->stream.next_in[i])
			return false;
	return true;
}

static sw_status explain(const unpacker *u, int answer, sw_error *err)
{
	if (answer == Z_MEM_ERROR)
		return sw_fail(err, SW_ERR_IO, "cannot read: not enough memory to unpack the gzip data");
	if (answer == Z_BUF_ERROR)
		return sw_fail(err, SW_ERR_INPUT,
		               "truncated gzip data: the file ends in the middle; copy it again");
	return sw_fail(err, SW_ERR_INPUT, "corrupt gzip data: %s",
	               u->stream.msg ? u->stream.msg : "unknown trouble");
}

static sw_status unpack(unpacker *u, sw_error *err)
{
	for (;;) {
		show_more_input(u);
		int answer = inflate_some(u);
		if (answer == Z_STREAM_END) {
			if (only_zeros_left(u))
				return SW_OK;
			answer = inflateReset(&u->stream);
		}
		if (answer != Z_OK)
			return explain(u, answer, err);
	}
}

sw_status sw_gunzip(const char *data, size_t length, char **out, size_t *out_length, sw_error *err)
{
	unpacker u = {.stream.next_in = (Bytef *)data, .rest = length, .room = 4096};
	u.room = length < SIZE_MAX / 4 ? 4 * length + 4096 : 4096;
	u.out = malloc(u.room);
	if (!u.out || inflateInit2(&u.stream, GZIP_WINDOW) != Z_OK) {
		free(u.out);
		return sw_fail(err, SW_ERR_IO, "cannot read: not enough memory to unpack the gzip data");
	}
	sw_status status = unpack(&u, err);
	inflateEnd(&u.stream);
	if (status != SW_OK) {
		free(u.out);
		return status;
	}
	u.out[u.used] = '\0';
	*out = u.out;
	*out_length = u.used;
	return SW_OK;
}
