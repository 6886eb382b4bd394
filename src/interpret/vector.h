/*
 * Included first by files of hot loops: gcc vectorises them fully only at -O3, which the rest of
 * the project does not ask for.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
