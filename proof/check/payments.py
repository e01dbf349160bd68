"""The payment that every service in Python makes: the effect is a line in a file, with the request's reference."""

import asyncio
import os
import time

ACCOUNTS = {"Bearer alice": "alice", "Bearer bob": "bob"}


class Failed(Exception):
    """The effect is there, and what came after it failed."""


def _delays(headers):
    milliseconds = int(headers.get("x-delay", 10))
    return milliseconds / 4000, milliseconds * 3 / 4000


def _effect(body, headers):
    with open(os.environ["LEDGER"], "a+") as ledger:
        ledger.write(body["reference"] + "\n")
        ledger.flush()
        ledger.seek(0)
        number = len(ledger.readlines())
    return {"id": f"pay_{number}", "amount": body["amount"], "reference": body["reference"]}


def _answer(payment, headers):
    if "x-fail" in headers:
        raise Failed()
    return payment


def pay(body, headers):
    before, after = _delays(headers)
    time.sleep(before)
    payment = _effect(body, headers)
    time.sleep(after)
    return _answer(payment, headers)


async def pay_async(body, headers):
    before, after = _delays(headers)
    await asyncio.sleep(before)
    payment = _effect(body, headers)
    await asyncio.sleep(after)
    return _answer(payment, headers)


def is_valid(body):
    return isinstance(body, dict) and isinstance(body.get("reference"), str) and isinstance(body.get("amount"), (int, float))
