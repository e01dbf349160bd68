//! Who is checked, at which version, and how each is set up.

/// Where it comes from.
pub(super) enum Install {
    /// Packages from PyPI.
    Python(&'static [&'static str]),
    /// Packages from npm.
    Node(&'static [&'static str]),
}

/// What the service keeps its data in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Own,
    Redis,
    Postgres,
}

/// The request that is checked, and how it is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// A payment of the services in `proof/check`.
    Payment,
    /// An object of Parse Server.
    ParseObject,
    /// An order of pretix.
    PretixOrder,
}

/// A third-party implementation.
pub(super) struct Peer {
    /// The name of its package, and of the directory that it is installed in.
    pub(super) name: &'static str,
    /// What tells this setup from the usual one.
    pub(super) variant: Option<&'static str>,
    pub(super) version: &'static str,
    pub(super) is_application: bool,
    /// How it is set up, for the report.
    pub(super) setup: &'static str,
    pub(super) install: Install,
    pub(super) store: Store,
    pub(super) request: Request,
}

const AIOSQLITE: &str = "aiosqlite==0.22.1";
const FASTAPI: &str = "fastapi==0.163.0";
const UVICORN: &str = "uvicorn==0.54.0";
const REDIS: &str = "redis==8.1.0";
const DJANGO: &str = "django==5.2.19";
const DRF: &str = "djangorestframework==3.18.3";
const GUNICORN: &str = "gunicorn==27.0.1";

/// All of them.
pub(super) const PEERS: [Peer; 12] = [
    Peer {
        name: "fastapi-idempotency",
        variant: None,
        version: "0.1.1",
        is_application: false,
        setup: "FastAPI; its persistent store (Tortoise on SQLite), scope by the Authorization header",
        install: Install::Python(&[
            "fastapi-idempotency==0.1.1",
            "tortoise-orm==1.1.9",
            AIOSQLITE,
            FASTAPI,
            UVICORN,
        ]),
        store: Store::Own,
        request: Request::Payment,
    },
    Peer {
        name: "fastapi-idempotency-key",
        variant: None,
        version: "0.1.1",
        is_application: false,
        setup: "FastAPI; its SQLite backend",
        install: Install::Python(&["fastapi-idempotency-key==0.1.1", AIOSQLITE, FASTAPI, UVICORN, REDIS]),
        store: Store::Own,
        request: Request::Payment,
    },
    Peer {
        name: "fastapi-idempotency-key",
        variant: Some("redis"),
        version: "0.1.1",
        is_application: false,
        setup: "FastAPI; its Redis backend",
        install: Install::Python(&["fastapi-idempotency-key==0.1.1", AIOSQLITE, FASTAPI, UVICORN, REDIS]),
        store: Store::Redis,
        request: Request::Payment,
    },
    Peer {
        name: "asgi-idempotency-header",
        variant: None,
        version: "0.2.0",
        is_application: false,
        setup: "FastAPI; its Redis backend",
        install: Install::Python(&["asgi-idempotency-header==0.2.0", FASTAPI, UVICORN, REDIS]),
        store: Store::Redis,
        request: Request::Payment,
    },
    Peer {
        name: "idemptx",
        variant: None,
        version: "0.2.2",
        is_application: false,
        setup: "FastAPI; its async Redis backend, defaults",
        install: Install::Python(&["idemptx==0.2.2", FASTAPI, UVICORN]),
        store: Store::Redis,
        request: Request::Payment,
    },
    Peer {
        name: "drf-idempotency",
        variant: None,
        version: "1.0.0",
        is_application: false,
        setup: "Django REST framework under gunicorn with threads; its database backend on SQLite",
        install: Install::Python(&["drf-idempotency==1.0.0", DJANGO, DRF, GUNICORN, REDIS]),
        store: Store::Redis,
        request: Request::Payment,
    },
    Peer {
        name: "django-idempotency-key",
        variant: None,
        version: "1.3.0",
        is_application: false,
        setup: "Django REST framework under gunicorn with threads; its cache storage on Redis, without its optional lock on Redis",
        install: Install::Python(&["django-idempotency-key==1.3.0", DJANGO, DRF, GUNICORN, REDIS]),
        store: Store::Redis,
        request: Request::Payment,
    },
    Peer {
        name: "express-idempotency",
        variant: None,
        version: "1.0.6",
        is_application: false,
        setup: "Express 4; defaults (keys in memory), and a handler that asks `isHit()`",
        install: Install::Node(&["express-idempotency@1.0.6", "express@4.22.3"]),
        store: Store::Own,
        request: Request::Payment,
    },
    Peer {
        name: "express-idempotency",
        variant: Some("without-is-hit"),
        version: "1.0.6",
        is_application: false,
        setup: "Express 4; defaults (keys in memory), and a handler that does not ask `isHit()`, which its README asks handlers to do",
        install: Install::Node(&["express-idempotency@1.0.6", "express@4.22.3"]),
        store: Store::Own,
        request: Request::Payment,
    },
    Peer {
        name: "node-idempotency",
        variant: None,
        version: "1.0.4",
        is_application: false,
        setup: "`@node-idempotency/nestjs` with NestJS 10; its Redis adapter, defaults",
        install: Install::Node(&[
            "@node-idempotency/nestjs@1.0.4",
            "@node-idempotency/storage-adapter-redis@1.0.2",
            "@nestjs/common@10.4.22",
            "@nestjs/core@10.4.22",
            "@nestjs/platform-express@10.4.22",
            "reflect-metadata@0.2.2",
            "rxjs@7.8.2",
        ]),
        store: Store::Redis,
        request: Request::Payment,
    },
    Peer {
        name: "parse-server",
        variant: None,
        version: "9.10.0",
        is_application: true,
        setup: "On PostgreSQL; `idempotencyOptions` for all classes, and triggers that delay a save (`X-Delay`). By design a duplicate is refused (400, code 159), and its answer not repeated",
        install: Install::Node(&["parse-server@9.10.0"]),
        store: Store::Postgres,
        request: Request::ParseObject,
    },
    Peer {
        name: "pretix",
        variant: None,
        version: "2026.8.0",
        is_application: true,
        setup: "On SQLite, which its documentation keeps to development, under gunicorn with threads; orders by its REST API, `X-Idempotency-Key`",
        install: Install::Python(&["pretix==2026.8.0", GUNICORN]),
        store: Store::Own,
        request: Request::PretixOrder,
    },
];

