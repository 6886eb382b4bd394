/*
 * lean_order: an order of a computation's ops in which memory is freed soon.
 *
 * JAX prints a step so that what only the optimizer reads, such as the gradients of weights, stands
 * behind all of the backward pass: the activations and the derivatives of all layers are live until
 * then. XLA orders ops itself, and so does this.
 *
 * Ops stay in the order that they have, but one is PULLED FORWARD as soon as it can run and frees
 * more bytes than its results take: it is the last that reads its operands. What only it reads, and
 * has not run yet, runs with it, and is counted as one with it.
 */
#ifndef SW_FUSE_LEAN_ORDER_H
#define SW_FUSE_LEAN_ORDER_H

#include "fuse/fuse.h"

/* Append to orders[c], for each computation c that is `wanted`, its ops, each once and behind what
 * it reads, so that at most as many bytes are live as in the given order; where none are saved, the
 * given order. Ops with an effect, collectives, loops and branches stay behind all that stood
 * before them. O(values + uses * ops that are pulled forward at once, at most 32). */
void sw_lean_orders(const sw_program *program, const bool *wanted, sw_kernel_order *orders);

#endif
