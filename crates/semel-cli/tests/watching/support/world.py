"""A service and a collector: what the gateway passes on, and what it tells of it.

Prints its port, and serves until its standard input ends.
POST /v1/traces and /v1/metrics are OTLP's, read by OpenTelemetry's own types. GET /received tells what came.
After GET /refuse they are answered 503 and only counted, until GET /accept.
Every other POST is answered 201 with the trace context that it came with; with `x-do: hold`, once GET /release was asked.
"""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

lock = threading.Lock()
spans, metrics, raw, authorizations = [], {}, [], set()
released, refusing = threading.Event(), threading.Event()
refused = []


def plain(attributes):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


def take_traces(body):
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                spans.append({
                    "resource": plain(resource.resource.attributes),
                    "scope": scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "failed": span.status.code == 2,
                    "took": span.end_time_unix_nano - span.start_time_unix_nano,
                    "start": span.start_time_unix_nano,
                    "attributes": plain(span.attributes),
                })


def series(name, attributes):
    labels = ",".join('%s="%s"' % pair for pair in sorted(plain(attributes).items()))
    return "%s{%s}" % (name, labels)


def take_metrics(body):
    metrics.clear()
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            kind = metric.WhichOneof("data")
            if kind == "sum":
                assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
            for point in getattr(metric, kind).data_points:
                assert 0 < point.start_time_unix_nano <= point.time_unix_nano
                if kind != "histogram":
                    metrics[series(metric.name, point.attributes)] = point.as_double
                    continue
                assert metric.histogram.aggregation_temporality == 2
                assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                metrics[series(metric.name + "_count", point.attributes)] = point.count
                metrics[series(metric.name + "_sum", point.attributes)] = point.sum
                assert sum(point.bucket_counts) == point.count
                below = 0
                for bound, count in zip(point.explicit_bounds, point.bucket_counts):
                    below += count
                    metrics[series("%s_bucket<=%s" % (metric.name, bound), point.attributes)] = below


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        take = {"/v1/traces": take_traces, "/v1/metrics": take_metrics}.get(self.path)
        if take:
            assert self.headers["content-type"] == "application/x-protobuf"
            if refusing.is_set():
                refused.append(self.path)
                return self.say(503, "")
            with lock:
                take(body)
                raw.append(body.decode("latin-1"))
                authorizations.add(self.headers["authorization"])
            return self.say(200, "")
        if self.headers.get("x-do") == "hold":
            released.wait()
        names = ("traceparent", "tracestate")
        self.say(201, json.dumps({name: self.headers[name] for name in names}))

    def do_GET(self):
        if self.path == "/received":
            with lock:
                told = {"spans": spans, "metrics": metrics, "raw": raw, "authorizations": list(authorizations)}
                told["refused"] = len(refused)
                return self.say(200, json.dumps(told))
        {"/release": released.set, "/refuse": refusing.set, "/accept": refusing.clear}[self.path]()
        self.say(200, "")

    def say(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
