//! Text in columns. Colours are for terminals: `anstream` takes them out elsewhere.

use crate::escape::escape;
use anstyle::{AnsiColor, Style};
use std::io::{Result, Write};

const HEAD: Style = Style::new().dimmed();

/// Longer cells are cut: `show` and `--json` have the whole text.
const WIDEST: usize = 40;

/// A text, and how it is shown.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

/// Rows under headings.
pub(crate) struct Table<const COLUMNS: usize> {
    heads: [&'static str; COLUMNS],
    rows: Vec<[Cell; COLUMNS]>,
}

impl Cell {
    pub(crate) fn plain(text: &str) -> Self {
        Self { text: fitting(text), style: Style::new() }
    }

    /// A cell that is never cut.
    pub(crate) fn whole(text: &str) -> Self {
        Self { text: escape(text), style: Style::new() }
    }

    /// How an operation's state is shown: states that need an operator stand out.
    pub(crate) fn state(standing: &str) -> Self {
        Self { style: style_of(standing), ..Self::whole(standing) }
    }
}

/// How a state is shown.
pub(crate) fn style_of(standing: &str) -> Style {
    let colour = match standing {
        standing if standing.contains("dead letter") => AnsiColor::Red,
        "unknown" => AnsiColor::Yellow,
        "in_progress" => AnsiColor::Cyan,
        "completed" => AnsiColor::Green,
        _ => return Style::new(),
    };
    colour.on_default()
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(heads: [&'static str; COLUMNS]) -> Self {
        Self { heads, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [Cell; COLUMNS]) {
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, out: &mut impl Write, indent: &str) -> Result<()> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| length(&row[column].text));
            cells.chain([length(self.heads[column])]).max().unwrap_or_default()
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        print_row(out, indent, widths, |column| (self.heads[column], HEAD))?;
        self.rows.iter().try_for_each(|row| {
            print_row(out, indent, widths, |column| (row[column].text.as_str(), row[column].style))
        })
    }
}

fn print_row<'a, const COLUMNS: usize>(
    out: &mut impl Write,
    indent: &str,
    widths: [usize; COLUMNS],
    cell: impl Fn(usize) -> (&'a str, Style),
) -> Result<()> {
    // Nothing after the last word: what is pasted elsewhere should not bring spaces along.
    let last = (0..COLUMNS).rev().find(|column| !cell(*column).0.is_empty()).unwrap_or_default();
    write!(out, "{indent}")?;
    for (column, width) in widths.into_iter().enumerate().take(last + 1) {
        let (text, style) = cell(column);
        write!(out, "{style}{text}{style:#}")?;
        if column < last {
            write!(out, "{:1$}", "", width - length(text) + 2)?;
        }
    }
    writeln!(out)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn fitting(text: &str) -> String {
    let text = escape(text);
    if length(&text) <= WIDEST {
        return text;
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_trails() {
        let mut table = Table::new(["A", "LONGER", "C"]);
        table.row([Cell::plain("wide one"), Cell::plain("x"), Cell::plain("")]);
        table.row([Cell::plain("é"), Cell::plain(""), Cell::plain("z")]);
        let mut out = anstream::StripStream::new(Vec::new());
        table.print(&mut out, "  ").unwrap();
        let printed = String::from_utf8(out.into_inner()).unwrap();
        assert_eq!(printed, "  A         LONGER  C\n  wide one  x\n  é                 z\n");
    }

    #[test]
    fn a_long_cell_is_cut_and_a_wicked_one_is_spelt_out() {
        assert_eq!(length(&fitting(&"x".repeat(100))), WIDEST);
        for cell in [Cell::plain("a\u{202e}b"), Cell::whole("a\u{202e}b"), Cell::state("a\u{202e}b")] {
            assert_eq!(cell.text, "a\\u{202e}b");
        }
    }
}
