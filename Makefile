# Where to begin. `make help` says what there is; scripts/ has the how.

# Where `make install` puts things, and what `make demo` and `make bench` hand on.
PREFIX ?= /usr/local
ARGS ?=

# What a script makes stays out of the way of the next run; each step looks
# first whether there is anything to do.
.PHONY: help packages setup build demo test test-full bench lint format docs \
        install hooks clean distclean
.DEFAULT_GOAL := help

help: ## Say what there is
	@scripts/help $(MAKEFILE_LIST)

packages:
	@scripts/install-debian-packages

setup: packages ## Install what is missing: Debian packages, then .venv with the Python ones
	@scripts/make-venv dev
	@scripts/fetch-onnxruntime
	@scripts/fetch-simdjson

build: setup ## Build the library, the LLVM plug-in and the Python package
	@scripts/install-python-package
	@scripts/fetch-ir2vec-vocabulary
	@scripts/build release

demo: setup ## Compile bzip2 and zstd with stock clang, by models trained a moment ago
	@scripts/make-venv dev demo
	@scripts/install-python-package demo-parts
	@scripts/fetch-ir2vec-vocabulary
	@scripts/demo $(ARGS)

test: setup ## Run every test (some 20 minutes from nothing, on two cores; ARGS="lint pytest" picks steps)
	@scripts/make-venv dev demo docs train export
	@scripts/test $(ARGS)

test-full: setup ## The same with 5 million runs of each fuzzer and the long tests
	@scripts/make-venv dev demo docs train export tvm
	@scripts/test --full $(ARGS)

bench: build ## Measure round trips against the raw floor of each transport
	@.venv/bin/mlbridge bench rtt $(ARGS)

lint: setup ## Check format, style and types: clang-format, clang-tidy, ruff, mypy
	@scripts/make-venv demo train
	@scripts/lint

format: setup ## Format the C++ and Python sources in place
	@scripts/format

docs: setup ## Make the API documentation, in build/docs
	@scripts/make-venv dev docs
	@scripts/install-python-package
	@scripts/docs

install: build ## Install the library for C++ users, by default in PREFIX=/usr/local
	@cmake --install build/release --prefix "$(PREFIX)"

hooks: ## Have git check what you commit
	@scripts/install-hooks

clean: ## Remove what was built
	rm -rf build

distclean: clean ## Remove .venv too
	rm -rf .venv
