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
