#include "interpret/pack.h"

#include <string.h>

#define MOST_EXACT 6144
#define MOST_WORK 4000000 /* pairs of buffers looked at while improving, per way */
#define GOOD_ENOUGH 256   /* within so much of what is live */

/* What is looked at most, side by side. */
typedef struct placed {
	int64_t offset, end_offset;
	int32_t begin, end;
} placed;

typedef struct packer {
	sw_packed *buffers;
	uint32_t *order;   /* indices, those to place first in front */
	placed *by_offset; /* those that are placed */
	size_t n_placed;
	bool lowest;  /* into the lowest gap, not the tightest */
	int64_t work; /* pairs that may still be looked at */
} packer;

/* ---- orders ------------------------------------------------------------------------------------------------- */

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

static void order_by(packer *p, size_t n, bool area)
{
	key *keys = sw_alloc(n * sizeof *keys);
	for (size_t i = 0; i < n; i++) {
		const sw_packed *b = &p->buffers[i];
		int64_t moments = (int64_t)b->end - b->begin + 1;
		keys[i] = (key){(double)b->bytes * (area ? (double)moments : 1), moments, (uint32_t)i};
	}
	qsort(keys, n, sizeof *keys, compare_keys);
	for (size_t i = 0; i < n; i++)
		p->order[i] = keys[i].index;
	free(keys);
}

/* ---- greedy ------------------------------------------------------------------------------------------------- */

static bool meets(const sw_packed *a, const placed *b)
{
	return a->begin <= b->end && b->begin <= a->end;
}

/* The tightest gap, or the lowest, between those that live while x does, else above them all. */
static int64_t find_gap(const packer *p, const sw_packed *x)
{
	int64_t at = 0, best = -1, best_gap = INT64_MAX;
	for (size_t i = 0; i < p->n_placed; i++) {
		const placed *b = &p->by_offset[i];
		if (!meets(x, b))
			continue;
		int64_t gap = b->offset - at;
		if (gap >= x->bytes && p->lowest)
			return at;
		if (gap >= x->bytes && gap < best_gap) {
			best = at;
			best_gap = gap;
		}
		at = SW_MAX(at, b->end_offset);
	}
	return best >= 0 ? best : at;
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
	memmove(&p->by_offset[low + 1], &p->by_offset[low], (p->n_placed - low) * sizeof *p->by_offset);
	p->by_offset[low] = (placed){x->offset, x->offset + x->bytes, x->begin, x->end};
	p->n_placed++;
}

/* Places buffers in order as long as they end below the limit; the first in the order that does not, n: none. Takes from the work one per
 * pair that is looked at. */
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

static int64_t pack_greedily(packer *p, size_t n)
{
	return pack_below(p, n, INT64_MAX) < n ? INT64_MAX : height(p, n);
}

/* ---- slots ---------------------------------------------------------------------------------------------------- */

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

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static void keep_offsets(const packer *p, size_t n, int64_t *offsets)
{
	for (size_t i = 0; i < n; i++)
		offsets[i] = p->buffers[i].offset;
}

/* Packs again, lower than the best so far, each time with what did not fit put in front, as long as there is work left. */
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

static int64_t pack_all(packer *p, size_t n)
{
	int64_t *offsets = sw_alloc((n + 1) * sizeof *offsets), best = INT64_MAX;
	int64_t live = sw_packed_live(p->buffers, n), good = live + live / GOOD_ENOUGH;
	for (int way = 0; way < 4 && (way == 0 || best > good); way++) {
		order_by(p, n, way & 1);
		p->lowest = way & 2;
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
	order_by(p, n, false);
	int64_t total = pack_greedily(p, MOST_EXACT);
	return total == INT64_MAX ? total : pack_in_slots(p, MOST_EXACT, n, total);
}

int64_t sw_pack(sw_packed *buffers, size_t n, int64_t enough)
{
	packer p = {.buffers = buffers};
	p.order = sw_alloc((n + 1) * sizeof *p.order);
	p.by_offset = sw_alloc((SW_MIN(n, (size_t)MOST_EXACT) + 1) * sizeof *p.by_offset);
	int64_t total = enough > 0 ? pack_roughly(&p, n) : INT64_MAX;
	if (total > enough)
		total = n <= MOST_EXACT ? pack_all(&p, n) : pack_largest(&p, n);
	free(p.order);
	free(p.by_offset);
	return total;
}

int64_t sw_packed_live(const sw_packed *buffers, size_t n)
{
	int32_t moments = 0;
	for (size_t i = 0; i < n; i++)
		moments = SW_MAX(moments, buffers[i].end + 1);
	double *changes = sw_alloc(((size_t)moments + 1) * sizeof *changes), live = 0, most = 0;
	for (size_t i = 0; i < n; i++) {
		changes[buffers[i].begin] += (double)buffers[i].bytes;
		changes[buffers[i].end + 1] -= (double)buffers[i].bytes;
	}
	for (int32_t m = 0; m < moments; m++) {
		live += changes[m];
		most = SW_MAX(most, live);
	}
	free(changes);
	return most >= 0x1p63 ? INT64_MAX : (int64_t)most;
}
