#!/bin/sh
# bench/papers: every fixture and every cluster file has a row in the group `users`, and in these no fixed strategy is
# quicker than ours.
set -eu
bench=$SW_BINARY_DIR/bench/papers
[ -x "$bench" ] || exit 77
rows=$("$bench" --list --only users)
has_row() { printf '%s\n' "$rows" | grep -q -e "^users *$1" || { echo "no row: $1"; exit 1; }; }
for file in "$SW_SOURCE_DIR"/tests/programs/*.hlo.gz; do has_row "$(basename "$file" .hlo.gz) on "; done
for file in "$SW_SOURCE_DIR"/clusters/*.yaml; do has_row ".* on $(basename "$file" .yaml) "; done
"$bench" -q --only 'mlp on lab-2x4' --only 'ncf-tiny on lab-unequal' --only 'odd-tiny on aws-p3-8xlarge'
# A row says what it has otherwise than the paper.
"$bench" -q --only 'figure 7 NCF, A1' >"${TMPDIR:-/tmp}/papers.$$"
for word in 'the paper: ' 'assumed: ' 'differs: '; do
	grep -q "^  $word" "${TMPDIR:-/tmp}/papers.$$" || { echo "not said: $word"; exit 1; }
done
rm "${TMPDIR:-/tmp}/papers.$$"
status=0
"$bench" -q --only 'no such experiment' 2>/dev/null || status=$?
[ $status -eq 2 ]
