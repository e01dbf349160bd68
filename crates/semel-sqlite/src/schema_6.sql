-- The audit: what operators did, and what was refused. It outlives the records that it is about, and is found by what has a column of its own;
-- `details` is a JSON object with the rest. Ordered by time, and within one moment by `sequence`.
CREATE TABLE semel_audit (
    sequence  INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    entry_id  BLOB NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    result    TEXT NOT NULL,
    target    TEXT,
    tenant    TEXT,
    operation TEXT,
    details   TEXT NOT NULL
);
CREATE INDEX semel_audit_at ON semel_audit (at, sequence);
CREATE INDEX semel_audit_actor ON semel_audit (actor, at, sequence);
CREATE INDEX semel_audit_action ON semel_audit (action, at, sequence);
CREATE INDEX semel_audit_target ON semel_audit (target, at, sequence) WHERE target IS NOT NULL;
CREATE INDEX semel_audit_tenant ON semel_audit (tenant, at, sequence) WHERE tenant IS NOT NULL;
