#!/bin/sh
# tools/lab says one line where it can't, or is used wrongly, and its exit code tells the two
# apart.
. tests/lab/lib.sh

# say CODE WORDS COMMAND...: the code, and one line with these words.
say() {
	expect "$@"
	[ "$(wc -l <"$scratch/err")" = 1 ] || complain "not one line: $*"
}

# Nobody may not be able to read this folder.
cp tools/lab "$scratch/lab"
chmod 755 "$scratch" "$scratch/lab"
if [ "$(id -u)" = 0 ]; then
	nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
else
	nobody=
fi
say 77 "needs root" $nobody "$scratch/lab" up clusters/lab-4x1.yaml
expect 2 "usage: tools/lab up FILE.yaml" tools/lab sideways
expect 0 "" tools/lab --help

[ "$(id -u)" = 0 ] || skip "needs root"
mkdir "$scratch/bin"
for tool in sh uname id tr cut dirname realpath; do
	ln -s "$(command -v $tool)" "$scratch/bin/$tool"
done
say 77 "needs ip: tools/setup --tests installs it" env PATH="$scratch/bin" tools/lab up clusters/lab-4x1.yaml

ip netns list >/dev/null 2>&1 || skip "ip can't list network namespaces"
say 2 "its cluster file is missing" tools/lab up
say 2 "one word too many" tools/lab up clusters/lab-4x1.yaml clusters/lab-2x4.yaml
say 2 "down takes no file" tools/lab down clusters/lab-4x1.yaml
say 2 "there is no option --fast" tools/lab run --fast -- true
say 2 "no/such.yaml: cannot read" tools/lab up no/such.yaml
say 2 "expected -- and a command" tools/lab run
say 1 "no lab $SHARDWRIGHT_LAB is up" tools/lab run -- true

# A kernel without token buckets: what was built until then is removed.
mkdir "$scratch/old"
printf '#!/bin/sh\necho "Error: Specified qdisc kind is unknown." >&2\nexit 2\n' >"$scratch/old/tc"
chmod +x "$scratch/old/tc"
say 77 "can't build the network: .*: Error: Specified qdisc kind is unknown" \
	env PATH="$scratch/old:$PATH" tools/lab up clusters/lab-4x1.yaml
nothing_left "up failed"

up clusters/lab-4x1.yaml
say 2 "lab $SHARDWRIGHT_LAB is up already" tools/lab up clusters/lab-4x1.yaml
expect 0 "" tools/lab status
grep -q "node3  *1 ranks  10.77.0.4  *500 Mb/s" "$scratch/out" || complain "status does not say what there is"
tools/lab down
nothing_left "the lab is down"
exit $failed
