# Functions for the tests of what is installed: . tests/build/lib.sh, which makes $root, an empty folder.
set -u
build=$SW_BINARY_DIR
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0
complain() {
	echo "FAILED: $*" >&2
	failed=1
}

# install_all: install the build into $root/usr.
install_all() {
	tools/make_pages "$build/shardwright" "$build/pages" || complain "make_pages"
	DESTDIR=$root cmake --install "$build" --prefix /usr >"$root/log" 2>&1 || complain "install: $(tail -3 "$root/log")"
}
