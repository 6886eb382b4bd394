/* The player: when each action begins and ends, and what each rank holds. The lists of ranks are
 * followed one by one; a rank that waits for a send is taken up again when its peer has sent. Only
 * receives wait for other ranks: whatever else an action needs must stand before it in its own
 * list. */
#include <math.h>
#include <string.h>

#include "pipeline/internal.h"

/* When a rank's link to a peer is free, and the last action that used it. */
typedef struct peer_link {
	int32_t peer, last;
	double free_s;
} peer_link;

typedef struct pipeline_player {
	const sw_pipeline_schedule *s;
	const sw_pipeline_costs *costs;
	sw_pipeline_played *out;
	double *there_s;             /* [keys]: when an action's result is there; NAN: not yet */
	int32_t *index_of;           /* [keys]: of a send in its list */
	bool *awaited;               /* [keys]: a rank waits for this send */
	int32_t *next, *last;        /* [n_ranks]: the next action; the one that freed the rank */
	double *free_s, *held_bytes; /* [n_ranks] */
	SW_VEC(peer_link) * links;   /* [n_ranks] */
	int32_t *ready, n_ready;     /* a stack of ranks that may go on */
} pipeline_player;

static size_t key_of(const pipeline_player *p, sw_action_kind kind, int32_t stage, int32_t j)
{
	return sw_action_key(p->s, kind == SW_BACKWARD ? SW_INPUT_GRADIENT : kind, stage, j);
}

sw_action sw_action_needs(const sw_pipeline_schedule *s, sw_action a, int which)
{
	const sw_action none = {SW_ACTION_KINDS, 0, 0};
	int32_t v = a.stage, j = a.microbatch;
	bool forward = a.kind == SW_FORWARD;
	switch (a.kind) {
	case SW_FORWARD:
	case SW_BACKWARD:
	case SW_INPUT_GRADIENT: {
		if (which == 1)
			return forward ? none : (sw_action){SW_FORWARD, v, j};
		if (forward ? sw_stage_is_first(s, v) : sw_stage_is_last(s, v))
			return none;
		int32_t from = forward ? v - 1 : v + 1;
		if (s->rank_of_stage[from] == s->rank_of_stage[v])
			return (sw_action){forward ? SW_FORWARD : SW_INPUT_GRADIENT, from, j};
		return (sw_action){forward ? SW_RECEIVE_FORWARD : SW_RECEIVE_BACKWARD, v, j};
	}
	case SW_WEIGHT_GRADIENT:
	case SW_SEND_BACKWARD:
		return which ? none : (sw_action){SW_INPUT_GRADIENT, v, j};
	case SW_SEND_FORWARD:
		return which ? none : (sw_action){SW_FORWARD, v, j};
	case SW_RECEIVE_FORWARD:
		return which ? none : (sw_action){SW_SEND_FORWARD, v - 1, j};
	case SW_RECEIVE_BACKWARD:
		return which ? none : (sw_action){SW_SEND_BACKWARD, v + 1, j};
	default:
		return none;
	}
}

/* Return what the action still waits for; kind SW_ACTION_KINDS: nothing. */
static sw_action missing_of(const pipeline_player *p, sw_action a)
{
	sw_action need = {SW_ACTION_KINDS, 0, 0};
	for (int i = 0; i < 2; i++) {
		need = sw_action_needs(p->s, a, i);
		if (need.kind != SW_ACTION_KINDS &&
		    isnan(p->there_s[key_of(p, need.kind, need.stage, need.microbatch)]))
			return need;
	}
	return (sw_action){SW_ACTION_KINDS, 0, 0};
}

/* ---- seconds and bytes ------------------------------------------------------------------ */

