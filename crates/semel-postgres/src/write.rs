//! Creates, swaps and removals: one statement for what can be done, and another for what is there instead.

use crate::audit::bind_entry;
use crate::call::Server;
use crate::clock::{Answered, Asked, StoreClock};
use crate::draft::{Items, PgQuery, bind_records, fixed_at, stored_version};
use crate::key::KeyHash;
use crate::plain::{Completion, bind_completions, lease_of_reservation};
use crate::read::{Found, read};
use crate::row::computed;
use crate::statements;
use crate::text::{original, stored, stored_operation};
use semel::audit::AuditEntry;
use semel::{
    Answer, Created, Draft, Expected, Happening, HistoryEntry, Now, OperationId, Purged, RecordKey,
    StoreError, Swap, Swapped, Timestamp,
};
use sqlx::postgres::{PgBindIterExt, PgRow};
use std::collections::HashSet;
use std::time::Duration;
use uuid::Uuid;

/// Items per statement. Each create takes a lock of the server's, whose table has room for 64 per connection (6 400 by
/// default): four batches of this size on each of ten instances fit beside everything else. A larger batch goes in several
/// statements, one after the other, all at the same moment.
pub(crate) const MOST: usize = 128;

/// How often a create is sent again for a key whose record was there at the insert and gone at the reading.
const TRIES: usize = 4;

/// The parameters of every writing statement.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    pub(crate) server: Server,
    pub(crate) clock: StoreClock,
    pub(crate) lossy: bool,
}

/// What a writing statement answered.
pub(crate) struct Wrote {
    pub(crate) answered: Answered,
    row: PgRow,
}

/// The answer of a writing statement, which is one row; `None`: its commit would not have been durable, and it did nothing.
pub(crate) fn wrote(rows: Vec<PgRow>) -> Result<Option<Wrote>, StoreError> {
    let row =
        rows.into_iter().next().ok_or_else(|| StoreError::Damaged("the server returned no row".into()))?;
    if !computed::<bool>(&row, 1)? {
        return Ok(None);
    }
    let answered = Answered::of(&computed::<Vec<i64>>(&row, 0)?)?;
    Ok(Some(Wrote { answered, row }))
}

impl Wrote {
    /// The ids that were created, and those whose key an open transaction holds.
    pub(crate) fn created(&self) -> Result<[HashSet<OperationId>; 2], StoreError> {
        let ids =
            |index| Ok(computed::<Vec<Uuid>>(&self.row, index)?.into_iter().map(OperationId::from).collect());
        Ok([ids(2)?, ids(3)?])
    }

    /// When each of the answers ended that were dropped.
    fn ends(&self) -> Result<Vec<Timestamp>, StoreError> {
        Ok(computed::<Vec<i64>>(&self.row, 2)?.into_iter().map(Timestamp::from_millis).collect())
    }

    /// The records that were removed because their time was over.
    fn purged(&self) -> Result<Vec<Purged>, StoreError> {
        let (since, operations) =
            (computed::<Vec<i64>>(&self.row, 2)?, computed::<Vec<String>>(&self.row, 3)?);
        let purged = |(since, operation): (i64, String)| Purged {
            // For metrics. A name that cannot be decoded is returned as it is stored.
            operation: RecordKey::from_stored("", original(&operation).unwrap_or(operation), "").operation,
            since: Timestamp::from_millis(since),
        };
        Ok(since.into_iter().zip(operations).map(purged).collect())
    }

    /// Which of the items that were sent were done, counted from 0.
    pub(crate) fn done(&self) -> Result<HashSet<usize>, StoreError> {
        let places: Vec<i64> = computed(&self.row, 2)?;
        Ok(places.into_iter().filter_map(|place| usize::try_from(place - 1).ok()).collect())
    }
}

