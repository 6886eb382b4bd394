/* Costs of a pipeline whose stages are alike. */
#include "pipeline/plain_costs.h"

#include <math.h>

#include "test.h"

plain_costs make_plain_costs(const sw_pipeline_schedule *s, double forward_s, double input_s,
                             double weight_s, double transfer_s)
{
	const double fills[] = {forward_s, input_s, weight_s, transfer_s, transfer_s, 0,
	                        0,         0,       1,        1,          0,          INFINITY};
	size_t n = (size_t)SW_MAX(s->n_stages, s->n_ranks);
	double *values = sw_alloc(sizeof(double) * n * SW_COUNT(fills)), *at[SW_COUNT(fills)];
	for (size_t i = 0; i < SW_COUNT(fills); i++) {
		at[i] = values + i * n;
		for (size_t k = 0; k < n; k++)
			at[i][k] = fills[i];
	}
	return (plain_costs){values,
	                     {.forward_s = at[0],
	                      .input_gradient_s = at[1],
	                      .weight_gradient_s = at[2],
	                      .send_forward_s = at[3],
	                      .send_backward_s = at[4],
	                      .gather_s = at[5],
	                      .reduce_s = at[6],
	                      .update_s = at[7],
	                      .activation_bytes = at[8],
	                      .gradient_bytes = at[9],
	                      .fixed_bytes = at[10],
	                      .limit_bytes = at[11]}};
}

void clear_plain_costs(plain_costs *plain)
{
	free(plain->values);
	plain->values = NULL;
}
