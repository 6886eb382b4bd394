/* What is found out of a program that was read, on any bytes: pairs of results and inputs, and the
 * sidecar that is made of the program alone. Every pair is of one shape, and no input is replaced
 * twice. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "frontend/frontend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pairs(const sw_program *program, const sw_sidecar *sidecar)
{
	bool *taken = calloc(sidecar->n_inputs + 1, sizeof(*taken));
	for (size_t a = 0; a < program->aliases.len; a++) {
		sw_alias alias = program->aliases.data[a];
		assert(alias.input < sidecar->n_inputs && !taken[alias.input]);
		assert(sidecar->outputs[alias.output].input == (int32_t)alias.input);
		taken[alias.input] = true;
	}
	free(taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_program *program = NULL;
	sw_sidecar sidecar;
	sw_error err = {0};
	if (sw_read_program_text((const char *)data, size, "none/fuzz.hlo", &program, &err) !=
	    SW_OK)
		return 0;
	sw_sidecar_default(program, &sidecar);
	check_pairs(program, &sidecar);
	sw_find_loss(program, &sidecar);
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
	return 0;
}
