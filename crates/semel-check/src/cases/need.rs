//! What a case cannot run without.

use crate::body::Body;
use crate::settings::{KeyPlace, Settings};

/// Something that the user has to give, or that the request has to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Need {
    /// `--vary` or `--other-body`, where nothing is found to vary.
    Vary,
    /// A reference in the body.
    Mark,
    /// The key in a header.
    HeaderKey,
    /// A JSON body.
    Json,
    /// A body.
    Body,
    /// Another account.
    OtherCaller,
    /// A refreshed credential.
    SameCaller,
    /// A credential among the headers.
    Credentials,
    /// A command that revokes the credential.
    Revoke,
    /// Another node.
    Also,
    /// What makes the API fail.
    FailWith,
    /// Permission for what only a careless client sends.
    Hostile,
    /// Commands that kill and start the API.
    Crash,
    /// A command after which keys have expired.
    Expire,
}

impl Need {
    /// What to write.
    pub(crate) fn flag(&self) -> Option<&'static str> {
        Some(match self {
            Self::Vary => "--vary",
            Self::Mark => "--mark",
            Self::OtherCaller => "--other-caller",
            Self::SameCaller => "--same-caller",
            Self::Revoke => "--revoke",
            Self::Also => "--also",
            Self::FailWith => "--fail-with",
            Self::Hostile => "--hostile",
            Self::Crash => "--kill, --start",
            Self::Expire => "--expire",
            Self::HeaderKey | Self::Json | Self::Body | Self::Credentials => return None,
        })
    }

    pub(crate) fn is_met_by(&self, plan: &Settings) -> Result<(), &'static str> {
        let (is_met, need) = match self {
            Self::Vary => (plan.vary.is_some(), "use --vary or --other-body"),
            Self::Mark => (plan.mark.is_some(), "use --mark"),
            Self::HeaderKey => (matches!(plan.key, KeyPlace::Header(_)), "the key is not in a header"),
            Self::Json => (matches!(plan.body, Body::Json(_)), "the body is not JSON"),
            Self::Body => (plan.body != Body::Empty, "there is no body"),
            Self::OtherCaller => (!plan.other_caller.is_empty(), "use --other-caller"),
            Self::SameCaller => (!plan.same_caller.is_empty(), "use --same-caller"),
            Self::Credentials => (plan.credentials().next().is_some(), "no header has a credential"),
            Self::Revoke => (plan.revoke.is_some(), "use --revoke"),
            Self::Also => (!plan.also.is_empty(), "use --also"),
            Self::FailWith => (plan.fail_with.is_some(), "use --fail-with"),
            Self::Hostile => (plan.hostile, "use --hostile"),
            Self::Crash => (plan.crash.is_some(), "use --kill and --start"),
            Self::Expire => (plan.expire.is_some(), "use --expire"),
        };
        if is_met { Ok(()) } else { Err(need) }
    }
}
