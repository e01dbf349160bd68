//! The copy of the sources in which bugs are planted: `TARGET/planted/tree`, built into `TARGET/planted/build`.
//!
//! It stays from run to run, and only files that differ are written, so that cargo builds again what a patch changed and nothing else.
//! Crates of other people are the same in both: what cargo built of them for the tests is linked into the copy's own directory.

use super::patch::Patch;
use crate::step::{self, Outcome};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The copy, while nobody else uses it.
pub(crate) struct Tree {
    sources: PathBuf,
    copy: PathBuf,
    build: PathBuf,
    /// What cargo built for the tests.
    built: PathBuf,
    _lock: File,
}

impl Tree {
    /// Brings the copy up to date with the sources, and waits while another run uses it.
    pub(crate) fn open() -> Result<Self, String> {
        let failed = |error: io::Error| format!("the copy of the sources could not be made: {error}");
        let target = step::target().ok_or("this program does not know where it is")?;
        let place = target.join("planted");
        fs::create_dir_all(&place).map_err(failed)?;
        let lock = File::create(place.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let place = fs::canonicalize(&place).map_err(failed)?;
        let tree = Self {
            sources: step::root(),
            copy: place.join("tree"),
            build: place.join("build"),
            built: target.join("debug"),
            _lock: lock,
        };
        fs::create_dir_all(&tree.copy).map_err(failed)?;
        tree.update(&target).map_err(failed)?;
        tree.link_third_party().map_err(failed)?;
        Ok(tree)
    }

    /// Where the copy is.
    pub(crate) fn root(&self) -> &Path {
        &self.copy
    }

    /// The cargo that works on the copy.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut cargo = step::cargo(arguments);
        cargo.current_dir(&self.copy).env("CARGO_TARGET_DIR", &self.build);
        cargo
    }

    /// Does the work with the bug in the copy, and takes it out again.
    pub(crate) fn with<T>(
        &self,
        patch: &Patch,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let read = |file: &String| Ok((self.copy.join(file), fs::read(self.copy.join(file))?));
        let originals: io::Result<Vec<(PathBuf, Vec<u8>)>> = patch.files.iter().map(read).collect();
        let originals = originals.map_err(|error| format!("{}: {error}", patch.name))?;
        apply(patch, &self.copy, &[])?;
        let done = work();
        for (file, original) in originals {
            // Written again, with the time of now and not its old one: cargo would take the program with the bug for up to date.
            fs::write(&file, original)
                .map_err(|error| format!("{} could not be restored: {error}", file.display()))?;
        }
        done
    }

    fn update(&self, target: &Path) -> io::Result<()> {
        let mut files = BTreeSet::new();
        collect(&self.sources, Path::new(""), target, &mut files)?;
        let mut there = BTreeSet::new();
        collect(&self.copy, Path::new(""), target, &mut there)?;
        for file in there.difference(&files) {
            fs::remove_file(self.copy.join(file))?;
            // A directory that is left empty would be a member of the workspace without a manifest.
            let _not_empty =
                file.ancestors().skip(1).try_for_each(|parent| fs::remove_dir(self.copy.join(parent)));
        }
        for file in &files {
            let (from, to) = (self.sources.join(file), self.copy.join(file));
            let new = fs::read(&from)?;
            if fs::read(&to).is_ok_and(|old| old == new) {
                continue;
            }
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(to, new)?;
        }
        Ok(())
    }

    /// Links what was built of third-party crates: the libraries, and what cargo notes of them. A build of the copy finds it fresh, as
    /// neither the path nor the time of a crate from a registry counts.
    fn link_third_party(&self) -> io::Result<()> {
        let own = self.own_packages()?;
        let is_own = |name: &str| {
            // `semel_tower-0123456789abcdef`
            let package = name.rsplit_once('-').map_or(name, |(package, _)| package).replace('_', "-");
            own.contains(&package)
        };
        let to = self.build.join("debug");
        for entry in entries(&self.built.join("deps"))? {
            let name = entry.file_name();
            let Some(library) = name.to_str().and_then(|name| name.strip_prefix("lib")) else { continue };
            let is_library = Path::new(&name).extension().and_then(OsStr::to_str);
            if !matches!(is_library, Some("rlib" | "rmeta" | "so" | "dylib")) || is_own(library) {
                continue;
            }
            fs::create_dir_all(to.join("deps"))?;
            link(&entry.path(), &to.join("deps").join(&name))?;
        }
        for part in ["build", ".fingerprint"] {
            for entry in entries(&self.built.join(part))? {
                let name = entry.file_name();
                let place = to.join(part).join(&name);
                if !place.exists() && !name.to_str().is_none_or(is_own) {
                    copy_all(&entry.path(), &place)?;
                }
            }
        }
        Ok(())
    }

    fn own_packages(&self) -> io::Result<HashSet<String>> {
        let mut files = BTreeSet::new();
        collect(&self.copy, Path::new(""), &self.build, &mut files)?;
        let manifests = files.into_iter().filter(|file| file.file_name() == Some(OsStr::new("Cargo.toml")));
        let mut names = HashSet::new();
        for manifest in manifests {
            let text = fs::read_to_string(self.copy.join(manifest))?;
            let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }
}

/// Runs `git apply` on the patch below a directory, which does not have to be in a repository.
pub(crate) fn apply(patch: &Patch, place: &Path, options: &[&str]) -> Outcome {
    let failed = |why: &str| format!("{} does not apply: {}", patch.path.display(), why.trim_end());
    let mut git = Command::new("git");
    git.arg("apply").args(options).arg(&patch.path).current_dir(place);
    // In a directory below that of a repository, git would leave out what is not below it, without a word.
    git.env("GIT_CEILING_DIRECTORIES", place.parent().unwrap_or(place));
    for inherited in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(inherited);
    }
    let applied = git.output().map_err(|error| failed(&error.to_string()))?;
    if applied.status.success() {
        return Ok(());
    }
    Err(failed(&String::from_utf8_lossy(&applied.stderr)))
}

/// The files of a tree of sources: what cargo builds, and what git keeps, left out.
fn collect(root: &Path, below: &Path, target: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let below = below.join(&name);
        if !entry.file_type()?.is_dir() {
            files.insert(below);
        } else if name != ".git" && path != target && !path.join("CACHEDIR.TAG").exists() {
            collect(root, &below, target, files)?;
        }
    }
    Ok(())
}

/// What is in a directory; nothing if it is not there.
fn entries(place: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(place) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A second name for the same file; a copy where there can be none.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        return Ok(());
    }
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}

/// Copies a directory, with the times of its files: cargo compares them.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to)?;
            File::options().write(true).open(&to)?.set_modified(entry.metadata()?.modified()?)?;
        }
    }
    Ok(())
}
