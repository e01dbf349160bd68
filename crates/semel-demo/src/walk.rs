//! What is done in each case. What is thought of it is in `cases.rs`.

use super::DemoError;
use super::cases::{self, Case, RACERS, Seen, UNKNOWN, is_in_progress};
use super::client::{Answer, Begun, Client, ClientError, Request};
use super::environment::Environment;
use super::ledger::Ledger;
use super::part::ADMIN_TOKEN;
use super::part::service::{Order, Payment};
use super::report::{Ended, Report, Walked};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

/// The accounts of the walk.
pub(super) const ANNA: &str = "acct_anna";
const BERT: &str = "acct_bert";

/// The keys of the walk. Clients take random ones; these are to be read by people.
const KEY: &str = "inv-1001-of-the-demo";
const RACE_KEY: &str = "inv-1002-of-the-demo";
const DECLINED_KEY: &str = "inv-1003-of-the-demo";
const HANG_UP_KEY: &str = "inv-1004-of-the-demo";
const SILENT_KEY: &str = "inv-1005-of-the-demo";
const KILLED_KEY: &str = "inv-1006-of-the-demo";
const NOT_RUNNING_KEY: &str = "inv-1007-of-the-demo";

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a case could not be walked to its end.
#[derive(Debug, thiserror::Error)]
enum Astray {
    /// Somebody did not behave: a fault of the case.
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Otherwise(String),
    /// Nothing can be printed: the end of the demo.
    #[error(transparent)]
    Output(#[from] std::io::Error),
}

impl From<DemoError> for Astray {
    fn from(error: DemoError) -> Self {
        Self::Otherwise(error.to_string())
    }
}

/// Walks through all cases.
pub(super) async fn all<W: Write>(
    stage: &mut Environment,
    report: &mut Report<W>,
) -> Result<Walked, DemoError> {
    let began = Instant::now();
    let client = Client { address: stage.gateway.address() };
    let ledger = stage.ledger();
    let mut walk = Walk { client, ledger, stage, report, first: None, doubted: None, ended: Vec::new() };

    // Borrowed one after the other, and in this order: later cases go back to earlier answers.
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
        cases::DECLINED => declined,
        cases::HANG_UP => hang_up,
        cases::SILENT => silent,
        cases::KILLED => killed,
        cases::NOT_RUNNING => not_running,
        cases::GATEWAY_KILLED => gateway_killed,
    }
    Ok(Walked { cases: walk.ended, took: began.elapsed(), doubted: walk.doubted })
}

