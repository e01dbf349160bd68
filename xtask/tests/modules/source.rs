//! What one source file says: its modules, its imports, the paths that it uses and the names that it defines.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// One name that a `use` brings into a module.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// What it is called here; `*` for all of a module.
    pub(crate) name: String,
    /// What it stands for.
    pub(crate) path: Vec<String>,
}

/// What is said directly in one module.
#[derive(Default)]
pub(crate) struct Contents {
    /// Modules in files of their own.
    pub(crate) files: Vec<String>,
    /// Modules in braces.
    pub(crate) inline: Vec<(String, Contents)>,
    /// Everything that `use` brings in.
    pub(crate) imports: Vec<Import>,
    /// Paths in code, `use` left out.
    pub(crate) paths: Vec<Vec<String>>,
    /// Names of items that are defined here.
    pub(crate) defined: Vec<String>,
}

/// Reads a file's contents; items for tests alone are left out.
pub(crate) fn contents(items: &[Item]) -> Contents {
    let mut contents = Contents::default();
    for item in items {
        if !is_test(attributes(item)) {
            contents.add(item);
        }
    }
    contents
}

impl Contents {
    fn add(&mut self, item: &Item) {
        self.defined.extend(name(item));
        match item {
            Item::Mod(module) => match &module.content {
                None => self.files.push(module.ident.to_string()),
                Some((_, items)) => self.inline.push((module.ident.to_string(), contents(items))),
            },
            Item::Use(import) => flatten(&import.tree, &mut Vec::new(), &mut self.imports),
            other => self.visit_item(other),
        }
    }
}

impl<'ast> Visit<'ast> for Contents {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        let mut imports = Vec::new();
        flatten(&import.tree, &mut Vec::new(), &mut imports);
        self.paths.extend(imports.into_iter().map(|import| import.path));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        paths_of_tokens(call.tokens.clone(), &mut self.paths);
    }
}

/// `crate::a::b` and `super::a` in what a macro is given, which has no syntax of its own.
fn paths_of_tokens(tokens: TokenStream, paths: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => path.push(ident.to_string()),
            TokenTree::Ident(ident) => {
                paths.push(std::mem::take(&mut path));
                path.push(ident.to_string());
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                colons += 1;
                continue;
            }
            TokenTree::Group(group) => {
                paths.push(std::mem::take(&mut path));
                paths_of_tokens(group.stream(), paths);
            }
            _ => paths.push(std::mem::take(&mut path)),
        }
        colons = 0;
    }
    paths.push(path);
    paths.retain(|path| path.len() > 1);
}

fn flatten(tree: &UseTree, prefix: &mut Vec<String>, imports: &mut Vec<Import>) {
    let mut import = |name: String, last: Option<String>| {
        let path = prefix.iter().cloned().chain(last).collect();
        imports.push(Import { name, path });
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, imports);
            prefix.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            import(prefix.last().cloned().unwrap_or_default(), None)
        }
        UseTree::Name(name) => import(name.ident.to_string(), Some(name.ident.to_string())),
        UseTree::Rename(rename) if rename.ident == "self" => import(rename.rename.to_string(), None),
        UseTree::Rename(rename) => import(rename.rename.to_string(), Some(rename.ident.to_string())),
        UseTree::Glob(_) => import("*".into(), None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, imports)),
    }
}

/// `#[cfg(test)]`, and `#[cfg(all(test, …))]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let text = list.tokens.to_string();
                text == "test" || (text.starts_with("all") && text.contains("test"))
            })
    })
}

fn attributes(item: &Item) -> &[Attribute] {
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
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}
