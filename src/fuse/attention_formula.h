/*
 * attention_formula: which ops of a program compute exactly what a library's attention does.
 *
 *     P = softmax(scale q k^T), where a query may see no later keys than itself (`causal`)
 *     o = P v
 *     dv = P^T do
 *     dS = P (do v^T - rowsum(P (do v^T)))
 *     dq = c dS k
 *     dk = c dS^T q
 *
 * The recogniser of kernels (attention.c) asks which ops need store no scores, whatever they
 * compute of them. Here the formula itself is proved, op by op, so that a call can take the ops'
 * place. Each value between the products is followed as a polynomial of few terms
 *
 *     coefficient E^e Z^z D^d R^r
 *     E = exp(S - rowmax S), Z = rowsum E, D = do v^T, R = rowsum(P D)
 *
 * with the rules rowsum(E Z^z R^r) = Z^(z+1) R^r and rowsum(E D Z^z) = Z^(z+1) R, so that it does
 * not matter in which order a program scales, masks, divides and subtracts. What does not fit has
 * no formula, and neither has what is computed from it.
 */
#ifndef SW_FUSE_ATTENTION_FORMULA_H
#define SW_FUSE_ATTENTION_FORMULA_H

#include "program/program.h"

/* An array of heads, and which of its dimensions is which: two of the batch (-1: there is one
 * only), the positions (queries or keys), the head's own. */
typedef struct sw_heads {
	sw_id value; /* SW_NO_ID: there is none */
	int32_t batch[2], position, depth;
} sw_heads;

/* The ops of one softmax. Results that the program does not have are SW_NO_ID. */
typedef struct sw_attention_formula {
	int32_t computation;
	double scale;
	bool causal;
	sw_heads q, k, v, o;
	sw_heads d_o, d_q, d_k, d_v;
	double d_scale; /* c, of d_q and d_k both */
} sw_attention_formula;

typedef SW_VEC(sw_attention_formula) sw_attention_formulas;

/* Append the attention of one computation, in order: either with `o`, or with all three gradients,
 * or both. q, k, v and d_o are as the products read them, but before conversions from bf16 or f16 to
 * f32. O(ops). */
void sw_attention_formulas_find(const sw_program *program, int32_t computation,
                                sw_attention_formulas *list);

#endif
