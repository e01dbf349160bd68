//! A record as an item, and back.

use crate::apart::{Apart as Elsewhere, Large};
use crate::names::{
    ANSWER_APART, BODY, CHECKPOINT, CHECKPOINT_APART, DUE, ENDS, FOLDED, HEADERS, HISTORY, HISTORY_SIZE, ID,
    LIST, LIVE_UNTIL, NAME, TENANT, VERSION, WRITE, WriteId, due_partition, shard, sort_key,
};

use crate::value::{Attributes, Item, bytes, number, text, wrong};
use bytes::Bytes;
use semel::columns::{AnswerColumns, Apart, answer_of};
use semel::{
    Actor, Fingerprint, Happening, HistoryEntry, HistoryLine, OperationId, Origin, Owner, RecipeId, Record,
    RecordKey, Resource, State, StoreError, Times, Timestamp,
};
use serde_json::{Value, json};

/// The attributes that a listing needs: all but headers, body and history.
pub(crate) const WITHOUT_ANSWER: [&str; 34] = [
    NAME,
    WRITE,
    ID,
    VERSION,
    "t",
    "o",
    "k",
    "f",
    "rc",
    "st",
    "at",
    "ow",
    "og",
    "tc",
    "tl",
    "td",
    "tb",
    "te",
    "tp",
    "tr",
    "ra",
    "dl",
    "le",
    "rp",
    CHECKPOINT,
    CHECKPOINT_APART,
    "rs",
    "rv",
    "rk",
    "rm",
    "xk",
    "xi",
    "lp",
    "ls",
];

/// What every write of a record says again. `None`: the attribute is not there.
pub(crate) fn changing(record: &Record, large: &Large, write: WriteId) -> Vec<(&'static str, Option<Value>)> {
    let times = &record.times;
    let moment = |moment: Option<Timestamp>| moment.map(|moment| number(moment.as_millis()));
    let some_text = |value: &Option<String>| value.as_deref().map(text);
    let answer = record.response.as_ref().map(AnswerColumns::of);
    let shard = shard(record.operation_id);
    let due = record.due();
    let ends = record.answer_ends().filter(|_| answer.as_ref().is_some_and(|a| a.headers_apart().is_some()));
    let mut attributes = vec![
        (WRITE, Some(bytes(&write.0))),
        (VERSION, Some(number(record.version))),
        ("f", Some(bytes(&record.fingerprint.0))),
        ("rc", Some(bytes(&record.recipe.0))),
        ("st", Some(text(record.state.as_str()))),
        ("at", Some(number(record.attempt))),
        ("ow", Some(bytes(uuid::Uuid::from(record.owner).as_bytes()))),
        ("og", Some(text(record.origin.as_str()))),
        ("tc", Some(number(times.created.as_millis()))),
        ("tl", Some(number(times.lease.as_millis()))),
        ("td", moment(times.completed)),
        ("tb", moment(times.body_expires)),
        ("te", moment(times.expires)),
        ("tp", moment(times.purge)),
        ("tr", moment(times.reconcile)),
        ("ra", (record.reconcile_attempts != 0).then(|| number(record.reconcile_attempts))),
        ("dl", record.dead_letter.then(|| number(1))),
        ("le", some_text(&record.last_error)),
        ("rp", some_text(&record.recovery_point)),
        ("xk", record.resource.as_ref().map(|resource| text(&resource.kind))),
        ("xi", record.resource.as_ref().map(|resource| text(&resource.id))),
        ("rs", answer.as_ref().map(|answer| number(answer.status))),
        ("rv", answer.as_ref().and_then(|answer| answer.schema).map(text)),
        ("rk", answer.as_ref().map(|answer| text(answer.kind))),
        ("rm", answer.as_ref().map(|answer| number(answer.sum))),
        (LIVE_UNTIL, live_until(record).map(number)),
        (DUE.partition, due.map(|(kind, _)| text(&due_partition(kind, shard)))),
        (DUE.sort, due.map(|(_, at)| bytes(&sort_key(at.as_millis(), record.operation_id.as_bytes())))),
        (ENDS.partition, ends.map(|_| text(&format!("e{shard}")))),
        (ENDS.sort, ends.map(|at| bytes(&sort_key(at.as_millis(), &write.0)))),
    ];
    let headers = answer.as_ref().and_then(AnswerColumns::headers_apart);
    let body = answer.as_ref().and_then(|answer| answer.body);
    attributes.extend(match &large.answer {
        Some(apart) => [(HEADERS, None), (BODY, None), (ANSWER_APART, Some(text(&apart.to_string())))],
        None => [(HEADERS, headers.map(text)), (BODY, body.map(bytes)), (ANSWER_APART, None)],
    });
    attributes.extend(match &large.checkpoint {
        Some(apart) => [(CHECKPOINT, None), (CHECKPOINT_APART, Some(text(&apart.to_string())))],
        None => [(CHECKPOINT, record.checkpoint.as_deref().map(bytes)), (CHECKPOINT_APART, None)],
    });
    attributes
}

