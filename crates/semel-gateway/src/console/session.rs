//! Sessions: who signed in, in a cookie that only the instances of one store can make.
//!
//! A cookie holds no secret: a name, when it began, and a random id. It is signed with a key that every instance finds in the store, and with
//! the user's token: reading the store is not enough to make one, and a session ends when the token is replaced or the user removed. Role and
//! tenants are not in it: they are the configuration's, at every request.

use crate::identity::{Directory, Identity, Source};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ring::hmac;
use semel::{StoreError, StoreHandle};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// The name that the key of sessions is remembered under.
const KEY: &str = "secret/console-sessions";

/// The longest cookie that is looked at: names are short.
const LONGEST: usize = 1_024;

/// Signs sessions and form tokens.
pub(super) struct Sessions {
    store: StoreHandle,
    key: OnceCell<hmac::Key>,
    lasts: Duration,
}

/// A session that was signed by us and is not over.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) identity: Identity,
    /// What its form tokens belong to.
    id: String,
}

impl Session {
    /// What the audit calls it: tells sessions apart, and opens none.
    pub(super) fn hash(&self) -> String {
        hex(&Sha256::digest(self.id.as_bytes()))[..16].to_owned()
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    /// The user's name.
    n: String,
    /// Where it comes from.
    s: String,
    /// When the session began, in seconds.
    t: u64,
    /// Random.
    i: String,
}

impl Sessions {
    pub(super) fn new(store: StoreHandle, lasts: Duration) -> Self {
        Self { store, key: OnceCell::new(), lasts }
    }

    async fn key(&self) -> Result<&hmac::Key, StoreError> {
        self.key
            .get_or_try_init(|| async {
                let kept = match self.store.recall(KEY.into()).await? {
                    Some(kept) => kept,
                    None => self.store.remember(KEY.into(), random()).await?,
                };
                Ok(hmac::Key::new(hmac::HMAC_SHA256, &kept))
            })
            .await
    }

    /// A cookie for somebody who has just shown their token; `None` where such users have no sessions.
    pub(super) async fn begin(
        &self,
        people: &Directory,
        identity: &Identity,
    ) -> Result<Option<(String, Session)>, StoreError> {
        let Some((identity, token)) = people.by_name(&identity.name, identity.source) else {
            return Ok(None);
        };
        let id = Uuid::new_v4().simple().to_string();
        let claims = Claims {
            n: identity.name.clone(),
            s: identity.source.as_str().into(),
            t: seconds(),
            i: id.clone(),
        };
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims).unwrap_or_default());
        let signature = URL_SAFE_NO_PAD.encode(signature(self.key().await?, &claims, &token));
        Ok(Some((format!("{claims}.{signature}"), Session { identity, id })))
    }

    /// The session of a cookie; `None`: not ours, over, or of somebody whose token is another one by now.
    pub(super) async fn open(&self, people: &Directory, cookie: &str) -> Result<Option<Session>, StoreError> {
        let key = self.key().await?;
        Ok(self.verified(key, people, cookie, seconds()))
    }

    fn verified(&self, key: &hmac::Key, people: &Directory, cookie: &str, now: u64) -> Option<Session> {
        if cookie.len() > LONGEST {
            return None;
        }
        let (text, shown) = cookie.split_once('.')?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let source = Source::ALL.into_iter().find(|source| source.as_str() == claims.s)?;
        let (identity, token) = people.by_name(&claims.n, source)?;
        let shown = URL_SAFE_NO_PAD.decode(shown).ok()?;
        hmac::verify(key, &signed(text, &token), &shown).ok()?;
        let ends = claims.t.checked_add(self.lasts.as_secs())?;
        // One from the future was made by a machine whose clock is wrong, and would last too long.
        let begun = claims.t <= now + self.lasts.as_secs().min(300);
        (begun && now < ends).then_some(Session { identity, id: claims.i })
    }

    /// What every form of this user has to send: nobody else's page knows it.
    pub(super) async fn form_token(
        &self,
        identity: &Identity,
        session: Option<&Session>,
    ) -> Result<String, StoreError> {
        let key = self.key().await?;
        Ok(form_token(key, identity, session, day()))
    }

    /// Whether this is that token. Without a session it changes by the day, and yesterday's is still good.
    pub(super) async fn is_form_token(
        &self,
        shown: &str,
        identity: &Identity,
        session: Option<&Session>,
    ) -> Result<bool, StoreError> {
        let key = self.key().await?;
        let today = day();
        Ok([today, today.saturating_sub(1)].into_iter().any(|day| {
            let Ok(shown) = URL_SAFE_NO_PAD.decode(shown) else { return false };
            hmac::verify(key, form_words(identity, session, day).as_bytes(), &shown).is_ok()
        }))
    }
}

