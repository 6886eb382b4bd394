/* Options of planning by their names and values, as the command has them. */
#include <string.h>

#include "search/search.h"

typedef struct plan_word {
	const char *asked, *value; /* the name as it was given */
	sw_plan_options *options;
	sw_error *err;
} plan_word;

static sw_status expected(const plan_word *w, const char *what)
{
	return sw_fail(w->err, SW_ERR_INPUT, "%s %s: expected %s", w->asked, w->value, what);
}

static sw_status set_strategy(const plan_word *w)
{
	return sw_plan_strategy_parse(w->value, &w->options->strategy, w->err);
}

static sw_status set_method(const plan_word *w)
{
	w->options->autodist = strcmp(w->value, "autodist") == 0;
	if (w->options->autodist)
		return SW_OK;
	return sw_method_parse(w->value, &w->options->method, w->err);
}

static sw_status set_effort(const plan_word *w)
{
	bool two = strcmp(w->value, "2") == 0;
	if (!two && strcmp(w->value, "3"))
		return expected(w, "2 or 3");
	w->options->method = two ? SW_METHOD_SEGMENTS : SW_METHOD_EXACT;
	return SW_OK;
}

static sw_status set_microbatches(const plan_word *w)
{
	int64_t n = 0;
	if (strcmp(w->value, "auto") && (!sw_parse_count(w->value, &n) || n < 1 || n > INT32_MAX))
		return expected(w, "auto, or a number from 1");
	w->options->microbatches = (int32_t)n;
	return SW_OK;
}

static sw_status set_shares(const plan_word *w)
{
	static const char what[] = "auto, equal, or numbers of microbatches, such as 5:3";
	const char *at = w->value;
	w->options->sharing = !strcmp(at, "auto")    ? SW_SHARES_AUTO
	                      : !strcmp(at, "equal") ? SW_SHARES_EQUAL
	                                             : SW_SHARES_LISTED;
	w->options->n_shares = 0;
	while (w->options->sharing == SW_SHARES_LISTED) {
		char number[16];
		size_t length = strcspn(at, ":");
		int32_t n = w->options->n_shares;
		if (length >= sizeof(number) || n == SW_MAX_LISTED_SHARES)
			return expected(w, what);
		memcpy(number, at, length);
		number[length] = '\0';
		if (!sw_parse_count(number, &w->options->shares[n]) ||
		    w->options->shares[n] < 1 || w->options->shares[n] > INT32_MAX / 64)
			return expected(w, what);
		w->options->n_shares++;
		if (!at[length])
			return n > 0 ? SW_OK : expected(w, what);
		at += length + 1;
	}
	return SW_OK;
}

static sw_status set_last_apart(const plan_word *w)
{
	bool never = !strcmp(w->value, "no");
	if (!never && strcmp(w->value, "auto"))
		return expected(w, "auto or no");
	w->options->last_apart = never ? SW_APART_NEVER : SW_APART_AUTO;
	return SW_OK;
}

/* The name of a policy is looked up when it is used. */
static sw_status set_remat(const plan_word *w)
{
	w->options->remat = strcmp(w->value, "auto") ? w->value : NULL;
	return SW_OK;
}

static sw_status set_memory(const plan_word *w)
{
	return sw_parse_bytes(w->value, &w->options->memory_bytes)
	               ? SW_OK
	               : expected(w, "a size, such as 16GiB");
}

static sw_status set_time_limit(const plan_word *w)
{
	return sw_parse_seconds(w->value, &w->options->time_limit_s)
	               ? SW_OK
	               : expected(w, "seconds, such as 2.5");
}

static sw_status set_seed(const plan_word *w)
{
	int64_t n;
	if (!sw_parse_count(w->value, &n))
		return expected(w, "a whole number, such as 4");
	w->options->seed = (uint64_t)n;
	return SW_OK;
}

static sw_status set_threads(const plan_word *w)
{
	int64_t n;
	if (!sw_parse_count(w->value, &n) || n > 4096)
		return expected(w, "a number up to 4096");
	w->options->threads = (int)n;
	return SW_OK;
}

