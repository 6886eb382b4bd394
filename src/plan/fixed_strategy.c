/*
 * Fixed strategies by name: NAME, or NAME:ARGUMENTS. model/meshes.c turns them into meshes.
 */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#define HOROVOD_BYTES (INT64_C(64) << 20) /* bytes; the size of Horovod's fusion buffer */

/* Parse the text behind the colon (NULL: no colon); print it with its colon. */
typedef bool parse_fn(const char *arguments, sw_plan_strategy *strategy);
typedef void print_fn(const sw_plan_strategy *strategy, sw_text *text);

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

static bool parse_horovod(const char *arguments, sw_plan_strategy *strategy)
{
	strategy->merge_bytes = HOROVOD_BYTES;
	if (!arguments)
		return true;
	return skip(&arguments, "merge=") && read_count(&arguments, &strategy->merge_bytes) &&
	       !*arguments;
}

static void print_horovod(const sw_plan_strategy *strategy, sw_text *text)
{
	if (strategy->merge_bytes != HOROVOD_BYTES)
		sw_text_addf(text, ":merge=%lld", (long long)strategy->merge_bytes);
}

static bool parse_megatron(const char *arguments, sw_plan_strategy *strategy)
{
	if (!arguments || !skip(&arguments, "tp=") || !read_count(&arguments, &strategy->size[0]))
		return false;
	strategy->sequence = skip(&arguments, ",sp");
	return !*arguments;
}

static void print_megatron(const sw_plan_strategy *strategy, sw_text *text)
{
	sw_text_addf(text, ":tp=%lld%s", (long long)strategy->size[0],
	             strategy->sequence ? ",sp" : "");
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

static bool parse_axonn(const char *arguments, sw_plan_strategy *strategy)
{
	if (arguments && !skip(&arguments, "top="))
		return read_sizes(arguments, ",", 4, strategy->size);
	strategy->top = SW_TOP_GRIDS;
	return !arguments || (read_count(&arguments, &strategy->top) && !*arguments);
}

static void print_axonn(const sw_plan_strategy *strategy, sw_text *text)
{
	print_sizes(strategy->size, ",", 4, text);
	if (strategy->size[0] == 0 && strategy->top != SW_TOP_GRIDS)
		sw_text_addf(text, ":top=%lld", (long long)strategy->top);
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

/* ---- names ------------------------------------------------------------------------------ */

static const struct {
	const char *name, *arguments; /* how the arguments are written, for messages */
	sw_strategy_kind kind;
	parse_fn *parse;
	print_fn *print;
} STRATEGIES[] = {
	{"auto", "", SW_PLAN_AUTO, parse_plain, print_plain},
	{"dp", "", SW_PLAN_DP, parse_plain, print_plain},
	{"horovod", "[:merge=BYTES]", SW_PLAN_HOROVOD, parse_horovod, print_horovod},
	{"zero1", "", SW_PLAN_ZERO1, parse_plain, print_plain},
	{"zero2", "", SW_PLAN_ZERO2, parse_plain, print_plain},
	{"zero3", "", SW_PLAN_ZERO3, parse_plain, print_plain},
	{"megatron", ":tp=K[,sp]", SW_PLAN_MEGATRON, parse_megatron, print_megatron},
	{"summa", "[:RxC]", SW_PLAN_SUMMA, parse_summa, print_summa},
	{"2.5d", "[:RxCxD]", SW_PLAN_2_5D, parse_2_5d, print_2_5d},
	{"axonn", "[:X,Y,Z,D or :top=K]", SW_PLAN_AXONN, parse_axonn, print_axonn},
	{"expert", "[:ep=K]", SW_PLAN_EXPERT, parse_expert, print_expert},
};

static sw_status unknown(const char *text, sw_error *err)
{
	sw_text known = {0};
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++)
		sw_text_addf(&known, "%s%s%s", i ? ", " : "", STRATEGIES[i].name,
		             STRATEGIES[i].arguments);
	sw_status status = sw_fail(err, SW_ERR_INPUT, "unknown strategy '%s': use one of %s", text,
	                           known.data);
	sw_text_clear(&known);
	return status;
}

sw_status sw_plan_strategy_parse(const char *text, sw_plan_strategy *strategy, sw_error *err)
{
	size_t n = strcspn(text, ":");
	*strategy = (sw_plan_strategy){0};
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++) {
		if (strlen(STRATEGIES[i].name) != n || strncmp(text, STRATEGIES[i].name, n) != 0)
			continue;
		strategy->kind = STRATEGIES[i].kind;
		if (STRATEGIES[i].parse(text[n] ? text + n + 1 : NULL, strategy))
			return SW_OK;
	}
	return unknown(text, err);
}

void sw_plan_strategy_print(const sw_plan_strategy *strategy, sw_text *text)
{
	for (size_t i = 0; i < SW_COUNT(STRATEGIES); i++)
		if (STRATEGIES[i].kind == strategy->kind) {
			sw_text_add(text, STRATEGIES[i].name);
			STRATEGIES[i].print(strategy, text);
			return;
		}
	sw_text_add(text, "serial");
}
