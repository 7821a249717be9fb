# make demo   build shield, and show what it decides about six example actions
# make test   every test, and at the end which were skipped and why
#             (RACE=-race: with the race detector, but for those in which it has nothing to find)
# make hosts  installs the agent hosts that the npm registry has, tries shield in each, and writes docs/hosts.md
# make hostcheck  what the newest packages of these hosts name that shield's files of them lack; 2.5 GB once
# make hosttimes   how long each of these hosts waits for shield, and nothing else; four minutes on a quiet machine
# make mcp    installs two MCP servers and the protocol's conformance suite from the npm registry, and calls them through shield mcp
# make mcpbench   what shield mcp adds to a call, beside the same call without it, calls a second, and memory over 100,000
# make tier2  Tier 2 against a trained model, which pip installs into build/ (ten minutes once)
# make trace  every listed form of 580 programs under strace, compared with what is predicted
# make corpora CORPORA=DIR   what the model changes about labelled rows, by cause, and that it clears only what it may
# make tasks  recorded tasks of agents, with and without seeded attacks, public incidents, and files that are written and then run; needs ../shared
# make compare BASE=COMMIT   every recorded action, session and task with that build and this one: what differs, by cause
# make load   what the service answers a second, how long 200 clients wait beside clients that misbehave, and how long one action takes by
#             socket, hook, Python, Node, and with a store
# make bench  Go benchmarks, and whole processes beside the commit before (or BASE=COMMIT)
# make release VERSION=v0.1.0 KEY=FILE   every file of a release, in dist, from the last commit, signed with the secret key in FILE
#             (PASSWORD_FILE=FILE: its password; VERSION=v0.0.0 TEST_KEY=1: to try the packages, with a key that proves nothing)
# make try    installs what dist has for this machine, each package into a folder of its own, and runs its first example
# make reproduce VERSION=v0.1.0 KEY=FILE   the same once more with empty caches, compared with dist
# make typing 200 streams of typing at questions in bash, zsh and a raw terminal
# make generate docs runtime   rebuild what is generated and committed

GO ?= go
.PHONY: build demo tasks compare test hosts hosttimes hostcheck mcp mcpbench tier2 trace corpora efficacy typing load bench bench-gate generate runtime docs fuzz release try reproduce check

# The flags of "go install .", so that each finds what the other has compiled.
build:
	$(GO) build -o build/shield .

demo: build
	@build/shield demo

# SHARED has the recorded tasks; figures are compared only with the same TASKS_HOME, which is emptied
SHARED ?= ../shared
TASKS_HOME ?= /home/tdev
tasks: build
ifeq ($(wildcard $(SHARED)/tasks/tasks.jsonl),)
	@echo 'make tasks is skipped: $(SHARED) has no recorded tasks'
else
	$(GO) build -o build/measure ./measure
	build/measure -home $(TASKS_HOME) -shared $(SHARED) tasks
	build/measure -home $(TASKS_HOME) -shared $(SHARED) -seed 300 tasks
	build/measure -home $(TASKS_HOME) -shared $(SHARED) write-then-run
	build/shield demo incidents --dir /tmp || true
endif

compare: build
	@BASE=$(BASE) testdata/compare.sh build/shield -home $(TASKS_HOME) -shared $(SHARED)

# Four packages at a time, since some wait for terminals; the time limit is for a machine that does much besides.
# ALLOW=FILE lists the reasons for which a test may be skipped; with it, any other skip is a failure.
# AGAIN=N: up to N tests that failed are run once more, alone; see internal/runtests.
# RACE=-race: processes end at once, rather than wait a second for goroutines that the detector may still find.
TEST = $(GO) run ./internal/runtests $(if $(ALLOW),-allow $(ALLOW)) $(if $(AGAIN),-again $(AGAIN)) -vet=off -shuffle=on -p 4 -timeout 40m
test:
	$(GO) vet ./...
ifeq ($(RACE),)
	$(TEST) ./...
else
	GORACE=atexit_sleep_ms=10 $(TEST) $(RACE) -skip '^($(PLAIN))$$' ./...
	$(TEST) -run '^($(PLAIN))$$' $(PLAIN_PACKAGES)
endif

# Tests that judge much, one thing after another. The race detector makes them five times as long and has nothing to find
# that it does not find in others: RACE=-race runs these without it. No other test has the name of one of them.
PLAIN_cmd = TestServedHook TestHostileRecordsAlone TestGoldenHook TestNoSecretLeaves TestExplainCauses TestExplainDoubts TestHostileModel
PLAIN_bundle = TestHostileBundles TestUnpackedIsBounded TestBuildRefuses
PLAIN_classify = TestEveryAlternative TestHostileScores TestOwnModel TestWindowsOfDefault TestEstimateOfDefault TestNoModelClears
PLAIN_policy = TestReachIsSound TestBoundIsNotCaught TestCaseTables TestSameAsJQ
PLAIN_score = TestSessionFiles
PLAIN_shield = TestContextRows TestContextSequences
PLAIN_PACKAGES = ./cmd ./pkg/bundle ./pkg/classify ./pkg/policy ./pkg/score ./pkg/shield
PLAIN = $(subst $() ,|,$(strip $(PLAIN_cmd) $(PLAIN_bundle) $(PLAIN_classify) $(PLAIN_policy) $(PLAIN_score) $(PLAIN_shield)))

# takes half an hour; the tests of every day take a few streams
TYPING ?= 200
typing:
	SHIELD_TYPING=$(TYPING) $(GO) test -run 'TestTyping' -timeout 3h -v ./e2e

