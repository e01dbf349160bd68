//! Domain rows, the operation's outcome and its events: one commit, or nothing.

use crate::receiver::Receiver;
use crate::subject::{Subject, numbered};
use semel::transition::{Act, Claim, Refusal, Reservation, Windows, reserve};
use semel::{Fingerprint, OperationId, Owner, Policy, RecipeId, RecordKey, State, Store};
use semel_events::outbox::{postgres, sqlite};
use semel_postgres::CommitError;
use semel_sqlite::TransactionError;

/// The owner completes its payment and tells of it; whoever is not the owner leaves neither.
pub(crate) async fn payment_event_and_outcome_are_one_commit(outbox: Subject) {
    let reservation = Reservation {
        key: RecordKey::new("merchant-7", "create_payment", "a-key-of-the-client"),
        operation_id: OperationId::random(),
        fingerprint: Fingerprint([0; 32]),
        recipe: RecipeId([0; 16]),
        owner: Owner::random(),
    };
    let id = reservation.operation_id;
    let draft = reserve(reservation, &Policy::default());
    let owner = Claim::of(&draft);
    let fenced = Claim { owner: Owner::random(), ..owner };
    store(&outbox).create(vec![draft]).await.unwrap();

    assert!(!complete(&outbox, fenced).await, "the claim does not hold");
    assert_eq!(outbox.left().await, 0);
    assert!(complete(&outbox, owner).await);
    assert_eq!(outbox.left().await, 1);
    let found = store(&outbox).find(vec![id]).await.unwrap().items.remove(0).unwrap();
    assert_eq!(found.state, State::Completed);

    let receiver = Receiver::new();
    let running = outbox.publish(receiver.sink());
    receiver.until_confirmed(1).await;
    running.stop().await;
    assert_eq!(receiver.first_times("payment/pay_1"), [0]);
}

fn store(outbox: &Subject) -> &dyn Store {
    match outbox {
        Subject::Sqlite { store, .. } => store,
        Subject::Postgres { store, .. } => store,
    }
}

/// Whether it was committed; if not, because the claim was refused.
async fn complete(outbox: &Subject, claim: Claim) -> bool {
    let windows = Windows::from(&Policy::default());
    let completion = Act::Complete { response: None, resource: None, windows };
    let events = numbered("payment/pay_1", 0..1);
    match outbox {
        Subject::Sqlite { store, .. } => {
            let finished = store
                .finish_with(claim, move |tx| {
                    sqlite::append(tx, &events)?;
                    Ok::<_, sqlite::AppendError>(((), completion))
                })
                .await;
            assert!(
                matches!(finished, Ok(_) | Err(TransactionError::Refused(Refusal::Fenced))),
                "{finished:?}"
            );
            finished.is_ok()
        }
        Subject::Postgres { store, db, .. } => {
            let mut tx = db.begin().await.unwrap();
            postgres::append_all(&mut tx, &events).await.unwrap();
            let committed = store.commit_with(tx, &claim, &completion).await;
            assert!(matches!(committed, Ok(_) | Err(CommitError::Refused(Refusal::Fenced))), "{committed:?}");
            committed.is_ok()
        }
    }
}
