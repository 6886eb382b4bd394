/* The known word that is nearest to one that is not known, for messages. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Words that are longer are names that somebody generated: nobody mistypes those. */
#define MOST_BYTES 200

/* Levenshtein's distance, by rows: row[i] is that of the first i bytes of a and the first k of b.
 */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t row[MOST_BYTES + 1];
	for (size_t i = 0; i <= n; i++)
		row[i] = i;
	for (size_t k = 1; k <= m; k++) {
		size_t diagonal = row[0];
		row[0] = k;
		for (size_t i = 1; i <= n; i++) {
			size_t replaced = diagonal + (a[i - 1] != b[k - 1]);
			diagonal = row[i];
			row[i] = SW_MIN(SW_MIN(row[i], row[i - 1]) + 1, replaced);
		}
	}
	return row[n];
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
