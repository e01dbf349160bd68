"""Pays with Stripe's own library for Python, and prints what it gets: one JSON document."""
import json
import sys

import stripe

gateway, cut = sys.argv[1:]


def pay(key, amount, at=gateway):
    client = stripe.StripeClient("sk_test_1", base_addresses={"api": at}, max_network_retries=2)
    try:
        params = {"amount": amount, "currency": "eur", "source": "tok_visa"}
        return {"id": client.v1.charges.create(params=params, options={"idempotency_key": key}).id}
    except stripe.StripeError as error:
        return {"class": type(error).__name__, "status": error.http_status, "code": error.code, "text": str(error)}


print(json.dumps({
    "replay": [pay("order-1", 1000), pay("order-1", 1000)],
    "reused": pay("order-1", 9900),
    "unknown": [pay("order-2", 1300), pay("order-2", 1300)],
    "dropped": pay("order-3", 1400, at=cut),
}))
