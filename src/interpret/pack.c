#include "interpret/pack.h"

#include <string.h>

#define MAX_EXACT_BUFFERS 6144 /* number of buffers packed by the greedy method */
/* Pairs of buffers compared while one order is improved: at most MAX_PAIRS, and of few buffers about
 * as many as MAX_PASSES passes over them compare, since further ones only repeat themselves. */
#define MAX_PAIRS 4000000
#define MAX_PASSES 64
#define TOLERANCE_DIVISOR 256  /* stop within live bytes / 256 of the lower bound */

/* A packed buffer; the packer keeps them sorted by offset. */
typedef struct placed {
	int64_t offset, end_offset;
} placed;

/* The live ranges of packed buffers, in one array each, since they are compared in blocks of
 * BLOCK. */
#define BLOCK 128
typedef struct live_ranges {
	int32_t *begin, *end;
} live_ranges;

typedef struct packer {
	sw_packed *buffers;
	uint32_t *order;   /* indices of the buffers in the order of packing */
	placed *by_offset; /* the packed buffers */
	live_ranges live;  /* their live ranges, with space for one more block at the end */
	size_t n_placed;
	bool lowest;  /* take the lowest gap, not the tightest */
	int64_t work; /* remaining budget: pairs of buffers that may still be compared */
} packer;

/* ---- orders ----------------------------------------------------------------------------- */

typedef struct key {
	double major;
	int64_t minor;
	uint32_t index;
} key;

static int compare_keys(const void *a, const void *b)
{
	const key *x = a, *y = b;
	if (x->major != y->major)
		return x->major < y->major ? 1 : -1;
	if (x->minor != y->minor)
		return x->minor < y->minor ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Keys of the order of packing: by bytes; by magnitude (a power of two of bytes), the longest live
 * range first within one magnitude; by area (bytes times program points). The largest key comes
 * first. */
typedef enum order_key { BY_BYTES, BY_MAGNITUDE, BY_AREA } order_key;

static double weight(const sw_packed *b, order_key by)
{
	if (by == BY_MAGNITUDE)
		return (double)(64 - __builtin_clzll((uint64_t)b->bytes | 1));
	return (double)b->bytes * (by == BY_AREA ? (double)b->end - b->begin + 1 : 1);
}

static void order_by(packer *p, size_t n, order_key by)
{
	key *keys = sw_alloc(n * sizeof *keys);
	for (size_t i = 0; i < n; i++) {
		const sw_packed *b = &p->buffers[i];
		keys[i] = (key){weight(b, by), (int64_t)b->end - b->begin + 1, (uint32_t)i};
	}
	qsort(keys, n, sizeof *keys, compare_keys);
	for (size_t i = 0; i < n; i++)
		p->order[i] = keys[i].index;
	free(keys);
}

/* ---- greedy ----------------------------------------------------------------------------- */

/* Sanitizers leave this function alone: with a check of each element it would take most of the time
 * of planning under them. Each block has the capacity that it uses, as sw_pack allocates it. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined", "thread")))

/* Set overlaps[i] for the buffers of a block that are live while x is. */
SW_VECTORISED UNCHECKED static void find_overlaps(const int32_t *begin, const int32_t *end,
                                                  int32_t x_begin, int32_t x_end, uint8_t *overlaps)
{
	for (int i = 0; i < BLOCK; i++)
		overlaps[i] = (begin[i] <= x_end) & (end[i] >= x_begin);
}

/* The best gap so far between buffers that are live at the same time: the tightest, or the
 * lowest. */
typedef struct gap {
	int64_t at, best, bytes; /* at: end of the buffers below; best: offset, -1: none */
} gap;

/* Return false if the search can stop. */
static bool visit(const packer *p, const placed *b, int64_t bytes, gap *g)
{
	int64_t free_bytes = b->offset - g->at;
	if (free_bytes >= bytes && free_bytes < g->bytes) {
		g->best = g->at;
		g->bytes = free_bytes;
		if (p->lowest)
			return false;
	}
	g->at = SW_MAX(g->at, b->end_offset);
	return true;
}

/* Return eight bytes as one number, of which the byte i is bits 8 i to 8 i + 7. */
static uint64_t eight_bytes(const uint8_t *bytes)
{
	uint64_t eight;
	memcpy(&eight, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	eight = __builtin_bswap64(eight);
#endif
	return eight;
}

/* Go from one buffer that overlaps to the next: most do not, and eight of these are skipped at once. */
static bool visit_block(const packer *p, size_t from, const uint8_t *overlaps, int64_t bytes,
                        gap *g)
{
	size_t n = SW_MIN(p->n_placed - from, (size_t)BLOCK);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t some = eight_bytes(&overlaps[i]);
		if (n - i < 8)
			some &= (UINT64_C(1) << 8 * (n - i)) - 1;
		for (; some; some &= some - 1) {
			size_t k = i + (size_t)__builtin_ctzll(some) / 8;
			if (!visit(p, &p->by_offset[from + k], bytes, g))
				return false;
		}
	}
	return true;
}

/* Return an offset in a gap between the buffers that are live while x is, otherwise above them
 * all. */
static int64_t find_gap(const packer *p, const sw_packed *x)
{
	uint8_t overlaps[BLOCK];
	gap g = {0, -1, INT64_MAX};
	for (size_t from = 0; from < p->n_placed; from += BLOCK) {
		find_overlaps(&p->live.begin[from], &p->live.end[from], x->begin, x->end, overlaps);
		if (!visit_block(p, from, overlaps, x->bytes, &g))
			break;
	}
	return g.best >= 0 ? g.best : g.at;
}

static void insert(packer *p, const sw_packed *x)
{
	size_t low = 0, high = p->n_placed;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (p->by_offset[middle].offset <= x->offset)
			low = middle + 1;
		else
			high = middle;
	}
	size_t behind = p->n_placed++ - low;
	memmove(&p->by_offset[low + 1], &p->by_offset[low], behind * sizeof *p->by_offset);
	memmove(&p->live.begin[low + 1], &p->live.begin[low], behind * sizeof *p->live.begin);
	memmove(&p->live.end[low + 1], &p->live.end[low], behind * sizeof *p->live.end);
	p->by_offset[low] = (placed){x->offset, x->offset + x->bytes};
	p->live.begin[low] = x->begin;
	p->live.end[low] = x->end;
}

