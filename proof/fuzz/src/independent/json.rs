//! JSON (RFC 8259) as a tree, by recursive descent.

use super::decimal::Decimal;

/// A value. Members are in the order of the text, doubles included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Decimal),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value of a text, if it is JSON in UTF-8, every surrogate has its other half, and it is nested `levels` deep at most.
    pub(crate) fn parse(text: &[u8], levels: usize) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut reader = Reader { characters: text.chars().collect(), at: 0 };
        let value = reader.value(levels)?;
        reader.space();
        (reader.at == reader.characters.len()).then_some(value)
    }

    /// The last member of this name, as those read it who do not mind two.
    pub(crate) fn last(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// Whether somewhere in it an object has two members of one name.
    pub(crate) fn has_twins(&self) -> bool {
        match self {
            Self::Array(items) => items.iter().any(Self::has_twins),
            Self::Object(members) => {
                let mut names: Vec<&String> = members.iter().map(|(name, _)| name).collect();
                names.sort();
                names.windows(2).any(|pair| pair[0] == pair[1])
                    || members.iter().any(|(_, value)| value.has_twins())
            }
            _ => false,
        }
    }

    /// Whether all of its numbers have an exponent that the canonical form can spell.
    pub(crate) fn has_spellable_numbers(&self) -> bool {
        match self {
            Self::Number(number) => number.is_spellable(),
            Self::Array(items) => items.iter().all(Self::has_spellable_numbers),
            Self::Object(members) => members.iter().all(|(_, value)| value.has_spellable_numbers()),
            _ => true,
        }
    }

    /// The canonical form: RFC 8785, and numbers that no double prints as with their exact value.
    pub(crate) fn write(&self, text: &mut String) {
        match self {
            Self::Null => text.push_str("null"),
            Self::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => text.push_str(&number.canonical()),
            Self::String(string) => write_string(string, text),
            Self::Array(items) => {
                text.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    item.write(text);
                }
                text.push(']');
            }
            Self::Object(members) => {
                let mut members: Vec<&(String, Self)> = members.iter().collect();
                members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<u16>>());
                text.push('{');
                for (at, (name, value)) in members.into_iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    write_string(name, text);
                    text.push(':');
                    value.write(text);
                }
                text.push('}');
            }
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{08}' => text.push_str("\\b"),
            '\u{09}' => text.push_str("\\t"),
            '\u{0a}' => text.push_str("\\n"),
            '\u{0c}' => text.push_str("\\f"),
            '\u{0d}' => text.push_str("\\r"),
            control if u32::from(control) < 0x20 => {
                text.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

struct Reader {
    characters: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn takes(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|next| " \t\n\r".contains(next)) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Option<Json> {
        word.chars().all(|letter| self.takes(letter)).then_some(value)
    }

    fn value(&mut self, levels: usize) -> Option<Json> {
        self.space();
        match self.peek()? {
            'n' => self.word("null", Json::Null),
            't' => self.word("true", Json::Bool(true)),
            'f' => self.word("false", Json::Bool(false)),
            '"' => self.string().map(Json::String),
            '[' => self.array(levels.checked_sub(1)?),
            '{' => self.object(levels.checked_sub(1)?),
            _ => self.number(),
        }
    }

    fn array(&mut self, levels: usize) -> Option<Json> {
        self.takes('[');
        let mut items = Vec::new();
        self.space();
        if self.takes(']') {
            return Some(Json::Array(items));
        }
        loop {
            items.push(self.value(levels)?);
            self.space();
            if self.takes(']') {
                return Some(Json::Array(items));
            }
            if !self.takes(',') {
                return None;
            }
        }
    }

    fn object(&mut self, levels: usize) -> Option<Json> {
        self.takes('{');
        let mut members = Vec::new();
        self.space();
        if self.takes('}') {
            return Some(Json::Object(members));
        }
        loop {
            self.space();
            let name = self.string()?;
            self.space();
            if !self.takes(':') {
                return None;
            }
            members.push((name, self.value(levels)?));
            self.space();
            if self.takes('}') {
                return Some(Json::Object(members));
            }
            if !self.takes(',') {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        if !self.takes('"') {
            return None;
        }
        // In UTF-16, where two escapes that make one character need no special care.
        let mut units: Vec<u16> = Vec::new();
        loop {
            match self.take()? {
                '"' => return String::from_utf16(&units).ok(),
                '\\' => {
                    let unit = match self.take()? {
                        '"' => u16::from(b'"'),
                        '\\' => u16::from(b'\\'),
                        '/' => u16::from(b'/'),
                        'b' => 8,
                        'f' => 12,
                        'n' => 10,
                        'r' => 13,
                        't' => 9,
                        'u' => self.hexadecimal()?,
                        _ => return None,
                    };
                    units.push(unit);
                }
                control if control < ' ' => return None,
                plain => units.extend(plain.encode_utf16(&mut [0; 2]).iter()),
            }
        }
    }

    fn hexadecimal(&mut self) -> Option<u16> {
        let digits: String = (0..4).filter_map(|_| self.take()).collect();
        let plain = digits.len() == 4 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
        if plain { u16::from_str_radix(&digits, 16).ok() } else { None }
    }

    fn number(&mut self) -> Option<Json> {
        let negative = self.takes('-');
        let integer = self.digits();
        if integer.is_empty() || (integer.len() > 1 && integer.starts_with('0')) {
            return None;
        }
        let mut fraction = String::new();
        if self.takes('.') {
            fraction = self.digits();
            if fraction.is_empty() {
                return None;
            }
        }
        let mut exponent = None;
        if self.takes('e') || self.takes('E') {
            let below_one = self.takes('-');
            if !below_one {
                self.takes('+');
            }
            exponent = Some((below_one, self.digits())).filter(|(_, digits)| !digits.is_empty());
            exponent.as_ref()?;
        }
        let exponent = exponent.as_ref().map(|(below_one, digits)| (*below_one, digits.as_str()));
        Some(Json::Number(Decimal::new(negative, &integer, &fraction, exponent)))
    }

    fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some(digit @ '0'..='9') = self.peek() {
            digits.push(digit);
            self.at += 1;
        }
        digits
    }
}
