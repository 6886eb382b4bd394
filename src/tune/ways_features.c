/*
 * What the simulator sees of ways: the parts of a predefined model of communication, which needs no
 * plan, and what the ways are made of.
 *
 * The predefined model (the paper's appendix C in our collectives' seconds) has one link, on which
 * collectives over all devices take their turns: parameters in the order in which they are read,
 * before the kernels that read them; then gradients, as soon as they are there, with what is sent
 * back at once behind each. A kernel waits for the parameters that it reads, and the step ends when
 * both the kernels and the link are done, and variables are updated.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/internal.h"

/* ---- prices ----------------------------------------------------------------------------- */

#define PRICE_POWERS 44 /* operands of 1 byte to 8 TiB */
typedef enum price_kind {
	PRICE_ALL_REDUCE,
	PRICE_MERGED, /* of an all-reduce that is combined with others as well as can be */
	PRICE_REDUCE,
	PRICE_SPREAD,
	PRICE_REDUCE_SCATTER,
	PRICE_ALL_GATHER,
	PRICE_COUNT
} price_kind;

/* Seconds of collectives over all devices, of operands of 2^p bytes. */
struct move_prices {
	double seconds[PRICE_COUNT][PRICE_POWERS];
};

static double price_of(const sw_cluster *cluster, price_kind kind, int64_t bytes)
{
	static const sw_move_kind moves[PRICE_COUNT] = {[PRICE_ALL_REDUCE] = SW_MOVE_ALL_REDUCE,
	                                                [PRICE_REDUCE] = SW_MOVE_REDUCE,
	                                                [PRICE_SPREAD] = SW_MOVE_SPREAD,
	                                                [PRICE_REDUCE_SCATTER] =
	                                                        SW_MOVE_REDUCE_SCATTER,
	                                                [PRICE_ALL_GATHER] = SW_MOVE_ALL_GATHER};
	uint32_t all = (UINT32_C(1) << cluster->atoms.n) - 1;
	if (kind == PRICE_MERGED)
		return sw_cost_share(cluster, SW_COLLECTIVE_ALL_REDUCE, all, bytes);
	return sw_cost_collective((void *)(uintptr_t)cluster, moves[kind], all, bytes);
}

const struct move_prices *sw_move_prices_new(const sw_cluster *cluster, sw_arena *arena)
{
	struct move_prices *prices = SW_NEW(arena, struct move_prices);
	for (int k = 0; k < PRICE_COUNT; k++)
		for (int p = 0; p < PRICE_POWERS; p++)
			prices->seconds[k][p] = price_of(cluster, (price_kind)k, INT64_C(1) << p);
	return prices;
}

/* Interpolate between powers of two; nothing costs nothing. */
static double price(const sw_ways_space *space, price_kind kind, double bytes)
{
	const double *seconds = space->prices->seconds[kind];
	int p;
	if (bytes < 1)
		return 0;
	frexp(bytes, &p);
	p = SW_MIN(p - 1, PRICE_POWERS - 2);
	double at = bytes / ldexp(1, p) - 1;
	return seconds[p] + at * (seconds[p + 1] - seconds[p]);
}

/* ---- what a variable sends -------------------------------------------------------------- */

typedef enum sent_part {
	SENT_ALL_REDUCED,
	SENT_TO_OWNERS,
	SENT_BY_OWNERS,
	SENT_SCATTERED,
	SENT_GATHERED,
	SENT_ROWS,
	SENT_COUNT
} sent_part;

/* What is seen on the way through the variables. */
typedef struct ways_view {
	const sw_ways_space *space;
	const sw_ways *ways;
	double sent[SENT_COUNT];         /* seconds on the link */
	double bytes[SW_WAY_COUNT + 1];    /* by way; proxies by themselves */
	double number[SW_WAY_COUNT];       /* of variables' parts, by way */
	double sparse_bytes[SW_WAY_COUNT]; /* by way */
	double said_bytes, ordered_bytes;  /* of an algorithm, and an order, of their own */
	double all_bytes, all_number, divided_bytes, extra_parts, coded_bytes, collectives, merged;
	double owned, largest_owned, split; /* bytes of state */
	double kept;                        /* by all devices */
	double hidden[2],
		hidden_weight[2]; /* kernels after gradients, by seconds: all-reduced, others */
	double *fixed;            /* per device: bytes of owners that were given by number */
} ways_view;
#define PROXIES SW_WAY_COUNT

