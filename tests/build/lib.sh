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

# install_all: install the build into $root/usr. One test at a time does: pages and the list of what
# is installed are written into the build folder.
install_all() {
	exec 9>"$build/install.lock"
	flock 9
	tools/make_pages "$build/shardwright" tools/elastic clusters "$build/pages" || complain "make_pages"
	DESTDIR=$root cmake --install "$build" --prefix /usr >"$root/log" 2>&1 || complain "install: $(tail -3 "$root/log")"
	exec 9>&-
}
