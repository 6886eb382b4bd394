/*
 * A CASE is a program on a cluster. It is attacked as it was asked for, by random plans and by what
 * the search finds, and rewritten (padded, rematerialised, in microbatches) by random plans. From
 * the plans of each such variant two descents begin, one of the kernels and one of the step.
 */
#include "bound/campaign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bound/descent.h"
#include "bound/programs.h"
#include "generate/generate.h"
#include "search/search.h"

#define MAX_PLANS 40
#define CASES_PER_PATHS 200 /* after which the paths are forgotten */

/* One form of a program, and its plans. */
typedef struct variant {
	campaign *c;
	const ground *on;
	sw_program *program; /* canonical; borrowed */
	const sw_sidecar *sidecar;
	const bounds *asked; /* of the program that was asked for; NULL: of this one */
	bounds own;
	int32_t n;
	sw_plan *plans[MAX_PLANS];
	double step_s[MAX_PLANS];
	double auto_s; /* 0: not planned */
} variant;

static sw_rng rng_of(uint64_t seed, uint64_t stream)
{
	return (sw_rng){sw_random_bits(seed, stream, 0), 0};
}

/* ---- plans ------------------------------------------------------------------------------ */

static void add_plan(variant *v, sw_plan *plan)
{
	attacker *a = &v->c->attacker;
	plan->paths = v->on->paths;
	if (v->n == 0)
		bounds_init(&v->own, plan->program, v->sidecar, plan->rules, &v->on->cluster);
	snprintf(a->plan, sizeof(a->plan), "%s", plan->chosen);
	outcome o = attack(a, plan, &v->own, v->asked ? v->asked : &v->own, true);
	v->step_s[v->n] = o.ok ? o.step_s : INFINITY;
	v->plans[v->n++] = plan;
}

static void add_random(variant *v, int32_t n)
{
	for (int32_t i = 0; i < n && v->n < MAX_PLANS; i++) {
		sw_plan *plan = NULL;
		sw_error err;
		uint64_t seed = sw_random_bits(v->c->attacker.seed, 7, (uint64_t)i);
		if (sw_plan_random(v->program, "", &v->on->cluster, seed, false, &plan, &err) ==
		    SW_OK)
			add_plan(v, plan);
	}
}

/* Plan as the search does. A plan that it padded is attacked and dropped, since its ops are others.
 * Return the step; 0: there is none. */
static double add_planned(variant *v, const char *strategy, const sw_sidecar *sidecar)
{
	sw_plan_options options = {.quiet = true, .threads = 1, .remat = "none", .microbatches = 1};
	sw_error err;
	sw_plan *plan = NULL;
	if (v->n == MAX_PLANS ||
	    sw_plan_strategy_parse(strategy, &options.strategy, &err) != SW_OK ||
	    sw_plan_make(v->program, "", sidecar, &v->on->cluster, &options, &plan, &err) != SW_OK)
		return 0;
	if (!plan->original) {
		add_plan(v, plan);
		return v->step_s[v->n - 1];
	}
	attacker *a = &v->c->attacker;
	bounds own;
	plan->paths = v->on->paths;
	snprintf(a->plan, sizeof(a->plan), "%s", plan->chosen);
	bounds_init(&own, plan->program, v->sidecar, plan->rules, &v->on->cluster);
	outcome o = attack(a, plan, &own, &v->own, true);
	bounds_clear(&own);
	plan->paths = NULL;
	sw_plan_free(plan);
	return o.ok ? o.step_s : 0;
}

/* All grids of AxoNN whose product is the number of devices. */
static void add_grids(variant *v, const sw_sidecar *sidecar)
{
	int64_t n = v->on->cluster.n_devices;
	for (int64_t x = 1; x <= n; x++)
		for (int64_t y = 1; x * y <= n; y++)
			for (int64_t z = 1; x * y * z <= n; z++) {
				char name[96];
				if (n % (x * y * z) != 0 || v->n + 12 > MAX_PLANS)
					continue;
				snprintf(name, sizeof(name), "axonn:%lld,%lld,%lld,%lld",
				         (long long)x, (long long)y, (long long)z,
				         (long long)(n / (x * y * z)));
				add_planned(v, name, sidecar);
			}
}

