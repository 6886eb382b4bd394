/*
 * base: the foundation that every other folder uses.
 *
 * Errors, arenas, vectors, text, files, hashes, counter-based random numbers, JSON and YAML
 * readers, threads and progress lines. Nothing here knows of programs or tensors.
 *
 * Memory policy. Bookkeeping (arenas, vectors, text, maps) cannot fail from the caller's point of
 * view: when the system refuses memory, the handler of sw_set_out_of_memory() is called (default:
 * one line on standard error, exit code 2). A size that is dictated by INPUT (a tensor, a constant,
 * a file) must be allocated with sw_try_alloc(), which returns NULL and lets the caller report the
 * error.
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

/* Stands before a function whose loops gain from vector instructions that not every processor has:
 * the compiler then makes one version of it for AVX2 and one for any processor. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SW_VECTORISED __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define SW_VECTORISED
#endif
#define SW_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SW_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- errors ----------------------------------------------------------------------------- */

/* The result of a function that can fail. SW_OK is 0. The exit code of a command follows from
 * it. */
typedef enum sw_status {
	SW_OK = 0,
	SW_NO,           /* the input is valid and the answer is no: infeasible, mismatch */
	SW_ERR_INPUT,    /* bad usage or bad input: the user can correct it */
	SW_ERR_IO,       /* the system refused: file, memory, process, peer */
	SW_ERR_INTERNAL, /* our own bug, found by a verifier */
} sw_status;

/* An error is one clear line: the file, the place, what was expected, and how to correct it. line
 * and column count from 1; 0 means that there is none. file may be empty. The caller owns the
 * struct, which needs no clean-up. */
typedef struct sw_error {
	sw_status code;
	int line, column;
	char file[256];
	char message[512];
} sw_error;

/* Fill *err (which may be NULL) and return code, so that `return sw_fail(...)` reads well. */
sw_status sw_fail(sw_error *err, sw_status code, const char *format, ...) SW_PRINTF(3, 4);
sw_status sw_fail_at(sw_error *err, sw_status code, const char *file, int line, int column,
                     const char *format, ...) SW_PRINTF(6, 7);
/* Set the file of an error that was raised by code that did not know the file. A file that is
 * already set is kept. */
sw_status sw_error_in_file(sw_error *err, sw_status code, const char *file);
/* Return from a function that returns sw_status when a step of it fails. */
#define SW_TRY(step)                                                                               \
	do {                                                                                       \
		sw_status try_ = (step);                                                           \
		if (try_ != SW_OK)                                                                 \
			return try_;                                                               \
	} while (0)
/* Return the word for a status ("ok", "no", "bad-input", "io", "internal"), and its exit code: 0, 1
 * or 2. */
const char *sw_status_name(sw_status code);
int sw_status_exit_code(sw_status code);

/* ---- memory ----------------------------------------------------------------------------- */

typedef void sw_out_of_memory_handler(size_t bytes);
void sw_set_out_of_memory(sw_out_of_memory_handler *handler);
/* Make the process keep freed memory for its next allocations instead of returning it to the
 * system, because a planner allocates much and often. Has an effect with glibc only. */
void sw_memory_keep(void);

/* Allocate zeroed memory, to be freed by free(). What sw_try_alloc returns is 64-byte aligned; NULL: the
 * system refuses. What sw_alloc returns is aligned so if it is larger than a KiB, else as malloc aligns. */
void *sw_try_alloc(size_t bytes);
void *sw_alloc(size_t bytes);
/* Set *product to a * b. Return false, and leave *product untouched, if the product does not fit.
 * All sizes are non-negative. */
bool sw_mul_i64(int64_t a, int64_t b, int64_t *product);
/* Compares two uint32_t for qsort and bsearch, ascending. */
int sw_compare_u32(const void *a, const void *b);
/* A number with what it is sorted by. */
typedef struct sw_keyed {
	double key;
	uint32_t number;
} sw_keyed;
/* Compares two sw_keyed for qsort: ascending by their keys, equal keys by their numbers. */
int sw_compare_keyed(const void *a, const void *b);
/* Return the greatest common divisor of two non-negative numbers; gcd(0, n) is n. */
static inline int64_t sw_gcd(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}
/* Divide rounding towards minus infinity, and towards plus infinity; b > 0. */
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

