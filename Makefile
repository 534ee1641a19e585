# Assay: one word per task; `make help` lists them. CMakePresets.json defines the three builds.
.DEFAULT_GOAL := build
.PHONY: build release run test bench asan fuzz fuzz-build format clean help install-packages

# What `make run` plans; `make run ARGS='chips'` shows something else.
PLAN = llama-3-70b --on tpu-v5p:16x20x28 --batch 4480seq --seq 4096
ARGS ?= train $(PLAN) --tokens 15T --explain
# How long `make fuzz` tries each fuzz target.
FUZZ_SECONDS ?= 60
JOBS ?= $(shell nproc)

build: install-packages build/release/build.ninja ## build build/release/assay
	@cmake --build build/release -j $(JOBS) --target assay

release: install-packages build/release/build.ninja
	@cmake --build build/release -j $(JOBS)

run: build ## build, then plan a training run: the answer, its derivation, two pictures
	@build/release/assay $(ARGS)
	@build/release/assay train $(PLAN) --output build/step.svg
	@build/release/assay scaling llama-3-70b --on tpu-v5p:16x20x28 --output build/scaling.svg
	@echo; echo "pictures: build/step.svg (what each stage or resource does when), build/scaling.svg (arithmetic against communication)"

# One ctest run over all three builds, so that its closing lines speak for everything.
test: release asan fuzz-build ## run every check and test, with and without sanitizers, and fuzz for a few seconds
	@printf 'subdirs(release asan fuzz)\n' > build/CTestTestfile.cmake
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

bench: build ## run all benchmarks
	@cmake --build build/release -j $(JOBS) --target bench

asan: install-packages build/asan/build.ninja ## build everything with AddressSanitizer and UBSan in build/asan
	@cmake --build build/asan -j $(JOBS)

fuzz: fuzz-build ## fuzz every reader for FUZZ_SECONDS
	@for target in build/fuzz/*_fuzz; do \
	  [ -x "$$target" ] || continue; \
	  tests/fuzz/run.sh "$$target" build/fuzz/corpus $(FUZZ_SECONDS) || exit; \
	done

format: install-packages ## format all sources in place
	@scripts/check_format.sh --fix

clean: ## remove everything that was built
	@rm -rf build

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

fuzz-build: install-packages build/fuzz/build.ninja
	@cmake --build build/fuzz -j $(JOBS)

install-packages:
	@scripts/install_packages.sh

build/%/build.ninja: | install-packages
	@cmake --preset $*
