"""A payment service that knows what it did, and says so when it is asked.

Prints its port, and serves until its standard input ends. By the header `x-do` of a POST:
  answer    executes it and answers 201
  hang-up   executes it and closes the connection without an answer
  hold      executes it and never answers
  late      executes it and answers once it was asked what became of it, while it says so
  vanish    executes nothing and closes the connection
GET /operations/{id} tells what became of an operation: 200 with the answer, or 404 and which operation and attempt it knows nothing of,
after which it refuses that attempt.
GET /witness tells what was executed, and what was asked.
"""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
executions, questions, answers, refused = [], [], {}, {}
asked = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def who(self):
        return self.headers["semel-operation-id"], int(self.headers["semel-attempt"])

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        operation, attempt = self.who()
        do = self.headers.get("x-do", "answer")
        with lock:
            if attempt <= refused.get(operation, 0):
                return self.say(409, {}, "this attempt was said not to have happened")
            if do != "vanish":
                executions.append([operation, attempt])
                number = len(executions)
                headers = {"content-type": "application/json", "location": "/payments/%d" % number}
                answers[operation] = {"status": 201, "headers": headers, "body": '{ "payment": %d }' % number}
        if do == "hold":
            threading.Event().wait()
        if do == "late":
            asked.wait()
        if do not in ("answer", "late"):
            self.close_connection = True
            return
        answer = answers[operation]
        self.say(answer["status"], answer["headers"], answer["body"])

    def do_GET(self):
        if self.path == "/witness":
            with lock:
                return self.say(200, {}, json.dumps({"executions": executions, "questions": questions}))
        with lock:
            operation, attempt = self.who()
            questions.append([self.path, operation, attempt])
            asked.set()
            answer = answers.get(operation)
            if answer is None:
                refused[operation] = attempt
                about = {"semel-outcome": "not_executed", "semel-operation-id": operation, "semel-attempt": str(attempt)}
                return self.say(404, about, "")
        self.say(200, {"content-type": "application/json"}, json.dumps(answer))

    def say(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # The other side has gone: the test says so.


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
