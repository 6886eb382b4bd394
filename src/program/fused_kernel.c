/* What a fusion runs as. */
#include "program/program.h"

#include <string.h>

#define ROW(NAME, name, kind) [SW_FUSED_##NAME] = {name, kind},
static const struct {
	const char *name, *kind;
} kernels[SW_FUSED_COUNT] = {SW_FUSED_KERNELS(ROW)};
#undef ROW

const char *sw_fused_kernel_name(sw_fused_kernel kernel)
{
	return kernels[kernel].name;
}

const char *sw_fused_kernel_kind(sw_fused_kernel kernel)
{
	return kernels[kernel].kind;
}

sw_fused_kernel sw_fused_kernel_of(const sw_op *op)
{
	const char *name = op->opcode == SW_OP_FUSION && op->attrs ? op->attrs->fusion.kernel : NULL;
	int kernel = name ? 0 : SW_FUSED_COUNT;
	while (kernel < SW_FUSED_COUNT && strcmp(kernels[kernel].name, name) != 0)
		kernel++;
	return (sw_fused_kernel)kernel;
}
