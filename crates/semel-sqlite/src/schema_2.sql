-- The outbox: what is to be told to others, appended in the transaction in which it happened. A row leaves when its receiver has
-- confirmed it, so the table is as large as the backlog.
CREATE TABLE semel_outbox (
    -- The order within an aggregate.
    id           INTEGER PRIMARY KEY,
    -- The message id.
    event_id     BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    -- Of the first parked event of an aggregate: when it is tried again.
    retry_at     INTEGER,
    -- How often the receiver refused it.
    attempts     INTEGER NOT NULL DEFAULT 0,
    -- Which part of the outbox the aggregate belongs to. Each part is published by one publisher at a time.
    lane         INTEGER NOT NULL,
    -- Waits because an event of its aggregate was refused: itself, or one before it.
    parked       INTEGER NOT NULL DEFAULT 0,
    -- Nothing automatic tries it again.
    dead_letter  INTEGER NOT NULL DEFAULT 0,
    aggregate    TEXT NOT NULL,
    kind         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    last_error   TEXT,
    payload      BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX semel_outbox_event_id ON semel_outbox (event_id);
CREATE INDEX semel_outbox_pending ON semel_outbox (lane, id) WHERE parked = 0;
CREATE INDEX semel_outbox_parked ON semel_outbox (aggregate, id) WHERE parked = 1;
CREATE INDEX semel_outbox_retry ON semel_outbox (lane, retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX semel_outbox_dead_letter ON semel_outbox (event_id) WHERE dead_letter = 1;

-- Who publishes which part, and until when nobody else may.
CREATE TABLE semel_outbox_lanes (
    lane        INTEGER PRIMARY KEY,
    owner       BLOB,
    lease_until INTEGER NOT NULL DEFAULT 0
) STRICT;
WITH RECURSIVE lanes (lane) AS (SELECT 0 UNION ALL SELECT lane + 1 FROM lanes WHERE lane < 63)
INSERT INTO semel_outbox_lanes (lane) SELECT lane FROM lanes;

-- Publishers that live, so that they can share the lanes.
CREATE TABLE semel_outbox_publishers (
    owner       BLOB PRIMARY KEY NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What an operator took out of the outbox, and why.
CREATE TABLE semel_outbox_dropped (
    event_id   BLOB PRIMARY KEY NOT NULL,
    dropped_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    aggregate  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    last_error TEXT,
    dropped_by TEXT NOT NULL,
    reason     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The inbox: what consumers have done, written in the commit that did it.

-- A row for each message that a consumer is through with.
CREATE TABLE semel_inbox (
    consumer   TEXT NOT NULL,
    message_id TEXT NOT NULL,
    marked_at  INTEGER NOT NULL,
    PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;
-- In the order in which they are forgotten.
CREATE INDEX semel_inbox_age ON semel_inbox (consumer, marked_at);

-- A row for each effect that is done, by its business identity: `ledger_payment_pay_789`. Whichever message told of it, it happens
-- once.
CREATE TABLE semel_inbox_effects (
    consumer  TEXT NOT NULL,
    effect    TEXT NOT NULL,
    marked_at INTEGER NOT NULL,
    PRIMARY KEY (consumer, effect)
) STRICT, WITHOUT ROWID;
CREATE INDEX semel_inbox_effects_age ON semel_inbox_effects (consumer, marked_at);
