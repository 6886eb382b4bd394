#include "interpret/pack.h"

#include <string.h>

#define MOST_EXACT 6144
#define MOST_WORK 4000000 /* pairs of buffers looked at while improving, per way */
#define GOOD_ENOUGH 256   /* within so much of what is live */

/* By offset. */
typedef struct placed {
	int64_t offset, end_offset;
} placed;

/* When they live, one array each: they are looked at by the block. */
#define BLOCK 128
typedef struct lifetimes {
	int32_t *begin, *end;
} lifetimes;

typedef struct packer {
	sw_packed *buffers;
	uint32_t *order;   /* indices, those to place first in front */
	placed *by_offset; /* those that are placed, */
	lifetimes lives;   /* and when they live; room for a whole block behind the last */
	size_t n_placed;
	bool lowest;  /* into the lowest gap, not the tightest */
	int64_t work; /* pairs that may still be looked at */
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

/* What comes first: the largest; of those that are about as large (by powers of two) the longest;
 * bytes times points. */
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
 * of planning under them, and each block has room for all of it, as sw_pack allocates it. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined", "thread")))

/* Of a block, who lives while x does. */
SW_VECTORISED UNCHECKED static void meet(const int32_t *begin, const int32_t *end, int32_t x_begin,
                                         int32_t x_end, uint8_t *meets)
{
	for (int i = 0; i < BLOCK; i++)
		meets[i] = (begin[i] <= x_end) & (end[i] >= x_begin);
}

/* The tightest gap, or the lowest, between those that live at the same time. */
typedef struct gap {
	int64_t at, best, bytes; /* the end of those below; -1: none yet */
} gap;

/* false: it need not be looked at further. */
static bool pass(const packer *p, const placed *b, int64_t bytes, gap *g)
{
	int64_t room = b->offset - g->at;
	if (room >= bytes && room < g->bytes) {
		g->best = g->at;
		g->bytes = room;
		if (p->lowest)
			return false;
	}
	g->at = SW_MAX(g->at, b->end_offset);
	return true;
}

/* Of eight at once mostly none meets. */
static bool pass_block(const packer *p, size_t from, const uint8_t *meets, int64_t bytes, gap *g)
{
	size_t n = SW_MIN(p->n_placed - from, (size_t)BLOCK);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t some;
		memcpy(&some, &meets[i], 8);
		for (size_t k = i; some && k < SW_MIN(i + 8, n); k++)
			if (meets[k] && !pass(p, &p->by_offset[from + k], bytes, g))
				return false;
	}
	return true;
}

/* In a gap between those that live while x does, else above them all. */
static int64_t find_gap(const packer *p, const sw_packed *x)
{
	uint8_t meets[BLOCK];
	gap g = {0, -1, INT64_MAX};
	for (size_t from = 0; from < p->n_placed; from += BLOCK) {
		meet(&p->lives.begin[from], &p->lives.end[from], x->begin, x->end, meets);
		if (!pass_block(p, from, meets, x->bytes, &g))
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
	memmove(&p->lives.begin[low + 1], &p->lives.begin[low], behind * sizeof *p->lives.begin);
	memmove(&p->lives.end[low + 1], &p->lives.end[low], behind * sizeof *p->lives.end);
	p->by_offset[low] = (placed){x->offset, x->offset + x->bytes};
	p->lives.begin[low] = x->begin;
	p->lives.end[low] = x->end;
}

/* Places buffers in order as long as they end below the limit; the first in the order that does
 * not, n: none. Takes from the work one per pair that is looked at. */
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

/* Slots by when they are free again, the earliest on top. */
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
		slot kept = heap[i];
		heap[i] = heap[child];
		heap[child] = kept;
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

/* Of each size as many slots as live at once. */
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

/* ---- the whole -------------------------------------------------------------------------- */

static void keep_offsets(const packer *p, size_t n, int64_t *offsets)
{
	for (size_t i = 0; i < n; i++)
		offsets[i] = p->buffers[i].offset;
}

/* Packs again, lower than the best so far, each time with what did not fit put in front, as long as
 * there is work left. */
static void improve(packer *p, size_t n, int64_t good, int64_t *best, int64_t *offsets)
{
	for (p->work = MOST_WORK; *best > good && p->work > 0;) {
		size_t at = pack_below(p, n, *best - 1);
		if (at == n) {
			*best = height(p, n);
			keep_offsets(p, n, offsets);
			continue;
		}
		uint32_t late = p->order[at];
		memmove(&p->order[1], &p->order[0], at * sizeof *p->order);
		p->order[0] = late;
	}
}

static const struct {
	order_key by;
	bool lowest;
} ways[] = {{BY_BYTES, false},
            {BY_MAGNITUDE, true},
            {BY_AREA, false},
            {BY_BYTES, true},
            {BY_AREA, true}};
#define MOST_WAYS 5
#define FEW_WAYS 2

static int64_t pack_all(packer *p, size_t n, int n_ways)
{
	int64_t *offsets = sw_alloc((n + 1) * sizeof *offsets), best = INT64_MAX;
	int64_t live = sw_packed_live(p->buffers, n), good = live + live / GOOD_ENOUGH;
	for (int way = 0; way < n_ways && (way == 0 || best > good); way++) {
		order_by(p, n, ways[way].by);
		p->lowest = ways[way].lowest;
		improve(p, n, good, &best, offsets);
	}
	for (size_t i = 0; i < n; i++)
		p->buffers[i].offset = offsets[i];
	free(offsets);
	return best;
}

/* All in slots, which takes no time. */
static int64_t pack_roughly(packer *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p->order[i] = (uint32_t)i;
	return pack_in_slots(p, 0, n, 0);
}

/* The largest as well as can be done in little time, the others in slots above them. */
static int64_t pack_largest(packer *p, size_t n)
{
	sw_packed *all = p->buffers, *largest = sw_alloc(MOST_EXACT * sizeof *largest);
	order_by(p, n, BY_BYTES);
	uint32_t *order = p->order;
	for (size_t i = 0; i < MOST_EXACT; i++)
		largest[i] = all[order[i]];
	p->buffers = largest;
	p->order = sw_alloc(MOST_EXACT * sizeof *p->order);
	int64_t total = pack_all(p, MOST_EXACT, FEW_WAYS);
	for (size_t i = 0; i < MOST_EXACT; i++)
		all[order[i]] = largest[i];
	free(largest);
	free(p->order);
	p->buffers = all;
	p->order = order;
	return total == INT64_MAX ? total : pack_in_slots(p, MOST_EXACT, n, total);
}

int64_t sw_pack(sw_packed *buffers, size_t n, int64_t enough)
{
	packer p = {.buffers = buffers};
	p.order = sw_alloc((n + 1) * sizeof *p.order);
	size_t most = SW_MIN(n, (size_t)MOST_EXACT) + 1;
	p.by_offset = sw_alloc(most * sizeof *p.by_offset);
	p.lives.begin = sw_alloc((most + BLOCK) * sizeof *p.lives.begin);
	p.lives.end = sw_alloc((most + BLOCK) * sizeof *p.lives.end);
	int64_t total = enough > 0 ? pack_roughly(&p, n) : INT64_MAX;
	if (total > enough)
		total = n <= MOST_EXACT ? pack_all(&p, n, MOST_WAYS) : pack_largest(&p, n);
	free(p.order);
	free(p.by_offset);
	free(p.lives.begin);
	free(p.lives.end);
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
