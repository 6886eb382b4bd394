/*
 * Loaded before the C library (LD_PRELOAD) by tests: the system refuses memory or threads.
 *
 *     SW_REFUSE_MEMORY=N   the Nth allocation of the process is refused
 *     SW_REFUSE_THREADS=N  the Nth thread, and all later ones, are refused
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *data, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_long allocations, threads;
static long refused_allocation, refused_thread; /* 0: none */

static long number_of(const char *variable)
{
	const char *text = getenv(variable);
	return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	refused_allocation = number_of("SW_REFUSE_MEMORY");
	refused_thread = number_of("SW_REFUSE_THREADS");
	atomic_store(&allocations, 0);
}

static bool is_refused(void)
{
	return refused_allocation && atomic_fetch_add(&allocations, 1) + 1 == refused_allocation;
}

static void *refuse(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t bytes)
{
	return is_refused() ? refuse() : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return is_refused() ? refuse() : __libc_calloc(n, bytes);
}

void *realloc(void *data, size_t bytes)
{
	return is_refused() ? refuse() : __libc_realloc(data, bytes);
}

int posix_memalign(void **data, size_t alignment, size_t bytes)
{
	*data = is_refused() ? NULL : __libc_memalign(alignment, bytes);
	return *data ? 0 : ENOMEM;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
			RTLD_NEXT, "pthread_create");
	if (refused_thread && atomic_fetch_add(&threads, 1) + 1 >= refused_thread)
		return EAGAIN;
	return create(thread, attributes, start, argument);
}