/* Place buffers in order as long as they end below the limit. Return the position in the order of
 * the first buffer that does not; n: none. Each pair of buffers that is compared costs one unit of
 * work. */
static size_t pack_below(packer *p, size_t n, int64_t limit)
{
	p->n_placed = 0;
	for (size_t i = 0; i < n; i++) {
		sw_packed *x = &p->buffers[p->order[i]];
		p->work -= (int64_t)p->n_placed + 1;
		x->offset = find_gap(p, x);
		if (x->bytes > limit - x->offset)
			return i;
		insert(p, x);
	}
	return n;
}

static int64_t height(const packer *p, size_t n)
{
	int64_t top = 0;
	for (size_t i = 0; i < n; i++)
		top = SW_MAX(top, p->buffers[p->order[i]].offset + p->buffers[p->order[i]].bytes);
	return top;
}

/* ---- slots ------------------------------------------------------------------------------ */

static int compare_slots(const void *a, const void *b)
{
	const sw_packed *x = *(sw_packed *const *)a, *y = *(sw_packed *const *)b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* A heap of slots, the one that is free again first on top. */
typedef struct slot {
	int32_t end;
	int64_t offset;
} slot;

static void sift_down(slot *heap, size_t n)
{
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child + 1 < n && heap[child + 1].end < heap[child].end)
			child++;
		if (child >= n || heap[i].end <= heap[child].end)
			return;
		slot top = heap[i];
		heap[i] = heap[child];
		heap[child] = top;
		i = child;
	}
}

