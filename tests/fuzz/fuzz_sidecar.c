/* The reader of sidecars, on any bytes, beside the program `mlp`. */
#include "frontend/frontend.h"

#include <stdlib.h>

#include "in_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static sw_program *program;
	sw_sidecar sidecar;
	sw_error err = {0};
	if (!program && sw_read_program("tests/programs/mlp.hlo.gz", &program, &err) != SW_OK)
		abort();
	fuzz_file file = fuzz_file_open(data, size);
	sw_status status = sw_sidecar_read(file.path, program, &sidecar, &err);
	if (status == SW_OK)
		sw_sidecar_clear(&sidecar);
	else if (!err.message[0] || err.code != status || status != SW_ERR_INPUT)
		abort();
	fuzz_file_close(&file);
	return 0;
}
