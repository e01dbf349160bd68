//! In which form a client would rather have the contract.

use crate::headers::Accept;

/// A form in which the contract can be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Json,
    Page,
}

/// The form that suits the `Accept` lines best. Where both suit as well, or neither does, it is JSON: a browser asks for pages by name,
/// a program often for anything.
pub(super) fn preferred<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Form {
    let accept = Accept::parse(accept);
    if accept.quality("text", "html") > accept.quality("application", "json") {
        Form::Page
    } else {
        Form::Json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_the_page_and_a_program_json() {
        for (accept, form) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", Form::Page),
            ("*/*", Form::Json),
            ("", Form::Json),
            ("application/json", Form::Json),
            ("text/html", Form::Page),
            ("TEXT/HTML", Form::Page),
            ("text/*", Form::Page),
            ("text/html, application/json", Form::Json),
            ("application/json;q=0.9, text/html;q=0.8", Form::Json),
            ("application/json;q=0.8, text/html ; q=0.801", Form::Page),
            ("text/html;q=0", Form::Json),
            ("text/html;q=0, */*", Form::Json),
            ("application/json;q=0, */*;q=0.1", Form::Page),
            ("text/*;q=0.9, text/html;q=0.1, application/json;q=0.5", Form::Json),
            ("text/html;charset=utf-8;Q=1.0, application/json;q=0.9", Form::Page),
            ("image/png", Form::Json),
            ("text/html;q=2", Form::Json),
            ("text/html;q=0.1234", Form::Json),
            ("text/html;q", Form::Json),
            ("nonsense, text/html", Form::Page),
        ] {
            assert_eq!(preferred([accept.as_bytes()].into_iter()), form, "{accept}");
        }
        assert_eq!(preferred([&b"application/json;q=0.5"[..], b"text/html"].into_iter()), Form::Page);
        assert_eq!(preferred([&b"\xff"[..]].into_iter()), Form::Json);
        assert_eq!(preferred(std::iter::empty()), Form::Json);
    }
}
