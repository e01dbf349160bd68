//! What was measured on, in one sentence.

use crate::{disk, median};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Describes the machine, with the file system of this directory and what a sync takes there.
///
/// # Errors
/// A file cannot be written to the directory.
pub fn describe(directory: &Path) -> std::io::Result<String> {
    fs::create_dir_all(directory)?;
    let directory = directory.canonicalize()?;
    let trial = tempfile::tempdir_in(&directory)?;
    let sync = median(&disk::synced_appends(&trial.path().join("trial"), Duration::from_millis(500))?);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = one_of("/proc/loadavg", |text| text.split(' ').next());
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d");
    Ok(format!(
        "{cores} cores of {}, {} of memory, Linux {}, {} ({sync:.0} µs for 4 KiB appended and synced), load {load} when \
         the last part ended; {day}",
        one_of("/proc/cpuinfo", model),
        one_of("/proc/meminfo", |text| text.lines().next()?.split_whitespace().nth(1))
            .parse::<f64>()
            .map_or_else(
                |_| "unknown".into(),
                |kilobytes| format!("{:.0} GiB", kilobytes / f64::from(1 << 20))
            ),
        one_of("/proc/sys/kernel/osrelease", |text| Some(text.trim())),
        fs::read_to_string("/proc/self/mounts")
            .ok()
            .and_then(|mounts| file_system(&mounts, &directory))
            .unwrap_or_else(|| "an unknown file system".into()),
    ))
}

fn one_of(file: &str, part: fn(&str) -> Option<&str>) -> String {
    fs::read_to_string(file)
        .ok()
        .and_then(|text| part(&text).map(str::to_owned))
        .unwrap_or_else(|| "unknown".into())
}

fn model(cpuinfo: &str) -> Option<&str> {
    cpuinfo.lines().find(|line| line.starts_with("model name"))?.split(": ").nth(1)
}

/// The kind of the file system that the path is on: of the mounts that it lies below, the deepest.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = mounts.filter(|(place, _)| path.starts_with(place));
    // Of two at one place, the later one hides the earlier.
    above.max_by_key(|(place, _)| place.len()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_the_deepest_mount_above_it() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nproc /proc proc rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/tmp/bench")).as_deref(), Some("tmpfs"));
        assert_eq!(file_system(mounts, Path::new("/tmpfiles/bench")).as_deref(), Some("ext4"));
    }

    #[test]
    fn the_machine_has_a_disk_that_can_be_synced() {
        let directory = tempfile::tempdir().unwrap();
        let said = describe(directory.path()).unwrap();
        assert!(said.contains("cores of") && said.contains("appended and synced"), "{said}");
    }
}
