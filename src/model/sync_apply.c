/*
 * What a file of ways (docs/sync.md, sync_file.c) says of the variables of a program. Of entries
 * that match the same variable the last counts; what none matches keeps the way that the strategy's
 * builder gave it.
 */
#include <fnmatch.h>
#include <string.h>

#include "model/ways.h"

#define SHOWN_NAMES 3 /* of a program's variables, where none is near what is asked for */

static const char *name_of(const sw_analysis *a, const sw_sidecar *sidecar, uint32_t variable)
{
	uint32_t input = a->variables.list[variable].input;
	const char *name = sidecar->inputs[input].name;
	sw_id value = a->roles.inputs[input];
	return name ? name : sw_op_at(a->program, a->program->values.data[value].op)->name;
}

/* A pattern matches a part by its own name, and by that of the whole. */
typedef enum sync_match { NO_MATCH, OF_PART, OF_WHOLE } sync_match;

static sync_match match(const sw_sync_entry *entry, const sw_analysis *a, const sw_sidecar *sidecar,
                        uint32_t variable)
{
	const sw_fill_part *part = sidecar->inputs[a->variables.list[variable].input].init.part;
	bool named = fnmatch(entry->pattern, name_of(a, sidecar, variable), 0) == 0;
	if (!part || !part->whole)
		return named ? OF_WHOLE : NO_MATCH;
	return fnmatch(entry->pattern, part->whole, 0) == 0 ? OF_WHOLE : named ? OF_PART : NO_MATCH;
}

static sw_status refuse(const sw_sync *sync, const sw_sync_entry *entry, const char *name,
                        const char *why, sw_error *err)
{
	return sw_fail_at(err, SW_ERR_INPUT, sync->file, entry->line, 0, "'%s': %s", name, why);
}

/* Return what an input is that is no variable; NULL: it is one. */
static const char *other_input(const sw_analysis *a, uint32_t input)
{
	static const char *const words[] = {
		[SW_ROLE_PARAMETER] = "a single number, which all devices keep and update",
		[SW_ROLE_MOMENT] = "a moment, which goes with its parameter",
		[SW_ROLE_DATA] = "data"};
	sw_role role = a->roles.input_role[input];
	if (a->variables.of_input[input] >= 0 && role == SW_ROLE_PARAMETER)
		return NULL;
	return (size_t)role < SW_COUNT(words) && words[role] ? words[role] : "no parameter";
}

static sw_status no_variable(const sw_sync *sync, const sw_sync_entry *entry, const sw_analysis *a,
                             const sw_sidecar *sidecar, sw_error *err)
{
	for (uint32_t i = 0; i < sidecar->n_inputs && i < a->roles.n_inputs; i++) {
		const char *name = sidecar->inputs[i].name, *is = other_input(a, i);
		if (name && is && fnmatch(entry->pattern, name, 0) == 0)
			return sw_fail_at(err, SW_ERR_INPUT, sync->file, entry->line, 0,
			                  "'%s': no variable of the program has such a name: '%s' "
			                  "is %s",
			                  entry->pattern, name, is);
	}
	sw_nearest nearest = {.word = entry->pattern};
	for (uint32_t i = 0; i < a->variables.n; i++)
		sw_nearest_try(&nearest, name_of(a, sidecar, i));
	sw_nearest_words hint = sw_nearest_hint(&nearest);
	sw_text names = {0};
	for (uint32_t i = 0; i < a->variables.n && i < SHOWN_NAMES && !*hint.text; i++)
		sw_text_addf(&names, "%s'%s'", i ? ", " : ": they are ", name_of(a, sidecar, i));
	if (names.len > 0 && a->variables.n > SHOWN_NAMES)
		sw_text_addf(&names, " and %u more", a->variables.n - SHOWN_NAMES);
	sw_status status = sw_fail_at(err, SW_ERR_INPUT, sync->file, entry->line, 0,
	                              "'%s': no variable of the program has such a name%s%s",
	                              entry->pattern, hint.text, names.len > 0 ? names.data : "");
	sw_text_clear(&names);
	return status;
}

static sw_status check_owner(const sw_sync *sync, const sw_sync_entry *entry, const sw_analysis *a,
                             const char *name, sw_error *err)
{
	char why[128];
	if (entry->way.owner < a->cluster->n_devices)
		return SW_OK;
	snprintf(why, sizeof(why), "owner: %lld: the cluster has devices 0 to %lld",
	         (long long)entry->way.owner, (long long)a->cluster->n_devices - 1);
	return refuse(sync, entry, name, why, err);
}