static double seconds_of(const sw_pipeline_costs *c, sw_action a)
{
	int32_t v = a.stage;
	switch (a.kind) {
	case SW_FORWARD:
		return c->forward_s[v];
	case SW_BACKWARD:
		return c->input_gradient_s[v] + c->weight_gradient_s[v];
	case SW_INPUT_GRADIENT:
		return c->input_gradient_s[v];
	case SW_WEIGHT_GRADIENT:
		return c->weight_gradient_s[v];
	case SW_SEND_FORWARD:
		return c->send_forward_s[v];
	case SW_SEND_BACKWARD:
		return c->send_backward_s[v];
	case SW_GATHER_WEIGHTS:
		return c->gather_s[v];
	case SW_REDUCE_GRADIENT:
		return c->reduce_s[v];
	case SW_UPDATE:
		return c->update_s[v];
	default:
		return 0;
	}
}

/* Bytes by which a rank holds more when the action begins, and when it has ended. */
static double bytes_of(const sw_pipeline_costs *c, sw_action a, bool at_end)
{
	int32_t v = a.stage;
	if (a.kind == SW_FORWARD)
		return at_end ? 0 : c->activation_bytes[v];
	if (!at_end)
		return 0;
	return a.kind == SW_BACKWARD          ? -c->activation_bytes[v]
	       : a.kind == SW_INPUT_GRADIENT  ? c->gradient_bytes[v] - c->activation_bytes[v]
	       : a.kind == SW_WEIGHT_GRADIENT ? -c->gradient_bytes[v]
	                                      : 0;
}

static void hold_more(pipeline_player *p, int32_t rank, sw_action a, double bytes)
{
	sw_played_rank *out = &p->out->ranks[rank];
	double held = p->held_bytes[rank] += bytes, limit = p->costs->limit_bytes[rank];
	if (held > out->peak_bytes) {
		out->peak_bytes = held;
		out->peak_at = a;
	}
	/* Sums of bytes are rounded: what is equal but for that does not exceed. */
	if (held > limit * (1 + 1e-12) && out->excess_bytes == 0) {
		out->excess_bytes = held - limit;
		out->excess_at = a;
	}
}

/* ---- actions ---------------------------------------------------------------------------- */

static peer_link *link_to(pipeline_player *p, int32_t rank, int32_t peer)
{
	for (size_t i = 0; i < p->links[rank].len; i++)
		if (p->links[rank].data[i].peer == peer)
			return &p->links[rank].data[i];
	sw_vec_push(&p->links[rank], ((peer_link){peer, -1, 0}));
	return &p->links[rank].data[p->links[rank].len - 1];
}

/* A message begins when its link is free; the rank goes on meanwhile, unless sends block. */
static void send(pipeline_player *p, int32_t rank, int32_t index, sw_action a)
{
	int32_t to = a.kind == SW_SEND_FORWARD ? a.stage + 1 : a.stage - 1;
	peer_link *link = link_to(p, rank, p->s->rank_of_stage[to]);
	sw_played_action *at = &p->out->actions[rank][index];
	bool busy = link->free_s > p->free_s[rank];
	at->start_s = busy ? link->free_s : p->free_s[rank];
	at->cause = busy ? link->last : p->last[rank];
	at->end_s = at->start_s + seconds_of(p->costs, a);
	link->free_s = at->end_s;
	link->last = index;
	if (p->costs->blocking_sends) {
		p->free_s[rank] = at->end_s;
		p->last[rank] = index;
	}
	size_t key = key_of(p, a.kind, a.stage, a.microbatch);
	p->there_s[key] = at->end_s;
	p->index_of[key] = index;
	if (p->awaited[key])
		p->ready[p->n_ready++] = p->s->rank_of_stage[to];
}

static void receive(pipeline_player *p, int32_t rank, int32_t index, sw_action a)
{
	sw_action need = sw_action_needs(p->s, a, 0);
	size_t key = key_of(p, need.kind, need.stage, need.microbatch);
	sw_played_action *at = &p->out->actions[rank][index];
	at->cause = p->last[rank];
	if (p->there_s[key] > p->free_s[rank]) {
		p->free_s[rank] = p->there_s[key];
		at->cause = p->index_of[key];
		at->cause_rank = p->s->rank_of_stage[need.stage];
		p->last[rank] = index;
	}
	at->start_s = at->end_s = p->free_s[rank];
	p->there_s[key_of(p, a.kind, a.stage, a.microbatch)] = at->end_s;
}

