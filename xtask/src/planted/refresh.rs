//! `cargo xtask planted refresh`: brings the patches up to date with sources that have changed or moved under them.
//!
//! Each patch names the contents that it was made from. Where it does not apply any more, its change is merged into the file as it is
//! now, as a branch would be; a file that was renamed since is found by git's own record of renames.

use super::patch::{self, Patch};
use super::tree;
use crate::step::{self, Outcome};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Brings these patches, or all of them, up to date, and says which could not be.
pub(crate) fn refresh(names: &[String]) -> Outcome {
    let patches = patch::named(names)?;
    let renames = renames();
    let mut failures = Vec::new();
    for patch in &patches {
        match refreshed(patch, &renames) {
            Ok(false) => {}
            Ok(true) => println!("    {}: brought up to date", patch.name),
            Err(why) => failures.push(format!("{}: {why}", patch.name)),
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nEdit the sources by hand, and put `git diff --full-index` in the patch",
        failures.join("\n")
    ))
}

/// Whether the patch has changed.
fn refreshed(patch: &Patch, renames: &[(String, String)]) -> Result<bool, String> {
    let failed = |error: std::io::Error| format!("could not be refreshed: {error}");
    let text = fs::read_to_string(&patch.path).map_err(failed)?;
    let base = step::target().ok_or("this program does not know where it is")?.join("planted/refresh");
    let _ = fs::remove_dir_all(&base);
    let place = base.join("now");
    fs::create_dir_all(&place).map_err(failed)?;
    // A repository of its own, in which the files are as they are now, with the bug or without.
    git(&place, &["init", "--quiet"])?;
    let put = |file: &Path, contents: &[u8]| {
        fs::create_dir_all(file.parent().unwrap_or(&place)).and_then(|()| fs::write(file, contents))
    };
    let moved: Vec<(&String, String)> =
        patch.files.iter().map(|file| (file, moved_to(file, renames))).collect();
    for (_, now) in &moved {
        let contents = fs::read(step::root().join(now)).map_err(|error| format!("{now}: {error}"))?;
        put(&place.join(now), &contents).map_err(failed)?;
    }
    git(&place, &["add", "--all", "--force"])?;
    let is_where_it_was = moved.iter().all(|(file, now)| *file == now);
    if !is_where_it_was || tree::apply(patch, &place, &[]).is_err() {
        merge(patch, &text, &moved, &base)?;
    }
    let difference = git(
        &place,
        &["diff", "--full-index", "--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/"],
    )?;
    let _ = fs::remove_dir_all(&base);
    if difference.is_empty() {
        return Err("the sources have the bug already".into());
    }
    let new = format!("{}{difference}", patch::header(&text));
    if new == text {
        return Ok(false);
    }
    fs::write(&patch.path, new).map_err(failed)?;
    Ok(true)
}

/// Merges the change that the patch made of the contents it was made from.
fn merge(patch: &Patch, text: &str, moved: &[(&String, String)], base: &Path) -> Outcome {
    let [place, old, new] = ["now", "old", "new"].map(|name| base.join(name));
    for (file, _) in moved {
        let blob = blob(text, file).ok_or_else(|| format!("it does not say what {file} was"))?;
        let contents = git(&step::root(), &["cat-file", "blob", &blob])?;
        for directory in [&old, &new] {
            let path = directory.join(file);
            let made =
                path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, &contents));
            made.map_err(|error| error.to_string())?;
        }
    }
    tree::apply(patch, &new, &[])?;
    for (file, now) in moved {
        let [now, old, new] =
            [place.join(now), old.join(file), new.join(file)].map(|path: PathBuf| path.display().to_string());
        git(&place, &["merge-file", "--quiet", &now, &old, &new])
            .map_err(|_| format!("{file} has changed where the patch changes it"))?;
    }
    Ok(())
}

/// The contents that a patch was made from, by git's name for them.
fn blob(text: &str, file: &str) -> Option<String> {
    let part = text.split("diff --git ").find(|part| part.starts_with(&format!("a/{file} ")))?;
    let index = part.lines().find_map(|line| line.strip_prefix("index "))?;
    Some(index.split("..").next()?.to_owned())
}

/// Where a file is now.
fn moved_to(file: &str, renames: &[(String, String)]) -> String {
    let mut now = file.to_owned();
    // The newest renames come first.
    for (from, to) in renames.iter().rev() {
        if *from == now && !step::root().join(&now).exists() {
            now.clone_from(to);
        }
    }
    now
}

/// All renames that git knows of, the newest first.
fn renames() -> Vec<(String, String)> {
    let log = ["log", "--find-renames", "--diff-filter=R", "--name-status", "--format=", "--", "crates"];
    let told = git(&step::root(), &log).unwrap_or_default();
    let rename = |line: &str| {
        let mut words = line.split('\t').skip(1).map(str::to_owned);
        Some((words.next()?, words.next()?))
    };
    told.lines().filter_map(rename).collect()
}

fn git(place: &Path, arguments: &[&str]) -> Result<String, String> {
    let failed = |why: String| format!("git {}: {why}", arguments.join(" "));
    let mut git = Command::new("git");
    git.args(arguments).current_dir(place);
    for inherited in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(inherited);
    }
    let done = git.output().map_err(|error| failed(error.to_string()))?;
    if !done.status.success() {
        return Err(failed(String::from_utf8_lossy(&done.stderr).trim_end().to_owned()));
    }
    String::from_utf8(done.stdout).map_err(|error| failed(error.to_string()))
}
