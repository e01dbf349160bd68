//! What the layer calls: the way to the service, or work in the process itself.

use crate::book::{Charged, Order};
use crate::fault::Fault;
use crate::life::Life;
use crate::network::{About, Broken, Host, NoAnswer, Way};
use crate::plan::field;
use crate::provider::{self, Said, declined, paid};
use crate::rules::{PAYMENT, RECEIPT, Rule, Work};
use crate::service::{self, come_again, nothing_done, plain};
use crate::trace::Place;
use crate::world::World;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use semel::{AtMostOnce, Deduplicated, Found, Identity, Inquiry, OperationId, PhaseError, Phases, queryable};
use semel_tower::{BoxError, Operation};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The innermost service of one gateway process.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) world: Arc<World>,
    pub(crate) life: Arc<Life>,
    pub(crate) gateway: usize,
}

/// The provider said nothing that can be relied on.
#[derive(Debug)]
struct Silent;

impl tower::Service<Request<Full<Bytes>>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let handler = self.clone();
        Box::pin(async move { Ok(handler.handle(request).await?.map(Full::new)) })
    }
}

impl Handler {
    async fn handle(self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let Some(operation) = parts.extensions.get::<Operation>().cloned() else {
            let number = field(&body, "number").unwrap_or(u32::MAX);
            self.world.auditor.object(format!("P5 #{number} is executed, and nothing was reserved"));
            return Err("not protected".into());
        };
        let rule = self.world.rule(operation.name()).cloned().ok_or("an operation without rules")?;
        let number = |name| field(&body, name).ok_or("a body without numbers");
        let order = Order {
            number: number("number")?,
            tenant: number("tenant")?,
            altered: number("altered")? == 1,
            id: operation.id(),
            attempt: operation.attempt(),
        };
        self.life.pass().await;
        let lease = rule.policy().lease;
        let about = (order.number, order.id, order.attempt);
        let served = match rule.work {
            Work::Service => self.forward(&operation, order, rule).await,
            Work::Transaction => self.transact(&order).await,
            Work::AtMostOnce | Work::Deduplicated | Work::Queryable => {
                self.go_through(&operation, order, rule).await
            }
        };
        self.stand_still(about, lease).await;
        self.panic(about, &operation);
        served
    }

    /// The gateway stands still with the last word of this attempt, until another attempt has begun.
    async fn stand_still(&self, (number, id, attempt): (u32, OperationId, u32), lease: Duration) {
        if !self.world.faults.strikes(Fault::FreezeOwner) {
            return;
        }
        let (gateway, span) = (self.gateway, lease + self.world.chance.millis(5_000, 40_000));
        self.world.trace.note(
            Place::Faults,
            format_args!("#{number} {id} attempt {attempt}: gateway {gateway} stands still for {} ms, unless another attempt begins", span.as_millis()),
        );
        self.life.sleep(span);
        self.world.auditor.wakes(id, attempt, &self.life);
        self.life.pass().await;
    }

    /// The handler ends by a panic, with its ticket in its hands or in the layer's.
    fn panic(&self, (number, id, attempt): (u32, OperationId, u32), operation: &Operation) {
        if !self.world.faults.strikes(Fault::HandlerPanics) {
            return;
        }
        let ticket = if self.world.chance.chance(0.5) { operation.take_ticket() } else { None };
        let dropped = if ticket.is_some() { ", and its ticket is dropped" } else { "" };
        self.world.trace.note(
            Place::Gateways,
            format_args!("#{number} {id} attempt {attempt}: the handler panics{dropped}"),
        );
        // Without a word on the terminal.
        std::panic::resume_unwind(Box::new("simulated"));
    }

    /// Sends the request on, as long as there is the right to.
    async fn forward(
        &self,
        operation: &Operation,
        order: Order,
        rule: Rule,
    ) -> Result<Response<Bytes>, BoxError> {
        operation.right().check()?;
        let patience = rule.protection.timeout + Duration::from_secs(2);
        let serving = service::serve(Arc::clone(&self.world), order.clone(), rule);
        let way = Way::new(Host::Gateway(self.gateway), Host::Service, About::Number(order.number));
        let served = self.world.network.ask(way, patience, serving).await;
        self.life.pass().await;
        match served {
            Ok(response) => Ok(response),
            Err(NoAnswer::NotSent) => {
                self.world.note_nothing(&order);
                Ok(nothing_done())
            }
            Err(NoAnswer::Silence) => Err("the service broke off".into()),
        }
    }

    /// What completes the operation in the store is the effect.
    async fn transact(&self, order: &Order) -> Result<Response<Bytes>, BoxError> {
        self.world.note_start(order);
        tokio::time::sleep(Duration::from_millis(u64::from(order.number) % 50)).await;
        self.life.pass().await;
        let stored = if order.is_declined() { declined } else { paid };
        Ok(service::answer(stored(order.id, order.tenant, "service")))
    }