static void work(pipeline_player *p, int32_t rank, int32_t index, sw_action a)
{
	sw_played_rank *out = &p->out->ranks[rank];
	sw_played_action *at = &p->out->actions[rank][index];
	double seconds = seconds_of(p->costs, a);
	at->start_s = p->free_s[rank];
	at->end_s = at->start_s + seconds;
	at->cause = p->last[rank];
	if (sw_action_is_compute(a.kind)) {
		out->first_s = out->busy_s == 0 ? at->start_s : out->first_s;
		out->busy_s += seconds;
		p->there_s[key_of(p, a.kind, a.stage, a.microbatch)] = at->end_s;
	}
	hold_more(p, rank, a, bytes_of(p->costs, a, false));
	hold_more(p, rank, a, bytes_of(p->costs, a, true));
	p->free_s[rank] = at->end_s;
	p->last[rank] = index;
	out->last_s = at->end_s;
}

static void go_on(pipeline_player *p, int32_t rank)
{
	const sw_action_list *list = &p->s->lists[rank];
	while ((size_t)p->next[rank] < list->len) {
		int32_t index = p->next[rank];
		sw_action a = list->data[index], need = missing_of(p, a);
		if (need.kind != SW_ACTION_KINDS) {
			p->awaited[key_of(p, need.kind, need.stage, need.microbatch)] = true;
			return;
		}
		p->out->actions[rank][index].cause_rank = rank;
		if (a.kind == SW_SEND_FORWARD || a.kind == SW_SEND_BACKWARD)
			send(p, rank, index, a);
		else if (a.kind == SW_RECEIVE_FORWARD || a.kind == SW_RECEIVE_BACKWARD)
			receive(p, rank, index, a);
		else
			work(p, rank, index, a);
		p->next[rank]++;
	}
}

/* ---- deadlocks -------------------------------------------------------------------------- */

/* Hops of a cycle that are named; a longer one says how many follow. */
#define HOPS 4

static void add_hop(const pipeline_player *p, int32_t rank, int32_t hop, sw_text *text)
{
	sw_action at = p->s->lists[rank].data[p->next[rank]], need = missing_of(p, at);
	sw_text_addf(text, hop ? ", which waits at " : "rank %d waits at ", rank);
	sw_action_print(at, text);
	sw_text_add(text, " for ");
	sw_action_print(need, text);
	sw_text_addf(text, " of rank %d", p->s->rank_of_stage[need.stage]);
}

static int32_t rank_after(const pipeline_player *p, int32_t rank)
{
	sw_action need = missing_of(p, p->s->lists[rank].data[p->next[rank]]);
	return p->s->rank_of_stage[need.stage];
}

