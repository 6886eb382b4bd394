/*
 * Training where ranks go on with old values of variables (serve.h): one rank's worker.
 *
 * There is no step of all ranks: what they must do together, a checkpoint and the end, is done once
 * all of them have done equally many steps and owners have made one version of that. The loss of a
 * step is known when the last rank has done it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/trainer.h"

sw_status trainer_check_served(const sw_run_options *options, sw_error *err)
{
	const char *what = options->paced       ? "--pace"
	                   : options->trace     ? "--trace"
	                   : options->check_nan ? "--check-nan"
	                   : options->eval      ? "--eval"
	                                        : NULL;
	return what ? sw_fail(err, SW_ERR_INPUT,
	                      "%s looks at a step of all ranks, and where variables are served "
	                      "they are at different steps: leave it out, or plan with stale=0 "
	                      "alone",
	                      what)
	            : SW_OK;
}

static sw_status fill(void *context, int64_t device, uint32_t input, sw_tensor *tensor,
                      sw_error *err)
{
	return trainer_fill_input(context, device, input, 0, tensor, err);
}

static bool asked_to_stop(const trainer *t)
{
	return (t->options->stop && atomic_load(t->options->stop)) || serving_asked(t->serving);
}

static sw_status compute(trainer *t, int64_t step, sw_error *err)
{
	sw_status status = trainer_make_inputs(t, step, err);
	if (status) {
		sw_tensors_drop(t->inputs, t->parts.n_inputs);
		return status;
	}
	trainer_release_state(t);
	status = sw_interpret(t->interpreter, t->inputs, t->parts.n_inputs, t->outputs,
	                      t->parts.n_outputs, err);
	memset(t->inputs, 0, t->parts.n_inputs * sizeof(*t->inputs)); /* it took the references */
	return status;
}

/* Do the nth step of this run. *asked (NULL: it is done in any case): it is not done, since ranks
 * are to end before it. */
static sw_status run_step(trainer *t, int64_t first, int64_t nth, bool *asked, sw_error *err)
{
	double begin = sw_now_s(), waited_s = 0;
	SW_TRY(sw_record_step(&t->record, err));
	SW_TRY(serving_take(t->serving, nth, t->carried, &waited_s, err));
	if (asked && (*asked = serving_stops(t->serving, nth)))
		return SW_OK;
	trainer_straggle(t);
	SW_TRY(compute(t, first + nth, err));
	serving_give(t->serving, t->outputs, asked_to_stop(t));
	trainer_carry_state(t);
	trainer_note_step(t, sw_now_s() - begin, waited_s);
	return SW_OK;
}

/* Rank 0 tells of the steps whose loss is known. */
static void say_steps(trainer *t, int64_t first)
{
	const double *losses;
	int64_t n = serving_losses(t->serving, &losses);
	for (int64_t k = (int64_t)t->losses.len; k < n; k++) {
		trainer_note_loss(t, first + k, losses[k]);
		trainer_say_step(t, first + k, (size_t)k);
	}
}

/* Do steps until all ranks must meet: to save, or to end. */
static sw_status run_alone(trainer *t, int64_t first, int64_t *done, bool *stop, sw_error *err)
{
	do {
		SW_TRY(run_step(t, first, *done, stop, err));
		*done += !*stop;
		say_steps(t, first);
	} while (!*stop && *done < t->options->steps &&
	         !trainer_saves_after(t->options, first + *done, false));
	serving_call(t->serving);
	return SW_OK;
}

/* Go on until all ranks have done as many steps as the one that has done most, and have one version
 * of everything. With a bound, they come here after equally many. */