static sw_status check_division(const sw_sync *sync, const sw_sync_entry *entry,
                                const sw_analysis *a, const sw_variable *variable,
                                const char *name, sw_error *err)
{
	char why[128];
	bool split = entry->way.kind == SW_WAY_SPLIT || entry->way.kind == SW_WAY_MOMENTS;
	if (!split || variable->divides)
		return SW_OK;
	snprintf(why, sizeof(why),
	         "way: %s: none of its dimensions divides by the %lld devices: take ps or "
	         "all-reduce",
	         sw_way_word(entry->way.kind), (long long)a->cluster->n_devices);
	return refuse(sync, entry, name, why, err);
}

/* Is the algorithm one of those by which the device's library sums up gradients that go that way? */
static sw_status check_algorithm(const sw_sync *sync, const sw_sync_entry *entry,
                                 const sw_analysis *a, const char *name, sw_error *err)
{
	static const sw_collective_kind sums[SW_WAY_COUNT] = {
		[SW_WAY_ALL_REDUCE] = SW_COLLECTIVE_ALL_REDUCE,
		[SW_WAY_ANY] = SW_COLLECTIVE_ALL_REDUCE,
		[SW_WAY_OWNED] = SW_COLLECTIVE_BROADCAST,
		[SW_WAY_SPLIT] = SW_COLLECTIVE_REDUCE_SCATTER,
		[SW_WAY_MOMENTS] = SW_COLLECTIVE_REDUCE_SCATTER,
	};
	sw_collective_kind kind = sums[entry->way.kind];
	sw_library library = a->cluster->device.collectives;
	sw_text why = {0};
	if (!entry->algorithm || sw_library_has(library, (sw_algorithm)(entry->algorithm - 1), kind))
		return SW_OK;
	sw_text_addf(&why, "algorithm: %s: with way: %s the cluster's devices have",
	             sw_algorithm_name((sw_algorithm)(entry->algorithm - 1)),
	             sw_way_word(entry->way.kind));
	for (sw_algorithm k = 0; k < SW_ALGORITHM_COUNT; k++)
		if (sw_library_has(library, k, kind))
			sw_text_addf(&why, " %s", sw_algorithm_name(k));
	sw_status status = refuse(sync, entry, name, why.data, err);
	sw_text_clear(&why);
	return status;
}

/* Write the last entry that matches each variable, NULL: none does. */
static sw_status find_entries(const sw_sync *sync, const sw_analysis *a, const sw_sidecar *sidecar,
                              const sw_sync_entry **of, sw_error *err)
{
	for (size_t e = 0; e < sync->n; e++) {
		const sw_sync_entry *entry = &sync->list[e];
		sync_match best = NO_MATCH;
		for (uint32_t i = 0; i < a->variables.n; i++) {
			sync_match found = match(entry, a, sidecar, i);
			if (!found)
				continue;
			SW_TRY(check_owner(sync, entry, a, name_of(a, sidecar, i), err));
			SW_TRY(check_algorithm(sync, entry, a, name_of(a, sidecar, i), err));
			best = SW_MAX(best, found);
			of[i] = entry;
		}
		if (best == NO_MATCH)
			return no_variable(sync, entry, a, sidecar, err);
		if (best == OF_PART &&
		    (entry->of_parts || entry->has_codec || entry->has_stale || entry->served))
			return refuse(sync, entry, entry->pattern,
			              "parts of a variable have a way and an owner each, but "
			              "parts, codec, stale and served of the whole: give these to its own "
			              "name",
			              err);
	}
	return SW_OK;
}

static bool waits_for_owner(const sw_variable *variable)
{
	return (variable->way.kind == SW_WAY_OWNED || variable->way.kind == SW_WAY_ANY) &&
	       variable->way.owner < 0;
}

/* Of what owners serve, whole or in parts, each part has an owner, and each device its copy. */
static sw_status serve(const sw_sync *sync, const sw_sync_entry *const *of, sw_analysis *a,
                       const sw_sidecar *sidecar, sw_error *err)
{
	sw_ways_serve(a->variables.list, a->variables.n);
	for (uint32_t i = 0; i < a->variables.n; i++) {
		sw_way *way = &a->variables.list[i].way;
		if (!a->variables.list[i].served)
			continue;
		way->proxy = true;
		if (way->kind != SW_WAY_OWNED)
			return sw_fail_at(err, SW_ERR_INPUT, sync->file,
			                  of[i] ? of[i]->line : 0, 0,
			                  "'%s' has way: %s, and is a part of a variable that is stale "
			                  "or served: give it way: ps",
			                  name_of(a, sidecar, i), sw_way_word(way->kind));
	}
	return SW_OK;
}

