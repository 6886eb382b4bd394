/*
 * What docs/papers.md says came out, checked: each figure that it prints is within 2 % of what its
 * row gives now. A reduction of x % is a ratio of 1 - x / 100. The words must stand in the
 * document, so that a figure can't be changed in one of the two places alone.
 */
#include "papers.h"

#include <math.h>
#include <string.h>

#define WITHIN 0.02 /* relative */

typedef enum claim_kind {
	CLAIM_STEP,          /* ours against the best beside, per cent: -10 is 10 % less */
	CLAIM_COMMUNICATION, /* likewise */
	CLAIM_SECONDS,       /* the step of a strategy */
	CLAIM_UTILIZATION,   /* of a strategy, per cent */
	CLAIM_BYTES_OF_DP,   /* ours, per cent */
	CLAIM_SPLIT,         /* number of parameters that ours splits at rest */
	CLAIM_DOES_NOT_FIT   /* a strategy */
} claim_kind;

typedef struct claim {
	const char *row; /* a word that chooses one experiment */
	claim_kind kind;
	const char *strategy; /* NULL where ours is meant, or both */
	double printed;
	const char *words; /* of docs/papers.md */
	bool slow;         /* not among those that continuous integration runs */
} claim;

#define VGG_16 "step -52, -52, -52 % of `megatron:tp=2`"
#define VGG_2X "step -65, -65 %, communication -88, -87 % of `dp`'s"
static const claim claims[] = {
#include "claims.inc"
};

/* ---- the figure of a claim -------------------------------------------------------------- */

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const json_t *plan_named(const json_t *result, const char *strategy)
{
	const json_t *plans = json_object_get(result, "plans"), *plan;
	size_t i;
	json_array_foreach(plans, i, plan) if (!strcmp(
		json_string_value(json_object_get(plan, "strategy")), strategy)) return plan;
	return NULL;
}

static double per_cent(double reduction)
{
	return -100 * reduction;
}

static double value_of(const claim *c, const experiment *e, const json_t *result)
{
	const json_t *plan = plan_named(result, c->strategy ? c->strategy : "auto"),
		     *dp = plan_named(result, "dp");
	switch (c->kind) {
	case CLAIM_STEP:
		return per_cent(number(result, "less_step_time"));
	case CLAIM_COMMUNICATION:
		return per_cent(number(result, "less_communication"));
	case CLAIM_SECONDS:
		return number(plan, "step_time_s");
	case CLAIM_UTILIZATION:
		return 100 * e->model_flops /
		       (number(plan, "step_time_s") * number(plan, "devices") * e->peak_flops);
	case CLAIM_BYTES_OF_DP:
		return 100 * number(plan, "payload_bytes") / number(dp, "payload_bytes");
	case CLAIM_SPLIT:
		return number(json_object_get(plan, "state"), "split");
	case CLAIM_DOES_NOT_FIT:
		return !strcmp(json_string_value(json_object_get(plan, "status")), "does not fit");
	}
	return NAN;
}

static bool holds(const claim *c, double value)
{
	bool reduction = c->kind == CLAIM_STEP || c->kind == CLAIM_COMMUNICATION;
	double printed = reduction ? 1 + c->printed / 100 : c->printed,
	       now = reduction ? 1 + value / 100 : value;
	return fabs(now - printed) <= WITHIN * fabs(printed);
}

/* ---- the document ----------------------------------------------------------------------- */

/* Lines are joined by one blank, so that words may be wrapped. */
static void read_document(sw_text *text)
{
	FILE *file = fopen(SW_SOURCE_DIR "/docs/papers.md", "r");
	int c, last = ' ';
	while (file && (c = fgetc(file)) != EOF) {
		c = c == '\n' ? ' ' : c;
		if (c != ' ' || last != ' ')
			sw_text_addf(text, "%c", c);
		last = c;
	}
	if (file)
		fclose(file);
}

/* ---- checking --------------------------------------------------------------------------- */

static int report(const claim *c, double value)
{
	bool right = holds(c, value);
	printf("%-28s  %-16s  printed %8g  now %8.4g  %s\n", c->row,
	       c->strategy ? c->strategy : "ours", c->printed, value, right ? "holds" : "DIFFERS");
	return !right;
}

/* Look for the words of all claims, slow ones too. */
static int check_words(const sw_text *document)
{
	int failed = 0;
	for (size_t i = 0; i < SW_COUNT(claims); i++)
		if (!document->data || !strstr(document->data, claims[i].words)) {
			printf("%-28s  docs/papers.md has no \"%s\"\n", claims[i].row,
			       claims[i].words);
			failed++;
		}
	return failed;
}

static bool is_first_of_its_row(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(claims[k].row, claims[i].row))
			return false;
	return true;
}

/* What has stages is planned where a claim of the row is about it. */
static bool needs_stages(const char *row)
{
	for (size_t i = 0; i < SW_COUNT(claims); i++)
		if (!strcmp(claims[i].row, row) && claims[i].strategy &&
		    strstr(claims[i].strategy, "pp="))
			return true;
	return false;
}

static int check_row(const settings *asked, const char *row)
{
	const experiment *e = experiment_named(row);
	int failed = 0;
	settings with = *asked, *how = &with;
	with.stages = needs_stages(row);
	if (!e) {
		printf("%s: not the name of one experiment\n", row);
		return 1;
	}
	json_t *result = e->run(how, e);
	for (size_t i = 0; i < SW_COUNT(claims); i++)
		if (!strcmp(claims[i].row, row))
			failed += report(&claims[i], value_of(&claims[i], e, result));
	json_decref(result);
	return failed;
}

int check_claims(const settings *how, bool slow)
{
	sw_text document = {0};
	read_document(&document);
	int failed = check_words(&document), n = 0;
	for (size_t i = 0; i < SW_COUNT(claims); i++)
		if (is_first_of_its_row(i) && claims[i].slow == slow &&
		    is_asked_for(how, claims[i].row) && n++ % how->parts == how->part - 1)
			failed += check_row(how, claims[i].row);
	sw_text_clear(&document);
	printf("%d claims differ\n", failed);
	return failed > 0;
}