/* An arena holds the objects of one lifetime. They are allocated zeroed and all freed by
 * sw_arena_clear. When SW_ARENA_SEPARATE is defined (debug and sanitizer builds) each object is
 * allocated by itself, so that a sanitizer sees an overrun. Not thread-safe. */
typedef struct sw_arena {
	struct sw_arena_block *blocks;
	size_t bytes; /* allocated so far */
} sw_arena;

void sw_arena_init(sw_arena *arena);
void sw_arena_clear(sw_arena *arena); /* leaves the arena initialised */
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

/* A growing string. It is always zero-terminated once something was added. */
typedef struct sw_text {
	char *data;
	size_t len, cap;
} sw_text;

void sw_text_clear(sw_text *text);
void sw_text_add(sw_text *text, const char *string);
void sw_text_add_n(sw_text *text, const char *string, size_t length);
void sw_text_addf(sw_text *text, const char *format, ...) SW_PRINTF(2, 3);
/* Return how many bytes from the start of the string form whole UTF-8 characters. */
size_t sw_utf8_length(const char *string, size_t length);
/* Copy a string into an array of `capacity` bytes. A string that is too long is cut between two
 * characters; the copy ends at the first byte that is not UTF-8. */
void sw_text_cut(const char *string, char *to, size_t capacity);
/* Return how many bytes from the start of the string are printable characters: UTF-8 without
 * control characters, those that end lines or turn the direction of writing included. */
size_t sw_printable_length(const char *string, size_t length);
/* Add a string so that every byte can be seen: what is not printable becomes \n, \t, \r or \xNN.
 * With `lines`, line breaks and tabs stay what they are. */
void sw_text_add_printable(sw_text *text, const char *string, bool lines);
/* Add a number in the form that people read ("1.5 MiB", "2.3 s"): bytes in powers of 1024, seconds
 * as s/ms/us. */
void sw_text_add_bytes(sw_text *text, double bytes);
void sw_text_add_seconds(sw_text *text, double seconds);
void sw_text_add_count(sw_text *text, double count); /* 1.2 k, 3.4 M, 5.6 G */
void sw_text_add_amount(sw_text *text, double count, const char *unit); /* 1.2 kB/s, 3 FLOP */

/* A table for people: columns are padded to the widest cell and separated by two spaces, numbers
 * are right-aligned. Rows are added cell by cell. sw_table_add_to appends the table to a text and
 * leaves the table as it is. */
typedef struct sw_table {
	int columns;
	SW_VEC(char *) cells; /* row-major; the first row is the heading */
} sw_table;
void sw_table_init(sw_table *table, int columns, const char *const headings[]);
void sw_table_cell(sw_table *table, const char *format, ...) SW_PRINTF(2, 3);
/* A function that adds a number to a text, for example sw_text_add_bytes or sw_text_add_seconds. */
typedef void sw_text_add_number(sw_text *text, double number);
void sw_table_cell_number(sw_table *table, sw_text_add_number *add, double number);
void sw_table_add_to(const sw_table *table, sw_text *text);
void sw_table_clear(sw_table *table);

/* Most bytes of a file that is read whole, unpacked: of programs and data; of JSON and YAML, whose
 * values take many times their text. A device that never ends, or a gzip file that unpacks to
 * more, is refused before it fills the memory. */
#define SW_MAX_FILE_BYTES ((size_t)2 << 30)
#define SW_MAX_JSON_BYTES ((size_t)256 << 20)
#define SW_MAX_YAML_BYTES ((size_t)16 << 20)
/* Open a file for reading. A pipe with a name that nobody opens for writing within 10 s is an
 * error. The caller closes *descriptor. */
sw_status sw_file_open(const char *path, int *descriptor, sw_error *err);
/* Read a whole file of at most SW_MAX_FILE_BYTES, or `most` bytes; gzip is recognised by its first
 * bytes and unpacked. The bytes are followed by one zero that is not counted. The caller frees
 * *data with free(). */
