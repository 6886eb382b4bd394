#!/bin/sh
# Each test that tests/MAY_SKIP excuses is there: otherwise the new name of a test that may skip
# would be noticed only where it skips. And each script that exits with 77 is excused, unless it does
# so where benches are not built: they are in continuous integration.
set -eu
cd "$SW_SOURCE_DIR"
status=0
for excused in $(sed '/^#/d; s/ .*//' tests/MAY_SKIP); do
	test=${excused%%:*}
	folder=tests/${test%%_*}
	[ -n "$(find "$folder" -name "${test#*_}.*" -o -name "test_${test#*_}.*")" ] ||
		{ echo "tests/MAY_SKIP: there is no test $test"; status=1; }
	case $excused in *:*)
		grep -rqw --include='*.[ch]' -e "${excused#*:}" tests ||
			{ echo "tests/MAY_SKIP: there is no case ${excused#*:}"; status=1; } ;;
	esac
done
for script in $(grep -rl --include='*.sh' 'exit 77' tests | xargs grep -L bench); do
	test=$(echo "$script" | sed 's|^tests/||; s|/test_|/|; s|\.sh$||; s|/|_|')
	grep -q "^$test " tests/MAY_SKIP || [ "$test" = lab_lib ] || [ "$test" = build_may_skip ] ||
		{ echo "$script may skip: tests/MAY_SKIP gives no reason"; status=1; }
done
exit $status