/* Bytes that a device sends of a coded gradient, over those of the gradient in f32. */
static double code_share(sw_codec codec, sw_shape shape)
{
	double rows = shape.rank > 1 ? (double)shape.dims[0] : 1,
	       columns = (double)sw_shape_elements(shape) / fmax(rows, 1);
	switch (codec.kind) {
	case SW_CODEC_BF16:
	case SW_CODEC_F16:
		return 0.5;
	case SW_CODEC_INT8:
		return 0.25;
	case SW_CODEC_TOPK:
		return 2 * codec.share;
	case SW_CODEC_POWERSGD:
		return fmin(1, (double)codec.rank * (rows + columns) / fmax(rows * columns, 1));
	default:
		return 1;
	}
}

/* Seconds on the link before a parameter's first reader, and behind its gradient. */
typedef struct link_seconds {
	double read_s, gradient_s;
} link_seconds;

/* How many times as long as by the quickest algorithm a sum takes by the one that is said. */
static double said_over(const ways_view *view, const sw_variable_ways *w, sw_collective_kind kind,
                        double bytes)
{
	const sw_cluster *cluster = view->space->cluster;
	uint32_t all = (UINT32_C(1) << cluster->atoms.n) - 1;
	if (w->algorithm == 0 || bytes < 1)
		return 1;
	double quickest = sw_cost_choose(cluster, kind, all, (int64_t)bytes).seconds,
	       said = sw_cost_choose_said(cluster, w->algorithm, kind, all, (int64_t)bytes).seconds;
	return quickest > 0 ? said / quickest : 1;
}

static double rows_s(ways_view *view, const sw_tuned_variable *v, price_kind dense, double bytes)
{
	double whole = price(view->space, dense, bytes);
	return v->sparse ? fmin(whole, price(view->space, PRICE_ALL_GATHER, (double)v->row_bytes))
	                 : whole;
}

static void add_all_reduced(ways_view *view, const sw_tuned_variable *v, const sw_variable_ways *w,
                            double bytes, link_seconds *link)
{
	bool merges = sw_merge_is_given(view->ways->merge);
	double seconds = rows_s(view, v, merges ? PRICE_ALL_REDUCE : PRICE_MERGED, bytes) *
	                 said_over(view, w, SW_COLLECTIVE_ALL_REDUCE, bytes);
	link->gradient_s += seconds;
	view->sent[v->sparse ? SENT_ROWS : SENT_ALL_REDUCED] += seconds;
	view->collectives++;
}

static void add_gathered(ways_view *view, const sw_tuned_variable *v, link_seconds *link)
{
	double seconds = price(view->space, PRICE_ALL_GATHER, (double)v->made_of_bytes);
	link->gradient_s += seconds;
	view->sent[SENT_ROWS] += seconds;
	view->collectives++;
}

static void add_owned(ways_view *view, const sw_tuned_variable *v, const sw_variable_ways *w,
                      const sw_way *way, double bytes, double parameter, double state,
                      link_seconds *link)
{
	double sum_s = rows_s(view, v, PRICE_REDUCE, bytes) *
	               said_over(view, w, SW_COLLECTIVE_BROADCAST, bytes),
	       spread_s = price(view->space, PRICE_SPREAD, parameter);
	link->gradient_s += sum_s + (way->proxy ? spread_s : 0);
	link->read_s += way->proxy ? 0 : spread_s;
	view->sent[v->sparse ? SENT_ROWS : SENT_TO_OWNERS] += sum_s;
	view->sent[SENT_BY_OWNERS] += spread_s;
	view->owned += state;
	view->largest_owned = fmax(view->largest_owned, state);
	if (way->owner >= 0)
		view->fixed[way->owner] += state;
	view->kept += way->proxy ? parameter : 0;
	view->collectives += 2;
}