/// The statement that creates these, each with its hash. They are sorted by it: creates wait for each other in this order alone.
pub(crate) fn create_query(asked: Asked, lossy: bool, mut batch: Vec<(KeyHash, &Draft)>) -> PgQuery<'_> {
    batch.sort_by_key(|(hash, _)| *hash);
    let items = Items::of(batch.len());
    let leases: Option<Vec<i64>> = batch.iter().map(|(_, draft)| lease_of_reservation(draft)).collect();
    let Some(leases) = leases else {
        return create_whole(items.sql(&statements::CREATE), asked, lossy, items, &batch);
    };
    let drafts = || batch.iter().map(|(_, draft)| *draft);
    let query = sqlx::query(items.sql(&statements::CREATE_RESERVATION)).bind(asked.numbers).bind(lossy);
    let query = items.bind(query, batch.iter().map(|(hash, _)| hash.uuid()));
    let query = items.bind(query, batch.iter().map(|(hash, _)| hash.lock()));
    let query = items.bind(query, drafts().map(|draft| Uuid::from(draft.operation_id)));
    let query = items.bind(query, drafts().map(|draft| stored(&draft.key.tenant)));
    let query = items.bind(query, drafts().map(|draft| stored_operation(&draft.key)));
    let query = items.bind(query, drafts().map(|draft| stored(&draft.key.key)));
    let query = items.bind(query, drafts().map(|draft| draft.fingerprint.0.as_slice()));
    let query = items.bind(query, drafts().map(|draft| Uuid::from_bytes(draft.recipe.0)));
    let query = items.bind(query, drafts().map(|draft| Uuid::from(draft.owner)));
    items.bind(query, leases.into_iter())
}

/// The statement that reserves inside an application's transaction.
pub(crate) fn reserve_query(asked: Asked, lossy: bool, hash: KeyHash, draft: &Draft) -> PgQuery<'_> {
    create_whole(statements::RESERVE, asked, lossy, Items::One, &[(hash, draft)])
}

fn create_whole<'q>(
    sql: &'static str,
    asked: Asked,
    lossy: bool,
    items: Items,
    batch: &[(KeyHash, &'q Draft)],
) -> PgQuery<'q> {
    let drafts: Vec<&Draft> = batch.iter().map(|(_, draft)| *draft).collect();
    let query = bind_records(sqlx::query(sql).bind(asked.numbers).bind(lossy), items, &drafts);
    let query = items.bind(query, batch.iter().map(|(hash, _)| hash.uuid()));
    let query = items.bind(query, batch.iter().map(|(hash, _)| hash.lock()));
    let query = items.bind(query, drafts.iter().map(|draft| Uuid::from(draft.operation_id)));
    let query = items.bind(query, drafts.iter().map(|draft| stored(&draft.key.tenant)));
    let query = items.bind(query, drafts.iter().map(|draft| stored_operation(&draft.key)));
    items.bind(query, drafts.iter().map(|draft| stored(&draft.key.key)))
}

/// The statement that makes these swaps, each with the hash of its key.
pub(crate) fn swap_query<'q>(asked: Asked, lossy: bool, batch: &[(KeyHash, &'q Swap)]) -> PgQuery<'q> {
    let items = Items::of(batch.len());
    let completions: Option<Vec<Completion<'q>>> =
        batch.iter().map(|(_, swap)| Completion::of(swap)).collect();
    let begun = |statement| sqlx::query(items.sql(statement)).bind(asked.numbers).bind(lossy);
    if let Some(completions) = completions {
        return bind_completions(
            bind_expected(begun(&statements::SWAP_COMPLETION), items, batch),
            items,
            &completions,
        );
    }
    bind_swaps(begun(&statements::SWAP), items, batch)
}

