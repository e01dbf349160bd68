# What there is to do here. Everything is a cargo command underneath: `just` only saves typing.

# list everything
[private]
default:
    @just --list --unsorted

# everything that must pass: format, lints, no_std, tests, documentation; edits nothing
verify:
    cargo xtask test

# the tests of one crate, or of these the ones with NAME in their name; servers start when one is asked for
test crate *name:
    cargo xtask test {{crate}} {{name}}

# the tests that need no server, without those of semel-cli
quick:
    cargo xtask test --quick

# format, and let clippy repair what it can; edits files
fix:
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
    cargo fmt --all

# the whole thing on one machine, case by case (`just demo --once` ends after the walk)
demo *args:
    cargo run --release -- demo {{args}}

# build the documentation as a book, with search, into target/book
book:
    cargo xtask book

# measure everything, or one part: store, layer, gateway, reaper, outbox, growth (`just bench --quick` for a trial)
bench *args:
    cargo xtask bench {{args}}

# the instructions that the pure parts take, against their limits (`just counts --write` updates the limits)
counts *args:
    cargo xtask counts {{args}}

# write the public API of the libraries down (crates/*/api.txt), which a test compares
api:
    cargo xtask api

# the proofs that take longer than a test may: campaign (the default), model, simulate, fuzz, check, planted
prove *args:
    cargo xtask prove {{args}}

# licences, duplicate versions and sources of all dependencies (needs cargo-deny)
deny:
    cargo deny check
