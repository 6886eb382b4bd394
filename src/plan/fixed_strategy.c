/*
 * The table of fixed strategies: NAME, or NAME:ARGUMENTS, and the uses of each one's axes.
 */
#include "plan/fixed_strategy.h"

#include <stdlib.h>
#include <string.h>

#define HOROVOD_BYTES (INT64_C(64) << 20) /* bytes; the size of Horovod's fusion buffer */
#define AUTODIST_CHUNK 128                /* variables; AutoDist's default of a merge group */

/* ---- arguments -------------------------------------------------------------------------- */

/* Read a number from 1 on, and move *at behind it. */
static bool read_count(const char **at, int64_t *count)
{
	size_t n = strspn(*at, "0123456789");
	if (n == 0 || n > 12)
		return false;
	*count = strtoll(*at, NULL, 10);
	*at += n;
	return *count >= 1;
}

static bool skip(const char **at, const char *word)
{
	size_t n = strlen(word);
	if (strncmp(*at, word, n) != 0)
		return false;
	*at += n;
	return true;
}

/* Read n numbers separated by `between`, with nothing behind them. */
static bool read_sizes(const char *at, const char *between, int n, int64_t *sizes)
{
	for (int i = 0; i < n; i++)
		if ((i > 0 && !skip(&at, between)) || !read_count(&at, &sizes[i]))
			return false;
	return !*at;
}

static void print_sizes(const int64_t *sizes, const char *between, int n, sw_text *text)
{
	for (int i = 0; i < n && sizes[0] > 0; i++)
		sw_text_addf(text, "%s%lld", i ? between : ":", (long long)sizes[i]);
}

static bool parse_plain(const char *arguments, sw_plan_strategy *strategy)
{
	(void)strategy;
	return !arguments;
}

static void print_plain(const sw_plan_strategy *strategy, sw_text *text)
{
	(void)strategy;
	(void)text;
}

static bool parse_auto(const char *arguments, sw_plan_strategy *strategy)
{
	bool owners = arguments && strcmp(arguments, "owners") == 0;
	strategy->owners = owners ? SW_OWNERS_ANY : SW_OWNERS_NONE;
	return !arguments || owners;
}

static void print_auto(const sw_plan_strategy *strategy, sw_text *text)
{
	sw_text_add(text, strategy->owners ? ":owners" : "");
}

static bool parse_horovod(const char *arguments, sw_plan_strategy *strategy)
{
	strategy->merge.bytes = HOROVOD_BYTES;
	return !arguments ||
	       (skip(&arguments, "merge=") && sw_parse_bytes(arguments, &strategy->merge.bytes) &&
	        strategy->merge.bytes >= 1);
}

static void print_horovod(const sw_plan_strategy *strategy, sw_text *text)
{
	if (strategy->merge.bytes != HOROVOD_BYTES)
		sw_text_addf(text, ":merge=%lld", (long long)strategy->merge.bytes);
}

static bool parse_all_reduce(const char *arguments, sw_plan_strategy *strategy)
{
	strategy->merge.ops = AUTODIST_CHUNK;
	if (arguments && skip(&arguments, "partitioned")) {
		strategy->parts = SW_PARTS_EVEN;
		if (!*arguments)
			return true;
		if (!skip(&arguments, ","))
			return false;
	}
	return !arguments || (skip(&arguments, "chunk=") &&
	                      read_count(&arguments, &strategy->merge.ops) && !*arguments);
}

/* Read "proxy", "served" and "stale=S", each once at most, with nothing behind them. */
static bool parse_copies(const char *at, sw_plan_strategy *strategy)
{
	for (bool more = true; more; more = skip(&at, ",")) {
		if (!strategy->proxy && skip(&at, "proxy")) {
			strategy->proxy = true;
		} else if (!strategy->served && skip(&at, "served")) {
			strategy->served = true;
		} else if (!strategy->has_stale && skip(&at, "stale=")) {
			char word[16] = {0};
			size_t n = strcspn(at, ",");
			if (n >= sizeof(word))
				return false;
			memcpy(word, at, n);
			strategy->has_stale = true;
			if (!sw_stale_parse(word, &strategy->stale))
				return false;
			at += n;
		} else {
			return false;
		}
	}
	strategy->proxy = strategy->proxy || strategy->has_stale || strategy->served;
	return !*at;
}