/// Binds what has to be there: hash, version and id.
fn bind_expected<'q>(query: PgQuery<'q>, items: Items, batch: &[(KeyHash, &'q Swap)]) -> PgQuery<'q> {
    let query = items.bind(query, batch.iter().map(|(hash, _)| hash.uuid()));
    let all = || batch.iter().map(|(_, swap)| &swap.expected);
    let query = items.bind(query, all().map(|expected| stored_version(expected.version)));
    items.bind(query, all().map(|expected| Uuid::from(expected.operation_id)))
}

/// Binds the parameters 3 to 39 of a statement that makes swaps of any kind.
fn bind_swaps<'q>(query: PgQuery<'q>, items: Items, batch: &[(KeyHash, &'q Swap)]) -> PgQuery<'q> {
    let drafts: Vec<&Draft> = batch.iter().map(|(_, swap)| &*swap.next).collect();
    let query = bind_expected(bind_records(query, items, &drafts), items, batch);
    let told = || batch.iter().map(|(_, swap)| swap.history.as_ref());
    let query = items.bind(query, told().map(|entry| entry.map(|entry| entry.happening.as_str())));
    let actor = |entry: &HistoryEntry| stored(&entry.actor.to_string()).into_owned();
    let query = items.bind(query, told().map(|entry| entry.map(actor)));
    let query = items.bind(query, told().map(|entry| entry.map(|entry| i64::from(entry.attempt))));
    items.bind(query, told().map(|entry| entry.and_then(|entry| entry.note.as_deref()).map(stored)))
}

/// The statement that removes these.
pub(crate) fn remove_query<'q>(asked: Asked, lossy: bool, batch: &[(KeyHash, &'q Expected)]) -> PgQuery<'q> {
    sqlx::query(statements::REMOVE)
        .bind(asked.numbers)
        .bind(lossy)
        .bind(batch.iter().map(|(hash, _)| hash.uuid()).bind_iter())
        .bind(batch.iter().map(|(_, expected)| stored_version(expected.version)).bind_iter())
        .bind(batch.iter().map(|(_, expected)| Uuid::from(expected.operation_id)).bind_iter())
}

impl Writing {
    /// Inserts each draft if there is no record of its key; otherwise returns that record.
    pub(crate) async fn create(&self, mut batch: Vec<Draft>) -> Result<Answer<Created>, StoreError> {
        self.server.commits.risk.check()?;
        let hashes: Vec<KeyHash> = batch.iter().map(|draft| KeyHash::of(&draft.key)).collect();
        let mut outcomes: Vec<Option<Created>> = vec![None; batch.len()];
        let mut progress = Progress::default();
        for _ in 0..TRIES {
            // Of several of one key the first is sent; the others find what is there.
            let mut sent = HashSet::new();
            let to_send: Vec<usize> =
                (0..batch.len()).filter(|at| outcomes[*at].is_none() && sent.insert(hashes[*at])).collect();
            if to_send.is_empty() && progress.now.is_some() {
                break;
            }
            for chunk in chunks(&to_send) {
                if let Some(now) = progress.now {
                    for at in chunk {
                        // Every moment of one answer counts from the same now.
                        let draft = batch[*at].clone();
                        batch[*at] = fixed_at(draft, now);
                    }
                }
                let items = chunk.iter().map(|at| (hashes[*at], &batch[*at])).collect();
                let asked = self.ask(&progress)?;
                let query = create_query(asked, self.lossy, items);
                let [made, locked] =
                    self.begin(asked, query, &mut progress).await?.created().map_err(lost)?;
                progress.wrote |= !made.is_empty();
                for at in chunk {
                    let id = batch[*at].operation_id;
                    if made.contains(&id) {
                        outcomes[*at] = Some(Created::Inserted);
                    } else if locked.contains(&id) {
                        outcomes[*at] = Some(Created::Locked);
                    }
                }
            }
            let open: Vec<usize> = (0..batch.len()).filter(|at| outcomes[*at].is_none()).collect();
            let found = self.what_is_there(open.iter().map(|at| hashes[*at]), &mut progress).await?;
            for at in open {
                outcomes[at] = match found.by_hash(hashes[at], &batch[at].key) {
                    Ok(there) => there.map(|record| Created::Exists(Box::new(record.clone()))),
                    Err(why) => Some(Created::Damaged(why)),
                };
            }
        }
        // Records of this key are created and removed all the time: it is in use, which is what "locked" means.
        let items = outcomes.into_iter().map(|outcome| outcome.unwrap_or(Created::Locked)).collect();
        progress.answer(items)
    }

