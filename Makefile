# Assay: one word per task; `make help` lists them. CMakePresets.json defines the two builds.
.DEFAULT_GOAL := build
.PHONY: build release run quick test accuracy bench sanitize fuzz page site test-site install package wheel sdist docs format clean help install-packages \
        install-test-packages configure-again

# What `make run` plans; `make run ARGS='chips'` shows something else.
PLAN = llama-3-70b --on tpu-v5p:16x20x28 --batch 4480seq --seq 4096
ARGS ?= train $(PLAN) --tokens 15T --explain
# How long `make fuzz` tries each fuzz target.
FUZZ_SECONDS ?= 60
# Where `make install` puts things; DESTDIR comes before it.
PREFIX ?= /usr/local
# What `make quick` compares with.
BASE ?= HEAD
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

# Compiles and tests what changed since the last time: the tests of the folders whose sources differ from the last commit,
# and the checks of the sources. BASE=main compares with another commit.
quick: install-test-packages configure-again ## build, and run the tests of the folders that changed
	@cmake --build build/release -j $(JOBS) --target assay assay_tests
	@scripts/quick_tests.sh $(BASE)

# One ctest run over both builds, so that its closing lines speak for everything.
test: install-test-packages configure-again release sanitize ## run every check and test, with and without sanitizers, and fuzz for a few seconds
	@printf 'subdirs(release sanitize)\n' > build/CTestTestfile.cmake
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

accuracy: build ## predict every measurement, as a site: build/accuracy (DATA=DIR adds tables, BEFORE=FILE compares)
	@scripts/accuracy.py build/accuracy $(if $(DATA),--data $(DATA)) $(if $(BEFORE),--before $(BEFORE))

bench: install-test-packages configure-again ## run all benchmarks
	@cmake --build build/release -j $(JOBS) --target bench

sanitize: install-test-packages build/sanitize/build.ninja ## build everything with sanitizers, and the fuzz targets
	@cmake --build build/sanitize -j $(JOBS)

fuzz: sanitize ## fuzz every reader for FUZZ_SECONDS
	@for seeds in tests/fuzz/corpus/*; do \
	  tests/fuzz/run.sh build/sanitize/assay_fuzz $$(basename $$seeds) build/sanitize/corpus $(FUZZ_SECONDS) || exit; \
	done

# Node runs emscripten's tools, whose modules are Debian's even where node itself is not.
site: build ## the page with the engine as WebAssembly, for any file server: build/site
	@scripts/install_packages.sh packages_site.txt
	@[ -f build/wasm/build.ninja ] || cmake --preset wasm
	@NODE_PATH=/usr/share/nodejs cmake --build build/wasm -j $(JOBS) --target engine
	@rm -rf build/site && mkdir -p build/site page/dist && cp -r page/dist/. build/site
	@cp build/wasm/engine.js build/wasm/engine.wasm apps/wasm/engine_worker.js build/site
	@cp -r build/release/answers build/site/answers
	@find build/site -type f ! -name '*.gz' ! -name '*.woff2' -size +1k -exec gzip -9nk {} +

test-site: build site ## compare the answers of build/site with those of the binary
	@tests/site.py

install: install-packages build/release/build.ninja ## install into PREFIX (/usr/local), below DESTDIR
	@cmake --build build/release -j $(JOBS) --target installed
	@cmake --install build/release --strip --prefix $(PREFIX) > build/install.log
	@echo "installed below $(DESTDIR)$(PREFIX); build/install.log lists the files"

package: install-test-packages configure-again wheel sdist ## build Debian packages, a wheel and a source distribution in build/
	@cmake --build build/release -j $(JOBS) --target installed
	@cpack --config build/release/CPackConfig.cmake > build/package.log || { cat build/package.log; false; }
	@ls build/*.deb build/*.whl build/*.tar.gz

wheel: install-test-packages ## build the Python module as a wheel in build/
	@/usr/bin/python3 -m pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir build .

sdist: install-test-packages ## build the sources of the Python module as a distribution in build/
	@/usr/bin/python3 -c 'from setuptools import build_meta; build_meta.build_sdist("build")' > build/sdist.log || { cat build/sdist.log; false; }

docs: install-test-packages configure-again build ## build the documentation as a site in build/docs; every command of it runs, links and contrast are checked
	@scripts/install_packages.sh packages_docs.txt
	@cmake --build build/release -j $(JOBS) --target assay assay_python
	@scripts/replay_docs.sh
	@PYTHONPATH=build/release/python /usr/bin/python3 scripts/replay_python.py docs/*.md
	@scripts/build_docs.py
	@cd page && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent; }
	@node scripts/check_contrast.mjs build/docs

# The page is bundled once and committed, so that building the binary needs no node.
page: build install-test-packages ## check and bundle the page into page/dist
	@cd page && npm ci --silent && npm run --silent types && npm run --silent check && npm run --silent unit && npm run --silent bundle

format: install-test-packages ## format all sources in place
	@scripts/check_format.sh --fix

clean: ## remove everything that was built
	@rm -rf build

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

install-packages:
	@scripts/install_packages.sh

install-test-packages: install-packages
	@scripts/install_packages.sh packages_test.txt

# What was installed since the last time is looked for again.
configure-again: install-packages
	@cmake --preset release > /dev/null

build/%/build.ninja: | install-packages
	@cmake --preset $*
