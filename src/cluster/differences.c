/* The differences between two clusters, in words. */
#include "cluster/cluster.h"
#include "cluster/quantity.h"

#include <string.h>

/* Add "latency of node 5 us, not 1 us", with as many digits as distinguish the two. */
static void compare(const char *words, const char *of, double was, double is, sw_quantity quantity,
                    sw_text *text)
{
	if (was == is)
		return;
	sw_text_addf(text, "%s%s of %s ", text->len ? ", " : "", words, of);
	quantity_print(is, quantity, text);
	sw_text_add(text, ", not ");
	quantity_print(was, quantity, text);
}

/* Name the first part that differs, counted from 0 over the whole level: "bandwidth of node 2". */
static void compare_parts(const sw_figure *f, const char *of, const void *x, const void *y,
                          int64_t n_parts, sw_text *text)
{
	int64_t p = 0;
	while (p < n_parts && sw_figure_of_part(f, x, p) == sw_figure_of_part(f, y, p))
		p++;
	if (p == n_parts)
		return;
	sw_text part = {0};
	sw_text_addf(&part, "%s %lld", of, (long long)p);
	compare(f->words, part.data, sw_figure_of_part(f, x, p), sw_figure_of_part(f, y, p),
	        f->quantity, text);
	sw_text_clear(&part);
}

/* n_parts: of both; 0: they have unequal numbers of parts, or none. */
static void compare_figures(const sw_figures *figures, const char *of, const void *x, const void *y,
                            int64_t n_parts, sw_text *text)
{
	for (size_t i = 0; i < figures->n; i++) {
		const sw_figure *f = &figures->rows[i];
		if (!sw_figure_is_given(figures, f, x) && !sw_figure_is_given(figures, f, y))
			continue;
		if (n_parts && (sw_figure_parts(f, x) || sw_figure_parts(f, y)))
			compare_parts(f, of, x, y, n_parts, text);
		else
			compare(f->words, of, sw_figure_value(f, x), sw_figure_value(f, y),
			        f->quantity, text);
	}
}

static void compare_levels(const sw_cluster *a, const sw_cluster *b, sw_text *text)
{
	compare("number", "levels", a->n_levels, b->n_levels, SW_QUANTITY_NUMBER, text);
	for (int32_t i = 0; a->n_levels == b->n_levels && i < a->n_levels; i++) {
		const sw_level *x = &a->levels[i], *y = &b->levels[i];
		int64_t was = sw_cluster_parts(a, i), is = sw_cluster_parts(b, i);
		compare("number of parts", y->name, (double)was, (double)is, SW_QUANTITY_NUMBER,
		        text);
		compare_figures(&sw_level_figures, y->name, x, y, was == is ? is : 0, text);
	}
}

static void compare_kernels(const sw_kernel_fit *x, const sw_kernel_fit *y, sw_family family,
                            sw_text *text)
{
	char of[64];
	snprintf(of, sizeof(of), "%s kernels", sw_family_name(family));
	if (x->given != y->given)
		sw_text_addf(text, "%s%s %s", text->len ? ", " : "", of,
		             y->given ? "measured" : "not measured");
	else
		compare_figures(&sw_kernel_figures, of, x, y, 0, text);
}

static void compare_devices(const sw_device *x, const sw_device *y, sw_text *text)
{
	const char *of = y->name ? y->name : "device";
	compare_figures(&sw_device_figures, of, x, y, 0, text);
	if (x->fusion != y->fusion)
		sw_text_addf(text, "%sfusion of %s %s, not %s", text->len ? ", " : "", of,
		             sw_fusion_name(y->fusion), sw_fusion_name(x->fusion));
	if (x->collectives != y->collectives)
		sw_text_addf(text, "%scollectives of %s %s, not %s", text->len ? ", " : "", of,
		             sw_library_name(y->collectives), sw_library_name(x->collectives));
	for (int t = 0; t < SW_TYPE_COUNT; t++)
		compare(sw_type_name((sw_type)t), of, x->flops[t], y->flops[t], SW_QUANTITY_FLOPS,
		        text);
	for (int family = 0; family < SW_FAMILY_COUNT; family++)
		compare_kernels(&x->kernels[family], &y->kernels[family], (sw_family)family, text);
}

void sw_cluster_print_differences(const sw_cluster *a, const sw_cluster *b, sw_text *text)
{
	sw_text words = {0};
	compare_levels(a, b, &words);
	compare("number", "kinds of devices", a->n_kinds, b->n_kinds, SW_QUANTITY_NUMBER, &words);
	for (int32_t k = 0; k < a->n_kinds && a->n_kinds == b->n_kinds; k++)
		compare_devices(&a->kinds[k], &b->kinds[k], &words);
	if (a->n_kinds == 0 && b->n_kinds == 0)
		compare_devices(&a->device, &b->device, &words);
	if (a->hash != b->hash && words.len == 0)
		sw_text_add(&words, "other unequal parts, kinds of parts or measured points");
	if (words.len > 0)
		sw_text_add(text, words.data);
	sw_text_clear(&words);
}
