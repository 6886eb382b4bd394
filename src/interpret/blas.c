/* Load OpenBLAS, choose its kernels, and set its work memory aside. */
#include "interpret/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "interpret/interpret.h"

#define LIBRARY "libopenblas.so.0"
/* Bytes that OpenBLAS maps for each thread that multiplies, and how much more must be free so that
 * what other threads allocate meanwhile does not take it. */
#define WORK_BYTES ((size_t)128 << 20)
#define SPARE_BYTES ((size_t)4 << 20)

typedef struct library {
	pthread_mutex_t lock;
	void *handle; /* NULL: not loaded */
	sw_blas functions;
	void *(*take_work)(int); /* NULL: a build of the library that hides it */
	void (*return_work)(void *);
	void (*set_threads)(int);
	int callers, threads; /* those that have reserved; those that a product uses */
	int works;            /* pieces of work memory that the library has mapped */
} library;

/* A library is loaded once per process, so this is at file scope; the lock guards it. */
static library blas = {.lock = PTHREAD_MUTEX_INITIALIZER, .threads = 1};

/* ---- loading ---------------------------------------------------------------------------- */

static void *open_library(void)
{
	return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static const char *core_name(void *handle)
{
	char *(*name)(void) = (char *(*)(void))dlsym(handle, "openblas_get_corename");
	return name ? name() : "";
}

/* The library falls back to its slowest kernels, Prescott's, on a processor that is newer than it
 * is. Return the name of those that fit, NULL if it chose well or the user has chosen. */
static const char *better_core(void *handle)
{
	if (getenv("OPENBLAS_CORETYPE") || strcmp(core_name(handle), "Prescott") != 0)
		return NULL;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return "SkylakeX";
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return "Haswell";
#endif
	return NULL;
}

static bool find_functions(library *l)
{
	sw_blas *f = &l->functions;
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{"cblas_sgemm", &f->sgemm},
		{"cblas_dgemm", &f->dgemm},
		{"cblas_cgemm", &f->cgemm},
		{"cblas_zgemm", &f->zgemm},
		{"cblas_strsm", &f->strsm},
		{"cblas_dtrsm", &f->dtrsm},
		{"cblas_ctrsm", &f->ctrsm},
		{"cblas_ztrsm", &f->ztrsm},
		{"spotrf_", &f->spotrf},
		{"dpotrf_", &f->dpotrf},
		{"cpotrf_", &f->cpotrf},
		{"zpotrf_", &f->zpotrf},
		{"sgetrf_", &f->sgetrf},
		{"dgetrf_", &f->dgetrf},
		{"cgetrf_", &f->cgetrf},
		{"zgetrf_", &f->zgetrf},
		{"sgeqrf_", &f->sgeqrf},
		{"dgeqrf_", &f->dgeqrf},
		{"sorgqr_", &f->sorgqr},
		{"dorgqr_", &f->dorgqr},
		{"ssyevd_", &f->ssyevd},
		{"dsyevd_", &f->dsyevd},
		{"openblas_set_num_threads", &l->set_threads},
	};
	for (size_t i = 0; i < SW_COUNT(wanted); i++) {
		void *found = dlsym(l->handle, wanted[i].name);
		if (!found)
			return false;
		memcpy(wanted[i].to, &found, sizeof(found));
	}
	l->take_work = (void *(*)(int))dlsym(l->handle, "blas_memory_alloc");
	l->return_work = (void (*)(void *))dlsym(l->handle, "blas_memory_free");
	return true;
}

/* The library reads both variables when it is loaded. With one thread it starts none of its own and
 * maps no work memory before the first product. */
static sw_status load(library *l, sw_error *err)
{
	setenv("OPENBLAS_NUM_THREADS", "1", 1);
	l->handle = open_library();
	const char *core = l->handle ? better_core(l->handle) : NULL;
	if (core && dlclose(l->handle) == 0) {
		setenv("OPENBLAS_CORETYPE", core, 1);
		l->handle = open_library();
	}
	if (l->handle && find_functions(l))
		return SW_OK;
	const char *reason = dlerror();
	l->handle = NULL;
	return sw_fail(err, SW_ERR_IO,
	               "matrix products need OpenBLAS, which could not be loaded: %s "
	               "(Debian: libopenblas0-pthread)",
	               reason ? reason : LIBRARY " lacks a function");
}

/* ---- work memory ------------------------------------------------------------------------ */

