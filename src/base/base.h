/*
 * base: what every other folder stands on.
 *
 * Errors, arenas, vectors, text, files, hashes, counter-based random numbers, JSON and YAML
 * readers, threads and progress lines. Nothing here knows of programs or tensors.
 *
 * Memory policy. Bookkeeping (arenas, vectors, text, maps) cannot fail from the caller's point of
 * view: when the system refuses memory, the handler of sw_set_out_of_memory() is called (default:
 * one line on standard error, exit code 2). A size that is dictated by INPUT (a tensor, a constant,
 * a file) must be taken with sw_try_alloc(), which returns NULL and lets the caller report.
 */
#ifndef SW_BASE_H
#define SW_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h> /* free(), for sw_vec_clear */

#include <jansson.h>

#if defined(__GNUC__)
#define SW_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SW_PRINTF(fmt, args)
#endif

#define SW_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Before a function whose loops gain from vectors that not every processor has. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SW_VECTORISED __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define SW_VECTORISED
#endif
#define SW_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SW_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- errors ----------------------------------------------------------------------------- */

/* What a function that can fail returns. SW_OK is 0. The exit code of a command follows from it. */
typedef enum sw_status {
	SW_OK = 0,
	SW_NO,           /* the question was well put and the answer is no: infeasible, mismatch */
	SW_ERR_INPUT,    /* bad usage or bad input: the user can mend it */
	SW_ERR_IO,       /* the system refused: file, memory, process, peer */
	SW_ERR_INTERNAL, /* our own bug, found by a verifier */
} sw_status;

/* One clear line: the file, the place, what was expected, the mend. line and column count from 1;
 * 0 means that there is none. file may be empty. Owned by the caller, no clean-up needed. */
typedef struct sw_error {
	sw_status code;
	int line, column;
	char file[256];
	char message[512];
} sw_error;

/* Fills *err (which may be NULL) and returns code, so that `return sw_fail(...)` reads well. */
sw_status sw_fail(sw_error *err, sw_status code, const char *format, ...) SW_PRINTF(3, 4);
sw_status sw_fail_at(sw_error *err, sw_status code, const char *file, int line, int column,
                     const char *format, ...) SW_PRINTF(6, 7);
/* Names the file of an error that was raised by code that did not know it. Keeps an earlier name.
 */
sw_status sw_error_in_file(sw_error *err, sw_status code, const char *file);
/* Word for a status ("ok", "no", "bad-input", "io", "internal"), and the exit code 0, 1 or 2. */
const char *sw_status_name(sw_status code);
int sw_status_exit_code(sw_status code);

/* ---- memory ----------------------------------------------------------------------------- */

typedef void sw_out_of_memory_handler(size_t bytes);
void sw_set_out_of_memory(sw_out_of_memory_handler *handler);
/* From now on what is freed stays with the process, for what it asks for next: a planner asks for
 * much, and often. Where the C library is glibc. */
void sw_memory_keep(void);

/* Zeroed, 64-byte aligned; freed by free(). sw_try_alloc returns NULL when refused. */
void *sw_try_alloc(size_t bytes);
void *sw_alloc(size_t bytes);
/* false when a * b does not fit; *product is then untouched. All sizes are non-negative. */
bool sw_mul_i64(int64_t a, int64_t b, int64_t *product);
/* For qsort and bsearch of numbers, ascending. */
int sw_compare_u32(const void *a, const void *b);
/* Of non-negative numbers; gcd(0, n) is n. */
static inline int64_t sw_gcd(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}
/* Towards minus infinity, and towards plus infinity; b > 0. */
static inline int64_t sw_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}
static inline int64_t sw_ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b > 0);
}
static inline int64_t sw_floor_mod(int64_t a, int64_t b)
{
	return a - b * sw_floor_div(a, b);
}

/* One lifetime. Everything taken from it is zeroed and freed by sw_arena_clear. When
 * SW_ARENA_SEPARATE is defined (debug and sanitizer builds) each object is allocated by itself, so
 * that an overrun is seen. Not thread-safe. */
typedef struct sw_arena {
	struct sw_arena_block *blocks;
	size_t bytes; /* handed out so far */
} sw_arena;

void sw_arena_init(sw_arena *arena);
void sw_arena_clear(sw_arena *arena); /* init again implied */
void *sw_arena_alloc(sw_arena *arena, size_t bytes);
void *sw_arena_copy(sw_arena *arena, const void *data, size_t bytes);
char *sw_arena_text(sw_arena *arena, const char *text);
char *sw_arena_text_n(sw_arena *arena, const char *text, size_t length);
char *sw_arena_printf(sw_arena *arena, const char *format, ...) SW_PRINTF(2, 3);
#define SW_NEW(arena, T) ((T *)sw_arena_alloc((arena), sizeof(T)))
#define SW_NEW_N(arena, T, n) ((T *)sw_arena_alloc((arena), sizeof(T) * (size_t)(n)))

