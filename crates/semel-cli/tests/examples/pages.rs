//! The programs on the start pages are the ones that these tests run.

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn start_pages_show_the_examples_as_they_are() {
    for (page, example, language, files) in [
        ("node", "gateway-node", "js", ["service.mjs", "pay.mjs"]),
        ("python", "gateway-python", "python", ["service.py", "pay.py"]),
    ] {
        let text = fs::read_to_string(root().join("docs/start").join(page).with_extension("md")).unwrap();
        let fence = format!("```{language}\n");
        let mut blocks = text.split(&fence).skip(1);
        for file in files {
            let program = fs::read_to_string(root().join("examples").join(example).join(file)).unwrap();
            let shown = blocks.next().and_then(|rest| rest.split("```").next());
            assert_eq!(shown, Some(program.as_str()), "docs/start/{page}.md: {file}");
        }
        assert_eq!(blocks.next(), None, "docs/start/{page}.md: a program that no test runs");
    }
}