    /// Replaces each expected record and appends to its history; otherwise returns what is there.
    pub(crate) async fn swap(&self, batch: Vec<Swap>) -> Result<Answer<Swapped>, StoreError> {
        let mut batch = batch;
        let hashes: Vec<KeyHash> = batch.iter().map(|swap| KeyHash::of(&swap.expected.key)).collect();
        let mut to_send = first_of_each(batch.iter().map(|swap| &swap.expected));
        // While a failover could lose it, nothing is begun. Outcomes in the same batch are stored all the same; to the request of one that is not
        // begun, the record is locked.
        let mut held = HashSet::new();
        if let Err(error) = self.server.commits.risk.check() {
            held = (0..batch.len()).filter(|at| begins(&batch[*at])).collect();
            if held.len() == batch.len() && !batch.is_empty() {
                return Err(error);
            }
            to_send.retain(|at| !held.contains(at));
        }
        let (mut progress, mut done) = (Progress::default(), HashSet::new());
        for chunk in chunks(&to_send) {
            if let Some(now) = progress.now {
                for at in chunk {
                    let next = (*batch[*at].next).clone();
                    *batch[*at].next = fixed_at(next, now);
                }
            }
            let items: Vec<_> = chunk.iter().map(|at| (hashes[*at], &batch[*at])).collect();
            let asked = self.ask(&progress)?;
            let query = swap_query(asked, self.lossy, &items);
            let wrote = if chunk.iter().any(|at| begins(&batch[*at])) {
                self.begin(asked, query, &mut progress).await?
            } else {
                self.send(asked, query, &mut progress).await?
            };
            let places = wrote.done().map_err(lost)?;
            progress.wrote |= !places.is_empty();
            done.extend(places.into_iter().filter_map(|place| chunk.get(place)).copied());
        }
        let expected: Vec<_> = batch.iter().map(|swap| &swap.expected).collect();
        self.tell(&expected, &hashes, &done, &held, progress).await
    }

    /// Appends to the audit, with the change that it is about, if there is one.
    pub(crate) async fn audit(
        &self,
        entry: AuditEntry,
        change: Option<Swap>,
    ) -> Result<Answer<Swapped>, StoreError> {
        let mut progress = Progress::default();
        let asked = self.ask(&progress)?;
        let begun = |statement| sqlx::query(statement).bind(asked.numbers).bind(self.lossy);
        let Some(swap) = change else {
            self.send(asked, bind_entry(begun(statements::AUDIT), &entry), &mut progress).await?;
            return progress.answer(vec![Swapped::Done]);
        };
        let hash = KeyHash::of(&swap.expected.key);
        let query = bind_swaps(begun(statements::SWAP_AUDITED), Items::One, &[(hash, &swap)]);
        let places =
            self.send(asked, bind_entry(query, &entry), &mut progress).await?.done().map_err(lost)?;
        progress.wrote |= !places.is_empty();
        self.tell(&[&swap.expected], &[hash], &places, &HashSet::new(), progress).await
    }

