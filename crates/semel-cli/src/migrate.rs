//! `semel migrate`: creates or migrates the store's tables.

use crate::output::print;
use clap::Args;
use semel_dynamodb::DynamoOptions;
use semel_gateway::{StoreUrl, StoreUrlError};
use semel_postgres::{Migrated, PgOptions, migration_script, migrations};
use semel_sqlite::SqliteStore;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Create the store's tables, or migrate them to the newest version.
///
/// Every instance does this when it starts. Run it beforehand if the role of the
/// service may not create tables, or if a deploy must not begin before the migration
/// is done. It may be repeated and run concurrently. Instances of the previous
/// version keep working meanwhile, unless the changelog names an exception.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel migrate --store postgres://owner@localhost/payments
  SEMEL_STORE=postgres://owner:secret@db.internal/payments semel migrate
  semel migrate --print > semel.sql && psql -v ON_ERROR_STOP=1 -f semel.sql payments
  semel migrate --store sqlite:semel.db
  semel migrate --store 'dynamodb://semel-keys?region=eu-central-1'

The tables, all named semel_…, go into the first schema of the role's search_path.
A DynamoDB table is created on demand, with its indexes,
point-in-time recovery and protection from deletion; one that is there is checked.
Set SEMEL_STORE to keep a password out of the process list.

Exit status: 0 the tables have the newest version, 1 they do not, 2 usage error."
)]
pub(crate) struct Arguments {
    /// The store: postgres://user:password@host:5432/database, sqlite:FILE or
    /// dynamodb://TABLE?region=REGION.
    #[arg(
        long,
        value_name = "URL",
        env = "SEMEL_STORE",
        hide_env_values = true,
        verbatim_doc_comment,
        required_unless_present = "print"
    )]
    store: Option<String>,

    /// Print the SQL for PostgreSQL and run nothing.
    ///
    /// For teams that run their own migrations. The script is one statement, so that
    /// it happens as a whole or not at all, and may be run again. Then start services
    /// with `without_migrating`.
    #[arg(long, verbatim_doc_comment)]
    print: bool,
}

/// How long one request about a DynamoDB table may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there are no tables, or not the newest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MigrateError {
    #[error("a memory: store has no tables: use postgres://…, sqlite:FILE or dynamodb://…")]
    Memory,
    // The URL itself is not repeated: it may hold a password.
    #[error("not a valid store URL")]
    Url(#[from] StoreUrlError),
    #[error(transparent)]
    Postgres(#[from] semel_postgres::OpenError),
    #[error(transparent)]
    DynamoDb(#[from] semel_dynamodb::OpenError),
    #[error(transparent)]
    Sqlite(#[from] semel_sqlite::OpenError),
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    #[error("system error")]
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
    if let Some(url) = store.dynamodb() {
        return Ok(match DynamoOptions::new().timeout(PATIENCE).migrate(&url).await? {
            semel_dynamodb::Migrated::Created => "Created the table.\n".into(),
            _ => "Nothing to do: the table is as it should be.\n".into(),
        });
    }
    let Some(path) = store.file() else {
        return Err(MigrateError::Memory);
    };
    let new = !path.exists();
    SqliteStore::open(path).await?.close().await;
    let what = if new { "was created with" } else { "has" };
    Ok(format!("{} {what} the newest tables: opening a SQLite file migrates it.\n", path.display()))
}

fn told(Migrated { from, to, .. }: Migrated) -> String {
    let known = migrations().last().map_or(0, |migration| migration.version);
    match from {
        0 => format!("Created the tables, version {to}.\n"),
        _ if from > known => format!(
            "Nothing to do: the tables have version {from}, newer than this program's {known}, which can work with it.\n"
        ),
        _ if from == to => format!("Nothing to do: the tables have the newest version, {to}.\n"),
        _ => format!("Migrated the tables from version {from} to version {to}.\n"),
    }
}
