//! What is wrong with a configuration, as a compiler would show it.

use crate::setting::InvalidValue;
use anstyle::{AnsiColor, Style};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Everything that is wrong with a configuration file, in the order of its lines.
///
/// `{}` shows it as plain text, `{:#}` with colours for a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigErrors {
    file: PathBuf,
    errors: Vec<ConfigError>,
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Where; `None` for what is missing from the file as a whole.
    pub place: Option<Location>,
    /// Another place that it is about: the route that this one cannot stand beside.
    pub other: Option<Location>,
    /// What is wrong, and what would be right.
    pub wrong: InvalidValue,
}

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// How many characters of the line are meant, at least 1.
    pub width: usize,
    /// The line itself, secrets redacted.
    pub text: String,
}

impl ConfigErrors {
    pub(crate) fn new(file: &Path, mut errors: Vec<ConfigError>) -> Self {
        for ConfigError { wrong, .. } in &mut errors {
            // They may repeat what the file says.
            for told in [&mut wrong.problem, &mut wrong.cure] {
                if told.contains(moves_the_cursor) {
                    *told = told.chars().map(unmoving).collect();
                }
            }
        }
        // What is missing from the file as a whole comes first.
        errors.sort_by_key(|error| error.place.as_ref().map(|place| (place.line, place.column)));
        Self { file: file.to_owned(), errors }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What is wrong, in the order of the lines.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colours = if f.alternate() { Colours::SOME } else { Colours::NONE };
        for (number, error) in self.errors.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            error.show(f, &self.file, &colours)?;
        }
        Ok(())
    }
}

struct Colours {
    error: Style,
    problem: Style,
    frame: Style,
    caret: Style,
}

impl Colours {
    const NONE: Self =
        Self { error: Style::new(), problem: Style::new(), frame: Style::new(), caret: Style::new() };
    const SOME: Self = Self {
        error: AnsiColor::Red.on_default().bold(),
        problem: Style::new().bold(),
        frame: AnsiColor::Blue.on_default().bold(),
        caret: AnsiColor::Red.on_default().bold(),
    };
}

impl ConfigError {
    fn show(&self, f: &mut fmt::Formatter<'_>, file: &Path, colours: &Colours) -> fmt::Result {
        let Colours { error, problem, frame, caret } = colours;
        let InvalidValue { problem: what, cure } = &self.wrong;
        let file = file.display();
        writeln!(f, "{error}error{error:#}{problem}: {what}{problem:#}")?;
        let Some(place) = &self.place else {
            writeln!(f, " {frame}-->{frame:#} {file}")?;
            return writeln!(f, "  {frame}={frame:#} help: {cure}");
        };
        let widest = self.other.iter().map(|other| other.line).fold(place.line, usize::max);
        let margin = " ".repeat(widest.to_string().len());
        let width = margin.len();
        for (arrow, Location { line, column, text, width: marked, .. }, before) in
            [("-->", Some(place)), (":::", self.other.as_ref())]
                .into_iter()
                .filter_map(|(arrow, place)| place.map(|place| (arrow, place, place.before_mark())))
        {
            writeln!(f, "{margin}{frame}{arrow}{frame:#} {file}:{line}:{column}")?;
            writeln!(f, "{margin} {frame}|{frame:#}")?;
            writeln!(f, "{frame}{line:<width$} |{frame:#} {text}")?;
            writeln!(f, "{margin} {frame}|{frame:#} {before}{caret}{}{caret:#}", "^".repeat(*marked))?;
        }
        writeln!(f, "{margin} {frame}={frame:#} help: {cure}")
    }
}

/// Replaces control characters that would move the cursor of a terminal, all but tabs and line ends.
fn unmoving(character: char) -> char {
    if moves_the_cursor(character) { char::REPLACEMENT_CHARACTER } else { character }
}

fn moves_the_cursor(character: char) -> bool {
    character.is_control() && !['\t', '\n'].contains(&character)
}

impl Location {
    /// The place of a part of `text`, with what is `hidden` redacted.
    pub(crate) fn find(text: &str, at: &Range<usize>, hidden: &[Range<usize>]) -> Self {
        let start = at.start.min(text.len());
        let begins = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let ends = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let whole = text[begins..ends].trim_end_matches('\r');
        let shown = whole.char_indices().map(|(offset, character)| {
            let redacted = hidden.iter().any(|span| span.contains(&(begins + offset)));
            match character {
                _ if redacted => '*',
                other => unmoving(other),
            }
        });
        let marked = text[start..at.end.clamp(start, ends)].trim_end();
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[begins..start].chars().count() + 1,
            width: marked.chars().count().max(1),
            text: shown.collect(),
        }
    }

    /// Keeps tabs, so that the mark stands below what is meant.
    fn before_mark(&self) -> String {
        let before = self.text.chars().take(self.column - 1);
        let mut space: String = before.map(|character| if character == '\t' { '\t' } else { ' ' }).collect();
        // A mark behind the end of the line, as for a quote that does not close.
        space.extend(std::iter::repeat_n(' ', (self.column - 1).saturating_sub(space.chars().count())));
        space
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_file_says_moves_the_cursor() {
        let wrong = InvalidValue::new("bell\u{7}", "up\u{1b}[A");
        let place = Location::find("a = 1\u{8}", &(0..1), &[]);
        let errors = [
            ConfigError { wrong: wrong.clone(), place: Some(place), other: None },
            ConfigError { wrong, place: None, other: None },
        ];
        for error in errors {
            let shown = ConfigErrors::new(Path::new("semel.toml"), vec![error]).to_string();
            assert!(!shown.chars().any(|character| character.is_control() && character != '\n'), "{shown:?}");
        }
    }

    #[test]
    fn a_place_is_counted_in_characters_and_keeps_tabs() {
        let place = Location::find("a = 1\n\tö = \"ü\"\r\n", &(12..16), &[]);
        assert_eq!((place.line, place.column, place.width), (2, 6, 3));
        assert_eq!((place.text.as_str(), place.before_mark().as_str()), ("\tö = \"ü\"", "\t    "));
    }

    #[test]
    fn what_goes_over_several_lines_is_marked_on_its_first() {
        let place = Location::find("x = [\n 1,\n]\n", &(4..11), &[]);
        assert_eq!((place.line, place.column, place.width), (1, 5, 1));
    }

    #[test]
    fn secrets_are_redacted_and_escapes_made_harmless() {
        let place = Location::find("t = \"abc\" # \u{1b}[2J", &(0..1), std::slice::from_ref(&(5..8)));
        assert_eq!(place.text, "t = \"***\" # \u{fffd}[2J");
    }

    #[test]
    fn the_end_of_the_text_is_a_place_too() {
        let place = Location::find("x = \"a", &(6..6), &[]);
        assert_eq!((place.line, place.column, place.width), (1, 7, 1));
        assert_eq!(place.before_mark(), "      ");
    }
}