struct Walk<'w, W> {
    client: Client,
    ledger: Ledger,
    stage: &'w mut Environment,
    report: &'w mut Report<W>,
    /// The answer to the first request.
    first: Option<Answer>,
    /// The operation that the service was killed in.
    doubted: Option<String>,
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
                Ok(after) => Ok(Seen { answers, charges: (before, after) }),
                Err(error) => Err(error.to_string()),
            },
        };
        let faults = match seen {
            Ok(seen) => {
                self.report.charges(seen.charges)?;
                case.judge(&seen)
            }
            Err(fault) => vec![fault],
        };
        self.report.verdict(case, &faults)?;
        self.ended.push(Ended { title: case.title, faults });
        Ok(())
    }

    async fn count(&self) -> Result<u64, ClientError> {
        self.ledger.charges().await
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
        let answer = self.client.send(&request.again()).await?;
        self.report.got(&answer)?;
        Ok(answer)
    }

    fn first_answer(&self) -> Result<Answer, Astray> {
        self.first.clone().ok_or_else(|| Astray::Otherwise("the first request was not answered".into()))
    }

    async fn first(&mut self) -> Step {
        let answer = self.exchange(&invoice_1001()).await?;
        self.first = Some(answer.clone());
        Ok(vec![answer])
    }

    async fn replay(&mut self) -> Step {
        let first = self.first_answer()?;
        Ok(vec![first, self.repeat(&invoice_1001()).await?])
    }

    async fn race(&mut self) -> Step {
        let request = invoice(RACE_KEY, "20.00", "invoice-1002").with_provider("stall-after");
        self.report.sent(RACERS, &request)?;
        self.report.note("the provider holds the first request until all others are answered")?;
        let mut racing: Vec<Begun> = (0..RACERS).map(|_| self.client.begin(request.clone())).collect();
        self.ledger.until_one_waits().await?;
        let deadline = Instant::now() + PATIENCE;
        while racing.iter().filter(|racer| !racer.is_answered()).count() > 1 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.ledger.let_go().await?;
        let mut answers = Vec::new();
        // The one that is kept last in the order, as it is in time.
        racing.sort_by_key(|racer| !racer.is_answered());
        for racer in racing {
            answers.push(racer.answer().await?);
        }
        self.report.got_many(&answers)?;
        Ok(answers)
    }

    async fn reused(&mut self) -> Step {
        Ok(vec![self.exchange(&invoice(KEY, "1000.00", "invoice-1001")).await?])
    }

    async fn missing(&mut self) -> Step {
        Ok(vec![self.exchange(&Request { key: None, ..invoice_1001() }).await?])
    }

    async fn tenants(&mut self) -> Step {
        let first = self.first_answer()?;
        let same = Request { account: Some(BERT), ..invoice_1001() };
        Ok(vec![first, self.exchange(&same).await?])
    }

    async fn declined(&mut self) -> Step {
        let request = invoice(DECLINED_KEY, "30.00", "invoice-1003").with_provider("decline");
        Ok(vec![self.exchange(&request).await?, self.repeat(&request).await?])
    }

    async fn hang_up(&mut self) -> Step {
        let request = invoice(HANG_UP_KEY, "40.00", "invoice-1004").with_provider("stall-after");
        self.report.sent(1, &request)?;
        let begun = self.client.begin(request.clone());
        self.ledger.until_one_waits().await?;
        begun.hang_up().await;
        self.report.note("the client disconnects while the provider works")?;
        // Time for the gateway to notice that nobody listens any more, and to drop what it would drop.
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.ledger.let_go().await?;
        let deadline = Instant::now() + PATIENCE;
        while is_in_progress(&self.client.send(&request.again()).await?) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(vec![self.repeat(&request).await?])
    }

    async fn silent(&mut self) -> Step {
        let order = order("50.00", "invoice-1005");
        let request = Request::pay(ANNA, Some(SILENT_KEY), &order).with_provider("drop-after");
        let first = self.exchange(&request).await?;
        let retry = self.repeat(&request).await?;
        let unknown = retry.code().as_deref() == Some(UNKNOWN);
        let Some(operation) = retry.member("operation_id").filter(|_| unknown) else {
            // There is nothing to settle, which is wrong enough.
            return Ok(vec![first, retry]);
        };
        let Some(charge) = self.ledger.charge_of(&operation).await? else {
            return Err(Astray::Otherwise("the ledger does not have one charge of this operation".into()));
        };
        self.report.note("an operator looks into the provider's ledger and finds the charge")?;
        self.settle(&operation, &Payment::made(&operation, order, charge.id.clone()), &charge.id).await?;
        Ok(vec![first, retry, self.repeat(&request).await?])
    }

    /// Settles an operation as an operator does: with the command, of which what matters is shown.
    async fn settle(&mut self, operation: &str, payment: &Payment, charge: &str) -> Result<(), Astray> {
        let reason = format!("charged: {charge}");
        let body = serde_json::to_string(payment).map_err(std::io::Error::other)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["operations", "settle", operation, "--outcome", "completed", "--reason", &reason])
            .args(["--status", "201", "--content-type", "application/json", "--body", &body])
            .args(["--resource", &format!("payment/{}", payment.id), "--yes"])
            .env("SEMEL_ADMIN", format!("http://{}", self.stage.gateway.admin_address()))
            .env("SEMEL_ADMIN_TOKEN", ADMIN_TOKEN)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await?;
        let printed = [output.stdout, output.stderr].concat();
        self.report.command(
            &[
                format!("semel operations settle {operation} \\"),
                "--outcome completed --status 201 --body '{\"id\":\"pay_…\",…}' \\".into(),
                format!("--reason '{reason}' …"),
            ],
            &String::from_utf8_lossy(&printed),
        )?;
        if output.status.success() {
            return Ok(());
        }
        Err(Astray::Otherwise("the operation could not be settled".into()))
    }

    async fn killed(&mut self) -> Step {
        let request = invoice(KILLED_KEY, "60.00", "invoice-1006").with_provider("stall-after");
        self.report.sent(1, &request)?;
        let begun = self.client.begin(request.clone());
        self.ledger.until_one_waits().await?;
        self.stage.service.kill().await?;
        self.report.note("SIGKILL to the service: the provider has charged, and was about to answer")?;
        let first = begun.answer().await?;
        self.report.got(&first)?;
        self.doubted = first.member("operation_id");
        Ok(vec![first, self.repeat(&request).await?])
    }

    async fn not_running(&mut self) -> Step {
        let request = invoice(NOT_RUNNING_KEY, "70.00", "invoice-1007");
        if self.stage.service.is_running()? {
            self.stage.service.kill().await?;
        }
        let refused = self.exchange(&request).await?;
        self.stage.restart_service().await?;
        self.report.note("the service restarts")?;
        Ok(vec![refused, self.repeat(&request).await?])
    }

    async fn gateway_killed(&mut self) -> Step {
        let first = self.first_answer()?;
        self.stage.gateway.kill().await?;
        self.report.note("SIGKILL to the gateway")?;
        self.stage.restart_gateway().await?;
        self.report.note("it restarts: the very first request again, and the one in doubt")?;
        let retry = self.repeat(&invoice_1001()).await?;
        let doubted = self.repeat(&invoice(KILLED_KEY, "60.00", "invoice-1006")).await?;
        Ok(vec![first, retry, doubted])
    }
}

fn order(amount: &str, reference: &str) -> Order {
    Order { amount: amount.into(), currency: "EUR".into(), merchant_reference: reference.into() }
}

fn invoice(key: &'static str, amount: &str, reference: &str) -> Request {
    Request::pay(ANNA, Some(key), &order(amount, reference))
}

fn invoice_1001() -> Request {
    invoice(KEY, "10.00", "invoice-1001")
}
