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