fn form_token(key: &hmac::Key, identity: &Identity, session: Option<&Session>, day: u64) -> String {
    URL_SAFE_NO_PAD.encode(hmac::sign(key, form_words(identity, session, day).as_bytes()))
}

fn form_words(identity: &Identity, session: Option<&Session>, day: u64) -> String {
    match session {
        Some(session) => format!("form\n{}", session.id),
        None => format!("form\n{day}\n{identity}"),
    }
}

fn signed(claims: &str, token: &[u8; 32]) -> Vec<u8> {
    [b"session\n", token.as_slice(), claims.as_bytes()].concat()
}

fn signature(key: &hmac::Key, claims: &str, token: &[u8; 32]) -> hmac::Tag {
    hmac::sign(key, &signed(claims, token))
}

fn random() -> Bytes {
    let mut bytes = Vec::with_capacity(64);
    for _ in 0..4 {
        bytes.extend_from_slice(Uuid::new_v4().as_bytes());
    }
    bytes.into()
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn day() -> u64 {
    seconds() / 86_400
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Role, Tenants, User};
    use crate::secret::Secret;
    use semel::{Engine, MemoryStore};

    fn people(token: &str) -> Directory {
        Directory {
            token: None,
            users: vec![User {
                name: "oncall".into(),
                token: Secret::new(token).unwrap(),
                role: Role::Operator,
                tenants: Tenants::All,
            }],
            proxy: None,
        }
    }

    fn oncall(people: &Directory) -> Identity {
        people.by_name("oncall", Source::User).unwrap().0
    }

    #[tokio::test]
    async fn instances_of_one_store_accept_each_others_sessions() {
        let (engine, people) = (Engine::new(MemoryStore::new()), people("a-token"));
        let [one, other] = [0, 1].map(|_| Sessions::new(engine.store().clone(), Duration::from_secs(60)));
        let (cookie, begun) = one.begin(&people, &oncall(&people)).await.unwrap().unwrap();
        let session = other.open(&people, &cookie).await.unwrap().unwrap();
        assert_eq!(session.identity, begun.identity);
        let token = one.form_token(&begun.identity, Some(&begun)).await.unwrap();
        assert!(other.is_form_token(&token, &session.identity, Some(&session)).await.unwrap());
        let (_, another) = one.begin(&people, &oncall(&people)).await.unwrap().unwrap();
        assert!(!other.is_form_token(&token, &another.identity, Some(&another)).await.unwrap());
        let stranger =
            Sessions::new(Engine::new(MemoryStore::new()).store().clone(), Duration::from_secs(60));
        assert!(stranger.open(&people, &cookie).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_session_ends_with_its_time_and_with_the_users_token() {
        let engine = Engine::new(MemoryStore::new());
        let before = people("a-token");
        let sessions = Sessions::new(engine.store().clone(), Duration::from_secs(60));
        let (cookie, _) = sessions.begin(&before, &oncall(&before)).await.unwrap().unwrap();
        let key = sessions.key().await.unwrap();
        let at = |now| sessions.verified(key, &before, &cookie, now).is_some();
        assert!(at(seconds()) && at(seconds() + 50) && !at(seconds() + 61) && !at(0));
        assert!(sessions.open(&people("another"), &cookie).await.unwrap().is_none());
        assert!(sessions.open(&Directory::default(), &cookie).await.unwrap().is_none());
        for forged in [cookie.replace('.', "A."), format!("{cookie}A"), String::new(), "a.b".into()] {
            assert!(sessions.open(&before, &forged).await.unwrap().is_none(), "{forged}");
        }
    }
}
