//! What of a text counts: members left out, members that alone count, members filled in, texts in a normal form.

use super::pointer::{self, PointerError};
use super::{NormalForm, NotCanonical, canonical, string};

/// Rules by JSON Pointer (RFC 6901), applied while the canonical form is written. By default everything counts.
///
/// - *ignore*: the value counts as absent.
/// - *only*: where there are such pointers, nothing else counts but these values and the containers on the way to them.
///   Where something else than a container stands in the way, it counts as it is: a rule never makes two texts equal on
///   account of a structure that it did not foresee.
/// - *defaults*: where the parent is an object and has no such member, it counts as having it.
/// - *normal forms*: a text counts in its [normal form](NormalForm), and a default that is a text does too.
///
/// A pointer goes through arrays by index. Values left out of an array close ranks.
#[derive(Clone, Debug)]
pub struct Shape {
    /// A tree by the names of the pointers; the root is the first.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// In the order of names, so that defaults merge with the members of an object as they are written.
    children: Vec<(String, usize)>,
    /// The children whose names are array indexes, in the order of these.
    elements: Vec<(u32, usize)>,
    ignore: bool,
    only: bool,
    /// Some node below is `only`.
    leads_to_only: bool,
    /// Canonical JSON.
    default: Option<String>,
    form: Option<NormalForm>,
}

impl Default for Shape {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl Shape {
    /// The rules by pointer; the defaults are JSON texts.
    ///
    /// # Errors
    /// [`ShapeError`] if a pointer is invalid, or rules conflict with each other.
    pub fn new<'a>(
        ignore: impl IntoIterator<Item = &'a str>,
        only: impl IntoIterator<Item = &'a str>,
        defaults: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ShapeError> {
        let mut shape = Self::default();
        for pointer in ignore {
            let node = shape.node(pointer)?;
            shape.nodes[node].ignore = true;
        }
        for pointer in only {
            let node = shape.node(pointer)?;
            shape.nodes[node].only = true;
        }
        for (pointer, text) in defaults {
            let text = canonical(text.as_bytes())
                .map_err(|source| ShapeError::Default { pointer: pointer.into(), source })?;
            let node = shape.node(pointer)?;
            shape.nodes[node].default = Some(text);
        }
        shape.check()?;
        Ok(shape)
    }

    /// The same rules, and the normal forms of texts by pointer.
    ///
    /// # Errors
    /// [`ShapeError`] if a pointer is invalid, or rules conflict with each other.
    pub fn normalise<'a>(
        mut self,
        forms: impl IntoIterator<Item = (&'a str, NormalForm)>,
    ) -> Result<Self, ShapeError> {
        for (pointer, form) in forms {
            let node = self.node(pointer)?;
            self.nodes[node].form = Some(form);
        }
        self.check()?;
        for node in &mut self.nodes {
            let (Some(form), Some(text)) = (node.form, &node.default) else { continue };
            if text.starts_with('"') {
                let mut written = Vec::with_capacity(text.len());
                form.write(text, 0, &mut written);
                node.default = String::from_utf8(written).ok();
            }
        }
        Ok(self)
    }

    /// The node of a pointer, created if it does not exist.
    fn node(&mut self, pointer: &str) -> Result<usize, ShapeError> {
        let mut at = 0;
        for token in pointer::tokens(pointer)? {
            let found = search(&self.nodes[at].children, token.chars());
            at = match found {
                Ok(index) => self.nodes[at].children[index].1,
                Err(index) => {
                    let new = self.nodes.len();
                    self.nodes.push(Node::default());
                    let parent = &mut self.nodes[at];
                    if let Some(element) = pointer::array_index(&token) {
                        let place = parent.elements.partition_point(|(other, _)| *other < element);
                        parent.elements.insert(place, (element, new));
                    }
                    parent.children.insert(index, (token, new));
                    new
                }
            };
        }
        Ok(at)
    }

