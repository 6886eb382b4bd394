/*
 * Products of bf16 by AMX. A tile holds 16 rows of 64 bytes; one instruction adds to a tile of 16 x
 * 16 sums the products of 32 contracted indices.
 *
 * Both operands are first brought into the order of tiles, each matrix as panels of 16 outer
 * indices, a panel as tiles of 32 contracted ones, filled up with zeros. A tile of the left operand
 * has a row per outer index; one of the right operand has a row per PAIR of contracted indices and
 * in it a pair for each outer index. So the pair, a word of 32 bits, is the unit of all moves, and
 * the two forms are each other's transposes. Then the result is computed in pieces of 32 x 32 sums,
 * which stay in registers over all contracted indices.
 */
#include "interpret/bf16_product.h"

#include <string.h>

#include "interpret/types.h"

enum { OUTER = 16, INNER = 32, PAIRS = INNER / 2, TILE_BYTES = OUTER * INNER * 2 };

static int64_t panels_of(int64_t outer)
{
	return (outer + OUTER - 1) / OUTER;
}

static int64_t steps_of(int64_t inner)
{
	return (inner + INNER - 1) / INNER;
}

int64_t sw_bf16_packed_bytes(int64_t outer, int64_t inner)
{
	return panels_of(outer) * steps_of(inner) * TILE_BYTES;
}

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WITH_VECTORS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define WITH_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

/* ---- is it there? ----------------------------------------------------------------------- */

/* The system saves tiles at a switch of threads only for processes that asked for it. */
static bool ask_for_tiles(void)
{
	enum { REQUEST = 0x1023, TILE_DATA = 18 };
	enum { F_BW_VL = 1 << 16 | 1 << 30, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, BF16 = 1 << 5 };
	unsigned a, b, c, d, e;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & F_BW_VL) != F_BW_VL ||
	    !(b & 1u << 31) || !(d & AMX_BF16) || !(d & AMX_TILE))
		return false;
	if (!__get_cpuid_count(7, 1, &a, &b, &c, &e) || !(a & BF16) ||
	    !__builtin_cpu_supports("avx512f"))
		return false;
	return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

/* The answer is the same for the life of the process, so it is at file scope. */
static struct {
	pthread_once_t once;
	bool there;
} tiles = {.once = PTHREAD_ONCE_INIT};

static void find_tiles(void)
{
	tiles.there = ask_for_tiles();
}

bool sw_bf16_tiles(void)
{
	pthread_once(&tiles.once, find_tiles);
	return tiles.there;
}

/* ---- the order of tiles ----------------------------------------------------------------- */

/* 64 bytes in memory, at any address: gcc 12 does not align locals to more than 32 bytes where the
 * address sanitizer checks uses after return (gcc's bug 110027). */
typedef __m512i_u vector;

/* Transpose 16 x 16 words: first within pairs and fours of rows, then of 128-bit lanes. */
WITH_VECTORS static void transpose_words(const vector in[16], vector out[16])
{
	vector x[16], y[16];
	for (int i = 0; i < 16; i += 2) {
		x[i] = _mm512_unpacklo_epi32(in[i], in[i + 1]);
		x[i + 1] = _mm512_unpackhi_epi32(in[i], in[i + 1]);
	}
	for (int i = 0; i < 16; i += 4) {
		for (int h = 0; h < 2; h++) {
			y[i + 2 * h] = _mm512_unpacklo_epi64(x[i + h], x[i + h + 2]);
			y[i + 2 * h + 1] = _mm512_unpackhi_epi64(x[i + h], x[i + h + 2]);
		}
	}
	for (int i = 0; i < 4; i++) {
		x[i] = _mm512_shuffle_i32x4(y[i], y[i + 4], 0x88);
		x[i + 4] = _mm512_shuffle_i32x4(y[i], y[i + 4], 0xdd);
		x[i + 8] = _mm512_shuffle_i32x4(y[i + 8], y[i + 12], 0x88);
		x[i + 12] = _mm512_shuffle_i32x4(y[i + 8], y[i + 12], 0xdd);
	}
	for (int i = 0; i < 4; i++) {
		out[i] = _mm512_shuffle_i32x4(x[i], x[i + 8], 0x88);
		out[i + 8] = _mm512_shuffle_i32x4(x[i], x[i + 8], 0xdd);
		out[i + 4] = _mm512_shuffle_i32x4(x[i + 4], x[i + 12], 0x88);
		out[i + 12] = _mm512_shuffle_i32x4(x[i + 4], x[i + 12], 0xdd);
	}
}

static uint32_t low_bits(int64_t n)
{
	return n >= 32 ? UINT32_MAX : (1u << n) - 1;
}

