//! The rules that a fingerprint is made by: data, with a text of its own, kept as long as its records.

use super::FingerprintSecret;
use super::header::never_counts;
use super::host::{self, Aliases, WrongName};
use crate::RecipeId;
use crate::canonical::{NormalForm, NotCanonical, Shape, ShapeError, canonical};
use http::HeaderName;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The way in which a fingerprint is computed. Another way is another version, beside these, never in the place of one: texts of each
/// are in stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    One,
    /// For new recipes of requests. Commands are computed as ever.
    Two,
    /// The second, with normal forms of texts or bodies by their bytes: of which builds before it know nothing.
    Three,
}

impl Version {
    fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            3 => Some(Self::Three),
            _ => None,
        }
    }
}

/// The recipe as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    ignore: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    only: BTreeSet<String>,
    /// The values are JSON texts, because a number in them must keep its exact value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    defaults: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    normalise: BTreeMap<String, NormalForm>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    bytes: bool,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    headers: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<Host>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl Document {
    /// The first version that has all of its rules.
    fn least_version(&self) -> u32 {
        if !self.normalise.is_empty() || self.bytes {
            3
        } else if self.command.is_some() {
            // Nothing about commands was computed in another way by the second.
            1
        } else {
            2
        }
    }

    /// Whether it has a rule for JSON, which a comparison of bytes would never look at.
    fn has_json_rules(&self) -> bool {
        let Self { ignore, only, defaults, normalise, .. } = self;
        !(ignore.is_empty() && only.is_empty() && defaults.is_empty() && normalise.is_empty())
    }
}

/// That the host counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    /// Names of one host each.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    aliases: BTreeSet<BTreeSet<String>>,
}

/// The rules that fingerprints are made by. By default everything counts: the whole body, and no header but the media
/// type and the content coding. The host counts where it is [asked for](RecipeBuilder::host).
///
/// A recipe does not change; it is known by the hash of its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Recipe {
    document: Document,
    version: Version,
    shape: Shape,
    host_aliases: Aliases,
    text: String,
    id: RecipeId,
    /// The secret that it names, if it is available.
    secret: Option<Arc<FingerprintSecret>>,
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Recipe {}

impl From<Recipe> for Document {
    fn from(recipe: Recipe) -> Self {
        recipe.document
    }
}

impl TryFrom<Document> for Recipe {
    type Error = RecipeError;

    fn try_from(document: Document) -> Result<Self, RecipeError> {
        document.headers.iter().try_for_each(|name| match never_counts(name) {
            Some(reason) => Err(RecipeError::HeaderNever { name: name.to_ascii_lowercase(), reason }),
            None => Ok(()),
        })?;
        Self::compile(document)
    }
}

impl Recipe {
    fn compile(mut document: Document) -> Result<Self, RecipeError> {
        let number = document.version;
        let version = Version::of(number).ok_or(RecipeError::Version { version: number })?;
        if version != Version::Three && document.least_version() == 3 {
            return Err(RecipeError::OfVersion3);
        }
        if document.bytes && document.command.is_some() {
            return Err(RecipeError::BytesOfCommand);
        }
        if document.bytes && document.has_json_rules() {
            return Err(RecipeError::BytesAndJson);
        }
        let mut host_aliases = Aliases::new();
        if let Some(host) = &mut document.host {
            if version == Version::One || document.command.is_some() {
                return Err(RecipeError::HostOfCommand);
            }
            host.aliases = host::normal(&host.aliases)?;
            host_aliases = host::aliases(&host.aliases);
        }
        document.headers = document.headers.iter().map(|name| header_name(name)).collect::<Result<_, _>>()?;
        let shape = Shape::new(
            document.ignore.iter().map(String::as_str),
            document.only.iter().map(String::as_str),
            document.defaults.iter().map(|(pointer, text)| (pointer.as_str(), text.as_str())),
        )?
        .normalise(document.normalise.iter().map(|(pointer, form)| (pointer.as_str(), *form)))?;
        for default in document.defaults.values_mut() {
            // One default, one spelling, one recipe.
            *default = canonical(default.as_bytes())?;
        }
        let text = canonical(&serde_json::to_vec(&document)?)?;
        let mut id = [0; 16];
        id.copy_from_slice(&Sha256::digest(&text)[..16]);
        Ok(Self { document, version, shape, host_aliases, text, id: RecipeId(id), secret: None })
    }

    /// Starts from the recipe under which everything counts.
    pub fn builder() -> RecipeBuilder {
        RecipeBuilder { document: empty() }
    }

    /// The recipe's name: the first 16 bytes of the SHA-256 of its text.
    #[must_use]
    pub fn id(&self) -> RecipeId {
        self.id
    }

    /// The recipe as text, to keep in the store.
    #[must_use]
    pub fn to_text(&self) -> &str {
        &self.text
    }

