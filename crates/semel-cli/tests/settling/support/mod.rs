//! Real processes, and somebody to talk to them.

mod shop;

pub(crate) use semel_testing::database::Database;
pub(crate) use semel_testing::gateway::{
    Answer, ClockOff, Gateway, SECRET, Service, TOKEN, Worker, config, config_on, exchange, semel, until,
};
pub(crate) use shop::{Questions, shop};
