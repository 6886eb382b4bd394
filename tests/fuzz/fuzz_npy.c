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
		for (int64_t i = 0; status == SW_OK && i < npy.count; i++)
			sw_npy_get(&npy, i);
	}
	free(text);
	return 0;
}
