/* Run the passes one after the other; each takes the program that the one before it returned. */
#include "rewrite/rewrite.h"

typedef struct pass_chain {
	const sw_program *in; /* the input of the first pass */
	sw_program *out;      /* of the last pass; NULL: none yet */
} pass_chain;

static const sw_program *last(const pass_chain *c)
{
	return c->out ? c->out : c->in;
}

/* Make the program that a pass returned the last one, if the pass succeeded. */
static sw_status append(pass_chain *c, sw_status status, sw_program *next)
{
	if (status != SW_OK)
		return status;
	sw_program_free(c->out);
	c->out = next;
	return SW_OK;
}

static sw_status pad(pass_chain *c, sw_pad_rule rule, sw_padded_list *padded, sw_error *err)
{
	sw_program *next;
	sw_status status = sw_rewrite_pad(last(c), rule, &next, padded, err);
	if (status == SW_OK && !next)
		status = sw_fail(err, SW_NO, "this rule pads nothing in '%s'", c->in->name);
	return append(c, status, next);
}

static sw_status rematerialise(pass_chain *c, const char *policy, sw_remat_device device,
                               sw_error *err)
{
	sw_program *next;
	sw_status status = sw_rewrite_remat_policy(last(c), policy, device, &next, err);
	return append(c, status, next);
}

static sw_status loop(pass_chain *c, const sw_sidecar *sidecar, int32_t microbatches, sw_error *err)
{
	sw_program *next;
	sw_status status = sw_rewrite_microbatches(last(c), sidecar, microbatches, &next, err);
	return append(c, status, next);
}

sw_status sw_rewrite_in_order(const sw_program *in, const sw_sidecar *sidecar,
                              const sw_rewrites *what, sw_remat_device device, sw_program **out,
                              sw_padded_list *padded, sw_error *err)
{
	pass_chain c = {.in = in};
	sw_status status = SW_OK;
	*out = NULL;
	*padded = (sw_padded_list){0};
	if (what->padding.multiple > 0)
		status = pad(&c, what->padding, padded, err);
	if (status == SW_OK && what->remat)
		status = rematerialise(&c, what->remat, device, err);
	if (status == SW_OK && what->microbatches > 1)
		status = loop(&c, sidecar, what->microbatches, err);
	if (status == SW_OK)
		*out = c.out;
	else
		sw_program_free(c.out);
	return status;
}
