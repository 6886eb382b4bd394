#!/bin/sh
# Each test that tests/MAY_SKIP excuses is there: otherwise the new name of a test that may skip
# would be noticed only where it skips.
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
exit $status
