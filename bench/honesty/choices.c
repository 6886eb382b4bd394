/*
 * The candidate set. A weight that dots read has four choices: its dots split the batch, or one of
 * the weight's two dimensions, or nothing. State at rest has three: whole; moments split; all
 * split. The solver then optimises the rest of the step, by each model: so each combination is a
 * plan that a planner might propose.
 */
#include "honesty.h"

#include <stdlib.h>
#include <string.h>
#include "model/model.h"

/* ---- the subject ------------------------------------------------------------------------ */

static sw_status read_program(subject *s, const char *path, sw_error *err)
{
	const char *slash = strrchr(path, '/');
	snprintf(s->name, sizeof(s->name), "%.*s", (int)strcspn(slash ? slash + 1 : path, "."),
	         slash ? slash + 1 : path);
	sw_status status = sw_read_program(path, &s->program, err);
	return status == SW_OK ? sw_sidecar_find(path, s->program, &s->sidecar, err) : status;
}

static sw_status read_cluster(subject *s, const char *path, const char *devices, sw_error *err)
{
	sw_status status = sw_cluster_read(path, &s->cluster, err);
	if (status == SW_OK && devices)
		status = sw_cluster_take(&s->cluster, devices, err);
	return status;
}

static const double hidden_weights[N_MODELS] = {
	[HIDES_NOTHING] = 1, [HIDES_HALF] = 0.5, [HIDES_MOST] = 0.2};

/* Return a mesh of all devices as one axis, which any class may split. */
static sw_mesh one_axis(const sw_cluster *cluster)
{
	static const sw_axis_use anything = {.may = {SW_CLASS_HEAVY, 0}};
	sw_mesh mesh = {
		.search = true, .n_axes = 1, .axes = {{.size = cluster->n_devices, .name = "x"}}};
	mesh.axes[0].atoms = (1u << cluster->atoms.n) - 1;
	mesh.use[0] = &anything;
	return mesh;
}

sw_status subject_open(subject *s, const char *program, const char *cluster, const char *devices,
                       sw_error *err)
{
	sw_program *canonical;
	*s = (subject){0};
	sw_status status = read_cluster(s, cluster, devices, err);
	if (status == SW_OK)
		status = read_program(s, program, err);
	if (status == SW_OK)
		status = sw_rewrite_canonical(s->program, &canonical, err);
	if (status != SW_OK)
		return status;
	s->plan = sw_plan_new(canonical, program, &s->cluster);
	s->plan->paths = s->paths = sw_path_store_new(&s->cluster);
	s->mesh = one_axis(&s->cluster);
	sw_analysis_init(&s->analysis, s->plan, &s->sidecar, (sw_analysis_options){0});
	sw_memo_init(&s->memo, &s->analysis, s->plan, 0);
	for (int m = 0; m < N_MODELS; m++) {
		s->analysis.overlap_weight =
			m == PLANNED ? sw_overlap_weight(&s->analysis.roles, &s->cluster,
				                    (1u << s->cluster.atoms.n) - 1,
				                    &sw_model_default_limits)
				     : hidden_weights[m];
		sw_model_init(&s->models[m], &s->memo, &s->mesh, INT64_MAX);
	}
	return SW_OK;
}

void subject_close(subject *s)
{
	if (s->plan) {
		for (int m = 0; m < N_MODELS; m++)
			sw_model_clear(&s->models[m]);
		sw_memo_clear(&s->memo);
		sw_analysis_clear(&s->analysis);
		sw_path_store_free(s->paths);
		sw_plan_free(s->plan);
	}
	if (s->program)
		sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	sw_cluster_clear(&s->cluster);
}

/* ---- decisions -------------------------------------------------------------------------- */

enum { WHOLE, BATCH, ROWS, COLUMNS, DOT_SPLITS }; /* of a weight's dots */
static const char *const dot_split_names[] = {"whole", "batch", "rows", "columns"};
enum { AT_REST_WHOLE, MOMENTS_SPLIT, ALL_SPLIT, RESTS };
static const char *const rest_names[] = {"whole", "moments split", "all split"};

typedef struct weight {
	uint32_t input;
	SW_VEC(uint32_t) dots; /* indices of decisions */
} weight;
typedef struct weights {
	weight *data;
	size_t len, cap;
} weights;

/* Return the entry input that a value comes from, seen through ops that move or convert; SW_NO_ID:
 * none. */
