#!/bin/sh
# `shardwright solve`: the report, --json, -o, stopping, infeasible problems, bad files.
. tests/cli/lib.sh
problems=tests/problems
example=$problems/example.json

# says WORDS: check that one line of standard output has them
says() {
	grep -q -e "$1" "$scratch/out" || complain "'$1' is not printed"
}

# The report.
expect 0 "" "$sw" solve $example
says "^problem  *5 nodes with 1.8 strategies each, 5 edges with 5 different tables"
says "^limit  *50 at each of 150 points"
says "^answer  *optimal"
says "^cost  *445"
says "^bound  *445"
says "^gap  *0.0000 %"
says "^peak  *50 (100.00 % of the limit) at point 50"
says "^choice  *\[0,0,2,1,0\]"
expect 0 "" "$sw" solve $problems/unordered.json
says "^limit  *none"
for instance in B:532843 G:217039; do
	expect 0 "" "$sw" solve $problems/asplos-2025-iopddl-${instance%:*}.json.gz --time-limit 60
	says "^choice  *816 numbers: -o FILE writes them"
	says "^cost  *${instance#*:}"
done

# The assignment is written to a file, plain or gzip, or to standard output.
gzip -c $example >"$scratch/packed"
expect 0 "" "$sw" solve "$scratch/packed" -o "$scratch/choice.json" -q
[ "$(cat "$scratch/choice.json")" = "[0,0,2,1,0]" ] || complain "$(cat "$scratch/choice.json") is no assignment"
expect 0 "^answer  *optimal" "$sw" solve $example -o -
[ "$(cat "$scratch/out")" = "[0,0,2,1,0]" ] || complain "not the assignment alone"
expect 2 "both need standard output" "$sw" solve $example -o - --json
refuse "no/such/folder/x: cannot write" "$sw" solve $example -o no/such/folder/x

# An infeasible problem gives exit code 1, no file, and the reason.
for problem in infeasible:"raise usage_limit" forbidden:"proved that nothing fits$"; do
	expect 1 "${problem%%:*}.json: infeasible: .*${problem#*:}" "$sw" solve $problems/${problem%%:*}.json -o "$scratch/none"
	says "^answer  *infeasible: it is proved that nothing fits"
done
[ ! -e "$scratch/none" ] || complain "a file was written for no answer"

# Hard problems: 60 nodes, all pairs joined, pseudo-random costs, one program point. LIMIT: of usage.
hard() {
	awk -v limit="$1" 'function draw(n) { seed = (seed * 16807) % 2147483647; return seed % n }
	function row(n, range, i, text) { for (i = 0; i < n; i++) text = text (i ? "," : "") draw(range); return "[" text "]" }
	BEGIN {
		seed = 4711
		for (i = 0; i < 60; i++) { v = v s "[0,1]"; c = c s row(6, 1000); u = u s row(6, 1000); s = "," }
		s = ""
		for (i = 0; i < 60; i++) for (j = i + 1; j < 60; j++) { n = n s "[" i "," j "]"; e = e s row(36, 1000); s = "," }
		print "{\"problem\":{\"nodes\":{\"intervals\":[" v "],\"costs\":[" c "],\"usages\":[" u "]},"
		print "\"edges\":{\"nodes\":[" n "],\"costs\":[" e "]},\"usage_limit\":" limit "}}"
	}' >"$scratch/hard.json"
}

# Ctrl-C and SIGTERM give the best assignment so far, with its bound, and exit code 0.
hard 50000
for signal in INT TERM; do
	(
		sleep 2
		pid=$(cat "$scratch/pid")
		kill -s $signal "$pid"
	) &
	# sh starts background jobs deaf to SIGINT; a child of the foreground is not.
	expect 0 "stopped: this is the best so far" sh -c 'echo $$ >"$1"; shift; exec "$@"' sh "$scratch/pid" \
		"$sw" solve "$scratch/hard.json" --work-limit 1000000000000000
	wait
	says "^answer  *feasible.*(stopped)"
	says "^cost  *[0-9]"
	says "^bound  *-*[0-9]"
done

# Number partitioning: each of 60 large numbers goes to one of two program points, and the limit is
# half their sum, which can't be met by trial. The report says that no assignment is found, and how
# far the best one is from the limit.
awk 'function draw() { seed = (seed * 16807) % 2147483647; return seed }
	BEGIN {
		seed = 4711
		for (i = 0; i < 60; i++) {
			a = sprintf("%.0f", draw() * 16384 + draw() % 16384)
			sum += a
			v = v s "[0,1],[1,2]"; c = c s "[0,0],[0,0]"; u = u s "[" a ",0],[0," a "]"
			n = n s "[" 2 * i "," 2 * i + 1 "]"; e = e s "[0,1e18,1e18,0]"; s = ","
		}
		print "{\"problem\":{\"nodes\":{\"intervals\":[" v "],\"costs\":[" c "],\"usages\":[" u "]},"
		printf "\"edges\":{\"nodes\":[%s],\"costs\":[%s]},\"usage_limit\":%.0f}}\n", n, e, (sum - sum % 2) / 2
	}' >"$scratch/parts.json"
expect 1 "parts.json: no assignment was found that fits, .* above the limit" \
	"$sw" solve "$scratch/parts.json" --work-limit 100000 -o "$scratch/none"
says "^answer  *none found that fits, and not proved that there is none"
says "^nearest  *[0-9]* above the limit in points [01] to [01]"
[ ! -e "$scratch/none" ] || complain "a file was written for no answer"
expect 1 "parts.json: no assignment was found that fits" "$sw" solve "$scratch/parts.json" --work-limit 100000 --json
says '"answer": "unknown"'
says '"overuse": \['
says '"excess": [1-9]'

# Bad files.
sed 's/\[55, 65\]/[55, 6.5]/' $example >"$scratch/bad.json"
refuse "bad.json:14:14: problem.nodes.costs\[1\]\[1\]: expected an integer, found a number with a fraction" "$sw" solve "$scratch/bad.json"
sed 's/\[25, 25\]/[25]/' $example >"$scratch/bad.json"
refuse "bad.json:21:9: problem.nodes.usages\[1\]: 1 usages, expected 2" "$sw" solve "$scratch/bad.json"
head -c 300 $example >"$scratch/bad.json"
refuse "bad.json:[0-9]*:[0-9]*: problem.nodes.*the text ends in a string" "$sw" solve "$scratch/bad.json"
head -c 50000 $problems/asplos-2025-iopddl-B.json.gz >"$scratch/bad.json"
refuse "bad.json: truncated gzip data" "$sw" solve "$scratch/bad.json"
refuse "no/such/file: cannot read: No such file" "$sw" solve no/such/file
refuse "cannot read: Is a directory" "$sw" solve tests
refuse "expected an object, found 'H'" "$sw" solve $tiny
refuse "expected a whole number" "$sw" solve $example --work-limit=-1
exit $failed