/* A growing array: SW_VEC(int) v = {0}; sw_vec_push(&v, 3); v.data[0]; sw_vec_clear(&v). */
#define SW_VEC(T)                                                                                  \
	struct {                                                                                   \
		T *data;                                                                           \
		size_t len;                                                                        \
		size_t cap;                                                                        \
	}
#define sw_vec_reserve(v, n)                                                                       \
	((n) <= (v)->cap                                                                           \
	         ? (void)0                                                                         \
	         : (void)((v)->data = sw_vec_grow((v)->data, &(v)->cap, (n), sizeof(*(v)->data))))
#define sw_vec_push(v, x) (sw_vec_reserve((v), (v)->len + 1), (void)((v)->data[(v)->len++] = (x)))
#define sw_vec_clear(v) (free((v)->data), (void)((v)->data = NULL, (v)->len = (v)->cap = 0))
void *sw_vec_grow(void *data, size_t *cap, size_t need, size_t item_bytes);

/* ---- text ------------------------------------------------------------------------------- */

/* A growing string, always zero-terminated once something was added. */
typedef struct sw_text {
	char *data;
	size_t len, cap;
} sw_text;

void sw_text_clear(sw_text *text);
void sw_text_add(sw_text *text, const char *string);
void sw_text_add_n(sw_text *text, const char *string, size_t length);
void sw_text_addf(sw_text *text, const char *format, ...) SW_PRINTF(2, 3);
/* How many of the bytes are whole characters of UTF-8, from the first one on. */
size_t sw_utf8_length(const char *string, size_t length);
/* Into an array of that size, cut where it must be before a character. What is no UTF-8 ends it. */
void sw_text_cut(const char *string, char *to, size_t room);
/* "1.5 MiB", "2.3 GB/s"-style numbers for people: bytes in powers of 1024, seconds as s/ms/us. */
void sw_text_add_bytes(sw_text *text, double bytes);
void sw_text_add_seconds(sw_text *text, double seconds);
void sw_text_add_count(sw_text *text, double count); /* 1.2 k, 3.4 M, 5.6 G */

/* A table for people: columns padded to the widest cell, numbers right-aligned. Rows are added cell
 * by cell; sw_table_add_to clears nothing. Columns are separated by two spaces. */
typedef struct sw_table {
	int columns;
	SW_VEC(char *) cells; /* row-major; the first row is the heading */
} sw_table;
void sw_table_init(sw_table *table, int columns, const char *const headings[]);
void sw_table_cell(sw_table *table, const char *format, ...) SW_PRINTF(2, 3);
/* What one of the functions above, or another like them, adds for a number: sw_text_add_bytes,
 * sw_text_add_seconds. */
typedef void sw_text_add_number(sw_text *text, double number);
void sw_table_cell_number(sw_table *table, sw_text_add_number *add, double number);
void sw_table_add_to(const sw_table *table, sw_text *text);
void sw_table_clear(sw_table *table);

/* Reads a whole file; gzip is recognised by its first bytes and unpacked. The bytes are followed
 * by one zero that is not counted. *data is freed with free(). */
sw_status sw_file_read(const char *path, char **data, size_t *length, sw_error *err);
/* Writes through a temporary beside the target and renames it: all or nothing. Empty path or "-"
 * is standard output. */
sw_status sw_file_write(const char *path, const char *data, size_t length, sw_error *err);
/* The same in pieces, for what is too large to hold. What goes wrong on the way is told at the end:
 * close puts the whole file in place, or says why not and leaves none; the sink is freed either
 * way. */
typedef struct sw_sink sw_sink;
sw_status sw_sink_open(const char *path, sw_sink **sink, sw_error *err);
void sw_sink_put(sw_sink *sink, const char *data, size_t length);
sw_status sw_sink_close(sw_sink *sink, sw_error *err);

/* The same bytes piece by piece, for what is too large to hold. Errors name no file. */
typedef struct sw_source sw_source;
sw_status sw_source_open(const char *path, sw_source **source, sw_error *err);
sw_source *sw_source_memory(const char *data, size_t length); /* borrowed; gzip is unpacked too */
/* Up to `room` bytes; *got is 0 at the end, and only there. */
sw_status sw_source_read(sw_source *source, char *buffer, size_t room, size_t *got, sw_error *err);
/* how much of the file was taken; 0 for a pipe */
double sw_source_fraction(const sw_source *source);
bool sw_source_is_gzip(const sw_source *source);
void sw_source_close(sw_source *source); /* NULL is fine */

