/* The messages of one device, from the phases of a plan. */
#include "run/reshard_parts.h"

#include <string.h>

/* ---- tokens ----------------------------------------------------------------------------- */

/* A phase has the whole of a link, about, if its share is more than this: the next such phase waits
 * for it. */
#define WHOLE_SHARE 0.5

/* `from` tells `to` that phase `of` is nearly through a link that phase `before` needs. */
typedef struct link_token {
	int32_t of, before;
	int64_t from, to;
} link_token;
typedef SW_VEC(link_token) link_tokens;

static int32_t outermost_level(const sw_crossmesh_plan *plan, const sw_crossmesh_phase *p)
{
	int32_t level = SW_MAX_LEVELS;
	for (int32_t l = 0; l < p->n_links; l++)
		level = SW_MIN(level, plan->links[p->links[l].link].level);
	return level;
}

static bool is_known(const link_tokens *tokens, const link_token *token)
{
	for (size_t i = tokens->len; i-- > 0 && tokens->data[i].before == token->before;)
		if (tokens->data[i].from == token->from && tokens->data[i].of == token->of)
			return true;
	return false;
}

/* Tokens come only from devices of the target: these send nothing else to a device of the source,
 * so that tokens and data can't overtake each other. */
static void list_tokens(const sw_crossmesh_plan *plan, link_tokens *tokens)
{
	int32_t *last = sw_alloc((size_t)SW_MAX(plan->n_links, 1) * sizeof(*last));
	int64_t *receiver = sw_alloc((size_t)SW_MAX(plan->n_links, 1) * sizeof(*receiver));
	for (int32_t i = 0; i < plan->n_phases; i++) {
		const sw_crossmesh_phase *p = &plan->phases[i];
		int32_t level = outermost_level(plan, p);
		for (int32_t l = 0; l < p->n_links; l++) {
			int32_t link = p->links[l].link;
			link_token token = {last[link] - 1, i, receiver[link], p->members[0]};
			if (plan->links[link].level != level || p->links[l].share < WHOLE_SHARE ||
			    p->links[l].begin_s > 0)
				continue;
			if (last[link] && p->kind != SW_PHASE_GATHER && token.from != token.to &&
			    sw_crossmesh_index_of(&plan->to, token.from) >= 0 &&
			    sw_crossmesh_index_of(&plan->from, token.to) >= 0 &&
			    !is_known(tokens, &token))
				sw_vec_push(tokens, token);
			last[link] = i + 1;
			receiver[link] = p->links[l].to;
		}
	}
	free(last);
	free(receiver);
}

/* ---- steps ------------------------------------------------------------------------------ */

typedef struct step_writer {
	reshard_rank *rank;
	const sw_crossmesh_phase *phase;
	int64_t elements, width;
} step_writer;

/* The messages of a range of elements; both ends cut it alike. */
typedef struct range_cut {
	int64_t each, n; /* each: elements of a message */
	sw_element_range range;
} range_cut;

static range_cut cut_range(const step_writer *w, sw_element_range range)
{
	int64_t each = SW_MAX(SW_RESHARD_MESSAGE_BYTES / w->width, 1);
	return (range_cut){.each = each, .n = sw_ceil_div(range.length, each), .range = range};
}

static void add_message(step_writer *w, sw_step_kind kind, int64_t peer, const range_cut *cut,
                        int64_t i)
{
	int64_t begin = cut->range.begin + i * cut->each;
	int64_t length = SW_MIN(cut->each, cut->range.begin + cut->range.length - begin);
	char *at = w->rank->buffers[w->phase->task] + begin * w->width;
	if (i < cut->n)
		sw_vec_push(&w->rank->steps,
		            ((sw_message_step){kind, (int32_t)peer, at, length * w->width}));
}

static void add_range(step_writer *w, sw_step_kind kind, int64_t peer, sw_element_range range)
{
	range_cut cut = cut_range(w, range);
	for (int64_t i = 0; i < cut.n; i++)
		add_message(w, kind, peer, &cut, i);
}

