# Thin verbs over CMake presets; `make` lists them.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
PROMPT ?= Hello!
FUZZ_SECONDS ?= 60
CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help setup build debug run test test-slow asan tsan fuzz format format-check tidy \
        clang-tidy install clean

help: ## list these verbs
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | \
	  awk -F ':.*## ' '{printf "make %-13s %s\n", $$1, $$2}'

setup: ## install the Debian packages that are missing (root or sudo)
	@scripts/setup.sh

build: setup ## build the program and its tests in build/release
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)

debug: setup ## the same in build/debug, with checks of inner loops
	@cmake --preset debug
	@cmake --build --preset debug -j $(JOBS)

run: setup ## build the program and let the shipped model answer PROMPT
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS) --target deepinfer
	build/release/bin/deepinfer generate "$(PROMPT)"

test: build ## the fast tests
	@$(CTEST) --test-dir build/release -LE slow

test-slow: build ## the slow tests: sanitizers, fuzzers, long comparisons
	@$(CTEST) --test-dir build/release -L slow

asan: setup ## the fast tests under AddressSanitizer and UBSan
	@tests/sanitize.sh asan build/asan $(JOBS)

tsan: setup ## the fast tests under ThreadSanitizer
	@tests/sanitize.sh tsan build/tsan $(JOBS)

fuzz: setup ## every fuzzer for FUZZ_SECONDS (60)
	@tests/fuzz/run.sh build/fuzz $(FUZZ_SECONDS) $(JOBS)

format: ## rewrite the C++ sources in the project's format
	@git ls-files -z '*.cc' '*.h' | xargs -0 clang-format -i

format-check: ## say which sources are not in that format
	@tests/tidy/format_check.sh

tidy: ## hold sizes, includes, banned calls and names to the rules
	@python3 -B tests/tidy/tidy_test.py
	@python3 -B tests/tidy/tidy.py

clang-tidy: build ## run clang-tidy over src/ (minutes)
	@run-clang-tidy -quiet -p build/release -j $(JOBS) "$(CURDIR)/src/.*\.cc$$"

install: setup ## install to PREFIX (/usr/local) under DESTDIR
	@cmake --preset release -DCMAKE_INSTALL_PREFIX="$(PREFIX)"
	@cmake --build --preset release -j $(JOBS) --target deepinfer deepinfer_shared
	@cmake --install build/release --prefix "$(PREFIX)"

clean: ## remove build/
	@rm -rf build
