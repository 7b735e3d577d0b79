# kfu: set-up, tests and housekeeping. `make` alone lists the targets.
#
# Needs python3.11 (with venv and pip), gcc, g++ and make; everything else goes into .venv.
# Stamp files in .venv record what was installed, so a second call does only what changed.
# On a machine without a package index point pip at a folder of wheels:
#     make test PIP_FLAGS="--no-index --find-links /path/to/wheels"

PYTHON    ?= python3.11
JOBS      ?= 2
PIP_FLAGS ?=
KFU_TEST_ARGS ?=
BENCH     ?= train predict scaling memory reader panels

VENV := .venv
BIN  := $(VENV)/bin
PY   := $(BIN)/python
PIP  := $(PY) -m pip --disable-pip-version-check install --quiet $(PIP_FLAGS)

SOURCES := setup.py $(wildcard kfu/*.pyx kfu/*.pxd csrc/kfu/*.cpp csrc/kfu/*.h csrc/kfu/*.inc)
CXX_FILES = $(wildcard csrc/kfu/*.cpp csrc/kfu/*.h csrc/kfu/*.inc tests/csrc/*.cpp tests/csrc/*.h)
CXX_TESTS = $(wildcard tests/csrc/test_*.cpp)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv build demo test lint format asan bench bench-quick instructions docs datasets wheel clean distclean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 18

# ---------------------------------------------------------------- environment

$(PY):
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: no '$(PYTHON)' on the PATH; install Python 3.11 or newer, or say: make PYTHON=python3.12" >&2; exit 1; }
	@echo "creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "make: '$(PYTHON) -m venv' failed; on Debian and Ubuntu the package is python3-venv" >&2; \
	  rm -rf $(VENV); exit 1; }

# The lists of requirements live in pyproject.toml alone.
define REQUIREMENTS
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))
wanted = sys.argv[1]
table = project["project"]["optional-dependencies"]
print(*(project["build-system"]["requires"] if wanted == "build" else table[wanted]), sep="\n")
endef
export REQUIREMENTS

define INSTALL_HINT
{ echo "make: pip could not install the packages above." >&2; \
  echo "make: without a package index, give a folder of wheels:" >&2; \
  echo "make:   make $@ PIP_FLAGS=\"--no-index --find-links DIR\"" >&2; exit 1; }
endef

$(VENV)/.extra-%: pyproject.toml | $(PY)
	@echo "installing the requirements of '$*' into $(VENV)"
	@$(PY) -c "$$REQUIREMENTS" $* > $(VENV)/requirements-$*.txt
	@$(PIP) -r $(VENV)/requirements-$*.txt || $(INSTALL_HINT)
	@touch $@

# Installed editable and without compiled modules: Python files are used in place, and the next rule
# puts the compiled modules beside them whenever a source has changed.
$(VENV)/.installed: pyproject.toml kfu/_version.py $(VENV)/.extra-build
	@echo "installing kfu and its requirements into $(VENV)"
	@KFU_ONLY=none $(PIP) --no-build-isolation --editable . || $(INSTALL_HINT)
	@touch $@

$(VENV)/.built: $(VENV)/.installed $(SOURCES)
	@command -v g++ >/dev/null || { echo "make: no 'g++' on the PATH; install gcc and g++" >&2; exit 1; }
	@echo "compiling csrc/ and kfu/*.pyx (a few minutes the first time)"
	@$(PY) setup.py --quiet build_ext --inplace
	@touch $@

venv: $(PY) ## create .venv only
build: $(VENV)/.built ## create .venv, build and install kfu into it

# ---------------------------------------------------------------- for users

demo: build $(VENV)/.extra-plot ## train, test and picture a first model (demo-output/)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh configs/demo.sh demo-output

datasets: build ## write the files of datasets/ again from their fixed seeds
	$(PY) datasets/generate.py

# ---------------------------------------------------------------- for developers

test: build $(VENV)/.extra-test ## run the test suite (KFU_DATA=DIR adds the real data sets)
	@OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(PY) -m pytest -n $(JOBS) $(KFU_TEST_ARGS)

lint: build $(VENV)/.extra-lint ## ruff, mypy and clang-format, as checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@$(if $(CXX_FILES),echo "clang-format --dry-run" && $(BIN)/clang-format --dry-run -Werror $(CXX_FILES))

format: $(VENV)/.extra-lint ## let ruff and clang-format rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(if $(CXX_FILES),$(BIN)/clang-format -i $(CXX_FILES))

# The C++ core and its tests under AddressSanitizer and UndefinedBehaviorSanitizer. Objects are
# built by a sub-make so that they compile in parallel and only when they changed.
asan: ## csrc tests under ASan and UBSan
	@$(MAKE) --no-print-directory -j $(JOBS) $(patsubst tests/csrc/%.cpp,build/asan/%,$(CXX_TESTS))
	@set -e; for program in $(patsubst tests/csrc/%.cpp,build/asan/%,$(CXX_TESTS)); do \
	  echo "$$program"; OMP_NUM_THREADS=2 UBSAN_OPTIONS=print_stacktrace=1 $$program; done

ASAN_FLAGS := -std=c++17 -O1 -g -fopenmp -fsanitize=address,undefined -fno-sanitize-recover=all \
              -fno-omit-frame-pointer -Wall -Wextra -Icsrc -Itests/csrc
ASAN_CORE  = $(patsubst csrc/kfu/%.cpp,build/asan/core/%.o,$(wildcard csrc/kfu/*.cpp))
HEADERS    = $(wildcard csrc/kfu/*.h csrc/kfu/*.inc tests/csrc/*.h)

.PRECIOUS: build/asan/core/%.o
build/asan/core/%.o: csrc/kfu/%.cpp $(HEADERS)
	@mkdir -p $(@D)
	$(CXX) $(ASAN_FLAGS) -c $< -o $@

build/asan/test_%: tests/csrc/test_%.cpp $(ASAN_CORE) $(HEADERS)
	@mkdir -p $(@D)
	$(CXX) $(ASAN_FLAGS) $< $(ASAN_CORE) -o $@

# Programs of benchmarks/; each prints a table and appends JSON lines to benchmarks/results/.
bench: build $(VENV)/.extra-bench ## side-by-side runs against other packages (BENCH="train reader")
	@mkdir -p benchmarks/results
	@set -e; for name in $(BENCH); do \
	  echo "== $$name"; $(PY) -m benchmarks.$$name; done

bench-quick: build $(VENV)/.extra-bench ## small cases beside the peers, once, within three minutes
	@mkdir -p benchmarks/results
	@$(PY) -m benchmarks.train --quick
	@$(PY) -m benchmarks.predict --quick

instructions: build ## count the instructions of a small training, compare with the reference
	@$(PY) -m benchmarks.instructions

docs: build $(VENV)/.extra-plot ## write docs/commands.md and the pictures of docs/ again
	$(PY) docs/build.py

wheel: $(VENV)/.extra-build ## wheel and sdist into dist/, then a smoke check of both
	@rm -rf dist build/wheel-check && mkdir -p dist build/wheel-check
	@$(PIP) build
	@$(PY) -m build --outdir dist .
	@for kind in whl tar.gz; do \
	  set -e; echo "smoke check of dist/*.$$kind in a fresh environment"; \
	  $(PYTHON) -m venv build/wheel-check/$$kind; \
	  build/wheel-check/$$kind/bin/python -m pip --disable-pip-version-check install --quiet $(PIP_FLAGS) dist/kfu-*.$$kind; \
	  cd build/wheel-check; \
	  $$kind/bin/kfu train ../../datasets/banana-train.svm -k rbf -g 1 -c 1 -o $$kind.model; \
	  $$kind/bin/kfu predict $$kind.model ../../datasets/banana-test.svm -o $$kind.out; \
	  cd ../..; done
	@ls -l dist

clean: ## remove what was built (never sources)
	rm -rf build dist *.egg-info demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f kfu/*.so
	rm -f $(VENV)/.installed $(VENV)/.built
	find kfu tests datasets benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv
	rm -rf $(VENV)