# 2.5 GB once, then 15 minutes; ONLY names one host, which alone is installed
ONLY ?= .*
hosts: TESTS = TestHosts/^($(ONLY))$$
hosttimes: TESTS = ^TestHosts$$/^($(ONLY))$$/^measured$$
hosts hosttimes:
	mkdir -p build/hosts
	test -d build/hosts/node || npm install --prefix build/hosts/node --no-audit --no-fund node@24
	grep -E '^($(ONLY)|server-.*) ' e2e/hosts/packages.txt | while read -r name package; do \
		test -d build/hosts/$$name || PATH="$$PWD/build/hosts/node/node_modules/node/bin:$$PATH" npm install --prefix build/hosts/$$name --no-audit --no-fund "$$package" || exit; \
	done
	uptime
	SHIELD_HOSTS=$$PWD/build/hosts SHIELD_HOSTS_DOC=$$PWD/docs/hosts.md $(GO) test -run '$(TESTS)' -count=1 -timeout 2h -v ./e2e/hosts

# The newest release of each, in place of an older one; what make hosts has installed is taken if it is the newest.
hostcheck:
	mkdir -p build/hosts build/hostcheck
	test -d build/hosts/node || npm install --prefix build/hosts/node --no-audit --no-fund node@24
	PATH="$$PWD/build/hosts/node/node_modules/node/bin:$$PATH" e2e/hosts/newest.sh build/hosts build/hostcheck '$(ONLY)'
	SHIELD_HOSTCHECK=$$PWD/build/hostcheck $(GO) test -run 'TestHostCheck/^($(ONLY))$$' -count=1 -v ./e2e/hosts

mcp:
	test -d build/mcp || npm install --prefix build/mcp --no-audit --no-fund @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem @modelcontextprotocol/conformance@0.2.0-alpha.12 node@22
	SHIELD_MCP=$$PWD/build/mcp $(GO) test -count=1 -v ./e2e/mcp

mcpbench: build
	uptime
	SHIELD_BIN=$$PWD/build/shield $(GO) test -run '^$$' -bench 'Added|Load' -benchtime 2000x ./e2e/mcp
	$(GO) test -run '^$$' -bench 'Call|Serve' ./pkg/gateway
	SHIELD_CALLS=100000 $(GO) test -count=1 -run 'TestMemory' -v ./e2e/mcp
	uptime

# SPAN=10m for longer, ACTIONS=1000000 for the memory after as many
load: build
	uptime
	$(GO) test -run '^$$' -bench 'RemoteAdmit|Charge' ./pkg/state
	SHIELD_BIN=$$PWD/build/shield SHIELD_LOAD=$(or $(SPAN),1m) SHIELD_ACTIONS=$(ACTIONS) $(GO) test -count=1 -timeout 30m -v ./e2e/service
	uptime

trace:
	SHIELD_TRACE=1 $(GO) test -run 'TestPrograms' -timeout 30m -v ./pkg/shell

corpora:
	SHIELD_CORPORA=$(abspath $(CORPORA)) $(GO) test -count=1 -run 'TestCorpora' -timeout 1h -v ./pkg/shield ./pkg/sanitize

# SETS: the folders of the sets that are not of the repository
efficacy: build
	python3 training/report.py --renew docs/efficacy.md $(SETS)

# JUDGE=yes also examines a model of 1.5 billion weights (1.1 GB, an hour); see docs/tier2.md
tier2: build
	testdata/evaluate/trained.sh build/shield
	test -z '$(JUDGE)' || testdata/evaluate/judge.sh build/shield

bench: build
	@testdata/bench.sh build/shield

# fails if anything takes more than 10 % longer than with BASE, the commit before
bench-gate: build
	@GATE=yes testdata/bench.sh build/shield

generate:
	$(GO) generate ./...

# the libraries in internal/ortlib/lib, from the npm package and the Go module
runtime:
	cd internal/ortlib && $(GO) run ./gen

docs:
	$(GO) run . docs .

# each fuzz target for FUZZTIME, then SCRIPTS scripts in each shell, then WRAPS attacks in shell forms, beside the program BASE if one is named
WRAPS ?= 200000
FUZZTIME ?= 5s
SCRIPTS ?= 100000
fuzz: build
	@testdata/fuzz.sh $(FUZZTIME) $(SCRIPTS)
	SHIELD_SEED=new $(GO) test -vet=off -count=1 -run AreConserved -v ./pkg/shield
	$(GO) run ./measure -shared $(SHARED) -home $(TASKS_HOME) -rows $(WRAPS) $(if $(BASE),-base $(BASE),-extra '--model none') wrapped

# The C compiler for every target, of a known sum, from PyPI.
build/zig: release/zig.txt
	rm -rf $@
	pip install --quiet --root-user-action=ignore --no-deps --require-hashes --target $@ -r $<
	touch $@

# TARGETS names targets of release/release.yaml, with commas between them
DIST ?= dist
IMAGE ?= true
KEY ?=
PASSWORD_FILE ?=
TEST_KEY ?=
release: build/zig
	$(GO) -C release run . -version "$(VERSION)" -to "$(abspath $(DIST))" -zig $(CURDIR)/build/zig/ziglang/zig -only "$(TARGETS)" -image=$(IMAGE) \
		$(if $(KEY),-key "$(abspath $(KEY))") $(if $(PASSWORD_FILE),-password-file "$(abspath $(PASSWORD_FILE))") $(if $(TEST_KEY),-test-key)

# installs what dist has for this machine
try:
	release/try.sh $(DIST)

reproduce:
	rm -rf build/again build/again-cache
	GOCACHE=$(CURDIR)/build/again-cache ZIG_GLOBAL_CACHE_DIR=$(CURDIR)/build/again-cache/zig $(MAKE) release DIST=build/again
	cmp $(DIST)/SHA256SUMS build/again/SHA256SUMS

check:
	bash .ci/run
