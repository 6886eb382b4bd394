/* The gzip reader, on a good header and any bytes after it. */
#include "base/gunzip.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char header[10] = {0x1f, 0x8b, 8};
	char *packed = sw_alloc(sizeof(header) + size), *out = NULL;
	size_t length = 0;
	sw_error err = {0};
	memcpy(packed, header, sizeof(header));
	if (size)
		memcpy(packed + sizeof(header), data, size);
	sw_status status = sw_gunzip(packed, sizeof(header) + size, SW_MAX_FILE_BYTES, &out, &length, &err);
	if (status == SW_OK ? out[length] != 0 : !err.message[0])
		abort();
	free(packed);
	free(out);
	return 0;
}
