/*
 * rewrite: program to program.
 *
 * Each pass takes a verified program and gives a new verified one that computes the same results from the same
 * inputs, in the same order, with the same aliases. Names of ops that survive are kept.
 */
#ifndef SW_REWRITE_H
#define SW_REWRITE_H

#include "program/program.h"

/* What planning works on: calls and fusions inlined; identities (same-shape broadcast, reshape, transpose, copy, convert, chains of reshapes)
 * forwarded; equal ops merged; ops without effect on a result removed; no two loops share a condition or a body. Refuses collectives (SW_ERR_INPUT); requires nothing else, keeps all semantics bit for bit.
 * Entry parameters stay, used or not. Deterministic. */
sw_status sw_rewrite_canonical(const sw_program *in, sw_program **out, sw_error *err);

#endif
