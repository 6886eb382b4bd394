/* The programs of workers and owners (served.h). */
#include "partition/served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/fuse.h"
#include "partition/internal.h"
#include "partition/served_digest.h"

typedef struct cutter {
	const sw_plan *plan;
	const sw_program *whole; /* the plan's */
	const sw_program *local; /* of one device, op by op */
	const sw_sidecar *sidecar;
	sw_served *to;
	int64_t servers; /* 0: owners serve */
	sw_state_view state;
	sw_variable_map map; /* of the variables that owners serve */
	const int32_t *of_input; /* per input leaf: that of which it is, or with which it goes; -1 */
	const bool *together; /* per input leaf: of a variable that all ranks update together */
	bool mixed;           /* there is one */
	sw_users users;
	int32_t *of_output; /* per input leaf: the result that is its next value; -1: none */
	/* per variable, and behind them of the loss, or SW_NO_ID: the term in `local`, and the sum of
	 * the terms in `whole` */
	sw_id *term, *sum;
	distinct_list given; /* values of `local` that the worker gives */
	SW_VEC(const char *) given_for; /* for what, in words */
	uint32_t *of_port; /* per variable: its port */
	digests digests;
	sw_error *err;
} cutter;

static const char *name_of(const cutter *x, uint32_t input)
{
	const char *name = x->sidecar->inputs[input].name;
	return name ? name : "a variable";
}

/* The key by which the user let owners serve variables. */
static const char *key_of(const cutter *x)
{
	return sw_served_key(&x->plan->forms);
}

/* leave_out: it can't be served at all. */
static sw_status refuse(const cutter *x, uint32_t input, bool leave_out, const char *why)
{
	return sw_fail(x->err, SW_ERR_INPUT, "%s: '%s': %s%s%s%s", key_of(x), name_of(x, input), why,
	               leave_out ? ": leave " : "", leave_out ? key_of(x) : "",
	               leave_out ? " out" : "");
}

/* ---- terms and sums --------------------------------------------------------------------- */

static bool is_state(const cutter *x, uint32_t input)
{
	return x->of_output[input] >= 0;
}

/* Return the op of a program's entry that takes something apart, by its name; where a device has
 * one term it is a barrier. */
static sw_id find_terms(const sw_program *program, const char *name)
{
	const sw_computation *entry = sw_entry(program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(program, entry->ops.data[i]);
		if ((op->opcode == SW_OP_TERMS || op->opcode == SW_OP_OPT_BARRIER) &&
		    strcmp(op->name, name) == 0)
			return entry->ops.data[i];
	}
	return SW_NO_ID;
}

/* Does the variable's update read the value, or what several updates make of it at first? */
static bool is_read_by(const cutter *x, sw_id value, uint32_t variable)
{
	for (uint32_t u = x->users.start[value]; u < x->users.start[value + 1]; u++) {
		sw_id user = x->users.ops[u];
		const sw_op *op = sw_op_at(x->whole, user);
		bool shared = x->map.of_op[user] < 0 &&
		              sw_opcode_is_elementwise((sw_opcode)op->opcode) &&
		              sw_shape_same_dims(sw_value_shape(x->whole, value),
		                                 sw_value_shape(x->whole, op->first_result));
		if (x->map.of_op[user] == (int32_t)variable ||
		    (shared && is_read_by(x, op->first_result, variable)))
			return true;
	}
	return false;
}

/* A gradient that several updates read is taken apart under the name of one of their variables. */
static sw_id find_shared(const cutter *x, uint32_t variable)
{
	const sw_computation *entry = sw_entry(x->whole);
	for (size_t i = 0; i < entry->ops.len && variable < x->map.n; i++) {
		const sw_op *op = sw_op_at(x->whole, entry->ops.data[i]);
		sw_id terms = op->first_result;
		if (op->opcode != SW_OP_TERMS || x->users.start[terms] == x->users.start[terms + 1])
			continue;
		const sw_op *adds = sw_op_at(x->whole, x->users.ops[x->users.start[terms]]);
		if (is_read_by(x, adds->first_result, variable))
			return entry->ops.data[i];
	}
	return SW_NO_ID;
}

