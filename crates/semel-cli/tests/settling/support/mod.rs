//! Real processes, and somebody to talk to them.

#[allow(dead_code, reason = "the tests of whole gateways use all of it")]
#[path = "../../gateways/support/database.rs"]
mod database;
#[allow(dead_code, reason = "the tests that watch gateways use the rest of it")]
mod gateway;
mod http;
mod service;
mod shop;
mod wrong_clock;

pub(crate) use database::Database;
pub(crate) use gateway::{Gateway, SECRET, TOKEN, Worker, config, config_on, semel, until};
pub(crate) use http::{Answer, exchange};
pub(crate) use service::Service;
pub(crate) use shop::{Questions, shop};
pub(crate) use wrong_clock::ClockOff;
