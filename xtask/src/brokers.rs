//! A private NATS and a private RabbitMQ for the tests: in temporary directories, on free ports, gone afterwards.
//!
//! Never brokers that happen to run. Whoever has some for the purpose names them in `SEMEL_TEST_NATS_URL` and
//! `SEMEL_TEST_RABBITMQ_URL`. Tests that kill a broker start their own in either case.

use crate::nats;
use semel_testing::servers::{NATS_SERVER, Nats, RabbitMq};
use std::env;

const NATS_URL: &str = "SEMEL_TEST_NATS_URL";
const RABBITMQ_URL: &str = "SEMEL_TEST_RABBITMQ_URL";

/// Both brokers, for as long as this lives. RabbitMQ takes ten seconds to start: it does so beside other steps.
pub(crate) struct Brokers {
    /// None where they were given.
    nats: Option<Nats>,
    rabbitmq: Option<RabbitMq>,
    program: String,
}

impl Brokers {
    /// Starts those that were not given.
    pub(crate) fn begin() -> Result<Self, String> {
        let program = nats::program().ok_or("nats-server is not to be found")?;
        let given = |name: &str| env::var_os(name).is_some();
        let nats = if given(NATS_URL) { None } else { Some(Nats::start_program(program.clone())?) };
        let rabbitmq = if given(RABBITMQ_URL) { None } else { Some(RabbitMq::begin()?) };
        Ok(Self { nats, rabbitmq, program: program.display().to_string() })
    }

    /// Waits until both answer.
    pub(crate) fn ready(&mut self) -> Result<(), String> {
        self.rabbitmq.as_mut().map_or(Ok(()), RabbitMq::ready)
    }

    /// What the tests are told. Those that were given are in the environment already.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let nats = self.nats.as_ref().map(|nats| (NATS_URL, nats.url()));
        let rabbitmq = self.rabbitmq.as_ref().map(|rabbitmq| (RABBITMQ_URL, rabbitmq.url()));
        nats.into_iter().chain(rabbitmq).chain([(NATS_SERVER, self.program.clone())]).collect()
    }
}
