//! The clock of the database server, which steps while statements run by it.
//!
//! Statements ask for `clock_timestamp()`. Connections whose search path has `public` before the server's own schema find this one.

use crate::off::Off;
use crate::outcome::Outcome;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, raw_sql};
use std::time::Duration;

/// A connection may be told that the server is down, or be cut off.
const PATIENCE: Duration = Duration::from_secs(2);

const FUNCTION: &str = "
CREATE TABLE campaign_clock (minutes bigint NOT NULL);
INSERT INTO campaign_clock VALUES (0);
CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT pg_catalog.clock_timestamp() + minutes * interval '1 minute' FROM public.campaign_clock $$";

/// The server's clock.
pub(crate) struct ServerClock {
    /// Past the network that can fail.
    server: String,
}

impl ServerClock {
    /// It is right, until it steps.
    pub(crate) async fn of(server: String) -> Outcome<Self> {
        let mut connection = PgConnection::connect(&server).await?;
        raw_sql(FUNCTION).execute(&mut connection).await?;
        connection.close().await?;
        Ok(Self { server })
    }

    /// An address of the server by which its clock is this one.
    pub(crate) fn seen_by(url: &str) -> String {
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}options[search_path]=public,pg_catalog")
    }

    /// From the next statement on the clock is off by this much, unless the server is down.
    pub(crate) async fn step(&self, off: Off) -> bool {
        let stepping = async {
            let mut connection = PgConnection::connect(&self.server).await?;
            let sql = format!("UPDATE campaign_clock SET minutes = {}", off.minutes());
            raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
            connection.close().await
        };
        tokio::time::timeout(PATIENCE, stepping).await.is_ok_and(|stepped| stepped.is_ok())
    }

    /// The clock is right again, as soon as the server is there.
    pub(crate) async fn put_right(&self) {
        while !self.step(Off::NONE).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
