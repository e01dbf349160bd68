//! A JSON text that was checked once, to be looked into and written later.

use super::pointer::{self, Pointer};
use super::scan::{self, Objects, after_space, end_of_value};
use super::string::{self, Unescaped};
use super::write::Writer;
use super::{NotCanonical, Shape, Sink};
use bytes::Bytes;

/// A JSON text that has a canonical form, with the notes of its first pass: what it holds can be looked up, and its canonical form
/// written, without another one.
///
/// ```
/// use bytes::Bytes;
/// use semel::canonical::{CheckedJson, Pointer, Value};
///
/// let text = Bytes::from_static(br#"{"order": {"key": "a\u0062c"}, "amount": 10.0}"#);
/// let checked = CheckedJson::check(text)?;
/// assert_eq!(checked.find(&Pointer::parse("/order/key")?), Some(Value::Text("abc".into())));
/// assert_eq!(checked.find(&Pointer::parse("/amount")?), Some(Value::Other));
/// assert_eq!(checked.find(&Pointer::parse("/key")?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CheckedJson {
    text: Bytes,
    objects: Objects,
}

/// What is at a place in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A string, unescaped.
    Text(String),
    /// Anything else.
    Other,
}

impl CheckedJson {
    /// Checks a text.
    ///
    /// # Errors
    /// [`NotCanonical`] where it has no canonical form.
    pub fn check(text: Bytes) -> Result<Self, NotCanonical> {
        let objects = super::readable(&text).and_then(scan::objects)?;
        Ok(Self { text, objects })
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Whether these bytes are this very text: the same memory, not only the same content.
    #[must_use]
    pub fn is_of(&self, text: &[u8]) -> bool {
        std::ptr::eq::<[u8]>(&*self.text, text)
    }

    /// Whether the text is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.text.get(after_space(&self.text, 0)) == Some(&b'{')
    }

    /// What is at a place; `None` where nothing is.
    #[must_use]
    pub fn find(&self, place: &Pointer) -> Option<Value> {
        let text = core::str::from_utf8(&self.text).ok()?;
        let bytes = text.as_bytes();
        let mut at = after_space(bytes, 0);
        for name in place.names() {
            at = match bytes.get(at)? {
                b'{' => self.member(text, at, name)?,
                b'[' => element(bytes, at, pointer::array_index(name)?)?,
                _ => return None,
            };
        }
        Some(match bytes.get(at)? {
            b'"' => Value::Text(Unescaped::at(text, at).collect()),
            _ => Value::Other,
        })
    }

    /// Writes the canonical form of what `shape` leaves of the text.
    pub fn write(&self, shape: &Shape, sink: &mut impl Sink) {
        // It was UTF-8 when it was checked.
        if let Ok(text) = core::str::from_utf8(&self.text) {
            Writer::new(text, &self.objects, shape, sink).run();
        }
    }

    /// Where the value of a member of the object at `start` begins.
    fn member(&self, text: &str, start: usize, name: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        let first = after_space(bytes, start + 1);
        let single = (bytes.get(first) == Some(&b'"')).then_some(first);
        let is_meant = |at: &usize| Unescaped::at(text, *at).eq(name.chars());
        let found = match self.objects.names_of(start) {
            Some(names) => names.iter().map(|name| *name as usize).find(is_meant),
            None => single.filter(is_meant),
        };
        Some(after_space(bytes, after_space(bytes, string::end(bytes, found?)) + 1))
    }
}

impl core::fmt::Debug for CheckedJson {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CheckedJson({} bytes)", self.text.len())
    }
}

/// Where an element of the array at `start` begins.
fn element(bytes: &[u8], start: usize, index: u32) -> Option<usize> {
    let mut at = after_space(bytes, start + 1);
    for _ in 0..index {
        at = after_space(bytes, end_of_value(bytes, at));
        if bytes.get(at) != Some(&b',') {
            return None;
        }
        at = after_space(bytes, at + 1);
    }
    (bytes.get(at) != Some(&b']')).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::canonical;

    fn checked(text: &str) -> CheckedJson {
        CheckedJson::check(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_value_is_found_wherever_it_is_and_however_its_name_is_escaped() {
        let text = r#" {"a" : [ {} , [1, "x"], "y\n" ], "b/c": {"d": "e", "~": null}, "\u006bey": "k", "\ud83d\ude00": "smile"} "#;
        let text = checked(text);
        for (pointer, value) in [
            ("/a/1/1", Some(Value::Text("x".into()))),
            ("/a/2", Some(Value::Text("y\n".into()))),
            ("/a/0", Some(Value::Other)),
            ("/a/3", None),
            ("/a/01", None),
            ("/a/0/0", None),
            ("/a/1/2", None),
            ("/b~1c/d", Some(Value::Text("e".into()))),
            ("/b~1c/~0", Some(Value::Other)),
            ("/b~1c/d/e", None),
            ("/key", Some(Value::Text("k".into()))),
            ("/\u{1F600}", Some(Value::Text("smile".into()))),
            ("/", None),
        ] {
            assert_eq!(text.find(&Pointer::parse(pointer).unwrap()), value, "{pointer}");
        }
        assert_eq!(checked("{}").find(&Pointer::parse("/a").unwrap()), None);
        assert_eq!(checked("\"{\"").find(&Pointer::parse("/a").unwrap()), None);
        assert!(checked(" {}").is_object() && !checked("[{}]").is_object());
    }

    #[test]
    fn what_was_checked_is_written_as_what_was_not() {
        for text in
            [r#"{"b": 1.0, "a": [9007199254740993, "\u20ac", {}]}"#, "[]", " null ", r#"{"x":{"y":{"z":1}}}"#]
        {
            let mut written = Vec::new();
            checked(text).write(&Shape::default(), &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), canonical(text.as_bytes()).unwrap());
        }
        for text in [&b"{"[..], b"", b"{\"a\":1,\"a\":2}", b"\xff", b"\"\\ud800\""] {
            let error = CheckedJson::check(Bytes::from_static(text)).unwrap_err();
            assert_eq!(Some(error), canonical(text).err());
        }
    }
}