    /// The recipe in a text from the store.
    ///
    /// # Errors
    /// [`RecipeUnavailable`] where the text is of another version of Semel, or damaged.
    pub fn from_text(text: &str) -> Result<Self, RecipeUnavailable> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_str(text).map_err(|_| RecipeUnavailable::Damaged)?;
        if Version::of(version).is_none() {
            return Err(RecipeUnavailable::Version { version });
        }
        // Which headers may be chosen is a matter of configuration. A recipe that is in use stays in use, even if one
        // of its headers could not be chosen any more.
        let document = serde_json::from_str(text).map_err(|_| RecipeUnavailable::Damaged)?;
        Self::compile(document).map_err(|_| RecipeUnavailable::Damaged)
    }

    /// The headers that count, in lower case, sorted.
    pub fn headers(&self) -> impl Iterator<Item = &str> + Clone {
        self.document.headers.iter().map(String::as_str)
    }

    /// The command type that it is for, with its version; `None` where it is for requests.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        self.document.command.as_deref()
    }

    /// Whether the host of a request counts.
    #[must_use]
    pub fn counts_host(&self) -> bool {
        self.document.host.is_some()
    }

    /// Whether the body of a request is compared by its bytes, whatever its media type is.
    #[must_use]
    pub fn compares_bytes(&self) -> bool {
        self.document.bytes
    }

    /// The names that are another one's, where the host counts.
    pub(super) fn host_aliases(&self) -> Option<&Aliases> {
        self.counts_host().then_some(&self.host_aliases)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The id of the [secret](FingerprintSecret::id) that it is keyed with.
    #[must_use]
    pub fn secret_id(&self) -> Option<&str> {
        self.document.secret.as_deref()
    }

    /// The same rules, keyed with this secret, which comes along.
    ///
    /// # Errors
    /// As [`RecipeBuilder::build`].
    pub fn keyed(&self, secret: &Arc<FingerprintSecret>) -> Result<Self, RecipeError> {
        let mut document = self.document.clone();
        document.secret = Some(secret.id().to_owned());
        Ok(Self { secret: Some(Arc::clone(secret)), ..Self::compile(document)? })
    }

    /// The secret to hash with: none where the recipe was made without one, even if there is one by now.
    pub(super) fn keyed_with<'a>(
        &'a self,
        secret: Option<&'a FingerprintSecret>,
    ) -> Result<Option<&'a FingerprintSecret>, RecipeUnavailable> {
        let Some(id) = &self.document.secret else { return Ok(None) };
        let at_hand = self.secret.as_deref().into_iter().chain(secret).find(|secret| secret.id() == id);
        at_hand.map(Some).ok_or(RecipeUnavailable::OtherSecret)
    }
}

fn header_name(name: &str) -> Result<String, RecipeError> {
    let parsed = HeaderName::from_bytes(name.as_bytes());
    parsed.map(|name| name.as_str().to_owned()).map_err(|_| RecipeError::HeaderName { name: name.into() })
}

impl Default for Recipe {
    /// Everything counts.
    fn default() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "nothing in it comes from outside, and every test of the layer builds it"
        )]
        Self::builder().build().expect("the recipe under which everything counts is valid")
    }
}

fn empty() -> Document {
    Document {
        version: 2,
        command: None,
        ignore: BTreeSet::new(),
        only: BTreeSet::new(),
        defaults: BTreeMap::new(),
        normalise: BTreeMap::new(),
        bytes: false,
        headers: BTreeSet::new(),
        host: None,
        secret: None,
    }
}

/// Builds a [`Recipe`]; [`build`](Self::build) returns all errors.
#[derive(Clone, Debug)]
#[must_use]
pub struct RecipeBuilder {
    document: Document,
}

impl RecipeBuilder {
    /// Leaves out of a JSON body what a JSON Pointer leads to.
    pub fn ignore(mut self, pointer: impl Into<String>) -> Self {
        self.document.ignore.insert(pointer.into());
        self
    }

    /// Takes of a JSON body nothing but what this JSON Pointer, and others given so, lead to.
    pub fn only(mut self, pointer: impl Into<String>) -> Self {
        self.document.only.insert(pointer.into());
        self
    }

    /// Fills in the member that a JSON Pointer leads to, where its parent is there and it is not. The value is a JSON
    /// text: `"\"EUR\""`, `"0"`.
    pub fn default(mut self, pointer: impl Into<String>, json: impl Into<String>) -> Self {
        self.document.defaults.insert(pointer.into(), json.into());
        self
    }