sw_status sw_file_read(const char *path, char **data, size_t *length, sw_error *err);
sw_status sw_file_read_most(const char *path, size_t most, char **data, size_t *length,
                            sw_error *err);
/* A file whose bytes are read where they lie on the disk, so that only what is touched is read. A
 * gzip file is unpacked to memory, as by sw_file_read. A pipe is refused. Whoever shortens the file
 * while it is mapped makes reading it fail. */
typedef struct sw_mapping {
	const char *data;
	size_t length;
	bool mapped;
} sw_mapping;
sw_status sw_mapping_open(const char *path, sw_mapping *mapping, sw_error *err);
void sw_mapping_close(sw_mapping *mapping);
/* Write through a temporary file beside the target and rename it, so that all or nothing is
 * written. The temporary file has no name until it is whole, where the file system can do that, so
 * that a killed process leaves none. A file that is replaced keeps its permissions; one that nobody
 * may write is not replaced; one that has several names is overwritten in place, as is a device. An
 * empty path or "-" is standard output. */
sw_status sw_file_write(const char *path, const char *data, size_t length, sw_error *err);
/* Return 0 if a file could be written there now, else the errno that says why not. */
int sw_file_why_not_writable(const char *path);
/* A sink writes a file in pieces, for data too large to hold in memory. Errors on the way are
 * reported at the end: sw_sink_close puts the whole file in place, or returns why it could not and
 * leaves no file. It frees the sink either way. */
typedef struct sw_sink sw_sink;
sw_status sw_sink_open(const char *path, sw_sink **sink, sw_error *err);
void sw_sink_put(sw_sink *sink, const char *data, size_t length);
sw_status sw_sink_close(sw_sink *sink, sw_error *err);

/* A source reads the bytes of a file piece by piece, for data too large to hold in memory. Its
 * errors name no file. */
typedef struct sw_source sw_source;
sw_status sw_source_open(const char *path, sw_source **source, sw_error *err);
/* borrows the data; unpacks gzip too */
sw_source *sw_source_memory(const char *data, size_t length);
/* Read up to `capacity` bytes; *got is 0 at the end, and only there. */
sw_status sw_source_read(sw_source *source, char *buffer, size_t capacity, size_t *got,
                         sw_error *err);
/* Return the fraction of the file that was read, from 0 to 1; 0 for a pipe. */
double sw_source_fraction(const sw_source *source);
bool sw_source_is_gzip(const sw_source *source);
void sw_source_close(sw_source *source); /* NULL is fine */

/* Read the value of an option: a whole number from 0; seconds, such as 2.5 or 2.5s; bytes above 0,
 * such as 16GiB. Return false, and leave the value undefined, where the text is anything else. */
bool sw_parse_count(const char *text, int64_t *count);
bool sw_parse_seconds(const char *text, double *seconds);
bool sw_parse_bytes(const char *text, int64_t *bytes);

/* The candidate that differs least from a word, in bytes inserted, removed, replaced or exchanged
 * with their neighbour, if that is no more than a third of the longer one. Set `word`, try all candidates,
 * and read `found`, which is one of them, or NULL. */
typedef struct sw_nearest {
	const char *word;
	const char *found;
	size_t distance;
} sw_nearest;
void sw_nearest_try(sw_nearest *nearest, const char *candidate); /* O(product of the lengths) */
/* Return what a message says behind a word that is not known: " (nearest: 'strategy')", or "" where
 * nothing is near. */
typedef struct sw_nearest_words {
	char text[96];
} sw_nearest_words;
sw_nearest_words sw_nearest_hint(const sw_nearest *nearest);

/* ---- hashes and random numbers ---------------------------------------------------------- */

uint64_t sw_hash_bytes(const void *data, size_t bytes, uint64_t seed); /* XXH3 */
uint64_t sw_hash_u64(uint64_t a, uint64_t b);

