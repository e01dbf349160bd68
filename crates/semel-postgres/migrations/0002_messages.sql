-- The outbox: what is to be told to others, appended in the transaction in which it happened. A row leaves when its receiver has
-- confirmed it, so the table is as large as the backlog.
CREATE TABLE semel_outbox (
    -- The order within an aggregate.
    id           bigint GENERATED ALWAYS AS IDENTITY,
    -- The message id.
    event_id     uuid PRIMARY KEY,
    created_at   bigint NOT NULL,
    -- Of the first parked event of an aggregate: when it is tried again.
    retry_at     bigint,
    -- How often the receiver refused it.
    attempts     integer NOT NULL DEFAULT 0,
    -- Which part of the outbox the aggregate belongs to. Each part is published by one publisher at a time.
    lane         smallint NOT NULL,
    -- Waits because an event of its aggregate was refused: itself, or one before it.
    parked       boolean NOT NULL DEFAULT false,
    -- Nothing automatic tries it again.
    dead_letter  boolean NOT NULL DEFAULT false,
    aggregate    text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    content_type text COLLATE "C" NOT NULL,
    last_error   text COLLATE "C",
    payload      bytea NOT NULL
) WITH (
    -- Every row is written once and deleted soon: vacuum has to keep up with that, however small the table is.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_vacuum_cost_limit = 2000,
    autovacuum_analyze_threshold = 5000
);

CREATE INDEX semel_outbox_pending ON semel_outbox (lane, id) WHERE NOT parked;
CREATE INDEX semel_outbox_parked ON semel_outbox (aggregate, id) WHERE parked;
CREATE INDEX semel_outbox_retry ON semel_outbox (lane, retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX semel_outbox_dead_letter ON semel_outbox (event_id) WHERE dead_letter;

-- Who publishes which part, and until when nobody else may. The row is also the lock of what is parked in it.
CREATE TABLE semel_outbox_lanes (
    lane        smallint PRIMARY KEY,
    owner       uuid,
    lease_until bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO semel_outbox_lanes (lane) SELECT generate_series(0, 63);

-- Publishers that live, so that they can share the lanes.
CREATE TABLE semel_outbox_publishers (
    owner       uuid PRIMARY KEY,
    lease_until bigint NOT NULL
) WITH (fillfactor = 50);

-- What an operator took out of the outbox, and why.
CREATE TABLE semel_outbox_dropped (
    event_id   uuid PRIMARY KEY,
    dropped_at bigint NOT NULL,
    created_at bigint NOT NULL,
    attempts   integer NOT NULL,
    aggregate  text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    last_error text COLLATE "C",
    dropped_by text COLLATE "C" NOT NULL,
    reason     text COLLATE "C" NOT NULL
);

-- The inbox: what consumers have done, written in the commit that did it. Times are milliseconds since 1970 (UTC).

-- A row for each message that a consumer is through with.
CREATE TABLE semel_inbox (
    marked_at  bigint NOT NULL,
    consumer   text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (consumer, message_id)
);
-- In the order in which they are forgotten.
CREATE INDEX semel_inbox_age ON semel_inbox (consumer, marked_at);

-- A row for each effect that is done, by its business identity: `ledger_payment_pay_789`. Whichever message told of it, it happens
-- once.
CREATE TABLE semel_inbox_effects (
    marked_at bigint NOT NULL,
    consumer  text COLLATE "C" NOT NULL,
    effect    text COLLATE "C" NOT NULL,
    PRIMARY KEY (consumer, effect)
);
CREATE INDEX semel_inbox_effects_age ON semel_inbox_effects (consumer, marked_at);
