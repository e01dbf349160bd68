//! The handler's own command, read out of a request before it is compared.

use http::request::Parts;
use semel::fingerprint::Command;
use std::fmt;
use std::sync::Arc;

/// Reads the handler's own command type out of a request, so that requests are compared by what the handler takes them for, and not by
/// their bodies: a member that it ignores does not count, and one that it fills in does.
///
/// What is done to what counts too: operation, method, path and query of the request are part of the fingerprint. A request of which no
/// command can be made (`None`) is compared as [`Protection::recipe`](crate::Protection::recipe) says; so are retries of requests from
/// before there was a command.
///
/// It is called for every protected request, also for replays, and must not do more than read.
///
/// ```
/// use semel::fingerprint::{Command, Recipe};
/// use semel_tower::{CommandOf, Protection};
/// use std::sync::Arc;
///
/// #[derive(serde::Deserialize, serde::Serialize)]
/// struct Refund {
///     amount: String,
/// }
///
/// let recipe = Arc::new(Recipe::builder().command("refund/1").build()?);
/// let command = CommandOf::new(move |_, body| {
///     let refund: Refund = serde_json::from_slice(body).ok()?;
///     Command::new(Arc::clone(&recipe), None, &refund).ok()
/// });
/// let protection = Protection { command: Some(command), ..Protection::default() };
/// # Ok::<(), semel::fingerprint::RecipeError>(())
/// ```
#[derive(Clone)]
pub struct CommandOf(Arc<Read>);

type Read = dyn Fn(&Parts, &[u8]) -> Option<Command> + Send + Sync;

impl CommandOf {
    /// Reads commands by this function, of a request's head and its whole body.
    pub fn new(read: impl Fn(&Parts, &[u8]) -> Option<Command> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn read(&self, parts: &Parts, body: &[u8]) -> Option<Command> {
        (self.0)(parts, body)
    }
}

impl fmt::Debug for CommandOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandOf(…)")
    }
}
