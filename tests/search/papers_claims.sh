#!/bin/sh
# What docs/papers.md says came out comes out, within 2 %: the rows that take seconds, or the K-th of N parts of them where
# SW_PART is K/N. long_papers_claims.sh has the others.
[ -x "$SW_BINARY_DIR/bench/papers" ] || exit 77
exec "$SW_BINARY_DIR/bench/papers" -q --claims --part "${SW_PART:-1/1}"
