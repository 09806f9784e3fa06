# Everything here needs Go and nothing else, but race, which needs a C compiler too.
# The tools are pinned in tools/go.mod and built by the first call.

export CGO_ENABLED = 0

GO       ?= go
TOOL      = $(GO) tool -modfile=tools/go.mod
FUZZTIME ?= 10s
BENCH    ?= .
COUNT    ?= 1
MODELTIME ?= 2h
SEED     ?= 0
# Leaves out what urfave/cli needs to print manual pages, which costs every start half a millisecond.
TAGS      = -tags urfave_cli_no_docs
TARGETS   = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: build test race lint fmt fuzz bench cross crash model demo ci

build: ## bin/reasonix
	$(GO) build -trimpath $(TAGS) -o bin/ ./cmd/reasonix

test: ## the whole suite, script tests included
	$(GO) test ./...

# Left out is what one goroutine does over and over, where there is nothing to find: the loops that
# fail or cut off every call, and those about memory. Of the packages in ONERACE, whose tests are such
# loops, or start some thousand processes, or a browser, only those are run that do things side by side.
NORACE = 'PowerCut|Fault|Crash|ClosedFolder|FuzzPlan|EveryKind|WriteFails|Memory|ManyContents|KeepsWhatItPromises|GrowingConversation|ForksRepeat|Large'
ONERACE = ./blob ./export ./internal/bench ./internal/retain ./internal/serve/browser ./cmd/...
SIDEBYSIDE = 'AtOnce|Beside|Leases|GoOn|HostileFiles|RunInterrupted|TwoTabs|PlainCalls'

race: ## the suite with the race detector; long loops take fewer rounds or are left out
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m -skip $(NORACE) \
		$$($(GO) list ./... | grep -vxF "$$($(GO) list $(ONERACE))")
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m -run $(SIDEBYSIDE) $(ONERACE)

lint: ## style, layers, formatting
	$(TOOL) golangci-lint run ./...

fmt: ## format in place
	$(TOOL) golangci-lint fmt ./...

fuzz: ## every fuzz target for FUZZTIME
	GO="$(GO)" FUZZTIME="$(FUZZTIME)" .ci/fuzz

bench: ## BENCH=regexp COUNT=n; compare two outputs with: go tool -modfile=tools/go.mod benchstat OLD NEW
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

cross: ## bin/reasonix-OS-ARCH for every system
	@set -e; for t in $(TARGETS); do \
		os=$${t%/*}; arch=$${t#*/}; exe=; if [ $$os = windows ]; then exe=.exe; fi; \
		echo "build $$t"; \
		GOOS=$$os GOARCH=$$arch $(GO) build -trimpath $(TAGS) -o bin/reasonix-$$os-$$arch$$exe ./cmd/reasonix; \
	done

crash: ## faults at every call, kills at every step and 200 at random times, 16 processes or 54 HTTP clients at once
	REASONIX_KILLS=200 REASONIX_LOAD=20 REASONIX_CLIENTS=30 $(GO) test -run 'Kill|Crash|Fault|ManyProcesses|ManyClients' -count=1 ./...

model: ## 200,000 steps of the model test from SEED on, or what is played in MODELTIME
	REASONIX_MODEL_STEPS=200000 REASONIX_MODEL_SEED=$(SEED) REASONIX_MODEL_TIME=$(MODELTIME) \
		$(GO) test -run '^TestModel$$' -count=1 -timeout 3h -v ./rewind

demo: build ## record, rewind, undo, fork in a folder of its own
	bin/reasonix demo

ci: ## what must pass before a merge
	.ci/run
