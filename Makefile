# A thin front for CMake. `make` builds build/shardwright; see docs/dependencies.md and tools/setup.

BUILD ?= build
CMAKE ?= cmake
GENERATOR := $(shell command -v ninja >/dev/null 2>&1 && echo -G Ninja)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CTEST = ctest --output-on-failure -j $(JOBS)

.PHONY: all configure check install package demo test sanitize fuzz format clean
all: configure
	$(CMAKE) --build $(BUILD) -j $(JOBS) --target shardwright

check: configure
	$(CMAKE) --build $(BUILD) -j $(JOBS)
	$(CTEST) --test-dir $(BUILD) -LE long

# PREFIX: where to; DESTDIR: a root to put that under
PREFIX ?= /usr/local
install: all
	$(CMAKE) --build $(BUILD) -j $(JOBS) --target pages libshardwright
	$(CMAKE) --install $(BUILD) --prefix $(PREFIX)

# a Debian package in $(BUILD)
package: all
	$(CMAKE) --build $(BUILD) -j $(JOBS) --target pages libshardwright
	cd $(BUILD) && cpack -G DEB

demo:
	tools/demo

test:
	tools/test

sanitize:
	$(CMAKE) -S . -B build-sanitize $(GENERATOR) -DSW_SANITIZE=address,undefined -DSW_TESTS=ON
	$(CMAKE) --build build-sanitize -j $(JOBS)
	$(CTEST) --test-dir build-sanitize -LE '^(long|slow)$$'

fuzz:
	tools/fuzz

format:
	find src cli library tests bench -name '*.[ch]' | xargs clang-format -i

clean:
	rm -rf build build-*

configure:
	@test -f $(BUILD)/build.ninja -o -f $(BUILD)/Makefile || $(CMAKE) -S . -B $(BUILD) $(GENERATOR)