static void add_fixed(variant *v, const sw_sidecar *sidecar)
{
	static const char *const names[] = {"dp",    "zero1", "zero2", "zero3",
	                                    "summa", "2.5d",  "expert"};
	int64_t n = v->on->cluster.n_devices;
	for (size_t i = 0; i < SW_COUNT(names); i++)
		add_planned(v, names[i], sidecar);
	for (int64_t tp = 2; tp <= n; tp++) {
		char name[32];
		snprintf(name, sizeof(name), "megatron:tp=%lld", (long long)tp);
		if (n % tp == 0)
			add_planned(v, name, sidecar);
	}
	add_grids(v, sidecar);
}

/* ---- descents --------------------------------------------------------------------------- */

static void note_missed(campaign *c, double gain)
{
	const attacker *a = &c->attacker;
	int32_t at = c->n_missed;
	while (at > 0 && c->missed[at - 1].gain < gain)
		at--;
	if (gain <= 0.01 || at == MAX_MISSED)
		return;
	c->n_missed = SW_MIN(c->n_missed + 1, MAX_MISSED);
	memmove(&c->missed[at + 1], &c->missed[at],
	        sizeof(missed) * (size_t)(c->n_missed - at - 1));
	c->missed[at].gain = gain;
	snprintf(c->missed[at].what, sizeof(c->missed[at].what), "seed %llu, %s on %s, %s",
	         (unsigned long long)a->seed, a->program, a->cluster, a->plan);
}

static int32_t quickest(const variant *v)
{
	int32_t best = 0;
	for (int32_t i = 1; i < v->n; i++)
		best = v->step_s[i] < v->step_s[best] ? i : best;
	return best;
}

static void descend_from(variant *v, int32_t start, descent_goal goal)
{
	static const char *const goals[] = {"kernels", "the step", "the sum"};
	attacker *a = &v->c->attacker;
	descent d = {.attacker = a,
	             .own = &v->own,
	             .asked = v->asked ? v->asked : &v->own,
	             .others = v->plans,
	             .n_others = v->n,
	             .goal = goal,
	             .moves = v->c->effort.moves};
	snprintf(a->plan, sizeof(a->plan), "descent of %s from %.60s",
	         goals[goal], v->plans[start]->chosen);
	double seconds = descend(&d, v->plans[start], sw_random_bits(a->seed, 9, goal));
	if (goal == GOAL_STEP && v->auto_s > 0)
		note_missed(v->c, v->auto_s / seconds - 1);
}

static void descend_all(variant *v)
{
	sw_rng rng = rng_of(v->c->attacker.seed, 8);
	attacker *a = &v->c->attacker;
	const bounds *asked = v->asked ? v->asked : &v->own;
	if (v->n == 0)
		return;
	snprintf(a->plan, sizeof(a->plan), "single ops");
	attack_strategies(a, v->plans[0], &v->own, asked, v->c->effort.draws);
	descend_from(v, (int32_t)sw_rng_below(&rng, v->n), GOAL_KERNELS);
	descend_from(v, quickest(v), GOAL_KERNELS);
	descend_from(v, quickest(v), GOAL_STEP);
	descend_from(v, quickest(v), GOAL_SUM);
	if (v->auto_s > 0)
		descend_from(v, (int32_t)sw_rng_below(&rng, v->n), GOAL_STEP);
}

static void variant_clear(variant *v)
{
	for (int32_t i = 0; i < v->n; i++) {
		v->plans[i]->paths = NULL;
		sw_plan_free(v->plans[i]);
	}
	if (v->n > 0)
		bounds_clear(&v->own);
}

/* ---- cases ------------------------------------------------------------------------------ */

typedef struct ground_choice {
	int32_t site;
	sw_fusion fusion;
} ground_choice;

/* Of three cases one is on devices that run each op as a kernel, where bounds are the tightest. */
static ground_choice draw_ground(sw_rng *rng)
{
	int32_t at = (int32_t)sw_rng_below(rng, N_SITES);
	bool alone = sw_rng_below(rng, 3) == 0;
	sw_fusion fusion = (sw_fusion)sw_rng_below(rng, SW_FUSION_COUNT);
	return (ground_choice){at, alone ? SW_FUSION_NONE : fusion};
}

