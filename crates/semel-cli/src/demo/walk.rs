//! What is done in each case. What is thought of it is in `cases.rs`.

use super::DemoError;
use super::cases::{self, Case, RACERS, Seen};
use super::client::{Answer, Begun, Client, ClientError, Request};
use super::report::{Ended, Report, Walked};
use super::service::Service;
use std::io::Write;
use std::time::{Duration, Instant};

/// The accounts of the walk.
pub(super) const ANNA: &str = "acct_anna";
const BERT: &str = "acct_bert";

/// The keys of the walk. Clients take random ones; these are to be read by people.
const KEY: &str = "demo-key-of-invoice-1001";
const RACE_KEY: &str = "demo-key-of-invoice-1002";
const NEW_KEY: &str = "demo-key-made-up-anew";
const HANG_UP_KEY: &str = "demo-key-of-invoice-1003";
pub(super) const KILLED_KEY: &str = "demo-key-of-invoice-1004";

/// What the killed request asked for.
pub(super) const KILLED_INVOICE: (&str, &str) = ("40.00", "invoice-1004");

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a case could not be walked to its end.
#[derive(Debug, thiserror::Error)]
enum Astray {
    /// The service did not behave: a fault of the case.
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Service(String),
    /// Nothing can be printed: the end of the demo.
    #[error(transparent)]
    Output(#[from] std::io::Error),
}

impl From<DemoError> for Astray {
    fn from(error: DemoError) -> Self {
        Self::Service(error.to_string())
    }
}

/// Walks through all cases.
pub(super) async fn all<W: Write>(
    service: &mut Service,
    report: &mut Report<W>,
    lease: Duration,
) -> Result<Walked, DemoError> {
    let began = Instant::now();
    let client = Client { address: service.address() };
    let mut walk = Walk { client, service, report, lease, first: None, ended: Vec::new() };

    // Borrowed one after the other, and in this order: later cases go back to the first answer.
    macro_rules! walk {
        ($($case:path => $step:ident),* $(,)?) => {
            $({
                let before = walk.open(&$case).await?;
                let walked = walk.$step().await;
                walk.close(&$case, before, walked).await?;
            })*
        };
    }
    walk! {
        cases::FIRST => first,
        cases::REPLAY => replay,
        cases::RACE => race,
        cases::REUSED => reused,
        cases::MISSING => missing,
        cases::TENANTS => tenants,
        cases::BUSINESS_KEY => business_key,
        cases::HANG_UP => hang_up,
        cases::KILLED => killed,
    }
    Ok(Walked { cases: walk.ended, took: began.elapsed() })
}

struct Walk<'w, W> {
    client: Client,
    service: &'w mut Service,
    report: &'w mut Report<W>,
    lease: Duration,
    /// The answer to the first request.
    first: Option<Answer>,
    ended: Vec<Ended>,
}

type Step = Result<Vec<Answer>, Astray>;

