/* Unpacking gzip in memory, in one call. */
#include "base/gunzip.h"

#include <string.h>

bool sw_is_gzip(const char *data, size_t length)
{
	return length >= 2 && (unsigned char)data[0] == 0x1f && (unsigned char)data[1] == 0x8b;
}

void sw_try_double(char **buffer, size_t *capacity)
{
	char *grown = *capacity <= SIZE_MAX / 2 ? realloc(*buffer, *capacity * 2) : NULL;
	if (grown)
		*capacity *= 2;
	else
		free(*buffer);
	*buffer = grown;
}

typedef struct unpacked {
	char *out;
	size_t capacity, used;
} unpacked;

static sw_status no_memory(sw_error *err)
{
	return sw_fail(err, SW_ERR_IO, "cannot read: not enough memory to unpack the gzip data");
}

/* Unpack the source. One byte stays free for the closing zero. */
static sw_status unpack(sw_source *source, size_t most, unpacked *u, sw_error *err)
{
	size_t got = 1;
	sw_status status = SW_OK;
	while (status == SW_OK && got) {
		if (u->capacity - u->used < 2)
			sw_try_double(&u->out, &u->capacity);
		if (!u->out)
			return no_memory(err);
		status = sw_source_read(source, u->out + u->used,
		                        SW_MIN(u->capacity - u->used - 1, most + 1 - u->used), &got,
		                        err);
		u->used += got;
		if (status == SW_OK && u->used > most)
			return sw_too_large(most, err);
	}
	return status;
}

sw_status sw_gunzip(const char *data, size_t length, size_t most, char **out, size_t *out_length,
                    sw_error *err)
{
	unpacked u = {.capacity = SW_MIN(length, most / 4) * 4 + 4096};
	sw_source *source = sw_source_memory(data, length);
	u.out = malloc(u.capacity);
	sw_status status = source && u.out ? unpack(source, most, &u, err) : no_memory(err);
	sw_source_close(source);
	if (status != SW_OK) {
		free(u.out);
		return status;
	}
	u.out[u.used] = '\0';
	*out = u.out;
	*out_length = u.used;
	return SW_OK;
}
