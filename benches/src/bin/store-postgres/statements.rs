//! The two statements that a service would write by hand on the same table: reserve, if nobody has, and complete.
//!
//! They write the columns that an operation fills and leave the others alone, with literals for what does not differ from one
//! operation to the next: nothing cheaper does the same.

/// What differs: as a parameter of the driver's, or as an expression of pgbench's.
pub(crate) struct Different {
    pub(crate) key_hash: &'static str,
    pub(crate) operation_id: &'static str,
    pub(crate) owner: &'static str,
    pub(crate) key: &'static str,
}

const RESERVE: &str = "INSERT INTO semel_records (key_hash, operation_id, recipe, owner, version, attempt, \
     reconcile_attempts, created_at, lease_until, due_at, dead_letter, fingerprint, state, taken_by, due_kind, tenant, \
     operation, key)";

impl Different {
    pub(crate) fn reserve(&self) -> String {
        format!("{RESERVE} VALUES ({}) ON CONFLICT DO NOTHING", self.reserved())
    }

    /// The same for many, in one statement: `n` is the number of each.
    pub(crate) fn reserve_all(&self, numbers: &str) -> String {
        format!("{RESERVE} SELECT {} FROM {numbers} AS n ON CONFLICT DO NOTHING", self.reserved())
    }

    fn reserved(&self) -> String {
        let Self { key_hash, operation_id, owner, key } = self;
        format!(
            "{key_hash}, {operation_id}, '5f2b8c1d9e3a4f60b7c8d9eaf0112233', {owner}, 1, 1, 0, 1800000000000, \
             1800000030000, 1800000030000, false, '\\x{fingerprint}', 'in_progress', 'first', 'lease', 'acc_1', \
             'create_payment', {key}",
            fingerprint = "9c1f5e07".repeat(8),
        )
    }

    pub(crate) fn complete(&self) -> String {
        self.complete_from("")
    }

    /// The same for many, in one statement: `n` is the number of each.
    pub(crate) fn complete_all(&self, numbers: &str) -> String {
        self.complete_from(&format!(" FROM {numbers} AS n"))
    }

    fn complete_from(&self, from: &str) -> String {
        let Self { operation_id, .. } = self;
        format!(
            "WITH done AS (UPDATE semel_records SET state = 'completed', version = 2, completed_at = 1800000000001, \
             expires_at = 1800086400001, purge_at = 1800691200001, due_kind = 'purge', due_at = 1800691200001, \
             response_status = 201, body_kind = 'stored', response_sum = 1234567890{from} \
             WHERE operation_id = {operation_id} AND version = 1 RETURNING semel_records.operation_id) \
             INSERT INTO semel_answers (ends_at, operation_id, headers, body) \
             SELECT 1800086400001, operation_id, '[[\"content-type\",\"application/json\"]]', '{body}' FROM done",
            body = "x".repeat(200),
        )
    }
}