static bool parse_ps(const char *at, sw_plan_strategy *strategy)
{
	static const struct {
		const char *word;
		sw_owners_rule owners;
		sw_parts_rule parts;
	} words[] = {{"balanced", SW_OWNERS_BALANCED, SW_PARTS_NONE},
	             {"partitioned", SW_OWNERS_PARTITIONED, SW_PARTS_NONE},
	             {"uneven", SW_OWNERS_BALANCED, SW_PARTS_UNEVEN}};
	strategy->owners = SW_OWNERS_ONE;
	for (size_t i = 0; at && i < SW_COUNT(words); i++) {
		if (!skip(&at, words[i].word))
			continue;
		strategy->owners = words[i].owners;
		strategy->parts = words[i].parts;
		if (!*at)
			return true;
		if (!skip(&at, ","))
			return false;
		break;
	}
	if (at && !parse_copies(at, strategy))
		return false;
	/* What is served has one owner: a part of a variable is a variable of its own there. */
	if (strategy->owners == SW_OWNERS_PARTITIONED && sw_strategy_serves(strategy)) {
		strategy->owners = SW_OWNERS_BALANCED;
		strategy->parts = SW_PARTS_EVEN;
	}
	return true;
}

static void print_ps(const sw_plan_strategy *strategy, sw_text *text)
{
	static const char *const words[SW_OWNERS_COUNT] = {
		[SW_OWNERS_BALANCED] = ":balanced", [SW_OWNERS_PARTITIONED] = ":partitioned"};
	const char *word = strategy->parts == SW_PARTS_UNEVEN ? ":uneven"
	                   : strategy->parts == SW_PARTS_EVEN ? ":partitioned"
	                                                      : words[strategy->owners];
	const char *between = word ? "," : ":";
	sw_text_add(text, word ? word : "");
	if (strategy->has_stale) {
		sw_text_addf(text, "%sstale=", between);
		sw_stale_print(strategy->stale, text);
		between = ",";
	}
	if (strategy->served)
		sw_text_addf(text, "%sserved", between);
	else if (strategy->proxy && !strategy->has_stale)
		sw_text_addf(text, "%sproxy", between);
}

static bool parse_parallax(const char *arguments, sw_plan_strategy *strategy)
{
	strategy->owners = SW_OWNERS_PARALLAX;
	return !arguments;
}

static bool parse_random(const char *arguments, sw_plan_strategy *strategy)
{
	strategy->owners = SW_OWNERS_RANDOM;
	return !arguments;
}

static bool parse_ways(const char *arguments, sw_plan_strategy *strategy)
{
	strategy->owners = SW_OWNERS_ANY;
	return !arguments;
}

static bool parse_sync(const char *arguments, sw_plan_strategy *strategy)
{
	strategy->owners = SW_OWNERS_FILE;
	return !arguments;
}

static void print_all_reduce(const sw_plan_strategy *strategy, sw_text *text)
{
	if (strategy->parts)
		sw_text_add(text, ":partitioned");
	if (strategy->merge.ops != AUTODIST_CHUNK)
		sw_text_addf(text, "%cchunk=%lld", strategy->parts ? ',' : ':',
		             (long long)strategy->merge.ops);
}

static bool parse_megatron(const char *arguments, sw_plan_strategy *strategy)
{
	if (!arguments || !skip(&arguments, "tp=") || !read_count(&arguments, &strategy->size[0]))
		return false;
	strategy->sequence = skip(&arguments, ",sp");
	if (!skip(&arguments, ",zero="))
		return !*arguments;
	return read_count(&arguments, &strategy->zero) && strategy->zero <= SW_ZERO_STAGES &&
	       !*arguments;
}

