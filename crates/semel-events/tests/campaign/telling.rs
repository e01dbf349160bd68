//! What the broker was told, and how it is told on.

use crate::books::{ACCOUNTS, number_of};
use crate::broker::TestStream;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::context::PublishErrorKind;
use semel_conformance::kill::Dice;
use std::time::Duration;
use tokio_stream::StreamExt as _;

/// Everything in the stream, as a consumer sees it.
pub(crate) async fn everything(stream: &TestStream) -> Vec<Message> {
    let mut source = stream.context.get_stream(&stream.name).await.unwrap();
    let count = usize::try_from(source.info().await.unwrap().state.messages).unwrap();
    let config = pull::Config { ack_policy: AckPolicy::None, ..Default::default() };
    let reader = source.create_consumer(config).await.unwrap();
    let mut messages = Vec::new();
    while messages.len() < count {
        let asking = reader.batch().max_messages(1_000).expires(Duration::from_secs(20));
        let mut some = asking.messages().await.unwrap();
        while messages.len() < count
            && let Some(message) = some.next().await
        {
            messages.push(message.unwrap());
        }
    }
    messages
}

/// Every payment was told, and none before the one that was made before it on the same account. It may be told again: whoever told
/// it was killed before the note of it.
pub(crate) fn all_in_order(messages: &[Message], payments: usize, seed: u64) {
    assert!(messages.len() > payments, "seed {seed}: somebody was killed before noting what was told");
    let mut told = vec![0; ACCOUNTS];
    for message in messages {
        let number = number_of(&message.payload);
        let (account, place) = (number % ACCOUNTS, number / ACCOUNTS);
        assert!(place <= told[account], "seed {seed}: payment {number} was told before the one before it");
        told[account] = told[account].max(place + 1);
    }
    assert_eq!(told.iter().sum::<usize>(), payments, "seed {seed}: some payments were never told");
}

/// Tells everything on in any order, and then a fifth of it once more.
pub(crate) async fn again_and_shuffled(
    stream: &TestStream,
    mut messages: Vec<Message>,
    payments: usize,
    seed: u64,
) {
    let mut dice = Dice::seeded(seed);
    for round in [messages.len(), messages.len() / 5] {
        for place in (1..messages.len()).rev() {
            messages.swap(place, usize::try_from(dice.below(place as u64 + 1)).unwrap());
        }
        for some in messages[..round].chunks(256) {
            let mut unconfirmed: Vec<&Message> = some.iter().collect();
            // A broker on a busy disk may take longer than its client waits. Telling it once more is what this is about.
            while !unconfirmed.is_empty() {
                let mut sent = Vec::new();
                for message in unconfirmed.drain(..) {
                    let subject = format!("{}.PaymentCreated", stream.name);
                    let (headers, payload) = (message.headers.clone().unwrap(), message.payload.clone());
                    let sending = stream.context.publish_with_headers(subject, headers, payload);
                    sent.push((message, sending.await.unwrap()));
                }
                for (message, confirmation) in sent {
                    match confirmation.await {
                        Ok(_) => {}
                        Err(late) if late.kind() == PublishErrorKind::TimedOut => unconfirmed.push(message),
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
            }
        }
    }
    let kept = stream.context.get_stream(&stream.name).await.unwrap().cached_info().state.messages;
    assert!(
        kept > payments as u64 * 11 / 10,
        "seed {seed}: the broker has dropped repetitions, {kept} are left"
    );
}
