/*
 * What updates read of gradients that other ports have.
 *
 * Where all gradients are clipped by one norm, every update reads something of all sums of
 * gradients: a sum of squares of each. An owner has the sums of its own variables alone. So what is
 * made of the sums of one port and of constants, and is read by what is made of others' sums too,
 * is made where these sums are, and sent to those who need it: the port's DIGEST. The ops stay
 * those of the program, in their order, so that all owners come to the same norm, to the bit.
 */
#include "partition/served_digest.h"

#include <stdlib.h>
#include <string.h>

enum { NOTHING = -1, SEVERAL = -2 };

/* What is made of two values is made of the ports of both. */
static int32_t join(int32_t a, int32_t b)
{
	return a == NOTHING || a == b ? b : b == NOTHING ? a : SEVERAL;
}

void digests_init(digests *d, const sw_program *whole, const sw_id *sums, const uint32_t *of_port,
                  uint32_t n, uint32_t n_ports)
{
	*d = (digests){
		.whole = whole, .sums = sums, .of_port = of_port, .n = n, .n_ports = n_ports};
	d->of = sw_alloc(sizeof(*d->of) * (whole->values.len + 1));
	d->given = sw_alloc(sizeof(*d->given) * (n_ports + 1));
}

/* Find the port of whose sums each value is made, as port p sees it: a gradient that variables of
 * several ports have is its own, else that of the first. */
static void find_ports(digests *d, uint32_t p)
{
	const sw_computation *entry = sw_entry(d->whole);
	int32_t *of_sum = sw_alloc(sizeof(*of_sum) * (d->whole->values.len + 1));
	for (size_t v = 0; v < d->whole->values.len; v++)
		of_sum[v] = NOTHING;
	for (uint32_t i = d->n; i-- > 0;)
		if (of_sum[d->sums[i]] != (int32_t)p)
			of_sum[d->sums[i]] = (int32_t)d->of_port[i];
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(d->whole, entry->ops.data[i]);
		bool other = op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_TERMS;
		int32_t of = other ? SEVERAL : NOTHING;
		for (uint32_t k = 0; k < op->n_operands; k++)
			of = join(of, d->of[op->operands[k]]);
		for (uint32_t r = 0; r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			d->of[value] = of_sum[value] == NOTHING ? of : of_sum[value];
		}
	}
	free(of_sum);
}

void digests_clear(digests *d)
{
	for (uint32_t p = 0; p < d->n_ports && d->given; p++)
		sw_vec_clear(&d->given[p]);
	free(d->given);
	free(d->of);
	*d = (digests){0};
}

void digests_take(digests *d, uint32_t p, const sw_id *results, size_t n_results,
                  distinct_list *values, taken_list *taken)
{
	bool *seen = sw_alloc(d->whole->values.len + 1);
	SW_VEC(sw_id) open = {0};
	find_ports(d, p);
	for (size_t i = 0; i < n_results; i++)
		sw_vec_push(&open, results[i]);
	while (open.len > 0) {
		sw_id value = open.data[--open.len];
		int32_t of = d->of[value];
		if (seen[value] || of == (int32_t)p)
			continue;
		seen[value] = true;
		if (of >= 0) {
			sw_vec_push(values, value);
			sw_vec_push(taken,
			            ((sw_taken){(uint32_t)of, number_in(&d->given[of], value)}));
			continue;
		}
		const sw_op *op = sw_op_at(d->whole, d->whole->values.data[value].op);
		for (uint32_t k = 0; k < op->n_operands; k++)
			sw_vec_push(&open, op->operands[k]);
	}
	sw_vec_clear(&open);
	free(seen);
}

sw_program *digests_write(const digests *d, uint32_t port, const sw_id *sums, uint32_t n,
                          int64_t *bytes)
{
	const distinct_list *given = &d->given[port];
	*bytes = 0;
	for (size_t i = 0; i < given->len; i++)
		*bytes += sw_shape_bytes(sw_value_shape(d->whole, given->data[i]));
	sw_slice slice = {.results = given->data,
	                  .given = sums,
	                  .n_results = (uint32_t)given->len,
	                  .n_given = n};
	return given->len ? sw_program_slice(d->whole, &slice, NULL) : NULL;
}
