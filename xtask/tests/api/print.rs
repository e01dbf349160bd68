//! Items as text: what their users have to know, without bodies, private parts and documentation.

use syn::punctuated::Punctuated;
use syn::{
    Attribute, Block, Field, Fields, ImplItem, Item, ItemImpl, Token, TraitItem, Type, Visibility,
    parse_quote,
};

/// Stands for the private fields of a struct until the text is made.
const PRIVATE: &str = "private_fields: ()";

/// An item, with the attributes under which it is re-exported.
pub(crate) fn item(item: &Item, reexport: &[Attribute]) -> String {
    let mut item = item.clone();
    match &mut item {
        Item::Const(item) => {
            tidy(&mut item.attrs, reexport);
            item.expr = parse_quote!(..);
        }
        Item::Static(item) => {
            tidy(&mut item.attrs, reexport);
            item.expr = parse_quote!(..);
        }
        Item::Fn(item) => {
            tidy(&mut item.attrs, reexport);
            *item.block = empty();
            tidy_arguments(&mut item.sig);
        }
        Item::Type(item) => tidy(&mut item.attrs, reexport),
        Item::Struct(item) => {
            tidy(&mut item.attrs, reexport);
            hide_private(&mut item.fields);
        }
        Item::Enum(item) => {
            tidy(&mut item.attrs, reexport);
            for variant in &mut item.variants {
                tidy(&mut variant.attrs, &[]);
                variant.fields.iter_mut().for_each(|field| tidy(&mut field.attrs, &[]));
            }
        }
        Item::Trait(item) => {
            tidy(&mut item.attrs, reexport);
            for inner in &mut item.items {
                match inner {
                    TraitItem::Fn(inner) => {
                        tidy(&mut inner.attrs, &[]);
                        tidy_arguments(&mut inner.sig);
                        // That there is a default counts; what it does is no part of the signature.
                        inner.default = inner.default.is_some().then(empty);
                    }
                    TraitItem::Const(inner) => tidy(&mut inner.attrs, &[]),
                    TraitItem::Type(inner) => tidy(&mut inner.attrs, &[]),
                    _ => {}
                }
            }
        }
        _ => return String::new(),
    }
    let is_function = matches!(item, Item::Fn(_));
    let text = unparse(item);
    if is_function { without_bodies(&text) } else { text }
}

/// An `impl` block: public functions and constants of the type's own, or the trait's name with its types.
pub(crate) fn block(block: &ItemImpl) -> String {
    let mut block = block.clone();
    tidy(&mut block.attrs, &[]);
    let of_a_trait = block.trait_.is_some();
    block.items.retain_mut(|item| match item {
        ImplItem::Fn(item) => {
            let shown = !of_a_trait
                && matches!(item.vis, Visibility::Public(_))
                && !crate::sources::is_hidden(&item.attrs);
            tidy(&mut item.attrs, &[]);
            tidy_arguments(&mut item.sig);
            item.block = empty();
            shown
        }
        ImplItem::Const(item) => {
            let shown = !of_a_trait && matches!(item.vis, Visibility::Public(_));
            tidy(&mut item.attrs, &[]);
            item.expr = parse_quote!(..);
            shown
        }
        ImplItem::Type(item) => {
            tidy(&mut item.attrs, &[]);
            true
        }
        _ => false,
    });
    if !of_a_trait && block.items.is_empty() {
        return String::new();
    }
    without_bodies(&unparse(Item::Impl(block)))
}

/// The trait that a block is of, to sort by; empty for a type's own.
pub(crate) fn trait_name(block: &ItemImpl) -> String {
    match &block.trait_ {
        None => String::new(),
        Some(_) => unparse(Item::Impl(ItemImpl { items: Vec::new(), attrs: Vec::new(), ..block.clone() })),
    }
}

/// A name of another crate.
pub(crate) fn reexport(path: &str, attributes: &[Attribute]) -> String {
    let mut kept = attributes.to_vec();
    tidy(&mut kept, &[]);
    let mut item: syn::ItemUse = syn::parse_str(&format!("pub use {path};")).expect("a path that was parsed");
    item.attrs = kept;
    unparse(Item::Use(item))
}

/// Leaves the attributes that a user has to know, and adds those of the re-export.
fn tidy(attributes: &mut Vec<Attribute>, reexport: &[Attribute]) {
    let known = ["cfg", "deprecated", "derive", "must_use", "non_exhaustive"];
    attributes.extend(reexport.iter().cloned());
    attributes.retain(|attribute| known.iter().any(|name| attribute.path().is_ident(name)));
}

/// Arguments by their types: patterns such as `mut` are the body's.
fn tidy_arguments(signature: &mut syn::Signature) {
    for argument in &mut signature.inputs {
        match argument {
            syn::FnArg::Typed(argument) => {
                argument.attrs.clear();
                if let syn::Pat::Ident(pattern) = argument.pat.as_mut() {
                    pattern.mutability = None;
                }
            }
            syn::FnArg::Receiver(receiver) if receiver.reference.is_none() => receiver.mutability = None,
            syn::FnArg::Receiver(_) => {}
        }
    }
}

fn hide_private(fields: &mut Fields) {
    let is_private = |field: &Field| !matches!(field.vis, Visibility::Public(_));
    for field in fields.iter_mut() {
        tidy(&mut field.attrs, &[]);
    }
    match fields {
        Fields::Named(fields) => {
            let any_private = fields.named.iter().any(is_private);
            let mut shown: Punctuated<Field, Token![,]> =
                fields.named.iter().filter(|field| !is_private(field)).cloned().collect();
            if any_private {
                shown.push(parse_quote!(private_fields: ()));
            }
            fields.named = shown;
        }
        Fields::Unnamed(fields) => {
            for field in fields.unnamed.iter_mut().filter(|field| is_private(field)) {
                field.ty = Type::Infer(parse_quote!(_));
            }
        }
        Fields::Unit => {}
    }
}

fn empty() -> Block {
    parse_quote!({})
}

fn unparse(item: Item) -> String {
    let text = prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: vec![item] });
    text.replace(&format!("{PRIVATE},"), "// private fields")
}

/// Functions end where their bodies begin.
fn without_bodies(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim() == "{}" {
            let before = lines.last_mut().expect("a body follows its signature");
            *before = format!("{};", before.trim_end_matches(','));
        } else if line.ends_with(" {}") && (line.contains("fn ") || line.trim_start().starts_with(')')) {
            lines.push(format!("{};", line.trim_end_matches(" {}")));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n") + "\n"
}
