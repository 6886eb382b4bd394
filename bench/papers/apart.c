/* Plans in processes of their own, and the figures that they report. */
#include "papers.h"

#include <string.h>

#include "common/child.h"

/* Return the last line that is a whole object. */
static json_t *last_object(const sw_text *text)
{
	json_t *last = NULL;
	const char *at = text->data ? text->data : "";
	for (const char *end; (end = strchr(at, '\n')); at = end + 1) {
		json_t *object;
		sw_error err;
		if (sw_json_parse(at, (size_t)(end - at), &object, &err) != SW_OK)
			continue;
		json_decref(last);
		last = object;
	}
	return last;
}

typedef struct telling {
	figures_fn *work;
	const void *task;
} telling;

static void tell(const void *context, int fd)
{
	const telling *t = context;
	FILE *to = fdopen(fd, "w");
	if (!to)
		return;
	t->work(t->task, to);
	fclose(to);
}

json_t *figures_apart(figures_fn *work, const void *task, double limit_s)
{
	const telling t = {work, task};
	sw_text output = {0};
	char note[96];
	child_end end = child_talk(tell, &t, &output, limit_s, 0);
	child_explain(&end, note, sizeof(note));
	json_t *result = last_object(&output);
	if (!result)
		result = json_pack("{s:s, s:s}", "status", end.killed ? "time limit" : "failed",
		                   "message", end.killed ? "no plan in time" : note);
	json_object_set_new(result, "wall_s", json_real(end.seconds));
	json_object_set_new(result, "cpu_s", json_real(end.cpu_s));
	sw_text_clear(&output);
	return result;
}
