/*
 * The papers' experiments, planned again (docs/papers.md): ours beside their best strategies, and beside their figures.
 *
 *   bench/papers [--json] [--only GROUP|WORD] [--time-limit S] [-q]
 *
 * GROUP is autoddl, axonn, rhino or users; any other word selects the experiments in whose title it stands. "step" is compute and
 * communication one after the other, "overlapped" what the simulator says of the scheduled program, "exposed" what of communication
 * nothing hides; "payload" is what a rank sends per step, and then by what it is sent for: gathered weights, activations forwards and
 * backwards, gradients and new weights. Each search has S seconds (--time-limit, 60), a plan with all around it 2 S + 60, then it is
 * given up; "planned in" depends on the machine, all else does not.
 */
#include "papers.h"

#include <string.h>

typedef struct group {
	const experiment *experiments;
	const size_t *n;
} group;
static const group groups[] = {{autoddl_experiments, &n_autoddl},
                               {axonn_experiments, &n_axonn},
                               {rhino_experiments, &n_rhino},
                               {users_experiments, &n_users}};

static bool is_chosen(const settings *how, const experiment *e)
{
	return !how->only || !strcmp(how->only, e->group) || strstr(e->where, how->only) ||
	       strstr(e->program, how->only);
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
		json_object_set_new(result, "paper_less_communication", json_real(e->communication));
	if (e->step > 0)
		json_object_set_new(result, "paper_less_step_time", json_real(e->step));
	return result;
}

static void run_all(const settings *how, json_t *list)
{
	for (size_t g = 0; g < SW_COUNT(groups); g++)
		for (size_t i = 0; i < *groups[g].n; i++) {
			const experiment *e = &groups[g].experiments[i];
			if (!is_chosen(how, e))
				continue;
			json_t *result = e->run(how, e);
			if (!how->json)
				report_text(e, result);
			json_array_append_new(list, with_title(result, e));
		}
}

static int usage(void)
{
	fprintf(stderr, "usage: papers [--json] [--only GROUP|WORD] [--time-limit S] [-q]\n");
	return 2;
}

int main(int argc, char **argv)
{
	settings how = {.time_limit_s = 60};
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			how.json = true;
		else if (!strcmp(argv[i], "-q"))
			how.quiet = true;
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			how.only = argv[++i];
		else if (!strcmp(argv[i], "--time-limit") && i + 1 < argc)
			how.time_limit_s = strtod(argv[++i], NULL);
		else
			return usage();
	}
	json_t *list = json_array();
	if (!how.json)
		printf("searches are limited to %g s each\n\n", how.time_limit_s);
	run_all(&how, list);
	if (!how.json)
		report_picks(list);
	size_t n = json_array_size(list);
	json_t *all = json_pack("{s:f, s:o}", "time_limit_s", how.time_limit_s, "experiments", list);
	if (how.json)
		json_dumpf(all, stdout, JSON_INDENT(1));
	json_decref(all);
	if (n == 0)
		fprintf(stderr, "no experiment is of that name: %s\n", how.only);
	return n == 0 ? 2 : 0;
}
