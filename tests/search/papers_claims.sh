#!/bin/sh
# What docs/papers.md says came out comes out, within 2 %: the rows that take seconds. long_papers_claims.sh has the others.
[ -x "$SW_BINARY_DIR/bench/papers" ] || exit 77
exec "$SW_BINARY_DIR/bench/papers" -q --claims