/* A hash map with open addressing. Keys are copied. The value UINT32_MAX means "absent". */
#define SW_ABSENT UINT32_MAX
typedef struct sw_map_slot sw_map_slot;
typedef struct sw_map {
	sw_map_slot *slots;
	size_t cap, len;
	sw_arena keys;
} sw_map;
void sw_map_clear(sw_map *map);
uint32_t sw_map_get(const sw_map *map, const void *key, size_t key_bytes);
/* Set the value of a key. Return the earlier value, or SW_ABSENT if there was none. */
uint32_t sw_map_put(sw_map *map, const void *key, size_t key_bytes, uint32_t value);
/* Set the value of a key that is absent; an earlier value stays in place. Return the value that is
 * in the map afterwards. */
uint32_t sw_map_intern(sw_map *map, const void *key, size_t key_bytes, uint32_t value);

/* Counter-based random numbers: the number at (seed, stream, index) depends on nothing else, so
 * that every layout of a tensor draws the same numbers. Mixer: splitmix64's finaliser (Steele, Lea,
 * Flood 2014), applied to the chained triple. */
uint64_t sw_random_bits(uint64_t seed, uint64_t stream, uint64_t index);
double sw_random_unit(uint64_t seed, uint64_t stream, uint64_t index);   /* [0, 1), 53 bits */
double sw_random_normal(uint64_t seed, uint64_t stream, uint64_t index); /* Box-Muller */

/* A random sequence for tests and searches; the caller holds its state. */
typedef struct sw_rng {
	uint64_t seed, next;
} sw_rng;
uint64_t sw_rng_bits(sw_rng *rng);
int64_t sw_rng_below(sw_rng *rng, int64_t bound); /* 0 <= result < bound, bound >= 1 */
double sw_rng_unit(sw_rng *rng);

/* ---- statistics ------------------------------------------------------------------------- */

double sw_median(double *values, size_t n); /* sorts the values; NaN if there are none */
/* Set ranks[i] to the rank of values[i] in ascending order, from 0; ties get the mean of their
 * ranks. O(n^2). */
void sw_ranks(const double *values, size_t n, double *ranks);
/* Return Spearman's rank correlation; NaN if n < 2. O(n^2). */
double sw_spearman(const double *x, const double *y, size_t n);

/* ---- JSON and YAML ---------------------------------------------------------------------- */

/* JSON values are jansson's json_t. These functions add our errors: the message names a missing key
 * or a wrong type with the path to it. `where` is the path of the object ("inputs[3].init"). */
/* From now on refused memory is fatal to jansson as it is to arenas: call it once, before the first
 * JSON value is made. */
void sw_json_never_short(void);
/* reads gzip too, up to SW_MAX_JSON_BYTES; free with json_decref */
sw_status sw_json_read(const char *path, json_t **root, sw_error *err);
sw_status sw_json_parse(const char *text, size_t length, json_t **root, sw_error *err);
sw_status sw_json_get_int(const json_t *object, const char *key, const char *where, int64_t *value,
                          sw_error *err);
sw_status sw_json_get_real(const json_t *object, const char *key, const char *where, double *value,
                           sw_error *err);
/* *value is borrowed from the object. */
sw_status sw_json_get_text(const json_t *object, const char *key, const char *where,
                           const char **value, sw_error *err);
sw_status sw_json_get_array(const json_t *object, const char *key, const char *where,
                            json_t **value, sw_error *err);
sw_status sw_json_get_object(const json_t *object, const char *key, const char *where,
                             json_t **value, sw_error *err);

/* Refuse a member of the object that is none of the n keys (NULL ones are none): "WHERE.KEY: unknown
 * key", with the key that is nearest. O(members * n). */
sw_status sw_json_check_keys(const json_t *object, const char *where, const char *const *keys,
                             size_t n, sw_error *err);

/* JSON of any size, read in one pass and little memory (64 KiB): the caller pulls value after
 * value, in the order of the text, and skips the values that it does not know.
 *
 *     sw_json_enter_object(s);
 *     while (sw_json_next_key(s, &key))
 *             if (strcmp(key, "sizes") == 0) sw_json_take_ints(s, &sizes); else sw_json_skip(s);
 *     sw_json_finish(s);
 *     status = sw_json_stream_free(s);
 *
 * The first error stops the stream: from then on every call returns false, and *err has the place
 * in the text and the path to the value. Nesting deeper than 64 is an error; keys are cut after 39
 * bytes; duplicate keys are left for the caller to detect. */