static sw_status refuse_terms(const cutter *x, const char *shown)
{
	int32_t microbatches = x->plan->rewrites.microbatches;
	if (microbatches < 2)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s: the devices do not have one term each of '%s': the step is "
		               "not split by the batch alone: leave %s out",
		               key_of(x), shown, key_of(x));
	return sw_fail(x->err, SW_ERR_INPUT,
	               "%s: the devices do not have one term each of '%s': each has rows of its "
	               "own of every one of %d microbatches, which must divide by them: take fewer "
	               "--microbatches, or 1",
	               key_of(x), shown, microbatches);
}

/* `name`: of the op that begins the name of its terms; `shown`: for people. */
static sw_status find_term(cutter *x, uint32_t i, const char *name, const char *shown)
{
	char title[SW_NAME_BYTES * 2];
	snprintf(title, sizeof(title), "%s.terms", name);
	sw_id apart = find_terms(x->whole, title);
	if (apart == SW_NO_ID)
		apart = find_shared(x, i);
	sw_id here = apart == SW_NO_ID
	                     ? SW_NO_ID
	                     : find_terms(x->local, sw_op_at(x->whole, apart)->name);
	if (apart == SW_NO_ID || here == SW_NO_ID)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s: the plan has no terms of '%s': plan anew", key_of(x), shown);
	sw_id terms = sw_op_at(x->whole, apart)->first_result;
	x->term[i] = sw_op_at(x->local, here)->first_result;
	const sw_op *adds = x->users.start[terms] + 1 == x->users.start[terms + 1]
	                            ? sw_op_at(x->whole, x->users.ops[x->users.start[terms]])
	                            : NULL;
	bool one = sw_value_shape(x->local, x->term[i]).dims[0] == 1;
	if (!adds || adds->opcode != SW_OP_REDUCE || !one)
		return refuse_terms(x, shown);
	x->sum[i] = adds->first_result;
	return SW_OK;
}

/* Write what becomes of the sum of the loss's terms. */
static sw_status write_loss(cutter *x)
{
	int32_t output = sw_find_loss(x->whole, x->sidecar);
	sw_id loss = output >= 0 ? sw_entry(x->whole)->results.data[output] : SW_NO_ID;
	sw_id *sum = &x->sum[x->map.n];
	if (loss == SW_NO_ID || loss == *sum)
		return SW_OK;
	bool *reads = SW_NEW_N(&x->to->arena, bool, x->state.n_inputs + 1);
	sw_slice slice = {.results = &loss, .given = sum, .n_results = 1, .n_given = 1};
	x->to->loss_of = sw_program_slice(x->whole, &slice, reads);
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		if (reads[i])
			return sw_fail(x->err, SW_ERR_INPUT,
			               "%s: the loss is made of more than a sum over the batch: "
			               "leave %s out",
			               key_of(x), key_of(x));
	return SW_OK;
}

static sw_status find_all_terms(cutter *x)
{
	for (uint32_t i = 0; i < x->map.n; i++) {
		sw_id value = x->state.inputs[x->map.input[i]];
		SW_TRY(find_term(x, i, sw_op_at(x->whole, x->whole->values.data[value].op)->name,
		                 name_of(x, x->map.input[i])));
	}
	x->term[x->map.n] = SW_NO_ID;
	if (find_terms(x->whole, "loss.terms") == SW_NO_ID)
		return SW_OK;
	SW_TRY(find_term(x, x->map.n, "loss", "loss"));
	return write_loss(x);
}

/* ---- ports ------------------------------------------------------------------------------ */

/* Return the device that makes a variable's next value; -1: it is no single one. */
static int64_t owner_of(const cutter *x, uint32_t variable)
{
	sw_id value = sw_entry(x->whole)->results.data[x->of_output[x->map.input[variable]]];
	const sw_layout *layout = sw_plan_layout(x->plan, x->plan->produced[value]);
	int64_t device = 0;
	for (int32_t a = 0; a < layout->n; a++) {
		if (layout->state[a].kind != SW_STATE_O)
			return -1;
		device += layout->state[a].stride * sw_atoms_stride(&x->plan->cluster->atoms, a);
	}
	return device;
}

