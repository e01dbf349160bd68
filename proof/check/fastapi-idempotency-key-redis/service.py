"""fastapi-idempotency-key with its Redis backend."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fastapi import FastAPI  # noqa: E402
from fastapi_idempotency_key.backends.redis import RedisBackend  # noqa: E402
from fastapi_idempotency_key.middleware import IdempotencyMiddleware  # noqa: E402

from fastapi_service import add_routes  # noqa: E402

app = FastAPI()
app.add_middleware(IdempotencyMiddleware, backend=RedisBackend(redis_url=os.environ["REDIS"]))
add_routes(app)
