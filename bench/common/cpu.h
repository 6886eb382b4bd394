#ifndef SW_BENCH_CPU_H
#define SW_BENCH_CPU_H

/* Return the seconds that all threads of this process have taken together. */
double cpu_now_s(void);

#endif