/// What a record's first write says once and for all: its names, and its place in listings.
pub(crate) fn fixed(record: &Record, name: &str, place: &[u8]) -> Item {
    let shard = shard(record.operation_id);
    let RecordKey { tenant, key, .. } = &record.key;
    [
        (NAME, text(name)),
        (ID, bytes(record.operation_id.as_bytes())),
        ("t", text(tenant)),
        ("o", text(&record.key.stored_operation())),
        ("k", text(key)),
        (LIST.partition, text(&format!("l{shard}"))),
        (LIST.sort, bytes(place)),
        (TENANT.partition, text(&tenant_partition(tenant, shard))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The partition of a tenant's records.
pub(crate) fn tenant_partition(tenant: &str, shard: u8) -> String {
    format!("{shard}#{tenant}")
}

/// Until when a record is live; `None`: it is not.
fn live_until(record: &Record) -> Option<i64> {
    match record.state {
        State::InProgress | State::Unknown => Some(i64::MAX),
        State::Expired => None,
        _ => record.times.expires.map(Timestamp::as_millis),
    }
}

/// What is known of headers, body and checkpoint when an item is decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetched {
    /// Whether the item was read with its answer.
    pub(crate) with_answer: bool,
    /// Headers and body from their parts.
    pub(crate) answer: Option<(String, Option<Bytes>)>,
    pub(crate) checkpoint: Option<Bytes>,
}

/// The record of an item.
pub(crate) fn decode(item: &Item, fetched: &Fetched) -> Result<Record, StoreError> {
    let attributes = Attributes(item);
    let id = attributes.array::<16>(ID).map(OperationId::from_bytes).map_err(StoreError::Damaged)?;
    let record = decode_attributes(attributes, id, fetched).map_err(|what| damaged(id, &what))?;
    record.check().map_err(|what| damaged(id, what))?;
    if crate::names::record(&record.key) != attributes.text(NAME).ok().flatten().unwrap_or_default() {
        return Err(damaged(id, "its key is not the one that it is stored under"));
    }
    Ok(record)
}

fn decode_attributes(
    of: Attributes<'_>,
    operation_id: OperationId,
    fetched: &Fetched,
) -> Result<Record, String> {
    let name = |name: &str| of.text(name)?.ok_or_else(|| wrong(name));
    let moment = |name: &str| Ok::<_, String>(of.number(name)?.map(Timestamp::from_millis));
    let certain = |name: &str| moment(name)?.ok_or_else(|| wrong(name));
    let owned = |name: &str| Ok::<_, String>(of.text(name)?.map(str::to_owned));
    let checkpoint = match (of.bytes(CHECKPOINT)?, of.text(CHECKPOINT_APART)?) {
        (Some(bytes), None) => Some(Bytes::from(bytes)),
        (None, Some(_)) => fetched.checkpoint.clone(),
        (None, None) => None,
        _ => return Err(wrong(CHECKPOINT)),
    };
    let version: i64 = of.number(VERSION)?.ok_or_else(|| wrong(VERSION))?;
    let resource = match (owned("xk")?, owned("xi")?) {
        (Some(kind), Some(id)) => Some(Resource { kind, id }),
        (None, None) => None,
        _ => return Err("incomplete resource".into()),
    };
    Ok(Record {
        key: RecordKey::from_stored(name("t")?, name("o")?, name("k")?),
        operation_id,
        fingerprint: Fingerprint(of.array("f")?),
        recipe: RecipeId(of.array("rc")?),
        state: State::from_name(name("st")?).ok_or_else(|| wrong("st"))?,
        version: u64::try_from(version).map_err(|_| wrong(VERSION))?,
        attempt: of.number("at")?.ok_or_else(|| wrong("at"))?,
        owner: Owner::from_bytes(of.array("ow")?),
        origin: Origin::from_name(name("og")?).ok_or_else(|| wrong("og"))?,
        times: Times {
            created: certain("tc")?,
            lease: certain("tl")?,
            completed: moment("td")?,
            body_expires: moment("tb")?,
            expires: moment("te")?,
            purge: moment("tp")?,
            reconcile: moment("tr")?,
        },
        reconcile_attempts: of.number("ra")?.unwrap_or(0),
        dead_letter: of.number::<u8>("dl")?.is_some_and(|flag| flag == 1),
        last_error: owned("le")?,
        recovery_point: owned("rp")?,
        checkpoint,
        response: answer(of, fetched)?,
        resource,
    })
}

fn answer(of: Attributes<'_>, fetched: &Fetched) -> Result<Option<semel::StoredResponse>, String> {
    let Some(status) = of.number::<u16>("rs")? else {
        let left = ["rv", "rk", "rm", HEADERS, BODY, ANSWER_APART].into_iter().find(|name| of.has(name));
        return left.map_or(Ok(None), |name| Err(wrong(name)));
    };
    let kind = of.text("rk")?.ok_or_else(|| wrong("rk"))?;
    let sum = of.number("rm")?.ok_or_else(|| wrong("rm"))?;
    let schema = of.text("rv")?.map(str::to_owned);
    let body = of.bytes(BODY)?;
    let apart = match (&fetched.answer, of.text(HEADERS)?, of.text(ANSWER_APART)?) {
        _ if !fetched.with_answer => Apart::NotRead,
        (None, Some(headers), None) => Apart::Kept(headers, body.as_deref()),
        (Some((headers, body)), None, Some(_)) => Apart::Kept(headers, body.as_deref()),
        (None, None, None) if body.is_none() => Apart::Nothing,
        _ => return Err(wrong(HEADERS)),
    };
    Ok(Some(answer_of(status, schema, kind, sum, apart)?))
}

/// Where a record's answer and its checkpoint are, if they are apart.
pub(crate) fn elsewhere(item: &Item) -> Result<[Option<Elsewhere>; 2], StoreError> {
    let of = Attributes(item);
    let parse = |name: &str| {
        let text = of.text(name)?;
        text.map(|text| Elsewhere::parse(text).ok_or_else(|| wrong(name))).transpose()
    };
    Ok([
        parse(ANSWER_APART).map_err(StoreError::Damaged)?,
        parse(CHECKPOINT_APART).map_err(StoreError::Damaged)?,
    ])
}

/// The items that a record's history was folded into, and the lines that it has itself.
pub(crate) fn history_of(item: &Item) -> Result<(Vec<WriteId>, Vec<String>), StoreError> {
    let of = Attributes(item);
    let read = || -> Result<_, String> {
        let folded = of.texts(FOLDED)?.into_iter();
        let folded =
            folded.map(|text| WriteId::parse(text).ok_or_else(|| wrong(FOLDED))).collect::<Result<_, _>>()?;
        Ok((folded, of.texts(HISTORY)?.into_iter().map(str::to_owned).collect()))
    };
    read().map_err(StoreError::Damaged)
}

/// A line of history as text.
pub(crate) fn line(line: &HistoryLine) -> String {
    let HistoryLine { at, version, entry } = line;
    let HistoryEntry { happening, actor, attempt, note } = entry;
    json!([at.as_millis(), version, happening.as_str(), actor.to_string(), attempt, note]).to_string()
}

/// The line that [`line`] spelt.
pub(crate) fn parse_line(text: &str, id: OperationId) -> Result<HistoryLine, StoreError> {
    let read = || {
        let (at, version, happening, actor, attempt, note): (i64, u64, String, String, u32, Option<String>) =
            serde_json::from_str(text).ok()?;
        let (happening, actor) = (Happening::from_name(&happening)?, Actor::from_name(&actor)?);
        let entry = HistoryEntry { happening, actor, attempt, note };
        Some(HistoryLine { at: Timestamp::from_millis(at), version, entry })
    };
    read().ok_or_else(|| damaged(id, "its history cannot be read"))
}

/// What a write that stores no history yet begins with.
pub(crate) fn is_history_attribute(name: &str) -> bool {
    [HISTORY, HISTORY_SIZE, FOLDED].contains(&name)
}

pub(crate) fn damaged(id: OperationId, what: &str) -> StoreError {
    StoreError::Damaged(format!("operation {id}: {what}"))
}