static void add_split(ways_view *view, const sw_variable_ways *w, const sw_way *way, double bytes,
                      double parameter, double state, link_seconds *link)
{
	double devices = (double)view->space->cluster->n_devices;
	double scatter_s = price(view->space, PRICE_REDUCE_SCATTER, bytes) *
	                   said_over(view, w, SW_COLLECTIVE_REDUCE_SCATTER, bytes),
	       gather_s = price(view->space, PRICE_ALL_GATHER, parameter / devices);
	bool rests_whole = way->kind == SW_WAY_MOMENTS;
	link->gradient_s += scatter_s + (rests_whole ? gather_s : 0);
	link->read_s += rests_whole ? 0 : gather_s;
	view->sent[SENT_SCATTERED] += scatter_s;
	view->sent[SENT_GATHERED] += gather_s;
	view->split += state;
	view->kept += rests_whole ? parameter : 0;
	view->collectives += 2;
}

static void add_part(ways_view *view, uint32_t variable, int32_t part, link_seconds *link)
{
	const sw_tuned_variable *v = &view->space->variables[variable];
	const sw_variable_ways *w = &view->ways->of[variable];
	const sw_way *way = &w->parts[part];
	double size = fmax((double)v->shape.dims[w->axis], 1),
	       share = w->n > 1 ? (double)sw_part_size(v->shape.dims[w->axis], w->n, part) / size
	                        : 1,
	       parameter = share * (double)v->gradient_bytes, state = share * (double)v->bytes,
	       bytes = parameter * code_share(w->codec, v->shape);
	if (way->kind == SW_WAY_OWNED)
		add_owned(view, v, w, way, bytes, parameter, state, link);
	else if (way->kind == SW_WAY_ALL_REDUCE)
		add_all_reduced(view, v, w, bytes, link);
	else if (way->kind == SW_WAY_GATHER)
		add_gathered(view, v, link);
	else
		add_split(view, w, way, bytes, parameter, state, link);
	view->kept += way->kind == SW_WAY_ALL_REDUCE || way->kind == SW_WAY_GATHER ? state : 0;
	view->said_bytes += w->algorithm ? parameter : 0;
	view->ordered_bytes += w->order ? parameter : 0;
	view->bytes[way->proxy ? PROXIES : (int)way->kind] += parameter;
	view->number[way->kind]++;
	view->sparse_bytes[way->kind] += v->sparse ? parameter : 0;
	view->all_bytes += parameter;
	view->all_number++;
	view->coded_bytes += w->codec.kind ? parameter : 0;
}

static link_seconds add_variable(ways_view *view, uint32_t variable)
{
	const sw_tuned_variable *v = &view->space->variables[variable];
	const sw_variable_ways *w = &view->ways->of[variable];
	link_seconds link = {0};
	for (int32_t k = 0; k < w->n; k++)
		add_part(view, variable, k, &link);
	if (w->n > 1) {
		view->divided_bytes += (double)v->gradient_bytes;
		view->extra_parts += w->n - 1;
	}
	bool all_reduced = w->parts[0].kind == SW_WAY_ALL_REDUCE;
	view->hidden[!all_reduced] += (1 - v->ready_at) * link.gradient_s;
	view->hidden_weight[!all_reduced] += link.gradient_s;
	return link;
}

/* ---- the link --------------------------------------------------------------------------- */

/* Gradients that wait to be merged into one all-reduce. */
typedef struct merging {
	double bytes, ops;
} merging;

static double end_group(ways_view *view, merging *group)
{
	double seconds = price(view->space, PRICE_ALL_REDUCE, group->bytes);
	view->merged += group->ops > 0;
	*group = (merging){0};
	return seconds;
}

static bool is_merged(const ways_view *view, uint32_t variable)
{
	const sw_variable_ways *w = &view->ways->of[variable];
	return sw_merge_is_given(view->ways->merge) && !view->space->variables[variable].sparse &&
	       w->n == 1 && w->parts[0].kind == SW_WAY_ALL_REDUCE && w->group == 0;
}

