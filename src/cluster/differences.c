/* In what one cluster differs from another, in words. */
#include "cluster/cluster.h"

#include <string.h>

typedef void add_number(sw_text *text, double number);

static void add_rate(sw_text *text, double bytes_per_s)
{
	sw_text_addf(text, "%.4g GB/s", bytes_per_s / 1e9);
}

static void add_tera(sw_text *text, double flops)
{
	sw_text_addf(text, "%.4g TFLOP/s", flops / 1e12);
}

static void add_plain(sw_text *text, double number)
{
	sw_text_addf(text, "%.4g", number);
}

/* "latency of node 5 us, not 1 us" */
static void compare(const char *what, const char *of, double was, double is, add_number *add,
                    sw_text *text)
{
	if (was == is)
		return;
	sw_text_addf(text, "%s%s of %s ", text->len ? ", " : "", what, of);
	add(text, is);
	sw_text_add(text, ", not ");
	add(text, was);
}

static void compare_levels(const sw_cluster *a, const sw_cluster *b, sw_text *text)
{
	compare("number", "levels", a->n_levels, b->n_levels, add_plain, text);
	for (int32_t i = 0; a->n_levels == b->n_levels && i < a->n_levels; i++) {
		const sw_level *x = &a->levels[i], *y = &b->levels[i];
		compare("count", y->name, (double)x->count, (double)y->count, add_plain, text);
		compare("latency", y->name, x->latency_s, y->latency_s, sw_text_add_seconds, text);
		compare("bandwidth", y->name, x->bandwidth, y->bandwidth, add_rate, text);
		if (x->flow_bandwidth != x->bandwidth || y->flow_bandwidth != y->bandwidth)
			compare("bandwidth of a flow", y->name, x->flow_bandwidth,
			        y->flow_bandwidth, add_rate, text);
	}
}

static void compare_devices(const sw_device *x, const sw_device *y, sw_text *text)
{
	const char *of = y->name ? y->name : "device";
	compare("memory", of, (double)x->memory_bytes, (double)y->memory_bytes, sw_text_add_bytes,
	        text);
	compare("memory bandwidth", of, x->memory_bandwidth, y->memory_bandwidth, add_rate, text);
	compare("kernel overhead", of, x->kernel_overhead_s, y->kernel_overhead_s,
	        sw_text_add_seconds, text);
	compare("matmul efficiency", of, x->matmul_efficiency, y->matmul_efficiency, add_plain,
	        text);
	for (int t = 0; t < SW_TYPE_COUNT; t++)
		compare(sw_type_name((sw_type)t), of, x->flops[t], y->flops[t], add_tera, text);
	if (memcmp(x->kernels, y->kernels, sizeof(x->kernels)))
		sw_text_addf(text, "%sother measured kernels", text->len ? ", " : "");
}

void sw_cluster_print_differences(const sw_cluster *a, const sw_cluster *b, sw_text *text)
{
	sw_text words = {0};
	compare_levels(a, b, &words);
	compare_devices(&a->device, &b->device, &words);
	if (a->hash != b->hash && words.len == 0)
		sw_text_add(&words, "other links or measured points");
	if (words.len > 0)
		sw_text_add(text, words.data);
	sw_text_clear(&words);
}
