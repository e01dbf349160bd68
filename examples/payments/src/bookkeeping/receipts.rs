//! Receipts leave the house: as files in a directory, where a mail server would take them from.
//!
//! | killed | leaves |
//! |---|---|
//! | while the file is written | a file that nobody takes for a receipt, and the row as it was: written again |
//! | between the file and the note of it | the receipt, and the row as it was: the same file is put in its own place, and noted |
//! | after the note | the receipt |
//!
//! The file's name is the payment's: that is what makes a repetition none. A mail server would be given the same as `Message-ID`.

use super::booking::Receipt;
use super::books::Books;
use crate::error::BoxError;
use crate::fail_point::FailPoint;
use std::path::PathBuf;
use std::time::Duration;
use tokio::fs::{self, File, OpenOptions};
use tokio::io::AsyncWriteExt as _;

/// How long after a look at the table the next one comes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) struct Receipts {
    directory: PathBuf,
    fail_point: FailPoint,
}

impl Receipts {
    pub(super) fn new(directory: PathBuf, fail_point: FailPoint) -> Self {
        Self { directory, fail_point }
    }

    /// Sends what is queued until `stop` is ready.
    pub(super) async fn send_all(self, books: Books, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            if let Err(error) = self.send_some(&books).await {
                tracing::warn!(error, "receipts cannot be sent: trying on");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stop.as_mut() => return,
            }
        }
    }

    async fn send_some(&self, books: &Books) -> Result<(), BoxError> {
        for receipt in books.unsent().await? {
            self.write(&receipt).await?;
            self.fail_point.reached("receipt:written").await;
            books.sent(receipt.payment).await?;
        }
        Ok(())
    }

    /// Puts the whole file into its place, or nothing.
    async fn write(&self, receipt: &Receipt) -> std::io::Result<()> {
        fs::create_dir_all(&self.directory).await?;
        // Of this process alone: another one may be at the same receipt.
        let draft = self.directory.join(format!(".{}.{}", receipt.payment, std::process::id()));
        let mut file = private().open(&draft).await?;
        file.write_all(receipt.text.as_bytes()).await?;
        file.sync_all().await?;
        fs::rename(&draft, self.directory.join(format!("{}.eml", receipt.payment))).await?;
        File::open(&self.directory).await?.sync_all().await
    }
}

/// A new file that its owner alone can read: it names a customer.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    options.mode(0o600);
    options
}