/* ---- hashes and random numbers ---------------------------------------------------------- */

uint64_t sw_hash_bytes(const void *data, size_t bytes, uint64_t seed); /* XXH3 */
uint64_t sw_hash_u64(uint64_t a, uint64_t b);

/* Open-addressing maps; keys of the text map are copied. Value UINT32_MAX means "absent". */
#define SW_ABSENT UINT32_MAX
typedef struct sw_map_slot sw_map_slot;
typedef struct sw_map {
	sw_map_slot *slots;
	size_t cap, len;
	sw_arena keys;
} sw_map;
void sw_map_clear(sw_map *map);
uint32_t sw_map_get(const sw_map *map, const void *key, size_t key_bytes);
/* Returns the earlier value, SW_ABSENT if there was none; then the key now has `value`. */
uint32_t sw_map_put(sw_map *map, const void *key, size_t key_bytes, uint32_t value);
/* As put, but leaves an earlier value in place and returns whichever is in the map afterwards. */
uint32_t sw_map_intern(sw_map *map, const void *key, size_t key_bytes, uint32_t value);

/* Counter-based: the number at (seed, stream, index) depends on nothing else, so that every layout
 * of a tensor draws the same numbers. Mixer: splitmix64's finaliser (Steele, Lea, Flood 2014),
 * applied to the chained triple. */
uint64_t sw_random_bits(uint64_t seed, uint64_t stream, uint64_t index);
double sw_random_unit(uint64_t seed, uint64_t stream, uint64_t index);   /* [0, 1), 53 bits */
double sw_random_normal(uint64_t seed, uint64_t stream, uint64_t index); /* Box-Muller */

/* A sequence for tests and searches: state is the caller's. */
typedef struct sw_rng {
	uint64_t seed, next;
} sw_rng;
uint64_t sw_rng_bits(sw_rng *rng);
int64_t sw_rng_below(sw_rng *rng, int64_t bound); /* 0 <= result < bound, bound >= 1 */
double sw_rng_unit(sw_rng *rng);

/* ---- statistics ------------------------------------------------------------------------- */

double sw_median(double *values, size_t n); /* sorts them; NaN of none */
/* Where each value stands in the order of all, from 0; ties have the mean of their ranks. O(n^2).
 */
void sw_ranks(const double *values, size_t n, double *ranks);
/* Rank correlation. NaN if there are fewer than two. O(n^2). */
double sw_spearman(const double *x, const double *y, size_t n);

/* ---- JSON and YAML ---------------------------------------------------------------------- */

/* JSON is jansson's json_t. These add our errors: a missing key or a wrong type is named, with the
 * path to it. `where` is such a path ("inputs[3].init") for the message. */
sw_status sw_json_read(const char *path, json_t **root, sw_error *err); /* gzip too; json_decref */
sw_status sw_json_parse(const char *text, size_t length, json_t **root, sw_error *err);
sw_status sw_json_get_int(const json_t *object, const char *key, const char *where, int64_t *value,
                          sw_error *err);
sw_status sw_json_get_real(const json_t *object, const char *key, const char *where, double *value,
                           sw_error *err);
/* Borrowed from the object. */
sw_status sw_json_get_text(const json_t *object, const char *key, const char *where,
                           const char **value, sw_error *err);
sw_status sw_json_get_array(const json_t *object, const char *key, const char *where,
                            json_t **value, sw_error *err);
sw_status sw_json_get_object(const json_t *object, const char *key, const char *where,
                             json_t **value, sw_error *err);

/* JSON of any size, read in one pass and little memory (64 KiB): the caller pulls value after
 * value, in the order of the text, and skips what it does not know.
 *
 *     sw_json_enter_object(s);
 *     while (sw_json_next_key(s, &key))
 *             if (strcmp(key, "sizes") == 0) sw_json_take_ints(s, &sizes); else sw_json_skip(s);
 *     sw_json_finish(s);
 *     status = sw_json_stream_free(s);
 *
 * The first error stops it: from then on every call returns false, and *err has the place in the
 * text and the path to the value. Nesting deeper than 64 is an error; keys are cut after 39 bytes;
 * duplicates are the caller's to see. */
typedef struct sw_json_stream sw_json_stream;
typedef struct sw_json_place {
	int line, column; /* bytes, from 1 */
} sw_json_place;
typedef SW_VEC(int64_t) sw_numbers;
/* Borrows both; *err is written at the first error, and kept. */
sw_json_stream *sw_json_stream_new(sw_source *source, sw_error *err);
sw_status sw_json_stream_free(sw_json_stream *s); /* whether all went well */
bool sw_json_enter_object(sw_json_stream *s);
bool sw_json_enter_array(sw_json_stream *s);
/* On to the next member or item: false when there is none and the object or array was left. The key
 * is good until the next call. */
