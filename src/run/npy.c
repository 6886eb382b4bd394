#include "run/npy.h"

#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define SHORT_HEADER 10 /* magic, version, u16 length */
#define LONG_HEADER 12  /* versions 2 and 3: u32 length */

static uint64_t little_endian(const uint8_t *bytes, int n)
{
	uint64_t value = 0;
	for (int i = n; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

bool sw_npy_recognise(const char *text, size_t length)
{
	return length >= MAGIC_BYTES && memcmp(text, MAGIC, MAGIC_BYTES) == 0;
}

/* The header is a Python dictionary in a fixed style. Return the text that follows a key, without
 * blanks; NULL if the key is absent. */
static const char *value_of(const char *header, const char *key)
{
	const char *at = strstr(header, key);
	if (!at)
		return NULL;
	at += strlen(key);
	return at + strspn(at, " :");
}

static const struct {
	const char *name;
	int bytes;
	bool is_signed;
} kinds[] = {
	{"'|u1'", 1, false}, {"'|i1'", 1, true},  {"'<i2'", 2, true}, {"'<u2'", 2, false},
	{"'<i4'", 4, true},  {"'<u4'", 4, false}, {"'<i8'", 8, true}, {"'<u8'", 8, false},
};

static sw_status parse_kind(const char *header, sw_npy *npy, sw_error *err)
{
	const char *descr = value_of(header, "'descr'");
	for (size_t i = 0; descr && i < SW_COUNT(kinds); i++) {
		if (strncmp(descr, kinds[i].name, strlen(kinds[i].name)) == 0) {
			npy->bytes = kinds[i].bytes;
			npy->is_signed = kinds[i].is_signed;
			return SW_OK;
		}
	}
	return sw_fail(
		err, SW_ERR_INPUT,
		"its items are %.10s; tokens must be little-endian integers, such as dtype uint16",
		descr ? descr : "unknown");
}

static sw_status parse_count(const char *header, sw_npy *npy, sw_error *err)
{
	const char *shape = value_of(header, "'shape'");
	long long count = -1;
	int end = 0;
	if (!shape || sscanf(shape, "(%lld,)%n", &count, &end) != 1 || !end || count < 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "its shape is %.20s; tokens must have one dimension: flatten them",
		               shape ? shape : "missing");
	npy->count = count;
	return SW_OK;
}

static sw_status parse_header(const char *header, sw_npy *npy, sw_error *err)
{
	sw_status status = parse_kind(header, npy, err);
	return status ? status : parse_count(header, npy, err);
}

sw_status sw_npy_parse(const char *text, size_t length, sw_npy *npy, sw_error *err)
{
	const uint8_t *bytes = (const uint8_t *)text;
	bool is_long = length > MAGIC_BYTES && bytes[MAGIC_BYTES] >= 2;
	size_t fixed = is_long ? LONG_HEADER : SHORT_HEADER;
	if (length < fixed)
		return sw_fail(err, SW_ERR_INPUT, "the file ends in the header of a .npy file");
	size_t header_bytes = (size_t)little_endian(bytes + 8, is_long ? 4 : 2);
	if (header_bytes > length - fixed)
		return sw_fail(err, SW_ERR_INPUT, "the file ends in the header of a .npy file");
	sw_text header = {0};
	sw_text_add_n(&header, text + fixed, header_bytes);
	sw_text_add(&header, "");
	sw_status status = parse_header(header.data ? header.data : "", npy, err);
	sw_text_clear(&header);
	npy->data = bytes + fixed + header_bytes;
	int64_t held = (int64_t)(length - fixed - header_bytes);
	if (status == SW_OK && npy->count > held / npy->bytes)
		return sw_fail(err, SW_ERR_INPUT,
		               "the file ends early: %lld items of %d bytes are announced, %lld "
		               "bytes are there",
		               (long long)npy->count, npy->bytes, (long long)held);
	return status;
}

int64_t sw_npy_get(const sw_npy *npy, int64_t i)
{
	uint64_t value = little_endian(npy->data + i * npy->bytes, npy->bytes);
	if (npy->is_signed) {
		int shift = 64 - 8 * npy->bytes;
		return (int64_t)(value << shift) >> shift;
	}
	return value > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)value;
}
