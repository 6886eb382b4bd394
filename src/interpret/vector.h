/*
 * Included first by files with hot loops: gcc vectorises them fully only at -O3, and the rest of
 * the project is compiled at a lower level.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