static sw_status set_trials(const plan_word *w)
{
	return sw_parse_count(w->value, &w->options->trials) && w->options->trials >= 1
	               ? SW_OK
	               : expected(w, "a number from 1");
}

static sw_status set_codec(const plan_word *w)
{
	return sw_codec_parse(w->value, &w->options->codec) ? SW_OK : expected(w, SW_CODEC_WORDS);
}

static bool allow_one(sw_plan_options *options, const char *word)
{
	static const char stale[] = "stale=", codec[] = "codec=";
	sw_codec *next = &options->allowed_codecs[options->n_allowed_codecs];
	if (strncmp(word, stale, strlen(stale)) == 0)
		return options->allows_stale =
			       sw_stale_parse(word + strlen(stale), &options->allowed_stale);
	if (strncmp(word, codec, strlen(codec)) || options->n_allowed_codecs == SW_MAX_ALLOWED_CODECS ||
	    !sw_codec_parse(word + strlen(codec), next) || !next->kind)
		return false;
	options->n_allowed_codecs++;
	return true;
}

static sw_status set_allow(const plan_word *w)
{
	sw_text word = {0};
	const char *at = w->value;
	bool ok = true, more = true;
	while (ok && more) {
		size_t n = strcspn(at, ",");
		word.len = 0;
		sw_text_addf(&word, "%.*s", (int)n, at);
		ok = allow_one(w->options, word.data);
		more = at[n] == ',';
		at += n + more;
	}
	sw_text_clear(&word);
	return ok ? SW_OK
	          : expected(w, "stale=S, of a number of steps, or any, or codec=CODEC, such as "
	                        "codec=bf16,codec=topk=0.1, of which there are at most 8");
}

static sw_status set_untied(const plan_word *w)
{
	bool yes = strcmp(w->value, "yes") == 0;
	if (!yes && strcmp(w->value, "no"))
		return expected(w, "yes or no");
	w->options->untied = yes;
	return SW_OK;
}

static const struct {
	const char *name;
	sw_status (*set)(const plan_word *w);
} words[] = {
	{"strategy", set_strategy},     {"method", set_method},
	{"effort", set_effort},         {"microbatches", set_microbatches},
	{"shares", set_shares},         {"last-apart", set_last_apart},
	{"remat", set_remat},           {"memory", set_memory},
	{"time-limit", set_time_limit}, {"seed", set_seed},
	{"threads", set_threads},       {"untied", set_untied},
	{"codec", set_codec},           {"trials", set_trials},
	{"allow", set_allow},
};

const char *sw_plan_option_name(size_t i)
{
	return i < SW_COUNT(words) ? words[i].name : NULL;
}

sw_status sw_plan_options_set(sw_plan_options *options, const char *name, const char *value,
                              sw_error *err)
{
	plan_word w = {name, value, options, err};
	const char *bare = name + 2 * (size_t)(strncmp(name, "--", 2) == 0);
	sw_nearest nearest = {.word = bare};
	for (size_t i = 0; i < SW_COUNT(words); i++) {
		if (strcmp(words[i].name, bare) == 0)
			return words[i].set(&w);
		sw_nearest_try(&nearest, words[i].name);
	}
	return sw_fail(err, SW_ERR_INPUT, "planning has no option '%s'%s", name,
	               sw_nearest_hint(&nearest).text);
}

sw_status sw_plan_options_sync(sw_plan_options *options, const char *dashes, const char *strategy,
                               const char *path, sw_sync *sync, sw_error *err)
{
	if (!path)
		return options->strategy.kind == SW_PLAN_SYNC
		               ? sw_fail(err, SW_ERR_INPUT,
		                         "%sstrategy sync is what a file says: add %ssync FILE",
		                         dashes, dashes)
		               : SW_OK;
	if (!strategy)
		SW_TRY(sw_plan_strategy_parse("sync", &options->strategy, err));
	if (options->strategy.owners == SW_OWNERS_NONE)
		return sw_fail(err, SW_ERR_INPUT,
		               "%ssync is a strategy of its own: leave %sstrategy %s out, or "
		               "take ps, parallax or random, whose ways the file changes",
		               dashes, dashes, strategy);
	options->sync = sync;
	return sw_sync_read(path, sync, err);
}
