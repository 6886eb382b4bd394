/* Labs: tools/lab builds one, and starts commands on its devices. */
#include "fidelity.h"

#include <unistd.h>

#define TOOL SW_SOURCE_DIR "/tools/lab"
#define COMMAND SW_BINARY_DIR "/shardwright"
#define NAME "fidelity"
#define MAX_WORDS 24

/* Concatenate `first` and `rest`, which both end with NULL. */
static void join(const char **words, const char *const *first, const char *const *rest)
{
	size_t n = 0;
	for (; *first; first++)
		words[n++] = *first;
	for (; *rest && n < MAX_WORDS - 1; rest++)
		words[n++] = *rest;
	words[n] = NULL;
}

sw_status lab_up(const settings *how, const lab_case *lab, sw_error *err)
{
	char file[512];
	snprintf(file, sizeof(file), "%s/%s", SW_SOURCE_DIR, lab->file);
	setenv("SHARDWRIGHT", COMMAND, 1);
	lab_down(how);
	return child_run(how, (const char *const[]){TOOL, "up", "--name", NAME, file, NULL}, 60,
	                 NULL, err);
}

void lab_down(const settings *how)
{
	child_run(how, (const char *const[]){TOOL, "down", "--name", NAME, NULL}, 60, NULL, NULL);
}

sw_status shardwright(const settings *how, const char *const *words, double limit_s,
                      json_t **object, sw_error *err)
{
	const char *all[MAX_WORDS];
	join(all, (const char *const[]){COMMAND, NULL}, words);
	return child_json(how, all, limit_s, object, err);
}

sw_status lab_run(const settings *how, const char *const *words, double limit_s, json_t **object,
                  sw_error *err)
{
	const char *all[MAX_WORDS];
	join(all, (const char *const[]){TOOL, "run", "--name", NAME, "--", COMMAND, NULL}, words);
	return child_json(how, all, limit_s, object, err);
}

/* Where kernels are paced, their times come from the cluster file, and ranks sleep between
 * collectives. */
sw_status lab_calibrate(const settings *how, const lab_case *lab, const char *calibrated,
                        sw_error *err)
{
	char file[512], limit[32];
	json_t *object = NULL;
	if (access(calibrated, R_OK) == 0)
		return SW_OK;
	snprintf(file, sizeof(file), "%s/%s", SW_SOURCE_DIR, lab->file);
	snprintf(limit, sizeof(limit), "%.0f", how->calibrate_s);
	const char *words[] = {
		"calibrate",    "--cluster", file,     "-o", calibrated,
		"--time-limit", limit,       "--json", "-q", lab->paced ? "--no-kernels" : NULL,
		"--pace",       NULL};
	sw_status status = lab_run(how, words, 3 * how->calibrate_s + 60, &object, err);
	json_decref(object);
	return status;
}