    /// Removes entries of the audit that are older than this; how many.
    pub(crate) async fn purge_audit(&self, older_than: Duration, at_most: usize) -> Result<u64, StoreError> {
        if self.clock.differs() {
            self.mark(false).await?;
        }
        let (mut progress, asked) = (Progress::default(), self.clock.ask_to_write()?);
        // A moment that is as long ago as that can be subtracted from any.
        let age = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX).min(i64::MAX >> 2);
        let query = sqlx::query(statements::PURGE_AUDIT).bind(asked.numbers).bind(self.lossy);
        let query = query.bind(i64::try_from(at_most).unwrap_or(i64::MAX)).bind(age);
        let wrote = self.send(asked, query, &mut progress).await?;
        let gone: i64 = computed(&wrote.row, 2).map_err(lost)?;
        Ok(gone.unsigned_abs())
    }

    /// Removes each expected record and its history; otherwise returns what is there.
    pub(crate) async fn remove(&self, batch: Vec<Expected>) -> Result<Answer<Swapped>, StoreError> {
        let hashes: Vec<KeyHash> = batch.iter().map(|expected| KeyHash::of(&expected.key)).collect();
        let to_send = first_of_each(batch.iter());
        let (mut progress, mut done) = (Progress::default(), HashSet::new());
        for chunk in chunks(&to_send) {
            let items: Vec<_> = chunk.iter().map(|at| (hashes[*at], &batch[*at])).collect();
            let asked = self.ask(&progress)?;
            let query = remove_query(asked, self.lossy, &items);
            let places = self.send(asked, query, &mut progress).await?.done().map_err(lost)?;
            progress.wrote |= !places.is_empty();
            done.extend(places.into_iter().filter_map(|place| chunk.get(place)).copied());
        }
        let nothing = HashSet::new();
        self.tell(&batch.iter().collect::<Vec<_>>(), &hashes, &done, &nothing, progress).await
    }

    /// The time parameters of the next statement of a call.
    fn ask(&self, progress: &Progress) -> Result<Asked, StoreError> {
        self.clock.ask_to_write().map_err(|error| progress.whole(error))
    }

    /// Drops answers that are over; when each of them ended.
    pub(crate) async fn drop_answers(&self, at_most: usize) -> Result<Answer<Timestamp>, StoreError> {
        let (wrote, progress) = self.forget(statements::DROP_ANSWERS, at_most).await?;
        progress.answer(wrote.ends().map_err(lost)?)
    }

    /// Removes records whose time is over.
    pub(crate) async fn purge(&self, at_most: usize) -> Result<Answer<Purged>, StoreError> {
        let (wrote, progress) = self.forget(statements::PURGE, at_most).await?;
        progress.answer(wrote.purged().map_err(lost)?)
    }

    /// Sends a statement that forgets what is over. It looks itself whether a clock hold is open, in its own commit.
    async fn forget(&self, sql: &'static str, at_most: usize) -> Result<(Wrote, Progress), StoreError> {
        // That a hold has ended has to be in the row before anything goes by it.
        if self.clock.differs() {
            self.mark(false).await?;
        }
        let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
        let (mut progress, asked) = (Progress::default(), self.clock.ask_to_write()?);
        let query = sqlx::query(sql).bind(asked.numbers).bind(self.lossy).bind(limit);
        let wrote = self.send(asked, query, &mut progress).await?;
        Ok((wrote, progress))
    }

    /// What became of each conditional write; `held` were not sent.
    async fn tell(
        &self,
        expected: &[&Expected],
        hashes: &[KeyHash],
        done: &HashSet<usize>,
        held: &HashSet<usize>,
        mut progress: Progress,
    ) -> Result<Answer<Swapped>, StoreError> {
        let open = (0..expected.len()).filter(|at| !done.contains(at) && !held.contains(at));
        let found = self.what_is_there(open.map(|at| hashes[at]), &mut progress).await?;
        let tell = |at: usize| {
            if held.contains(&at) {
                return Swapped::Locked;
            }
            if done.contains(&at) {
                return Swapped::Done;
            }
            match found.by_hash(hashes[at], &expected[at].key) {
                Ok(None) => Swapped::Missing,
                // What was expected is there and was not done: its row was locked.
                Ok(Some(record)) if record.expected() == *expected[at] => Swapped::Locked,
                Ok(Some(record)) => Swapped::Changed(Box::new(record.clone())),
                Err(why) => Swapped::Damaged(why),
            }
        };
        progress.answer((0..expected.len()).map(tell).collect())
    }

    async fn send(
        &self,
        asked: Asked,
        query: PgQuery<'_>,
        progress: &mut Progress,
    ) -> Result<Wrote, StoreError> {
        let rows = self.server.write(query).await;
        self.sent(asked, rows, progress)
    }

    /// The same for a statement by which an execution begins.
    async fn begin(
        &self,
        asked: Asked,
        query: PgQuery<'_>,
        progress: &mut Progress,
    ) -> Result<Wrote, StoreError> {
        let rows = self.server.begin(query).await;
        self.sent(asked, rows, progress)
    }

    fn sent(
        &self,
        asked: Asked,
        rows: Result<Vec<PgRow>, StoreError>,
        progress: &mut Progress,
    ) -> Result<Wrote, StoreError> {
        let rows = rows.map_err(|error| progress.whole(error))?;
        let wrote =
            wrote(rows).map_err(lost)?.ok_or_else(not_durable).map_err(|error| progress.whole(error))?;
        // Where this instance turns out to be wrong, what was written stands all the same; nothing more is.
        let told = self.clock.told(&asked, &wrote.answered);
        progress.now.get_or_insert(told.now);
        Ok(wrote)
    }

    async fn what_is_there(
        &self,
        hashes: impl Iterator<Item = KeyHash>,
        progress: &mut Progress,
    ) -> Result<Found, StoreError> {
        let hashes: HashSet<KeyHash> = hashes.collect();
        if hashes.is_empty() {
            return Ok(Found::default());
        }
        let names = hashes.into_iter().map(KeyHash::uuid).collect();
        let (_, found) = read(&self.server, &self.clock, statements::READ, names)
            .await
            .map_err(|error| progress.whole(error))?;
        Ok(found)
    }
}

