//! Decide, write, decide again: one loop, and it ends.

use crate::support::Shop;
use semel::cas::{Decide, Decided, Look, Updated, compare_and_swap};
use semel::transition::remark;
use semel::{Actor, Record, StoreError};
use semel_testing::store::{Call, Fault};

/// Remarks upon a record, and goes on whatever becomes of its writes.
struct Stubborn {
    record: Record,
    /// Decides on the first record for ever.
    is_blind: bool,
    looks: Vec<&'static str>,
}

impl Decide for Stubborn {
    type Stop = ();

    async fn decide(&mut self, look: Look) -> Result<Decided<()>, StoreError> {
        self.looks.push(match look {
            Look::First => "first",
            Look::Changed(record, _) => {
                if !self.is_blind {
                    self.record = *record;
                }
                "changed"
            }
            Look::Lost(_) => "lost",
        });
        Ok(Decided::Write(self.record.expected(), remark(&self.record, Actor::Reconciler, None)))
    }
}

async fn stubborn(shop: &Shop, is_blind: bool) -> Stubborn {
    std::mem::forget(shop.execute().await);
    Stubborn { record: shop.record().await.unwrap(), is_blind, looks: Vec::new() }
}

#[tokio::test(start_paused = true)]
async fn what_is_there_instead_is_decided_on_and_written() {
    let shop = Shop::new();
    let mut first = stubborn(&shop, false).await;
    let mut second = Stubborn { record: first.record.clone(), is_blind: false, looks: Vec::new() };
    assert!(matches!(
        compare_and_swap(shop.engine.store(), &mut first).await,
        Ok(Updated::Written(Some(record))) if record.version == first.record.version + 1
    ));
    let written = compare_and_swap(shop.engine.store(), &mut second).await;
    assert!(
        matches!(written, Ok(Updated::Written(Some(record))) if record.version == first.record.version + 2)
    );
    assert_eq!(second.looks, ["first", "changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_changes_all_the_time_is_given_up() {
    let shop = Shop::new();
    let mut blind = stubborn(&shop, true).await;
    compare_and_swap(shop.engine.store(), &mut blind).await.unwrap();
    let ended = compare_and_swap(shop.engine.store(), &mut blind).await;
    assert!(matches!(ended, Err(StoreError::Unavailable(_))), "nothing of it was written: {ended:?}");
    assert_eq!(blind.looks.len(), 1 + 32);
}

#[tokio::test(start_paused = true)]
async fn where_the_last_answer_is_lost_it_may_have_been_written() {
    let shop = Shop::new();
    let mut blind = stubborn(&shop, true).await;
    shop.store.always(Call::Swap, Fault::LostAnswer);
    let ended = compare_and_swap(shop.engine.store(), &mut blind).await;
    assert!(matches!(ended, Err(StoreError::Lost(_))), "{ended:?}");
    assert!(blind.looks[1..].iter().all(|look| *look == "lost"));
    shop.store.heal();
    assert_eq!(
        shop.record().await.unwrap().version,
        blind.record.version + 1,
        "once, however often it was tried"
    );
}
