//! Real processes, and somebody to talk to them.

#[allow(dead_code, reason = "the tests that watch gateways use the rest of it")]
mod gateway;
mod http;
mod service;
mod shop;
mod wrong_clock;

pub(crate) use gateway::{Gateway, SECRET, TOKEN, Worker, config, config_on, semel, until};
pub(crate) use http::{Answer, exchange};
pub(crate) use semel_testing::database::Database;
pub(crate) use service::Service;
pub(crate) use shop::{Questions, shop};
pub(crate) use wrong_clock::ClockOff;