static int64_t staleness_of(const cutter *x, uint32_t variable)
{
	const sw_variable_form *form =
		sw_form_of(&x->plan->forms, x->sidecar, x->map.input[variable]);
	return form ? form->stale : 0;
}

/* Return the number of the port. */
static uint32_t find_port(sw_served *to, int64_t owner, int64_t stale, int64_t server)
{
	uint32_t i = 0;
	while (i < to->n_ports && (to->ports[i].owner != owner || to->ports[i].stale != stale ||
	                           to->ports[i].server != server))
		i++;
	if (i == to->n_ports)
		to->ports[to->n_ports++] =
			(sw_port){.owner = owner, .stale = stale, .server = server};
	return i;
}

/* Return the server of each variable where there are more than owners, else NULL. */
static int64_t *share_variables(const cutter *x, const int64_t *owner)
{
	int64_t n_owners = 0, *bytes = SW_NEW_N(&x->to->arena, int64_t, x->map.n + 1),
		*server_of = SW_NEW_N(&x->to->arena, int64_t, x->map.n + 1);
	for (uint32_t i = 0; i < x->map.n; i++) {
		bool fresh = true;
		for (uint32_t k = 0; k < i && fresh; k++)
			fresh = owner[k] != owner[i];
		n_owners += fresh;
		bytes[i] = sw_shape_bytes(
			sw_value_shape(x->whole, x->state.inputs[x->map.input[i]]));
	}
	if (x->servers <= n_owners)
		return NULL;
	sw_served_share(bytes, x->map.n, (size_t)x->servers, server_of);
	return server_of;
}

/* List the variables of a port. */
static void find_variables(cutter *x, uint32_t p)
{
	sw_port *port = &x->to->ports[p];
	uint32_t *inputs = SW_NEW_N(&x->to->arena, uint32_t, port->n + 1), n = 0;
	for (uint32_t i = 0; i < x->map.n; i++) {
		if (x->of_port[i] != p)
			continue;
		inputs[n++] = x->map.input[i];
		port->term_bytes += sw_shape_bytes(sw_value_shape(x->local, x->term[i]));
		port->value_bytes += sw_shape_bytes(
			sw_value_shape(x->whole, x->state.inputs[x->map.input[i]]));
	}
	port->inputs = inputs;
}

static uint32_t variable_at(const cutter *x, const sw_port *port, uint32_t i)
{
	return (uint32_t)x->map.of_input[port->inputs[i]];
}

/* ---- what is sent ----------------------------------------------------------------------- */

static bool is_constant(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	return op->opcode == SW_OP_CONSTANT ||
	       (op->opcode == SW_OP_BROADCAST && is_constant(program, op->operands[0]));
}

/* Return the scatter that makes a term of nothing but its rows, NULL if none does. */
static const sw_op *scatter_of(const sw_program *local, sw_id term)
{
	const sw_op *op = sw_op_at(local, local->values.data[term].op);
	while (op->n_operands == 1 &&
	       (op->opcode == SW_OP_OPT_BARRIER || op->opcode == SW_OP_RESHAPE ||
	        op->opcode == SW_OP_CONVERT))
		op = sw_op_at(local, local->values.data[op->operands[0]].op);
	return op->opcode == SW_OP_SCATTER && op->n_results == 1 &&
	                       is_constant(local, op->operands[0])
	               ? op
	               : NULL;
}

/* Add what is sent for a term: it, or the scatter's indices and rows, if these are fewer bytes: return
 * these, 0: it is sent. */
