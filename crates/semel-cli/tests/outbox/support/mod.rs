//! Real processes, and a receiver of what they publish.

pub(crate) use semel_testing::gateway::{Gateway, SECRET, Worker, config, config_on, semel, until};
