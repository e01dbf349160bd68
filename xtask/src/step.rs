//! One step: a heading, a command that runs in the workspace's root, the time it took.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a step went; the message is for the person who has to act on it.
pub(crate) type Outcome = Result<(), String>;

/// What is off by default and has tests, or examples, of its own. The same for every step, so that none builds it all again.
pub(crate) const FEATURES: [&str; 2] = [
    "--features",
    "semel-tower/postgres,semel-events/postgres,semel-events/sqlite,semel-events/nats,semel-events/rabbitmq,semel-cli/fail-points",
];

/// The workspace's root. Cargo says at run time where this crate is; without cargo, where it was when it was built.
pub(crate) fn root() -> PathBuf {
    let here =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
    let here = PathBuf::from(here);
    here.parent().map_or_else(|| here.clone(), Path::to_owned)
}

/// Where cargo builds: this program is `TARGET/debug/xtask`.
pub(crate) fn target() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.ancestors().find(|place| place.ends_with("debug"))?.parent()?.to_owned())
}

/// The cargo that runs us, and with it the same toolchain, target directory and settings.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    cargo.args(arguments).current_dir(root());
    // What cargo tells this program about its own package. Crates whose build scripts look at it (`ring` does) would be built again
    // whenever somebody changes between `cargo build` and `cargo xtask`.
    for (name, _) in env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|beginning| name.starts_with(beginning))
        });
        if told {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs the command under a heading; what it prints goes straight through.
pub(crate) fn run(name: &str, command: &mut Command) -> Outcome {
    let shown = shown(command);
    timed(name, &shown, || match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: `{shown}` failed ({status}); what it printed above says why")),
        Err(error) => Err(format!("{name}: `{shown}` could not be started: {error}")),
    })
}

/// Runs the command without a heading, and drops what it prints.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Does the work under a heading and says how long it took.
pub(crate) fn timed(name: &str, what: &str, work: impl FnOnce() -> Outcome) -> Outcome {
    println!("\n{} {what}", in_bold(&format!("==> {name}:")));
    let start = Instant::now();
    work()?;
    println!("    {name}: ok in {}", seconds(start.elapsed()));
    Ok(())
}

pub(crate) fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    if whole < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

/// The command as one would type it: the program without its path, and what is set for it alone.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let settings = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}='{}' ", name.display(), value?.display())))
        .collect::<String>();
    let words = std::iter::once(program.file_name().unwrap_or(program.as_os_str())).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    format!("{settings}{}", words.join(" "))
}

pub(crate) fn in_bold(text: &str) -> String {
    styled(text, "1", stdout().is_terminal())
}

/// For what goes to the standard error.
pub(crate) fn in_red(text: &str) -> String {
    styled(text, "31", stderr().is_terminal())
}

fn styled(text: &str, style: &str, terminal: bool) -> String {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !unwanted { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_with_its_status() {
        let mut command = cargo(["no-such-command", "-q"]);
        let failure = run("impossible", command.stderr(Stdio::null())).unwrap_err();
        assert!(
            failure.starts_with("impossible: `cargo no-such-command -q` failed (exit status: 101)"),
            "{failure}"
        );
    }

    #[test]
    fn a_command_is_shown_with_what_is_set_for_it() {
        assert_eq!(
            shown(cargo(["doc"]).env("RUSTDOCFLAGS", "-D warnings")),
            "RUSTDOCFLAGS='-D warnings' cargo doc"
        );
    }

    #[test]
    fn the_root_is_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
    }

    #[test]
    fn long_times_are_in_minutes() {
        assert_eq!(seconds(Duration::from_millis(1_250)), "1.2 s");
        assert_eq!(seconds(Duration::from_millis(61_900)), "1 min 1 s");
    }
}
