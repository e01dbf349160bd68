"""The same small service around each Python peer: POST with an Idempotency-Key and a JSON body, answered with 201.

Plain ASGI, so that no framework is measured along with the peer.
"""

import http.client
import json
import os

ANSWER = {
    "id": "pay_0001",
    "amount": "10.00",
    "currency": "EUR",
    "invoice": "in_1",
    "status": "created",
}


def is_held(command):
    """Whether this payment waits until it is let go."""
    return command["invoice"] == "held"


def hold():
    """Waits for the answer of whoever is named by HOLDER."""
    connection = http.client.HTTPConnection(os.environ["HOLDER"])
    connection.request("POST", "/held")
    connection.getresponse().read()


def service(create, start=None):
    """An application that answers with what `await create(key, command)` returns; None is refused with 409."""

    async def application(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            if start is not None:
                start()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        key = next((value for name, value in scope["headers"] if name == b"idempotency-key"), None)
        if key is None:
            status, answer = 400, {"error": "no key"}
        else:
            answer = await create(key.decode(), json.loads(body))
            status, answer = (201, answer) if answer is not None else (409, {"error": "refused"})
        text = json.dumps(answer, separators=(",", ":")).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    return application