static void add_chain(step_writer *w, int32_t m)
{
	const sw_crossmesh_phase *p = w->phase;
	sw_step_kind kind = m < p->n_terms ? SW_STEP_COMBINE : SW_STEP_RECEIVE;
	for (int32_t c = 0; c < p->chunks; c++) {
		sw_element_range chunk = sw_crossmesh_part(w->elements, p->chunks, c);
		if (m > 0)
			add_range(w, kind, p->members[m - 1], chunk);
		if (m + 1 < p->n_members)
			add_range(w, SW_STEP_SEND, p->members[m + 1], chunk);
	}
}

static void add_scatter(step_writer *w, int32_t m)
{
	const sw_crossmesh_phase *p = w->phase;
	int32_t n = p->n_members - 1;
	if (m > 0)
		add_range(w, SW_STEP_RECEIVE, p->members[0],
		          sw_crossmesh_part(w->elements, n, m - 1));
	for (int32_t i = 0; i < n && m == 0; i++)
		add_range(w, SW_STEP_SEND, p->members[i + 1], sw_crossmesh_part(w->elements, n, i));
}

/* In a ring all send to each other: who sent everything before receiving anything would wait for
 * the next one, that one for its next, and so on around. */
static void add_gather(step_writer *w, int32_t m)
{
	const sw_crossmesh_phase *p = w->phase;
	int32_t n = p->n_members;
	for (int32_t s = 0; s + 1 < n; s++) {
		range_cut out = cut_range(w, sw_crossmesh_part(w->elements, n, (m - s + n) % n));
		range_cut in = cut_range(w, sw_crossmesh_part(w->elements, n, (m - s - 1 + n) % n));
		for (int64_t i = 0; i < SW_MAX(out.n, in.n); i++) {
			add_message(w, SW_STEP_SEND, p->members[(m + 1) % n], &out, i);
			add_message(w, SW_STEP_RECEIVE, p->members[(m - 1 + n) % n], &in, i);
		}
	}
}

static int32_t member_of(const sw_crossmesh_phase *p, int64_t device)
{
	for (int32_t m = 0; m < p->n_members; m++)
		if (p->members[m] == device)
			return m;
	return -1;
}

static void add_token(reshard_rank *rank, sw_step_kind kind, int64_t peer)
{
	sw_vec_push(&rank->steps, ((sw_message_step){kind, (int32_t)peer, &rank->token, 1}));
}

/* Return where the last receive since `first` stands; the end if there is none, or only one. */
static size_t last_receive(const reshard_rank *rank, size_t first)
{
	size_t found = rank->steps.len, n = 0;
	for (size_t i = first; i < rank->steps.len; i++) {
		if (rank->steps.data[i].kind == SW_STEP_SEND)
			continue;
		found = i;
		n++;
	}
	return n > 1 ? found : rank->steps.len;
}

/* Tokens are sent a message before the phase is through. */
static void send_tokens(reshard_rank *rank, const link_tokens *tokens, int32_t phase, size_t first)
{
	size_t at = last_receive(rank, first), had = rank->steps.len;
	for (size_t i = 0; i < tokens->len; i++)
		if (tokens->data[i].of == phase && tokens->data[i].from == rank->device)
			add_token(rank, SW_STEP_SEND, tokens->data[i].to);
	size_t n = rank->steps.len - had;
	if (n == 0 || at == had)
		return;
	sw_message_step *copy = sw_alloc(n * sizeof(*copy)), *steps = rank->steps.data;
	memcpy(copy, steps + had, n * sizeof(*copy));
	memmove(steps + at + n, steps + at, (had - at) * sizeof(*steps));
	memcpy(steps + at, copy, n * sizeof(*copy));
	free(copy);
}

static void receive_tokens(reshard_rank *rank, const link_tokens *tokens, int32_t phase)
{
	for (size_t i = 0; i < tokens->len; i++)
		if (tokens->data[i].before == phase && tokens->data[i].to == rank->device)
			add_token(rank, SW_STEP_RECEIVE, tokens->data[i].from);
}

