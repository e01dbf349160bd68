# One static binary and nothing else: docs/operating/docker.md says how to run it.
FROM rust:1-alpine AS build
RUN apk add --no-cache build-base ca-certificates
WORKDIR /source
COPY . .
# Alpine's target links its C library, and the bundled SQLite, into the binary.
RUN cargo build --release --locked --package semel-cli \
    && mkdir -p /image/var/lib/semel /image/etc/semel /image/etc/ssl/certs \
    && cp target/release/semel /image/semel \
    && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/

FROM scratch
# Nobody's number on most machines. What it may write to is the volume alone: the root file system can be read-only.
COPY --from=build --chown=65532:65532 /image/ /
USER 65532:65532
WORKDIR /var/lib/semel
VOLUME /var/lib/semel
# Where SQLite puts what does not fit into memory: there is no /tmp here.
ENV SQLITE_TMPDIR=/var/lib/semel
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/semel", "health"]
ENTRYPOINT ["/semel"]
CMD ["gateway", "--config", "/etc/semel/semel.toml"]
