/* The progress line. */
#include "base/base.h"

#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_S 0.1 /* least time between two drawings */
#define WIPE "\r\033[K"

void sw_progress_start(sw_progress *progress, const char *label, bool quiet)
{
	*progress = (sw_progress){
		.active = !quiet && isatty(STDERR_FILENO),
		.started_s = sw_now_s(),
		.drawn_s = -INFINITY,
		.label = label,
	};
}

/* Return the number of columns to print. A line wider than the terminal would wrap, and could not
 * be wiped. */
static int terminal_width(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		return size.ws_col - 1;
	return 79;
}

void sw_progress_update(sw_progress *progress, double fraction, const char *format, ...)
{
	double now = sw_now_s();
	if (!progress->active || now - progress->drawn_s < REDRAW_S)
		return;
	progress->drawn_s = now;
	char note[256];
	va_list args;
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
	sw_text line = {0};
	double percent = 100 * SW_MIN(SW_MAX(fraction, 0), 1);
	sw_text_addf(&line, "%s %3.0f%%  %.0f s  %s", progress->label, percent,
	             now - progress->started_s, note);
	fprintf(stderr, WIPE "%.*s", terminal_width(), line.data);
	fflush(stderr);
	sw_text_clear(&line);
}

void sw_progress_end(sw_progress *progress)
{
	if (progress->active) {
		fputs(WIPE, stderr);
		fflush(stderr);
	}
	progress->active = false;
}