static void print_megatron(const sw_plan_strategy *strategy, sw_text *text)
{
	sw_text_addf(text, ":tp=%lld%s", (long long)strategy->size[0],
	             strategy->sequence ? ",sp" : "");
	if (strategy->zero > 0)
		sw_text_addf(text, ",zero=%lld", (long long)strategy->zero);
}

static bool parse_summa(const char *arguments, sw_plan_strategy *strategy)
{
	return !arguments || read_sizes(arguments, "x", 2, strategy->size);
}

static void print_summa(const sw_plan_strategy *strategy, sw_text *text)
{
	print_sizes(strategy->size, "x", 2, text);
}

static bool parse_2_5d(const char *arguments, sw_plan_strategy *strategy)
{
	return !arguments || read_sizes(arguments, "x", 3, strategy->size);
}

static void print_2_5d(const sw_plan_strategy *strategy, sw_text *text)
{
	print_sizes(strategy->size, "x", 3, text);
}

/* Read "top=K" and "model=paper" or "model=ours", in any order, each once at most. */
static bool parse_axonn(const char *at, sw_plan_strategy *strategy)
{
	bool has_top = false, has_model = false;
	if (at && strncmp(at, "top=", 4) != 0 && strncmp(at, "model=", 6) != 0)
		return read_sizes(at, ",", 4, strategy->size);
	strategy->top = SW_TOP_GRIDS;
	for (bool more = at; more; more = skip(&at, ",")) {
		if (!has_top && skip(&at, "top=")) {
			has_top = read_count(&at, &strategy->top);
			if (!has_top)
				return false;
		} else if (!has_model && skip(&at, "model=paper"))
			has_model = strategy->paper = true;
		else if (!has_model && skip(&at, "model=ours"))
			has_model = true;
		else
			return false;
	}
	return !at || !*at;
}

static void print_axonn(const sw_plan_strategy *strategy, sw_text *text)
{
	bool top = strategy->size[0] == 0 && strategy->top != SW_TOP_GRIDS;
	print_sizes(strategy->size, ",", 4, text);
	if (top)
		sw_text_addf(text, ":top=%lld", (long long)strategy->top);
	if (strategy->paper)
		sw_text_addf(text, "%cmodel=paper", top ? ',' : ':');
}

static bool parse_expert(const char *arguments, sw_plan_strategy *strategy)
{
	return !arguments || (skip(&arguments, "ep=") &&
	                      read_count(&arguments, &strategy->size[0]) && !*arguments);
}

static void print_expert(const sw_plan_strategy *strategy, sw_text *text)
{
	if (strategy->size[0] > 0)
		sw_text_addf(text, ":ep=%lld", (long long)strategy->size[0]);
}

/* ---- uses of axes ----------------------------------------------------------------------- */

/* Sets of classes: any, none. */
#define BATCH SW_CLASS_DATA, 0
#define BATCH_OR_ROWS SW_CLASS_DATA | SW_CLASS_ROWS, 0
#define SEQUENCE SW_CLASS_ROWS, SW_CLASS_DATA
#define EXPERTS SW_CLASS_EXPERT, SW_CLASS_DATA
#define NO_BATCH SW_CLASS_HEAVY, SW_CLASS_DATA
#define FEATURES SW_CLASS_HEAVY, SW_CLASS_DATA | SW_CLASS_ROWS

/* State that is split at rest. */
#define MOMENTS .moments = true
#define GRADIENTS MOMENTS, .gradients = true
#define PARAMETERS GRADIENTS, .parameters = true

/* Data parallelism: every value with a batch splits it. On the devices for which the batch is too
 * small, only state may be split. */