typedef struct sw_json_stream sw_json_stream;
typedef struct sw_json_place {
	int line, column; /* in bytes, from 1 */
} sw_json_place;
typedef SW_VEC(int64_t) sw_numbers;
/* The stream borrows source and err. *err is written at the first error only. */
sw_json_stream *sw_json_stream_new(sw_source *source, sw_error *err);
/* returns the first error, SW_OK if there was none */
sw_status sw_json_stream_free(sw_json_stream *s);
bool sw_json_enter_object(sw_json_stream *s);
bool sw_json_enter_array(sw_json_stream *s);
/* Move to the next member or item. Return false if there is none; the object or array is then left.
 * *key is valid until the next call. */
bool sw_json_next_key(sw_json_stream *s, const char **key);
bool sw_json_next_item(sw_json_stream *s);
/* Read a number that is a 64-bit integer, in any notation (17, 1e18, 3.0). */
bool sw_json_take_int(sw_json_stream *s, int64_t *value);
/* Read an array of 64-bit integers, which replace the contents of the list. */
bool sw_json_take_ints(sw_json_stream *s, sw_numbers *list);
/* Read a null. Return false, and read nothing, if the next value is not null. */
bool sw_json_take_null(sw_json_stream *s);
bool sw_json_skip(sw_json_stream *s); /* skips a value of any kind */
/* Require that only white space follows, up to the source's end. */
bool sw_json_finish(sw_json_stream *s);
sw_json_place sw_json_stream_place(sw_json_stream *s); /* place of the next value */
/* Report the caller's own error, at a place noted earlier; or, if place is NULL, at the current
 * place, with the path to the current value. Returns false. */
bool sw_json_stream_fail(sw_json_stream *s, const sw_json_place *place, const char *format, ...)
	SW_PRINTF(3, 4);

/* A YAML document (libyaml) as a tree with places, which lives in the arena. */
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
/* Sleep until `moment_s` on the clock of sw_now_s, as exactly as the system can: without the 50
 * microseconds of slack that Linux adds to a thread's timers. */
void sw_sleep_until(double moment_s);
/* Ask for a short time slice for the calling thread, which waits more than it computes. When it has
 * something to do, the scheduler gives it a core at once, taken from a thread that computes, and
 * takes the core back soon (Linux 6.12; elsewhere nothing changes). */
void sw_thread_run_briefly(void);
/* The time that a thread of this process has run on a processor so far, and the time during which
 * it was ready to run but other threads had the processors. Linux counts a thread that yields as
 * ready. */
typedef struct sw_thread_times {
	double cpu_s, delayed_s;
} sw_thread_times;
int sw_thread_number(void); /* number of the calling thread */
/* Return the times of a thread, read from the system; zeros where the system does not give them.
 * One call takes microseconds. */
sw_thread_times sw_thread_times_of(int number);
size_t sw_peak_memory_bytes(void); /* of this process so far (VmHWM) */
int sw_cpu_count(void);
/* Return the number of threads that is asked for, where 0 asks for one per processor. */
int sw_thread_count(int asked);

/* Call work(context, i) for i in [0, n) on up to `threads` threads; return when all calls are
 * done. */
void sw_parallel_for(int64_t n, int threads, void (*work)(void *context, int64_t i), void *context);
/* Call first(context, i) for i in [0, n) in order, on the calling thread, and then(context, i) once
 * first(context, i) is over, on any of `threads` threads. */
void sw_pipeline(int64_t n, int threads, void (*first)(void *context, int64_t i),
                 void (*then)(void *context, int64_t i), void *context);
/* Call work(context) on a new thread, concurrently with the caller, who waits for it with
 * sw_beside_join. If `threads` is 1 or the system refuses a thread, sw_beside_join makes the call
 * itself. */
typedef struct sw_beside sw_beside;
sw_beside *sw_beside_start(int threads, void (*work)(void *context), void *context);
void sw_beside_join(sw_beside *beside); /* waits until the work is done; frees */

/* A progress line on standard error. It is redrawn on a terminal at most ten times a second and
 * wiped at the end; nothing is printed when standard error is not a terminal, or quiet is set. */
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
