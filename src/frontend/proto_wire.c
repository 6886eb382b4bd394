/* The wire format of protobufs: fields of a message. */
#include "frontend/proto.h"

#include <stdarg.h>

static const sw_bytes nothing = {NULL, NULL};

void sw_proto_fail(sw_proto *p, const unsigned char *at, const char *format, ...)
{
	char message[256];
	va_list arguments;
	if (p->status)
		return;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	p->status = sw_fail_at(p->err, SW_ERR_INPUT, p->file, 0, 0, "byte %lld: %s",
	                       (long long)(at - p->begin), message);
}

static uint64_t next_varint(sw_proto *p, sw_bytes *m)
{
	const unsigned char *start = m->at;
	uint64_t value = 0;
	for (int shift = 0; shift < 64 && m->at < m->end; shift += 7) {
		unsigned char byte = *m->at++;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return value;
	}
	sw_proto_fail(p, start, "a number of this protobuf does not end");
	m->at = m->end;
	return 0;
}

/* The byte order on the wire is little-endian. */
static uint64_t next_fixed(sw_proto *p, sw_bytes *m, int bytes)
{
	uint64_t value = 0;
	if (m->end - m->at < bytes) {
		sw_proto_fail(p, m->at, "a number of this protobuf does not end");
		m->at = m->end;
		return 0;
	}
	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)m->at[i] << 8 * i;
	m->at += bytes;
	return value;
}

static sw_bytes next_bytes(sw_proto *p, sw_bytes *m)
{
	const unsigned char *start = m->at;
	uint64_t length = next_varint(p, m);
	if (length > (uint64_t)(m->end - m->at)) {
		sw_proto_fail(p, start,
		              "%llu bytes are announced, and %lld are left: is the file "
		              "whole?",
		              (unsigned long long)length, (long long)(m->end - m->at));
		m->at = m->end;
		return nothing;
	}
	sw_bytes bytes = {m->at, m->at + length};
	m->at = bytes.end;
	return bytes;
}

sw_proto_field sw_proto_next(sw_proto *p, sw_bytes *m)
{
	sw_proto_field f = {0};
	if (m->at == m->end || p->status)
		return f;
	const unsigned char *start = m->at;
	uint64_t tag = next_varint(p, m);
	f.wire = tag & 7;
	if (f.wire == 0)
		f.value = next_varint(p, m);
	else if (f.wire == 1 || f.wire == 5)
		f.value = next_fixed(p, m, f.wire == 1 ? 8 : 4);
	else if (f.wire == 2)
		f.bytes = next_bytes(p, m);
	else
		sw_proto_fail(p, start, "this is no serialised HloModuleProto: no field begins so");
	if (tag >> 3 == 0 || tag >> 32)
		sw_proto_fail(p, start,
		              "this is no serialised HloModuleProto: no field has number "
		              "%llu",
		              (unsigned long long)(tag >> 3));
	f.number = p->status ? 0 : (uint32_t)(tag >> 3);
	return f;
}

sw_proto_field sw_proto_find(sw_proto *p, sw_bytes m, uint32_t number)
{
	sw_proto_field found = {0};
	for (sw_proto_field f; (f = sw_proto_next(p, &m)).number;)
		if (f.number == number)
			found = f;
	return found;
}

int64_t sw_proto_int(sw_proto *p, sw_bytes m, uint32_t number)
{
	return (int64_t)sw_proto_find(p, m, number).value;
}

sw_bytes sw_proto_bytes(sw_proto *p, sw_bytes m, uint32_t number)
{
	return sw_proto_find(p, m, number).bytes;
}

static void add_packed(sw_proto *p, sw_bytes packed, uint8_t wire, sw_proto_numbers *list)
{
	while (packed.at < packed.end) {
		uint64_t value = wire == 0 ? next_varint(p, &packed)
		                           : next_fixed(p, &packed, wire == 1 ? 8 : 4);
		sw_vec_push(list, value);
	}
}

void sw_proto_list(sw_proto *p, sw_bytes m, uint32_t number, uint8_t wire, sw_proto_numbers *list)
{
	for (sw_proto_field f; (f = sw_proto_next(p, &m)).number;) {
		if (f.number != number)
			continue;
		if (f.wire == 2)
			add_packed(p, f.bytes, wire, list);
		else
			sw_vec_push(list, f.value);
	}
}