/* Read a row per outer index: contracted indices are neighbours. */
WITH_VECTORS static void read_rows(const uint16_t *x, int64_t outer_stride, int64_t outer,
                                   int64_t inner, vector row[16])
{
	for (int i = 0; i < OUTER; i++)
		row[i] = i < outer ? _mm512_maskz_loadu_epi16(low_bits(inner), x + i * outer_stride)
		                   : _mm512_setzero_si512();
}

/* Read a row per pair of contracted indices: outer indices are neighbours. */
WITH_VECTORS static void read_pairs(const uint16_t *x, int64_t inner_stride, int64_t outer,
                                    int64_t inner, vector row[16])
{
	const __mmask16 mask = (__mmask16)low_bits(outer);
	for (int i = 0; i < PAIRS; i++) {
		const uint16_t *at = x + 2 * i * inner_stride;
		__m256i even = _mm256_maskz_loadu_epi16(2 * i < inner ? mask : 0, at);
		__m256i odd =
			_mm256_maskz_loadu_epi16(2 * i + 1 < inner ? mask : 0, at + inner_stride);
		row[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(even),
		                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
	}
}

/* Read a row per outer index, whatever the strides. */
WITH_VECTORS static void read_any(const uint16_t *x, int64_t outer_stride, int64_t inner_stride,
                                  int64_t outer, int64_t inner, vector row[16])
{
	uint16_t copy[OUTER][INNER] = {{0}};
	for (int64_t i = 0; i < SW_MIN(outer, OUTER); i++)
		for (int64_t l = 0; l < SW_MIN(inner, INNER); l++)
			copy[i][l] = x[i * outer_stride + l * inner_stride];
	for (int i = 0; i < OUTER; i++)
		row[i] = _mm512_loadu_si512(copy[i]);
}

/* Write one tile. pairs: with a row per pair, otherwise per outer index. outer, inner: how much of
 * the matrix is left. */
WITH_VECTORS static void pack_tile(const sw_bf16_side *s, bool pairs, const uint16_t *x,
                                   int64_t outer, int64_t inner, char *tile)
{
	vector row[16], turned[16];
	bool read_as_pairs = s->outer_stride == 1 && s->inner_stride != 1;
	if (read_as_pairs)
		read_pairs(x, s->inner_stride, outer, inner, row);
	else if (s->inner_stride == 1)
		read_rows(x, s->outer_stride, outer, inner, row);
	else
		read_any(x, s->outer_stride, s->inner_stride, outer, inner, row);
	if (read_as_pairs != pairs)
		transpose_words(row, turned);
	for (int i = 0; i < 16; i++)
		_mm512_store_si512(tile + 64 * i, read_as_pairs != pairs ? turned[i] : row[i]);
}

/* What the threads share. */
typedef struct job {
	const sw_bf16_product *p;
	int64_t steps;
	int64_t a_panels, b_panels; /* of a matrix */
	int64_t columns;            /* panels of b in a piece of the result */
	int64_t a_bytes, b_bytes;   /* of a packed matrix */
} job;

static const uint16_t *matrix_of(const sw_bf16_product *p, const sw_bf16_side *s, int64_t batch)
{
	int64_t at = 0;
	for (int d = p->batch_rank - 1; d >= 0; d--) {
		at += batch % p->batch_dims[d] * s->batch_stride[d];
		batch /= p->batch_dims[d];
	}
	return s->data + at;
}

/* Panel i of all panels of the batch, a's before b's. */
static void pack_panel(void *context, int member, int64_t i)
{
	const job *j = context;
	int64_t both = j->a_panels + j->b_panels, batch = i / both, panel = i % both;
	bool pairs = panel >= j->a_panels;
	const sw_bf16_side *s = pairs ? &j->p->b : &j->p->a;
	panel -= pairs ? j->a_panels : 0;
	(void)member;
	char *to = (char *)s->packed + batch * (pairs ? j->b_bytes : j->a_bytes) +
	           panel * j->steps * TILE_BYTES;
	const uint16_t *from = matrix_of(j->p, s, batch) + panel * OUTER * s->outer_stride;
	for (int64_t step = 0; step < j->steps; step++)
		pack_tile(s, pairs, from + step * INNER * s->inner_stride, s->outer - panel * OUTER,
		          s->inner - step * INNER, to + step * TILE_BYTES);
}

/* ---- the product ------------------------------------------------------------------------ */

/* Write 16 x 16 sums, or as many of them as the result has. */
WITH_VECTORS static void write_sums(const sw_bf16_product *p, const float sums[16][16],
                                    int64_t batch, int64_t row, int64_t column)
{
	const int64_t n = p->b.outer;
	const __mmask16 mask = (__mmask16)low_bits(n - column);
	for (int64_t i = 0; i < SW_MIN(p->a.outer - row, OUTER); i++) {
		int64_t at = (batch * p->a.outer + row + i) * n + column;
		__m512 x = _mm512_loadu_ps(sums[i]);
		if (p->rounds)
			_mm256_mask_storeu_epi16((uint16_t *)p->c + at, mask,
			                         (__m256i)_mm512_cvtneps_pbh(x));
		else
			_mm512_mask_storeu_ps((float *)p->c + at, mask, x);
	}
}

/* All tiles have 16 rows of 64 bytes: byte 0 is the palette, from byte 16 on are the widths, from
 * byte 48 on the heights. */
WITH_TILES static void begin_tiles(void)
{
	unsigned char configuration[64] = {1};
	for (int i = 0; i < 8; i++) {
		configuration[16 + 2 * i] = 64;
		configuration[48 + i] = 16;
	}
	_tile_loadconfig(configuration);
}

/* Compute 32 x 32 sums, of two panels of each side; where a side has only one left it is taken
 * twice, and half of the sums are not written. */
WITH_TILES static void multiply_panels(const job *j, const char *a, const char *b, int64_t batch,
                                       int64_t row, int64_t column)
{
	_Alignas(64) float sums[16][16];
	const int64_t next = j->steps * TILE_BYTES;
	const bool two_rows = row + OUTER < j->p->a.outer,
		   two_columns = column + OUTER < j->p->b.outer;
	const char *a1 = two_rows ? a + next : a, *b1 = two_columns ? b + next : b;
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	for (int64_t at = 0; at < next; at += TILE_BYTES) {
		_tile_loadd(4, a + at, 64);
		_tile_loadd(6, b + at, 64);
		_tile_loadd(5, a1 + at, 64);
		_tile_loadd(7, b1 + at, 64);
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, sums, 64);
	write_sums(j->p, sums, batch, row, column);
	if (two_columns) {
		_tile_stored(1, sums, 64);
		write_sums(j->p, sums, batch, row, column + OUTER);
	}
	if (two_rows) {
		_tile_stored(2, sums, 64);
		write_sums(j->p, sums, batch, row + OUTER, column);
	}
	if (two_rows && two_columns) {
		_tile_stored(3, sums, 64);
		write_sums(j->p, sums, batch, row + OUTER, column + OUTER);
	}
}

/* Piece i of the result: 32 rows, of which the panels stay in the nearest cache, and some columns.
 */
WITH_TILES static void multiply_piece(void *context, int member, int64_t i)
{
	const job *j = context;
	int64_t across = (j->b_panels + j->columns - 1) / j->columns, down = (j->a_panels + 1) / 2;
	int64_t batch = i / (across * down), panel = i / across % down * 2,
		first = i % across * j->columns;
	const char *a = (const char *)j->p->a.packed + batch * j->a_bytes;
	const char *b = (const char *)j->p->b.packed + batch * j->b_bytes;
	(void)member;
	begin_tiles();
	for (int64_t k = first; k < SW_MIN(first + j->columns, j->b_panels); k += 2)
		multiply_panels(j, a + panel * j->steps * TILE_BYTES, b + k * j->steps * TILE_BYTES,
		                batch, panel * OUTER, k * OUTER);
	_tile_release();
}

/* Multiply-adds, and elements, that are worth a thread's turn. */
#define WORTH_A_TURN 1e6
#define WORTH_PACKING 16e3

void sw_bf16_multiply(sw_team *team, const sw_bf16_product *p)
{
	int64_t batches = 1;
	for (int d = 0; d < p->batch_rank; d++)
		batches *= p->batch_dims[d];
	job j = {.p = p,
	         .steps = steps_of(p->a.inner),
	         .a_panels = panels_of(p->a.outer),
	         .b_panels = panels_of(p->b.outer),
	         .a_bytes = sw_bf16_packed_bytes(p->a.outer, p->a.inner),
	         .b_bytes = sw_bf16_packed_bytes(p->b.outer, p->b.inner)};
	double panel = (double)(j.steps * INNER * OUTER), pair = panel * 2 * OUTER;
	j.columns = 2 * SW_MAX((int64_t)(WORTH_A_TURN / pair), 1);
	sw_team_run(team, batches * (j.a_panels + j.b_panels),
	            SW_MAX((int64_t)(WORTH_PACKING / panel), 1), pack_panel, &j);
	int64_t pieces =
		batches * ((j.a_panels + 1) / 2) * ((j.b_panels + j.columns - 1) / j.columns);
	double piece = pair * (double)SW_MIN(j.columns, j.b_panels);
	sw_team_run(team, pieces, SW_MAX((int64_t)(WORTH_A_TURN / piece), 1), multiply_piece, &j);
}

#else

bool sw_bf16_tiles(void)
{
	return false;
}

void sw_bf16_multiply(sw_team *team, const sw_bf16_product *p)
{
	(void)team;
	(void)p;
}

#endif
