"""A service that knows nothing of Semel. It does what the headers of a request ask for, and writes down every execution first.

Reads commands from its standard input, one a line, and answers each with a line:
  run PORT DIRECTORY   starts a service as a process of its own; answers its process id
  kill ID              kills it, without a warning
  wait ID              waits until it has died by itself
Every service is killed when the input ends.

DIRECTORY/executions gets a line per request, also of a process that dies a moment later. Of the request headers:
  x-wait: NAME      wait until DIRECTORY/NAME exists
  x-die: now        end the process without an answer;  x-die: middle  in the middle of the answer
  x-hang-up: 1      close the connection without an answer
  x-status, x-header (`Name: value`, several), x-length (of the body)
  x-kind: chunked | until-close | event-stream | gzip | garbage | switching
  x-wait-between: NAME   wait after the first piece of a chunked answer
"""
import gzip
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

directory, executions = None, None
lock = threading.Lock()
count = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def answer(self):
        global count
        with lock:
            count += 1
            number = count
        target = self.raw_requestline.split(b" ")[1]
        os.write(executions, self.command.encode() + b" " + target + b"\n")
        ask = self.headers.get
        if name := ask("x-wait"):
            while not os.path.exists(os.path.join(directory, name)):
                time.sleep(0.005)
        if ask("x-die") == "now":
            os._exit(1)
        if ask("x-hang-up"):
            self.close_connection = True
            return
        body = self.body()
        if ask("x-length"):
            said = (b"%d " % number) * int(ask("x-length"))
            said = said[: int(ask("x-length"))]
        else:
            said = json.dumps({
                "number": number,
                "method": self.command,
                "target": target.decode("latin-1"),
                "headers": self.headers.items(),
                "body": body.decode("latin-1"),
            }).encode()
        status, kind = int(ask("x-status", 201)), ask("x-kind", "")
        if kind == "garbage":
            self.wfile.write(b"what is HTTP?\r\n\r\n")
            self.close_connection = True
            return
        if kind == "switching":
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
            self.close_connection = True
            return
        self.send_response(status)
        for line in self.headers.get_all("x-header", []):
            name, _, value = line.partition(": ")
            self.send_header(name, value)
        bodyless = self.command == "HEAD" or status in (204, 304)
        if kind == "event-stream":
            self.send_header("content-type", "text/event-stream")
        elif not ask("x-length"):
            self.send_header("content-type", "application/json")
        if kind == "gzip":
            said = gzip.compress(said, mtime=number)
            self.send_header("content-encoding", "gzip")
        if kind in ("chunked", "event-stream"):
            self.send_header("transfer-encoding", "chunked")
        elif kind == "until-close":
            self.send_header("connection", "close")
            self.close_connection = True
        elif status != 204:
            self.send_header("content-length", str(len(said)))
        self.end_headers()
        if bodyless:
            return
        if ask("x-die") == "middle":
            self.wfile.write(said[: len(said) // 2])
            os._exit(1)
        if kind == "event-stream":
            pieces = [b"data: %d\n\n" % piece for piece in range(3)]
        elif kind == "chunked":
            pieces = [said[:10], said[10:]]
        else:
            self.wfile.write(said)
            return
        for number, piece in enumerate(pieces):
            if number == 1 and ask("x-wait-between"):
                while not os.path.exists(os.path.join(directory, ask("x-wait-between"))):
                    time.sleep(0.005)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # The other side has gone, or sent what it should not: the test says so.


def run(port, where):
    global directory, executions
    server = Server(("127.0.0.1", port), Handler)
    if process := os.fork():
        server.socket.close()
        return process
    sys.stdin.close()
    directory = where
    executions = os.open(os.path.join(directory, "executions"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    server.serve_forever()


running = set()
for line in sys.stdin:
    command, number, *where = line.rstrip("\n").split(" ", 2)
    process = int(number)
    if command == "run":
        process = run(process, *where)
        running.add(process)
    else:
        if command == "kill":
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        running.discard(process)
    print(process, flush=True)
for process in running:
    os.kill(process, signal.SIGKILL)
