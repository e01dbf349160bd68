//! The modules of a crate with their items, and what a path in them leads to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use syn::{Attribute, Item, UseTree, Visibility};

/// A module by its path from the crate's root, which is empty for the root itself.
pub(crate) type ModulePath = Vec<String>;

/// What a path leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Found {
    Module(ModulePath),
    Item(ModulePath, String),
    Elsewhere,
}

/// All modules of a crate but those of tests.
pub(crate) struct Sources {
    pub(crate) modules: BTreeMap<ModulePath, Vec<Item>>,
}

/// One name that a `use` brings in, and the path that it stands for. `None` as the name: all names of that path.
pub(crate) struct Import {
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
}

/// Re-exports of re-exports are followed so far: `use` may go in a circle.
const DEEPEST: usize = 16;

impl Sources {
    /// Reads the crate whose root file this is.
    pub(crate) fn read(root: &Path) -> Self {
        let mut sources = Self { modules: BTreeMap::new() };
        let folder = root.parent().expect("a file is in a folder");
        sources.read_file(root, folder, Vec::new());
        sources
    }

    fn read_file(&mut self, file: &Path, folder: &Path, path: ModulePath) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(parsed.items, folder, path);
    }

    fn add(&mut self, items: Vec<Item>, folder: &Path, path: ModulePath) {
        let items: Vec<Item> = items.into_iter().filter(|item| !of_tests(attributes(item))).collect();
        for item in &items {
            let Item::Mod(module) = item else { continue };
            let name = module.ident.to_string();
            let child = [path.as_slice(), std::slice::from_ref(&name)].concat();
            match &module.content {
                Some((_, inner)) => self.add(inner.clone(), &folder.join(&name), child),
                None => {
                    let flat = folder.join(format!("{name}.rs"));
                    let nested = folder.join(&name).join("mod.rs");
                    self.read_file(if flat.exists() { &flat } else { &nested }, &folder.join(&name), child);
                }
            }
        }
        self.modules.insert(path, items);
    }

    /// What `path` leads to for code in `module`.
    pub(crate) fn resolve(&self, module: &[String], path: &[String]) -> Found {
        self.follow(module, path, DEEPEST)
    }

    fn follow(&self, module: &[String], path: &[String], depth: usize) -> Found {
        let Some((first, rest)) = path.split_first() else { return Found::Module(module.to_owned()) };
        match first.as_str() {
            "crate" => return self.follow(&[], rest, depth),
            "self" => return self.follow(module, rest, depth),
            "super" => return self.follow(&module[..module.len().saturating_sub(1)], rest, depth),
            _ => {}
        }
        let child = [module, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) {
            return self.follow(&child, rest, depth);
        }
        let Some(items) = self.modules.get(module) else { return Found::Elsewhere };
        if rest.is_empty() && items.iter().any(|item| defines(item).as_ref() == Some(first)) {
            return Found::Item(module.to_owned(), first.clone());
        }
        if depth == 0 {
            return Found::Elsewhere;
        }
        for import in items.iter().flat_map(imports) {
            match &import.name {
                Some(name) if name == first => {
                    // A crate of that name, or a module that was looked at already.
                    if import.path.first() == Some(first) && import.path.len() == 1 {
                        continue;
                    }
                    let whole = [import.path.as_slice(), rest].concat();
                    return self.follow(module, &whole, depth - 1);
                }
                None => {
                    let Found::Module(from) = self.follow(module, &import.path, depth - 1) else { continue };
                    if from != module {
                        let found = self.follow(&from, path, depth - 1);
                        if found != Found::Elsewhere {
                            return found;
                        }
                    }
                }
                Some(_) => {}
            }
        }
        Found::Elsewhere
    }
}

/// The names that an item brings in, if it is a `use`.
pub(crate) fn imports(item: &Item) -> Vec<Import> {
    let mut found = Vec::new();
    if let Item::Use(used) = item {
        flatten(&used.tree, &mut Vec::new(), &mut found);
    }
    found
}

fn flatten(tree: &UseTree, before: &mut Vec<String>, found: &mut Vec<Import>) {
    let whole = |name: &syn::Ident| {
        let name = name.to_string();
        if name == "self" { before.clone() } else { [before.as_slice(), &[name]].concat() }
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, found);
            before.pop();
        }
        UseTree::Name(name) => {
            let path = whole(&name.ident);
            found.push(Import { name: path.last().cloned(), path });
        }
        UseTree::Rename(rename) => {
            found.push(Import { name: Some(rename.rename.to_string()), path: whole(&rename.ident) });
        }
        UseTree::Glob(_) => found.push(Import { name: None, path: before.clone() }),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, found)),
    }
}

/// The name of what an item defines.
pub(crate) fn defines(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        _ => return None,
    })
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Mod(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        Item::Use(item) => &item.vis,
        _ => return false,
    };
    matches!(visibility, Visibility::Public(_))
}

/// `#[doc(hidden)]`: public for other crates of ours, and no part of the API.
pub(crate) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "hidden")
    })
}

fn of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|argument| argument == "test" || argument == "doctest")
    })
}
