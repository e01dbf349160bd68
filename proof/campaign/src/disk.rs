//! Where a SQLite store lies: on a disk that can be filled up, or on one that loses what was not synced when the power is cut.

use crate::outcome::Outcome;
use crate::scene::Scene;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// More than the store of a round needs, and little enough to be filled in a moment.
const SMALL: &str = "size=192m";

/// What the machine that loses its power runs under: the store's own tests have it too.
const SHIM: &str = include_str!("../../../crates/semel-testing/src/shim/drop_unsynced.c");

/// The same for a disk whose syncs fail.
const FAULTY_SYNC: &str = include_str!("shim/faulty_sync.c");

/// A directory for the store's files.
pub(crate) struct Disk {
    place: PathBuf,
    kind: Kind,
}

enum Kind {
    Usual,
    /// Mounted, and gone with this value.
    Small,
    Synced {
        shim: PathBuf,
        /// What the disk would hold if the power went now.
        shadow: PathBuf,
        seed: u64,
    },
    Faulty {
        shim: PathBuf,
        /// What happens to the next syncs.
        control: PathBuf,
    },
}

impl Disk {
    /// A disk as the scene wants it, below this directory.
    pub(crate) fn new(scene: Scene, seed: u64, directory: &Path) -> Outcome<Self> {
        let place = directory.canonicalize()?.join("disk");
        fs::create_dir(&place)?;
        let kind = match scene {
            Scene::Plain | Scene::Sealed | Scene::SteppingClock => Kind::Usual,
            Scene::FaultySync => {
                let shim = compile("faulty_sync", FAULTY_SYNC, directory)?;
                let control = directory.canonicalize()?.join("sync");
                fs::write(&control, "")?;
                Kind::Faulty { shim, control }
            }
            Scene::SmallDisk => {
                let mut mount = Command::new("mount");
                run(mount.args(["-t", "tmpfs", "-o", SMALL, "semel-campaign"]).arg(&place))?;
                Kind::Small
            }
            Scene::PowerCuts => {
                let shim = compile("drop_unsynced", SHIM, directory)?;
                let shadow = directory.canonicalize()?.join("shadow");
                fs::create_dir(&shadow)?;
                Kind::Synced { shim, shadow, seed }
            }
        };
        Ok(Self { place, kind })
    }

    /// Whether small disks can be made here: only root may mount.
    pub(crate) fn can_be_small(directory: &Path) -> bool {
        Self::new(Scene::SmallDisk, 0, directory).is_ok()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.place.join("semel.db")
    }

    /// What a process that writes there has to be started with.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        if let Kind::Faulty { shim, control } = &self.kind {
            return [("LD_PRELOAD", shim), ("SHIM_SYNC", control)]
                .map(|(name, path)| (name.to_owned(), path.display().to_string()))
                .into();
        }
        let Kind::Synced { shim, shadow, seed } = &self.kind else { return Vec::new() };
        let mut settings = vec![
            ("LD_PRELOAD".to_owned(), shim.display().to_string()),
            ("SHIM_REAL".to_owned(), self.place.display().to_string()),
            ("SHIM_SHADOW".to_owned(), shadow.display().to_string()),
        ];
        // On every other machine the disk also writes what nobody has asked it to.
        if seed / 4 % 2 == 1 {
            settings.push(("SHIM_EARLY".to_owned(), seed.to_string()));
        }
        settings
    }

    /// Takes up all the room that is left, until the value is dropped.
    pub(crate) fn fill(&self) -> Outcome<Filled> {
        let filled = Filled(self.place.join("full"));
        let mut file = File::create(&filled.0)?;
        for size in [1 << 20, 1 << 12] {
            let block = vec![1; size];
            while file.write_all(&block).is_ok() {}
        }
        Ok(filled)
    }

    /// From now on syncs take this many milliseconds longer, or fail.
    pub(crate) fn trouble(&self, delay: Option<u32>) -> Outcome<()> {
        self.control(&delay.map_or("fail".to_owned(), |delay| delay.to_string()))
    }

    /// Syncs are in order again.
    pub(crate) fn untrouble(&self) -> Outcome<()> {
        self.control("")
    }

    fn control(&self, said: &str) -> Outcome<()> {
        if let Kind::Faulty { control, .. } = &self.kind {
            fs::write(control, said)?;
        }
        Ok(())
    }

    /// After the process was killed: what was not synced is gone.
    pub(crate) fn lose_the_unsynced(&self) -> Outcome<()> {
        let Kind::Synced { shadow, .. } = &self.kind else { return Ok(()) };
        for entry in fs::read_dir(&self.place)? {
            fs::remove_file(entry?.path())?;
        }
        for entry in fs::read_dir(shadow)? {
            let entry = entry?;
            fs::copy(entry.path(), self.place.join(entry.file_name()))?;
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if matches!(self.kind, Kind::Small) {
            let _ = run(Command::new("umount").arg("--lazy").arg(&self.place));
        }
    }
}

/// A full disk.
pub(crate) struct Filled(PathBuf);

impl Drop for Filled {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A library that is to be preloaded.
fn compile(name: &str, source: &str, directory: &Path) -> Outcome<PathBuf> {
    let directory = directory.canonicalize()?;
    let (file, library) = (directory.join(format!("{name}.c")), directory.join(format!("{name}.so")));
    fs::write(&file, source)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-pthread", "-o"]).args([&library, &file]).arg("-ldl");
    run(&mut compiler)?;
    Ok(library)
}

fn run(command: &mut Command) -> Outcome<()> {
    let output = command.output().map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}
