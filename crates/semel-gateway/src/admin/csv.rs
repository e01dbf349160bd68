//! CSV (RFC 4180) that no spreadsheet takes for formulas: its cells come from strangers.

/// A file as it is written, row by row.
pub(super) struct Csv {
    text: String,
    columns: usize,
}

impl Csv {
    pub(super) fn new(columns: &[&str]) -> Self {
        let mut csv = Self { text: String::new(), columns: columns.len() };
        csv.row(columns.iter().map(|name| (*name).to_owned()));
        csv
    }

    pub(super) fn row(&mut self, cells: impl Iterator<Item = String>) {
        let cells: Vec<String> = cells.take(self.columns).map(|cell| quoted(&cell)).collect();
        self.text.push_str(&cells.join(","));
        self.text.push_str("\r\n");
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// The cell in quotes. One that a spreadsheet would take for a formula gets an apostrophe in front; characters that would be seen by nobody, or
/// turn the text around, are spelt out.
fn quoted(cell: &str) -> String {
    let first = cell.trim_start_matches([' ', '\u{a0}', '\u{3000}']).chars().next();
    let is_formula = first.is_some_and(|first| {
        matches!(
            first,
            '=' | '+'
                | '-'
                | '@'
                | '\t'
                | '\r'
                | '\n'
                | '|'
                | '%'
                | '\u{ff1d}'
                | '\u{ff0b}'
                | '\u{ff0d}'
                | '\u{ff20}'
        )
    });
    let mut quoted = String::with_capacity(cell.len() + 3);
    quoted.push('"');
    if is_formula {
        quoted.push('\'');
    }
    for character in cell.chars() {
        match character {
            '"' => quoted.push_str("\"\""),
            '\n' | '\t' => quoted.push(character),
            hidden if is_hidden(hidden) => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(hidden))),
            shown => quoted.push(shown),
        }
    }
    quoted.push('"');
    quoted
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for cell in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "  =1", "\r=1", "\u{ff1d}1", "|cmd", "%0"] {
            assert!(quoted(cell).starts_with("\"'"), "{cell:?}: {}", quoted(cell));
        }
        assert_eq!(quoted("seen at the bank"), "\"seen at the bank\"");
        assert_eq!(quoted(""), "\"\"");
    }

    #[test]
    fn quotes_and_what_cannot_be_seen_are_spelt_out() {
        assert_eq!(quoted("a\"b,c\nd"), "\"a\"\"b,c\nd\"");
        assert_eq!(quoted("a\u{202e}b\0"), "\"a\\u{202e}b\\u{0}\"");
        let mut csv = Csv::new(&["a", "b"]);
        csv.row(["1".to_owned(), "x,\"y\"".to_owned()].into_iter());
        assert_eq!(csv.into_text(), "\"a\",\"b\"\r\n\"1\",\"x,\"\"y\"\"\"\r\n");
    }
}
