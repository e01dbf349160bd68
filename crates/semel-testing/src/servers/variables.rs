//! The variables by which a machine's own servers and programs take the place of those that are started or found.

/// Names a PostgreSQL server, as the URL of a database on it.
pub const POSTGRES_URL: &str = "SEMEL_TEST_POSTGRES_URL";
/// Names a PgBouncer in transaction mode in front of the same server.
pub const PGBOUNCER_URL: &str = "SEMEL_TEST_PGBOUNCER_URL";
/// Names a NATS server with JetStream.
pub const NATS_URL: &str = "SEMEL_TEST_NATS_URL";
/// Names a RabbitMQ server.
pub const RABBITMQ_URL: &str = "SEMEL_TEST_RABBITMQ_URL";
/// Names a Redis server.
pub const REDIS_URL: &str = "SEMEL_TEST_REDIS_URL";
/// Names a service with DynamoDB's interface: an emulator, for tables that tests create on it.
pub const DYNAMODB_URL: &str = "SEMEL_TEST_DYNAMODB_URL";
/// Names the host that starts servers for this run, by its address.
pub const HOST: &str = "SEMEL_TEST_SERVERS";
/// Names the directory of PostgreSQL's programs, where it is not the newest that is installed.
pub const POSTGRES_BIN: &str = "SEMEL_TEST_POSTGRES_BIN";
/// Names the program nats-server, where it is not on the search path.
pub const NATS_SERVER: &str = "SEMEL_TEST_NATS_SERVER";
/// Names the program redis-server, where it is not on the search path.
pub const REDIS_SERVER: &str = "SEMEL_TEST_REDIS_SERVER";
/// Names the program dynoxide, where it is not on the search path.
pub const DYNOXIDE: &str = "SEMEL_TEST_DYNOXIDE";
/// Names the directory of the Python tools.
pub const PYTHON_TOOLS: &str = "SEMEL_TEST_PYTHON_TOOLS";
