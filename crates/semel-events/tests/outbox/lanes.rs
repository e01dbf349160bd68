//! Lanes: one holder each, by a lease in the store's time.

use crate::receiver::Receiver;
use crate::subject::{Subject, numbered, until};
use semel_events::message::Event;
use semel_events::outbox::{LANES, Lane, Pending, Place, Refused, Settlement, Token};
use std::collections::BTreeSet;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

fn all() -> Vec<Lane> {
    (0..LANES).collect()
}

pub(crate) async fn lanes_are_shared_and_no_two_hold_one(outbox: Subject) {
    let queue = outbox.queue();
    let tokens = [Token::random(), Token::random(), Token::random()];
    let alone = queue.beat(tokens[0], LONG).await.unwrap();
    assert_eq!((alone.lanes, alone.share), (all(), 64));
    for late in &tokens[1..] {
        assert!(queue.beat(*late, LONG).await.unwrap().lanes.is_empty(), "nobody is robbed");
    }
    let mut held = Vec::new();
    for token in tokens {
        let beat = queue.beat(token, LONG).await.unwrap();
        assert_eq!(beat.share, 22);
        let surplus = beat.lanes.iter().copied().skip(beat.share).collect();
        queue.release(token, surplus).await.unwrap();
        held.push(beat.lanes.into_iter().take(beat.share).collect::<BTreeSet<_>>());
    }
    let counts: Vec<_> = held.iter().map(BTreeSet::len).collect();
    assert_eq!(counts, [22, 22, 20]);
    let together: BTreeSet<Lane> = held.iter().flatten().copied().collect();
    assert_eq!(together.len(), 64, "no two hold one");
    // What is not theirs they cannot give up.
    queue.release(tokens[1], held[0].iter().copied().collect()).await.unwrap();
    let first = queue.beat(tokens[0], LONG).await.unwrap();
    assert_eq!(first.lanes.into_iter().collect::<BTreeSet<_>>(), held[0]);
}

pub(crate) async fn the_lanes_of_one_that_died_go_to_the_others(outbox: Subject) {
    let queue = outbox.queue();
    let (dead, heir) = (Token::random(), Token::random());
    queue.beat(dead, Duration::from_millis(200)).await.unwrap();
    assert!(queue.beat(heir, LONG).await.unwrap().lanes.is_empty());
    until(async || queue.beat(heir, LONG).await.unwrap().lanes == all()).await;
    assert_eq!(queue.beat(heir, LONG).await.unwrap().share, 64, "the dead have no share");
    assert!(queue.beat(dead, LONG).await.unwrap().lanes.is_empty(), "what was taken over is gone");
}

pub(crate) async fn a_publisher_that_lost_its_lane_counts_nothing(outbox: Subject) {
    let queue = outbox.queue();
    let (late, heir) = (Token::random(), Token::random());
    outbox.append(numbered("payment/pay_1", 0..2)).await;
    outbox.append(numbered("payment/pay_2", 0..1)).await;
    queue.beat(late, Duration::from_millis(100)).await.unwrap();
    let batch = queue.read(all(), 10).await.unwrap();
    until(async || queue.beat(heir, LONG).await.unwrap().lanes == all()).await;
    let (one, two): (Vec<Pending>, Vec<Pending>) =
        batch.events.into_iter().partition(|pending| pending.event.aggregate == "payment/pay_1");
    let [refused, behind] = one.try_into().unwrap();
    let refused = Refused { event: refused, error: "late".into(), retry_in: None };
    let settlement = Settlement { published: two, refused: vec![refused], behind: vec![behind] };
    queue.settle(late, settlement.clone()).await.unwrap();
    let read = queue.read(all(), 10).await.unwrap();
    assert_eq!(read.events.len(), 2, "nothing was parked; what the receiver confirmed is gone all the same");
    assert!(
        read.events.iter().all(|pending| pending.attempts == 0 && pending.event.aggregate == "payment/pay_1")
    );
    queue.settle(heir, settlement.clone()).await.unwrap();
    queue.settle(heir, settlement).await.unwrap();
    let entry = outbox.desk().find(read.events[0].event.id).await.unwrap().1.unwrap();
    assert_eq!(
        (entry.attempts, entry.dead_letter),
        (1, true),
        "a refusal counts once, however often it is told"
    );
}

