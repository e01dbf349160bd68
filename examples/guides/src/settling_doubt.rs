//! docs/guides/settling-doubt.md

use bytes::Bytes;
use semel::{Body, Engine, OperationId, StoredResponse};

#[derive(Clone)]
struct Bank;

struct Charge {
    id: String,
}

impl Bank {
    async fn find(&self, _operation: OperationId) -> std::io::Result<Option<Charge>> {
        Ok(None)
    }
}

fn response_of(charge: &Charge) -> StoredResponse {
    let body = Body::Stored(Bytes::from(format!(r#"{{"id":"{}"}}"#, charge.id)));
    StoredResponse { status: 201, headers: Vec::new(), body, schema_version: None }
}

async fn shutdown_signal() {
    std::future::pending().await
}

fn start(engine: &Engine, bank: &Bank) {
    use semel::Policy;
    use semel_worker::{Asking, Finding, OperationRules, Question, Worker, WorkerOptions};

    let bank = bank.clone();
    let asking = Asking::new(move |question: Question| {
        let bank = bank.clone();
        async move {
            match bank.find(question.operation_id).await {
                Ok(Some(charge)) => {
                    Finding::Completed { response: Some(response_of(&charge)), resource: None }
                }
                // A charge may still be on its way. If the bank promised to refuse it from now on, and said so itself about
                // `question.attempt`, this would be `Finding::Absent`.
                Ok(None) => Finding::Unclear("no_trace".into()),
                Err(error) => Finding::Unclear(error.to_string()),
            }
        }
    });

    // The same policy as in the layer that protects the route.
    let policy = Policy { settling: asking.settling(), ..Policy::default() };
    let worker = Worker::new(engine.clone(), WorkerOptions::default())
        .operation("create_payment", OperationRules::new(policy).asking(asking));
    tokio::spawn(worker.run(shutdown_signal()));
}
