//! The modules of a crate, and what each path in them leads to.

use crate::source::{Contents, contents};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A module by its path from the crate's root, which is empty for the root itself.
type ModulePath = Vec<String>;

/// All modules of a crate.
pub(crate) struct Tree {
    modules: BTreeMap<ModulePath, Module>,
}

struct Module {
    contents: Contents,
    file: PathBuf,
}

/// Re-exports of re-exports are followed so far: `use` may go in a circle.
const DEEPEST: usize = 16;

impl Tree {
    /// Reads the crate whose root file this is, and all modules below it.
    pub(crate) fn read(root: &Path) -> Self {
        let mut tree = Self { modules: BTreeMap::new() };
        let folder = root.parent().expect("a file is in a folder").to_owned();
        tree.read_file(root, &folder, Vec::new());
        tree
    }

    fn read_file(&mut self, file: &Path, folder: &Path, path: ModulePath) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(contents(&parsed.items), file, folder, path);
    }

    fn add(&mut self, mut contents: Contents, file: &Path, folder: &Path, path: ModulePath) {
        for name in &contents.files {
            let child = path.iter().cloned().chain([name.clone()]).collect();
            let flat = folder.join(format!("{name}.rs"));
            let nested = folder.join(name).join("mod.rs");
            let file = if flat.exists() { flat } else { nested };
            // A module that a `#[path]` puts elsewhere is not of this folder.
            if file.exists() {
                self.read_file(&file, &folder.join(name), child);
            }
        }
        for (name, inner) in std::mem::take(&mut contents.inline) {
            let child = path.iter().cloned().chain([name.clone()]).collect();
            self.add(inner, file, &folder.join(name), child);
        }
        self.modules.insert(path, Module { contents, file: file.to_owned() });
    }

    /// Every reference from one module to what another one defines: user, used, and where.
    pub(crate) fn references(&self) -> Vec<(ModulePath, ModulePath, String)> {
        let mut references = Vec::new();
        for (from, module) in &self.modules {
            let imports = module.contents.imports.iter().map(|import| &import.path);
            for path in imports.chain(&module.contents.paths) {
                if let Some(to) = self.resolve(from, path, 0) {
                    let place = format!("{} in {}", path.join("::"), module.file.display());
                    references.push((from.clone(), to, place));
                }
            }
        }
        references
    }

    /// The module that defines what `path` means in the module `from`; `None` if it is not of this crate, or means something
    /// that a `use` of the same module names already.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let first = path.first()?;
        match first.as_str() {
            "crate" => self.descend(Vec::new(), &path[1..], depth),
            "self" => self.descend(from.to_vec(), &path[1..], depth),
            "super" => {
                let (_, parent) = from.split_last()?;
                match path.get(1).map(String::as_str) {
                    Some("super") => self.resolve(parent, &path[1..], depth),
                    _ => self.descend(parent.to_vec(), &path[1..], depth),
                }
            }
            name if self.modules.contains_key(&joined(from, name)) => {
                self.descend(from.to_vec(), path, depth)
            }
            _ => None,
        }
    }

    fn descend(&self, at: ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let Some((name, rest)) = path.split_first() else { return Some(at) };
        let below = joined(&at, name);
        if self.modules.contains_key(&below) {
            return self.descend(below, rest, depth);
        }
        let module = self.modules.get(&at)?;
        if depth >= DEEPEST || module.contents.defined.contains(name) {
            return Some(at);
        }
        let named = module.contents.imports.iter().find(|import| import.name == *name);
        if let Some(import) = named {
            let whole = import.path.iter().chain(rest).cloned().collect::<Vec<_>>();
            return self.resolve(&at, &whole, depth + 1);
        }
        let mut globs = module.contents.imports.iter().filter(|import| import.name == "*");
        let found = globs.find_map(|glob| {
            let target = self.resolve(&at, &glob.path, depth + 1)?;
            let has = |module: &Module| {
                module.contents.defined.contains(name)
                    || module.contents.imports.iter().any(|import| import.name == *name)
            };
            self.modules.get(&target).is_some_and(has).then(|| self.descend(target, path, depth + 1))
        });
        found.unwrap_or(Some(at))
    }
}

fn joined(path: &[String], name: &str) -> ModulePath {
    path.iter().cloned().chain([name.to_owned()]).collect()
}
