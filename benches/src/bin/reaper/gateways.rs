//! The same through a gateway that has as much to do as it can: what its clients notice of the reaper.

use crate::{Side, TOMBSTONE};
use semel_benches::load::{Kind, Load};
use semel_benches::processes::{Gateway, Nginx};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long answers are kept, and how long it takes until as many are removed as are made: windows and tombstones, a round of the
/// reaper after each, and once more as long, for what ends first was made without anybody who forgets. wrk takes whole seconds.
const WINDOW: Duration = Duration::from_secs(1);
const UNTIL_STEADY: Duration = Duration::from_secs(12);

/// A service, and gateways before it, one at a time.
pub(crate) struct Gateways {
    semel: PathBuf,
    nginx: Nginx,
    files: tempfile::TempDir,
    until_steady: Load,
    load: Load,
}

impl Gateways {
    pub(crate) fn before_nginx(
        semel: PathBuf,
        directory: &Path,
        connections: usize,
        seconds: f64,
    ) -> Result<Self, Box<dyn Error>> {
        let files = tempfile::tempdir_in(directory.canonicalize()?)?;
        let nginx = Nginx::start(files.path(), None)?;
        let load = |span| Load::new(files.path(), connections, span);
        let (until_steady, load) = (load(UNTIL_STEADY)?, load(Duration::from_secs_f64(seconds))?);
        Ok(Self { semel, nginx, files, until_steady, load })
    }

    /// One side of one round: new operations as fast as it goes. `late` tells by how much what is to be forgotten is late.
    pub(crate) fn side(
        &self,
        store: &str,
        reaping: bool,
        late: &dyn Fn() -> Result<f64, Box<dyn Error>>,
    ) -> Result<Side, Box<dyn Error>> {
        let configuration = self.files.path().join("semel.toml");
        let (service, window, tombstone) =
            (self.nginx.service, WINDOW.as_secs(), (WINDOW * TOMBSTONE).as_secs());
        std::fs::write(
            &configuration,
            format!(
                "upstream = 'http://{service}'
                 listen = '127.0.0.1:0'
                 store = '{store}'
                 [admin]
                 listen = '127.0.0.1:0'
                 [[route]]
                 operation = 'payments'
                 match = 'POST /payments'
                 retention = '{window}s'
                 body_retention = '{window}s'
                 tombstone = '{tombstone}s'
                 [worker]
                 in_gateway = {reaping}
                 "
            ),
        )?;
        let gateway = Gateway::start_by(&self.semel, &configuration)?;
        self.until_steady.run(gateway.address, Kind::NewKeys)?;
        let before = gateway.counted(FORGOTTEN)?;
        let answered = self.load.run(gateway.address, Kind::NewKeys)?;
        let gone = gateway.counted(FORGOTTEN)? - before;
        let seconds = answered.requests as f64 / answered.per_second;
        Ok(Side {
            made_per_second: answered.per_second,
            forgotten_per_second: gone as f64 / seconds,
            late: late()?,
        })
    }
}

const FORGOTTEN: &str = "api_idempotency_ttl_pruned_total";