static void add_phase(reshard_rank *rank, int32_t phase)
{
	static void (*const kinds[])(step_writer *, int32_t) = {
		[SW_PHASE_CHAIN] = add_chain,
		[SW_PHASE_SCATTER] = add_scatter,
		[SW_PHASE_GATHER] = add_gather,
	};
	const sw_crossmesh_phase *p = &rank->plan->phases[phase];
	step_writer w = {.rank = rank,
	                 .phase = p,
	                 .elements = rank->plan->tasks[p->task].elements,
	                 .width = sw_type_bytes(rank->plan->shape.type)};
	int32_t m = member_of(p, rank->device);
	if (m >= 0)
		kinds[p->kind](&w, m);
}

/* ---- buffers ---------------------------------------------------------------------------- */

static sw_status take_buffer(reshard_rank *rank, const sw_crossmesh_phase *p, int32_t member,
                             sw_error *err)
{
	int64_t bytes = rank->plan->tasks[p->task].bytes;
	bool begins =
		p->after < 0 && p->kind != SW_PHASE_GATHER && (member == 0 || member < p->n_terms);
	rank->from_part[p->task] = rank->from_part[p->task] || begins;
	if (!rank->buffers[p->task])
		rank->buffers[p->task] = sw_try_alloc((size_t)bytes);
	return rank->buffers[p->task]
	               ? SW_OK
	               : sw_fail(err, SW_ERR_IO, "no memory for a slice of %lld bytes",
	                         (long long)bytes);
}

sw_status reshard_rank_init(reshard_rank *rank, const sw_crossmesh_plan *plan, int64_t device,
                            sw_error *err)
{
	size_t n = (size_t)SW_MAX(plan->n_tasks, 1);
	link_tokens tokens = {0};
	sw_status status = SW_OK;
	*rank = (reshard_rank){.plan = plan, .device = device};
	rank->buffers = sw_alloc(n * sizeof(*rank->buffers));
	rank->from_part = sw_alloc(n * sizeof(*rank->from_part));
	list_tokens(plan, &tokens);
	for (int32_t i = 0; i < plan->n_phases && status == SW_OK; i++) {
		int32_t m = member_of(&plan->phases[i], device);
		if (m < 0)
			continue;
		status = take_buffer(rank, &plan->phases[i], m, err);
		size_t first = rank->steps.len;
		if (status)
			break;
		receive_tokens(rank, &tokens, i);
		add_phase(rank, i);
		send_tokens(rank, &tokens, i, first);
	}
	sw_vec_clear(&tokens);
	return status;
}

void reshard_pack(const reshard_rank *rank, const void *part)
{
	const sw_crossmesh_plan *plan = rank->plan;
	for (int32_t i = 0; i < plan->n_tasks; i++) {
		const sw_unit_task *task = &plan->tasks[i];
		if (rank->from_part[i])
			sw_crossmesh_pack(plan, &plan->slices[task->slice], task->first,
			                  task->elements, part, rank->buffers[i]);
	}
}

static bool receives(const sw_unit_task *task, int64_t device)
{
	for (int32_t r = 0; r < task->n_receivers; r++)
		if (task->receivers[r] == device)
			return true;
	return false;
}

void reshard_unpack(const reshard_rank *rank, void *part)
{
	const sw_crossmesh_plan *plan = rank->plan;
	reshard_clear(plan, part);
	for (int32_t i = 0; i < plan->n_tasks; i++) {
		const sw_unit_task *task = &plan->tasks[i];
		if (receives(task, rank->device))
			sw_crossmesh_unpack(plan, &plan->slices[task->slice], task->first,
			                    task->elements, rank->buffers[i], part);
	}
}

void reshard_rank_clear(reshard_rank *rank)
{
	for (int32_t i = 0; i < rank->plan->n_tasks && rank->buffers; i++)
		free(rank->buffers[i]);
	free(rank->buffers);
	free(rank->from_part);
	sw_vec_clear(&rank->steps);
}
