# The two commands of the README are `make rehearse` and `make test`.

BIN   := $(CURDIR)/bin
CACHE := $(if $(BASTIDE_CACHE),$(BASTIDE_CACHE),$(HOME)/.cache/bastide)
TOOLS := $(CACHE)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
export BASTIDE_TOOLS := $(TOOLS)

FUZZTIME ?= 60s

.PHONY: build rehearse test check size unit stories torture fuzz bench bench-image tools clean

build: ## the binary, as it is released
	@mkdir -p $(BIN)
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X bastide/internal/cli.Version=$(VERSION)" -o $(BIN)/bastide ./cmd/bastide

# Rehearse the example estate from nothing: no account, no network.
rehearse: ## raise and take down examples/private on the simulated region; ARGS=--keep leaves it running
	@tools/build.sh kube-apiserver $(TOOLS)
	@$(MAKE) --no-print-directory build
	$(BIN)/bastide rehearse examples/private $(ARGS)

test: tools check size unit stories ## everything that CI runs

check: ## formatting and vet
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "these files are not gofmt'd:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...

# A binary that is fetched by every CI job of every user has a budget, in bytes.
LARGEST := 95000000

size: build ## the released binary keeps within its budget
	@n=$$(wc -c < $(BIN)/bastide); echo "bin/bastide has $$n bytes of $(LARGEST)"; test $$n -lt $(LARGEST)

# Eight at a time, because many wait for the simulated region and do not compute; three
# packages at a time for the same reason, those that take longest first.
# The tables of kills and faults of the cloud layer, a thousand lives of an estate, run
# without the race detector; with it runs the rest, the random faults among them.
CLOUD := bastide/internal/scaleway
LONGEST := bastide/internal/talos bastide/internal/sim/node bastide/internal/store bastide/internal/sim/api
unit: build ## tests near the code, with the race detector; the simulated nodes' etcd is the built binary's
	go test -parallel 8 -timeout 20m $(CLOUD)
	go test -race -parallel 8 -timeout 20m -short $(CLOUD) -rapid.checks=5
	BASTIDE=$(BIN)/bastide go test -race -p 3 -parallel 8 -timeout 30m $(LONGEST) $$(go list ./... | grep -v -e /stories -e '^$(CLOUD)$$')

stories: build ## script tests of the real binary against the simulated region
	BASTIDE=$(BIN)/bastide go test -count=1 -parallel 3 -timeout 40m -skip '^TestKilled' ./stories # they wait more than they compute
	BASTIDE=$(BIN)/bastide go test -count=1 -parallel 3 -timeout 40m -v -run '^TestKilled' ./stories # -v prints the seed and how many kills were survived

torture: build ## kill up and destroy at every change in turn, before and after it, each in a life of its own; an hour or two
	@tools/build.sh kube-apiserver $(TOOLS)
	BASTIDE=$(BIN)/bastide go test -count=1 -timeout 6h -v -run '^TestKilledAtEveryChange$$' ./stories -whole

fuzz: ## each fuzz target in turn for FUZZTIME (60s); their seeds also run with unit
	@grep -rho --include=*_test.go '^func Fuzz[A-Za-z]*' -H internal | sed 's/:func / /' | while read -r file target; do \
		echo "$$target in $$(dirname $$file)"; \
		go test ./$$(dirname $$file) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 50x -parallel 2 || exit 1; \
	done

tools: ## programs that only tests need: kube-apiserver, kubectl, talosctl, scw
	@tools/build.sh kube-apiserver kubectl talosctl scw $(TOOLS)

bench: build ## plan, up, size and start as ratios within one run; it takes about half an hour and wants an idle machine
	@tools/build.sh kube-apiserver $(TOOLS)
	go test -run '^$$' -bench . -benchmem ./internal/plan
	go run ./bench -binary $(BIN)/bastide $(ARGS)

bench-image: ## a compressed disk to a qcow2 file in a store, against zstd, qemu-img and aws; it needs these, 12 GB and an idle machine
	go run ./bench/image $(ARGS)

clean:
	rm -rf $(BIN)
