/* The decisions of a plan, saved apart from it. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *copy_numbers(const uint32_t *numbers, size_t n)
{
	uint32_t *copy = sw_alloc(sizeof(*copy) * (n + 1));
	memcpy(copy, numbers, sizeof(*copy) * n);
	return copy;
}

void sw_strategy_set_clear(sw_strategy_set *set)
{
	sw_vec_clear(&set->items);
	sw_map_clear(&set->index);
}

void sw_snapshot_clear(sw_snapshot *s)
{
	free(s->strategies);
	free(s->produced);
	free(s->materialised);
	free(s->outputs);
	sw_vec_clear(&s->regathered);
	sw_layouts_clear(&s->layouts);
	*s = (sw_snapshot){0};
}

void sw_snapshot_take(sw_snapshot *s, const sw_plan *plan, sw_strategy_set *set)
{
	size_t ops = plan->program->ops.len, values = plan->program->values.len;
	sw_snapshot_clear(s);
	s->strategies = sw_alloc(sizeof(uint32_t) * (ops + 1));
	for (size_t i = 0; i < ops; i++) {
		uint32_t fresh = (uint32_t)set->items.len;
		s->strategies[i] = sw_map_intern(&set->index, &plan->strategies[i],
		                                 sizeof(sw_strategy), fresh);
		if (s->strategies[i] == fresh)
			sw_vec_push(&set->items, plan->strategies[i]);
	}
	s->produced = copy_numbers(plan->produced, values);
	s->materialised = copy_numbers(plan->materialised, values);
	s->outputs = copy_numbers(plan->outputs, plan->n_outputs);
	sw_reads_copy(&s->regathered, &plan->regathered);
	sw_layouts_copy(&s->layouts, &plan->layouts);
	s->n_axes = plan->n_axes;
	memcpy(s->axes, plan->axes, sizeof(s->axes));
}

void sw_snapshot_restore(const sw_snapshot *s, const sw_strategy_set *set, sw_plan *plan)
{
	for (size_t i = 0; i < plan->program->ops.len; i++)
		plan->strategies[i] = set->items.data[s->strategies[i]];
	memcpy(plan->produced, s->produced, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->materialised, s->materialised, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->outputs, s->outputs, sizeof(uint32_t) * plan->n_outputs);
	sw_reads_copy(&plan->regathered, &s->regathered);
	sw_layouts_copy(&plan->layouts, &s->layouts);
	plan->n_axes = s->n_axes;
	memcpy(plan->axes, s->axes, sizeof(plan->axes));
}
