//! Every target over its corpus, and over inputs that chance, made of a seed, makes of the corpus. No fuzzer is needed for it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::{fs, thread};

/// Inputs that are made of the corpus, per target.
const MUTATIONS: usize = 5_000;
/// The longest of them.
const LONGEST: usize = 4_096;

fn replay(name: &str) {
    let (_, target) = semel_fuzz::TARGETS.iter().find(|(own, _)| *own == name).unwrap();
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "the corpus of {name} is empty");
    // Deep nesting is read by recursion in the second implementation.
    let thread = thread::Builder::new().stack_size(64 << 20);
    let thread = thread.spawn(move || {
        corpus.iter().for_each(|input| run(*target, input));
        let mut chance = fastrand::Rng::with_seed(7);
        for _ in 0..MUTATIONS {
            run(*target, &mutated(&corpus, &mut chance));
        }
    });
    thread.unwrap().join().unwrap_or_else(|panic| resume_unwind(panic));
}

fn run(target: fn(&[u8]), input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!("the input was b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// One of the corpus, with a few things changed: a byte, a piece left out, a piece of another one put in.
fn mutated(corpus: &[Vec<u8>], chance: &mut fastrand::Rng) -> Vec<u8> {
    let mut input = corpus[chance.usize(..corpus.len())].clone();
    for _ in 0..chance.usize(1..6) {
        let at = chance.usize(..=input.len());
        let end = input.len().min(at + chance.usize(..12));
        match chance.u8(..4) {
            0 if at < input.len() => input[at] ^= 1 << chance.u8(..8),
            1 => drop(input.drain(at..end)),
            2 => input.insert(at, chance.u8(..)),
            _ => {
                let other = &corpus[chance.usize(..corpus.len())];
                let from = chance.usize(..=other.len());
                let to = other.len().min(from + chance.usize(..40));
                input.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
    input.truncate(LONGEST);
    input
}

#[test]
fn keys_are_read_as_the_rules_say() {
    replay("key");
}

#[test]
fn canonical_json_and_fingerprints_are_those_of_a_second_implementation() {
    replay("canonical");
}

#[test]
fn hosts_media_types_forms_and_parts_are_those_of_a_second_implementation() {
    replay("content");
}

#[test]
fn header_fields_pass_as_the_rules_say() {
    replay("headers");
}

#[test]
fn the_framing_guard_reads_strictly_and_the_library_agrees() {
    replay("framing");
}

#[cfg(feature = "records")]
#[test]
fn records_come_back_or_are_damaged() {
    replay("records");
}

#[cfg(feature = "config")]
#[test]
fn a_configuration_is_right_or_told_what_is_wrong() {
    replay("config");
}

#[test]
fn webhooks_are_believed_by_their_signature_alone() {
    replay("webhook");
}

#[test]
fn tokens_are_believed_as_the_rules_say() {
    replay("jwt");
}
