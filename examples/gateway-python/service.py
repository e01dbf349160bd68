import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

payments = 0


class Payments(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global payments
        body = self.rfile.read(int(self.headers["Content-Length"]))
        payments += 1  # the effect that must happen once
        answer = {"id": f"pay_{payments}", "amount": json.loads(body)["amount"]}
        print("payment", answer, flush=True)
        answer = json.dumps(answer).encode()
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


ThreadingHTTPServer(("127.0.0.1", 3000), Payments).serve_forever()
