//! The same two statements over one connection of the driver that the store uses, and nothing around them.

use crate::statements::Different;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, SqlSafeStr, SqlStr};
use std::str::FromStr;
use std::time::{Duration, Instant};
use uuid::Uuid;

const DIFFERENT: Different = Different {
    key_hash: "$1::text::uuid",
    operation_id: "$2::text::uuid",
    owner: "$3::text::uuid",
    key: "$4",
};

pub(crate) struct Side {
    conn: PgConnection,
    reserve: SqlStr,
    complete: SqlStr,
}

impl Side {
    pub(crate) async fn open(url: &str) -> Result<Self, sqlx::Error> {
        let complete = Different { operation_id: "$1::text::uuid", ..DIFFERENT }.complete();
        Ok(Self {
            conn: PgConnectOptions::from_str(url)?.connect().await?,
            reserve: AssertSqlSafe(DIFFERENT.reserve()).into_sql_str(),
            complete: AssertSqlSafe(complete).into_sql_str(),
        })
    }

    /// How long two statements in a row took each time, in microseconds.
    pub(crate) async fn run_alone(&mut self, span: Duration) -> Result<Vec<f64>, sqlx::Error> {
        let begun = Instant::now();
        let mut micros = Vec::new();
        while begun.elapsed() < span {
            let operation_id = Uuid::now_v7().to_string();
            let pair = Instant::now();
            let reserve = sqlx::query(self.reserve.clone())
                .bind(Uuid::new_v4().to_string())
                .bind(&operation_id)
                .bind(Uuid::new_v4().to_string())
                .bind(Uuid::new_v4().to_string());
            let made = reserve.execute(&mut self.conn).await?.rows_affected();
            let complete = sqlx::query(self.complete.clone()).bind(&operation_id);
            let done = complete.execute(&mut self.conn).await?.rows_affected();
            micros.push(pair.elapsed().as_secs_f64() * 1e6);
            debug_assert_eq!((made, done), (1, 1), "the statements do what they do in the store");
        }
        Ok(micros)
    }
}
