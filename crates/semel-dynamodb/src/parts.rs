//! What is too large for a record's item: answers, checkpoints and old history, in items of their own.
//!
//! They are named by the write id of the write that names them, and written before it. A write that loses leaves parts that nothing names: they are
//! swept after a day.

use crate::apart::{Apart, Large};
use crate::api::{Api, Failure};
use crate::item::{self, Fetched};
use crate::names::{CONTENTS, ENDS, ID, NAME, PARTS, RECORD, SHARDS, WriteId, part, pointer, sort_key};
use crate::value::{Attributes, Item, bytes, number, text};
use bytes::{Bytes, BytesMut};
use semel::columns::AnswerColumns;
use semel::{OperationId, Record, StoreError};
use serde_json::json;

/// The longest answer, and the longest checkpoint, that a record's item holds itself: with 64 KB of history and names there is room for both in
/// the 400 KB of an item, and most answers take one write and one read.
const INLINE: usize = 120 * 1024;

/// The longest part.
const PART: usize = 380 * 1024;

/// Parts that nothing names are swept after this long, in milliseconds.
pub(crate) const SWEPT_AFTER: i64 = 24 * 60 * 60 * 1_000;

/// How often a record is read again that was written again between its reading and that of its parts.
const TRIES: usize = 3;

impl Api {
    /// Writes apart what is too large for the item of a record, which is about to be written under `write`.
    pub(crate) async fn put_apart(
        &self,
        record: &Record,
        name: &str,
        write: WriteId,
        now: i64,
    ) -> Result<Large, Failure> {
        let mut large = Large::default();
        if let Some(answer) = record.response.as_ref().map(AnswerColumns::of)
            && let Some(headers) = answer.headers_apart()
            && headers.len() + answer.body.map_or(0, <[u8]>::len) > INLINE
        {
            let contents = [headers.as_bytes(), answer.body.unwrap_or_default()].concat();
            large.answer = Some(self.put_parts(&contents, headers.len(), name, write, now).await?);
        }
        if let Some(checkpoint) = record.checkpoint.as_ref().filter(|checkpoint| checkpoint.len() > INLINE) {
            // Another id than the answer's: the parts of both begin with 0.
            let apart = self.put_parts(checkpoint, 0, name, WriteId::random(), now).await?;
            large.checkpoint = Some(apart);
        }
        Ok(large)
    }

    /// Writes `contents` in parts that belong to the record of this name. The first of them says how many there are, and from when on it may be
    /// looked whether anybody needs them.
    pub(crate) async fn put_parts(
        &self,
        contents: &[u8],
        first: usize,
        name: &str,
        write: WriteId,
        now: i64,
    ) -> Result<Apart, Failure> {
        let chunks: Vec<&[u8]> = contents.chunks(PART).collect();
        let apart = Apart { write, parts: chunks.len().max(1), first };
        for (index, chunk) in chunks.iter().enumerate() {
            let mut item = json!({
                NAME: text(&part(write, index)), RECORD: text(name), CONTENTS: bytes(chunk)
            });
            if index == 0 {
                item[PARTS] = number(apart.parts);
                item[ENDS.partition] = text(&format!("s{}", write.0[15] % SHARDS));
                item[ENDS.sort] = bytes(&sort_key(now.saturating_add(SWEPT_AFTER), &write.0));
            }
            self.call("PutItem", &json!({ "TableName": self.table(), "Item": item })).await?;
        }
        Ok(apart)
    }

    /// What is in these parts; `None`: one of them is gone.
    pub(crate) async fn parts(&self, apart: Apart) -> Result<Option<Bytes>, StoreError> {
        let names: Vec<String> = apart.names().collect();
        let items = self.items(&names, &[NAME, CONTENTS]).await?;
        let mut contents = BytesMut::new();
        for name in &names {
            let Some(item) = items.get(name) else { return Ok(None) };
            contents
                .extend(Attributes(item).bytes(CONTENTS).map_err(StoreError::Damaged)?.unwrap_or_default());
        }
        Ok(Some(contents.freeze()))
    }

    /// The record of an item, with what of it is apart. An item whose parts are gone has been written again since it was read: it is read again.
    pub(crate) async fn whole(&self, item: Item) -> Result<Option<Record>, StoreError> {
        self.fetched(item, true).await
    }

    /// The same, without headers and body of its answer.
    pub(crate) async fn without_answer(&self, item: Item) -> Result<Option<Record>, StoreError> {
        self.fetched(item, false).await
    }

    async fn fetched(&self, mut item: Item, with_answer: bool) -> Result<Option<Record>, StoreError> {
        for _ in 0..TRIES {
            let [answer, checkpoint] = item::elsewhere(&item)?;
            let mut fetched = Fetched { with_answer, ..Fetched::default() };
            let mut is_there = true;
            if let Some(apart) = answer.filter(|_| with_answer) {
                fetched.answer = match self.parts(apart).await? {
                    Some(contents) => Some(headers_and_body(&item, apart, &contents)?),
                    None => None,
                };
                is_there = fetched.answer.is_some();
            }
            if let Some(apart) = checkpoint {
                fetched.checkpoint = self.parts(apart).await?;
                is_there &= fetched.checkpoint.is_some();
            }
            if is_there {
                return item::decode(&item, &fetched).map(Some);
            }
            let name = Attributes(&item).text(NAME).map_err(StoreError::Damaged)?.unwrap_or_default();
            match self.item(name).await? {
                Some(again) => item = again,
                None => return Ok(None),
            }
        }
        let id = Attributes(&item).array(ID).map_err(StoreError::Damaged)?;
        Err(item::damaged(OperationId::from_bytes(id), "its answer or checkpoint is gone"))
    }

    /// Removes what belonged to a record that is gone: its pointer, and what was apart. What stays behind because this fails disturbs no one, and
    /// parts are swept.
    pub(crate) async fn clean_up(&self, gone: &[Item], with_pointers: bool) {
        let mut names = Vec::new();
        for item in gone {
            if let (true, Ok(id)) = (with_pointers, Attributes(item).array(ID)) {
                names.push(pointer(OperationId::from_bytes(id)));
            }
            let apart = item::elsewhere(item).unwrap_or_default();
            names.extend(apart.into_iter().flatten().flat_map(Apart::names));
            if let Ok((folded, _)) = item::history_of(item) {
                names.extend(folded.into_iter().map(|write| part(write, 0)));
            }
        }
        if let Err(error) = self.delete_all(&names).await {
            tracing::debug!(error = %error.of_write(), "what belonged to removed records is still there");
        }
    }
}

fn headers_and_body(
    item: &Item,
    apart: Apart,
    contents: &Bytes,
) -> Result<(String, Option<Bytes>), StoreError> {
    let kind = Attributes(item).text("rk").map_err(StoreError::Damaged)?;
    let headers = contents.get(..apart.first).and_then(|headers| std::str::from_utf8(headers).ok());
    let headers =
        headers.ok_or_else(|| StoreError::Damaged("the parts of an answer are too short".into()))?;
    let has_body = matches!(kind, Some("stored" | "sealed"));
    Ok((headers.to_owned(), has_body.then(|| contents.slice(apart.first..))))
}
