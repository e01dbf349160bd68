//! `semel demo`.

use crate::shutdown::ShutdownSignals;
use std::process::ExitCode;

pub(crate) use semel_demo::{Arguments, Part, run_part};

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, semel_demo::DemoError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = ShutdownSignals::listen()?;
        semel_demo::run(arguments, async || signals.come().await).await
    })
}
