/*
 * The papers' experiments, planned by us (docs/papers.md): our plans are compared with the papers'
 * best strategies and with their figures.
 *
 *   bench/papers [--json] [--list] [--claims] [--slow-claims] [--only GROUP|WORD]... [--strategies
 * "S S..."]
 *                [--part K/N] [--stages] [--time-limit S] [-q]
 *
 * --claims checks what docs/papers.md says came out (claims.c), --slow-claims what takes long;
 * --part checks the K-th of N parts of their rows.
 * --strategies plans these alone, instead of ours and what a row compares it with.
 *
 * --stages plans what has stages of a pipeline too: strategies with pp=, and rows about stages.
 *
 * GROUP is autoddl, autodist, axonn, rhino or users; any other word selects the experiments with
 * that program or with that word in their titles. The columns:
 *
 *   step         the plan's prediction: without overlap in AutoDDL's rows, else with it
 *   simulated    the simulator's step of the scheduled program
 *   exposed      communication that no kernel hides
 *   payload      bytes that a rank sends per step; then by use: gathered weights, activations
 *                forwards and backwards, gradients and new weights
 *   planned in   wall-clock time of planning
 *   cpu time     of all work for a row's plan, reading and simulating included
 *
 * A search has S seconds (--time-limit, 60); a plan with all work around it has 2 S + 60, then it
 * is given up. "planned in" and "cpu time" depend on the machine; everything else does not, except
 * where a time limit is reported. Exit code 1: a fixed strategy is quicker than our plan.
 */
#include "papers.h"

#include <string.h>

typedef struct group {
	const experiment *experiments;
	const size_t *n;
} group;
static const group groups[] = {{autoddl_experiments, &n_autoddl},
                               {autodist_experiments, &n_autodist},
                               {axonn_experiments, &n_axonn},
                               {rhino_experiments, &n_rhino},
                               {users_experiments, &n_users}};

static bool is_group(const char *word)
{
	for (size_t g = 0; g < SW_COUNT(groups); g++)
		if (!strcmp(word, groups[g].experiments[0].group))
			return true;
	return false;
}

static bool is_meant(const char *word, const experiment *e)
{
	if (is_group(word))
		return !strcmp(word, e->group);
	return !strcmp(word, e->program) || strstr(e->where, word);
}

static bool is_chosen(const settings *how, const experiment *e)
{
	bool chosen = how->n_only == 0;
	if (e->about_stages && !how->stages)
		return false;
	for (int i = 0; i < how->n_only; i++)
		chosen = chosen || is_meant(how->only[i], e);
	return chosen;
}

static json_t *with_title(json_t *result, const experiment *e)
{
	json_object_set_new(result, "group", json_string(e->group));
	json_object_set_new(result, "where", json_string(e->where));
	json_object_set_new(result, "program", json_string(e->program));
	json_object_set_new(result, "cluster", json_string(e->cluster));
	if (e->devices)
		json_object_set_new(result, "devices", json_string(e->devices));
	if (e->communication > 0)
		json_object_set_new(result, "paper_less_communication",
		                    json_real(e->communication));
	if (e->step > 0)
		json_object_set_new(result, "paper_less_step_time", json_real(e->step));
	return result;
}

const experiment *experiment_named(const char *where)
{
	for (size_t g = 0; g < SW_COUNT(groups); g++)
		for (size_t i = 0; i < *groups[g].n; i++)
			if (!strcmp(groups[g].experiments[i].where, where))
				return &groups[g].experiments[i];
	return NULL;
}

bool is_asked_for(const settings *how, const char *where)
{
	for (int i = 0; i < how->n_only; i++)
		if (strstr(where, how->only[i]))
			return true;
	return how->n_only == 0;
}

typedef void each_fn(const settings *how, const experiment *e, json_t *list);

/* Return the number of results. */
static int for_chosen(const settings *how, each_fn *each, json_t *list)
{
	int n = 0;
	for (size_t g = 0; g < SW_COUNT(groups); g++)
		for (size_t i = 0; i < *groups[g].n; i++)
			if (is_chosen(how, &groups[g].experiments[i])) {
				each(how, &groups[g].experiments[i], list);
				n++;
			}
	return n;
}

static void run_one(const settings *how, const experiment *e, json_t *list)
{
	json_t *result = e->run(how, e);
	if (!how->json)
		report_text(e, result);
	json_array_append_new(list, with_title(result, e));
}

static void list_one(const settings *how, const experiment *e, json_t *list)
{
	(void)how, (void)list;
	printf("%-7s  %-42s  %-24s  %s %s\n", e->group, e->where, e->program, e->cluster,
	       e->devices ? e->devices : "");
}

/* Return the exit code. */
static int run_all(const settings *how)
{
	json_t *list = json_array();
	if (!how->json)
		printf("searches are limited to %g s each\n\n", how->time_limit_s);
	int n = for_chosen(how, run_one, list), slower = count_slower(list, !how->json);
	json_t *all = json_pack("{s:f, s:i, s:o}", "time_limit_s", how->time_limit_s, "slower",
	                        slower, "experiments", list);
	if (how->json)
		json_dumpf(all, stdout, JSON_INDENT(1));
	json_decref(all);
	if (n == 0)
		fprintf(stderr, "no experiment is of that name; --list shows them, and with "
		                "--stages those about stages, too\n");
	return n == 0 ? 2 : slower > 0 && !how->strategies;
}

/* Read K/N. */
static bool set_part(const char *text, settings *how)
{
	return sscanf(text, "%d/%d", &how->part, &how->parts) == 2 && how->part >= 1 &&
	       how->part <= how->parts;
}

static int usage(void)
{
	fprintf(stderr,
	        "usage: papers [--json] [--list] [--claims] [--slow-claims] [--only GROUP|WORD]... "
	        "[--strategies \"S S...\"] [--part K/N] [--stages] [--time-limit S] [-q]\n");
	return 2;
}

int main(int argc, char **argv)
{
	settings how = {.time_limit_s = 60, .part = 1, .parts = 1};
	bool list = false, claims = false, slow = false;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			how.json = true;
		else if (!strcmp(argv[i], "--stages"))
			how.stages = true;
		else if (!strcmp(argv[i], "--list"))
			list = true;
		else if (!strcmp(argv[i], "--claims"))
			claims = true;
		else if (!strcmp(argv[i], "--slow-claims"))
			slow = true;
		else if (!strcmp(argv[i], "-q"))
			how.quiet = true;
		else if (!strcmp(argv[i], "--only") && i + 1 < argc && how.n_only < MAX_WORDS)
			how.only[how.n_only++] = argv[++i];
		else if (!strcmp(argv[i], "--strategies") && i + 1 < argc)
			how.strategies = argv[++i];
		else if (!strcmp(argv[i], "--part") && i + 1 < argc && set_part(argv[i + 1], &how))
			i++;
		else if (!strcmp(argv[i], "--time-limit") && i + 1 < argc)
			how.time_limit_s = strtod(argv[++i], NULL);
		else
			return usage();
	}
	if (list)
		return for_chosen(&how, list_one, NULL) > 0 ? 0 : 2;
	if (claims || slow)
		return check_claims(&how, slow);
	return run_all(&how);
}