static sw_status meet(trainer *t, int64_t first, int64_t *done, bool *stop, sw_error *err)
{
	int64_t mine[] = {*done, *stop}, most[] = {*done, *stop};
	SW_TRY(t->transport->ops->all_reduce(t->transport, t->transport->everyone,
	                                     t->transport->size, SW_MONOID_MAX, SW_S64, mine, most,
	                                     SW_COUNT(most), err));
	for (; *done < most[0]; ++*done)
		if (trainer_works(t))
			SW_TRY(run_step(t, first, *done, NULL, err));
	*stop = most[1];
	SW_TRY(serving_flush(t->serving, *done, trainer_works(t) ? t->carried : NULL, err));
	say_steps(t, first);
	return SW_OK;
}

/* What owners alone have is theirs; of all else, counters of steps too, the worker's is saved. */
static sw_status save(trainer *t, int64_t step, sw_error *err)
{
	sw_tensor *state = sw_alloc((t->parts.n_inputs + 1) * sizeof(*state));
	for (uint32_t i = 0; i < t->parts.n_inputs; i++) {
		bool owned = sw_layout_owned_atoms(sw_parts_layout(&t->parts, i));
		sw_tensor kept = owned ? serving_state(t->serving, i) : t->carried[i];
		state[i] = kept.buffer ? kept : t->carried[i];
	}
	sw_status status = trainer_save(t, step, state, err);
	free(state);
	return status;
}

static const sw_port *port_of(const sw_served *served, uint32_t state)
{
	for (uint32_t p = 0; p < served->n_ports; p++)
		for (uint32_t k = 0; k < served->ports[p].n_states; k++)
			if (served->ports[p].states[k] == state)
				return &served->ports[p];
	return NULL;
}

/* To the checkpoint a server is a stage with one device, which has the value whole. */
void trainer_place_saved(trainer *t)
{
	static const sw_atoms one = {0};
	static const sw_layout whole = {0};
	for (size_t i = 0; i < t->saving.values.len; i++) {
		sw_held_value *held = &t->saving.values.data[i].held;
		const sw_port *port = sw_layout_owned_atoms(held->layout)
		                              ? port_of(t->served, held->input)
		                              : NULL;
		if (!port || port->server < 0)
			continue;
		held->atoms = &one;
		held->layout = &whole;
		held->first = sw_port_rank(port, t->n_workers);
	}
}

static sw_status run_steps(trainer *t, int64_t first, int64_t *done, sw_error *err)
{
	bool stop = false;
	for (*done = 0; *done < t->options->steps && !stop;) {
		SW_TRY(trainer_works(t) ? run_alone(t, first, done, &stop, err)
		                        : serving_wait(t->serving, err));
		SW_TRY(meet(t, first, done, &stop, err));
		bool last = stop || *done == t->options->steps;
		if (trainer_saves_after(t->options, first + *done, last))
			SW_TRY(save(t, first + *done, err));
	}
	return t->options->save ? save(t, first + *done, err) : SW_OK;
}

/* All ranks report the losses that rank 0 knows. */
static sw_status share_losses(trainer *t, int64_t first, int64_t done, sw_error *err)
{
	double *losses = sw_alloc(sizeof(*losses) * (size_t)(done + 1));
	for (int64_t k = 0; k < done; k++)
		losses[k] = k < (int64_t)t->losses.len ? t->losses.data[k] : NAN;
	sw_status status = t->transport->ops->broadcast(t->transport, 0, losses,
	                                                (int64_t)sizeof(*losses) * done, err);
	for (int64_t k = (int64_t)t->losses.len; k < done && status == SW_OK; k++)
		trainer_note_loss(t, first + k, losses[k]);
	free(losses);
	return status;
}

sw_status trainer_run_served(trainer *t, int64_t *done, sw_error *err)
{
	int64_t first = t->options->start ? t->options->start->step : 0;
	serving_setup setup = {.served = t->served,
	                       .transport = t->transport,
	                       .n_workers = t->n_workers,
	                       .stop = t->options->stop,
	                       .fill = fill,
	                       .context = t};
	SW_TRY(serving_new(&setup, &t->serving, err));
	SW_TRY(run_steps(t, first, done, err));
	serving_end(t->serving);
	t->counts = serving_counts(t->serving);
	return share_losses(t, first, *done, err);
}