    /// Takes the text that a JSON Pointer leads to in its normal form, so that its spellings count as one. A service that reads them
    /// apart would find another request answered.
    ///
    /// ```
    /// use semel::canonical::NormalForm;
    /// use semel::fingerprint::Recipe;
    ///
    /// let recipe = Recipe::builder()
    ///     .normalise("/currency", NormalForm::Lowercase)
    ///     .normalise("/amount", NormalForm::Decimal)
    ///     .normalise("/at", NormalForm::Timestamp)
    ///     .build()?;
    /// # Ok::<(), semel::fingerprint::RecipeError>(())
    /// ```
    pub fn normalise(mut self, pointer: impl Into<String>, form: NormalForm) -> Self {
        self.document.normalise.insert(pointer.into(), form);
        self
    }

    /// Compares the body of a request by its bytes, whatever its media type is: another spelling is another request. Rules for JSON
    /// cannot stand beside it.
    pub fn bytes(mut self) -> Self {
        self.document.bytes = true;
        self
    }

    /// Includes a header, such as `api-version`.
    pub fn header(mut self, name: impl Into<String>) -> Self {
        self.document.headers.insert(name.into());
        self
    }

    /// Includes the host that the client asked for: lower case, without the port, names and addresses of this machine (`localhost`,
    /// 127.0.0.0/8, `::1`) as one. For a service that does something else under another name.
    pub fn host(mut self) -> Self {
        self.document.host.get_or_insert_default();
        self
    }

    /// Includes the host, and takes these names for one. A name can be in one such list alone.
    pub fn host_aliases(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.document.host.get_or_insert_default().aliases.insert(names);
        self
    }

    /// Keys the hash.
    pub fn secret(mut self, secret: &FingerprintSecret) -> Self {
        self.document.secret = Some(secret.id().to_owned());
        self
    }

    /// Makes it the recipe of a command type of your own: its name and a version, such as `create_payment/1`. Change
    /// the version whenever the type is serialised in another way.
    pub fn command(mut self, name_and_version: impl Into<String>) -> Self {
        self.document.command = Some(name_and_version.into());
        self
    }

    /// The recipe.
    ///
    /// # Errors
    /// [`RecipeError`] says which rule is wrong and what would be right.
    pub fn build(mut self) -> Result<Recipe, RecipeError> {
        self.document.version = self.document.least_version();
        self.document.try_into()
    }
}

/// Why there is no such recipe: an error in the configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// A version that is not known here.
    #[error("unknown recipe version {version}: supported are 1 to 3")]
    Version {
        /// The version asked for.
        version: u32,
    },
    /// Something that cannot be the name of a header.
    #[error("\"{name}\" is not a valid header name")]
    HeaderName {
        /// The name as given.
        name: String,
    },
    /// A header that can never be part of a fingerprint.
    #[error("the header \"{name}\" can never be part of a fingerprint: {reason}")]
    HeaderNever {
        /// The header.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// The host of a command, or by the first version.
    #[error("only requests have a host, and recipes of version 1 cannot include it")]
    HostOfCommand,
    /// A rule of the third version in a recipe of an earlier one.
    #[error("normal forms and the comparison of bytes need a recipe of version 3")]
    OfVersion3,
    /// The bytes of a command.
    #[error("only requests have bytes to compare: a command is compared by its meaning")]
    BytesOfCommand,
    /// A rule for JSON where bytes are compared.
    #[error("the body is compared by its bytes, and rules for JSON would have no effect")]
    BytesAndJson,
    /// An alias that is no host.
    #[error("\"{name}\" is not the name of a host")]
    HostName {
        /// The name as given.
        name: String,
    },
    /// A name among the aliases of two hosts.
    #[error("\"{name}\" is in two lists of host aliases")]
    HostTwice {
        /// The name.
        name: String,
    },
    /// Pointers or defaults that are wrong.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A text without a canonical form.
    #[error("the recipe cannot be serialised: {0}")]
    NotCanonical(#[from] NotCanonical),
    /// A text that cannot be written at all.
    #[error("the recipe cannot be serialised: {0}")]
    Text(#[from] serde_json::Error),
}

impl From<WrongName> for RecipeError {
    fn from(wrong: WrongName) -> Self {
        match wrong {
            WrongName::NoHost(name) => Self::HostName { name },
            WrongName::Twice(name) => Self::HostTwice { name },
        }
    }
}

/// Why a fingerprint cannot be computed as a record's was. The requests may be the same or not: it cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeUnavailable {
    /// The store does not hold its text.
    #[error("the fingerprint recipe of the record is not in the store")]
    NotStored,
    /// It is of another version of Semel.
    #[error("the fingerprint recipe of the record has the unknown version {version}")]
    Version {
        /// The recipe's version.
        version: u32,
    },
    /// Its text cannot be read.
    #[error("the fingerprint recipe of the record cannot be read")]
    Damaged,
    /// It was keyed with another secret than is configured.
    #[error("the fingerprint recipe of the record uses another secret")]
    OtherSecret,
    /// It is the recipe of something else: a command of another type or version, or a request.
    #[error("the fingerprint recipe of the record is for another kind of command or request")]
    OtherSubject,
}
