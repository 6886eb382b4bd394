#include "partition/cases.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "generate/generate.h"
#include "partition/shrink.h"
#include "rewrite/rewrite.h"
#include "model/model.h"

/* ---- clusters --------------------------------------------------------------------------- */

static const char *const counts[N_CLUSTERS] = {"2",   "3",   "4",   "6",     "8",  "2,2",
                                               "2,3", "3,2", "2,4", "2,2,2", "4,2"};

/* number of cases after which the cached paths are dropped */
#define CASES_PER_CACHE 3000

static void free_paths(case_context *w)
{
	for (int i = 0; i < N_CLUSTERS; i++) {
		sw_path_cache_free(w->paths[i]);
		w->paths[i] = NULL;
	}
}

void case_context_init(case_context *w)
{
	*w = (case_context){.cases = 0};
	for (int i = 0; i < N_CLUSTERS; i++)
		make_cluster(counts[i], &w->clusters[i]);
}

void case_context_clear(case_context *w)
{
	free_paths(w);
	for (int i = 0; i < N_CLUSTERS; i++)
		sw_cluster_clear(&w->clusters[i]);
}

/* ---- one case --------------------------------------------------------------------------- */

/* Fill the inputs by the canonical program, which has the same ones; the generated program does not
 * outlive the making of the case. */
static sw_tensor *filled_inputs(const generated *g, uint64_t seed, const sw_program *program,
                                uint32_t *n)
{
	sw_arena arena;
	const sw_id *values;
	sw_arena_init(&arena);
	*n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *inputs = sw_alloc(sizeof(sw_tensor) * (*n + 1));
	generated_fill(g, seed, inputs);
	for (uint32_t i = 0; i < *n; i++)
		inputs[i].shape = sw_value_shape(program, values[i]);
	sw_arena_clear(&arena);
	return inputs;
}

/* Fill the padding of state with NaN, since no op may rely on it, and that of other inputs with
 * zeros. */
static sw_tensor *padded_inputs(const sw_program *program, const sw_tensor *small)
{
	sw_arena arena;
	sw_error err = {0};
	const sw_id *values;
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *inputs = sw_alloc(sizeof(sw_tensor) * (n + 1));
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(program, values[i]);
		check(sw_tensor_new(shape, true, &inputs[i], &err), &err);
		for (size_t a = 0; a < program->aliases.len; a++)
			for (int64_t e = 0;
			     program->aliases.data[a].input == i && e < sw_shape_elements(shape);
			     e++)
				sw_element_set(shape.type, sw_tensor_data(inputs[i]), e, NAN);
		sw_shape_embed(small[i].shape, sw_tensor_data(small[i]), shape,
		               sw_tensor_data(inputs[i]));
	}
	sw_arena_clear(&arena);
	return inputs;
}

static void fill_inputs(const generated *g, uint64_t seed, trial *t)
{
	sw_tensor *inputs = filled_inputs(g, seed, sw_plan_serial(t->plan), &t->n_inputs);
	if (t->plan->original) {
		t->true_inputs = inputs;
		inputs = padded_inputs(t->plan->program, inputs);
	}
	t->inputs = inputs;
}

#define PADDED_SHARE 8 /* one case in this many is padded, if a dimension can be */

static sw_status pad(const sw_program *program, int64_t multiple, sw_program **canonical,
                     sw_program **padded, sw_error *err)
{
	sw_padded_list list = {0};
	sw_status status = sw_rewrite_canonical(program, canonical, err);
	if (status == SW_OK)
		status = sw_rewrite_pad(*canonical, (sw_pad_rule){.multiple = multiple, .share = 1},
		                        padded, &list, err);
	sw_vec_clear(&list);
	return status;
}

static sw_status plan_program(const sw_program *program, const sw_cluster *cluster, uint64_t seed,
                              sw_plan **plan, sw_error *err)
{
	sw_program *canonical = NULL, *padded = NULL;
	sw_status status = SW_OK;
	if (sw_random_bits(seed, 3, 0) % PADDED_SHARE == 0)
		status = pad(program, cluster->n_devices, &canonical, &padded, err);
	if (status == SW_OK)
		status = sw_plan_random(padded ? padded : program, "", cluster,
		                        sw_random_bits(seed, 2, 0),
		                        sw_random_bits(seed, 4, 0) % 3 == 0, plan, err);
	if (status == SW_OK && padded) {
		(*plan)->original = canonical;
		canonical = NULL;
	}
	sw_program_free(canonical);
	sw_program_free(padded);
	return status;
}

