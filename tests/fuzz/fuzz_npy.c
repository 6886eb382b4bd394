/* The reader of .npy files, on any bytes: every item that it announces is there. */
#include "run/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_npy npy;
	sw_error err = {0};
	char *text = sw_alloc(size + 1); /* on the heap, so that a look behind its end is seen */
	if (size)
		memcpy(text, data, size);
	if (sw_npy_recognise(text, size)) {
		sw_status status = sw_npy_parse(text, size, &npy, &err);
		if (status != SW_OK &&
		    (!err.message[0] || err.code != status || status != SW_ERR_INPUT))
			abort();
		size_t bytes = status == SW_OK ? (size_t)sw_type_bytes(npy.type) : 0;
		for (int64_t i = 0; status == SW_OK && i < npy.count; i++) {
			char item[16];
			memcpy(item, npy.data + (size_t)i * bytes, bytes);
		}
	}
	free(text);
	return 0;
}
