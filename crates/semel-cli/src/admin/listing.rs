//! Listings, page after page.

use super::{Admin, Common, Failure};
use crate::escape::escape;
use clap::Args;
use serde::de::DeserializeOwned;
use std::io::{Result as Written, Write};

/// How a listing is gone through.
#[derive(Args)]
pub(crate) struct Paging {
    /// Page size, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    /// Continue after a page: the cursor that it printed.
    #[arg(long, conflicts_with = "all")]
    cursor: Option<String>,

    /// Show all pages; with --json, one line of JSON per page.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    common: Common,
}

/// One page of a listing, as people are shown it.
pub(crate) trait Page: DeserializeOwned {
    /// What is said where there is nothing to show.
    const NOTHING: &'static str;

    /// How many there are on it.
    fn len(&self) -> usize;

    /// How many more there are that cannot be shown.
    fn damaged(&self) -> usize {
        0
    }

    /// Writes them as a table.
    fn write(&self, out: &mut impl Write) -> Written<()>;

    /// Where the next page begins, if there is one.
    fn next_cursor(self) -> Option<String>;
}

impl Paging {
    /// Shows what the listing at `place` holds that these filters let through.
    pub(crate) async fn show<P: Page>(
        &self,
        place: &str,
        filters: &[(&str, Option<&str>)],
    ) -> Result<(), Failure> {
        let admin = Admin::new(&self.common.connection)?;
        let mut cursor = self.cursor.clone();
        let (mut shown, mut damaged) = (0, 0);
        loop {
            let reply = admin.get(&self.path(place, filters, cursor.as_deref())).await?;
            if self.common.json {
                reply.print()?;
            }
            let page: P = reply.document()?;
            shown += page.len();
            damaged += page.damaged();
            if !self.common.json && page.len() > 0 {
                let mut out = anstream::stdout().lock();
                page.write(&mut out)?;
                out.flush()?;
            }
            cursor = page.next_cursor();
            if cursor.is_none() || !self.all {
                break;
            }
        }
        if !self.common.json {
            // Beside the rows, so that they can be counted and cut.
            if damaged > 0 {
                anstream::eprintln!(
                    "{damaged} more cannot be read: their records are damaged. The gateway's log names them."
                );
            }
            match cursor {
                Some(cursor) => {
                    anstream::eprintln!("{shown} shown. More: --cursor {}, or --all", escape(&cursor))
                }
                None if shown + damaged == 0 => anstream::eprintln!("{}", P::NOTHING),
                None => {}
            }
        }
        Ok(())
    }

    fn path(&self, place: &str, filters: &[(&str, Option<&str>)], cursor: Option<&str>) -> String {
        let limit = self.limit.to_string();
        let paging = [("limit", Some(limit.as_str())), ("cursor", cursor)];
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in filters.iter().chain(&paging) {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("{place}?{}", query.finish())
    }
}
