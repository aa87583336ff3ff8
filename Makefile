# Entry points for developers. `make help` lists them; scripts/ implements them.

# The prefix of `make install`, and arguments for `make demo`, `test`, `bench` and
# `report`.
PREFIX ?= /usr/local
ARGS ?=

# Scripts reuse what earlier runs have produced, and check first whether there is
# anything to do.
.PHONY: help packages setup build demo test test-full bench report lint format docs \
        install hooks clean distclean
.DEFAULT_GOAL := help

help: ## List the targets
	@scripts/help $(MAKEFILE_LIST)

packages:
	@scripts/install-debian-packages

setup: packages ## Install missing Debian packages, and Python packages in .venv
	@scripts/make-venv dev
	@scripts/fetch-onnxruntime
	@scripts/fetch-simdjson

build: setup ## Build the library, the LLVM plug-in and the Python package
	@scripts/install-python-package
	@scripts/fetch-ir2vec-vocabulary
	@scripts/build release

demo: setup ## Train models briefly and compile bzip2 and zstd with them and stock clang
	@scripts/make-venv dev demo
	@scripts/install-python-package demo-parts
	@scripts/fetch-ir2vec-vocabulary
	@scripts/demo $(ARGS)

test: setup ## Run all tests (about 25 minutes from scratch on two cores; ARGS="lint pytest" selects steps)
	@scripts/make-venv dev demo docs train export
	@scripts/test $(ARGS)

test-full: setup ## Run all tests with 5 million runs of each fuzzer, and the long tests
	@scripts/make-venv dev demo docs train export tvm
	@scripts/test --full $(ARGS)

bench: build ## Measure round trips, and compare them with each transport's lower bound
	@.venv/bin/mlbridge bench rtt $(ARGS)

report: build ## Measure the paper's tables and figures (hours; a second run continues)
	@scripts/make-venv dev demo train
	@.venv/bin/mlbridge bench report $(ARGS)

lint: setup ## Check format, style and types: clang-format, clang-tidy, ruff, mypy
	@scripts/make-venv demo train
	@scripts/lint

format: setup ## Format the C++ and Python sources in place
	@scripts/format

docs: setup ## Build the documentation site in build/docs
	@scripts/make-venv dev docs
	@scripts/install-python-package
	@scripts/docs

# Otherwise, a strict umask would hide the installed folders from other users.
install: build ## Install the C++ library and the plug-in (default: PREFIX=/usr/local)
	@umask 022 && cmake --install build/release --prefix "$(PREFIX)"

hooks: ## Install git hooks that check commits
	@scripts/install-hooks

clean: ## Remove build outputs
	rm -rf build

distclean: clean ## Also remove .venv
	rm -rf .venv
