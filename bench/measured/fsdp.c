/*
 * What Composer and PyTorch's fully sharded data parallelism move that no plan has (rows of
 * llm-foundry, PyTorch 2.1, Composer 0.16 and 0.17).
 *
 * The weights of a block are views of one flat array, so that autograd concatenates their gradients
 * (torch.split's backward). With Composer's mixed_precision DEFAULT sums over devices are in f32: the
 * flat gradient is converted, divided in place by a part of the number of devices
 * (_runtime_utils.py, _post_backward_hook), and sent. This is done for each microbatch. Weights at rest
 * are in f32, and a device's part of them is converted before each all-gather.
 *
 * DecoupledAdamW (composer/optim/decoupled_weight_decay.py) has a kernel for each of its steps, where a
 * plan has one for all.
 *
 * These kernels run on the device beside its others, and are bound by memory.
 */
#include "measured.h"

/* Bytes read and written, per weight of the model, of each microbatch's gradient. */
#define CONCATENATED (2 + 2)
#define CONVERTED (2 + 4)
#define DIVIDED (4 + 4)
/* Per weight that the device has at rest: before each all-gather; and of a step: moments are scaled and
 * added to, a root, a quotient, epsilon, the update; gradients are scaled to clip them. */
#define CONVERTED_BACK (4 + 2)
#define OPTIMIZER (8 + 12 + 8 + 12 + 8 + 8 + 8 + 16 + 8)
/* What a plan's fused kernel of the optimizer moves: gradient, moments and two copies of the weight. */
#define FUSED_OPTIMIZER (2 + 3 * 4 + 3 * 4 + 2)

static double weights_of(const subject *s)
{
	const sw_id *inputs;
	sw_arena arena = {0};
	double weights = 0;
	uint32_t n = sw_program_inputs(s->program, s->program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n && i < s->sidecar.n_inputs; i++)
		if (s->sidecar.inputs[i].role == SW_ROLE_PARAMETER)
			weights += (double)sw_shape_elements(sw_value_shape(s->program, inputs[i]));
	sw_arena_clear(&arena);
	return weights;
}

double fsdp_seconds(const subject *s, const configuration *c, const sw_cluster *cluster)
{
	if (!c->fsdp)
		return 0;
	double weights = weights_of(s), own = weights / (double)c->dp,
	       gathers = c->zero == FULLY_SHARDED ? 2 : 1;
	double of_microbatch = weights * (CONCATENATED + CONVERTED + DIVIDED) + own * gathers * CONVERTED_BACK;
	double bytes = (double)c->microbatches * of_microbatch + own * (OPTIMIZER - FUSED_OPTIMIZER);
	return bytes / cluster->device.memory_bandwidth;
}