bool sw_json_next_key(sw_json_stream *s, const char **key);
bool sw_json_next_item(sw_json_stream *s);
/* A number that is an integer of 64 bits, however it is written (17, 1e18, 3.0). */
bool sw_json_take_int(sw_json_stream *s, int64_t *value);
/* An array of such, in place of what the list had. */
bool sw_json_take_ints(sw_json_stream *s, sw_numbers *list);
/* false, and nothing taken, if the next value isn't null */
bool sw_json_take_null(sw_json_stream *s);
bool sw_json_skip(sw_json_stream *s); /* a value of any kind */
/* nothing but white space may follow, up to the source's end */
bool sw_json_finish(sw_json_stream *s);
sw_json_place sw_json_stream_place(sw_json_stream *s); /* of the next value */
/* The caller's own error, at a place noted earlier, or (NULL) here, after the path to here. Returns
 * false. */
bool sw_json_stream_fail(sw_json_stream *s, const sw_json_place *place, const char *format, ...)
	SW_PRINTF(3, 4);

/* A YAML document (libyaml) as a tree with places. All in the arena. */
typedef enum sw_yaml_kind { SW_YAML_SCALAR, SW_YAML_SEQUENCE, SW_YAML_MAPPING } sw_yaml_kind;
typedef struct sw_yaml {
	sw_yaml_kind kind;
	int line, column;
	const char *text;             /* scalar */
	size_t count;                 /* items, or pairs */
	const struct sw_yaml **items; /* sequence: items; mapping: values */
	const struct sw_yaml **keys;  /* mapping: scalar keys */
} sw_yaml;
sw_status sw_yaml_read(const char *path, sw_arena *arena, const sw_yaml **root, sw_error *err);
sw_status sw_yaml_parse(const char *text, size_t length, sw_arena *arena, const sw_yaml **root,
                        sw_error *err);
const sw_yaml *sw_yaml_get(const sw_yaml *mapping, const char *key); /* NULL if absent */

/* ---- time, threads, progress ------------------------------------------------------------ */

double sw_now_s(void); /* monotonic */
/* To a moment of sw_now_s, as exactly as the system can: without the slack of 50 microseconds that
 * Linux adds to a thread's timers. */
void sw_sleep_until(double moment_s);
/* Of the calling thread, which waits more than it computes: when it has something to do it gets a
 * core at once from one that computes, and soon gives it back (Linux 6.12; elsewhere nothing
 * changes). */
void sw_thread_run_briefly(void);
/* What a thread of this process had of the processors so far, and how long it could have run while
 * others did (Linux counts a thread that yields among those). */
typedef struct sw_thread_times {
	double cpu_s, delayed_s;
} sw_thread_times;
int sw_thread_number(void); /* of the calling thread */
/* zeros where the system doesn't say. Microseconds */
sw_thread_times sw_thread_times_of(int number);
size_t sw_peak_memory_bytes(void); /* of this process so far (VmHWM) */
int sw_cpu_count(void);

/* Calls work(context, i) for i in [0, n) on up to `threads` threads; returns when all are done. */
void sw_parallel_for(int64_t n, int threads, void (*work)(void *context, int64_t i), void *context);
/* first(context, i) for i in [0, n) one after the other, on the calling thread; then(context, i)
 * once first(context, i) is over, on any of `threads`. */
void sw_pipeline(int64_t n, int threads, void (*first)(void *context, int64_t i),
                 void (*then)(void *context, int64_t i), void *context);
/* Calls work(context) on a thread of its own, beside what the caller does until it joins; when that
 * is, if `threads` is 1 or the system refuses one. */
typedef struct sw_beside sw_beside;
sw_beside *sw_beside_start(int threads, void (*work)(void *context), void *context);
void sw_beside_join(sw_beside *beside); /* returns when it is done; frees */

/* A progress line on standard error: redrawn on a terminal at most ten times a second and wiped at
 * the end; nothing at all when standard error is not a terminal, or quiet is set. */
typedef struct sw_progress {
	bool active;
	double started_s, drawn_s;
	const char *label;
} sw_progress;
void sw_progress_start(sw_progress *progress, const char *label, bool quiet);
void sw_progress_update(sw_progress *progress, double fraction, const char *format, ...)
	SW_PRINTF(3, 4);
void sw_progress_end(sw_progress *progress);

#endif
