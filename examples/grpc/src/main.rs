use grpc_payments::shop::payments_server::{Payments, PaymentsServer};
use grpc_payments::shop::{CreatePayment, Imported, Payment};
use semel_sqlite::SqliteStore;
use semel_tower::{Body, IdempotencyLayer, KeyRequirement, Operation, ValidProtection};
use tonic::{Request, Response, Status, Streaming};

struct Shop;

#[tonic::async_trait]
impl Payments for Shop {
    async fn create(&self, request: Request<CreatePayment>) -> Result<Response<Payment>, Status> {
        let operation = request.extensions().get::<Operation>().cloned();
        let operation = operation.ok_or_else(|| Status::internal("this method is not protected"))?;
        let amount = request.into_inner().amount;
        if amount.is_empty() {
            // Nothing happened: a corrected call may use the key.
            return Err(Status::invalid_argument("there is no amount"));
        }
        println!("paying {amount}"); // the effect that must happen once
        Ok(Response::new(Payment { id: operation.id().to_string(), amount }))
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

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = SqliteStore::open("semel.db").await?;
    let (required, optional) = (ValidProtection::default(), ValidProtection::default());
    let optional = optional.with_key(KeyRequirement::Optional);
    let once = IdempotencyLayer::new(store).protect(move |call| match call.uri.path() {
        "/shop.Payments/Create" => Some(("create_payment".to_owned(), required.clone())),
        "/shop.Payments/Import" => Some(("import_payments".to_owned(), optional.clone())),
        _ => None,
    });

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:50051".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    tonic::transport::Server::builder()
        // The layer is handed its own kind of body.
        .layer(tower::util::MapRequestLayer::new(|call: http::Request<tonic::body::Body>| {
            call.map(Body::stream)
        }))
        .layer(once)
        .add_service(PaymentsServer::new(Shop))
        .serve_with_incoming(tonic::transport::server::TcpIncoming::from(listener))
        .await?;
    Ok(())
}