/* The bytes of each merge group, and how many of its variables' gradients are not there yet. */
static merging *list_groups(const ways_view *view)
{
	const sw_ways_space *space = view->space;
	merging *groups = sw_alloc(sizeof(*groups) * (space->n + 1));
	for (uint32_t i = 0; i < space->n; i++) {
		merging *group = &groups[view->ways->of[i].group];
		group->bytes += (double)space->variables[i].gradient_bytes;
		group->ops++;
	}
	return groups;
}

static bool is_full(sw_merge merge, const merging *group)
{
	return (merge.bytes > 0 && group->bytes >= (double)merge.bytes) ||
	       (merge.ops > 0 && group->ops >= (double)merge.ops);
}

/* When the step's kernels have waited for parameters, and when the link is done. */
typedef struct link_end {
	double stall_s, link_s;
} link_end;

static link_end play_link(ways_view *view, const link_seconds *of)
{
	const sw_ways_space *space = view->space;
	double kernels_s = space->kernels_s;
	link_end end = {0};
	merging group = {0}, *groups = list_groups(view);
	for (uint32_t i = 0; i < space->n; i++) {
		uint32_t v = space->by_read[i];
		end.link_s += of[v].read_s;
		if (of[v].read_s > 0)
			end.stall_s = fmax(end.stall_s,
			                   end.link_s - kernels_s * space->variables[v].read_at);
	}
	for (uint32_t i = 0; i < space->n; i++) {
		uint32_t v = space->by_ready[i];
		double ready_s = space->variables[v].ready_at * kernels_s + end.stall_s,
		       seconds = of[v].gradient_s;
		uint32_t number = view->ways->of[v].group;
		if (number > 0) {
			seconds = --groups[number].ops > 0 ? 0
			                                   : price(space, PRICE_ALL_REDUCE,
			                                           groups[number].bytes);
			view->merged += seconds > 0;
		} else if (is_merged(view, v)) {
			group.bytes +=
				(double)space->variables[v].gradient_bytes *
				code_share(view->ways->of[v].codec, space->variables[v].shape);
			group.ops++;
			seconds = is_full(view->ways->merge, &group) ? end_group(view, &group) : 0;
		}
		if (seconds > 0)
			end.link_s = fmax(end.link_s, ready_s) + seconds;
	}
	if (group.ops > 0)
		end.link_s = fmax(end.link_s, kernels_s + end.stall_s) + end_group(view, &group);
	free(groups);
	return end;
}

/* ---- the features ----------------------------------------------------------------------- */

static const char *const NAMES[SW_WAYS_FEATURES] = {"log step",
                                                    "all-reduces",
                                                    "sums to owners",
                                                    "sent by owners",
                                                    "scattered",
                                                    "gathered",
                                                    "rows",
                                                    "link",
                                                    "stall",
                                                    "tail",
                                                    "updates",
                                                    "log collectives",
                                                    "log merged",
                                                    "merge as quickest",
                                                    "log merge bytes",
                                                    "log merge variables",
                                                    "bytes reduced",
                                                    "bytes owned",
                                                    "bytes of proxies",
                                                    "bytes split",
                                                    "moments split",
                                                    "number reduced",
                                                    "number owned",
                                                    "number split",
                                                    "bytes in parts",
                                                    "log parts",
                                                    "joins",
                                                    "imbalance",
                                                    "rows owned",
                                                    "rows reduced",
                                                    "bytes coded",
                                                    "log memory",
                                                    "reduced hidden",
                                                    "others hidden",
                                                    "bytes gathered",
                                                    "bytes by algorithm",
                                                    "bytes in order"};

const char *sw_ways_feature_name(size_t i)
{
	return i < SW_WAYS_FEATURES ? NAMES[i] : NULL;
}

/* Bytes of the device that owns most: no less than the largest part, than the mean, and than what
 * was given to it by number. */
static double fullest_owner(const ways_view *view)
{
	double devices = (double)view->space->cluster->n_devices,
	       most = fmax(view->owned / devices, view->largest_owned);
	for (int64_t d = 0; d < view->space->cluster->n_devices; d++)
		most = fmax(most, view->fixed[d]);
	return most;
}

/* Each byte of state that a device updates is read and written once. */
static double update_s(const ways_view *view, double fullest)
{
	double devices = (double)view->space->cluster->n_devices,
	       bytes = view->kept + fullest + view->split / devices;
	return 2 * bytes / view->space->cluster->device.memory_bandwidth;
}

