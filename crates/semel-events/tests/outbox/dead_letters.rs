//! One bad event.

use crate::receiver::{Does, Receiver, number};
use crate::subject::{Running, Subject, hasty, numbered};
use semel::audit::{AuditAction, AuditEntry, AuditFilter};
use semel_events::message::Event;
use semel_events::outbox::{
    EntryFilter, Place, Publisher, PublisherOptions, Refused, Settlement, Token, Touched,
};
use std::time::Duration;
use uuid::Uuid;

/// The second event of `payment/bad` is refused.
fn poisoned(event: &Event) -> Does {
    if event.aggregate == "payment/bad" && number(event) == 1 { Does::Refuses } else { Does::Confirms }
}

/// Ten events of a bad aggregate and of a good one, up to the dead letter, whose id it is.
async fn with_a_dead_letter(outbox: &Subject, receiver: &Receiver) -> (Running, Uuid) {
    let bad = numbered("payment/bad", 0..10);
    let id = bad[1].id;
    outbox.append(bad).await;
    outbox.append(numbered("payment/good", 0..10)).await;
    let running = outbox.publish(receiver.sink());
    outbox.until_dead_letters(1).await;
    receiver.until_confirmed(11).await;
    outbox.until_left(9).await;
    (running, id)
}

pub(crate) async fn a_poison_event_stops_its_aggregate_alone(outbox: Subject) {
    let receiver = Receiver::that(poisoned);
    let (running, id) = with_a_dead_letter(&outbox, &receiver).await;
    // What comes later waits behind it; others do not.
    outbox.append(numbered("payment/bad", 10..12)).await;
    outbox.append(numbered("payment/good", 10..12)).await;
    receiver.until_confirmed(13).await;
    running.stop().await;
    assert_eq!(receiver.first_times("payment/good"), (0..12).collect::<Vec<_>>());
    assert_eq!(receiver.first_times("payment/bad"), [0]);
    let entry = outbox.desk().find(id).await.unwrap().1.unwrap();
    assert_eq!((entry.attempts, entry.dead_letter, entry.parked, entry.retry), (3, true, true, None));
    assert_eq!(entry.last_error.as_deref(), Some("not of this kind"));
    let stats = outbox.desk().stats().await.unwrap();
    assert_eq!((stats.backlog, stats.dead_letters), (11, 1));
}

pub(crate) async fn a_requeued_dead_letter_is_delivered_with_those_behind_it_in_order(outbox: Subject) {
    let receiver = Receiver::that(poisoned);
    let (running, id) = with_a_dead_letter(&outbox, &receiver).await;
    // Before it is mended: it dies again.
    let Touched::Done(entry) = outbox.desk().requeue(id, None).await.unwrap() else {
        panic!("it can be requeued")
    };
    assert_eq!((entry.attempts, entry.dead_letter), (0, false));
    outbox.until_dead_letters(1).await;
    receiver.now(|_| Does::Confirms);
    outbox.append(numbered("payment/bad", 10..12)).await;
    assert!(matches!(outbox.desk().requeue(id, None).await.unwrap(), Touched::Done(_)));
    outbox.until_left(0).await;
    running.stop().await;
    assert_eq!(receiver.first_times("payment/bad"), (0..12).collect::<Vec<_>>());
    assert_eq!(receiver.confirmed().len(), 22, "each of them once");
}

