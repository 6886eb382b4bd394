/* Buffers, and the pool that keeps free ones. */
#include <stdlib.h>

#include "interpret/guard.h"

/* A buffer as allocated: its capacity may exceed its current bytes. */
typedef struct sw_owned_buffer {
	sw_buffer base;
	size_t capacity;
} owned_buffer;

static sw_buffer *allocate(size_t bytes, size_t capacity)
{
	owned_buffer *buffer = sw_try_alloc(sizeof *buffer);
	void *data = sw_try_alloc(SW_MAX(capacity, (size_t)1));
	if (!buffer || !data) {
		free(buffer);
		free(data);
		return NULL;
	}
	buffer->base = (sw_buffer){.references = 1, .bytes = bytes, .data = data};
	buffer->capacity = capacity;
	return &buffer->base;
}

/* Class c holds buffers of at least class_bytes(c) bytes: 64 * 2^(c/4) * (1, 1.25, 1.5, 1.75). */
static size_t class_bytes(int c)
{
	return ((size_t)64 << (c / 4)) / 4 * (4 + (size_t)(c % 4));
}

/* Return the smallest class that fits; SW_POOL_CLASSES if the request is too large for any
 * class. */
static int class_of_request(size_t bytes)
{
	if (bytes <= 64)
		return 0;
	if (bytes > (size_t)1 << 62)
		return SW_POOL_CLASSES;
	int octave = 63 - __builtin_clzll(bytes) - 6;
	int c = octave * 4;
	while (class_bytes(c) < bytes)
		c++;
	return c;
}

/* In builds with the address sanitizer every buffer is allocated in its exact size and is not
 * reused. */
#ifdef SW_ARENA_SEPARATE
static const bool keeps = false;
#else
static const bool keeps = true;
#endif

sw_buffer *sw_buffer_new(size_t bytes)
{
	int c = class_of_request(bytes);
	return c == SW_POOL_CLASSES ? NULL : allocate(bytes, keeps ? class_bytes(c) : bytes);
}

void sw_buffer_free(sw_buffer *buffer)
{
	free(buffer->data);
	free(buffer);
}

/* ---- bounded ---------------------------------------------------------------------------- */

void sw_pool_bound(sw_pool *pool, char *data, size_t bytes)
{
	pool->next = data;
	pool->end = data + bytes;
	pool->n_pieces = 0;
}

static owned_buffer *find_piece(const sw_pool *pool, size_t capacity)
{
	for (size_t i = 0; i < pool->n_pieces; i++)
		if (pool->pieces.data[i]->capacity == capacity &&
		    pool->pieces.data[i]->base.references == 0)
			return pool->pieces.data[i];
	return NULL;
}

static owned_buffer *cut_piece(sw_pool *pool, size_t capacity)
{
	if (capacity > (size_t)(pool->end - pool->next))
		return NULL;
	if (pool->n_pieces == pool->pieces.len)
		sw_vec_push(&pool->pieces, sw_alloc(sizeof(owned_buffer)));
	owned_buffer *piece = pool->pieces.data[pool->n_pieces++];
	piece->capacity = capacity;
	piece->base.data = pool->next;
	pool->next += capacity;
	return piece;
}

static sw_buffer *take_piece(sw_pool *pool, size_t bytes)
{
	size_t unit = (size_t)SW_ALIGNMENT, capacity = SW_MAX((bytes + unit - 1) / unit, 1) * unit;
	owned_buffer *piece = find_piece(pool, capacity);
	piece = piece ? piece : cut_piece(pool, capacity);
	if (!piece)
		return NULL;
	piece->base.references = 1;
	piece->base.bytes = bytes;
	sw_guard_open(piece->base.data, bytes);
	return &piece->base;
}

/* ---- taking and giving back ------------------------------------------------------------- */

sw_buffer *sw_pool_take(sw_pool *pool, size_t bytes)
{
	if (pool->bounded)
		return take_piece(pool, bytes);
	int c = class_of_request(bytes);
	if (c == SW_POOL_CLASSES)
		return NULL;
	sw_pool_list *list = &pool->lists[c];
	sw_buffer *buffer;
	if (list->len) {
		buffer = list->data[--list->len].buffer;
		buffer->references = 1;
		buffer->bytes = bytes;
	} else {
		buffer = sw_buffer_new(bytes);
	}
	if (buffer) {
		pool->live_bytes += bytes;
		pool->peak_bytes = SW_MAX(pool->peak_bytes, pool->live_bytes);
	}
	return buffer;
}

void sw_pool_drop(sw_pool *pool, sw_tensor *tensor)
{
	sw_buffer *buffer = tensor->buffer;
	tensor->buffer = NULL;
	if (!buffer || --buffer->references)
		return;
	if (pool->bounded) {
		sw_guard_close(buffer->data, buffer->bytes);
		return;
	}
	pool->live_bytes -= SW_MIN(pool->live_bytes, buffer->bytes);
	if (!keeps) {
		sw_buffer_free(buffer);
		return;
	}
	int c = class_of_request(((const owned_buffer *)buffer)->capacity);
	sw_pool_entry entry = {.buffer = buffer, .step = pool->step};
	sw_vec_push(&pool->lists[c], entry);
}

void sw_pool_end_step(sw_pool *pool)
{
	for (int c = 0; c < SW_POOL_CLASSES; c++) {
		sw_pool_list *list = &pool->lists[c];
		size_t stale = 0;
		while (stale < list->len && list->data[stale].step + 1 < pool->step)
			sw_buffer_free(list->data[stale++].buffer);
		for (size_t i = stale; stale && i < list->len; i++)
			list->data[i - stale] = list->data[i];
		list->len -= stale;
	}
	pool->step++;
}

void sw_pool_clear(sw_pool *pool)
{
	for (int c = 0; c < SW_POOL_CLASSES; c++) {
		for (size_t i = 0; i < pool->lists[c].len; i++)
			sw_buffer_free(pool->lists[c].data[i].buffer);
		sw_vec_clear(&pool->lists[c]);
	}
	for (size_t i = 0; i < pool->pieces.len; i++)
		free(pool->pieces.data[i]);
	sw_vec_clear(&pool->pieces);
}
