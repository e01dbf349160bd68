//! The fingerprint of a command type of your own: the validated command, instead of the bytes that it came in.

use super::form::add_form;
use super::parts::Parts;
use super::request::{add_headers, json_digest};
use super::{FingerprintSecret, HttpRequest, Recipe, RecipeUnavailable, Subject, fingerprint};
use crate::canonical::{NotCanonical, canonical};
use crate::{Fingerprint, RecipeId};
use serde::Serialize;
use std::sync::Arc;

/// The fingerprint of a command, and the id of the recipe that it was made by.
///
/// # Errors
/// [`CommandError`] where the recipe is not for commands or for another secret, or the command is not JSON.
pub fn command_fingerprint(
    recipe: &Recipe,
    secret: Option<&FingerprintSecret>,
    command: &impl Serialize,
) -> Result<(RecipeId, Fingerprint), CommandError> {
    let name = recipe.command().ok_or(CommandError::NoCommandRecipe)?;
    let text = text_of(command)?;
    Ok((recipe.id(), hash(recipe, secret, name, &text)?))
}

fn text_of(command: &impl Serialize) -> Result<Vec<u8>, CommandError> {
    let text = serde_json::to_vec(command)?;
    canonical(&text)?;
    Ok(text)
}

fn hash(
    recipe: &Recipe,
    secret: Option<&FingerprintSecret>,
    name: &str,
    text: &[u8],
) -> Result<Fingerprint, RecipeUnavailable> {
    let mut parts = Parts::new("semel command 1", recipe.keyed_with(secret)?);
    parts.part("recipe", &recipe.id().0);
    add(&mut parts, recipe, name, text)?;
    Ok(Fingerprint(parts.finish()))
}

fn add(parts: &mut Parts, recipe: &Recipe, name: &str, text: &[u8]) -> Result<(), RecipeUnavailable> {
    parts.part("command", name.as_bytes());
    // The text was found canonical when the command was taken.
    let digest = json_digest(text, recipe.shape(), None).ok_or(RecipeUnavailable::Damaged)?;
    parts.part("json", &digest);
    Ok(())
}

/// A command as a [`Subject`].
#[derive(Clone)]
pub struct Command {
    recipe: Arc<Recipe>,
    secret: Option<Arc<FingerprintSecret>>,
    /// The names and versions of command types, and the command as each of them has it; the first is today's.
    forms: Vec<(String, Vec<u8>)>,
}

impl Command {
    /// The command under the recipe of its type.
    ///
    /// # Errors
    /// As [`command_fingerprint`].
    pub fn new(
        recipe: Arc<Recipe>,
        secret: Option<Arc<FingerprintSecret>>,
        command: &impl Serialize,
    ) -> Result<Self, CommandError> {
        let name = recipe.command().ok_or(CommandError::NoCommandRecipe)?.to_owned();
        recipe.keyed_with(secret.as_deref())?;
        let forms = vec![(name, text_of(command)?)];
        Ok(Self { recipe, secret, forms })
    }

    /// Adds what the command was like in an earlier version of its type, so that a retry of an old request still
    /// matches after the type has changed.
    ///
    /// # Errors
    /// [`CommandError`] where the command is not JSON.
    pub fn formerly(
        mut self,
        name_and_version: &str,
        command: &impl Serialize,
    ) -> Result<Self, CommandError> {
        self.forms.push((name_and_version.to_owned(), text_of(command)?));
        Ok(self)
    }

    /// The recipe of its type.
    #[must_use]
    pub fn recipe(&self) -> &Arc<Recipe> {
        &self.recipe
    }

    /// The fingerprint of a request that asks for this command. Operation, method, path, query and the headers that the recipe names
    /// count besides the command, which itself does not say of which payment the refund is. By the recipe of a request, such as that of
    /// a record from before there was the command, it is the request's own fingerprint.
    ///
    /// # Errors
    /// [`RecipeUnavailable`] where it cannot be computed as it was then.
    pub fn fingerprint_of_request(
        &self,
        recipe: &Recipe,
        secret: Option<&FingerprintSecret>,
        request: &HttpRequest<'_>,
    ) -> Result<Fingerprint, RecipeUnavailable> {
        if recipe.command().is_none() {
            return fingerprint(recipe, secret, request);
        }
        let (name, text) = self.form_of(recipe)?;
        let secret = self.secret.as_deref().or(secret);
        let mut parts = Parts::new("semel command of request 1", recipe.keyed_with(secret)?);
        parts.part("recipe", &recipe.id().0);
        parts.part("operation", request.operation.as_bytes());
        parts.part("method", request.method.as_str().as_bytes());
        parts.part("path", request.path.as_bytes());
        parts.piece(b"query");
        add_form(&mut parts, request.query.unwrap_or_default().as_bytes());
        add_headers(&mut parts, recipe, request);
        add(&mut parts, recipe, name, text)?;
        Ok(Fingerprint(parts.finish()))
    }

    /// The command as the type has it that the recipe is for.
    fn form_of<'a>(&'a self, recipe: &'a Recipe) -> Result<(&'a str, &'a [u8]), RecipeUnavailable> {
        let name = recipe.command().ok_or(RecipeUnavailable::OtherSubject)?;
        let form = self.forms.iter().find(|(form, _)| form == name);
        form.map(|(name, text)| (name.as_str(), text.as_slice())).ok_or(RecipeUnavailable::OtherSubject)
    }
}

impl Subject for Command {
    fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        let (name, text) = self.form_of(recipe)?;
        hash(recipe, self.secret.as_deref(), name, text)
    }
}

/// Why a command has no fingerprint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The recipe names no command type.
    #[error(
        "the recipe is not for a command: name one with RecipeBuilder::command, such as \"create_payment/1\""
    )]
    NoCommandRecipe,
    /// The command cannot be serialised to JSON.
    #[error("the command cannot be serialised: {0}")]
    Serialize(#[from] serde_json::Error),
    /// The command's JSON has no canonical form, for example two members of one name.
    #[error("the command has no canonical form: {0}")]
    NotCanonical(#[from] NotCanonical),
    /// The recipe cannot be used.
    #[error(transparent)]
    Recipe(#[from] RecipeUnavailable),
}
