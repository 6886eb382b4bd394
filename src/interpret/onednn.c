/* Load oneDNN, and make and keep its bf16 products. */
#include "interpret/onednn.h"

#if defined(__has_include)
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#if DNNL_VERSION_MAJOR == 2
#define SW_HAS_ONEDNN 1
#endif
#endif
#endif

#ifdef SW_HAS_ONEDNN

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libdnnl.so.2"

/* X(name): the functions of the library that are called */
#define FUNCTIONS(X)                                                                               \
	X(dnnl_sgemm)                                                                              \
	X(dnnl_get_effective_cpu_isa)                                                              \
	X(dnnl_engine_create)                                                                      \
	X(dnnl_stream_create)                                                                      \
	X(dnnl_stream_wait)                                                                        \
	X(dnnl_stream_destroy)                                                                     \
	X(dnnl_memory_desc_init_by_strides)                                                        \
	X(dnnl_matmul_desc_init)                                                                   \
	X(dnnl_primitive_desc_create)                                                              \
	X(dnnl_primitive_desc_destroy)                                                             \
	X(dnnl_primitive_create)                                                                   \
	X(dnnl_primitive_execute)                                                                  \
	X(dnnl_memory_create)                                                                      \
	X(dnnl_memory_destroy)

/* A product that was made. Kept for the process: a program has few shapes. */
typedef struct onednn_product {
	sw_matrix_product shape;
	dnnl_memory_desc_t a, b, c;
	dnnl_primitive_t primitive; /* NULL: the library has none */
} onednn_product;

typedef struct onednn_library {
	pthread_mutex_t lock;
	bool tried, there, has_bf16;
	dnnl_engine_t engine;
	SW_VEC(onednn_product *) products;
#define X(name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
} onednn_library;

/* A library is loaded once per process, so this is at file scope; the lock guards it. */
static onednn_library onednn = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_functions(onednn_library *l, void *handle)
{
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
#define X(name) {#name, &l->name},
		FUNCTIONS(X)
#undef X
	};
	for (size_t i = 0; i < SW_COUNT(wanted); i++) {
		void *found = dlsym(handle, wanted[i].name);
		if (!found)
			return false;
		memcpy(wanted[i].to, &found, sizeof(found));
	}
	return true;
}

/* The library reads the variable when it is loaded. */
static bool is_there(void)
{
	onednn_library *l = &onednn;
	pthread_mutex_lock(&l->lock);
	if (!l->tried) {
		l->tried = true;
		setenv("OMP_NUM_THREADS", "1", 1);
		void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
		l->there = handle && find_functions(l, handle) &&
		           l->dnnl_engine_create(&l->engine, dnnl_cpu, 0) == dnnl_success;
		l->has_bf16 = l->there && ((unsigned)l->dnnl_get_effective_cpu_isa() &
		                           (unsigned)dnnl_cpu_isa_avx512_core_bf16) ==
		                                  (unsigned)dnnl_cpu_isa_avx512_core_bf16;
	}
	bool there = l->there;
	pthread_mutex_unlock(&l->lock);
	return there;
}

static char transposed(int64_t row, int64_t column, int64_t rows, int64_t columns, int64_t *leading)
{
	bool plain = (column == 1 || columns == 1) && (row >= columns || rows == 1);
	*leading = plain ? SW_MAX(rows == 1 ? columns : row, 1)
	                 : SW_MAX(columns == 1 ? rows : column, 1);
	return plain ? 'N' : 'T';
}

bool sw_onednn_multiply_f32(const sw_matrix_product *p, const void *a, const void *b, void *c)
{
	int64_t lda, ldb;
	if (!is_there())
		return false;
	char ta = transposed(p->a_row, p->a_column, p->m, p->k, &lda),
	     tb = transposed(p->b_row, p->b_column, p->k, p->n, &ldb);
	return onednn.dnnl_sgemm(ta, tb, p->m, p->n, p->k, 1, a, lda, b, ldb, 0, c,
	                         SW_MAX(p->c_row, 1)) == dnnl_success;
}

