# Two commands: `make demo` shows Rollcall at work, `make test` proves it. Both set up what they need; Rust alone must be
# there already. Everything that is fetched lies in .rollcall, which is not committed.

# rustup installs here; a shell that was open before, and most CI shells, do not have it on their path.
export PATH := $(PATH):$(HOME)/.cargo/bin
# The runtime, the model, the tools and the voices, for the binary and for the tests.
export ROLLCALL_HOME := $(CURDIR)/.rollcall

.DEFAULT_GOAL := help
.PHONY: help demo test setup rust

help: ## says what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: rust ## sets up, starts the server, enrols three real voices, streams a conversation, prints who was recognised
	@scripts/setup.sh release
	@scripts/demo.sh

test: rust ## sets up, then formatting, lints and the whole suite
	@scripts/setup.sh dev
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	scripts/core-knows-nobody.sh
	cargo test --workspace
	dashboards/check.sh

setup: rust ## installs what is missing: compiler, Python, Prometheus, runtime, model, voices
	@scripts/setup.sh dev

rust:
	@scripts/rust.sh