static sw_status fail_with_cycle(const pipeline_player *p, int32_t rank, sw_error *err)
{
	sw_text text = {0};
	int32_t hops = 0;
	/* After as many hops as there are ranks, one is within the cycle. */
	for (int32_t i = 0; i < p->s->n_ranks; i++)
		rank = rank_after(p, rank);
	int32_t at = rank;
	do {
		if (hops < HOPS)
			add_hop(p, at, hops, &text);
		at = rank_after(p, at);
		hops++;
	} while (at != rank);
	if (hops > HOPS)
		sw_text_addf(&text, ", and so on over %d more ranks to rank %d", hops - HOPS, rank);
	sw_status status = sw_fail(err, SW_ERR_INPUT, "the schedule deadlocks: %s", text.data);
	sw_text_clear(&text);
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

static void player_init(pipeline_player *p)
{
	size_t keys = sw_action_key(p->s, SW_RECEIVE_BACKWARD + 1, 0, 0), n = (size_t)p->s->n_ranks;
	p->there_s = sw_alloc(keys * sizeof(double));
	for (size_t i = 0; i < keys; i++)
		p->there_s[i] = NAN;
	p->index_of = sw_alloc(keys * sizeof(int32_t));
	p->awaited = sw_alloc(keys);
	p->next = sw_alloc(n * sizeof(int32_t));
	p->last = sw_alloc(n * sizeof(int32_t));
	p->free_s = sw_alloc(n * sizeof(double));
	p->held_bytes = sw_alloc(n * sizeof(double));
	p->links = sw_alloc(n * sizeof(*p->links));
	/* A rank is on the stack at the beginning, and once per wait that ends: never twice. */
	p->ready = sw_alloc((n + 1) * sizeof(int32_t));
}

static void player_clear(pipeline_player *p)
{
	for (int32_t r = 0; r < p->s->n_ranks; r++)
		sw_vec_clear(&p->links[r]);
	void *all[] = {p->there_s, p->index_of,   p->awaited, p->next, p->last,
	               p->free_s,  p->held_bytes, p->links,   p->ready};
	for (size_t i = 0; i < SW_COUNT(all); i++)
		free(all[i]);
}

static void played_init(sw_pipeline_played *out, sw_pipeline_schedule *schedule)
{
	size_t n = (size_t)schedule->n_ranks;
	*out = (sw_pipeline_played){.schedule = schedule};
	out->actions = sw_alloc(n * sizeof(*out->actions));
	out->ranks = sw_alloc(n * sizeof(sw_played_rank));
	for (size_t r = 0; r < n; r++)
		out->actions[r] = sw_alloc((schedule->lists[r].len + 1) * sizeof(sw_played_action));
}

static sw_status play_all(pipeline_player *p, sw_error *err)
{
	int32_t n = p->s->n_ranks;
	for (int32_t r = 0; r < n; r++) {
		p->last[r] = -1;
		hold_more(p, r, p->s->lists[r].len ? p->s->lists[r].data[0] : (sw_action){0},
		          p->costs->fixed_bytes[r]);
		p->ready[p->n_ready++] = n - 1 - r;
	}
	while (p->n_ready > 0)
		go_on(p, p->ready[--p->n_ready]);
	for (int32_t r = 0; r < n; r++)
		if ((size_t)p->next[r] < p->s->lists[r].len)
			return fail_with_cycle(p, r, err);
	return SW_OK;
}

static void summarise(sw_pipeline_played *out)
{
	for (int32_t r = 0; r < out->schedule->n_ranks; r++)
		for (size_t i = 0; i < out->schedule->lists[r].len; i++)
			out->step_s = SW_MAX(out->step_s, out->actions[r][i].end_s);
	for (int32_t r = 0; r < out->schedule->n_ranks; r++) {
		const sw_played_rank *rank = &out->ranks[r];
		double own = rank->last_s - rank->first_s;
		if (out->step_s > 0)
			out->bubble = SW_MAX(out->bubble, 1 - rank->busy_s / out->step_s);
		if (own > 0)
			out->own_bubble = SW_MAX(out->own_bubble, 1 - rank->busy_s / own);
	}
}

sw_status sw_pipeline_play_checked(const sw_pipeline_schedule *schedule,
                                   const sw_pipeline_costs *costs, sw_pipeline_played *played,
                                   sw_error *err)
{
	played_init(played, sw_pipeline_with_transfers(schedule));
	pipeline_player p = {.s = played->schedule, .costs = costs, .out = played};
	player_init(&p);
	sw_status status = play_all(&p, err);
	player_clear(&p);
	if (status == SW_OK)
		summarise(played);
	else
		sw_pipeline_played_free(played);
	return status;
}

sw_status sw_pipeline_play(const sw_pipeline_schedule *schedule, const sw_pipeline_costs *costs,
                           sw_pipeline_played *played, sw_error *err)
{
	*played = (sw_pipeline_played){0};
	sw_status status = sw_pipeline_check(schedule, err);
	if (status == SW_OK)
		status = sw_pipeline_play_checked(schedule, costs, played, err);
	if (status == SW_OK)
		played->path = sw_pipeline_find_path(played);
	return status;
}

void sw_pipeline_played_free(sw_pipeline_played *played)
{
	if (played->actions)
		for (int32_t r = 0; r < played->schedule->n_ranks; r++)
			free(played->actions[r]);
	free(played->actions);
	free(played->ranks);
	sw_pipeline_free(played->schedule);
	*played = (sw_pipeline_played){0};
}
