#!/bin/sh
# make install into a temporary root: the command runs from there, finds cluster files by name, has a
# manual page per command and completions that list its options; the Debian package holds the same.
. tests/build/lib.sh
install_all
usr=$root/usr
sw=$usr/bin/shardwright
cp tests/programs/gpt-tiny.hlo.gz tests/programs/gpt-tiny.inputs.json "$root"
cd "$root" || exit 1
"$sw" plan gpt-tiny.hlo.gz --cluster local-2x2 --strategy dp -o tiny.plan -q || complain "no plan by the name of a cluster"
"$sw" run tiny.plan --ranks 4 --steps 2 -q >out || complain "no run"
"$sw" plan gpt-tiny.hlo.gz --cluster no-such-cluster -o x.plan 2>err && complain "a cluster that there is not"
grep -q "neither such a cluster file nor an installed one" err || complain "what is said: $(cat err)"
[ "$(wc -l <err)" = 1 ] || complain "not one line"
for name in $("$sw" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
	page=$usr/share/man/man1/shardwright-$name.1
	[ -s "$page" ] || complain "no page: $name"
	"$sw" "$name" --help | sed -n 's/^  \(--[a-z-]*\) .*/\1/p' >options
	[ -s options ] || complain "$name has no options"
	while read -r option; do
		grep -q -- "$(echo "$option" | sed 's/-/\\\\-/g')" "$page" || complain "$name: its page lacks $option"
	done <options
done
if command -v groff >/dev/null; then
	groff -man -Tutf8 -ww "$usr/share/man/man1/shardwright-run.1" >page 2>err || complain "groff"
	[ ! -s err ] || complain "groff: $(head -3 err)"
	grep -q -- "--resume" page || complain "the page is not readable"
fi
if command -v bash >/dev/null; then
	bash -c '. usr/share/bash-completion/completions/shardwright
		COMP_WORDS=(shardwright run --ch); COMP_CWORD=2; _shardwright; echo "${COMPREPLY[@]}"
		COMP_WORDS=(shardwright sol); COMP_CWORD=1; _shardwright; echo "${COMPREPLY[@]}"
		COMP_WORDS=(shardwright plan x.hlo --cluster h100-sup); COMP_CWORD=4; _shardwright; echo "${COMPREPLY[@]}"
		COMP_WORDS=(shardwright plan x.hlo --cluster tiny.p); COMP_CWORD=4; _shardwright; echo "${COMPREPLY[@]}"' >words
	[ "$(cat words)" = "--check-nan
solve
h100-superpod
tiny.plan" ] || complain "bash completes: $(cat words)"
fi
grep -q "compadd -- .*h100-superpod" usr/share/zsh/vendor-completions/_shardwright || complain "zsh lacks the clusters"
grep -q "rank is lost" usr/share/man/man1/shardwright-elastic.1 || complain "no page of shardwright-elastic"
grep -q '^#compdef shardwright' usr/share/zsh/vendor-completions/_shardwright || complain "no completion for zsh"
[ -x usr/bin/shardwright-elastic ] || complain "no shardwright-elastic"
PATH=$usr/bin:$PATH shardwright-elastic --help | grep -q "go on when a rank is lost" || complain "elastic --help"
exit $failed
