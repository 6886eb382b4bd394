/*
 * known_programs: programs whose best strategy is known, as HLO text that the caller frees.
 */
#ifndef SW_TESTS_SEARCH_KNOWN_PROGRAMS_H
#define SW_TESTS_SEARCH_KNOWN_PROGRAMS_H

/* Layers with work per element of the residual stream between them, forward. */
char *write_residual_layers(int layers, int tokens, int width);
/* GShard's layer, forward and backward: groups of tokens, each sent to two of the experts (capacity
 * 2 tokens / experts); dispatch and combine are data. Before it stand an attention within groups,
 * so that no device computes the tokens of all, and a scale per feature, whose gradient needs that
 * of the tokens. */
char *write_experts(int groups, int tokens, int experts, int width, int hidden);
/* One table is embedding and head: rows by id, logits, softmax, the target's logit by index, and
 * the table's gradient from both. */
char *write_vocabulary(int tokens, int words, int width);

#endif