static uint32_t input_of(const sw_roles *roles, sw_id value)
{
	if (!roles->from_parameter[value])
		return SW_NO_ID;
	for (const sw_op *op;;) {
		op = sw_op_at(roles->program, roles->program->values.data[value].op);
		if (op->opcode == SW_OP_PARAMETER || op->n_operands == 0)
			break;
		value = op->operands[0];
	}
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		if (roles->inputs[i] == value)
			return i;
	return SW_NO_ID;
}

static void add_dot(weights *list, uint32_t input, uint32_t decision)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i].input == input) {
			sw_vec_push(&list->data[i].dots, decision);
			return;
		}
	weight fresh = {.input = input};
	sw_vec_push(&fresh.dots, decision);
	sw_vec_push(list, fresh);
}

static weights find_weights(const subject *s)
{
	const sw_roles *roles = &s->analysis.roles;
	weights list = {0};
	for (uint32_t i = 0; i < s->models[0].decisions.len; i++) {
		const sw_decision *decision = &s->models[0].decisions.data[i];
		const sw_op *op = decision->kind == SW_DECISION_OP
		                          ? sw_op_at(roles->program, decision->index)
		                          : NULL;
		for (uint32_t k = 0; op && op->opcode == SW_OP_DOT && k < 2; k++) {
			uint32_t input = input_of(roles, op->operands[k]);
			if (input != SW_NO_ID)
				add_dot(&list, input, i);
		}
	}
	return list;
}

static void weights_clear(weights *list)
{
	for (size_t i = 0; i < list->len; i++)
		sw_vec_clear(&list->data[i].dots);
	sw_vec_clear(list);
}

/* True if a digit of this dimension of the weight belongs to the class. */
static bool dim_has_class(const subject *s, const weight *w, int32_t dim, int32_t class)
{
	const sw_classes *c = &s->analysis.classes;
	sw_id value = s->analysis.roles.inputs[w->input];
	for (uint32_t i = c->value_start[value]; i < c->value_start[value + 1]; i++)
		if (c->value_splits[i].where == dim && c->value_splits[i].class == class)
			return true;
	return false;
}

/* Return the dot split that a candidate of one of the weight's dots is; DOT_SPLITS: none of
 * them. */
static int dot_split_of(const subject *s, const weight *w, sw_id dot, const sw_option *option)
{
	const sw_classes *c = &s->analysis.classes;
	if (option->kind != SW_CHOICE_SPLIT)
		return option->kind == SW_CHOICE_NONE ? WHOLE : DOT_SPLITS;
	for (uint32_t i = c->op_start[dot]; i < c->op_start[dot + 1]; i++) {
		const sw_split *split = &c->op_splits[i];
		if (split->where != option->index || split->top != option->top)
			continue;
		return c->roles[split->class] & SW_CLASS_DATA ? BATCH
		       : dim_has_class(s, w, 0, split->class) ? ROWS
		       : dim_has_class(s, w, 1, split->class) ? COLUMNS
		                                              : DOT_SPLITS;
	}
	return DOT_SPLITS;
}

/* ---- choosing: other candidates are forbidden ------------------------------------------- */

typedef bool allows_fn(const subject *s, const void *what, const sw_decision *decision,
                       const sw_option *option, int dot_split);

/* Forbid the candidates of a decision that are not allowed; if none is allowed, forbid none. */
static void restrict_decision(const subject *s, sw_model *m, const sw_decision *decision,
                              allows_fn *allows, const void *what, int dot_split)
{
	const sw_strategy_table *table = &s->memo.tables.data[decision->table];
	sw_problem_node *node = &m->problem.nodes.data[decision->node];
	int64_t *cost = SW_NEW_N(&m->arena, int64_t, table->n);
	bool any = false;
	for (int32_t i = 0; i < table->n; i++) {
		bool allowed = allows(s, what, decision, &table->candidates[i].axis[0], dot_split);
		cost[i] = allowed ? node->cost[i] : SW_FORBIDDEN;
		any = any || allowed;
	}
	if (any)
		node->cost = cost;
}

static bool allows_dot_split(const subject *s, const void *what, const sw_decision *decision,
                             const sw_option *option, int dot_split)
{
	return dot_split_of(s, what, decision->index, option) == dot_split;
}

static bool allows_rest(const subject *s, const void *what, const sw_decision *decision,
                        const sw_option *option, int rest)
{
	(void)what;
	bool moment = s->analysis.roles.input_role[decision->index] == SW_ROLE_MOMENT;
	bool split = rest == ALL_SPLIT || (rest == MOMENTS_SPLIT && moment);
	return (option->kind == SW_CHOICE_SPLIT) == split;
}