static void gather_if_quicker(sw_analysis *a)
{
	for (uint32_t i = 0; i < a->variables.n; i++)
		if (a->variables.list[i].way.kind == SW_WAY_ANY)
			sw_ways_gather(a, i, SW_GATHERS_MAYBE);
}

/* Of the variables that an entry matches as the last one some gradient must be one that can be gathered;
 * the others are all-reduced. */
static sw_status gather(const sw_sync *sync, sw_analysis *a, const sw_sidecar *sidecar,
                        sw_error *err)
{
	for (size_t e = 0; e < sync->n; e++) {
		uint32_t last = 0, n = 0, gathered = 0;
		for (uint32_t i = 0; i < a->variables.n; i++) {
			sw_variable *variable = &a->variables.list[i];
			if (variable->asked != &sync->list[e] || variable->way.kind != SW_WAY_GATHER)
				continue;
			last = i;
			n++;
			if (!variable->part && sw_ways_gather(a, i, SW_GATHERS_SURELY))
				gathered++;
			else
				variable->way.kind = SW_WAY_ALL_REDUCE;
		}
		if (n > 0 && gathered == 0)
			return refuse(sync, &sync->list[e], name_of(a, sidecar, last),
			              "way: gather: its gradient is neither a product nor scattered "
			              "rows, or it is in parts, in a codec or summed over microbatches: "
			              "take all-reduce",
			              err);
	}
	return SW_OK;
}

/* What is sent as one goes by one algorithm, when its turn comes. */
static sw_status check_groups(const sw_sync *sync, sw_error *err)
{
	for (size_t e = 0; e < sync->n; e++) {
		const sw_sync_entry *entry = &sync->list[e];
		for (size_t i = 0; entry->group && i < e; i++) {
			const sw_sync_entry *other = &sync->list[i];
			if (!other->group || strcmp(other->group, entry->group) != 0 ||
			    (other->algorithm == entry->algorithm && other->order == entry->order))
				continue;
			return sw_fail_at(err, SW_ERR_INPUT, sync->file, entry->of_group, 0,
			                  "merge: %s: the entry of line %d gives this group another %s: "
			                  "what is sent as one has one of each",
			                  entry->group, other->line,
			                  other->order == entry->order ? "algorithm" : "order");
		}
	}
	return SW_OK;
}

sw_status sw_sync_apply(const sw_sync *sync, sw_analysis *a, const sw_sidecar *sidecar,
                        sw_error *err)
{
	if (!sync) {
		gather_if_quicker(a);
		return SW_OK;
	}
	const sw_sync_entry **of =
		SW_NEW_N(&a->arena, const sw_sync_entry *, a->variables.n + 1);
	SW_TRY(check_groups(sync, err));
	SW_TRY(find_entries(sync, a, sidecar, of, err));
	for (uint32_t i = 0; i < a->variables.n; i++) {
		sw_variable *variable = &a->variables.list[i];
		const sw_sync_entry *last = of[i];
		if (!last)
			continue;
		SW_TRY(check_division(sync, last, a, variable, name_of(a, sidecar, i), err));
		variable->asked = last;
		variable->way = last->way;
		variable->way.proxy = last->way.proxy || last->has_stale || last->served;
		if (last->balanced)
			variable->way.owner = -1;
	}
	sw_ways_give_evenly(a->variables.list, a->variables.n, a->cluster->n_devices,
	                    waits_for_owner);
	sw_ways_disown(a->variables.list, a->variables.n);
	gather_if_quicker(a);
	SW_TRY(gather(sync, a, sidecar, err));
	return serve(sync, of, a, sidecar, err);
}

static bool says_sending(const sw_sync_entry *entry)
{
	return entry && (entry->group || entry->algorithm || entry->order);
}

void sw_sync_say_sending(const sw_analysis *a, const sw_sidecar *sidecar, sw_plan *plan)
{
	bool any = false;
	for (uint32_t i = 0; i < a->variables.n; i++)
		any = any || says_sending(a->variables.list[i].asked);
	if (!any)
		return;
	sw_state_view state = sw_state_view_of(plan->program, sidecar, &plan->arena);
	sw_variable_map map = sw_variables_map(&state, &plan->arena);
	for (uint32_t i = 0; i < a->variables.n; i++) {
		const sw_sync_entry *entry = a->variables.list[i].asked;
		int32_t variable = map.of_input[a->variables.list[i].input];
		if (!says_sending(entry) || variable < 0)
			continue;
		sw_sending said = {.algorithm = entry->algorithm, .order = entry->order};
		if (entry->group)
			said.merge_group = sw_merge_group_number(plan, entry->group, entry->group_bytes);
		sw_sending_say(plan, &map, (uint32_t)variable, said);
	}
}
