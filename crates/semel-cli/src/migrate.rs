//! `semel migrate`: the tables that the records are kept in.

use crate::output::print;
use clap::Args;
use semel_gateway::{StoreUrl, StoreUrlError};
use semel_postgres::{Migrated, PgOptions, migration_script, migrations};
use semel_sqlite::SqliteStore;
use std::io;
use std::process::ExitCode;

/// Make the tables that Semel keeps its records in, or bring them to the newest
/// version.
///
/// Every instance does this by itself when it starts. Do it beforehand where the
/// role that the service runs as may not create tables, or where a deploy shall
/// not begin before it is done. It can be repeated, and several may do it at once:
/// what is there already is left alone. Instances of the version before go on
/// working meanwhile, unless the changelog names the step as an exception.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel migrate --store postgres://owner@localhost/payments
  SEMEL_STORE=postgres://owner:secret@db.internal/payments semel migrate
  semel migrate --print > semel.sql && psql -v ON_ERROR_STOP=1 -f semel.sql payments
  semel migrate --store sqlite:semel.db

The tables, all named semel_…, go into the first schema of the role's search_path.
In the variable a password is not seen by whoever lists the machine's processes.

Exit status: 0 if the tables are there, 1 if they are not, 2 if the command line is wrong."
)]
pub(crate) struct Arguments {
    /// Where the records are: postgres://user:password@host:5432/database, or
    /// sqlite:path.
    #[arg(
        long,
        value_name = "URL",
        env = "SEMEL_STORE",
        hide_env_values = true,
        verbatim_doc_comment,
        required_unless_present = "print"
    )]
    store: Option<String>,

    /// Print the SQL for PostgreSQL, and run nothing.
    ///
    /// For teams that run their own migrations. It is one statement, so that it
    /// happens as a whole or not at all, and it can be run again. Services that are
    /// to leave the tables alone are then told so (`without_migrating`).
    #[arg(long, verbatim_doc_comment)]
    print: bool,
}

/// Why there are no tables, or not the newest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MigrateError {
    #[error("a store in memory has no tables: name one that lasts, as postgres://… or sqlite:path")]
    Memory,
    // The URL itself is not repeated: it may hold a password.
    #[error("this names no store")]
    Url(#[from] StoreUrlError),
    #[error(transparent)]
    Postgres(#[from] semel_postgres::OpenError),
    #[error(transparent)]
    Sqlite(#[from] semel_sqlite::OpenError),
    #[error("the standard output cannot be written")]
    Output(#[source] io::Error),
    #[error("the command's own machinery failed")]
    Machinery(#[source] io::Error),
}

/// Migrates, or prints how to.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, MigrateError> {
    let words = match &arguments.store {
        Some(store) if !arguments.print => {
            let store: StoreUrl = store.parse()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(MigrateError::Machinery)?.block_on(migrate(&store))?
        }
        // Without a store it is told to print.
        _ => migration_script(),
    };
    print(words.as_bytes()).map_err(MigrateError::Output)?;
    Ok(ExitCode::SUCCESS)
}

/// Migrates a store; what there is to say about it.
async fn migrate(store: &StoreUrl) -> Result<String, MigrateError> {
    if let Some(url) = store.postgres() {
        return Ok(told(PgOptions::new().migrate(url).await?));
    }
    let Some(path) = store.file() else {
        return Err(MigrateError::Memory);
    };
    let new = !path.exists();
    SqliteStore::open(path).await?.close().await;
    let what = if new { "was made, with" } else { "has" };
    Ok(format!("{} {what} the newest tables: opening a SQLite file migrates it.\n", path.display()))
}

fn told(Migrated { from, to, .. }: Migrated) -> String {
    let known = migrations().last().map_or(0, |migration| migration.version);
    match from {
        0 => format!("The tables were made, at version {to}.\n"),
        _ if from > known => format!(
            "Nothing to do: the tables have version {from}. That is newer than this program, which knows version \
             {known} and can work on it.\n"
        ),
        _ if from == to => format!("Nothing to do: the tables have version {to}, the newest.\n"),
        _ => format!("The tables were migrated from version {from} to version {to}.\n"),
    }
}