static bool is_state(const subject *s, const sw_decision *decision)
{
	sw_role role = s->analysis.roles.input_role[decision->index];
	return role == SW_ROLE_PARAMETER || role == SW_ROLE_MOMENT;
}

/* Add the name of a weight in short: "attn.qkv" for "params.blocks.0.attn.qkv.w". */
static void add_name(sw_text *words, const char *name)
{
	static const char *const before[] = {"params.", "blocks.0."};
	for (size_t i = 0; i < SW_COUNT(before); i++)
		name += strncmp(name, before[i], strlen(before[i])) ? 0 : strlen(before[i]);
	const char *last = strrchr(name, '.');
	sw_text_add_n(words, name, last ? (size_t)(last - name) : strlen(name));
}

/* Restrict the model to a combination. number: of the combination, in mixed radix. */
static void choose(const subject *s, sw_model *m, const weights *list, int64_t number,
                   sw_text *words)
{
	for (size_t i = 0; i < list->len; i++, number /= DOT_SPLITS) {
		const weight *w = &list->data[i];
		int dot_split = (int)(number % DOT_SPLITS);
		for (size_t k = 0; k < w->dots.len; k++)
			restrict_decision(s, m, &m->decisions.data[w->dots.data[k]],
			                  allows_dot_split, w, dot_split);
		add_name(words, s->sidecar.inputs[w->input].name);
		sw_text_addf(words, " %s, ", dot_split_names[dot_split]);
	}
	for (size_t i = 0; i < m->decisions.len; i++) {
		const sw_decision *decision = &m->decisions.data[i];
		if (decision->kind == SW_DECISION_INPUT && is_state(s, decision))
			restrict_decision(s, m, decision, allows_rest, NULL, (int)number);
	}
	sw_text_addf(words, "state %s", rest_names[number]);
}

/* Evaluate an assignment by each model, in seconds. */
static void model_costs(const subject *s, const int32_t *assignment, double *model_s)
{
	for (int m = 0; m < N_MODELS; m++) {
		sw_evaluation e;
		sw_problem_evaluate(&s->models[m].problem, assignment, &e);
		model_s[m] = (double)e.cost * SW_COST_UNIT_S;
	}
}

/* Complete the plan by solving the restricted model. SW_NO: no plan satisfies the choice. */
static sw_status complete(const subject *s, const sw_model *m, double *model_s, sw_error *err)
{
	sw_solution solution = {0};
	sw_solve_options how = {.quiet = true, .gap = 1e-3};
	sw_status status = sw_solve(&m->problem, &how, &solution, err);
	if (status == SW_OK && !solution.assignment)
		status = SW_NO;
	if (status == SW_OK) {
		model_costs(s, solution.assignment, model_s);
		sw_model_apply(m, solution.assignment, s->plan);
		status = sw_plan_verify(s->plan, err);
	}
	sw_solution_clear(&solution);
	return status;
}

static sw_status try_choice(subject *s, sw_model *m, const weights *list, int64_t number,
                            choice_fn *each, void *context, sw_error *err)
{
	size_t bytes = sizeof(sw_problem_node) * m->problem.nodes.len;
	sw_problem_node *unrestricted = sw_alloc(bytes + 1);
	memcpy(unrestricted, m->problem.nodes.data, bytes);
	sw_text words = {0};
	double model_s[N_MODELS];
	choose(s, m, list, number, &words);
	sw_status status = complete(s, m, model_s, err);
	memcpy(m->problem.nodes.data, unrestricted, bytes);
	if (status == SW_OK)
		status = each(context, words.data, model_s, err);
	sw_text_clear(&words);
	free(unrestricted);
	return status == SW_NO ? SW_OK : status;
}

sw_status choices_each(subject *s, int64_t every, choice_fn *each, void *context, sw_error *err)
{
	weights list = find_weights(s);
	int64_t combinations = RESTS;
	sw_status status = SW_OK;
	for (size_t i = 0; i < list.len; i++)
		combinations *= DOT_SPLITS;
	for (int64_t c = 0; c < combinations && status == SW_OK; c += every)
		for (int m = 0; m < N_MODELS && status == SW_OK; m++)
			status = try_choice(s, &s->models[m], &list, c, each, context, err);
	weights_clear(&list);
	return status;
}
