//! Marks on a PostgreSQL server whose clock is moved.

use crate::ledger::id;
use crate::server_clock::ServerClock;
use semel::Store as _;
use semel::clock::ClockRequest;
use semel_events::inbox::{Forgotten, Handled, PgInbox};
use semel_postgres::PgStore;
use semel_testing::database::Database;
use sqlx::PgPool;

const DAY: i64 = 24 * 60 * 60 * 1_000;

struct Moved {
    _database: Database,
    clock: ServerClock,
    store: PgStore,
    inbox: PgInbox,
}

impl Moved {
    async fn new() -> Self {
        let database = Database::new().await;
        let clock = ServerClock::of(&database).await;
        let store = PgStore::connect(&clock.url()).await.unwrap();
        let pool = PgPool::connect(&clock.url()).await.unwrap();
        Self { _database: database, clock, store, inbox: PgInbox::new(pool, "ledger").unwrap() }
    }

    async fn handle(&self, message: &str) -> Handled<()> {
        self.inbox.handle(&id(message), async |_| Ok::<_, sqlx::Error>(())).await.unwrap()
    }

    /// The server's clock jumps, and the store sees that.
    async fn jump(&self, days: i64) {
        self.clock.jump(days * DAY).await;
        self.store.clock(ClockRequest::Look).await.unwrap();
    }
}

#[tokio::test]
async fn a_jump_of_the_servers_clock_forgets_no_mark() {
    let moved = Moved::new().await;
    assert_eq!(moved.handle("m1").await, Handled::Now(()));
    // Before any store has seen it.
    moved.clock.jump(30 * DAY).await;
    assert_eq!(moved.inbox.forget().await.unwrap(), Forgotten::default());
    moved.jump(0).await;
    assert_eq!(moved.inbox.forget().await.unwrap(), Forgotten::default());
    moved.jump(-30).await;
    assert_eq!(moved.inbox.forget().await.unwrap(), Forgotten::default());
    assert_eq!(moved.handle("m1").await, Handled::Before);
    // Somebody vouches for it.
    moved.jump(30).await;
    moved.store.clock(ClockRequest::Accept).await.unwrap();
    assert_eq!(moved.inbox.forget().await.unwrap().messages, 1);
}

#[tokio::test]
async fn a_mark_that_is_made_while_the_servers_clock_is_set_back_is_no_older_for_it() {
    let moved = Moved::new().await;
    // Before any store has seen it, and after that.
    moved.clock.jump(-20 * DAY).await;
    assert_eq!(moved.handle("m1").await, Handled::Now(()));
    moved.jump(0).await;
    assert_eq!(moved.handle("m2").await, Handled::Now(()));
    moved.jump(20).await;
    assert_eq!(moved.inbox.forget().await.unwrap(), Forgotten::default());
    for message in ["m1", "m2"] {
        assert_eq!(moved.handle(message).await, Handled::Before);
    }
}
