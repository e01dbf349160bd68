//! A connection to Redis, whatever form it has, and the four things that are asked of it.

use crate::trouble::Trouble;
use crate::url::{Form, RedisUrl};
use bytes::Bytes;
use futures_util::future::join_all;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisError, RedisResult, TlsCertificates, TlsMode,
};
use std::time::Duration;

/// The script that decides what may replace what, in one atomic step. Sent whole each time: it is shorter than most entries, and there is no
/// case then of a server that has not seen it, or has forgotten it in a failover.
const PUT: &str = include_str!("put.lua");

/// Redis refuses what does not fit the type of what is there. Whoever wrote that there is not Semel: nothing is wrong with the server.
const WRONG_TYPE: &str = "WRONGTYPE";

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) enum Connection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// A value to be written, unless what is there forbids it.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) lasts: Duration,
    /// Whether nothing forbids it: a marker replaces everything.
    pub(crate) always: bool,
}

impl Connection {
    /// Connects, within this time.
    pub(crate) async fn connect(
        url: &RedisUrl,
        ca: Option<&[u8]>,
        within: Duration,
    ) -> Result<Self, Trouble> {
        let connecting = async {
            let certificates = || TlsCertificates { client_tls: None, root_cert: ca.map(<[u8]>::to_vec) };
            // How long an answer may take is the tier's business.
            let config =
                AsyncConnectionConfig::new().set_connection_timeout(Some(within)).set_response_timeout(None);
            match &url.form {
                Form::Server => {
                    let node = url.nodes.first().cloned().ok_or(Trouble::Connection)?;
                    let client = match url.tls {
                        true => Client::build_with_tls(node, certificates()),
                        false => Client::open(node),
                    };
                    let client = client.map_err(told)?;
                    let connecting = client.get_multiplexed_async_connection_with_config(&config);
                    connecting.await.map(Self::Server).map_err(told)
                }
                Form::Cluster => {
                    let mut builder = redis::cluster::ClusterClient::builder(url.nodes.clone())
                        .retries(2)
                        .min_retry_wait(1)
                        .max_retry_wait(10)
                        .connection_timeout(within)
                        .response_timeout(within);
                    if url.tls {
                        builder = builder.tls(TlsMode::Secure).certs(certificates());
                    }
                    let client = builder.build().map_err(told)?;
                    client.get_async_connection().await.map(Self::Cluster).map_err(told)
                }
                Form::Sentinel(name) => {
                    let nodes = url.nodes.iter().map(|node| node.addr().clone());
                    let mut builder =
                        SentinelClientBuilder::new(nodes, name.clone(), SentinelServerType::Master)
                            .map_err(told)?;
                    if let Some(login) = url.nodes.first().map(redis::ConnectionInfo::redis_settings) {
                        builder = builder.set_client_to_redis_db(login.db());
                        if let Some(user) = login.username() {
                            builder = builder.set_client_to_redis_username(user);
                        }
                        if let Some(password) = login.password() {
                            builder = builder.set_client_to_redis_password(password);
                        }
                    }
                    if url.tls {
                        builder = builder
                            .set_client_to_redis_tls_mode(TlsMode::Secure)
                            .set_client_to_redis_certificates(certificates())
                            .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                            .set_client_to_sentinel_certificates(certificates());
                    }
                    let mut client = builder.build().map_err(told)?;
                    client.get_async_connection_with_config(&config).await.map(Self::Server).map_err(told)
                }
            }
        };
        tokio::time::timeout(within, connecting).await.unwrap_or(Err(Trouble::Connection))
    }

    /// The values under these names.
    pub(crate) async fn read(mut self, names: &[Vec<u8>]) -> Result<Vec<Option<Bytes>>, Trouble> {
        let mut command = redis::cmd("MGET");
        for name in names {
            command.arg(&name[..]);
        }
        let values: Vec<Option<Vec<u8>>> = self.ask(&command).await.map_err(told)?;
        if values.len() != names.len() {
            return Err(Trouble::Answer);
        }
        Ok(values.into_iter().map(|value| value.map(Bytes::from)).collect())
    }

    /// Writes these values. All are tried.
    pub(crate) async fn write(self, puts: &[Put]) -> Result<(), Trouble> {
        let written = join_all(puts.iter().map(|put| {
            let mut connection = self.clone();
            async move {
                let lasts = put.lasts.as_millis().max(1);
                let mut command = redis::cmd(if put.always { "SET" } else { "EVAL" });
                if put.always {
                    command.arg(&put.name[..]).arg(&put.value[..]).arg("PX").arg(lasts.to_string());
                } else {
                    command.arg(PUT).arg(1).arg(&put.name[..]).arg(&put.value[..]).arg(lasts.to_string());
                }
                connection.ask::<redis::Value>(&command).await.map(drop)
            }
        }));
        let troubles = written.await.into_iter().filter_map(Result::err);
        let mut troubles = troubles.filter(|error| error.code() != Some(WRONG_TYPE)).map(told);
        troubles.next().map_or(Ok(()), Err)
    }

    /// Whether it writes: a server that answers and takes nothing is of no use.
    pub(crate) async fn try_out(mut self, name: &[u8]) -> Result<(), Trouble> {
        let mut command = redis::cmd("SET");
        command.arg(name).arg("1").arg("PX").arg(1_000);
        self.ask::<redis::Value>(&command).await.map(drop).map_err(told)
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        async fn of<C: ConnectionLike, T: FromRedisValue>(
            connection: &mut C,
            command: &Cmd,
        ) -> RedisResult<T> {
            command.query_async(connection).await
        }
        match self {
            Self::Server(connection) => of(connection, command).await,
            Self::Cluster(connection) => of(connection, command).await,
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn told(error: RedisError) -> Trouble {
    let trouble = Trouble::from(&error);
    tracing::debug!(%error, trouble = trouble.as_str(), "redis");
    trouble
}

#[cfg(test)]
mod tests;
