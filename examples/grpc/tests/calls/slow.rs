//! A service without the layer, for a gateway in front of it: its payments take as long as a test lets them.

use grpc_payments::shop::payments_server::{Payments, PaymentsServer};
use grpc_payments::shop::{CreatePayment, Imported, Payment};
use semel_gateway::{Config, GatewayProcess};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// What is known of a service.
pub(crate) struct Shop {
    effects: AtomicU32,
    pub(crate) entered: Semaphore,
    pub(crate) gate: Semaphore,
}

impl Shop {
    pub(crate) fn effects(&self) -> u32 {
        self.effects.load(SeqCst)
    }
}

struct Service(Arc<Shop>);

#[tonic::async_trait]
impl Payments for Service {
    async fn create(&self, request: Request<CreatePayment>) -> Result<Response<Payment>, Status> {
        let amount = request.into_inner().amount;
        let id = format!("pay_{}", self.0.effects.fetch_add(1, SeqCst) + 1);
        self.0.entered.add_permits(1);
        self.0.gate.acquire().await.map_err(|_| Status::internal("closed"))?.forget();
        match amount.as_str() {
            "declined" => Err(Status::failed_precondition("declined")),
            "lost" => Err(Status::unavailable("who knows")),
            _ => {
                let mut response = Response::new(Payment { id, amount });
                response.metadata_mut().insert("x-cost", "7".parse().unwrap());
                Ok(response)
            }
        }
    }

    async fn import(&self, request: Request<Streaming<CreatePayment>>) -> Result<Response<Imported>, Status> {
        let mut messages = request.into_inner();
        let mut payments = 0;
        while messages.message().await?.is_some() {
            payments += 1;
        }
        Ok(Response::new(Imported { payments }))
    }
}

/// Starts a service, and a gateway in front of it: where that is.
pub(crate) async fn start() -> (Arc<Shop>, SocketAddr) {
    let (shop, address, _) = start_watched().await;
    (shop, address)
}

/// The same, and where the gateway's metrics are.
pub(crate) async fn start_watched() -> (Arc<Shop>, SocketAddr, SocketAddr) {
    let (entered, gate) = (Semaphore::new(0), Semaphore::new(0));
    let shop = Arc::new(Shop { effects: AtomicU32::new(0), entered, gate });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = PaymentsServer::new(Service(Arc::clone(&shop)));
    let serving = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(serving.serve_with_incoming(TcpIncoming::from(listener)));
    let toml = format!(
        "upstream = \"http://127.0.0.1:{port}\"\nupstream_protocol = \"http2\"\nlisten = \"127.0.0.1:0\"\nstore = \"memory:\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n\
         [[route]]\noperation = \"create_payment\"\nmatch = \"POST /shop.Payments/Create\"\n\
         [[route]]\noperation = \"import_payments\"\nmatch = \"POST /shop.Payments/Import\"\nkey = \"optional\"\n"
    );
    let config = Config::from_toml(&toml, Path::new("semel.toml")).unwrap();
    let gateway = GatewayProcess::start(config).await.unwrap();
    let (address, admin) = (gateway.address(), gateway.admin_address());
    tokio::spawn(gateway.serve(std::future::pending(), std::future::pending()));
    (shop, address, admin)
}
