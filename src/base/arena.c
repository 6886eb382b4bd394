/*
 * Arenas: objects that are freed together.
 *
 * Objects are cut one after the other from blocks that double in size. A block comes zeroed from
 * calloc, and no part of it is handed out twice, so no object needs to be zeroed by itself. With
 * SW_ARENA_SEPARATE each object is a block of its own, and its end is the end of the block.
 */
#include "base/base.h"
#include "base/memory.h"

#include <stdalign.h>
#include <string.h>

#define ALIGNMENT 16u                 /* bytes; of every object */
#define FIRST_BLOCK ((size_t)4 << 10) /* bytes of the first block */
#define LAST_BLOCK ((size_t)1 << 20)  /* bytes at which blocks stop doubling */

typedef struct sw_arena_block {
	alignas(ALIGNMENT) struct sw_arena_block *next;
	size_t size, used; /* bytes of data */
	alignas(ALIGNMENT) unsigned char data[];
} block;

void sw_arena_init(sw_arena *arena)
{
	*arena = (sw_arena){0};
}

void sw_arena_clear(sw_arena *arena)
{
	for (block *b = arena->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	sw_arena_init(arena);
}

static block *new_block(size_t size)
{
	block *b = size <= SIZE_MAX - sizeof(block) ? calloc(1, sizeof(block) + size) : NULL;
	if (!b)
		sw_memory_refused(size);
	b->size = size;
	return b;
}

#ifdef SW_ARENA_SEPARATE

static void *take(sw_arena *arena, size_t bytes)
{
	block *b = new_block(bytes);
	b->next = arena->blocks;
	arena->blocks = b;
	return b->data;
}

#else

/* Add a block for an object. The rest of the current block is given up, unless the object is so
 * large that it gets a block of its own, which is inserted behind the current one. */
static block *add_block(sw_arena *arena, size_t bytes)
{
	block *current = arena->blocks;
	size_t usual = current ? SW_MIN(current->size * 2, LAST_BLOCK) : FIRST_BLOCK;
	block *b = new_block(SW_MAX(bytes, usual));
	if (current && bytes > usual) {
		b->next = current->next;
		current->next = b;
	} else {
		b->next = current;
		arena->blocks = b;
	}
	return b;
}

static void *take(sw_arena *arena, size_t bytes)
{
	if (bytes > SIZE_MAX - ALIGNMENT)
		sw_memory_refused(bytes);
	size_t rounded = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	block *b = arena->blocks;
	if (!b || b->size - b->used < rounded)
		b = add_block(arena, rounded);
	void *object = b->data + b->used;
	b->used += rounded;
	return object;
}

#endif

/* Allocate an object. An object of no bytes still gets an address of its own, so that its address
 * can serve as a key. */
void *sw_arena_alloc(sw_arena *arena, size_t bytes)
{
	void *object = take(arena, SW_MAX(bytes, 1));
	arena->bytes += bytes;
	return object;
}

void *sw_arena_copy(sw_arena *arena, const void *data, size_t bytes)
{
	void *copy = sw_arena_alloc(arena, bytes);
	return bytes ? memcpy(copy, data, bytes) : copy;
}

char *sw_arena_text(sw_arena *arena, const char *text)
{
	return sw_arena_text_n(arena, text, strlen(text));
}

char *sw_arena_text_n(sw_arena *arena, const char *text, size_t length)
{
	char *copy = sw_arena_alloc(arena, length + 1);
	if (length)
		memcpy(copy, text, length);
	return copy;
}

char *sw_arena_printf(sw_arena *arena, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	size_t capacity = length > 0 ? (size_t)length + 1 : 1;
	char *text = sw_arena_alloc(arena, capacity);
	va_start(args, format);
	vsnprintf(text, capacity, format, args);
	va_end(args);
	return text;
}