static const sw_axis_use DATA = {.must = {BATCH}}, DATA_REST = {.must = {0}};
static const sw_axis_use ZERO1 = {.must = {BATCH}, MOMENTS}, ZERO1_REST = {MOMENTS};
/* Megatron's distributed optimizer: each device sums up whole gradients. */
static const sw_axis_use ZERO1_SUMS = {.must = {BATCH}, MOMENTS, .whole_sums = true};
static const sw_axis_use ZERO1_SUMS_REST = {MOMENTS, .whole_sums = true};
static const sw_axis_use ZERO2 = {.must = {BATCH}, GRADIENTS}, ZERO2_REST = {GRADIENTS};
static const sw_axis_use ZERO3 = {.must = {BATCH}, PARAMETERS}, ZERO3_REST = {PARAMETERS};

/* Each variable in a way of its own, or in one for all. */
#define BY_WAYS(kind) [kind] = {.must = {BATCH}, .ways = kind}
#define BY_WAYS_REST(kind) [kind] = {.ways = kind}
#define EACH_WAYS(X)                                                                               \
	X(SW_WAYS_OWN), X(SW_WAYS_REDUCED), X(SW_WAYS_MOMENTS), X(SW_WAYS_SPLIT),                  \
		X(SW_WAYS_OWNED), X(SW_WAYS_PROXY), X(SW_WAYS_SPARSE), X(SW_WAYS_PARTITIONED),     \
		X(SW_WAYS_GATHERED), X(SW_WAYS_GATHERED_ROWS)
static const sw_axis_use WAYS[SW_WAYS_COUNT] = {EACH_WAYS(BY_WAYS)};
static const sw_axis_use WAYS_REST[SW_WAYS_COUNT] = {EACH_WAYS(BY_WAYS_REST)};

/* A layer's three products are split alike, with sequences split between layers or not: no weight's
 * gradient is summed up of parts of sequences. */
static const sw_axis_use TENSOR = {.weights = {NO_BATCH}, .may = {FEATURES}};
static const sw_axis_use TENSOR_SEQUENCE = {.weights = {NO_BATCH},
                                            .gradient_dots = {FEATURES},
                                            .may = {NO_BATCH},
                                            .cut = {SEQUENCE}};

/* SUMMA's activations have rows over one axis and features over the other; weights have one
 * dimension over each. The planner chooses, dot by dot, which of a product's three matrices is not
 * moved. Rows of activations, and state at rest, are split by the batch; by other rows, too, where
 * the batch is too small. */
static const sw_axis_use ROWS = {.must = {BATCH}, PARAMETERS};
static const sw_axis_use ROWS_TOO = {.must = {BATCH_OR_ROWS}, PARAMETERS};
static const sw_axis_use COLUMNS = {
	.weights = {NO_BATCH}, .may = {FEATURES}, .cut = {BATCH_OR_ROWS}};
/* 2.5-D: each of the copies has all matrices, and sums a part of every product. */
static const sw_axis_use COPIES = {.contracts = true};

static const sw_axis_use AXONN_X_Y = {.weights = {NO_BATCH}, .apart = true, .may = {FEATURES}};
static const sw_axis_use AXONN_Z = {.must = {BATCH}, .below = true, PARAMETERS};
static const sw_axis_use AXONN_Z_ROWS = {.must = {BATCH_OR_ROWS}, .below = true, PARAMETERS};

static const sw_axis_use EXPERT = {.weights = {EXPERTS}, .must = {BATCH}, .may = {EXPERTS}};

/* ---- the table -------------------------------------------------------------------------- */

#define REST (-1)
#define DATA_AXIS NULL, REST, &DATA, &DATA_REST
static const sw_strategy_axis DATA_AXES[] = {{DATA_AXIS}};
static const sw_strategy_axis ZERO1_AXES[] = {{NULL, REST, &ZERO1, &ZERO1_REST}};
static const sw_strategy_axis ZERO1_SUMS_AXES[] = {{NULL, REST, &ZERO1_SUMS, &ZERO1_SUMS_REST}};
static const sw_strategy_axis ZERO2_AXES[] = {{NULL, REST, &ZERO2, &ZERO2_REST}};
static const sw_strategy_axis ZERO3_AXES[] = {{NULL, REST, &ZERO3, &ZERO3_REST}};
static const sw_strategy_axis TENSOR_AXES[] = {{DATA_AXIS}, {NULL, 0, &TENSOR, &TENSOR_SEQUENCE}};
#define WAYS_AXIS(kind) [kind - SW_WAYS_OWN] = {NULL, REST, &WAYS[kind], &WAYS_REST[kind]}
static const sw_strategy_axis WAYS_AXES[] = {EACH_WAYS(WAYS_AXIS)};
/* Rows are outside, since their traffic is of weights; the sums over the copies are inside. SUMMA
 * has the first two axes, 2.5-D all three. */
