//! What a recipe leaves of a JSON value: members ignored, members that alone count, members filled in, texts in a normal form.

use super::json::Json;
use super::normal_form::normal;

/// A recipe's rules, pointers as the names on the way.
#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) ignore: Vec<Vec<&'static str>>,
    pub(crate) only: Vec<Vec<&'static str>>,
    pub(crate) defaults: Vec<(Vec<&'static str>, &'static str)>,
    pub(crate) normalise: Vec<(Vec<&'static str>, &'static str)>,
}

impl Rules {
    /// Whether they leave everything as it is.
    pub(crate) fn are_none(&self) -> bool {
        self.ignore.is_empty()
            && self.only.is_empty()
            && self.defaults.is_empty()
            && self.normalise.is_empty()
    }

    pub(crate) fn apply(&self, value: &Json) -> Json {
        self.at(value, &mut Vec::new(), self.only.is_empty())
    }

    /// `taken`: all of it counts.
    fn at(&self, value: &Json, path: &mut Vec<String>, taken: bool) -> Json {
        match value {
            Json::Array(items) => {
                let named = items.iter().enumerate().map(|(index, item)| (index.to_string(), item));
                let left = named.filter_map(|(name, item)| self.below(item, name, path, taken));
                Json::Array(left.map(|(_, item)| item).collect())
            }
            Json::Object(members) => {
                let left =
                    members.iter().filter_map(|(name, item)| self.below(item, name.clone(), path, taken));
                let mut left: Vec<(String, Json)> = left.collect();
                for (pointer, default) in &self.defaults {
                    let Some((name, parent)) = pointer.split_last() else { continue };
                    let missing = parent == path && members.iter().all(|(own, _)| own != name);
                    if missing && let Some(default) = Json::parse(default.as_bytes(), 100) {
                        path.push((*name).to_owned());
                        if taken || self.is_only(path) || self.leads_to_only(path) {
                            left.push(((*name).to_owned(), self.normalised(default, path)));
                        }
                        path.pop();
                    }
                }
                Json::Object(left)
            }
            other => self.normalised(other.clone(), path),
        }
    }

    /// What counts of a value in a container, if anything.
    fn below(
        &self,
        value: &Json,
        name: String,
        path: &mut Vec<String>,
        taken: bool,
    ) -> Option<(String, Json)> {
        path.push(name.clone());
        let ignored = self.ignore.iter().any(|pointer| pointer == path);
        let taken = taken || self.is_only(path);
        let left = (!ignored && (taken || self.leads_to_only(path))).then(|| self.at(value, path, taken));
        path.pop();
        Some((name, left?))
    }

    fn normalised(&self, value: Json, path: &[String]) -> Json {
        match (value, self.normalise.iter().find(|(pointer, _)| pointer == path)) {
            (Json::String(text), Some((_, form))) => Json::String(normal(form, &text)),
            (value, _) => value,
        }
    }

    fn is_only(&self, path: &[String]) -> bool {
        self.only.iter().any(|pointer| pointer == path)
    }

    fn leads_to_only(&self, path: &[String]) -> bool {
        self.only.iter().any(|pointer| pointer.len() > path.len() && pointer[..path.len()] == *path)
    }
}
