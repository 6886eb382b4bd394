/* Another solver on an instance: one child writes the problem, the program solves it, another child
 * reads the answer and evaluates it. Only the program's own time and memory are counted; its time
 * includes reading. */
#include "peers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Terms of all rows of memory: with more, any peer's file has gigabytes, and so has the memory of
 * the peer. */
#define MAX_TERMS 40000000

/* Seconds that a peer gets beyond its time limit before it is killed. */
#define GRACE_S 10
#define GRACE_PART 0.2

const peer *const all_peers[] = {&peer_toulbar2, &external_cbc, NULL};

const char *peer_name(const peer *p)
{
	return p->name;
}

typedef struct run {
	const peer *p;
	const instance *what;
	bool reduced;
	char folder[256], problem[320], answer[320];
	sw_text printed;
} run;

typedef struct written {
	int64_t nodes, edges;
	bool infeasible, closed; /* found while writing the problem, before any search */
	char note[96];           /* empty if the file was written */
} written;

/* ---- before ----------------------------------------------------------------------------- */

static bool load_model(const run *r, sw_problem *problem, model *m, char *note, size_t room)
{
	sw_error err;
	if (r->what->load(r->what, problem, &err)) {
		snprintf(note, room, "%.90s", err.message);
		return false;
	}
	model_init(m, problem, r->reduced);
	return true;
}

static void write_file(const run *r, const model *m, written *w)
{
	sw_error err;
	FILE *file = fopen(r->problem, "we");
	if (!file || r->p->write(m, file, &err))
		snprintf(w->note, sizeof w->note, "%.90s",
		         file ? err.message : "no room for its file");
	if (file && (ferror(file) | fclose(file)))
		snprintf(w->note, sizeof w->note, "no room for its file");
}

static void write_here(const void *context, void *result)
{
	const run *r = context;
	written *w = result;
	sw_problem problem;
	model m;
	if (!load_model(r, &problem, &m, w->note, sizeof w->note))
		return;
	w->nodes = (int64_t)m.nodes.len;
	w->edges = (int64_t)m.edges.len;
	w->infeasible = m.infeasible;
	w->closed = m.nodes.len == 0;
	if (m.terms > MAX_TERMS)
		snprintf(w->note, sizeof w->note,
		         "too large to be written down: %.0f million terms in the rows of memory",
		         (double)m.terms / 1e6);
	else if (!w->infeasible && !w->closed)
		write_file(r, &m, w);
	model_clear(&m);
	sw_problem_clear(&problem);
}

/* ---- after ------------------------------------------------------------------------------ */

/* Evaluate the answer as ours are: the cost that the program prints is ignored. */
static void judge(const sw_problem *problem, const model *m, const external_answer *answer,
                  outcome *o)
{
	sw_evaluation value = {0};
	int32_t *assignment = sw_alloc((problem->nodes.len + 1) * sizeof *assignment);
	if (external_assignment(m, answer, assignment)) {
		sw_problem_evaluate(problem, assignment, &value);
		o->has_cost = value.allowed && value.within;
		o->wrong = !o->has_cost;
	}
	o->cost = value.cost;
	o->peak_usage = value.peak_usage;
	o->infeasible = answer->infeasible;
	o->optimal = answer->optimal && o->has_cost;
	o->bound = o->optimal          ? o->cost
	           : answer->has_bound ? model_bound(m, answer->bound)
	                               : INT64_MIN;
	o->has_bound = o->bound > INT64_MIN;
	o->wrong |= o->optimal && answer->has_bound && m->shift == 0 &&
	            model_bound(m, answer->bound) != o->cost;
	if (!o->has_cost && !o->infeasible && !o->note[0])
		snprintf(o->note, sizeof o->note,
		         o->wrong ? "its answer is not valid" : "no answer in time");
	free(assignment);
}

static void judge_here(const void *context, void *result)
{
	const run *r = context;
	outcome *o = result;
	sw_problem problem;
	model m;
	if (!load_model(r, &problem, &m, o->note, sizeof o->note))
		return;
	external_answer answer = {.choice = sw_alloc((m.nodes.len + 1) * sizeof *answer.choice)};
	for (size_t n = 0; n < m.nodes.len; n++)
		answer.choice[n] = -1;
	FILE *file = fopen(r->answer, "re");
	r->p->read(&m, r->printed.data ? r->printed.data : "", file, &answer);
	if (file)
		fclose(file);
	judge(&problem, &m, &answer, o);
	free(answer.choice);
	model_clear(&m);
	sw_problem_clear(&problem);
}

/* ---- the run ---------------------------------------------------------------------------- */

static bool make_folder(run *r)
{
	const char *parent = getenv("TMPDIR");
	snprintf(r->folder, sizeof r->folder, "%s/bench-solve-XXXXXX",
	         parent && *parent ? parent : "/tmp");
	if (!mkdtemp(r->folder))
		return false;
	snprintf(r->problem, sizeof r->problem, "%s/%s", r->folder, r->p->file);
	snprintf(r->answer, sizeof r->answer, "%s/answer", r->folder);
	return true;
}

static void remove_folder(const run *r)
{
	unlink(r->problem);
	unlink(r->answer);
	rmdir(r->folder);
}

/* Write the problem; false if nothing is left to do for the program. */
static bool write_problem(const run *r, const settings *how, double time_s, outcome *o)
{
	written w = {0};
	child_end end = child_run(write_here, r, &w, sizeof w, 3 * time_s + 120, how->peer_bytes);
	if (!end.finished)
		snprintf(o->note, sizeof o->note, "too large to be written down");
	else if (w.infeasible)
		snprintf(o->note, sizeof o->note, "not asked: plainly infeasible");
	else if (w.closed)
		snprintf(o->note, sizeof o->note, "not asked: our reductions leave no node");
	else
		snprintf(o->note, sizeof o->note, "%s", w.note);
	o->nodes = w.nodes;
	o->edges = w.edges;
	return !o->note[0];
}

static void execute(run *r, const settings *how, double time_s, outcome *o)
{
	external_command command = {0};
	char *words[SW_COUNT(command.words) + 1] = {0};
	r->p->command(&command, r->problem, r->answer, time_s, 0);
	for (int i = 0; i < command.n; i++)
		words[i] = command.words[i];
	child_end end = child_exec(words, &r->printed,
	                           time_s + SW_MAX(GRACE_S, GRACE_PART * time_s), how->peer_bytes);
	outcome judged = *o;
	if (end.code != 0)
		child_explain(&end, judged.note, sizeof judged.note);
	child_end judging = child_run(judge_here, r, &judged, sizeof judged, 3 * time_s + 120, 0);
	if (judging.finished)
		*o = judged;
	else
		child_explain(&judging, o->note, sizeof o->note);
	o->seconds = end.seconds;
	o->peak_bytes = end.peak_bytes;
}

void solve_peer(const peer *p, const instance *what, bool reduced, const settings *how,
                double time_s, outcome *o)
{
	run r = {.p = p, .what = what, .reduced = reduced};
	*o = (outcome){.nodes_left = -1};
	if (!make_folder(&r)) {
		snprintf(o->note, sizeof o->note, "no folder for its files");
		return;
	}
	if (write_problem(&r, how, time_s, o))
		execute(&r, how, time_s, o);
	remove_folder(&r);
	sw_text_clear(&r.printed);
}