impl<W: Write> Walk<'_, W> {
    async fn open(&mut self, case: &Case) -> Result<Result<u64, ClientError>, DemoError> {
        self.report.case(self.ended.len() + 1, case)?;
        Ok(self.count().await)
    }

    async fn close(
        &mut self,
        case: &Case,
        before: Result<u64, ClientError>,
        walked: Step,
    ) -> Result<(), DemoError> {
        let seen = match (walked, before) {
            (Err(Astray::Output(error)), _) => return Err(error.into()),
            (Err(astray), _) => Err(astray.to_string()),
            (_, Err(error)) => Err(error.to_string()),
            (Ok(answers), Ok(before)) => match self.count().await {
                Ok(after) => Ok(Seen { answers, payments: (before, after) }),
                Err(error) => Err(error.to_string()),
            },
        };
        let faults = match seen {
            Ok(seen) => {
                self.report.payments(seen.payments)?;
                case.judge(&seen)
            }
            Err(fault) => vec![fault],
        };
        self.report.verdict(case, &faults)?;
        self.ended.push(Ended { title: case.title, faults });
        Ok(())
    }

    async fn count(&self) -> Result<u64, ClientError> {
        self.client.payments(&[ANNA, BERT]).await
    }

    /// Sends, and shows what was sent and what came back.
    async fn exchange(&mut self, request: &Request) -> Result<Answer, Astray> {
        self.report.sent(1, request)?;
        let answer = self.client.send(request).await?;
        self.report.got(&answer)?;
        Ok(answer)
    }

    /// Sends the same request once more.
    async fn repeat(&mut self, request: &Request) -> Result<Answer, Astray> {
        self.report.sent_again(request)?;
        let answer = self.client.send(request).await?;
        self.report.got(&answer)?;
        Ok(answer)
    }

    fn first_answer(&self) -> Result<Answer, Astray> {
        self.first.clone().ok_or_else(|| Astray::Service("the first request was not answered".into()))
    }

    async fn first(&mut self) -> Step {
        let answer = self.exchange(&invoice_1001()).await?;
        self.first = Some(answer.clone());
        Ok(vec![answer])
    }

    async fn replay(&mut self) -> Step {
        let first = self.first_answer()?;
        Ok(vec![first, self.exchange(&invoice_1001()).await?])
    }

    async fn race(&mut self) -> Step {
        let request = Request::pay(ANNA, Some(RACE_KEY), "20.00", "invoice-1002");
        self.report.sent(RACERS, &request)?;
        self.report.note("whoever comes first is held in its handler until all others are answered")?;
        let racer = request.held_at("race");
        let mut racing: Vec<Begun> = (0..RACERS).map(|_| self.client.begin(racer.clone())).collect();
        let deadline = Instant::now() + PATIENCE;
        while racing.iter().filter(|racer| !racer.is_answered()).count() > 1 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.client.let_go("race").await?;
        let mut answers = Vec::new();
        // The one that is held last in the order, as it is in time.
        racing.sort_by_key(|racer| !racer.is_answered());
        for racer in racing {
            answers.push(racer.answer().await?);
        }
        self.report.got_many(&answers)?;
        Ok(answers)
    }

    async fn reused(&mut self) -> Step {
        Ok(vec![self.exchange(&Request::pay(ANNA, Some(KEY), "1000.00", "invoice-1001")).await?])
    }

    async fn missing(&mut self) -> Step {
        Ok(vec![self.exchange(&Request::pay(ANNA, None, "10.00", "invoice-1005")).await?])
    }

    async fn tenants(&mut self) -> Step {
        let first = self.first_answer()?;
        let same = Request { account: BERT, ..invoice_1001() };
        Ok(vec![first, self.exchange(&same).await?])
    }

    async fn business_key(&mut self) -> Step {
        let first = self.first_answer()?;
        let anew = Request { key: Some(NEW_KEY), ..invoice_1001() };
        Ok(vec![first, self.exchange(&anew).await?])
    }

    async fn hang_up(&mut self) -> Step {
        let request = Request::pay(ANNA, Some(HANG_UP_KEY), "30.00", "invoice-1003");
        let before = self.count().await?;
        self.report.sent(1, &request)?;
        let begun = self.client.begin(request.clone().held_at("hang-up"));
        self.client.until_held("hang-up").await?;
        begun.hang_up().await;
        self.report.note("the client closes its connection while the handler is at work")?;
        // Time for the service to notice that nobody listens any more, and to drop what it would drop.
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.client.let_go("hang-up").await?;
        let deadline = Instant::now() + PATIENCE;
        while self.count().await? == before {
            if Instant::now() > deadline {
                return Err(Astray::Service(
                    "the work ended with the connection: there is no payment".into(),
                ));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(vec![self.repeat(&request).await?])
    }

    async fn killed(&mut self) -> Step {
        let (amount, reference) = KILLED_INVOICE;
        let request = Request::pay(ANNA, Some(KILLED_KEY), amount, reference);
        self.report.sent(1, &request)?;
        let begun = self.client.begin(request.clone().held_at("killed"));
        self.client.until_held("killed").await?;
        self.service.kill().await?;
        // By now at the latest the last sign of life was given.
        let killed = Instant::now();
        let broken = begun.answer().await;
        self.report.note("SIGKILL to the service while the handler is at work")?;
        if let Ok(answer) = broken {
            self.report.got(&answer)?;
            return Err(Astray::Service("a service that was killed has answered".into()));
        }
        self.service.restart().await?;
        self.report.note("it is started again on the same file; the dead handler's lease still lasts")?;
        let at_once = self.repeat(&request).await?;
        let over = killed + self.lease + Duration::from_millis(200);
        self.report.wait("waiting for the lease to run out", over).await?;
        let later = self.repeat(&request).await?;
        self.report.note("and once more, to be sure")?;
        let again = self.repeat(&request).await?;
        Ok(vec![at_once, later, again])
    }
}

fn invoice_1001() -> Request {
    Request::pay(ANNA, Some(KEY), "10.00", "invoice-1001")
}