/// Whether an execution begins with it.
fn begins(swap: &Swap) -> bool {
    let begins = |entry: &HistoryEntry| matches!(entry.happening, Happening::TakenOver | Happening::Retried);
    swap.history.as_ref().is_some_and(begins)
}

pub(crate) fn not_durable() -> StoreError {
    StoreError::Unavailable(
        "synchronous_commit is neither on nor remote_apply on this connection: nothing is written that could be lost".into(),
    )
}

/// An unreadable answer to a write counts as a lost one.
fn lost(error: StoreError) -> StoreError {
    StoreError::Lost(error.to_string())
}

/// How far a call has come that takes several statements.
#[derive(Default)]
struct Progress {
    now: Option<Now>,
    wrote: bool,
}

impl Progress {
    /// The error of the whole call: once anything was written, the error must not say otherwise, nor (by a damaged record
    /// beside it) be led to send it again.
    fn whole(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unavailable(what) | StoreError::Damaged(what) if self.wrote => StoreError::Lost(what),
            error => error,
        }
    }

    fn answer<T>(self, items: Vec<T>) -> Result<Answer<T>, StoreError> {
        let now = self.now.ok_or_else(|| StoreError::Unavailable("no statement was executed".into()))?;
        Ok(Answer::at(now, items))
    }
}

/// The parts that go in one statement each. An empty batch is one empty statement, which returns the time.
fn chunks(indexes: &[usize]) -> Vec<&[usize]> {
    if indexes.is_empty() { vec![indexes] } else { indexes.chunks(MOST).collect() }
}

/// Of several that expect the same of one record the first is sent, in the order in which rows are locked. Others of that record
/// expect something else of it, so that at most one of them finds what it expects.
fn first_of_each<'a>(expected: impl Iterator<Item = &'a Expected>) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut first: Vec<(OperationId, usize)> = expected
        .enumerate()
        .filter(|(_, expected)| seen.insert(*expected))
        .map(|(at, expected)| (expected.operation_id, at))
        .collect();
    first.sort_unstable();
    first.into_iter().map(|(_, at)| at).collect()
}