static int64_t add_sent(const cutter *x, sw_id term, distinct_list *sent)
{
	const sw_op *scatter = scatter_of(x->local, term);
	int64_t bytes = sw_shape_bytes(sw_value_shape(x->local, term)), row_bytes = 0;
	for (uint32_t k = 1; scatter && k < scatter->n_operands; k++)
		row_bytes += sw_shape_bytes(sw_value_shape(x->local, scatter->operands[k]));
	if (!scatter || row_bytes >= bytes) {
		(void)number_in(sent, term);
		return 0;
	}
	for (uint32_t k = 1; k < scatter->n_operands; k++)
		(void)number_in(sent, scatter->operands[k]);
	return row_bytes;
}

/* Find what devices send to a port, and what makes terms of it. */
static void find_sent(cutter *x, sw_port *port)
{
	sw_id *terms = SW_NEW_N(&x->to->arena, sw_id, port->n + 1);
	int64_t *row_bytes = SW_NEW_N(&x->to->arena, int64_t, port->n + 1);
	distinct_list sent = {0};
	SW_VEC(uint32_t) of = {0}; /* per value that is sent: the input for whose gradient */
	for (uint32_t i = 0; i < port->n; i++) {
		terms[i] = x->term[variable_at(x, port, i)];
		row_bytes[i] = add_sent(x, terms[i], &sent);
		for (size_t k = of.len; k < sent.len; k++)
			sw_vec_push(&of, port->inputs[i]);
	}
	uint32_t *numbers = SW_NEW_N(&x->to->arena, uint32_t, sent.len + 1);
	bool all_terms = sent.len == port->n;
	for (size_t i = 0; i < sent.len; i++) {
		numbers[i] = number_in(&x->given, sent.data[i]);
		if (x->given_for.len < x->given.len)
			sw_vec_push(&x->given_for,
			            sw_arena_printf(&x->to->arena, "the gradient of '%s'",
			                            name_of(x, of.data[i])));
		port->sent_bytes += sw_shape_bytes(sw_value_shape(x->local, sent.data[i]));
		all_terms = all_terms && sent.data[i] == terms[i];
	}
	port->row_bytes = row_bytes;
	port->sent = numbers;
	port->n_sent = (uint32_t)sent.len;
	if (!all_terms)
		port->terms_of = sw_program_slice(x->local,
		                                  &(sw_slice){.results = terms,
		                                              .given = sent.data,
		                                              .n_results = port->n,
		                                              .n_given = port->n_sent},
		                                  NULL);
	sw_vec_clear(&sent);
	sw_vec_clear(&of);
}

static sw_status find_owners(const cutter *x, int64_t *owner)
{
	for (uint32_t i = 0; i < x->map.n; i++) {
		const sw_layout *rest = sw_plan_layout(
			x->plan, x->plan->produced[x->state.inputs[x->map.input[i]]]);
		owner[i] = owner_of(x, i);
		if (owner[i] < 0 || sw_layout_owned_atoms(rest) || sw_layout_split_atoms(rest, -1))
			return refuse(
				x, x->map.input[i], false,
				"no single device updates it while all have a copy: plan with "
				"--strategy ps:stale=S or ps:balanced,stale=S");
	}
	if (x->servers > x->map.n)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "there are %lld servers, and the plan has %u variables: start no more "
		               "servers than variables",
		               (long long)x->servers, x->map.n);
	return SW_OK;
}

static sw_status find_ports(cutter *x)
{
	sw_served *to = x->to;
	int64_t *owner = SW_NEW_N(&to->arena, int64_t, x->map.n + 1);
	to->ports = SW_NEW_N(&to->arena, sw_port, x->map.n + 1);
	SW_TRY(find_owners(x, owner));
	const int64_t *server_of = share_variables(x, owner);
	for (uint32_t i = 0; i < x->map.n; i++) {
		x->of_port[i] = find_port(to, owner[i], staleness_of(x, i),
		                          server_of ? server_of[i] : -1);
		to->ports[x->of_port[i]].n++;
	}
	for (uint32_t p = 0; p < to->n_ports; p++) {
		find_variables(x, p);
		find_sent(x, &to->ports[p]);
	}
	return SW_OK;
}

/* ---- updates ---------------------------------------------------------------------------- */

