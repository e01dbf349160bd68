//! `[fingerprint]` and `[route.fingerprint]`: what makes two requests the same.

use super::section::{Given, List, Section, TextForm, one_of};
use crate::route::{FingerprintConfig, HostRule};
use semel::canonical::{NormalForm, ShapeError};
use semel::fingerprint::{Recipe, RecipeBuilder, RecipeError};
use semel::problem::Profile;
use std::ops::Range;
use toml::de::DeValue;

const HOST_RULES: [(&str, HostRule); 2] = [("counts", HostRule::Counts), ("ignore", HostRule::Ignored)];

/// `[fingerprint]`: what holds for all routes.
#[derive(Clone, Default)]
pub(super) struct Common {
    host: HostRule,
    /// Names that are one host, in lists of their own.
    aliases: Vec<Vec<String>>,
    /// Bodies are compared by their bytes, as the profile's protocol has it.
    bytes: bool,
    /// Members that are no part of a request, as the profile's protocol has it.
    ignored: &'static [&'static str],
}

impl Common {
    /// Reads the section.
    pub(super) fn read(mut section: Section<'_, '_>, profile: Profile) -> Self {
        let mut common =
            Self { bytes: profile == Profile::Ucp, ignored: profile.ignored_members(), ..Self::default() };
        if let Some(host) = section.choice("host", &HOST_RULES) {
            common.host = host.value;
        }
        let kind = TextForm { what: "the name of a host", example: "api.example.com" };
        let lists = section.lists("host_aliases", kind, |text| Ok(text.to_owned()));
        for List { items, .. } in lists {
            common.aliases.push(Vec::new());
            for Given { value, at } in items {
                let mut with = common.clone();
                with.aliases.last_mut().into_iter().for_each(|names| names.push(value.clone()));
                // The engine's own word on what a name may be.
                match with.recipe().build() {
                    Ok(_) => common = with,
                    Err(error) => section.wrong(&at, error.to_string(), cure(&error)),
                }
            }
        }
        section.end();
        common
    }

    /// The recipe that all others start from.
    pub(super) fn recipe(&self) -> RecipeBuilder {
        self.recipe_where(self.host, self.bytes)
    }

    fn recipe_where(&self, host: HostRule, bytes: bool) -> RecipeBuilder {
        let recipe = if bytes { Recipe::builder().bytes() } else { Recipe::builder() };
        match host {
            HostRule::Ignored => recipe,
            HostRule::Counts => {
                let aliases = self.aliases.iter().filter(|names| !names.is_empty());
                aliases.fold(recipe.host(), |recipe, names| recipe.host_aliases(names))
            }
        }
    }
}

const POINTER: TextForm = TextForm { what: "a JSON Pointer", example: "/metadata/trace_id" };
const HEADER: TextForm = TextForm { what: "the name of a header", example: "api-version" };

/// What counts, and the recipe that is made of it.
pub(super) fn read(mut section: Section<'_, '_>, common: &Common) -> (FingerprintConfig, Recipe) {
    let host = section.choice("host", &HOST_RULES).map_or(common.host, |given| given.value);
    let bytes = section.flag("bytes").map_or(common.bytes, |given| given.value);
    let config = FingerprintConfig { host, bytes, ..FingerprintConfig::default() };
    let mut rules = Rules { config, builder: common.recipe_where(host, bytes) };
    for (name, add) in [("ignore", Rules::ignore as Add), ("only", Rules::only), ("headers", Rules::header)] {
        let kind = if name == "headers" { HEADER } else { POINTER };
        let list = section.list(name, kind, |text| Ok(text.to_owned()));
        if name == "ignore" && list.is_none() && !bytes && !section.has("only") {
            common.ignored.iter().for_each(|pointer| rules.ignore((*pointer).to_owned()));
        }
        for Given { value, at } in list.into_iter().flat_map(|list| list.items) {
            rules.try_add(&section, &at, |rules| add(rules, value));
        }
    }
    let defaults = section.section("defaults", "[route.fingerprint.defaults]");
    for (Given { value: pointer, at }, value) in defaults.entries() {
        match json(value.get_ref()) {
            Some(json) => rules.try_add(&section, &at, |rules| rules.default(pointer, json)),
            None => {
                let problem = "a default must be a string, a number, true or false";
                section.wrong(&value.span(), problem, "write \"/currency\" = \"EUR\"");
            }
        }
    }
    let forms = section.section("normalise", "[route.fingerprint.normalise]");
    for (Given { value: pointer, at }, value) in forms.entries() {
        match normal_form(value.get_ref()) {
            Ok(form) => rules.try_add(&section, &at, |rules| rules.normalise(pointer, form)),
            Err((problem, cure)) => section.wrong(&value.span(), problem, cure),
        }
    }
    section.end();
    // Each rule was tried when it was added.
    (rules.config, rules.builder.build().unwrap_or_default())
}

