//! Real processes, and the tools that look at them.

mod cutting;
mod tools;
mod world;

pub(crate) use cutting::{Passes, cutting_once};
pub(crate) use semel_testing::gateway::{
    Answer, Gateway, Receiver, SECRET, Service, TOKEN, Worker, config, exchange, send, until,
};
pub(crate) use tools::python_tool;
pub(crate) use world::World;