static bool is_of_port(const cutter *x, const sw_port *port, int32_t variable)
{
	return variable >= 0 && &x->to->ports[x->of_port[variable]] == port;
}

/* Return the sums of a port's gradients, with room for `more` behind them; the caller frees them. */
static sw_id *sums_of(const cutter *x, const sw_port *port, size_t more)
{
	sw_id *sums = sw_alloc(sizeof(*sums) * (port->n + more + 1));
	for (uint32_t i = 0; i < port->n; i++)
		sums[i] = x->sum[variable_at(x, port, i)];
	return sums;
}

/* Write the update of a port, if these are all the states that it gives. */
static void write_update(cutter *x, sw_port *port, const distinct_list *states, bool *reads)
{
	sw_id *results = sw_alloc(sizeof(*results) * (states->len + 1));
	distinct_list values = {0};
	taken_list taken = {0};
	for (size_t i = 0; i < states->len; i++)
		results[i] = sw_entry(x->whole)->results.data[x->of_output[states->data[i]]];
	digests_take(&x->digests, (uint32_t)(port - x->to->ports), results, states->len, &values,
	             &taken);
	sw_id *given = sums_of(x, port, values.len);
	for (size_t i = 0; i < values.len; i++)
		given[port->n + i] = values.data[i];
	sw_slice slice = {.results = results,
	                  .given = given,
	                  .n_results = (uint32_t)states->len,
	                  .n_given = port->n + (uint32_t)values.len};
	sw_program_free(port->update);
	port->update = sw_program_slice(x->whole, &slice, reads);
	port->n_taken = (uint32_t)taken.len;
	port->taken = sw_arena_copy(&x->to->arena, taken.data, sizeof(*taken.data) * taken.len);
	free(results);
	free(given);
	sw_vec_clear(&values);
	sw_vec_clear(&taken);
}

/* Write what ports give each other, after all updates are written. */
static void write_digests(cutter *x)
{
	for (uint32_t p = 0; p < x->to->n_ports; p++) {
		sw_port *port = &x->to->ports[p];
		sw_id *sums = sums_of(x, port, 0);
		port->digest = digests_write(&x->digests, p, sums, port->n, &port->digest_bytes);
		free(sums);
	}
}

/* Does the program take something apart into its terms? */
static bool takes_apart(const sw_program *program)
{
	for (size_t i = 0; i < program->ops.len; i++)
		if (program->ops.data[i].opcode == SW_OP_TERMS)
			return true;
	return false;
}

static sw_status check_update(const cutter *x, const sw_port *port, const sw_program *update,
                              const bool *reads)
{
	if (takes_apart(update))
		return refuse(x, port->inputs[0], true, "its update reads the loss");
	for (uint32_t k = 0; k < port->n_taken; k++) {
		const sw_port *other = &x->to->ports[port->taken[k].port];
		if ((other->stale == SW_STALE_ANY) != (port->stale == SW_STALE_ANY))
			return sw_fail(x->err, SW_ERR_INPUT,
			               "%s: updates of '%s' and '%s' read each other's gradients, and "
			               "one of them has stale: any, an update of each term: give both "
			               "the same",
			               key_of(x), name_of(x, port->inputs[0]),
			               name_of(x, other->inputs[0]));
	}
	for (uint32_t i = 0; i < x->state.n_inputs; i++) {
		int32_t variable = x->of_input[i];
		if (reads[i] && (x->together[i] || (x->mixed && x->state.role[i] == SW_ROLE_DATA)))
			return sw_fail(x->err, SW_ERR_INPUT,
			               "%s: the update of '%s' reads gradients that no owner adds up, as "
			               "clipping by the norm of all does: give all variables way: ps, or "
			               "leave %s out",
			               key_of(x), name_of(x, port->inputs[0]), key_of(x));
		if (reads[i] && variable >= 0 && !is_of_port(x, port, variable))
			return sw_fail(x->err, SW_ERR_INPUT,
			               "%s: an update of the owner of '%s' reads '%s', or its gradient "
			               "with others, which has another owner, server or staleness: "
			               "give both the same, or leave variables whole that are in parts",
			               key_of(x), name_of(x, port->inputs[0]), name_of(x, i));
		if (reads[i] && x->state.role[i] == SW_ROLE_DATA && !is_state(x, i))
			return refuse(x, port->inputs[0], true, "its update reads the batch");
	}
	return SW_OK;
}

