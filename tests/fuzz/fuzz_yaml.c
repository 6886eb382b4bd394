/* The YAML reader, on any bytes. */
#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_arena arena = {0};
	const sw_yaml *root = NULL;
	sw_error err = {0};
	if (sw_yaml_parse((const char *)data, size, &arena, &root, &err) == SW_OK ? !root
	                                                                          : !err.message[0])
		abort();
	sw_arena_clear(&arena);
	return 0;
}
