/*
 * Attributes as a string of bytes: equal bytes iff equal attributes.
 */
#include "program/attributes.h"

#include <string.h>

static void add_number(sw_text *key, int64_t value)
{
	sw_text_add_n(key, (const char *)&value, sizeof(value));
}

static void add_list(sw_text *key, sw_ints list)
{
	add_number(key, list.n);
	if (list.n > 0)
		sw_text_add_n(key, (const char *)list.v, sizeof(int64_t) * (size_t)list.n);
}

static void add_lists(sw_text *key, const sw_ints *first, int n)
{
	for (int i = 0; i < n; i++)
		add_list(key, first[i]);
}

static void add_word(sw_text *key, const char *word)
{
	add_number(key, word ? (int64_t)strlen(word) : -1);
	sw_text_add(key, word ? word : "");
}

static void add_window(sw_text *key, const sw_window *window)
{
	add_number(key, window->rank);
	for (int32_t i = 0; i < window->rank; i++) {
		const sw_window_dim *d = &window->dims[i];
		const int64_t numbers[] = {d->size,       d->stride,     d->pad_low, d->pad_high,
		                           d->lhs_dilate, d->rhs_dilate, d->reversal};
		sw_text_add_n(key, (const char *)numbers, sizeof(numbers));
	}
}

static void add_groups(sw_text *key, const sw_groups *groups)
{
	add_number(key, groups->n_groups);
	add_number(key, groups->group_size);
	for (int64_t g = 0; g < groups->n_groups; g++)
		for (int64_t m = 0; m < groups->group_size; m++)
			add_number(key, sw_groups_member(groups, g, m));
}

static void add_dim_labels(sw_text *key, const sw_attrs *a)
{
	const int64_t numbers[] = {a->convolution.input_batch,  a->convolution.input_feature,
	                           a->convolution.kernel_input, a->convolution.kernel_output,
	                           a->convolution.output_batch, a->convolution.output_feature};
	sw_text_add_n(key, (const char *)numbers, sizeof(numbers));
	add_lists(key, &a->convolution.input_spatial, 3);
}

static void add_member(sw_text *key, const sw_attribute *attribute, sw_attrs *attrs)
{
	void *member = sw_attribute_member(attribute, attrs);
	switch (attribute->kind) {
	case SW_ATTRIBUTE_INT:
	case SW_ATTRIBUTE_INT_LIST1:
		add_number(key, *(int64_t *)member);
		break;
	case SW_ATTRIBUTE_BOOL:
		add_number(key, *(bool *)member);
		break;
	case SW_ATTRIBUTE_REAL:
		sw_text_add_n(key, member, sizeof(double));
		break;
	case SW_ATTRIBUTE_DIRECTION:
		add_number(key, *(sw_direction *)member);
		break;
	case SW_ATTRIBUTE_INTS:
	case SW_ATTRIBUTE_PAIRS:
		add_lists(key, member, 1);
		break;
	case SW_ATTRIBUTE_SLICE:
	case SW_ATTRIBUTE_PADDING:
		add_lists(key, member, 3);
		break;
	case SW_ATTRIBUTE_WORD:
	case SW_ATTRIBUTE_STRING:
		add_word(key, *(const char **)member);
		break;
	case SW_ATTRIBUTE_WINDOW:
		add_window(key, member);
		break;
	case SW_ATTRIBUTE_GROUPS:
		add_groups(key, member);
		break;
	case SW_ATTRIBUTE_DIM_LABELS:
		add_dim_labels(key, attrs);
		break;
	case SW_ATTRIBUTE_COMPUTATION: /* belongs to the op, not to attrs */
	case SW_ATTRIBUTE_COMPUTATIONS:
		break;
	}
}

void sw_attributes_key(sw_opcode opcode, const sw_attrs *attrs, sw_text *key)
{
	if (!attrs)
		return;
	sw_attrs copy = *attrs;
	size_t n;
	const sw_attribute *table = sw_attributes_of(opcode, &n);
	for (size_t i = 0; i < n; i++)
		if (table[i].use != SW_ATTRIBUTE_ALIAS)
			add_member(key, &table[i], &copy);
	if (opcode == SW_OP_PARAMETER)
		add_number(key, attrs->parameter.number);
	if (opcode == SW_OP_CONSTANT && attrs->constant.data)
		sw_text_add_n(key, attrs->constant.data,
		              (size_t)sw_shape_bytes(attrs->constant.shape));
	if (opcode == SW_OP_CUSTOM_CALL)
		add_list(key, attrs->custom.operand_arity);
	if (opcode == SW_OP_UNKNOWN) {
		add_word(key, attrs->unknown.spelling);
		add_list(key, attrs->unknown.operand_arity);
	}
}