pub(crate) async fn what_an_operator_does_is_in_the_audit_with_it_and_what_is_not_done_is_not(
    outbox: Subject,
) {
    let entry = |action| Some(AuditEntry::new("token:ada", action));
    let audited = async || {
        let page = outbox.store().audited(AuditFilter::default(), None, 10).await.unwrap();
        page.lines.into_iter().map(|line| line.entry.action).collect::<Vec<_>>()
    };
    let waiting = numbered("payment/waiting", 0..1).remove(0);
    outbox.append(vec![waiting.clone()]).await;
    let not = outbox.desk().requeue(waiting.id, entry(AuditAction::Republish)).await.unwrap();
    assert!(matches!(not, Touched::NotRefused(_)));
    let drop = entry(AuditAction::Drop);
    let none = outbox.desk().discard(Uuid::from_u128(7), "ada".into(), "x".into(), drop).await.unwrap();
    assert_eq!(none, Touched::Missing);
    assert_eq!(audited().await, []);
    let receiver = Receiver::that(poisoned);
    let (running, id) = with_a_dead_letter(&outbox, &receiver).await;
    let done = outbox.desk().requeue(id, entry(AuditAction::Republish)).await.unwrap();
    assert!(matches!(done, Touched::Done(_)));
    outbox.until_dead_letters(1).await;
    let done =
        outbox.desk().discard(id, "ada".into(), "gone".into(), entry(AuditAction::Drop)).await.unwrap();
    assert!(matches!(done, Touched::Done(_)));
    assert_eq!(audited().await, [AuditAction::Drop, AuditAction::Republish]);
    running.stop().await;
}

