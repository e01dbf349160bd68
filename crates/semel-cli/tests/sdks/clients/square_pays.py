"""Pays with Square's own library for Python, and prints what it gets: one JSON document. Its key is in the body. It retries answers of
409 and 5xx by itself; a connection that broke is for the application to retry, under the same key."""
import json
import sys

import httpx
from square import Square
from square.core.api_error import ApiError

gateway, cut = sys.argv[1:]


def pay(key, amount, at=gateway):
    client = Square(token="a-token", base_url=at)
    try:
        money = {"amount": amount, "currency": "EUR"}
        paid = client.payments.create(source_id="cnon:card-nonce-ok", idempotency_key=key, amount_money=money)
        return {"id": paid.payment.id}
    except ApiError as error:
        return {"class": "ApiError", "status": error.status_code, "code": error.errors[0].code, "text": error.errors[0].detail}
    except httpx.TransportError as error:
        return {"class": "TransportError", "text": str(error)}


broke, dropped = pay("key-of-the-order-3", 1400, at=cut), pay("key-of-the-order-3", 1400, at=cut)
print(json.dumps({
    "replay": [pay("key-of-the-order-1", 1000), pay("key-of-the-order-1", 1000)],
    "reused": pay("key-of-the-order-1", 9900),
    "unknown": [pay("key-of-the-order-2", 1300), pay("key-of-the-order-2", 1300)],
    "broke": broke,
    "dropped": dropped,
}))
