# A client whose library makes calls again by itself, by a policy in the service config. Messages are written by hand, so that nothing
# has to be generated; refusals are read with Google's own types.
import json
import sys
import threading

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

RETRY = {
    "maxAttempts": 5,
    "initialBackoff": "0.2s",
    "maxBackoff": "5s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}
CONFIG = json.dumps({"methodConfig": [{"name": [{"service": "shop.Payments"}], "retryPolicy": RETRY}]})
KEY = [("idempotency-key", "key-of-the-python-order")]


def message(amount):
    return b"\x0a" + bytes([len(amount)]) + amount.encode()


def details(error):
    status = rpc_status.from_call(error)
    found = {}
    for detail in status.details:
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.RetryInfo):
            if detail.Is(kind.DESCRIPTOR):
                found[kind.__name__] = kind()
                detail.Unpack(found[kind.__name__])
    return found


channel = grpc.insecure_channel(sys.argv[1], options=[("grpc.service_config", CONFIG)])
create = channel.unary_unary("/shop.Payments/Create")
stream = channel.stream_unary("/shop.Payments/Import")

# Two at once: one executes, the other is told to come back, does so, and gets the same answer.
answers = []
calls = [
    threading.Thread(target=lambda: answers.append(create(message("10.00"), metadata=KEY, timeout=50)))
    for _ in range(2)
]
for call in calls:
    call.start()
for call in calls:
    call.join()
assert len(answers) == 2 and answers[0] == answers[1], answers
assert b"pay_1" in answers[0], answers

try:
    create(message("11.00"), metadata=KEY, timeout=50)
    raise AssertionError("another amount was taken")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
    info = details(error)["ErrorInfo"]
    assert info.domain == "semel", info
    assert info.reason == "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD", info
    assert info.metadata["operation_state"] == "completed", info
    assert info.metadata["safe_new_key"] == "false", info

try:
    create(message("10.00"), timeout=50)
    raise AssertionError("a call without a key was taken")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
    assert "idempotency" in error.details().lower(), error

amounts = [message("1.00"), message("2.00"), message("3.00")]
assert stream(iter(amounts), timeout=50) == b"\x08\x03"
try:
    stream(iter(amounts), metadata=KEY, timeout=50)
    raise AssertionError("a streaming call with a key was taken")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error

print("done")
