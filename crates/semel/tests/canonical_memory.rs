//! The memory that the worst bodies take, as the kernel counts it. A counting allocator would need unsafe code, which is forbidden here.
#![cfg(target_os = "linux")]
// The whole file is a test, which clippy sees of functions marked so alone.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use semel::canonical::{NotCanonical, Shape, Sink, write_canonical};
use std::process::{Command, Stdio};
use std::{env, fs};

const SIZE: usize = 10 << 20;

/// Counts what is written and keeps nothing.
struct Count(usize);

impl Sink for Count {
    fn write(&mut self, piece: &[u8]) {
        self.0 += piece.len();
    }
}

fn kilobytes(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A body of at least `SIZE` bytes, built without taking more memory than it has.
fn body(open: &str, close: &str, mut piece: impl FnMut(usize, &mut String)) -> String {
    let mut body = String::with_capacity(SIZE + 256);
    body.push_str(open);
    let mut index = 0;
    while body.len() < SIZE {
        if index > 0 {
            body.push(',');
        }
        piece(index, &mut body);
        index += 1;
    }
    body.push_str(close);
    body
}

fn repeated(character: char) -> String {
    let mut body = String::with_capacity(SIZE);
    body.extend(core::iter::repeat_n(character, SIZE));
    body
}

type Build = fn() -> String;

fn bodies() -> Vec<(&'static str, Build)> {
    vec![
        ("two members each", || body("[", "]", |_, out| out.push_str("{\"\":0,\"a\":0}"))),
        ("one member each", || body("[", "]", |_, out| out.push_str("{\"\":0}"))),
        ("empty objects", || body("[", "]", |_, out| out.push_str("{}"))),
        ("numbers", || body("[", "]", |_, out| out.push('1'))),
        ("short names", || body("{", "}", |index, out| out.push_str(&format!("\"{index:x}\":0")))),
        ("names in reverse", || {
            body("{", "}", |index, out| out.push_str(&format!("\"{:07x}\":0", (1 << 28) - 1 - index)))
        }),
        ("the same name", || body("{", "}", |_, out| out.push_str("\"\":0"))),
        ("escapes", || body("[", "]", |_, out| out.push_str(&format!("\"{}\"", "\\u0041".repeat(30))))),
        ("one number", || repeated('7')),
        ("open brackets", || repeated('[')),
    ]
}

/// Canonicalises one body and says how many times its size that took.
fn measure(name: &str, body: &str) -> f64 {
    // Resets the peak to what is in use now.
    if let Err(error) = fs::write("/proc/self/clear_refs", "5") {
        println!("SKIPPED: the peak of memory cannot be reset here: {error}");
        return 0.0;
    }
    let before = kilobytes("VmRSS:");
    let mut count = Count(0);
    let result = write_canonical(body.as_bytes(), &Shape::default(), &mut count);
    let taken = kilobytes("VmHWM:").saturating_sub(before) * 1024;
    match name {
        "the same name" => assert!(matches!(result, Err(NotCanonical::DuplicateMember { .. }))),
        "open brackets" => assert!(matches!(result, Err(NotCanonical::TooDeep { .. }))),
        _ => assert_eq!(result, Ok(())),
    }
    taken as f64 / body.len() as f64
}

// Each body is measured in a process of its own: memory that an earlier one gave back to the allocator, but the
// allocator not to the kernel, would hide what a later one takes. The process is this same test, told which body.
#[test]
fn the_worst_bodies_of_ten_megabytes_take_at_most_four_times_their_size() {
    const CHOICE: &str = "SEMEL_TEST_BODY";
    if let Ok(choice) = env::var(CHOICE) {
        let (name, body) = bodies().into_iter().find(|(name, _)| *name == choice).unwrap();
        let times = measure(name, &body());
        println!("{name}: {times:.2} times the body");
        assert!(times <= 4.0, "{name}");
        return;
    }
    let processes: Vec<_> = bodies()
        .into_iter()
        .map(|(name, _)| {
            let process = Command::new(env::current_exe().unwrap())
                .args(["--nocapture", "the_worst_bodies"])
                .env(CHOICE, name)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            (name, process)
        })
        .collect();
    for (name, process) in processes {
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        println!(
            "{}",
            said.lines()
                .filter(|line| line.contains(" the body") || line.contains("SKIPPED"))
                .collect::<String>()
        );
        assert!(output.status.success(), "{name}: {said}");
    }
}
