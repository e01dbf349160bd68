//! One connection to the service.
//!
//! No task of its own drives it: whoever waits for its answer does. That saves two changes of task per request, and a connection
//! that nobody uses does nothing.

use crate::deadline_timer::DeadlineTimer;
use crate::limits::Limits;
use crate::listener::RequestBody;
use crate::upstream::dial::{Dial, ServiceStream};
use crate::upstream::failure::{Failure, GaveUp};
use crate::upstream::socket::Traffic;
use bytes::Bytes;
use http::header::UPGRADE;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use semel::Right;
use semel_tower::BoxError;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// A connection, with or without a request on it.
pub(in crate::upstream) struct Connection {
    sender: http1::SendRequest<RequestBody>,
    /// None once it is over: while it exists, a request that it will never take is still waiting in it.
    driver: Option<http1::Connection<TokioIo<ServiceStream>, RequestBody>>,
    /// Whether the service was asked to switch protocols; if it has, what there is to speak another one over.
    may_switch: bool,
    switched: Option<http1::Parts<TokioIo<ServiceStream>>>,
    traffic: Arc<Traffic>,
    give_up: Duration,
    silence: Silence,
}

/// How long nothing has passed.
struct Silence {
    timer: DeadlineTimer,
    total: u64,
    since: Instant,
}

impl Connection {
    /// Opens a connection to the service.
    pub(in crate::upstream) async fn open(dial: &Dial, limits: &Limits) -> Result<Box<Self>, BoxError> {
        let (stream, traffic) = dial.connect().await?;
        let (sender, driver) = http1::Builder::new().handshake(TokioIo::new(stream)).await?;
        Ok(Box::new(Self {
            sender,
            driver: Some(driver),
            may_switch: false,
            switched: None,
            traffic,
            give_up: limits.upstream_give_up,
            silence: Silence { timer: DeadlineTimer::default(), total: 0, since: Instant::now() },
        }))
    }

    /// Sends a request, and waits for the head of its answer. By a right that ends on the way, what is left of it is not sent.
    pub(in crate::upstream) async fn send(
        &mut self,
        request: Request<RequestBody>,
        right: Option<&Right>,
    ) -> Result<Response<Incoming>, Failure> {
        let before = self.traffic.written();
        self.traffic.send_by(right);
        self.may_switch = request.headers().contains_key(UPGRADE);
        self.silence.since = Instant::now();
        let mut answering = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|context| {
            self.drive(context);
            if let Poll::Ready(answer) = answering.as_mut().poll(context) {
                return Poll::Ready(Ok(answer));
            }
            self.poll_silence(context).map(Err)
        })
        .await;
        let error: BoxError = match answered {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(mut error)) => match error.take_message() {
                Some(request) => return Err(Failure::HandedBack(Box::new(request))),
                None => error.into_error().into(),
            },
            Err(gave_up) => gave_up.into(),
        };
        // That is why, whatever the HTTP library makes of it.
        let error = right.and_then(|right| right.check_cheaply().err()).map_or(error, Into::into);
        if self.traffic.written() == before {
            Err(Failure::NotSent(error))
        } else {
            Err(Failure::Sent(error))
        }
    }

    /// Goes on with what there is to read and write.
    pub(in crate::upstream) fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            let over = self.driver.take();
            self.switched = over.filter(|_| self.may_switch).map(http1::Connection::into_parts);
        }
    }

    /// What is left of a connection whose service has switched protocols: the stream, what came over it already, and its counts.
    pub(in crate::upstream) async fn switched(
        mut self: Box<Self>,
    ) -> Option<(ServiceStream, Bytes, Arc<Traffic>)> {
        poll_fn(|context| {
            self.drive(context);
            if self.driver.is_some() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        let http1::Parts { io, read_buf, .. } = self.switched.take()?;
        Some((io.into_inner(), read_buf, Arc::clone(&self.traffic)))
    }

    /// Ready once nothing has passed for too long.
    pub(in crate::upstream) fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<GaveUp> {
        let silence = &mut self.silence;
        let total = self.traffic.total();
        if silence.total != total {
            silence.total = total;
            silence.since = Instant::now();
        }
        silence.timer.poll_until(context, silence.since + self.give_up).map(|()| GaveUp(self.give_up))
    }

    /// Whether it could take the next request now. Nobody is woken for it any more.
    pub(in crate::upstream) fn is_idle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        let is_idle = self.driver.is_some() && self.sender.is_ready();
        if is_idle {
            self.traffic.send_by(None);
        }
        is_idle
    }

    /// Whether it can take the next request, and the service has not hung up: as the system knows it at this moment.
    pub(in crate::upstream) fn is_alive(&mut self) -> bool {
        self.traffic.probe_next_read();
        self.is_idle() && self.traffic.was_probed()
    }
}