/* Would the system give one more piece? */
static bool work_is_there(void)
{
	void *probe = mmap(NULL, WORK_BYTES + SPARE_BYTES, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return probe != MAP_FAILED && munmap(probe, WORK_BYTES + SPARE_BYTES) == 0;
}

/* Make the library map `wanted` pieces, which it keeps for its later calls: they are taken all
 * together, each just after a probe, and given back. Return whether the system gave them. */
static bool map_works(library *l, int wanted)
{
	void **held = sw_alloc(sizeof(*held) * (size_t)SW_MAX(wanted, 1));
	int n = 0;
	while (n < wanted && work_is_there())
		held[n++] = l->take_work ? l->take_work(0) : NULL;
	bool all = n == wanted;
	while (n > 0 && l->return_work)
		l->return_work(held[--n]);
	free(held);
	return all;
}

static sw_status refused(int wanted, sw_error *err)
{
	return sw_fail(err, SW_ERR_IO,
	               "not enough memory for matrix products: each of %d needs 128 MiB of address "
	               "space, which the system refuses; raise the limit (ulimit -v), or use fewer "
	               "ranks in one process",
	               wanted);
}

/* Map work memory for `callers` callers besides those that have reserved. The caller holds the
 * lock. */
static sw_status map_for(library *l, int callers, int threads, sw_error *err)
{
	sw_status status = l->handle ? SW_OK : load(l, err);
	int wanted = l->callers + callers + SW_MAX(l->threads, threads) - 1;
	if (status == SW_OK && wanted > l->works && !map_works(l, wanted))
		status = refused(wanted, err);
	if (status == SW_OK)
		l->works = SW_MAX(l->works, wanted);
	return status;
}

sw_status sw_blas_reserve(int threads, sw_error *err)
{
	pthread_mutex_lock(&blas.lock);
	sw_status status = map_for(&blas, 1, threads, err);
	if (status == SW_OK)
		blas.callers++;
	pthread_mutex_unlock(&blas.lock);
	return status;
}

void sw_blas_release(void)
{
	pthread_mutex_lock(&blas.lock);
	blas.callers--;
	pthread_mutex_unlock(&blas.lock);
}

/* ---- threads ---------------------------------------------------------------------------- */

static void *wait_at_gate(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return NULL;
}

/* Return how many of `wanted` more threads the system lets this process have: the library would
 * wait for ever for one that it did not get. */
static int count_threads(int wanted)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t *threads = sw_alloc(sizeof(*threads) * (size_t)SW_MAX(wanted, 1));
	int n = 0;
	pthread_mutex_lock(&gate);
	while (n < wanted && pthread_create(&threads[n], NULL, wait_at_gate, &gate) == 0)
		n++;
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&gate);
	free(threads);
	return n;
}

void sw_blas_set_threads(int threads)
{
	pthread_mutex_lock(&blas.lock);
	if (threads > blas.threads)
		threads = blas.threads + count_threads(threads - blas.threads);
	if (threads != blas.threads)
		blas.set_threads(threads);
	blas.threads = threads;
	pthread_mutex_unlock(&blas.lock);
}

/* ---- use -------------------------------------------------------------------------------- */

const sw_blas *sw_blas_functions(void)
{
	return &blas.functions;
}

bool sw_blas_needed(const sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++) {
		switch (program->ops.data[i].opcode) {
		case SW_OP_DOT:
		case SW_OP_SCALED_DOT:
		case SW_OP_RAGGED_DOT:
		case SW_OP_CONVOLUTION:
		case SW_OP_CHOLESKY:
		case SW_OP_TRIANGULAR_SOLVE:
		case SW_OP_CUSTOM_CALL:
			return true;
		default:
			break;
		}
	}
	return false;
}

sw_status sw_interpret_reserve(const sw_program *program, int32_t interpreters, int blas_threads,
                               sw_error *err)
{
	if (!sw_blas_needed(program))
		return SW_OK;
	pthread_mutex_lock(&blas.lock);
	sw_status status = map_for(&blas, interpreters, blas_threads, err);
	pthread_mutex_unlock(&blas.lock);
	return status;
}

sw_status sw_interpret_load_blas(sw_error *err)
{
	pthread_mutex_lock(&blas.lock);
	sw_status status = blas.handle ? SW_OK : load(&blas, err);
	pthread_mutex_unlock(&blas.lock);
	return status;
}

const char *sw_interpret_blas_core(void)
{
	return blas.handle ? core_name(blas.handle) : "";
}
