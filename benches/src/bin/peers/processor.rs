//! How much of the processors a contender takes, with all that it stands on. Unlike its speed, it hardly depends on what else the machine
//! does meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Linux tells processor time in hundredths of a second, whatever its own clock does.
const TICK: Duration = Duration::from_millis(10);

/// What the processes and all that descend from them have taken since they began. None where the system does not tell.
pub(crate) fn time_of(processes: &[u32]) -> Option<Duration> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut ticks = BTreeMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has just ended is no longer told of.
        let Some((parent, took)) =
            fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parse)
        else {
            continue;
        };
        children.entry(parent).or_default().push(process);
        ticks.insert(process, took);
    }
    let (mut open, mut sum) = (processes.to_vec(), 0);
    while let Some(process) = open.pop() {
        sum += ticks.get(&process).copied().unwrap_or(0);
        open.extend(children.get(&process).into_iter().flatten());
    }
    Some(TICK * sum)
}

/// The parent, and the ticks as user and in the kernel: after the name, which is in brackets and may hold anything.
fn parse(stat: &str) -> Option<(u32, u32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let user: u32 = fields.nth(9)?.parse().ok()?;
    let kernel: u32 = fields.next()?.parse().ok()?;
    Some((parent, user + kernel))
}