#[cfg(test)]
pub(in crate::upstream) mod tests {
    use super::*;
    use crate::upstream::UpstreamProtocol;
    use crate::upstream::target::Target;
    use crate::upstream::tests::ticket;
    use semel::RightEnded;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    /// A connection, and its other end.
    pub(in crate::upstream) async fn connected() -> (Box<Connection>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let opening = tokio::spawn(async move {
            let (target, protocol) = (Arc::new(Target::new(&url).unwrap()), UpstreamProtocol::Http1);
            let dial = Dial { target, tls: None, protocol, timeout: Duration::from_secs(10) };
            Connection::open(&dial, &Limits::default()).await.unwrap()
        });
        let (other_end, _) = listener.accept().await.unwrap();
        (opening.await.unwrap(), other_end)
    }

    fn request() -> Request<RequestBody> {
        Request::post("/").header("host", "a").body(RequestBody::from(Bytes::from_static(b"body"))).unwrap()
    }

    /// Waits until the end of the other side has come.
    async fn notices(connection: &mut Connection) {
        while connection.is_alive() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_end_is_noticed_before_the_runtime_hears_of_it() {
        let (mut connection, other_end) = connected().await;
        assert!(connection.is_alive());
        drop(other_end);
        // Nothing is awaited here: the runtime cannot have looked.
        assert!(!connection.is_alive());
    }

    #[tokio::test]
    async fn an_answer_that_nobody_asked_for_is_noticed_too() {
        let (mut connection, mut other_end) = connected().await;
        other_end.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.unwrap();
        notices(&mut connection).await;
    }

    #[tokio::test]
    async fn what_meets_a_closed_connection_was_not_sent() {
        for reset in [true, false] {
            let (mut connection, other_end) = connected().await;
            if reset {
                other_end.set_zero_linger().unwrap();
            }
            drop(other_end);
            notices(&mut connection).await;
            let sent = connection.send(request(), None).await;
            assert!(matches!(sent, Err(Failure::HandedBack(_) | Failure::NotSent(_))));
        }
    }

    #[tokio::test]
    async fn what_meets_an_end_that_nobody_looked_for_is_handed_back() {
        let (mut connection, other_end) = connected().await;
        assert!(connection.is_idle());
        drop(other_end);
        // The runtime hears of it now.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let sending = tokio::time::timeout(Duration::from_secs(10), connection.send(request(), None));
        assert!(matches!(sending.await.unwrap(), Err(Failure::HandedBack(_))));
    }

    #[tokio::test]
    async fn what_was_taken_by_the_system_was_sent_whatever_became_of_it() {
        for read in [0, 1] {
            let (mut connection, mut other_end) = connected().await;
            let breaking = async {
                // Something has come: the request is on its way.
                other_end.readable().await.unwrap();
                other_end.read_exact(&mut vec![0; read]).await.unwrap();
                other_end.set_zero_linger().unwrap();
                drop(other_end);
            };
            let (sent, ()) = tokio::join!(connection.send(request(), None), breaking);
            assert!(matches!(sent, Err(Failure::Sent(_))));
        }
    }

    #[tokio::test]
    async fn nothing_is_sent_by_a_right_that_has_ended() {
        let (mut connection, other_end) = connected().await;
        let ticket = ticket().await;
        let right = ticket.right();
        drop(ticket);
        let Err(Failure::NotSent(error)) = connection.send(request(), Some(&right)).await else { panic!() };
        assert_eq!(error.downcast_ref(), Some(&RightEnded::InDoubt));
        drop(connection);
        let mut seen = Vec::new();
        let _ = tokio::io::BufReader::new(other_end).read_to_end(&mut seen).await;
        assert_eq!(seen, b"");
    }

    #[tokio::test]
    async fn what_is_left_to_send_when_the_right_ends_is_not_sent() {
        let (mut connection, mut other_end) = connected().await;
        let ticket = ticket().await;
        let right = ticket.right();
        // More than both ends keep of it.
        let body = Bytes::from(vec![b'x'; 32 << 20]);
        let length = body.len();
        let large = Request::post("/").header("host", "a").body(RequestBody::from(body)).unwrap();
        let stopping = async {
            other_end.readable().await.unwrap();
            drop(ticket);
            // As the layer does it: everything is polled once more.
            tokio::task::yield_now().await;
        };
        let (sent, ()) = tokio::join!(connection.send(large, Some(&right)), stopping);
        let Err(Failure::Sent(error)) = sent else { panic!() };
        assert_eq!(error.downcast_ref(), Some(&RightEnded::InDoubt));
        drop(connection);
        let mut seen = Vec::new();
        let ending = other_end.read_to_end(&mut seen).await;
        assert!(ending.is_err() && seen.len() < length, "{ending:?} after {} bytes", seen.len());
    }

    #[tokio::test]
    async fn an_answer_to_the_end_leaves_a_connection_for_the_next() {
        let (mut connection, mut other_end) = connected().await;
        for _ in 0..2 {
            let answering = async {
                let mut read = Vec::new();
                while !read.ends_with(b"body") {
                    other_end.read_buf(&mut read).await.unwrap();
                }
                other_end.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
            };
            let (answer, ()) = tokio::join!(connection.send(request(), None), answering);
            assert_eq!(answer.ok().unwrap().status(), 200);
            assert!(connection.is_idle() && connection.is_alive());
        }
    }
}
