/*
 * Write Trace Event files (the JSON of Perfetto and chrome://tracing): one complete event ("X") per
 * line, after the names of processes and threads. Times are written in microseconds to three
 * places, whole nanoseconds, and a duration is the difference of the rounded ends, so that events
 * which do not overlap do not overlap in the file either. O(events).
 */
#include "simulate/trace.h"

#include <math.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)64 << 10)

static const char *const track_names[] = {
	[SW_TRACK_KERNELS] = "kernels",
	[SW_TRACK_COLLECTIVES] = "collectives",
	[SW_TRACK_WAITS] = "waits",
};

typedef struct trace_writer {
	sw_sink *sink;
	sw_text text;
	const char *separator; /* before the next event */
} trace_writer;

void sw_trace_add(sw_trace *trace, const sw_trace_event *event)
{
	sw_vec_push(&trace->events, *event);
}

void sw_trace_clear(sw_trace *trace)
{
	sw_vec_clear(&trace->events);
}

/* ---- text ------------------------------------------------------------------------------- */

/* Return the bytes of the UTF-8 sequence that begins here; 0: none does. Overlong forms and
 * surrogates are left to readers. */
static size_t sequence_length(const unsigned char *at)
{
	static const struct {
		unsigned char mask, lead;
	} forms[] = {{0x80, 0x00}, {0xe0, 0xc0}, {0xf0, 0xe0}, {0xf8, 0xf0}};
	for (size_t n = 0; n < SW_COUNT(forms); n++) {
		if ((*at & forms[n].mask) != forms[n].lead)
			continue;
		for (size_t k = 1; k <= n; k++)
			if ((at[k] & 0xc0) != 0x80)
				return 0;
		return n + 1;
	}
	return 0;
}

/* Add a JSON string; bytes that are not valid UTF-8 become question marks. */
static void add_string(sw_text *text, const char *string)
{
	sw_text_add(text, "\"");
	for (const unsigned char *at = (const unsigned char *)string; *at;) {
		size_t length = sequence_length(at);
		if (*at < 0x20)
			sw_text_addf(text, "\\u%04x", *at);
		else if (*at == '"' || *at == '\\')
			sw_text_addf(text, "\\%c", *at);
		else if (length > 0)
			sw_text_add_n(text, (const char *)at, length);
		else
			sw_text_add(text, "?");
		at += SW_MAX(length, 1);
	}
	sw_text_add(text, "\"");
}

static int64_t nanoseconds(double seconds)
{
	return llround(seconds * 1e9);
}

static void add_microseconds(sw_text *text, const char *key, int64_t ns)
{
	sw_text_addf(text, ",\"%s\":%s%lld.%03lld", key, ns < 0 ? "-" : "", llabs(ns) / 1000,
	             llabs(ns) % 1000);
}

/* ---- events ----------------------------------------------------------------------------- */

static void begin_event(trace_writer *w)
{
	sw_text_add(&w->text, w->separator);
	w->separator = ",\n";
	if (w->text.len < BUFFER_BYTES)
		return;
	sw_sink_put(w->sink, w->text.data, w->text.len);
	w->text.len = 0;
}

static void write_event(trace_writer *w, const sw_trace_event *event)
{
	int64_t begin_ns = nanoseconds(event->begin_s), end_ns = nanoseconds(event->end_s);
	begin_event(w);
	sw_text_addf(&w->text, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d", event->rank,
	             (int)event->track);
	add_microseconds(&w->text, "ts", begin_ns);
	add_microseconds(&w->text, "dur", SW_MAX(end_ns - begin_ns, 0));
	sw_text_add(&w->text, ",\"name\":");
	add_string(&w->text, event->name);
	sw_text_add(&w->text, ",\"cat\":");
	add_string(&w->text, event->category);
	if (event->bytes >= 0)
		sw_text_addf(&w->text, ",\"args\":{\"bytes\":%lld}", (long long)event->bytes);
	sw_text_add(&w->text, "}");
}

static void write_rank(trace_writer *w, int32_t rank)
{
	begin_event(w);
	sw_text_addf(&w->text,
	             "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank "
	             "%d\"}}",
	             rank, rank);
	begin_event(w);
	sw_text_addf(&w->text,
	             "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_sort_index\",\"args\":{\"sort_"
	             "index\":%d}}",
	             rank, rank);
	for (size_t t = 0; t < SW_COUNT(track_names); t++) {
		begin_event(w);
		sw_text_addf(
			&w->text,
			"{\"ph\":\"M\",\"pid\":%d,\"tid\":%zu,\"name\":\"thread_name\",\"args\":{"
			"\"name\":\"%s\"}}",
			rank, t, track_names[t]);
	}
}

/* Write the names of every rank that has an event, once. */
static void write_ranks(trace_writer *w, const sw_trace *trace)
{
	int32_t last = -1;
	for (size_t i = 0; i < trace->events.len; i++)
		last = SW_MAX(last, trace->events.data[i].rank);
	bool *seen = sw_alloc((size_t)last + 2);
	for (size_t i = 0; i < trace->events.len; i++)
		seen[trace->events.data[i].rank] = true;
	for (int32_t rank = 0; rank <= last; rank++)
		if (seen[rank])
			write_rank(w, rank);
	free(seen);
}

sw_status sw_trace_write(const sw_trace *trace, const char *title, const char *path, sw_error *err)
{
	trace_writer w = {.separator = "\n"};
	sw_status status = sw_sink_open(path, &w.sink, err);
	if (status != SW_OK)
		return status;
	sw_text_add(&w.text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"title\":");
	add_string(&w.text, title);
	sw_text_add(&w.text, "},\"traceEvents\":[");
	write_ranks(&w, trace);
	for (size_t i = 0; i < trace->events.len; i++)
		write_event(&w, &trace->events.data[i]);
	sw_text_add(&w.text, "\n]}\n");
	sw_sink_put(w.sink, w.text.data, w.text.len);
	sw_text_clear(&w.text);
	return sw_sink_close(w.sink, err);
}
