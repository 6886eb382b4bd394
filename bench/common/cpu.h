#ifndef SW_BENCH_CPU_H
#define SW_BENCH_CPU_H

/* Seconds that all threads of this process have taken together. */
double cpu_now_s(void);

#endif
