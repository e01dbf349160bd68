//! The contract as a page. Everything that comes from the configuration is escaped; nothing is loaded from elsewhere.

use super::document::{Document, Error, Fingerprint, KeyLength, Operation};
use crate::setting::{duration_in_words, show_size};
use semel::canonical::NormalForm;
use semel::key::KeySyntax;
use semel::problem::Code;
use std::fmt::{self, Write as _};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

pub(super) fn page(document: &Document) -> String {
    fill(TEMPLATE, |slot| match slot {
        "style" => STYLE.to_owned(),
        "places" => places(&document.key.sources),
        "example" => example(document),
        "key" => key(document),
        "operations_intro" => operations_intro(document),
        "operations" => document.operations.iter().map(row).collect(),
        "answers" => answers(document),
        "tenant" => document.tenant.rules.iter().map(|rule| format!("<p>{}</p>\n", Text(rule))).collect(),
        "profile" => Text(&document.profile).to_string(),
        "content_type" => Text(&document.format.content_type).to_string(),
        "refusal" => Text(&document.format.example).to_string(),
        "errors" => document.errors.iter().map(error).collect(),
        _ => String::new(),
    })
}

/// Puts into each `{{slot}}` what `content` says. What was put in is not looked at again.
fn fill(template: &str, content: impl Fn(&str) -> String) -> String {
    let mut page = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (slot, after) = after.split_once("}}").unwrap_or((after, ""));
        page.push_str(before);
        page.push_str(&content(slot));
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Text that shows as it is, in content and in attributes.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

fn example(document: &Document) -> String {
    let operation = document.operations.first();
    let method = operation.and_then(|operation| operation.methods.first()).map_or("POST", String::as_str);
    let path = operation.and_then(|operation| operation.path.as_deref()).unwrap_or("/payments");
    let key = &document.key.example;
    let lines = match &document.key.header {
        Some(header) => {
            format!("{method} {path} HTTP/1.1\n{header}: {key}\nContent-Type: application/json\n\n{{ … }}")
        }
        None => format!("{method} {path} HTTP/1.1\nContent-Type: application/json\n\n{{ … \"{key}\" … }}"),
    };
    Text(&lines).to_string()
}

/// Where a key may be, as HTML.
fn places(sources: &[String]) -> String {
    let place = |source: &String| match source.split_once(':') {
        Some(("json", pointer)) => format!("the string at {} in the JSON body", code(pointer)),
        Some((_, "idempotency-key")) => code("Idempotency-Key"),
        Some((_, header)) => code(header),
        None => code(source),
    };
    sources.iter().map(place).collect::<Vec<_>>().join(", or as ")
}

fn key(document: &Document) -> String {
    let key = &document.key;
    let form = match key.syntax {
        KeySyntax::Lenient => {
            "as it is, or in double quotes as a structured-field string; both name the same key"
        }
        KeySyntax::Structured => "in double quotes, as a structured-field string",
        KeySyntax::Opaque => "as it is; quotes belong to it",
    };
    format!(
        "{} to {} characters, {} without spaces, sent {form}. Example: <code>{}</code>",
        key.min_length,
        key.max_length,
        Text(key.characters),
        Text(&key.example)
    )
}

const ACROSS_OPERATIONS: &str = "One key names one request across all operations: under the key of another operation, a request is refused \
                                 as another one. <code>{name}</code> stands for one segment of a path, <code>**</code> for all that follow. \
                                 Of several that match, the most specific one applies: segment by segment, a literal beats \
                                 <code>{name}</code>, and <code>{name}</code> beats <code>**</code>.";

fn operations_intro(document: &Document) -> String {
    let for_all = document.operations.iter().find(|operation| operation.path.is_none());
    match for_all.map(|operation| operation.key) {
        _ if document.operations.iter().all(|operation| operation.key_scope == "tenant") => {
            ACROSS_OPERATIONS.into()
        }
        Some("required") => "Every POST and PATCH is protected and needs a key. Each path is an operation of its own.".into(),
        Some(_) => "Every POST and PATCH that brings a key is protected; without one it is passed on as it is. Each path is an operation \
                    of its own."
            .into(),
        None => "A key counts within its operation: the same key in two operations is two keys. <code>{name}</code> stands for one \
                 segment of the path, <code>**</code> for all that follow. Of several that match, the most specific one applies: segment \
                 by segment, a literal beats <code>{name}</code>, and <code>{name}</code> beats <code>**</code>. The query does not \
                 matter for the choice, but counts for the comparison."
            .into(),
    }
}

fn row(operation: &Operation) -> String {
    let name = match &operation.operation {
        Some(name) => format!("<code>{}</code>", Text(name)),
        None => "each path its own".into(),
    };
    let request =
        format!("{} {}", operation.methods.join(", "), operation.path.as_deref().unwrap_or("any path"));
    let in_flight = match operation.wait {
        Some(wait) => format!("waits up to {}, then {}", duration_in_words(wait), operation.in_flight_status),
        None if operation.in_flight == "accepted" => {
            "202 with Retry-After, also while the outcome is unknown".into()
        }
        None => format!("{} with Retry-After", operation.in_flight_status),
    };
    let window = duration_in_words(operation.window);
    format!(
        "<tbody>\n<tr><th scope=\"row\">{name}</th><td><code>{}</code></td><td>{}</td><td>{window}</td><td>{in_flight}</td></tr>\n\
         <tr class=\"more\"><td colspan=\"5\">{}.</td></tr>\n</tbody>\n",
        Text(&request),
        operation.key,
        remarks(operation).join("; ")
    )
}

/// What else is worth knowing of an operation, each as HTML.
fn remarks(operation: &Operation) -> Vec<String> {
    let bytes = |bytes| show_size(u64::try_from(bytes).unwrap_or(u64::MAX));
    let mut remarks = vec![format!("Request bodies up to {}", bytes(operation.max_request_body_bytes))];
    remarks.push(match operation.stored_response {
        "reference" => "answers are not kept, only the resource that was created".into(),
        _ => format!("answers up to {} are kept", bytes(operation.max_stored_response_bytes)),
    });
    if operation.body_window < operation.window {
        remarks.push(format!("their bodies for {}", duration_in_words(operation.body_window)));
    }
    remarks.push(match (operation.expired, duration_in_words(operation.tombstone)) {
        ("new", _) => "an expired key is a new operation".into(),
        (_, tombstone) => format!("an expired key is refused for another {tombstone}"),
    });
    remarks.push(format!("the outcome is unknown after {}", duration_in_words(operation.timeout)));
    if !operation.kept_headers.is_empty() {
        remarks.push(format!("{} is kept too", codes(&operation.kept_headers)));
    }
    match operation.key_scope {
        "tenant" => remarks.push("a key names one request across all operations that say so".into()),
        "path" => remarks.push("a key names one request of each path".into()),
        _ => {}
    }
    if let Some(sources) = &operation.key_sources {
        remarks.push(format!("the key is sent as {}", places(sources)));
    }
    if let Some(KeyLength { min, max }) = &operation.key_length {
        remarks.push(format!("keys have {min} to {max} characters"));
    }
    remarks.extend(comparison(&operation.fingerprint));
    remarks.extend(operation.outcomes.iter().map(|(status, outcome)| format!("{status} means {outcome}")));
    remarks
}

/// How requests are compared, where it is not as usual.
fn comparison(fingerprint: &Fingerprint) -> Vec<String> {
    let mut remarks = Vec::new();
    if !fingerprint.counted.is_empty() {
        remarks.push(format!("of a JSON body only {} counts", codes(&fingerprint.counted)));
    }
    if !fingerprint.ignored.is_empty() {
        remarks.push(format!("of a JSON body {} does not count", codes(&fingerprint.ignored)));
    }
    for (pointer, value) in &fingerprint.defaults {
        remarks.push(format!(
            "of a JSON body {} counts as {} where it is absent",
            code(pointer),
            code(value.get())
        ));
    }
    for (pointer, form) in &fingerprint.normalised {
        let spelling = match form {
            NormalForm::Lowercase => "without regard to case (A to Z)",
            NormalForm::Decimal => "by its value as a decimal",
            NormalForm::Timestamp => "by its instant",
            // Every normal form has a name.
            other => other.as_str(),
        };
        remarks.push(format!("of a JSON body the text {} is compared {spelling}", code(pointer)));
    }
    if fingerprint.bytes {
        remarks.push("the body is compared byte by byte, whatever its type".into());
    }
    if !fingerprint.headers.is_empty() {
        remarks.push(format!("the header {} counts", codes(&fingerprint.headers)));
    }
    if !fingerprint.host {
        remarks.push("the host that it is sent to does not count".into());
    }
    remarks
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", Text(text))
}

fn codes(texts: &[String]) -> String {
    texts.iter().map(|text| code(text)).collect::<Vec<_>>().join(", ")
}

fn answers(document: &Document) -> String {
    let status = |code: Code| {
        let found = document.errors.iter().find(|error| error.code == code);
        found.map_or(String::new(), |error| {
            format!("{} <a href=\"#{code}\"><code>{code}</code></a>", error.status)
        })
    };
    let first_unknown = document.errors.iter().find_map(|error| error.first_status).unwrap_or_default();
    let lines = [
        "<strong>A retry of a finished request</strong> gets the same status, body and kept headers, with \
         <code>Idempotent-Replayed: true</code>. Kept are content type, encoding and language, location, etag and link; \
         never cookies."
            .to_owned(),
        "<strong>Every protected answer</strong> has a <code>Semel-Operation-Id</code>: quote it when you contact \
         support.".into(),
        format!("<strong>While the first request is in progress</strong>, a duplicate gets {} with \
                 <code>Retry-After</code>, unless the table says otherwise.", status(Code::InProgress)),
        format!(
            "<strong>If the outcome is unknown</strong> (the service was too slow, or the connection broke), the first \
             request gets {first_unknown}, and every retry {} with <code>Retry-After</code>, unless the table says \
             otherwise, until it is settled; the wait grows with the age of the doubt, from 2 s to 60 s. It is not executed \
             again meanwhile.",
            status(Code::OutcomeUnknown)
        ),
        format!("<strong>Another request under the same key</strong> gets {}. Method, host, path, query and body are \
                 compared, and the content type; credentials are not. JSON is compared by its values, not by its \
                 formatting; the order of a form's fields counts where one name comes twice or has brackets or dots; \
                 multipart forms are compared part by part, under any boundary; all else byte by byte.", status(Code::KeyReused)),
        format!("<strong>After the window</strong>, a key gets {}, unless the table says otherwise; later it is new.", status(Code::KeyExpired)),
        "<strong>What counts as the outcome</strong>: 2xx and 3xx are done and repeated; 400, 401, 403, 405, 407, 411, \
         414, 415, 421, 425, 426, 429 and 431 mean that nothing happened, and a retry executes; 408, 499, 502, 503, 504 and \
         every 5xx that is not registered leave it unknown; every other 4xx and 5xx is repeated."
            .into(),
        "<strong>gRPC</strong>: unary calls have the key in their metadata (<code>idempotency-key</code>). OK is done and \
         repeated; INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED and UNAUTHENTICATED mean that nothing happened; \
         NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, ABORTED and OUT_OF_RANGE are repeated; every other status leaves it \
         unknown. Refusals carry a <code>google.rpc.ErrorInfo</code> with the code as its reason."
            .into(),
    ];
    lines.iter().map(|line| format!("<li>{line}</li>\n")).collect()
}

fn error(error: &Error) -> String {
    let code = error.code;
    let status = match error.first_status {
        Some(first) => format!("{first} to the first request, then {}", error.status),
        None => error.status.to_string(),
    };
    let retryable = if error.retryable { "may be sent again as it is" } else { "do not retry unchanged" };
    let retry_after = if error.retry_after { ", with <code>Retry-After</code>" } else { "" };
    format!(
        "<section class=\"error\" id=\"{code}\">\n<h3><code>{code}</code></h3>\n<p class=\"faint\">{}: {status}{retry_after}; {retryable}</p>\n\
         <p>{}</p>\n</section>\n",
        Text(error.title),
        Text(code.explanation())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_html_is_escaped() {
        assert_eq!(
            Text(r#"<a href="x" id='y'>&amp;"#).to_string(),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;"
        );
    }

    #[test]
    fn a_slot_is_filled_once_and_what_it_holds_is_left_alone() {
        assert_eq!(fill("a{{x}}b{{y}}c", |slot| format!("[{{{{{slot}}}}}]")), "a[{{x}}]b[{{y}}]c");
    }
}
