/* Choose the BLAS kernels that fit this processor if the library does not recognise it. */
#include "interpret/interpret.h"

#include <string.h>

char *openblas_get_corename(void);

const char *sw_interpret_blas_core(void)
{
	if (getenv("OPENBLAS_CORETYPE") || strcmp(openblas_get_corename(), "Prescott") != 0)
		return NULL;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return "SkylakeX";
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return "Haswell";
#endif
	return NULL;
}