impl Peer {
    /// What this setup is called: its files, and the directory of its service in `proof/check`.
    pub(super) fn id(&self) -> String {
        match self.variant {
            Some(variant) => format!("{}-{variant}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// The command that serves it at `$PORT`; `$PACKAGES` is where it was installed.
    pub(super) fn command(&self) -> &'static str {
        match (&self.install, self.request) {
            (Install::Node(_), _) => "node $SERVICE/service.js",
            (_, Request::PretixOrder) => {
                "$PACKAGES/bin/gunicorn -b 127.0.0.1:$PORT --threads 24 --timeout 120 service:app"
            }
            _ if self.name.starts_with("dj") || self.name.starts_with("drf") => {
                "$PACKAGES/bin/gunicorn -b 127.0.0.1:$PORT --threads 24 service:app"
            }
            _ => "$PACKAGES/bin/uvicorn service:app --port $PORT --log-level warning",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_a_version() {
        for peer in &PEERS {
            let (packages, mark) = match &peer.install {
                Install::Python(packages) => (packages, "=="),
                Install::Node(packages) => (packages, "@"),
            };
            for package in *packages {
                // The first character may be the @ of a scope.
                assert!(package[1..].contains(mark), "{package}");
            }
            assert!(packages[0].ends_with(&format!("{mark}{}", peer.version)), "{}", peer.name);
        }
    }

    #[test]
    fn setups_that_share_a_directory_install_the_same() {
        let packages = |peer: &Peer| match &peer.install {
            Install::Python(packages) | Install::Node(packages) => packages.join(" "),
        };
        for (one, other) in PEERS.iter().flat_map(|one| PEERS.iter().map(move |other| (one, other))) {
            assert!(one.name != other.name || packages(one) == packages(other), "{}", one.name);
            let is_same = one.variant == other.variant && one.name == other.name;
            assert_eq!(one.id() == other.id(), is_same);
        }
    }
}