/* Let the update give the state that it reads, too, until it reads nothing else. */
static sw_status find_update(cutter *x, sw_port *port)
{
	distinct_list states = {0};
	bool *reads = SW_NEW_N(&x->to->arena, bool, x->state.n_inputs + 1);
	for (uint32_t i = 0; i < port->n; i++)
		sw_vec_push(&states, port->inputs[i]);
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		if (is_state(x, i) && is_of_port(x, port, x->of_input[i]))
			(void)number_in(&states, i);
	for (size_t before = 0; before < states.len;) {
		before = states.len;
		write_update(x, port, &states, reads);
		for (uint32_t i = 0; i < x->state.n_inputs; i++)
			if (reads[i] && is_state(x, i) && x->of_input[i] < 0)
				(void)number_in(&states, i);
	}
	uint32_t *numbers = SW_NEW_N(&x->to->arena, uint32_t, x->state.n_inputs + 1), n = 0;
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		if (reads[i])
			numbers[n++] = i;
	port->reads = numbers;
	port->n_reads = n;
	port->n_states = (uint32_t)states.len;
	port->states = sw_arena_copy(&x->to->arena, states.data, sizeof(uint32_t) * states.len);
	for (uint32_t k = 0; k < port->n_states; k++)
		for (uint32_t r = 0; r < n; r++)
			if (numbers[r] == port->states[k])
				sw_vec_push(&port->update->aliases, ((sw_alias){k, r, false}));
	sw_vec_clear(&states);
	return check_update(x, port, port->update, reads);
}

/* ---- the worker ------------------------------------------------------------------------- */

/* What a collective sends: the op of the program that made it. */
static const sw_op *sent_op(const sw_program *program, const sw_op *op)
{
	while (!op->op_name && op->n_operands > 0 &&
	       (sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE ||
	        op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_TRANSPOSE))
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	return op;
}

/* Return a collective that the op is, or that a computation of it has; SW_NO_ID: there is none. */
static sw_id collective_in(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	sw_id found = sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE ? id : SW_NO_ID;
	for (uint32_t k = 0; sw_is_region(op) && k < op->n_called && found == SW_NO_ID; k++) {
		const sw_computation *body = &program->computations.data[op->called[k]];
		for (size_t i = 0; i < body->ops.len && found == SW_NO_ID; i++)
			found = collective_in(program, body->ops.data[i]);
	}
	return found;
}

/* Find the first collective that a result of the worker is made of, SW_NO_ID: there is none; *of: the
 * result. */
static sw_id first_collective(const sw_program *worker, size_t *of_result)
{
	const sw_computation *entry = sw_entry(worker);
	sw_id *of = sw_alloc(sizeof(*of) * (worker->values.len + 1)); /* per value: SW_NO_ID: none */
	sw_id found = SW_NO_ID;
	for (size_t v = 0; v < worker->values.len; v++)
		of[v] = SW_NO_ID;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(worker, entry->ops.data[i]);
		sw_id made = collective_in(worker, entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands && made == SW_NO_ID; k++)
			made = of[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results; r++)
			of[op->first_result + r] = made;
	}
	for (size_t i = 0; i < entry->results.len && found == SW_NO_ID; i++) {
		found = of[entry->results.data[i]];
		*of_result = i;
	}
	free(of);
	return found;
}

/* Ranks at different steps have no collectives: name the first, and what it is for. Ranks at the same
 * step have, as they are where some variables have no owner to serve them. */
