//! `semel demo`.

use crate::interrupts::Interrupts;
use std::process::ExitCode;

pub(crate) use semel_demo::{Arguments, Part, run_part};

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, semel_demo::DemoError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupts = Interrupts::listen()?;
        semel_demo::run(arguments, async || interrupts.come().await).await
    })
}