void case_make(case_context *w, uint64_t seed, trial *t, outcome *o)
{
	generated g;
	int64_t cluster = (int64_t)(sw_random_bits(seed, 1, 0) % N_CLUSTERS);
	*o = (outcome){.verdict = EQUAL};
	*t = (trial){.n_inputs = 0};
	if (++w->cases % CASES_PER_CACHE == 0)
		free_paths(w);
	if (!w->paths[cluster])
		w->paths[cluster] = sw_plan_paths(&w->clusters[cluster], NULL, 0);
	t->paths = w->paths[cluster];
	generate_program(seed, &(generate_options){.undefined = true}, &g);
	if (plan_program(g.program, &w->clusters[cluster], seed, &t->plan, &o->err) != SW_OK) {
		o->verdict = UNPLANNED;
	} else {
		fill_inputs(&g, seed, t);
		t->errors = sw_alloc(sizeof(double) * (g.sidecar.n_outputs + 1));
		memcpy(t->errors, g.errors, sizeof(double) * g.sidecar.n_outputs);
	}
	generated_clear(&g);
}

/* ---- many ------------------------------------------------------------------------------- */

static void report(uint64_t seed, const trial *t, const outcome *o)
{
	sw_text text = {0};
	sw_text_addf(&text, "\nSW_SEED=%llu SW_CASES=1: ", (unsigned long long)seed);
	if (t->plan)
		trial_print(t, o, &text);
	else
		sw_text_add(&text, o->err.message);
	fprintf(stderr, "%s\n", text.data);
	sw_text_clear(&text);
}

static bool run_case(case_context *w, uint64_t seed, coverage *c)
{
	trial t;
	outcome o;
	case_make(w, seed, &t, &o);
	if (o.verdict == EQUAL)
		trial_run(&t, &o);
	if (t.plan && o.verdict == EQUAL)
		coverage_add(c, &t);
	bool ok = o.verdict == EQUAL;
	if (!ok) {
		if (t.plan)
			shrink(&t, &o);
		report(seed, &t, &o);
	}
	trial_clear(&t);
	return ok;
}

/* After a fatal signal, print which case it was, then raise the signal again with its usual
 * action. */
static const int FATAL_SIGNALS[] = {SIGABRT, SIGSEGV, SIGFPE};
static struct sigaction usual_actions[SW_COUNT(FATAL_SIGNALS)];
static volatile uint64_t running;

static void report_running_case(int signal_number)
{
	char line[] = "\nSW_SEED=00000000000000000000 SW_CASES=1 ended by a signal\n";
	uint64_t seed = running;
	for (size_t i = 28; i > 8; i--, seed /= 10)
		line[i] = (char)('0' + seed % 10);
	ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);
	(void)written;
	for (size_t i = 0; i < SW_COUNT(FATAL_SIGNALS); i++)
		if (FATAL_SIGNALS[i] == signal_number)
			sigaction(signal_number, &usual_actions[i], NULL);
	raise(signal_number);
}

static void install_signal_handlers(void)
{
	struct sigaction say = {.sa_handler = report_running_case};
	for (size_t i = 0; i < SW_COUNT(FATAL_SIGNALS); i++)
		sigaction(FATAL_SIGNALS[i], &say, &usual_actions[i]);
}

int cases_run(case_context *w, uint64_t first, int64_t n, int max_failures, bool progress,
              coverage *c)
{
	int failed = 0;
	double begin_s = sw_now_s();
	install_signal_handlers();
	for (int64_t i = 0; i < n && failed < max_failures; i++) {
		running = first + (uint64_t)i;
		failed += !run_case(w, first + (uint64_t)i, c);
		if (progress && (i + 1) % 2000 == 0)
			fprintf(stderr, "%lld of %lld cases, %.0f s, %d failed\n",
			        (long long)(i + 1), (long long)n, sw_now_s() - begin_s, failed);
	}
	return failed;
}

static void run_part(uint64_t first, int64_t n, int max_failures, bool progress, coverage *c)
{
	case_context w;
	case_context_init(&w);
	int failed = cases_run(&w, first, n, max_failures, progress, c);
	case_context_clear(&w);
	exit(SW_MIN(failed, 100));
}

int cases_run_in_parallel(uint64_t first, int64_t n, int max_failures, int processes, coverage *c)
{
	coverage *parts = mmap(NULL, sizeof(*parts) * (size_t)processes, PROT_READ | PROT_WRITE,
	                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(parts, MAP_FAILED);
	int failed = 0;
	fflush(NULL); /* flush once, and not in each process */
	for (int p = 0; p < processes; p++) {
		int64_t begin = n * p / processes, end = n * (p + 1) / processes;
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			run_part(first + (uint64_t)begin, end - begin, max_failures,
			         p == 0 && n > 10000, &parts[p]);
	}
	for (int p = 0; p < processes; p++) {
		int status;
		assert_true(wait(&status) > 0);
		failed += WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	for (int p = 0; p < processes; p++)
		coverage_sum(c, &parts[p]);
	munmap(parts, sizeof(*parts) * (size_t)processes);
	return failed;
}
