import json
import time
import urllib.error
import urllib.request
import uuid


def pay(amount, key):
    """Sends one payment until its outcome is known. The key and the body stay the same on every attempt."""
    request = urllib.request.Request(
        "http://127.0.0.1:8080/payments",
        data=json.dumps({"amount": amount}).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": key},
    )
    while True:
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, response.headers.get("Idempotent-Replayed"), json.load(response)
        except urllib.error.HTTPError as refusal:
            problem = json.load(refusal)
            if not problem.get("retryable"):
                return refusal.status, None, problem
            time.sleep(int(refusal.headers.get("Retry-After", 1)))
        except urllib.error.URLError:
            time.sleep(1)  # no answer at all: send the same request again


key = str(uuid.uuid4())
print(pay("10.00", key))
print(pay("10.00", key))  # a retry
print(pay("99.00", key))  # another payment under the same key
