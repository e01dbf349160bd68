//! The second pass: writes a checked text in canonical order, reading it again as it goes.

use super::scan::{self, Objects, after_space};
use super::shape::{Scope, Shape};
use super::string::{self, Unescaped};
use super::{Sink, number};
use core::cmp::Ordering;

/// A container that is being written.
enum Frame<'a> {
    Array { scope: Scope, next: usize, index: u32, written: bool },
    Object(Object<'a>),
}

struct Object<'a> {
    scope: Scope,
    names: Names<'a>,
    /// Where the value that ends last in the text ends; the object ends after it.
    last: usize,
    /// The place in the rules from which defaults are still to be written.
    default: usize,
    written: bool,
}

/// Where the names of the members that are still to be written start.
enum Names<'a> {
    Noted(&'a [u32]),
    Single(usize),
    None,
}

pub(super) struct Writer<'a, S> {
    text: &'a str,
    objects: &'a Objects,
    shape: &'a Shape,
    sink: &'a mut S,
    open: Vec<Frame<'a>>,
}

impl<'a, S: Sink> Writer<'a, S> {
    pub(super) fn new(text: &'a str, objects: &'a Objects, shape: &'a Shape, sink: &'a mut S) -> Self {
        Self { text, objects, shape, sink, open: Vec::new() }
    }

    /// Writes the whole text.
    pub(super) fn run(mut self) {
        let bytes = self.text.as_bytes();
        self.value(after_space(bytes, 0), self.shape.root());
        while let Some(frame) = self.open.pop() {
            match frame {
                Frame::Array { scope, next, index, written } => self.element(scope, next, index, written),
                Frame::Object(object) => self.member(object),
            }
        }
    }

    /// Writes the value at `at`, or opens it if it is a container.
    fn value(&mut self, at: usize, scope: Scope) {
        let bytes = self.text.as_bytes();
        let end = match bytes.get(at) {
            Some(b'[') => {
                self.sink.write(b"[");
                self.open.push(Frame::Array { scope, next: at + 1, index: 0, written: false });
                return;
            }
            Some(b'{') => {
                self.sink.write(b"{");
                let inside = after_space(bytes, at + 1);
                let names = match self.objects.names_of(at) {
                    Some(names) => Names::Noted(names),
                    None if bytes.get(inside) == Some(&b'"') => Names::Single(inside),
                    None => Names::None,
                };
                self.open.push(Frame::Object(Object {
                    scope,
                    names,
                    last: inside,
                    default: 0,
                    written: false,
                }));
                return;
            }
            Some(b'"') => match self.shape.form(scope) {
                None => string::write(self.text, at, self.sink),
                Some(form) => form.write(self.text, at, self.sink),
            },
            Some(b'-' | b'0'..=b'9') => number::write(bytes, at, self.sink),
            _ => {
                let end = scan::end_of_value(bytes, at);
                self.sink.write(&bytes[at.min(end)..end]);
                end
            }
        };
        self.ended(end);
    }

    /// Tells the container that one of its values ended at `end`.
    fn ended(&mut self, end: usize) {
        match self.open.last_mut() {
            Some(Frame::Array { next, .. }) => *next = end,
            Some(Frame::Object(object)) => object.last = object.last.max(end),
            None => {}
        }
    }

    fn element(&mut self, scope: Scope, next: usize, index: u32, written: bool) {
        let bytes = self.text.as_bytes();
        let mut at = after_space(bytes, next);
        if bytes.get(at) == Some(&b',') {
            at = after_space(bytes, at + 1);
        }
        if matches!(bytes.get(at), Some(b']') | None) {
            self.sink.write(b"]");
            self.ended(at + 1);
            return;
        }
        let counts = self.shape.element(scope, index);
        let frame = |written| Frame::Array { scope, next: at, index: index.saturating_add(1), written };
        match counts {
            Some(inner) => {
                if written {
                    self.sink.write(b",");
                }
                self.open.push(frame(true));
                self.value(at, inner);
            }
            None => {
                self.open.push(frame(written));
                self.ended(scan::end_of_value(bytes, at));
            }
        }
    }

    fn member(&mut self, mut object: Object<'a>) {
        let (text, shape) = (self.text, self.shape);
        let name = match &mut object.names {
            Names::Noted([first, rest @ ..]) => {
                let first = *first as usize;
                object.names = Names::Noted(rest);
                first
            }
            Names::Single(name) => {
                let name = *name;
                object.names = Names::None;
                name
            }
            Names::Noted([]) | Names::None => {
                while let Some((place, name, value)) = shape.default_from(object.scope, object.default) {
                    self.fill_in(&mut object, place, name, value);
                }
                self.sink.write(b"}");
                self.ended(after_space(text.as_bytes(), object.last) + 1);
                return;
            }
        };
        while let Some((place, default, value)) = shape.default_from(object.scope, object.default) {
            match string::order(default.chars(), Unescaped::at(text, name)) {
                Ordering::Less => self.fill_in(&mut object, place, default, value),
                Ordering::Equal => object.default = place + 1,
                Ordering::Greater => break,
            }
        }
        let bytes = text.as_bytes();
        let value_after = |name| after_space(bytes, after_space(bytes, name) + 1);
        match shape.member(object.scope, Unescaped::at(text, name)) {
            Some(inner) => {
                self.separate(&mut object);
                let end = string::write(text, name, self.sink);
                self.sink.write(b":");
                self.open.push(Frame::Object(object));
                self.value(value_after(end), inner);
            }
            None => {
                self.open.push(Frame::Object(object));
                self.ended(scan::end_of_value(bytes, value_after(string::end(bytes, name))));
            }
        }
    }

    fn fill_in(&mut self, object: &mut Object<'a>, place: usize, name: &str, value: &str) {
        self.separate(object);
        string::write_plain(name, self.sink);
        self.sink.write(b":");
        self.sink.write(value.as_bytes());
        object.default = place + 1;
    }

    fn separate(&mut self, object: &mut Object<'a>) {
        if object.written {
            self.sink.write(b",");
        }
        object.written = true;
    }
}