static sw_status check_worker(const cutter *x)
{
	const sw_program *worker = x->to->worker;
	size_t result = 0;
	sw_id found = first_collective(worker, &result);
	if (found == SW_NO_ID)
		return SW_OK;
	if (x->mixed || !sw_forms_stale(&x->plan->forms)) {
		x->to->in_step = true;
		sw_cost_payloads(x->plan->cluster, worker, x->to->worker_bytes);
		return SW_OK;
	}
	const sw_op *op = sw_op_at(worker, found), *sent = sent_op(worker, op);
	bool sums = op->opcode == SW_OP_ALL_REDUCE || op->opcode == SW_OP_REDUCE_SCATTER;
	return sw_fail_at(x->err, SW_ERR_INPUT, x->whole->source, sent->line, 0,
	                  "%s: %s %s '%s' of all rows of the batch (%s), and ranks at different "
	                  "steps have no collectives: %stake served in place of stale",
	                  key_of(x), x->given_for.data[result],
	                  sums ? "needs the sum" : "needs", sent->op_name ? sent->op_name : sent->name,
	                  sw_opcode_name((sw_opcode)op->opcode),
	                  x->plan->rewrites.microbatches > 1 ? "take --microbatches 1, or " : "");
}

static sw_status write_worker(cutter *x)
{
	uint32_t *states = SW_NEW_N(&x->to->arena, uint32_t, x->state.n_inputs + 1), n_states = 0;
	x->to->loss = x->term[x->map.n] == SW_NO_ID ? -1 : (int32_t)x->given.len;
	if (x->to->loss >= 0) {
		sw_vec_push(&x->given, x->term[x->map.n]);
		sw_vec_push(&x->given_for, "the loss");
	}
	for (uint32_t i = 0; i < x->state.n_inputs; i++) {
		if (!is_state(x, i) || x->of_input[i] >= 0)
			continue;
		states[n_states++] = i;
		sw_vec_push(&x->given_for, sw_arena_printf(&x->to->arena, "the next '%s'",
		                                           name_of(x, i)));
		sw_vec_push(&x->given, sw_entry(x->local)->results.data[x->of_output[i]]);
	}
	bool *keep = SW_NEW_N(&x->to->arena, bool, x->state.n_inputs + 1);
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		keep[i] = x->together[i] || !sw_layout_owned_atoms(sw_plan_layout(
						x->plan, x->plan->produced[x->state.inputs[i]]));
	uint32_t n = (uint32_t)x->given.len;
	sw_slice slice = {.results = x->given.data, .n_results = n, .keep = keep};
	sw_program *worker = x->to->worker = sw_program_slice(x->local, &slice, NULL);
	for (uint32_t k = 0; k < n_states; k++)
		sw_vec_push(&worker->aliases, ((sw_alias){n - n_states + k, states[k], false}));
	return check_worker(x);
}

/* ---- the whole -------------------------------------------------------------------------- */

/* Find whose each input is: of a variable that an owner serves, or goes with; or of one that no owner
 * serves and that the step trains: all ranks update it together. */
static void find_whose(cutter *x, sw_arena *arena)
{
	sw_variable_map all = sw_variables_map(&x->state, arena);
	int32_t *of_input = SW_NEW_N(arena, int32_t, x->state.n_inputs + 1);
	bool *together = SW_NEW_N(arena, bool, x->state.n_inputs + 1);
	for (uint32_t i = 0; i < x->state.n_inputs; i++) {
		int32_t variable = all.of_input[i];
		if (variable >= 0 && all.goes_with[variable] >= 0)
			variable = all.goes_with[variable];
		of_input[i] = variable >= 0 ? x->map.of_input[all.input[variable]] : -1;
		together[i] = variable >= 0 && of_input[i] < 0 && all.trained[variable] &&
		              x->state.role[all.input[variable]] == SW_ROLE_PARAMETER;
		x->mixed = x->mixed || together[i];
	}
	x->of_input = of_input;
	x->together = together;
}