    fn check(&mut self) -> Result<(), ShapeError> {
        // A child is made after its parent, so going backwards meets every child first.
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let leads = node.children.iter().any(|(_, child)| {
                let child = &self.nodes[*child];
                child.only || child.leads_to_only
            });
            let container = node.default.as_ref().is_some_and(|text| text.starts_with(['{', '[']));
            let conflict = if node.ignore
                && (node.only || node.default.is_some() || node.form.is_some() || !node.children.is_empty())
            {
                Some("it is ignored, and another rule applies to it or to a part of it")
            } else if node.only && leads {
                Some("all of it counts already, and another rule selects a part of it")
            } else if container && !node.children.is_empty() {
                Some("its default is an object or an array, and another rule applies to a part of it")
            } else if node.form.is_some() && (container || !node.children.is_empty()) {
                Some("it has the normal form of a text, and another rule takes it for an object or an array")
            } else {
                None
            };
            if let Some(conflict) = conflict {
                return Err(ShapeError::Conflict { pointer: self.pointer_of(at), conflict });
            }
            self.nodes[at].leads_to_only = leads;
        }
        Ok(())
    }

    fn pointer_of(&self, node: usize) -> String {
        let mut tokens = Vec::new();
        let mut at = node;
        while let Some((parent, token)) = self.nodes.iter().enumerate().find_map(|(parent, candidate)| {
            candidate.children.iter().find(|(_, child)| *child == at).map(|(token, _)| (parent, token))
        }) {
            tokens.push(format!("/{}", token.replace('~', "~0").replace('/', "~1")));
            at = parent;
        }
        tokens.iter().rev().map(String::as_str).collect()
    }

    /// What counts of the whole text.
    pub(super) fn root(&self) -> Scope {
        let root = &self.nodes[0];
        Scope { node: (!root.children.is_empty()).then_some(0), taken: !root.leads_to_only }
    }

    /// What counts of a member; `None` where it does not count.
    pub(super) fn member(&self, scope: Scope, name: impl Iterator<Item = char> + Clone) -> Option<Scope> {
        let child = scope.node.and_then(|node| {
            let children = &self.nodes[node].children;
            search(children, name).ok().map(|index| children[index].1)
        });
        self.enter(scope, child)
    }

    /// What counts of an element of an array; `None` where it does not count.
    pub(super) fn element(&self, scope: Scope, index: u32) -> Option<Scope> {
        let child = scope.node.and_then(|node| {
            let elements = &self.nodes[node].elements;
            elements.binary_search_by_key(&index, |(element, _)| *element).ok().map(|found| elements[found].1)
        });
        self.enter(scope, child)
    }

    fn enter(&self, scope: Scope, child: Option<usize>) -> Option<Scope> {
        let Some(index) = child else {
            return scope.taken.then_some(Scope { node: None, taken: true });
        };
        let child = &self.nodes[index];
        if child.ignore || !(scope.taken || child.only || child.leads_to_only) {
            return None;
        }
        Some(Scope { node: Some(index), taken: scope.taken || child.only })
    }

    /// The form in which a text counts.
    pub(super) fn form(&self, scope: Scope) -> Option<NormalForm> {
        self.nodes[scope.node?].form
    }

    /// The first default from the child `from` on that counts in an object: its place, name and canonical value.
    pub(super) fn default_from(&self, scope: Scope, from: usize) -> Option<(usize, &str, &str)> {
        let children = &self.nodes[scope.node?].children;
        children.iter().enumerate().skip(from).find_map(|(place, (name, child))| {
            let text = self.nodes[*child].default.as_deref()?;
            self.enter(scope, Some(*child)).map(|_| (place, name.as_str(), text))
        })
    }
}

fn search(children: &[(String, usize)], name: impl Iterator<Item = char> + Clone) -> Result<usize, usize> {
    children.binary_search_by(|(child, _)| string::order(child.chars(), name.clone()))
}

/// Where in the rules a value is.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    node: Option<usize>,
    /// The value counts as a whole, not only what pointers lead to.
    taken: bool,
}

/// Why a set of rules is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A rule's JSON Pointer is not valid.
    #[error(transparent)]
    Pointer(#[from] PointerError),
    /// A default that is not JSON, or has no canonical form.
    #[error("the default for \"{pointer}\" must be a JSON text, such as \"\\\"EUR\\\"\" or \"0\": {source}")]
    Default {
        /// The pointer as given.
        pointer: String,
        /// What is wrong with it.
        source: NotCanonical,
    },
    /// Two rules that contradict each other, or of which one would have no effect.
    #[error("the rules for \"{pointer}\" conflict: {conflict}")]
    Conflict {
        /// The outer one of the two.
        pointer: String,
        /// In what way.
        conflict: &'static str,
    },
}
