//! Pointers from operation ids to records: written after the record and before anybody executes.
//!
//! A process may end between the two, or the pointer's answer be lost. So whoever reads a record that nothing has been written to since it was made
//! looks whether its pointer is there, and writes it: the owner who reads back before it goes on, the lease watch before it judges.

use crate::api::{Api, Failure};
use crate::names::{self, NAME};
use semel::{Record, State, StoreError};

impl Api {
    /// Writes the pointers of those records that may lack them, and do.
    pub(crate) async fn ensure_pointers(&self, records: &[&Record]) -> Result<(), StoreError> {
        let may_lack = |record: &&&Record| {
            // Whatever is written to a record is written by somebody who found its pointer.
            record.version == 1
                && record.state == State::InProgress
                && !self.pointers().is_there(record.operation_id)
        };
        let concerned: Vec<&Record> = records.iter().filter(may_lack).copied().collect();
        if concerned.is_empty() {
            return Ok(());
        }
        let pointers: Vec<(String, String)> = concerned
            .iter()
            .map(|record| (names::pointer(record.operation_id), names::record(&record.key)))
            .collect();
        let wanted: Vec<String> = pointers.iter().map(|(pointer, _)| pointer.clone()).collect();
        let there = self.items(&wanted, &[NAME]).await?;
        let missing: Vec<_> =
            pointers.into_iter().filter(|(pointer, _)| !there.contains_key(pointer)).collect();
        if !missing.is_empty() {
            self.put_pointers(&missing).await.map_err(Failure::of_read)?;
        }
        self.pointers().are_there(concerned.iter().map(|record| record.operation_id));
        Ok(())
    }
}
