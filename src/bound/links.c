/*
 * Links of a chain: kernels of which each waits for a product, which has a kernel of its own, that waits
 * for the one before. So they are different kernels, and what each launches and moves is added up.
 * Of all chains the longest counts.
 *
 * Two kinds of kernels have chains of their own: those without products that write a link of
 * src/fuse, and those of attention and losses, whose products may share a kernel with others.
 */
#include "bound/links.h"

#include <math.h>
#include <stdlib.h>

/* The longest chain behind an op. */
typedef struct link_chain {
	double parted_s; /* a product was passed after its last link */
	double s;        /* not yet */
} link_chain;

typedef struct link_chains {
	link_chain light, products;
} link_chains;

static link_chain longer(link_chain a, link_chain b)
{
	return (link_chain){fmax(a.parted_s, b.parted_s), fmax(a.s, b.s)};
}

/* Return the chain behind an op, of that behind its operands. */
static link_chain pass(link_chain behind, bool parts, bool is_link, double link_s)
{
	if (parts)
		behind.parted_s = fmax(behind.parted_s, behind.s);
	if (is_link)
		behind.s = fmax(behind.s, behind.parted_s + link_s);
	return behind;
}

double sw_bound_links_s(const division *d, const sw_computation *computation,
                        const sw_bound_marks *marks, const sw_bound_loop *loop)
{
	const sw_program *program = d->program;
	const sw_fuse_least *least = &loop->least;
	link_chains *behind = sw_alloc(sizeof(*behind) * (program->ops.len + 1));
	double light_s = 0, products_s = 0, launch_s = division_launch_s(d);
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		link_chains *x = &behind[id];
		for (uint32_t k = 0; k < op->n_operands; k++) {
			const link_chains *of = &behind[program->values.data[op->operands[k]].op];
			x->light = longer(x->light, of->light);
			x->products = longer(x->products, of->products);
		}
		bool product = least->products[id], shares = marks->shares_kernel[id],
		     link = !isnan(least->link_bytes[id]);
		double link_s = link ? division_moved_s(d, least->link_bytes[id]) : 0;
		link_s += least->launches[id] ? loop->runs[id] * launch_s : 0;
		x->light = pass(x->light, product, link, link_s);
		x->products = pass(x->products, product && !shares, product && shares,
		                   loop->runs[id] * launch_s);
		light_s = fmax(light_s, fmax(x->light.s, x->light.parted_s));
		products_s = fmax(products_s, fmax(x->products.s, x->products.parted_s));
	}
	free(behind);
	return light_s + products_s;
}