static sw_rewrites draw_rewrites(sw_rng *rng, int64_t devices)
{
	static const char *const policies[] = {"elementwise", "blocks", "memory-bound"};
	sw_rewrites r = {0};
	int64_t kind = sw_rng_below(rng, 4);
	if (kind != 1)
		r.padding =
			(sw_pad_rule){.multiple = sw_rng_below(rng, 2) ? devices : 8, .share = 1};
	if (kind == 1 || kind == 3)
		r.microbatches = (int32_t)(2 + sw_rng_below(rng, 3));
	if (kind == 2)
		r.remat = policies[sw_rng_below(rng, SW_COUNT(policies))];
	return r;
}

/* Attack the program in another form, against its own bound and that of the program before. */
static void attack_rewritten(campaign *c, const ground *on, const sw_program *canonical,
                             const sw_sidecar *sidecar, const bounds *asked)
{
	sw_rng rng = rng_of(c->attacker.seed, 5);
	sw_rewrites rewrites = draw_rewrites(&rng, on->cluster.n_devices);
	sw_padded_list padded = {0};
	sw_program *program = NULL;
	sw_error err;
	sw_remat_device device = sw_plan_remat_device(&on->cluster, canonical);
	sw_status status =
		sw_rewrite_in_order(canonical, sidecar, &rewrites, device, &program, &padded, &err);
	sw_vec_clear(&padded);
	if (status != SW_OK || !program)
		return;
	char name[128];
	const char *before = c->attacker.program;
	sw_text words = {0};
	sw_rewrites_add_words(&rewrites, &words);
	snprintf(name, sizeof(name), "%s%s", before, words.len ? words.data : "");
	sw_text_clear(&words);
	c->attacker.program = name;
	variant v = {.c = c, .on = on, .program = program, .sidecar = sidecar, .asked = asked};
	add_random(&v, c->effort.random);
	descend_all(&v);
	variant_clear(&v);
	c->attacker.program = before;
	sw_program_free(program);
}

static void attack_case(campaign *c, const sw_program *program, const sw_sidecar *sidecar,
                        ground_choice where, bool planned)
{
	if (++c->cases % CASES_PER_PATHS == 0)
		sites_forget(c->sites);
	const ground on = ground_of(&c->sites[where.site], where.fusion, c->attacker.seed);
	sw_program *canonical = NULL;
	sw_error err;
	if (sw_rewrite_canonical(program, &canonical, &err) != SW_OK)
		return;
	c->attacker.cluster = on.name;
	variant v = {.c = c, .on = &on, .program = canonical, .sidecar = sidecar};
	add_random(&v, c->effort.random);
	if (planned && v.n > 0) {
		add_fixed(&v, sidecar);
		v.auto_s = add_planned(&v, "auto", sidecar);
	}
	descend_all(&v);
	if (v.n > 0)
		attack_rewritten(c, &on, canonical, sidecar, &v.own);
	variant_clear(&v);
	sw_program_free(canonical);
}

static bool one_in(sw_rng *rng, int32_t n)
{
	return n > 0 && sw_rng_below(rng, n) == 0;
}

static void attack_text(campaign *c, const char *name, const char *hlo,
                        ground_choice where)
{
	sw_rng rng = rng_of(c->attacker.seed, 6);
	sw_program *program;
	sw_sidecar sidecar;
	sw_error err = {0};
	c->attacker.program = name;
	if (sw_read_hlo(hlo, strlen(hlo), name, &program, &err) != SW_OK)
		fail_msg("%s:%d: %s", name, err.line, err.message);
	sw_sidecar_default(program, &sidecar);
	attack_case(c, program, &sidecar, where, one_in(&rng, c->effort.planned));
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
}

void campaign_text(campaign *c, uint64_t seed, const char *name, const char *hlo, const char *where,
                   sw_fusion fusion)
{
	int32_t at = 0;
	while (at < N_SITES && strcmp(c->sites[at].name, where))
		at++;
	assert_true(at < N_SITES);
	c->attacker.seed = seed;
	attack_text(c, name, hlo, (ground_choice){at, fusion});
}

