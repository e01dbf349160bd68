//! What is wrong with a template, and where in the file.

use super::nearest::nearest;
use crate::setting::InvalidValue;
use semel::problem::{Template, TemplateError};
use std::ops::Range;

/// What is wrong with a template, and where in the file.
pub(super) fn in_file(
    file: &str,
    value: &Range<usize>,
    text: &str,
    error: TemplateError,
) -> (Range<usize>, InvalidValue) {
    let TemplateError { at, problem, cure, unknown } = error;
    let meant = unknown.and_then(|unknown| nearest(&unknown, Template::placeholders()));
    let wrong = InvalidValue::new(problem, meant.map_or(cure, |meant| format!("did you mean {{{meant}}}?")));
    // A text with escapes is not in the file as it stands.
    let place = file[value.clone()].find(text).map(|begin| value.start + begin + at);
    (place.map_or_else(|| value.clone(), |place| place..(place + 1).min(value.end)), wrong)
}