pub(crate) async fn a_dropped_dead_letter_lets_those_behind_it_go(outbox: Subject) {
    let receiver = Receiver::that(poisoned);
    let (running, id) = with_a_dead_letter(&outbox, &receiver).await;
    let dropped = outbox.desk().discard(id, "ada".into(), "the partner is gone".into(), None).await.unwrap();
    assert!(matches!(dropped, Touched::Done(entry) if entry.dead_letter));
    outbox.until_left(0).await;
    running.stop().await;
    assert_eq!(receiver.first_times("payment/bad"), [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(outbox.desk().requeue(id, None).await.unwrap(), Touched::Missing);
    assert_eq!(
        outbox.desk().discard(id, "ada".into(), "again".into(), None).await.unwrap(),
        Touched::Missing
    );
}

pub(crate) async fn many_events_behind_a_dead_letter_do_not_fill_their_lane(outbox: Subject) {
    let lane = Place::of("payment/bad").lane;
    let neighbour = (0..)
        .map(|number| format!("order/{number}"))
        .find(|aggregate| Place::of(aggregate).lane == lane)
        .unwrap();
    let receiver =
        Receiver::that(|event| if event.aggregate == "payment/bad" { Does::Refuses } else { Does::Confirms });
    outbox.append(numbered("payment/bad", 0..200)).await;
    outbox.append(numbered(&neighbour, 0..3)).await;
    // One event of each lane at a time.
    let options = PublisherOptions { batch: 1, ..hasty() };
    let running = Running::start(Publisher::new(outbox.queue(), receiver.sink(), options));
    receiver.until_confirmed(3).await;
    running.stop().await;
    assert_eq!(receiver.first_times(&neighbour), [0, 1, 2]);
    assert_eq!(outbox.left().await, 200);
}

pub(crate) async fn an_event_that_alone_does_not_get_through_is_counted_in_the_end(outbox: Subject) {
    let receiver =
        Receiver::that(
            |event| if event.aggregate == "payment/bad" { Does::IsUnreachable } else { Does::Confirms },
        );
    let bad = numbered("payment/bad", 0..1);
    let id = bad[0].id;
    outbox.append(bad).await;
    // One after the other, so that something is sent after the bad one.
    let options = PublisherOptions { in_flight: 1, ..hasty() };
    let running = Running::start(Publisher::new(outbox.queue(), receiver.sink(), options));
    let lane = Place::of("payment/bad").lane;
    let neighbours: Vec<String> = (0..)
        .map(|number| format!("order/{number}"))
        .filter(|aggregate| Place::of(aggregate).lane == lane)
        .take(200)
        .collect();
    for neighbour in neighbours {
        if outbox.desk().stats().await.unwrap().dead_letters == 1 {
            break;
        }
        outbox.append(numbered(&neighbour, 0..1)).await;
        receiver.until_confirmed(1).await;
        outbox.until_left(1).await;
    }
    running.stop().await;
    let entry = outbox.desk().find(id).await.unwrap().1.unwrap();
    assert!(entry.dead_letter, "{entry:?}");
    assert_eq!(entry.last_error.as_deref(), Some("connection refused, while other events were delivered"));
}

pub(crate) async fn only_what_was_refused_can_be_requeued_or_dropped(outbox: Subject) {
    let events = numbered("payment/pay_1", 0..1);
    let id = events[0].id;
    outbox.append(events).await;
    let desk = outbox.desk();
    assert!(matches!(desk.requeue(id, None).await.unwrap(), Touched::NotRefused(_)));
    assert!(matches!(
        desk.discard(id, "ada".into(), "no".into(), None).await.unwrap(),
        Touched::NotRefused(_)
    ));
    assert_eq!(desk.requeue(Uuid::from_u128(7), None).await.unwrap(), Touched::Missing);
    assert_eq!(outbox.left().await, 1);
}

pub(crate) async fn a_refusal_from_before_it_was_requeued_does_not_count(outbox: Subject) {
    let (queue, desk, token) = (outbox.queue(), outbox.desk(), Token::random());
    outbox.append(numbered("payment/pay_1", 0..1)).await;
    let lanes = queue.beat(token, Duration::from_secs(3600)).await.unwrap().lanes;
    let refuse = async |retry_in| {
        let event = queue.read(lanes.clone(), 10).await.unwrap().events.remove(0);
        Settlement { refused: vec![Refused { event, error: "no".into(), retry_in }], ..Settlement::default() }
    };
    let first = refuse(Some(Duration::ZERO)).await;
    let id = first.refused[0].event.event.id;
    queue.settle(token, first).await.unwrap();
    let second = refuse(None).await;
    assert_eq!(second.refused[0].event.attempts, 1);
    assert!(matches!(desk.requeue(id, None).await.unwrap(), Touched::Done(_)));
    queue.settle(token, second).await.unwrap();
    let entry = desk.find(id).await.unwrap().1.unwrap();
    assert_eq!((entry.attempts, entry.dead_letter), (0, false));
    assert!(entry.retry.is_some(), "it is still on its way");
}

pub(crate) async fn the_outbox_can_be_listed_page_by_page(outbox: Subject) {
    let receiver = Receiver::that(poisoned);
    let (running, dead) = with_a_dead_letter(&outbox, &receiver).await;
    running.stop().await;
    let desk = outbox.desk();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = desk.list(EntryFilter::default(), before, 4).await.unwrap();
        assert!(page.entries.len() <= 4 && page.entries.iter().all(|entry| entry.event.payload.is_empty()));
        seen.extend(page.entries.iter().map(|entry| entry.event.id));
        before = seen.last().copied();
        if !page.more {
            break;
        }
    }
    assert!(seen.len() == 9 && seen.is_sorted_by(|one, next| one > next), "{seen:?}");
    let of = async |filter| {
        let page = desk.list(filter, None, 100).await.unwrap();
        page.entries.into_iter().map(|entry| entry.event.id).collect::<Vec<_>>()
    };
    let only = |dead_letter| EntryFilter { dead_letter: Some(dead_letter), ..EntryFilter::default() };
    assert_eq!(of(only(true)).await, [dead]);
    assert_eq!(of(only(false)).await.len(), 8);
    let kind = EntryFilter { kind: Some("Other".into()), ..EntryFilter::default() };
    assert!(of(kind).await.is_empty());
    let aggregate = EntryFilter { aggregate: Some("payment/bad".into()), ..EntryFilter::default() };
    assert_eq!(of(aggregate).await.len(), 9);
    let (now, shown) = desk.find(dead).await.unwrap();
    let shown = shown.unwrap();
    assert_eq!(number(&shown.event), 1);
    assert!(now.after(shown.created) < Duration::from_secs(600));
}