static const sw_strategy_axis GRID_AXES[] = {{"rows", 0, &ROWS, &ROWS_TOO},
                                             {"columns", 1, &COLUMNS, NULL},
                                             {"copies", 2, &COPIES, NULL}};
static const sw_strategy_axis AXONN_AXES[] = {{"data", 3, &DATA, NULL},
                                              {"z", 2, &AXONN_Z, &AXONN_Z_ROWS},
                                              {"y", 1, &AXONN_X_Y, NULL},
                                              {"x", 0, &AXONN_X_Y, NULL}};
static const sw_strategy_axis EXPERT_AXES[] = {{DATA_AXIS}, {NULL, 0, &EXPERT, NULL}};

static const sw_fixed_strategy STRATEGIES[] = {
	{SW_PLAN_AUTO, "auto", "[:owners]", parse_auto, print_auto, 0, NULL},
	{SW_PLAN_DP, "dp", "", parse_plain, print_plain, 1, DATA_AXES},
	{SW_PLAN_HOROVOD, "horovod", "[:merge=BYTES]", parse_horovod, print_horovod, 1, DATA_AXES},
	{SW_PLAN_ALL_REDUCE, "allreduce", "[:partitioned][,chunk=N]", parse_all_reduce, print_all_reduce, 1,
         DATA_AXES},
	{SW_PLAN_ZERO1, "zero1", "", parse_plain, print_plain, 1, ZERO1_AXES},
	{SW_PLAN_ZERO2, "zero2", "", parse_plain, print_plain, 1, ZERO2_AXES},
	{SW_PLAN_ZERO3, "zero3", "", parse_plain, print_plain, 1, ZERO3_AXES},
	{SW_PLAN_MEGATRON, "megatron", ":tp=K[,sp][,zero=1|2|3]", parse_megatron, print_megatron, 2,
         TENSOR_AXES},
	{SW_PLAN_SUMMA, "summa", "[:RxC]", parse_summa, print_summa, 2, GRID_AXES},
	{SW_PLAN_2_5D, "2.5d", "[:RxCxD]", parse_2_5d, print_2_5d, 3, GRID_AXES},
	{SW_PLAN_AXONN, "axonn", "[:X,Y,Z,D or :top=K,model=paper|ours]", parse_axonn, print_axonn,
         4, AXONN_AXES},
	{SW_PLAN_EXPERT, "expert", "[:ep=K]", parse_expert, print_expert, 2, EXPERT_AXES},
	{SW_PLAN_PS, "ps", "[:balanced|partitioned|uneven][,proxy][,stale=S|any][,served]", parse_ps, print_ps, 1, WAYS_AXES},
	{SW_PLAN_PARALLAX, "parallax", "", parse_parallax, print_plain, 1, WAYS_AXES},
	{SW_PLAN_RANDOM, "random", "", parse_random, print_plain, 1, WAYS_AXES},
	{SW_PLAN_WAYS, "ways", "", parse_ways, print_plain, 1, WAYS_AXES},
	{SW_PLAN_SYNC, "sync", "", parse_sync, print_plain, 1, WAYS_AXES},
	{SW_PLAN_SERIAL, "serial", "", NULL, print_plain, 0, NULL},
};