/// Each of them was refused, and is due again.
pub(crate) async fn what_is_tried_again_counts_towards_the_bytes_of_its_lane(outbox: Subject) {
    const AGGREGATES: usize = 6;
    let (queue, token) = (outbox.queue(), Token::random());
    let lane = Place::of("payment/pay_1").lane;
    let mut neighbours =
        (0..).map(|number| format!("order/{number}")).filter(|name| Place::of(name).lane == lane);
    let aggregates: Vec<String> = neighbours.by_ref().take(AGGREGATES).collect();
    // Four of them are less than a quarter of a mebibyte, five are more.
    let large = |aggregate: &str, number: u32| Event::json(aggregate, "Large", format!("{number:0>61440}"));
    let two = |aggregate: &String| [large(aggregate, 0), large(aggregate, 1)];
    outbox.append(aggregates.iter().flat_map(two).collect()).await;
    queue.beat(token, LONG).await.unwrap();
    loop {
        let batch = queue.read(vec![lane], 100).await.unwrap();
        let fresh = batch.events.into_iter().filter(|pending| !pending.parked);
        let mut met = BTreeSet::new();
        let (heads, mut behind): (Vec<Pending>, Vec<Pending>) =
            fresh.partition(|pending| met.insert(pending.event.aggregate.clone()));
        behind.extend(batch.behind);
        if heads.is_empty() && behind.is_empty() {
            break;
        }
        let refused = |event| Refused { event, error: "no".into(), retry_in: Some(Duration::ZERO) };
        let refused = heads.into_iter().map(refused).collect();
        queue.settle(token, Settlement { refused, behind, ..Settlement::default() }).await.unwrap();
    }
    let read = async || {
        let events = queue.read(vec![lane], 100).await.unwrap().events;
        events.into_iter().partition::<Vec<_>, _>(|pending| pending.parked)
    };
    let (again, fresh) = read().await;
    assert_eq!((again.len(), fresh.len()), (5, 0), "of all the aggregates together");
    // One that is new is not held up by them, and they not by others that are new.
    let newcomer = neighbours.next().unwrap();
    outbox.append(vec![large(&newcomer, 0), large(&newcomer, 1)]).await;
    let (again, fresh) = read().await;
    assert_eq!((again.len(), fresh.len()), (5, 1));
    assert!(fresh.iter().all(|pending| pending.event.aggregate == newcomer));

    queue.leave(token).await.unwrap();
    let receiver = Receiver::new();
    let running = outbox.publish(receiver.sink());
    outbox.until_left(0).await;
    running.stop().await;
    for aggregate in aggregates.iter().chain([&newcomer]) {
        assert_eq!(receiver.first_times(aggregate), [0, 1], "{aggregate}");
    }
}

pub(crate) async fn one_that_comes_later_gets_its_share(outbox: Subject) {
    let receivers = [Receiver::new(), Receiver::new()];
    let first = outbox.publish(receivers[0].sink());
    outbox.append(numbered("warm/up", 0..1)).await;
    receivers[0].until_confirmed(1).await;
    let second = outbox.publish(receivers[1].sink());
    // Aggregates of every lane, until the second one gets some of them.
    let mut number = 0;
    until(async || {
        let aggregates = (0..64).map(|_| {
            number += 1;
            format!("order/{number}")
        });
        let events = aggregates.flat_map(|aggregate| numbered(&aggregate, 0..1)).collect();
        outbox.append(events).await;
        outbox.until_left(0).await;
        receivers[1].confirmed().len() > 100
    })
    .await;
    first.stop().await;
    second.stop().await;
    let lanes = |receiver: &Receiver| -> BTreeSet<Lane> {
        receiver.confirmed().iter().map(|event| Place::of(&event.aggregate).lane).collect()
    };
    assert!(lanes(&receivers[1]).len() <= 32, "no more than its share while the other one lives");
    let each_once = receivers.iter().map(|receiver| receiver.confirmed().len()).sum::<usize>();
    assert_eq!(each_once, number + 1, "nobody was killed, so nothing came twice");
}