static void fill_times(const ways_view *view, link_end end, double fullest, double base,
                       sw_ways_features *f)
{
	double kernels_s = view->space->kernels_s + end.stall_s, updates = update_s(view, fullest),
	       sum = 0;
	f->seconds = fmax(kernels_s, end.link_s) + updates;
	f->x[0] = log(f->seconds / base);
	for (int k = 0; k < SENT_COUNT; k++) {
		f->x[1 + k] = view->sent[k] / base;
		sum += view->sent[k];
	}
	f->x[7] = sum / base;
	f->x[8] = end.stall_s / base;
	f->x[9] = fmax(end.link_s - kernels_s, 0) / base;
	f->x[10] = updates / base;
}

static void fill_shares(const ways_view *view, double *x)
{
	double bytes = fmax(view->all_bytes, 1), number = fmax(view->all_number, 1);
	x[16] = view->bytes[SW_WAY_ALL_REDUCE] / bytes;
	x[17] = view->bytes[SW_WAY_OWNED] / bytes;
	x[18] = view->bytes[PROXIES] / bytes;
	x[19] = view->bytes[SW_WAY_SPLIT] / bytes;
	x[20] = view->bytes[SW_WAY_MOMENTS] / bytes;
	x[21] = view->number[SW_WAY_ALL_REDUCE] / number;
	x[22] = view->number[SW_WAY_OWNED] / number;
	x[23] = (view->number[SW_WAY_SPLIT] + view->number[SW_WAY_MOMENTS]) / number;
	x[24] = view->divided_bytes / bytes;
	x[25] = log1p(view->extra_parts);
	x[28] = view->sparse_bytes[SW_WAY_OWNED] / bytes;
	x[29] = view->sparse_bytes[SW_WAY_ALL_REDUCE] / bytes;
	x[30] = view->coded_bytes / bytes;
	x[34] = view->bytes[SW_WAY_GATHER] / bytes;
	x[35] = view->said_bytes / bytes;
	x[36] = view->ordered_bytes / bytes;
}

static void fill_rest(const ways_view *view, double fullest, double base, double *x)
{
	const sw_device *device = &view->space->cluster->device;
	sw_merge merge = view->ways->merge;
	double devices = (double)view->space->cluster->n_devices;
	x[11] = log1p(view->collectives);
	x[12] = log1p(view->merged);
	x[13] = !sw_merge_is_given(merge);
	x[14] = merge.bytes > 0 ? log((double)merge.bytes / fmax(view->all_bytes, 1)) : 0;
	x[15] = log1p((double)merge.ops);
	x[26] = 2 * view->divided_bytes / device->memory_bandwidth / base;
	x[27] = view->owned > 0 ? fmin(fullest * devices / view->owned - 1, devices) : 0;
	x[31] = log((view->kept + fullest + view->split / devices + 1) /
	            (double)SW_MAX(sw_cost_memory_bytes(device), 1));
	for (int k = 0; k < 2; k++)
		x[32 + k] =
			view->hidden_weight[k] > 0 ? view->hidden[k] / view->hidden_weight[k] : 0;
}

sw_ways_features sw_ways_features_of(const sw_ways_space *space, const sw_ways *ways)
{
	ways_view view = {.space = space, .ways = ways};
	sw_ways_features f = {0};
	sw_arena scratch;
	sw_arena_init(&scratch);
	view.fixed = SW_NEW_N(&scratch, double, space->cluster->n_devices + 1);
	link_seconds *of = SW_NEW_N(&scratch, link_seconds, space->n + 1);
	for (uint32_t i = 0; i < space->n; i++)
		of[i] = add_variable(&view, i);
	link_end end = play_link(&view, of);
	double base = space->kernels_s +
	              price(space, PRICE_ALL_REDUCE, (double)space->gradient_bytes),
	       fullest = fullest_owner(&view);
	fill_times(&view, end, fullest, base, &f);
	fill_shares(&view, f.x);
	fill_rest(&view, fullest, base, f.x);
	sw_arena_clear(&scratch);
	return f;
}