bool sw_onednn_has_bf16(void)
{
	return is_there() && onednn.has_bf16;
}

static bool describe(dnnl_memory_desc_t *desc, int64_t rows, int64_t columns, int64_t row,
                     int64_t column, sw_type type)
{
	dnnl_dims_t dims = {rows, columns}, strides = {row, column};
	return onednn.dnnl_memory_desc_init_by_strides(desc, 2, dims,
	                                               type == SW_BF16 ? dnnl_bf16 : dnnl_f32,
	                                               strides) == dnnl_success;
}

/* The lock is held. */
static onednn_product *make(const sw_matrix_product *shape)
{
	onednn_library *l = &onednn;
	onednn_product *made = sw_alloc(sizeof(*made));
	dnnl_matmul_desc_t operation;
	dnnl_primitive_desc_t description;
	made->shape = *shape;
	if (describe(&made->a, shape->m, shape->k, shape->a_row, shape->a_column, SW_BF16) &&
	    describe(&made->b, shape->k, shape->n, shape->b_row, shape->b_column, SW_BF16) &&
	    describe(&made->c, shape->m, shape->n, shape->c_row, 1, shape->result) &&
	    l->dnnl_matmul_desc_init(&operation, &made->a, &made->b, NULL, &made->c) ==
	            dnnl_success &&
	    l->dnnl_primitive_desc_create(&description, &operation, NULL, l->engine, NULL) ==
	            dnnl_success) {
		if (l->dnnl_primitive_create(&made->primitive, description) != dnnl_success)
			made->primitive = NULL;
		l->dnnl_primitive_desc_destroy(description);
	}
	sw_vec_push(&l->products, made);
	return made;
}

static const onednn_product *find_product(const sw_matrix_product *shape)
{
	onednn_library *l = &onednn;
	onednn_product *found = NULL;
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->products.len && !found; i++)
		if (memcmp(&l->products.data[i]->shape, shape, sizeof(*shape)) == 0)
			found = l->products.data[i];
	if (!found)
		found = make(shape);
	pthread_mutex_unlock(&l->lock);
	return found;
}

bool sw_onednn_multiply_bf16(const sw_matrix_product *p, const void *a, const void *b, void *c)
{
	onednn_library *l = &onednn;
	dnnl_memory_t memory[3] = {NULL};
	dnnl_stream_t stream = NULL;
	if (!sw_onednn_has_bf16())
		return false;
	const onednn_product *made = find_product(p);
	if (!made->primitive)
		return false;
	void *data[3] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, c};
	const dnnl_memory_desc_t *descs[3] = {&made->a, &made->b, &made->c};
	bool fine = l->dnnl_stream_create(&stream, l->engine, dnnl_stream_default_flags) ==
	            dnnl_success;
	for (int i = 0; i < 3; i++)
		fine = fine && l->dnnl_memory_create(&memory[i], descs[i], l->engine, data[i]) ==
		                       dnnl_success;
	const dnnl_exec_arg_t arguments[3] = {{DNNL_ARG_SRC, memory[0]},
	                                      {DNNL_ARG_WEIGHTS, memory[1]},
	                                      {DNNL_ARG_DST, memory[2]}};
	fine = fine &&
	       l->dnnl_primitive_execute(made->primitive, stream, 3, arguments) == dnnl_success;
	fine = fine && l->dnnl_stream_wait(stream) == dnnl_success;
	for (int i = 0; i < 3; i++)
		l->dnnl_memory_destroy(memory[i]);
	l->dnnl_stream_destroy(stream);
	return fine;
}

#else

bool sw_onednn_multiply_f32(const sw_matrix_product *p, const void *a, const void *b, void *c)
{
	(void)p, (void)a, (void)b, (void)c;
	return false;
}

bool sw_onednn_has_bf16(void)
{
	return false;
}

bool sw_onednn_multiply_bf16(const sw_matrix_product *p, const void *a, const void *b, void *c)
{
	(void)p, (void)a, (void)b, (void)c;
	return false;
}

#endif