void campaign_kind(campaign *c, uint64_t seed, const char *kind, const char *where,
                   sw_fusion fusion)
{
	sw_rng rng = rng_of(seed, 4);
	int32_t k = 0;
	while (k < N_WRITTEN_KINDS && strcmp(WRITTEN_KINDS[k].name, kind))
		k++;
	assert_true(k < N_WRITTEN_KINDS);
	sw_text text = {0};
	WRITTEN_KINDS[k].write(&rng, &text);
	campaign_text(c, seed, kind, text.data, where, fusion);
	sw_text_clear(&text);
}

static void attack_recorded(campaign *c, sw_rng *rng, ground_choice where)
{
	static const char *const names[] = {"mlp",
	                                    "mlp-clip",
	                                    "odd-tiny",
	                                    "ncf-tiny",
	                                    "gpt-tiny-scan",
	                                    "vgg-tiny",
	                                    "mlp-bf16",
	                                    "moe-mixtral-tiny-scan",
	                                    "forward-forward-tiny",
	                                    "mamba-tiny",
	                                    "gpt-tiny"};
	char path[512];
	sw_program *program;
	sw_sidecar sidecar;
	sw_error err = {0};
	c->attacker.program = names[sw_rng_below(rng, SW_COUNT(names))];
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz",
	         c->attacker.program);
	if (sw_read_program(path, &program, &err) != SW_OK ||
	    sw_sidecar_find(path, program, &sidecar, &err) != SW_OK)
		fail_msg("%s: %s", path, err.message);
	attack_case(c, program, &sidecar, where, false);
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
}

static void attack_generated(campaign *c, sw_rng *rng, ground_choice where)
{
	static const int64_t sizes[] = {1500, 30000, 1000000};
	static const char *const only[] = {NULL,
	                                   NULL,
	                                   NULL,
	                                   NULL,
	                                   "convolution",
	                                   "reduce-window",
	                                   "select-and-scatter",
	                                   "gather",
	                                   "scatter",
	                                   "slice",
	                                   "topk",
	                                   "while",
	                                   "conditional",
	                                   "concat",
	                                   "pad",
	                                   "argmax",
	                                   "scan",
	                                   "dynamic",
	                                   "sort",
	                                   "dot",
	                                   "batch-norm",
	                                   "fft",
	                                   "triangular",
	                                   "softmax",
	                                   "random-bits"};
	generated g;
	generate_options options = {.undefined = true,
	                            .max_elements = sizes[sw_rng_below(rng, SW_COUNT(sizes))]};
	options.only = only[sw_rng_below(rng, SW_COUNT(only))];
	generate_program(c->attacker.seed, &options, &g);
	c->attacker.program = options.only ? options.only : "generated";
	attack_case(c, g.program, &g.sidecar, where, one_in(rng, c->effort.planned));
	generated_clear(&g);
}

static void attack_seed(campaign *c, uint64_t seed)
{
	sw_rng rng = rng_of(seed, 4);
	ground_choice where = draw_ground(&rng);
	c->attacker.seed = seed;
	if (one_in(&rng, c->effort.recorded)) {
		attack_recorded(c, &rng, where);
	} else if (sw_rng_below(&rng, 2)) {
		attack_generated(c, &rng, where);
	} else {
		sw_text text = {0};
		const written_kind *kind = &WRITTEN_KINDS[sw_rng_below(&rng, N_WRITTEN_KINDS)];
		kind->write(&rng, &text);
		attack_text(c, kind->name, text.data, where);
		sw_text_clear(&text);
	}
}

void campaign_init(campaign *c, double factor, effort how)
{
	*c = (campaign){.attacker = {.factor = factor}, .effort = how};
	sites_init(c->sites);
}

void campaign_clear(campaign *c)
{
	sites_clear(c->sites);
}

void campaign_run(campaign *c, uint64_t seed, int64_t attacks)
{
	while (c->attacker.attacks < attacks)
		attack_seed(c, seed++);
}

void campaign_print(const campaign *c)
{
	printf("%lld cases, ", (long long)c->cases);
	attacker_print(&c->attacker);
	for (int32_t i = 0; i < c->n_missed; i++)
		printf("  descent beat auto by %.1f %%: %s\n", 100 * c->missed[i].gain,
		       c->missed[i].what);
}
