/* The known word that is nearest to one that is not known, for messages. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Words that are longer are names that somebody generated: nobody mistypes those. */
#define MOST_BYTES 200

/* The distance, by rows: row[k % 3][i] is that of the first i bytes of a and the first k of b. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t row[3][MOST_BYTES + 1];
	for (size_t i = 0; i <= n; i++)
		row[0][i] = i;
	for (size_t k = 1; k <= m; k++) {
		const size_t *last = row[(k - 1) % 3], *before = row[(k + 1) % 3];
		size_t *now = row[k % 3];
		now[0] = k;
		for (size_t i = 1; i <= n; i++) {
			size_t d = SW_MIN(last[i], now[i - 1]) + 1;
			d = SW_MIN(d, last[i - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				d = SW_MIN(d, before[i - 2] + 1);
			now[i] = d;
		}
	}
	return row[m % 3][n];
}

void sw_nearest_try(sw_nearest *nearest, const char *candidate)
{
	size_t n = strlen(nearest->word), m = strlen(candidate);
	if (n > MOST_BYTES || m > MOST_BYTES)
		return;
	size_t d = distance(nearest->word, n, candidate, m);
	bool near = d <= SW_MAX(SW_MAX(n, m) / 3, 1);
	if (near && (!nearest->found || d < nearest->distance)) {
		nearest->found = candidate;
		nearest->distance = d;
	}
}

sw_nearest_words sw_nearest_hint(const sw_nearest *nearest)
{
	sw_nearest_words words = {""};
	if (nearest->found)
		snprintf(words.text, sizeof(words.text), " (nearest: '%.70s')", nearest->found);
	return words;
}
