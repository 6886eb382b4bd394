/*
 * flush: results below the smallest normal number of their type become zero while a program runs,
 * as in XLA's CPU backend. Processors take a hundred times as long for such numbers, which
 * gradients that vanish are full of. Operands are read as they are: conversions from f16 need that.
 */
#ifndef SW_INTERPRET_FLUSH_H
#define SW_INTERPRET_FLUSH_H

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Set it for the calling thread; return what sw_flush_end restores. */
static inline unsigned sw_flush_begin(void)
{
	unsigned before = _mm_getcsr();
	_mm_setcsr(before | _MM_FLUSH_ZERO_ON);
	return before;
}
static inline void sw_flush_end(unsigned before)
{
	_mm_setcsr((_mm_getcsr() & ~(unsigned)_MM_FLUSH_ZERO_MASK) |
	           (before & _MM_FLUSH_ZERO_MASK));
}
#else
/* Elsewhere operands could not be kept. */
static inline unsigned sw_flush_begin(void)
{
	return 0;
}
static inline void sw_flush_end(unsigned before)
{
	(void)before;
}
#endif

#endif
