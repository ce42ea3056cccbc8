# Only forwards: meson.build is the build. Every target first has dev/bootstrap look for
# what it needs, which costs nothing when all is there.
#
#   make            release build: build/glovebox
#   make demo       watch an agent mend a small project; no key, no network
#   make quick      incremental sanitizer build and the quick tests, about a minute
#   make check      believe the program: a build with sanitizers, all suites, an installation
#   make check-all  beside it, for contributors: the second compiler, the cell as another user and below
#                   L3, other people's clients, linters, fuzzing
#   make bench      measurements beside peers; BENCH=warm for one group
#   make races      a link and a folder change places while each tool runs, TRIES (100000) of each
#   make agents     other people's agents from npm, sealed by `glovebox wrap`; AGENTS=DIR: where they are
#   make gate       what the command gate calls literal beside a real bash, on TEXTS (10 million) random texts
#   make coverage   which branches of the code for policies and paths the tests take: docs/coverage.md
#   make fuzz       fuzz each parser for SECONDS (60)
#   make install    PREFIX=/usr/local DESTDIR=
#   make uninstall  what an installation with the same PREFIX and DESTDIR has made, and nothing else
#   make wheel      the Python package, with the program and without: build/packages, docs/python.md
#   make harness    the adapters of the Python package with real harnesses: HARNESS=DIR of pip install --target, docs/adapters.md
#   make packages   for Debian, npm, pip, editors, a tarball and an OCI image: build/packages, docs/packages.md
#   make clean

BUILD = build
NINJA_FLAGS =
BENCH =
AGENTS = $(BUILD)/agents-sealed
SECONDS = 60
TRIES = 100000
TEXTS = 10000000
PREFIX =
DESTDIR =
export PREFIX WERROR

.PHONY: all demo quick check check-all bench races agents gate coverage fuzz harness wheel packages install uninstall clean

all:
	@dev/bootstrap build
	@dev/configure release $(BUILD) >/dev/null
	@ninja -C $(BUILD) $(NINJA_FLAGS)

demo: all
	@$(BUILD)/glovebox demo

quick:
	@dev/bootstrap build test
	@dev/check --quick

check:
	@dev/bootstrap build test
	@dev/check

check-all:
	@dev/bootstrap build test lint
	@dev/check --rest

bench: all
	@dev/bootstrap bench || true
	@ninja -C $(BUILD) bench/spawn_time bench/print_line bench/walls_alone bench/flood bench/gate bench/read_all bench/mcp_client bench/bare_agent bench/bare_mcp bench/bench-calls bench/bench-burst bench/queue_driver
	@bench/run --build $(BUILD) $(BENCH)

races: all
	@dev/bootstrap build test
	@dev/configure gcc >/dev/null
	@ninja -C build/dev glovebox tests/cell/races $(NINJA_FLAGS)
	@build/dev/tests/cell/races "$$PWD/$(BUILD)/glovebox" $(TRIES)

agents: all
	@dev/bootstrap build test agents
	@dev/npm tests/agents "$(AGENTS)"
	@tests/agents/run tests/dev $(BUILD)/glovebox "$(AGENTS)"

gate:
	@dev/bootstrap build test
	@dev/configure gcc >/dev/null
	@ninja -C build/dev tests/gate/strings $(NINJA_FLAGS)
	@build/dev/tests/gate/strings "$$PWD/tests/gate/strings.bash" $(TEXTS)

coverage:
	@dev/bootstrap build test
	@dev/coverage --write

fuzz:
	@dev/bootstrap build test lint
	@dev/fuzz $(SECONDS)

harness: all
	@test -d "$(HARNESS)" || { echo 'make harness: name the folder of pip install --target: HARNESS=DIR' >&2; exit 2; }
	@GLOVEBOX_HARNESS='$(abspath $(HARNESS))' python3 python/tests/run.py $(BUILD)/glovebox adapters

wheel: all
	@dev/package --build $(BUILD) pip

packages: all
	@dev/package --build $(BUILD)

install: all
	@DESTDIR='$(DESTDIR)' dev/install $(BUILD)

uninstall:
	@dev/bootstrap build
	@dev/configure release $(BUILD) >/dev/null
	@DESTDIR='$(DESTDIR)' dev/install --remove $(BUILD)

clean:
	rm -rf build