type Add = fn(&mut Rules, String);

#[derive(Clone)]
struct Rules {
    config: FingerprintConfig,
    builder: RecipeBuilder,
}

impl Rules {
    fn ignore(&mut self, pointer: String) {
        self.builder = self.builder.clone().ignore(&pointer);
        self.config.ignore.push(pointer);
    }

    fn only(&mut self, pointer: String) {
        self.builder = self.builder.clone().only(&pointer);
        self.config.only.push(pointer);
    }

    fn header(&mut self, name: String) {
        self.builder = self.builder.clone().header(&name);
        self.config.headers.push(name.to_ascii_lowercase());
    }

    fn default(&mut self, pointer: &str, json: String) {
        self.builder = self.builder.clone().default(pointer, &json);
        self.config.defaults.insert(pointer.to_owned(), json);
    }

    fn normalise(&mut self, pointer: &str, form: NormalForm) {
        self.builder = self.builder.clone().normalise(pointer, form);
        self.config.normalise.insert(pointer.to_owned(), form);
    }

    /// Adds a rule, unless the recipe would be wrong with it: the engine's own word on what a recipe may say.
    fn try_add(&mut self, section: &Section<'_, '_>, at: &Range<usize>, add: impl FnOnce(&mut Self)) {
        let mut with = self.clone();
        add(&mut with);
        match with.builder.clone().build() {
            Ok(_) => *self = with,
            Err(error) => section.wrong(at, error.to_string(), cure(&error)),
        }
    }
}

fn cure(error: &RecipeError) -> &'static str {
    match error {
        RecipeError::HeaderNever { .. } => "remove it",
        RecipeError::HostName { .. } => "write a name without scheme and path: \"api.example.com\"",
        RecipeError::HostTwice { .. } => "put all names of one host into one list",
        RecipeError::HeaderName { .. } => "write only the name: \"api-version\"",
        RecipeError::BytesAndJson => "remove it, or write bytes = false in this section",
        RecipeError::Shape(ShapeError::Conflict { .. }) => "remove one of the two rules",
        RecipeError::Shape(_) => {
            "write a slash before each name, and quote the whole: \"/metadata/trace_id\""
        }
        _ => "remove it, or write it in another way",
    }
}

/// The normal form of this name, or what is wrong with it and what would be right.
fn normal_form(value: &DeValue<'_>) -> Result<NormalForm, (String, String)> {
    let words = NormalForm::ALL.map(|form| (form.as_str(), form));
    match value {
        DeValue::String(name) => {
            one_of(name, words.into_iter()).map_err(|cure| (format!("\"{name}\" is not a normal form"), cure))
        }
        _ => Err(("a normal form is a word in quotes".into(), "write \"/amount\" = \"decimal\"".into())),
    }
}

fn json(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => serde_json::Value::from(&**text).to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        // TOML's other notations have no counterpart in JSON, and a number is to be taken by its exact value.
        DeValue::Integer(number) if number.radix() == 10 => {
            number.as_str().trim_start_matches('+').to_owned()
        }
        DeValue::Float(number) => number.as_str().trim_start_matches('+').to_owned(),
        _ => return None,
    })
}
