//! What a crate shows to others: everything that `pub mod` and `pub use` lead to from its root.

use crate::print;
use crate::sources::{Found, ModulePath, Sources, attributes, defines, imports, is_hidden, is_public};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, Item, ItemImpl, Type};

/// The public API as text: a section for each public module, sorted by names.
pub(crate) fn of(name: &str, sources: &Sources) -> String {
    let mut surface =
        Surface { sources, impls: impls(sources), sections: BTreeMap::new(), seen: BTreeSet::new() };
    surface.module(name, &Vec::new());
    surface.exported_macros(name);
    let mut text = String::new();
    for (path, entries) in &surface.sections {
        text.push_str(&format!("// {path}\n\n"));
        for entry in entries.values() {
            text.push_str(entry);
            text.push('\n');
        }
    }
    text.trim_end().to_owned() + "\n"
}

struct Surface<'a> {
    sources: &'a Sources,
    /// The `impl` blocks of every type of the crate.
    impls: BTreeMap<Found, Vec<&'a ItemImpl>>,
    /// By public path, then by name.
    sections: BTreeMap<String, BTreeMap<String, String>>,
    /// Modules that were shown at a path.
    seen: BTreeSet<(String, ModulePath)>,
}

impl Surface<'_> {
    fn module(&mut self, path: &str, module: &ModulePath) {
        if !self.seen.insert((path.to_owned(), module.clone())) {
            return;
        }
        let items = &self.sources.modules[module];
        for item in items.iter().filter(|item| is_public(item) && !is_hidden(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let child = [module.as_slice(), std::slice::from_ref(&name)].concat();
                    self.module(&format!("{path}::{name}"), &child);
                }
                Item::Use(used) => {
                    for import in imports(item) {
                        let found = self.sources.resolve(module, &import.path);
                        match (&import.name, found) {
                            (Some(name), Found::Module(inner)) => {
                                self.module(&format!("{path}::{name}"), &inner);
                            }
                            (Some(name), Found::Item(from, ident)) => {
                                self.item(path, name, &from, &ident, &used.attrs);
                            }
                            (None, Found::Module(inner)) => self.module(path, &inner),
                            (name, _) => {
                                let all = format!("{}::*", import.path.join("::"));
                                let whole = import.path.join("::");
                                let shown = match name {
                                    None => all,
                                    Some(name) if import.path.last() == Some(name) => whole,
                                    Some(name) => format!("{whole} as {name}"),
                                };
                                let name = name.clone().unwrap_or_else(|| shown.clone());
                                self.enter(path, &name, print::reexport(&shown, &used.attrs));
                            }
                        }
                    }
                }
                item => {
                    if let Some(name) = defines(item) {
                        self.item(path, &name, module, &name, &[]);
                    }
                }
            }
        }
    }

    /// Shows an item that is defined as `ident` in the module `from`, under this name.
    fn item(&mut self, path: &str, name: &str, from: &ModulePath, ident: &str, reexport: &[Attribute]) {
        let items = self.sources.modules[from].iter();
        let mut text = String::new();
        for item in items.filter(|item| defines(item).as_deref() == Some(ident)) {
            if is_hidden(attributes(item)) {
                continue;
            }
            if name != ident {
                text.push_str(&format!("// {ident}, as {name}\n"));
            }
            text.push_str(&print::item(item, reexport));
        }
        let found = Found::Item(from.clone(), ident.to_owned());
        let mut blocks: Vec<_> = self.impls.get(&found).into_iter().flatten().collect();
        // What it does itself first, then the traits by their names.
        blocks.sort_by_key(|block| print::trait_name(block));
        for block in blocks {
            text.push_str(&print::block(block));
        }
        self.enter(path, name, text);
    }

    fn enter(&mut self, path: &str, name: &str, text: String) {
        if !text.is_empty() {
            self.sections.entry(path.to_owned()).or_default().insert(name.to_owned(), text);
        }
    }

    /// Macros are at the root wherever they are defined.
    fn exported_macros(&mut self, path: &str) {
        for item in self.sources.modules.values().flatten() {
            let exported = attributes(item).iter().any(|attribute| attribute.path().is_ident("macro_export"));
            if let (true, Some(name)) = (exported && !is_hidden(attributes(item)), defines(item)) {
                self.enter(path, &format!("{name}!"), format!("macro {name}!\n"));
            }
        }
    }
}

fn impls(sources: &Sources) -> BTreeMap<Found, Vec<&ItemImpl>> {
    let mut impls: BTreeMap<Found, Vec<&ItemImpl>> = BTreeMap::new();
    for (module, items) in &sources.modules {
        for item in items {
            let Item::Impl(block) = item else { continue };
            let Type::Path(of) = block.self_ty.as_ref() else { continue };
            let path: Vec<_> = of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            if let found @ Found::Item(..) = sources.resolve(module, &path)
                && !is_of_a_private_trait(sources, module, block)
            {
                impls.entry(found).or_default().push(block);
            }
        }
    }
    impls
}

fn is_of_a_private_trait(sources: &Sources, module: &ModulePath, block: &ItemImpl) -> bool {
    let Some((_, of, _)) = &block.trait_ else { return false };
    let path: Vec<_> = of.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let Found::Item(from, ident) = sources.resolve(module, &path) else { return false };
    let mut items = sources.modules[&from].iter();
    !items.any(|item| defines(item).as_ref() == Some(&ident) && is_public(item))
}
