/* Single allocations, growing arrays, and the handler that is called when the system refuses
 * memory. */
#include "base/base.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define ALIGNMENT 64 /* a cache line, and the widest vector register */

/* Leave at once: what exit() runs (of MPI, of libraries with threads) needs memory or waits for
 * threads that need it, and the other ranks of a job end when this one is gone. */
static void report_and_exit(size_t bytes)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	if (atomic_flag_test_and_set(&reported))
		sleep(1); /* another thread speaks, and leaves */
	else
		fprintf(stderr, "shardwright: out of memory: the system refused %zu bytes\n",
		        bytes);
	_exit(2);
}

/* The handler. It is the one mutable variable at file scope: any call may run out of memory, so the
 * handler cannot be passed along. It is set once, at the start of the process. */
static _Atomic(sw_out_of_memory_handler *) out_of_memory = report_and_exit;

void sw_set_out_of_memory(sw_out_of_memory_handler *handler)
{
	atomic_store(&out_of_memory, handler ? handler : report_and_exit);
}

noreturn void sw_memory_refused(size_t bytes)
{
	atomic_load (&out_of_memory)(bytes);
	_exit(2);
}

void *sw_try_alloc(size_t bytes)
{
	void *data = NULL;
	if (posix_memalign(&data, ALIGNMENT, SW_MAX(bytes, 1)) != 0)
		return NULL;
	return memset(data, 0, bytes);
}

/* The largest allocation for which glibc keeps those that a thread freed at hand for its next ones: that
 * takes a fraction of the time that an aligned one takes, which leaves pieces of the heap behind. */
#define MOST_AT_HAND 1032

void *sw_alloc(size_t bytes)
{
	void *data = bytes > MOST_AT_HAND ? sw_try_alloc(bytes) : malloc(SW_MAX(bytes, 1));
	if (!data)
		sw_memory_refused(bytes);
	return bytes > MOST_AT_HAND ? data : memset(data, 0, bytes);
}

/* Free bytes at the end of the heap that are kept for later allocations. */
#define MAX_RETAINED_BYTES (1 << 30)
/* Bytes from which on an allocation is a mapping of its own, which goes back to the system when
 * freed. */
#define MIN_MAPPING_BYTES (32 << 20)

void sw_memory_keep(void)
{
#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, MAX_RETAINED_BYTES);
	mallopt(M_MMAP_THRESHOLD, MIN_MAPPING_BYTES);
#endif
}

bool sw_mul_i64(int64_t a, int64_t b, int64_t *product)
{
	int64_t result;
	if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &result))
		return false;
	*product = result;
	return true;
}

int sw_compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

int sw_compare_keyed(const void *a, const void *b)
{
	const sw_keyed *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Grow at least by doubling, so that n pushes cost O(n) copies. */
void *sw_vec_grow(void *data, size_t *cap, size_t need, size_t item_bytes)
{
	size_t doubled = *cap <= SIZE_MAX / 2 ? *cap * 2 : SIZE_MAX;
	size_t target = SW_MAX(SW_MAX(need, doubled), 8);
	if (target > SIZE_MAX / item_bytes)
		sw_memory_refused(SIZE_MAX);
	void *grown = realloc(data, target * item_bytes);
	if (!grown)
		sw_memory_refused(target * item_bytes);
	*cap = target;
	return grown;
}