const sw_strategy_axis *sw_strategy_data_axis(const sw_plan_strategy *strategy)
{
	static const sw_strategy_axis *const of_zero[SW_ZERO_STAGES + 1] = {
		[1] = ZERO1_SUMS_AXES, [2] = ZERO2_AXES, [3] = ZERO3_AXES};
	return strategy->zero > 0 ? of_zero[strategy->zero]
	                          : sw_fixed_strategy_of(strategy->kind)->axes;
}

const sw_strategy_axis *sw_strategy_ways_axis(sw_axis_ways ways)
{
	return &WAYS_AXES[ways - SW_WAYS_OWN];
}

const sw_fixed_strategy *sw_fixed_strategy_of(sw_strategy_kind kind)
{
	size_t i = 0;
	while (STRATEGIES[i].kind != kind)
		i++;
	return &STRATEGIES[i];
}

#define STAGES_WORD "pp="

/* ---- reading and printing --------------------------------------------------------------- */

static sw_status fail_unknown(const char *text, sw_error *err)
{
	sw_text choices = {0};
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++)
		if (STRATEGIES[i].parse)
			sw_text_addf(&choices, "%s%s%s", i ? ", " : "", STRATEGIES[i].name,
			             STRATEGIES[i].arguments);
	sw_status status =
		sw_fail(err, SW_ERR_INPUT,
	                "unknown strategy '%s': use one of %s; behind each of them " STAGES_WORD
	                "N or " STAGES_WORD "auto, stages of a pipeline",
	                text, choices.data);
	sw_text_clear(&choices);
	return status;
}

static bool parse_strategy(const char *text, sw_plan_strategy *strategy)
{
	size_t n = strcspn(text, ":");
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++) {
		const sw_fixed_strategy *row = &STRATEGIES[i];
		if (!row->parse || strlen(row->name) != n || strncmp(text, row->name, n) != 0)
			continue;
		strategy->kind = row->kind;
		if (row->parse(text[n] ? text + n + 1 : NULL, strategy))
			return true;
	}
	return false;
}

/* Read the stages, the last argument of any strategy: "zero1:pp=4", "megatron:tp=4,pp=auto".
 * Return how much of the text stands before them; 0 if they are wrong. */
static size_t parse_stages(const char *text, int32_t *stages)
{
	const char *last = text + strlen(text);
	int64_t n = 0;
	while (last > text && last[-1] != ':' && last[-1] != ',')
		last--;
	if (last == text || !skip(&last, STAGES_WORD))
		return strlen(text);
	size_t before = (size_t)(last - text) - strlen(":" STAGES_WORD);
	bool first = !memchr(text, ':', before);
	if (text[before] != (first ? ':' : ','))
		return 0;
	*stages = SW_STAGES_AUTO;
	if (strcmp(last, "auto") == 0)
		return before;
	if (!read_count(&last, &n) || *last || n < 2 || n > SW_MAX_STAGES)
		return 0;
	*stages = (int32_t)n;
	return before;
}

sw_status sw_plan_strategy_parse(const char *text, sw_plan_strategy *strategy, sw_error *err)
{
	sw_text without = {0};
	int32_t stages = 0;
	*strategy = (sw_plan_strategy){0};
	size_t n = parse_stages(text, &stages);
	sw_text_addf(&without, "%.*s", (int)n, text);
	bool known = n > 0 && parse_strategy(without.data, strategy);
	sw_text_clear(&without);
	if (!known)
		return fail_unknown(text, err);
	strategy->stages = stages;
	return SW_OK;
}

void sw_plan_strategy_print(const sw_plan_strategy *strategy, sw_text *text)
{
	const sw_fixed_strategy *row = sw_fixed_strategy_of(strategy->kind);
	sw_text_add(text, row->name);
	size_t bare = text->len;
	row->print(strategy, text);
	if (!strategy->stages)
		return;
	sw_text_addf(text, "%c" STAGES_WORD, text->len > bare ? ',' : ':');
	if (strategy->stages == SW_STAGES_AUTO)
		sw_text_add(text, "auto");
	else
		sw_text_addf(text, "%d", strategy->stages);
}