static void push(slot *heap, size_t n, slot s)
{
	size_t i = n;
	for (; i && heap[(i - 1) / 2].end > s.end; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = s;
}

/* Give each size as many slots as there are buffers of that size live at once. */
static int64_t pack_in_slots(packer *p, size_t first, size_t n, int64_t base)
{
	size_t count = n - first, n_slots = 0;
	sw_packed **sorted = sw_alloc((count + 1) * sizeof(*sorted));
	slot *heap = sw_alloc((count + 1) * sizeof *heap);
	for (size_t i = 0; i < count; i++)
		sorted[i] = &p->buffers[p->order[first + i]];
	qsort(sorted, count, sizeof(*sorted), compare_slots);
	for (size_t i = 0; i < count && base < INT64_MAX; i++) {
		sw_packed *x = sorted[i];
		n_slots = i && sorted[i - 1]->bytes == x->bytes ? n_slots : 0;
		if (n_slots && heap[0].end < x->begin) {
			x->offset = heap[0].offset;
			heap[0].end = x->end;
			sift_down(heap, n_slots);
		} else {
			x->offset = base;
			base = x->bytes > INT64_MAX - base ? INT64_MAX : base + x->bytes;
			push(heap, n_slots++, (slot){x->end, x->offset});
		}
	}
	free(sorted);
	free(heap);
	return base;
}

/* ---- packing ---------------------------------------------------------------------------- */

static void save_offsets(const packer *p, size_t n, int64_t *offsets)
{
	for (size_t i = 0; i < n; i++)
		offsets[i] = p->buffers[i].offset;
}

/* Pack repeatedly below the best height so far, each time moving the buffer that did not fit to the
 * front, while there is work left. */
static void improve(packer *p, size_t n, int64_t good_bytes, int64_t *best, int64_t *offsets)
{
	int64_t most = SW_MIN((int64_t)n + 1, MAX_PAIRS); /* its square must not overflow */
	p->work = SW_MIN(MAX_PASSES * most * most, MAX_PAIRS);
	while (*best > good_bytes && p->work > 0) {
		size_t at = pack_below(p, n, *best - 1);
		if (at == n) {
			*best = height(p, n);
			save_offsets(p, n, offsets);
			continue;
		}
		uint32_t misfit = p->order[at];
		memmove(&p->order[1], &p->order[0], at * sizeof *p->order);
		p->order[0] = misfit;
	}
}

static const struct {
	order_key by;
	bool lowest;
} heuristics[] = {{BY_BYTES, false},
                  {BY_MAGNITUDE, true},
                  {BY_AREA, false},
                  {BY_BYTES, true},
                  {BY_AREA, true}};
#define N_HEURISTICS 5         /* number of rows above that are tried, in this order */
#define N_HEURISTICS_IF_MANY 2 /* the same beyond MAX_EXACT_BUFFERS buffers */

static int64_t pack_all(packer *p, size_t n, int n_heuristics)
{
	int64_t *offsets = sw_alloc((n + 1) * sizeof *offsets), best = INT64_MAX;
	int64_t live = sw_packed_live(p->buffers, n), good_bytes = live + live / TOLERANCE_DIVISOR;
	for (int h = 0; h < n_heuristics && (h == 0 || best > good_bytes); h++) {
		order_by(p, n, heuristics[h].by);
		p->lowest = heuristics[h].lowest;
		improve(p, n, good_bytes, &best, offsets);
	}
	for (size_t i = 0; i < n; i++)
		p->buffers[i].offset = offsets[i];
	free(offsets);
	return best;
}

/* Pack all buffers in slots, which is fast. */
static int64_t pack_roughly(packer *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p->order[i] = (uint32_t)i;
	return pack_in_slots(p, 0, n, 0);
}

/* Pack the largest buffers well within a small budget, and the others in slots above them. */
static int64_t pack_largest(packer *p, size_t n)
{
	sw_packed *all = p->buffers, *largest = sw_alloc(MAX_EXACT_BUFFERS * sizeof *largest);
	order_by(p, n, BY_BYTES);
	uint32_t *order = p->order;
	for (size_t i = 0; i < MAX_EXACT_BUFFERS; i++)
		largest[i] = all[order[i]];
	p->buffers = largest;
	p->order = sw_alloc(MAX_EXACT_BUFFERS * sizeof *p->order);
	int64_t total = pack_all(p, MAX_EXACT_BUFFERS, N_HEURISTICS_IF_MANY);
	for (size_t i = 0; i < MAX_EXACT_BUFFERS; i++)
		all[order[i]] = largest[i];
	free(largest);
	free(p->order);
	p->buffers = all;
	p->order = order;
	return total == INT64_MAX ? total : pack_in_slots(p, MAX_EXACT_BUFFERS, n, total);
}

int64_t sw_pack(sw_packed *buffers, size_t n, int64_t enough_bytes)
{
	packer p = {.buffers = buffers};
	p.order = sw_alloc((n + 1) * sizeof *p.order);
	size_t most = SW_MIN(n, (size_t)MAX_EXACT_BUFFERS) + 1;
	p.by_offset = sw_alloc(most * sizeof *p.by_offset);
	p.live.begin = sw_alloc((most + BLOCK) * sizeof *p.live.begin);
	p.live.end = sw_alloc((most + BLOCK) * sizeof *p.live.end);
	int64_t total = enough_bytes > 0 ? pack_roughly(&p, n) : INT64_MAX;
	if (total > enough_bytes)
		total = n <= MAX_EXACT_BUFFERS ? pack_all(&p, n, N_HEURISTICS)
		                               : pack_largest(&p, n);
	free(p.order);
	free(p.by_offset);
	free(p.live.begin);
	free(p.live.end);
	return total;
}

int64_t sw_packed_live(const sw_packed *buffers, size_t n)
{
	int32_t points = 0;
	for (size_t i = 0; i < n; i++)
		points = SW_MAX(points, buffers[i].end + 1);
	double *changes = sw_alloc(((size_t)points + 1) * sizeof *changes), live = 0, most = 0;
	for (size_t i = 0; i < n; i++) {
		changes[buffers[i].begin] += (double)buffers[i].bytes;
		changes[buffers[i].end + 1] -= (double)buffers[i].bytes;
	}
	for (int32_t m = 0; m < points; m++) {
		live += changes[m];
		most = SW_MAX(most, live);
	}
	free(changes);
	return most >= 0x1p63 ? INT64_MAX : (int64_t)most;
}
