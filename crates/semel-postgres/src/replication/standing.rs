//! How replication stands on the server, and whether that is what was declared.

use super::Replication;
use super::standby_names::StandbyNames;
use crate::error::OpenError;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row, raw_sql};

/// What the operator says of replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Declared {
    pub(crate) replication: Option<Replication>,
    /// A failover may lose commits, and that is accepted.
    pub(crate) asynchronous: bool,
    /// The URL names several hosts.
    pub(crate) several_hosts: bool,
}

/// What the server says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    pub(crate) names: String,
    /// The role, and whether it sees more of standbys than that they are there.
    pub(crate) role: String,
    pub(crate) sees: bool,
    /// Servers that follow this one, or have a slot to do so.
    pub(crate) standbys: i64,
    /// Those that commits wait for.
    pub(crate) synchronous: i64,
}

/// Subscribers and change data capture (logical slots) never take over, nor do backups.
const STANDING: &str = "SELECT current_setting('synchronous_standby_names'), current_user::text, pg_has_role('pg_read_all_stats', 'USAGE'),
  (SELECT count(*) FROM pg_stat_replication r WHERE r.state IS DISTINCT FROM 'backup'
     AND NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.slot_type = 'logical' AND s.active_pid = r.pid))
  + (SELECT count(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active AND NOT temporary),
  (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND state = 'streaming')";

impl Standing {
    pub(crate) async fn of(conn: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let row = raw_sql(STANDING).fetch_one(conn).await?;
        Ok(Self {
            names: row.try_get(0)?,
            role: row.try_get(1)?,
            sees: row.try_get(2)?,
            standbys: row.try_get(3)?,
            synchronous: row.try_get(4)?,
        })
    }

    /// Refuses what is not declared, or declared and not so.
    pub(crate) fn check(&self, declared: &Declared) -> Result<(), OpenError> {
        let Declared { replication, asynchronous, several_hosts } = *declared;
        match replication {
            Some(Replication::Synchronous) if !self.sees => {
                Err(OpenError::StandbysHidden { role: self.role.clone() })
            }
            Some(Replication::Synchronous) => {
                self.missing().map_or(Ok(()), |why| Err(OpenError::NotSynchronous { why }))
            }
            Some(Replication::Storage) => Ok(()),
            _ if asynchronous => Ok(()),
            Some(Replication::None) if several_hosts => Err(OpenError::SeveralHosts),
            Some(Replication::None) => Ok(()),
            None => match self.replicated(several_hosts) {
                Some(seen) => Err(OpenError::ReplicationUndeclared { seen }),
                None => Ok(()),
            },
        }
    }

    /// What shows that another server may take over.
    fn replicated(&self, several_hosts: bool) -> Option<String> {
        if !self.names.trim().is_empty() {
            return Some(format!("synchronous_standby_names is '{}'", self.names));
        }
        match (self.standbys, several_hosts) {
            (0, false) => None,
            (0, true) => Some("the URL names several hosts".into()),
            (1, _) => Some("a standby follows the server, or has a slot to do so".into()),
            (count, _) => Some(format!("{count} standbys follow the server, or have a slot to do so")),
        }
    }

    /// Why commits are not synchronous at this moment; `None`: they are.
    pub(crate) fn missing(&self) -> Option<String> {
        let StandbyNames { required, anybody } = StandbyNames::parse(&self.names);
        if required == 0 {
            Some("synchronous_standby_names is empty, and no commit waits for a standby".into())
        } else if anybody {
            Some("synchronous_standby_names has a *, which counts whoever connects, a backup too, as a standby".into())
        } else if !self.sees {
            Some(format!("the role {} cannot see standbys any more", self.role))
        } else if self.synchronous < required {
            let (found, names) = (self.synchronous, &self.names);
            Some(format!(
                "synchronous_standby_names is '{names}', and {found} of {required} synchronous standbys follow"
            ))
        } else {
            None
        }
    }
}

/// Where this server's log ends, as far as it is on its own disk. Everything that it has acknowledged or shown to anybody is before that.
pub(crate) async fn current(conn: &mut PgConnection) -> Result<String, sqlx::Error> {
    raw_sql("SELECT pg_current_wal_flush_lsn()::text").fetch_one(conn).await?.try_get(0)
}

/// Whether as many synchronous standbys as commits wait for have this place of the log on disk.
pub(crate) async fn required(conn: &mut PgConnection, place: &str) -> Result<bool, sqlx::Error> {
    let sql = format!(
        "SELECT current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication
           WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= '{place}'::pg_lsn)"
    );
    let row = raw_sql(AssertSqlSafe(sql)).fetch_one(conn).await?;
    let names = StandbyNames::parse(row.try_get(0)?);
    Ok(names.required > 0 && !names.anybody && row.try_get::<i64, _>(1)? >= names.required)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(names: &str, standbys: i64, synchronous: i64) -> Standing {
        Standing { names: names.into(), role: "semel".into(), sees: true, standbys, synchronous }
    }

    fn declared(replication: Option<Replication>) -> Declared {
        Declared { replication, asynchronous: false, several_hosts: false }
    }

    #[test]
    fn replication_that_is_there_has_to_be_declared() {
        assert!(standing("", 0, 0).check(&declared(None)).is_ok());
        for there in [standing("", 1, 0), standing("", 2, 0), standing("s1", 0, 0), standing("*", 1, 1)] {
            let refused = there.check(&declared(None));
            assert!(
                matches!(refused, Err(OpenError::ReplicationUndeclared { .. })),
                "{there:?}: {refused:?}"
            );
            for said in [Replication::None, Replication::Storage] {
                assert!(there.check(&declared(Some(said))).is_ok(), "{there:?}");
            }
            assert!(there.check(&Declared { asynchronous: true, ..declared(None) }).is_ok(), "{there:?}");
        }
    }

    #[test]
    fn several_hosts_are_there_for_a_failover() {
        let several = Declared { several_hosts: true, ..declared(None) };
        let refused = standing("", 0, 0).check(&several);
        assert!(matches!(refused, Err(OpenError::ReplicationUndeclared { .. })), "{refused:?}");
        let none = Declared { replication: Some(Replication::None), ..several };
        assert!(matches!(standing("", 0, 0).check(&none), Err(OpenError::SeveralHosts)));
        assert!(standing("", 0, 0).check(&Declared { asynchronous: true, ..none }).is_ok());
    }

    #[test]
    fn synchronous_is_verified() {
        let synchronous = declared(Some(Replication::Synchronous));
        assert!(standing("ANY 1 (s1, s2)", 2, 2).check(&synchronous).is_ok());
        for there in
            [standing("", 1, 0), standing("s1", 1, 0), standing("*", 1, 1), standing("ANY 2 (s1, s2)", 1, 1)]
        {
            let refused = there.check(&synchronous);
            assert!(matches!(refused, Err(OpenError::NotSynchronous { .. })), "{there:?}: {refused:?}");
        }
        let blind = Standing { sees: false, ..standing("s1", 1, 0) };
        assert!(matches!(blind.check(&synchronous), Err(OpenError::StandbysHidden { .. })));
    }
}
