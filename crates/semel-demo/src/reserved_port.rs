//! A port that stays ours while the process that listens on it is killed and started again.

use super::DemoError;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::net::TcpSocket;

/// A socket that is bound and never listens. Whoever connects is refused while nobody else listens there; a process that is told the
/// address can; and the system gives the port to nobody who asks for any.
pub(super) struct ReservedPort {
    address: SocketAddr,
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Any free port of this machine.
    pub(super) fn any() -> Result<Self, DemoError> {
        Self::any_at(Ipv4Addr::LOCALHOST.into())
    }

    /// Any free port of this address.
    pub(super) fn any_at(ip: IpAddr) -> Result<Self, DemoError> {
        let wanted = SocketAddr::new(ip, 0);
        let bind = || {
            let socket = if ip.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // So that another may bind it too. Listeners set the same.
            socket.set_reuseaddr(true)?;
            socket.bind(wanted)?;
            Ok(Self { address: socket.local_addr()?, _socket: socket })
        };
        bind().map_err(|error| DemoError::Listen(wanted, error))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what goes wrong here is a failed test")]

    use super::ReservedPort;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};
    use tokio::net::TcpSocket;

    #[tokio::test]
    async fn a_place_is_for_whoever_is_told_of_it_and_nobody_listens_until_then() {
        let place = ReservedPort::any().unwrap();
        assert!(TcpStream::connect(place.address()).is_err(), "nobody listens");
        for _killed in 0..3 {
            let listener = TcpListener::bind(place.address()).unwrap();
            let _client = TcpStream::connect(place.address()).unwrap();
            drop(listener.accept().unwrap());
        }
        assert!(TcpStream::connect(place.address()).is_err(), "nobody listens any more");
    }

    #[tokio::test]
    async fn a_place_is_taken_for_whoever_has_not_been_told_of_it() {
        let place = ReservedPort::any().unwrap();
        let stranger = TcpSocket::new_v4().unwrap();
        assert_eq!(stranger.bind(place.address()).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
