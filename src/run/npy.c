#include "run/npy.h"

#include <stdlib.h>
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
	sw_type type;
} kinds[] = {
	{"'|b1'", SW_PRED}, {"'|u1'", SW_U8},  {"'|i1'", SW_S8},  {"'<i2'", SW_S16},
	{"'<u2'", SW_U16},  {"'<i4'", SW_S32}, {"'<u4'", SW_U32}, {"'<i8'", SW_S64},
	{"'<u8'", SW_U64},  {"'<f2'", SW_F16}, {"'<f4'", SW_F32}, {"'<f8'", SW_F64},
	{"'<c8'", SW_C64},
};

static sw_status parse_kind(const char *header, sw_npy *npy, sw_error *err)
{
	const char *descr = value_of(header, "'descr'");
	for (size_t i = 0; descr && i < SW_COUNT(kinds); i++) {
		if (strncmp(descr, kinds[i].name, strlen(kinds[i].name)) == 0) {
			npy->type = kinds[i].type;
			return SW_OK;
		}
	}
	return sw_fail(err, SW_ERR_INPUT,
	               "its items are %.10s; they must be little-endian numbers, such as dtype "
	               "float32 or uint16",
	               descr ? descr : "unknown");
}

/* Read "(3, 4)", "(3,)" or "()". */
static sw_status parse_shape(const char *header, sw_npy *npy, sw_error *err)
{
	const char *shape = value_of(header, "'shape'"), *at = shape;
	npy->count = 1;
	npy->rank = 0;
	for (at = at && *at == '(' ? at + 1 : NULL; at && *at != ')';) {
		char *end;
		long long dim = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : -1;
		bool good = dim >= 0 && npy->rank < SW_MAX_RANK &&
		            sw_mul_i64(npy->count, dim, &npy->count);
		if (good)
			npy->dims[npy->rank++] = dim;
		at = good ? end + strspn(end, ", ") : NULL;
	}
	if (at)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT, "its shape is %.20s; expected one such as (1000, 784)",
	               shape ? shape : "missing");
}

static sw_status parse_header(const char *header, sw_npy *npy, sw_error *err)
{
	const char *order = value_of(header, "'fortran_order'");
	SW_TRY(parse_kind(header, npy, err));
	npy->column_major = order && strncmp(order, "True", 4) == 0;
	return parse_shape(header, npy, err);
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
	if (status)
		return status;
	npy->data = text + fixed + header_bytes;
	int64_t held = (int64_t)(length - fixed - header_bytes), item = sw_type_bytes(npy->type);
	if (npy->count > held / item)
		return sw_fail(err, SW_ERR_INPUT,
		               "the file ends early: %lld items of %lld bytes are announced, %lld "
		               "bytes are there",
		               (long long)npy->count, (long long)item, (long long)held);
	return SW_OK;
}

void sw_npy_copy_item(const sw_npy *npy, int64_t item, char *out)
{
	size_t bytes = (size_t)sw_type_bytes(npy->type);
	int64_t n = npy->count / npy->dims[0], index[SW_MAX_RANK] = {item};
	for (int64_t e = 0; e < n; e++) {
		int64_t place = 0;
		for (int32_t d = npy->rank; d-- > 0;)
			place = place * npy->dims[d] + index[d];
		memcpy(out + (size_t)e * bytes, npy->data + (size_t)place * bytes, bytes);
		for (int32_t d = npy->rank; d-- > 1 && ++index[d] == npy->dims[d];)
			index[d] = 0;
	}
}
