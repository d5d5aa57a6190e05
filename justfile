# What people type most; `just --list` shows all. The steps of the gate are in .ci/run.

# Build the program and the crate of the control plane
build:
    cargo build

# Check types, lints, decisions and each command once, in less than two minutes
check:
    .ci/run check

# Run all tests, against a real API server where they need one
test *arguments:
    cargo test {{ arguments }}

# Run the tests that need no cluster
unit:
    .ci/run unit

# Check layout, lints and dependencies
lint:
    .ci/run fmt clippy deny

# Everything that has to be right before a change is taken
ci:
    .ci/run

# Check the types for each platform of a release; rustup fetches their standard libraries
platforms:
    .ci/run all_platforms

# Ask whether a dependency has a known vulnerability; fetches the RustSec database
advisories:
    .ci/run advisories

# Show the main job against a throw-away control plane
quickstart:
    cargo run --example quickstart

# Write the completion scripts again after an update of clap_complete
completions: build
    target/debug/kubectl-applyset completion bash > completions/kubectl-applyset.bash
    target/debug/kubectl-applyset completion zsh > completions/_kubectl-applyset
    target/debug/kubectl-applyset completion fish > completions/kubectl-applyset.fish

# Make this machine's release archive and the manifest for krew: target/dist
dist:
    packaging/release dist

# Make the image from the programs in target/dist/parts/linux-{amd64,arm64}: three OCI layouts
image:
    packaging/image kubectl
    packaging/image shell
    packaging/image layouts

# Name the newest packages of Debian for the image with a shell: packaging/shell.txt
shell-packages:
    packaging/shell-packages

# Make the pages a site with search, target/dist/site, which a browser can open
site:
    packaging/release site

# Build the last commit twice, in two places, and compare the archives
reproducible:
    packaging/release reproducible

# Measure against kubectl and others on a throw-away control plane; --help lists the options
bench *options:
    cargo bench --locked --bench applyset -- {{ options }}

# Measure everything, and write it into docs/performance.md, its pictures and README.md; takes more than an hour
performance *options:
    cargo bench --locked --bench applyset -- --with kapp,helm,kpt --patience 180 --json target/performance.json --page . {{ options }}

# Write into README.md, docs/ and testdata/help what the commands and their help print
documentation:
    DOCUMENTATION=write cargo test --locked --lib cli::help
    DOCUMENTATION=write cargo test --locked --test main documentation

# Run tests against another Kubernetes release, and its kubectl: `just compatibility 1.32 suite::requests`
compatibility version *filters:
    controlplane/compatibility test {{ version }} {{ filters }}

# Write the table of the built-in kinds, after an update of Kubernetes
kubernetes-tables:
    KUBERNETES_TABLES=write cargo test --locked --test main kubernetes_tables

# Break every request of every command that writes, in every way, and print the table; takes about two hours.
# `just faults all NUMBER` leaves out so many trials, which earlier runs have made
faults which="all" skip="0":
    FAULTS={{ which }} FAULTS_SKIP={{ skip }} cargo test --profile long --test main faults::whatever -- --nocapture

# Three writers, random manifests and random faults for so many seconds
soak seconds="3600":
    SOAK_SECONDS={{ seconds }} cargo test --profile long --test main soak -- --ignored --nocapture

# Change the code of the rules in small ways, and list the changes that no unit test notices; takes hours.
# WHICH is a pattern of `FILE:LINE: CHANGE`. Needs `cargo install --locked cargo-mutants`
mutants which="":
    nice -n 15 cargo mutants --jobs 1 --re '{{ which }}' --output target