    /// One outside call, by phases.
    async fn go_through(
        &self,
        operation: &Operation,
        order: Order,
        rule: Rule,
    ) -> Result<Response<Bytes>, BoxError> {
        let mut phases = operation.phases()?;
        let charged = self.charge(&mut phases, &order, &rule).await;
        self.life.pass().await;
        let is_paid = matches!(charged, Ok(true));
        if is_paid && rule.receipt && self.world.faults.strikes(Fault::HandlerReleases) {
            self.world.trace.note(
                Place::Gateways,
                format_args!(
                    "#{} {} attempt {}: asks to be forgotten between two phases",
                    order.number, order.id, order.attempt
                ),
            );
            return Ok(come_again());
        }
        let ended = match charged {
            Ok(true) if rule.receipt => self.receipt(&mut phases, &order, &rule).await.map(|()| true),
            ended => ended,
        };
        self.life.pass().await;
        Ok(match ended {
            Ok(true) => service::answer(paid(order.id, order.tenant, "service")),
            Ok(false) => service::answer(declined(order.id, order.tenant, "service")),
            Err(error) => {
                self.world.trace.note(
                    Place::Gateways,
                    format_args!("#{} {} attempt {}: {error}", order.number, order.id, order.attempt),
                );
                // How it ended, the layer knows by the phases.
                plain(StatusCode::SERVICE_UNAVAILABLE, r#"{"code":"nothing_done"}"#)
            }
        })
    }

    async fn charge(
        &self,
        phases: &mut Phases,
        order: &Order,
        rule: &Rule,
    ) -> Result<bool, PhaseError<Silent>> {
        let call = async |identity: Identity| self.call(order, rule, identity.attempt()).await;
        match rule.work {
            Work::Deduplicated => phases.foreign(PAYMENT, Deduplicated, call).await,
            Work::Queryable => {
                let ask = queryable(move |inquiry: Inquiry| self.ask(order.clone(), rule.clone(), inquiry));
                phases.foreign(PAYMENT, ask, call).await
            }
            _ => phases.foreign(PAYMENT, AtMostOnce, call).await,
        }
    }

    /// The second phase.
    async fn receipt(
        &self,
        phases: &mut Phases,
        order: &Order,
        rule: &Rule,
    ) -> Result<(), PhaseError<Silent>> {
        let call = async |identity: Identity| {
            let order = Order { attempt: identity.attempt(), ..order.clone() };
            self.life.pass().await;
            let number = order.number;
            let writing = provider::write_receipt(Arc::clone(&self.world), order, rule.clone());
            let written = self.ask_provider(number, writing).await;
            self.life.pass().await;
            written.map_err(|_| Silent)
        };
        match rule.work {
            Work::AtMostOnce => phases.foreign(RECEIPT, AtMostOnce, call).await,
            _ => phases.foreign(RECEIPT, Deduplicated, call).await,
        }
    }

    async fn call(&self, order: &Order, rule: &Rule, attempt: u32) -> Result<bool, Silent> {
        let (order, number) = (Order { attempt, ..order.clone() }, order.number);
        self.life.pass().await;
        self.world.note_start(&order);
        let charging = provider::charge(Arc::clone(&self.world), order, rule.clone());
        let said = self.ask_provider(number, charging).await;
        self.life.pass().await;
        match said {
            Ok(Said::Done(Charged::Done)) => Ok(true),
            Ok(Said::Done(Charged::Declined)) => Ok(false),
            Ok(Said::Done(Charged::Sealed) | Said::Error) | Err(_) => Err(Silent),
        }
    }

    /// Asks what became of a call.
    fn ask(
        &self,
        order: Order,
        rule: Rule,
        inquiry: Inquiry,
    ) -> impl Future<Output = Result<Found<bool>, Silent>> + Send + use<> {
        let this = self.clone();
        async move {
            let about = (order.id, inquiry.up_to_attempt);
            let finding = provider::find(Arc::clone(&this.world), about, order.tenant, rule);
            let finding = this.ask_provider(order.number, finding).await;
            this.life.pass().await;
            match finding {
                Ok(semel_worker::Finding::Completed { .. }) => Ok(Found::Happened(true)),
                Ok(semel_worker::Finding::Failed { .. }) => Ok(Found::Happened(false)),
                Ok(semel_worker::Finding::Absent) => Ok(Found::NeverWill),
                Ok(semel_worker::Finding::Unclear(_)) => Ok(Found::Unclear),
                Err(_) => Err(Silent),
            }
        }
    }

    async fn ask_provider<T: Send + 'static>(
        &self,
        number: u32,
        serving: impl Future<Output = Result<T, Broken>> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let way = Way::new(Host::Gateway(self.gateway), Host::Provider, About::Number(number));
        self.world.network.ask(way, Duration::from_secs(4), serving).await
    }
}