static void cutter_init(cutter *x)
{
	sw_arena *arena = &x->to->arena;
	x->state = sw_state_view_of(x->whole, x->sidecar, arena);
	x->map = sw_served_variables(&x->state, x->sidecar, &x->plan->forms, arena);
	find_whose(x, arena);
	x->to->worker_bytes = SW_NEW_N(arena, int64_t, x->plan->cluster->n_devices);
	x->users = sw_program_users(x->whole, arena);
	x->of_output = SW_NEW_N(arena, int32_t, x->state.n_inputs + 1);
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		x->of_output[i] = -1;
	for (size_t o = 0; o < sw_entry(x->whole)->results.len; o++)
		if (x->state.input_of_output[o] >= 0)
			x->of_output[x->state.input_of_output[o]] = (int32_t)o;
	x->term = SW_NEW_N(arena, sw_id, x->map.n + 1);
	x->sum = SW_NEW_N(arena, sw_id, x->map.n + 1);
	x->of_port = SW_NEW_N(arena, uint32_t, x->map.n + 1);
}

/* Cut a program (NULL: there is none) into the kernels that the device runs. */
static sw_status fuse(const sw_plan *plan, sw_program **program, sw_error *err)
{
	sw_program *whole = *program;
	if (!whole || plan->cluster->device.fusion == SW_FUSION_NONE)
		return SW_OK;
	SW_TRY(sw_fuse(whole, plan->cluster->device.fusion, program, err));
	sw_program_free(whole);
	return SW_OK;
}

static sw_status fuse_all(const sw_plan *plan, sw_served *served, sw_error *err)
{
	for (uint32_t p = 0; p < served->n_ports; p++) {
		SW_TRY(fuse(plan, &served->ports[p].update, err));
		SW_TRY(fuse(plan, &served->ports[p].terms_of, err));
		SW_TRY(fuse(plan, &served->ports[p].digest, err));
	}
	return fuse(plan, &served->worker, err);
}

static sw_status cut(const sw_plan *plan, const sw_sidecar *sidecar, int64_t servers,
                     sw_served *served, sw_error *err)
{
	sw_program *local = NULL;
	*served = (sw_served){.loss = -1};
	sw_arena_init(&served->arena);
	SW_TRY(sw_partition_with_origins(plan, &local, NULL, err));
	cutter x = {.plan = plan,
	            .whole = plan->program,
	            .local = local,
	            .sidecar = sidecar,
	            .to = served,
	            .servers = servers,
	            .err = err};
	cutter_init(&x);
	sw_status status = find_all_terms(&x);
	if (status == SW_OK)
		status = find_ports(&x);
	digests_init(&x.digests, x.whole, x.sum, x.of_port, x.map.n, served->n_ports);
	for (uint32_t p = 0; status == SW_OK && p < served->n_ports; p++)
		status = find_update(&x, &served->ports[p]);
	if (status == SW_OK)
		write_digests(&x);
	if (status == SW_OK)
		status = write_worker(&x);
	if (status == SW_OK)
		status = fuse_all(plan, served, err);
	digests_clear(&x.digests);
	sw_vec_clear(&x.given);
	sw_vec_clear(&x.given_for);
	sw_program_free(local);
	return status;
}

sw_status sw_served_cut(const sw_plan *plan, const sw_sidecar *sidecar, sw_served *served,
                        sw_error *err)
{
	return cut(plan, sidecar, 0, served, err);
}

sw_status sw_served_cut_for(const sw_plan *plan, const sw_sidecar *sidecar, int64_t servers,
                            sw_served *served, sw_error *err)
{
	*served = (sw_served){0};
	SW_TRY(sw_served_check(plan, servers, err));
	SW_TRY(cut(plan, sidecar, servers, served, err));
	if (servers > 0 && served->n_ports > 0 && served->ports[0].server < 0)
		sw_served_place(served, servers);
	return SW_OK;
}

void sw_served_clear(sw_served *served)
{
	for (uint32_t p = 0; p < served->n_ports; p++) {
		sw_program_free(served->ports[p].update);
		sw_program_free(served->ports[p].terms_of);
		sw_program_free(served->ports[p].digest);
	}
	sw_program_free(served->worker);
	sw_program_free(served->loss_of);
	sw_arena_clear(&served->arena);
	*served = (sw_served){.loss = -1};
}
